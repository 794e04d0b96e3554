//! A peer's statistics, and the final ones of ended connections.

use crate::store::counters::counters;
use crate::time::Duration;
use crate::transport::chunks::ChunkCounters;
use crate::transport::{BudgetConfig, ChannelStats, Connection, PacketCounters, PacketStats, Protocol};

/// A connection that is silent for longer has quality 0. A living one brings something ten times a second.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// The bounds of round trip and jitter in milliseconds, and of lost packets in percent, for qualities 4 to 2.
const QUALITIES: [(f64, f64, f64); 3] = [(100.0, 20.0, 1.0), (180.0, 45.0, 4.0), (300.0, 100.0, 10.0)];

/// Returns the quality of a connection for a player's eye: 4 plays like a local game, 3 well, 2 noticeably worse and
/// 1 badly; 0 is a line on which nothing arrives.
pub(super) fn quality(stats: &PacketStats, silence: Duration) -> u8 {
    if silence > SILENT_AFTER {
        return 0;
    }
    let loss = stats.packet_loss.max(stats.packet_loss_received);
    let is_within = |(rtt, jitter, lost): &&(f64, f64, f64)| {
        stats.rtt <= *rtt && stats.jitter <= *jitter && loss <= *lost
    };
    QUALITIES.iter().zip([4, 3, 2]).find(|(bounds, _)| is_within(bounds)).map_or(1, |(_, quality)| quality)
}

/// All statistics of a connection at one moment.
#[derive(Clone, Debug, Default)]
pub struct PeerStats {
    /// RTT, jitter, loss and bandwidth.
    pub packets: PacketStats,
    /// Counters of its packet layer.
    pub counters: PacketCounters,
    /// How much may be sent.
    pub budget: BudgetConfig,
    /// Bytes a second at which chunks may go out.
    pub bulk_rate: f64,
    pub chunks: ChunkCounters,
    // By channel.
    pub channels: Vec<ChannelStats>,
}

impl PeerStats {
    /// The current statistics of a connection.
    pub(super) fn of(connection: &Connection, protocol: &Protocol) -> Self {
        PeerStats {
            packets: connection.stats(),
            counters: connection.counters(),
            budget: connection.budget(),
            bulk_rate: connection.bulk_rate(),
            chunks: connection.chunks().counters,
            channels: (0..protocol.channels().len()).map(|index| connection.channel_stats(index)).collect(),
        }
    }
}

/// A peer's statistics at the end of its connection.
#[derive(Debug)]
pub(super) struct FinalStats {
    /// The id under which its chunks are kept: from its connect token if it dialled us.
    pub(super) id: u64,
    pub(super) stats: PeerStats,
}

counters! {
    /// Counts of how connections ended.
    pub struct ConnectionCounters {
        /// Peers dropped because a reliable channel to them stayed full.
        stalled,
        /// Peers with a different protocol, noticed before their first event: the application never has an event of
        /// them.
        mismatched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_round_trip_jitter_loss_and_silence_decides() {
        let good = PacketStats { rtt: 40.0, jitter: 5.0, ..PacketStats::default() };
        let at = |stats: &PacketStats, ms: u64| quality(stats, Duration::from_millis(ms));
        assert_eq!(at(&good, 100), 4);
        assert_eq!(at(&PacketStats { rtt: 150.0, ..good }, 100), 3);
        assert_eq!(at(&PacketStats { jitter: 60.0, ..good }, 100), 2);
        assert_eq!(at(&PacketStats { packet_loss_received: 12.0, ..good }, 100), 1);
        assert_eq!(at(&good, 1_001), 0);
    }
}
