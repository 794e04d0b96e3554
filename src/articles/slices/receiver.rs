//! The receiving half: one chunk at a time, kept until it is read.
//!
//! Promises:
//! - Every slice of the chunk in transfer, complete or just read wants an ack, even a repeated slice: an ack may have
//!   been lost, and a sender without acks goes on forever.
//! - Acks are few: at most one each `ack_interval`, each with everything received. The acks of a chunk never have more
//!   bytes than its slices, headers of both counted: an ack without credit waits.
//! - The next chunk begins when this one was read; or, if this one is incomplete, with the first slice of the next,
//!   because then the sender gave it up (see [`sender`](super::sender)). Chunks never mix.
//! - Memory: one chunk, and only as its slices arrive.
//!
//! Refuses every slice that isn't of the current chunk, the one just read, or the next if that is due; and within a
//! chunk every slice whose count differs from the first's.

use super::assembly::{Acking, Assembly};
use super::config::ChunkReceiverConfig;
use super::drops::{ReceiverCounters, SliceDrop};
use super::packet::{Format, SlicePacket};
use super::progress::ChunkProgress;
use crate::limits::ConfigError;
use crate::store::Datagrams;
use crate::store::sequence;
use crate::time::Instant;
use crate::wire::BitWriter;

#[derive(Debug)]
pub struct ChunkReceiver {
    config: ChunkReceiverConfig,
    format: Format,
    /// The id of the chunk in transfer or waiting to be read.
    chunk_id: u16,
    /// That chunk, once a slice of it has arrived.
    assembly: Option<Assembly>,
    /// The acks of the last chunk, if it was read and no slice of this one has arrived.
    previous: Option<Acking>,
    last_ack: Option<Instant>,
    /// The latest time seen.
    latest: Instant,
    writer: BitWriter,
    counters: ReceiverCounters,
}

impl ChunkReceiver {
    /// A receiver without chunks.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: ChunkReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(ChunkReceiver {
            format: Format::new(config.max_slices),
            chunk_id: 0,
            assembly: None,
            previous: None,
            last_ack: None,
            latest: Instant::ZERO,
            writer: BitWriter::new(),
            counters: ReceiverCounters::default(),
            config,
        })
    }

    /// Handles a slice packet.
    ///
    /// # Errors
    /// The reason why the packet was dropped. It is counted.
    pub fn handle_slice(&mut self, now: Instant, datagram: &[u8]) -> Result<(), SliceDrop> {
        self.latest = self.latest.max(now);
        let taken = self.take_slice(datagram);
        match taken {
            Ok(()) => self.counters.slices_received += 1,
            Err(reason) => self.counters.count(reason),
        }
        taken
    }

    fn take_slice(&mut self, datagram: &[u8]) -> Result<(), SliceDrop> {
        let slice = self.format.read_slice(datagram)?;
        let bytes = datagram.len() + self.config.overhead;
        match sequence::distance(slice.chunk, self.chunk_id) {
            0 => self.take_current(&slice, bytes),
            -1 => Err(self.take_previous(&slice, bytes)),
            1 => self.take_next(&slice, bytes),
            2.. => Err(SliceDrop::FarAhead),
            _ => Err(SliceDrop::Old),
        }
    }

    fn take_current(&mut self, slice: &SlicePacket<'_>, bytes: usize) -> Result<(), SliceDrop> {
        let assembly = self.assembly.get_or_insert_with(|| Assembly::new(self.latest, slice.count));
        if slice.count != assembly.count() {
            return Err(SliceDrop::SliceCount);
        }
        // The sender knows that the last chunk has arrived, or it would not send this one.
        self.previous = None;
        assembly.acking.slice_came(bytes);
        if assembly.is_complete() {
            return Err(SliceDrop::Complete);
        }
        if !assembly.insert(slice) {
            return Err(SliceDrop::Duplicate);
        }
        self.counters.chunks_received += u64::from(assembly.is_complete());
        Ok(())
    }

    /// A slice of the last chunk: if that was read, the sender missed its last ack.
    fn take_previous(&mut self, slice: &SlicePacket<'_>, bytes: usize) -> SliceDrop {
        let Some(previous) = &mut self.previous else { return SliceDrop::Old };
        if slice.count != previous.received.bound() {
            return SliceDrop::SliceCount;
        }
        previous.slice_came(bytes);
        SliceDrop::AlreadyRead
    }

    /// A slice of the next chunk: the sender gave this one up, if it is incomplete. A sender makes sure that a chunk
    /// has begun here before it sends the next.
    fn take_next(&mut self, slice: &SlicePacket<'_>, bytes: usize) -> Result<(), SliceDrop> {
        match &self.assembly {
            None => Err(SliceDrop::FarAhead),
            Some(assembly) if assembly.is_complete() => Err(SliceDrop::Unread),
            Some(_) => {
                self.counters.chunks_abandoned += 1;
                self.assembly = None;
                self.chunk_id = slice.chunk;
                self.take_current(slice, bytes)
            }
        }
    }

    /// Once a tick: appends an ack packet if slices want one, it is time, and there is credit for it.
    pub fn tick(&mut self, now: Instant, out: &mut Datagrams<()>) {
        self.latest = self.latest.max(now);
        if self.last_ack.is_some_and(|last| now - last < self.config.ack_interval) {
            return;
        }
        let (chunk_id, acking) = match (&mut self.assembly, &mut self.previous) {
            (Some(assembly), _) => (self.chunk_id, &mut assembly.acking),
            (None, Some(previous)) => (self.chunk_id.wrapping_sub(1), previous),
            (None, None) => return,
        };
        let bytes = self.format.ack_packet_bytes(acking.received.bound()) + self.config.overhead;
        if !acking.take(bytes) {
            return;
        }
        self.writer.clear();
        self.format.write_ack(chunk_id, &acking.received, &mut self.writer);
        out.push((), self.writer.as_bytes());
        self.last_ack = Some(now);
        self.counters.acks_sent += 1;
        self.counters.bytes_sent += bytes as u64;
    }

    /// The complete chunk, once. The next one comes only after this was read.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let (chunk, acking) = self.assembly.take_if(|assembly| assembly.is_complete())?.into_chunk();
        self.chunk_id = self.chunk_id.wrapping_add(1);
        self.previous = Some(acking);
        Some(chunk)
    }

    /// Whether a chunk waits to be read.
    pub fn is_ready(&self) -> bool {
        self.assembly.as_ref().is_some_and(Assembly::is_complete)
    }

    /// The progress of the chunk in transfer or waiting to be read.
    pub fn progress(&self) -> Option<ChunkProgress> {
        self.assembly.as_ref().map(|assembly| assembly.progress(self.latest))
    }

    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }
}
