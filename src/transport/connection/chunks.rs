//! Chunks on a connection: the application's requests, and the packets of their slices.

use core::time::Duration;

use super::{Connection, ConnectionConfig, KEEP_ALIVE, controller};
use crate::store::Packets;
use crate::time::Instant;
use crate::transport::Protocol;
use crate::transport::chunks::{
    Assembly, ChunkCounters, ChunkError, ChunkEvent, ContentHash, MAX_BURST_CHUNK_BYTES, Offer, Progress,
    Rejection, Source,
};

/// A peer that has acked nothing for this long gets no more slices until it does: it may be gone.
const SILENCE: Duration = Duration::from_secs(1);

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
        self.protocol.chunk_channel().ok_or(ChunkError::NoChannel)?;
        let bytes = source.size();
        if burst && bytes > MAX_BURST_CHUNK_BYTES {
            return Err(ChunkError::Burst { bytes });
        }
        let number = self.chunks.send(now, source, hash, label)?;
        if let Some(controller) = self.controller.as_mut().filter(|_| burst) {
            let packets = bytes.div_ceil(self.chunks.slice_bytes().into())
                * (self.datagram_overhead + SLICE_OVERHEAD) as u64;
            controller.begin_burst(now, (bytes + packets) as u32);
        }
        Ok(number)
    }

    /// Bytes a second at which chunks may go out now, all headers included.
    pub fn bulk_rate(&self) -> f64 {
        self.controller.as_ref().map_or(0.0, |controller| controller.rate())
    }

    /// The same of a connection that is to be made, without making it.
    pub(crate) fn first_bulk_rate(config: &ConnectionConfig, protocol: &Protocol) -> f64 {
        let asked = controller(&config.congestion, protocol);
        asked.ok().flatten().map_or(0.0, |controller| controller.rate())
    }

    /// Ends a chunk of ours, wherever it is; false when it is over already.
    pub fn cancel_chunk(&mut self, number: u64) -> bool {
        self.chunks.cancel(number)
    }

    /// Sends nothing of a newly queued chunk before the peer has said which slices it has: costs a round trip, and
    /// sends nothing in vain if it has all.
    pub fn ask_first(&mut self, number: u64) {
        self.chunks.ask_first(number);
    }

    /// Pauses or resumes an outgoing chunk; false if it is over already. Later chunks go on, as far as chunks may be
    /// open at once, and are handed over after it.
    pub fn pause_chunk(&mut self, number: u64, paused: bool) -> bool {
        self.chunks.pause(number, paused)
    }

    /// Asks the peer to send no more of its chunk until it is resumed, or resumes it; false when it is over already.
    pub fn pause_incoming_chunk(&mut self, id: u16, paused: bool) -> bool {
        self.chunks.pause_incoming(id, paused)
    }

    /// Whether the peer's chunks before this one are all known: places are to be given in this order.
    pub(crate) fn is_in_line(&self, id: u16) -> bool {
        self.chunks.is_in_line(id)
    }

    /// Accepts a chunk that the peer offers, into this assembly; false if it is over already.
    pub fn accept_chunk(&mut self, id: u16, assembly: Assembly) -> bool {
        self.chunks.accept(id, assembly)
    }

    /// Ends a chunk of the peer, offered or under way; false when it is over already.
    pub fn reject_chunk(&mut self, id: u16, rejection: Rejection) -> bool {
        self.chunks.reject(id, rejection)
    }

    /// The next chunk event.
    pub fn poll_chunk_event(&mut self) -> Option<ChunkEvent> {
        self.chunks.poll_event()
    }

    /// The progress of an outgoing chunk; None if it is over.
    pub fn chunk_progress(&self, now: Instant, number: u64) -> Option<Progress> {
        self.chunks.progress(now, number)
    }

    /// The chunks of the peer that are offered or under way.
    pub fn incoming_chunks(&self, now: Instant) -> impl Iterator<Item = (&Offer, Progress)> {
        self.chunks.incoming(now)
    }

    /// Ends all chunks, because the connection is over: each gets an event. Returns the peer's partial chunks.
    pub fn finish_chunks(&mut self) -> Vec<Assembly> {
        self.chunks.finish()
    }

    /// Counts of chunks, and of dropped items of the peer's.
    pub fn chunk_counters(&self) -> ChunkCounters {
        self.chunks.counters()
    }

    /// Appends chunk items, and then slices as long as the budget lasts.
    pub(super) fn transmit_chunks(&mut self, now: Instant, out: &mut Packets) {
        if self.chunks.is_idle() {
            return;
        }
        self.chunks.update(now);
        if !self.can_send_packet(now) {
            self.chunks_wait = true;
            return;
        }
        self.silent = self.unanswered_since.is_some_and(|since| now.since(since) > SILENCE);
        let probe_after = if self.silent { KEEP_ALIVE } else { self.endpoint.acks().probe_interval() };
        // To a silent peer no slices go, so their turn is still to come: at ticks so slow that the peer is silent at every other
        // one, they would have theirs at just those.
        self.chunks_wait = self.silent && self.chunks.has_slices(now);
        let slices_first = !self.silent && core::mem::take(&mut self.slices_wait);
        if slices_first {
            self.transmit_slices(now, out);
        }
        // Asked first: gathering ack ranges and credit costs more, and chunks that are over are remembered for long.
        if self.chunks.next_deadline(probe_after) <= now && self.can_send_packet(now) {
            self.begin_packet(now);
            if self.chunks.select_control(now, probe_after, &mut self.scratch.get().chunk) {
                self.send_whole_packet(now, out);
            }
        }
        if !slices_first {
            self.slices_wait |= self.chunks.has_slices(now) && !self.controller_allows(now);
            self.transmit_slices(now, out);
        }
        if self.chunks.next_slice_at() != Instant::ZERO
            && let Some(controller) = &mut self.controller
        {
            controller.on_app_limited(now);
        }
    }

    pub(super) fn transmit_slices(&mut self, now: Instant, out: &mut Packets) {
        while !self.silent
            && self.chunks.has_slices(now)
            && self.controller.as_mut().is_some_and(|controller| controller.can_send(now))
            && self.next_number_at() <= now
        {
            // Other packets carry ack ranges and credit: here they would leave no room for a slice.
            let control_bits = self.begin_brief_packet(now);
            let entry_bits = 2 + self.protocol.channel_bits() as usize;
            let room = self.datagram_bits.saturating_sub(control_bits + entry_bits);
            if !self.chunks.select_slice(now, room, &mut self.scratch.get().chunk) {
                break;
            }
            self.send_packet(now, out);
        }
    }

    pub(super) fn slices_deadline(&self) -> Instant {
        if self.silent {
            return Instant::NEVER;
        }
        let allowed = self.next_send().max(self.next_number_at());
        self.chunks.next_slice_at().max(allowed)
    }
}
