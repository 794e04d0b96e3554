//! Large blocks of data, either way.

use super::Host;
use crate::endpoint::error::SendChunkError;
use crate::endpoint::handle::PeerHandle;
use crate::endpoint::incoming::ChunkStore;
use crate::time::Instant;
use crate::transport::chunks::{ContentHash, Offer, Progress, Rejection, Source};

impl Host {
    /// Stores incoming chunks in `store` instead of memory.
    pub fn set_chunk_store(&mut self, store: Box<dyn ChunkStore>) {
        self.incoming.set_store(store);
    }

    /// Queues a chunk with this hash for a peer; returns the number that names it in events. For `burst` see
    /// [`Connection::send_chunk`](crate::transport::Connection::send_chunk).
    ///
    /// # Errors
    ///
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, SendChunkError> {
        let peer = self.peers.live_mut(peer).ok_or(SendChunkError::NotConnected)?;
        Ok(peer.connection.send_chunk(now, source, hash, label, burst)?)
    }

    /// Cancels an outgoing chunk; false if it is over already.
    pub fn cancel_chunk(&mut self, peer: PeerHandle, number: u64) -> bool {
        self.peers.live_mut(peer).is_some_and(|peer| peer.connection.chunks_mut().cancel(number))
    }

    /// Rejects a peer's chunk by its id; false if it is over already.
    pub fn reject_chunk(&mut self, peer: PeerHandle, id: u16) -> bool {
        let peer = self.peers.live_mut(peer);
        peer.is_some_and(|peer| peer.connection.chunks_mut().reject(id, Rejection::Cancelled))
    }

    // See `Connection::ask_first`.
    pub fn ask_first(&mut self, peer: PeerHandle, number: u64) {
        if let Some(peer) = self.peers.live_mut(peer) {
            peer.connection.chunks_mut().ask_first(number);
        }
    }

    /// Pauses or resumes an outgoing chunk; false if it is over already.
    pub fn pause_chunk(&mut self, peer: PeerHandle, number: u64, paused: bool) -> bool {
        self.peers.live_mut(peer).is_some_and(|peer| peer.connection.chunks_mut().pause(number, paused))
    }

    /// Asks a peer to pause or resume its chunk; false if it is over already.
    pub fn pause_incoming_chunk(&mut self, peer: PeerHandle, id: u16, paused: bool) -> bool {
        self.peers.live_mut(peer).is_some_and(|peer| peer.connection.chunks_mut().pause_incoming(id, paused))
    }

    /// The progress of an outgoing chunk; None if it is over.
    pub fn chunk_progress(&self, now: Instant, peer: PeerHandle, number: u64) -> Option<Progress> {
        self.peers.live(peer)?.connection.chunks().progress(now, number)
    }

    /// A peer's chunks that are under way.
    pub fn incoming_chunks(&self, now: Instant, peer: PeerHandle) -> Vec<(Offer, Progress)> {
        let peer = self.peers.live(peer).into_iter();
        let chunks = peer.flat_map(|peer| peer.connection.chunks().incoming(now));
        chunks.map(|(offer, progress)| (offer.clone(), progress)).collect()
    }
}
