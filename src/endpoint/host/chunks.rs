//! Large blocks of data, either way.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::error::SendChunkError;
use crate::endpoint::incoming::ChunkStore;
use crate::time::Instant;
use crate::transport::chunks::{ContentHash, Source};

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
}
