//! Queries: which peers there are, and their statistics.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::stats::{ConnectionCounters, PeerStats, quality};
use crate::netcode;
use crate::time::{Duration, Instant};
use crate::transport::chunks::ChunkCounters;
use crate::transport::{Connection, PacketCounters};

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

    /// The connection to a peer; None if it is not connected.
    pub fn connection(&self, peer: PeerHandle) -> Option<&Connection> {
        Some(&self.peers.live(peer)?.connection)
    }

    /// The same, for the application's requests.
    pub fn connection_mut(&mut self, peer: PeerHandle) -> Option<&mut Connection> {
        Some(&mut self.peers.live_mut(peer)?.connection)
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
        let fresh = Connection::new(&self.config, self.protocol.clone());
        fresh.map(|fresh| PeerStats::of(&fresh, &self.protocol)).unwrap_or_default()
    }

    /// Counts of how connections ended.
    pub fn connection_counters(&self) -> ConnectionCounters {
        self.connection_counters
    }

    /// Packet counts of all connections, ended ones included.
    pub fn packet_counters(&self) -> PacketCounters {
        self.peers.iter().fold(self.ended, |sum, peer| sum + peer.connection.counters())
    }

    /// Chunk counts of all connections, ended ones included.
    pub fn all_chunk_counters(&self) -> ChunkCounters {
        self.peers.iter().fold(self.ended_chunks, |sum, peer| sum + peer.connection.chunks().counters)
    }

    /// Drops of the secure connections, by name.
    pub fn netcode_counters(&self) -> netcode::Counters {
        self.links.counters()
    }
}
