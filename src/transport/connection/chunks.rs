//! Chunks on a connection.

use super::Connection;
use crate::time::Instant;
use crate::transport::chunks::{ChunkError, Chunks, ContentHash, MAX_BURST_CHUNK_BYTES, Source};

/// Bytes around a slice in its packet: header, control sections, entry, item.
const SLICE_OVERHEAD: usize = 20;

impl Connection {
    /// Queues a chunk with this hash; returns the number that names it on this side. With `burst`, all of it may go
    /// out at once, at the risk that a slow link drops some: for small chunks, when nothing else matters.
    ///
    /// # Errors
    ///
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, ChunkError> {
        let parts = &mut self.parts;
        parts.protocol.chunk_channel().ok_or(ChunkError::NoChannel)?;
        let bytes = source.size();
        if burst && bytes > MAX_BURST_CHUNK_BYTES {
            return Err(ChunkError::Burst { bytes });
        }
        let number = parts.chunks.send(now, source, hash, label)?;
        if burst {
            let packets = bytes.div_ceil(parts.chunks.slice_bytes().into());
            let overhead = packets * (parts.outbound.datagram_overhead + SLICE_OVERHEAD) as u64;
            parts.outbound.begin_burst(now, (bytes + overhead) as u32);
        }
        Ok(number)
    }

    /// The chunks of both directions.
    pub fn chunks(&self) -> &Chunks {
        &self.parts.chunks
    }

    /// The same, for the application's requests.
    pub fn chunks_mut(&mut self) -> &mut Chunks {
        &mut self.parts.chunks
    }

    /// Bytes a second at which chunks may go out now, all headers included.
    pub fn bulk_rate(&self) -> f64 {
        self.parts.outbound.bulk_rate()
    }
}
