//! Queries: which peers there are, and their statistics.

use super::Host;
use crate::endpoint::handle::PeerHandle;
use crate::endpoint::stats::{ConnectionCounters, PeerStats, quality};
use crate::netcode;
use crate::store::sequence::ahead;
use crate::time::{Duration, Instant};
use crate::transport::chunks::ChunkCounters;
use crate::transport::{ChannelStats, PacketCounters, PacketStats};

/// How many numbers before one are checked for losses: more than any loss that matters to what is shown, and than a large
/// packet has fragments.
const MAX_CHECKED: i64 = 320;

impl Host {
    /// Whether a peer is connected.
    pub fn is_connected(&self, peer: PeerHandle) -> bool {
        self.peers.live(peer).is_some()
    }

    /// The connected peers, by slot.
    pub fn connected(&self) -> impl Iterator<Item = PeerHandle> {
        self.peers.iter().filter(|peer| peer.closing.is_none()).map(|peer| peer.handle)
    }

    /// The connected peer with this client id.
    pub fn find(&self, id: u64) -> Option<PeerHandle> {
        self.peers.iter().find(|peer| peer.id == id).map(|peer| peer.handle)
    }

    /// The channel of inputs and of the server's time, if the protocol has them.
    pub fn time_channel(&self) -> Option<usize> {
        self.protocol.time_channel()
    }

    /// The channel of ghosts, if the protocol has them.
    pub fn ghost_channel(&self) -> Option<usize> {
        self.protocol.ghost_channel()
    }

    /// RTT, jitter, loss and bandwidth of one peer; None when it is not connected.
    pub fn stats(&self, peer: PeerHandle) -> Option<(PacketStats, PacketCounters)> {
        let connection = &self.peers.live(peer)?.connection;
        Some((connection.stats(), connection.counters()))
    }

    /// How many packets of a peer between these two haven't arrived: the last 320 numbers are checked, and one counts for earlier
    /// packets, which aren't.
    pub fn missing_between(&self, peer: PeerHandle, before: u64, sequence: u64) -> u32 {
        let all = ahead(sequence, before).saturating_sub(1);
        let between = all.min(MAX_CHECKED);
        let Some(peer) = self.peers.live(peer) else { return 0 };
        let is_missing = |ago: &i64| peer.connection.is_missing(sequence.wrapping_sub(*ago as u64));
        (1..=between).filter(is_missing).count() as u32 + u32::from(all > between)
    }

    /// How long nothing has arrived from a dialled server; None unless connected.
    pub fn silence(&self, server: PeerHandle, now: Instant) -> Option<Duration> {
        self.links.dialled(server)?.netcode.silence(now)
    }

    /// The quality of the connection to a dialled server, 0 to 4: 4 plays like a local game, and 0 is a line on which nothing arrives.
    pub fn quality(&self, server: PeerHandle, now: Instant) -> u8 {
        let Some(silence) = self.silence(server, now) else { return 0 };
        self.peers.live(server).map_or(0, |peer| quality(&peer.connection.stats(), silence))
    }

    /// A peer's statistics, now or at the end of its connection: kept until its last event is taken, and for a
    /// dialled server until another takes its place. None if nothing is known.
    pub fn peer_stats(&self, peer: PeerHandle) -> Option<PeerStats> {
        if let Some(peer) = self.peers.live(peer) {
            return Some(PeerStats::of(&peer.connection, &self.protocol));
        }
        self.final_stats.get(&peer).map(|ended| ended.stats.clone())
    }

    /// The statistics of a connection before anything was sent.
    pub fn fresh_stats(&self) -> PeerStats {
        PeerStats::fresh(&self.config, &self.protocol)
    }

    /// Counts of how connections ended.
    pub fn connection_counters(&self) -> ConnectionCounters {
        self.connection_counters
    }

    /// Counts of one channel of one peer; None if there is no such peer or channel.
    pub fn channel_stats(&self, peer: PeerHandle, channel: usize) -> Option<ChannelStats> {
        let peer = self.peers.live(peer)?;
        (channel < self.protocol.channels().len()).then(|| peer.connection.channel_stats(channel))
    }

    /// Counts of a peer's chunks; None if it is not connected.
    pub fn chunk_counters(&self, peer: PeerHandle) -> Option<ChunkCounters> {
        Some(self.peers.live(peer)?.connection.chunks().counters())
    }

    /// Bytes a second at which chunks may go to a peer now; None if it is not connected.
    pub fn bulk_rate(&self, peer: PeerHandle) -> Option<f64> {
        Some(self.peers.live(peer)?.connection.bulk_rate())
    }

    /// Packet counts of all connections, ended ones included.
    pub fn packet_counters(&self) -> PacketCounters {
        self.peers.iter().fold(self.ended, |sum, peer| sum + peer.connection.counters())
    }

    /// Chunk counts of all connections, ended ones included.
    pub fn all_chunk_counters(&self) -> ChunkCounters {
        self.peers.iter().fold(self.ended_chunks, |sum, peer| sum + peer.connection.chunks().counters())
    }

    /// Drops of the secure connections, by name.
    pub fn netcode_counters(&self) -> netcode::Counters {
        self.links.counters()
    }
}
