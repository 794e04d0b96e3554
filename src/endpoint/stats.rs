//! How a peer is doing, and how the last one ended up doing.

use crate::transport::chunks::ChunkCounters;
use crate::transport::{BudgetConfig, ChannelStats, Connection, PacketCounters, PacketStats, Protocol};

/// All that is known of how a connection fares, at one moment.
#[derive(Clone, Debug)]
pub struct PeerStats {
    /// RTT, jitter, loss and bandwidth.
    pub packets: PacketStats,
    /// What its packet layer counted.
    pub counters: PacketCounters,
    /// How much may be sent.
    pub budget: BudgetConfig,
    /// Bytes a second at which chunks may go out.
    pub bulk_rate: f64,
    /// What chunks cost.
    pub chunks: ChunkCounters,
    /// By channel.
    pub channels: Vec<ChannelStats>,
}

impl PeerStats {
    /// Of a connection, now.
    pub(super) fn of(connection: &Connection, protocol: &Protocol) -> Self {
        PeerStats {
            packets: connection.stats(),
            counters: connection.counters(),
            budget: connection.budget(),
            bulk_rate: connection.bulk_rate(),
            chunks: connection.chunk_counters(),
            channels: (0..protocol.channels().len()).map(|index| connection.channel_stats(index)).collect(),
        }
    }
}

/// How a peer was doing when its connection ended.
#[derive(Debug)]
pub(super) struct FinalStats {
    /// By which its chunks are kept, which is the id in its connect token if it dialled us.
    pub(super) id: u64,
    pub(super) stats: PeerStats,
}

/// What became of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Peers dropped because a reliable channel to them stayed full.
    pub stalled: u64,
    /// Peers whose protocol differs, which was found out before the application was told of them: it never is.
    pub mismatched: u64,
}

impl ConnectionCounters {
    /// Each count under its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("stalled", self.stalled), ("mismatched", self.mismatched)].into_iter()
    }
}
