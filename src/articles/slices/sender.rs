//! The sending end: a queue of chunks, of which the first is in flight.
//!
//! Promises: slices go out in turn, at the set rate, until all are acked; one that is acked is never sent again, and none
//! sooner than the resend delay. What is acked in error (another chunk, another count, a slice never sent) is refused
//! whole. Ticking is all it takes: there is no state in which a chunk in flight waits for anything but acks.
//!
//! ## Cancelling
//!
//! A receiver takes the next chunk's id for a sign that the sender gave up the one before, but only if it has begun
//! with that one: so two cancelled in a row could desynchronize it. Therefore a chunk that is cancelled while it is
//! in flight gives way to the next
//!
//! - at once, when nothing of it was sent: its id goes to the next chunk;
//! - at once, when an ack has shown that the receiver has begun with it;
//! - otherwise with the first ack: until then its first slice, and no other, is sent on.
//!
//! The receiver then drops what it has of it. If it had it all before, it keeps it: a chunk that is cancelled late
//! may still arrive, whole, and before those after it.

use core::fmt;
use std::collections::VecDeque;

use super::SLICE_BYTES;
use super::config::{ChunkSenderConfig, MAX_DELAY_SECONDS, MIN_DELAY_SECONDS};
use super::drops::{AckDrop, SenderCounters};
use super::in_flight::{InFlight, NeverSent};
use super::packet::{Format, SlicePacket};
use super::progress::ChunkProgress;
use crate::limits::ConfigError;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};
use crate::wire::BitWriter;

/// Why a chunk is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkSendError {
    /// There is nothing to send: a slice has at least one byte.
    Empty,
    /// The chunk is too large.
    TooLarge {
        bytes: usize,
        /// The most it may have.
        bound: usize,
    },
    /// The chunk is too large for an initial burst.
    TooLargeForBurst {
        bytes: usize,
        /// The most it may have.
        bound: usize,
    },
    /// Too many chunks wait.
    Full {
        /// How many may wait.
        bound: usize,
    },
}

impl fmt::Display for ChunkSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkSendError::Empty => write!(f, "the chunk must have at least 1 byte, not 0"),
            ChunkSendError::TooLarge { bytes, bound } => {
                write!(
                    f,
                    "the chunk must be at most {bound} bytes, not {bytes}: raise max_slices at both ends"
                )
            }
            ChunkSendError::TooLargeForBurst { bytes, bound } => write!(
                f,
                "a chunk with burst must be at most {bound} bytes, not {bytes}: more would overflow \
                 routers' buffers on the path"
            ),
            ChunkSendError::Full { bound } => {
                write!(
                    f,
                    "{bound} chunks are already waiting, the maximum (max_queued): send more when some \
                     have arrived"
                )
            }
        }
    }
}

impl core::error::Error for ChunkSendError {}

/// A chunk that waits.
#[derive(Debug)]
struct Queued {
    number: u64,
    data: Vec<u8>,
    burst: bool,
}

#[derive(Debug)]
pub struct ChunkSender {
    config: ChunkSenderConfig,
    format: Format,
    queue: VecDeque<Queued>,
    in_flight: Option<InFlight>,
    next_number: u64,
    /// On the wire, of the chunk in flight or of the next one.
    chunk_id: u16,
    bytes_per_second: f64,
    /// Bytes that may be sent now.
    accumulated: f64,
    rtt: Option<Duration>,
    /// The latest time seen.
    latest: Option<Instant>,
    writer: BitWriter,
    counters: SenderCounters,
}

impl ChunkSender {
    /// An end that has sent nothing.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: ChunkSenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let bytes_per_second = config.bytes_per_second;
        Ok(ChunkSender {
            format: Format::new(config.max_slices),
            queue: VecDeque::new(),
            in_flight: None,
            next_number: 0,
            chunk_id: 0,
            bytes_per_second,
            accumulated: config.accumulator(bytes_per_second),
            rtt: None,
            latest: None,
            writer: BitWriter::new(),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// Queues a chunk and gives its number: 0 for the first, then one more each.
    ///
    /// # Errors
    /// When the chunk is empty or too large, or too many wait. Nothing was queued.
    pub fn send(&mut self, chunk: Vec<u8>) -> Result<u64, ChunkSendError> {
        self.enqueue(chunk, false)
    }

    /// As [`ChunkSender::send`], but once its turn has come all its slices go out at once, whatever the rate; then
    /// nothing for the configured wait, and then the missing slices at the usual rate. For chunks that the player
    /// waits for, when nothing else that goes out is urgent.
    ///
    /// # Errors
    /// As [`ChunkSender::send`], and when the chunk is too large for a burst.
    pub fn send_burst(&mut self, chunk: Vec<u8>) -> Result<u64, ChunkSendError> {
        let (bytes, bound) = (chunk.len(), self.config.initial_burst_bytes);
        if bytes > bound {
            return Err(ChunkSendError::TooLargeForBurst { bytes, bound });
        }
        self.enqueue(chunk, true)
    }

    fn enqueue(&mut self, data: Vec<u8>, burst: bool) -> Result<u64, ChunkSendError> {
        let (bytes, bound) = (data.len(), self.config.max_slices * SLICE_BYTES);
        if bytes == 0 {
            return Err(ChunkSendError::Empty);
        }
        if bytes > bound {
            return Err(ChunkSendError::TooLarge { bytes, bound });
        }
        if self.queue.len() >= self.config.max_queued {
            return Err(ChunkSendError::Full { bound: self.config.max_queued });
        }
        let number = self.next_number;
        self.next_number += 1;
        self.queue.push_back(Queued { number, data, burst });
        Ok(number)
    }

    /// Gives up a chunk; see the [module](self) on what that means for one in flight. False when it is across, was
    /// cancelled before, or never was.
    pub fn cancel(&mut self, number: u64) -> bool {
        if let Some(chunk) = &mut self.in_flight
            && chunk.number == number
        {
            if chunk.is_cancelled() {
                return false;
            }
            if !chunk.is_begun() {
                self.in_flight = None;
            } else if chunk.is_known_to_receiver() {
                self.finish();
            } else {
                chunk.cancel();
            }
        } else {
            let Some(at) = self.queue.iter().position(|queued| queued.number == number) else { return false };
            self.queue.remove(at);
        }
        self.counters.chunks_cancelled += 1;
        true
    }

    /// Once a tick: appends the slice packets that are due and that the rate allows.
    pub fn tick(&mut self, now: Instant, out: &mut Datagrams<()>) {
        self.accumulate(now);
        let Some(mut chunk) = self.in_flight.take().or_else(|| self.begin_next(now, out)) else { return };
        let resend_delay = self.resend_delay();
        while let Some(slice) = chunk.next_due(now, resend_delay) {
            let bytes = self.packet_bytes(&chunk, slice) as f64;
            if bytes > self.accumulated {
                break;
            }
            self.accumulated -= bytes;
            self.transmit(&mut chunk, slice, now, out);
        }
        self.in_flight = Some(chunk);
    }

    /// The chunk at the head of the queue, its initial burst sent.
    fn begin_next(&mut self, now: Instant, out: &mut Datagrams<()>) -> Option<InFlight> {
        let Queued { number, data, burst } = self.queue.pop_front()?;
        let mut chunk = InFlight::new(number, data);
        if burst {
            (0..chunk.count()).for_each(|slice| self.transmit(&mut chunk, slice, now, out));
            chunk.paused_until = now + self.config.initial_burst_wait;
            self.accumulated = 0.0;
        }
        Some(chunk)
    }

    /// Takes an ack packet. Gives the number of the chunk when it is now known to be across.
    ///
    /// # Errors
    /// The reason why the packet was dropped. It is counted.
    pub fn handle_ack(&mut self, now: Instant, datagram: &[u8]) -> Result<Option<u64>, AckDrop> {
        self.accumulate(now);
        let across = self.take_ack(datagram);
        match across {
            Ok(_) => self.counters.acks_received += 1,
            Err(reason) => self.counters.count(reason),
        }
        across
    }

    fn take_ack(&mut self, datagram: &[u8]) -> Result<Option<u64>, AckDrop> {
        let ack = self.format.read_ack(datagram)?;
        let Some(chunk) = &mut self.in_flight else { return Err(AckDrop::OtherChunk) };
        if ack.chunk != self.chunk_id {
            return Err(AckDrop::OtherChunk);
        }
        if ack.received.bound() != chunk.count() {
            return Err(AckDrop::SliceCount);
        }
        chunk.ack(&ack.received).map_err(|NeverSent| AckDrop::NeverSent)?;
        let (number, cancelled) = (chunk.number, chunk.is_cancelled());
        if cancelled && chunk.is_known_to_receiver() {
            self.finish();
        } else if chunk.is_acked() {
            self.finish();
            self.counters.chunks_acked += 1;
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// The chunk in flight has had its time.
    fn finish(&mut self) {
        self.in_flight = None;
        self.chunk_id = self.chunk_id.wrapping_add(1);
    }

    /// The RTT from a slice to its ack, the receiver's wait included. While it is given, a slice is sent again after 1.25
    /// times as long, and not after the resend delay that is set.
    pub fn set_rtt(&mut self, rtt: Option<Duration>) {
        self.rtt = rtt;
    }

    /// Changes the rate, from now on.
    ///
    /// # Errors
    /// When it is not above 0 and finite.
    pub fn set_bytes_per_second(&mut self, bytes_per_second: f64) -> Result<(), ConfigError> {
        ConfigError::positive("bytes_per_second", bytes_per_second)?;
        self.bytes_per_second = bytes_per_second;
        Ok(())
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.bytes_per_second
    }

    /// Chunks that wait behind the one in flight.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The number of the chunk in flight. `None` also while a cancelled one is.
    pub fn in_flight(&self) -> Option<u64> {
        self.wanted_in_flight().map(|chunk| chunk.number)
    }

    /// How far the chunk in flight is.
    pub fn progress(&self) -> Option<ChunkProgress> {
        self.wanted_in_flight().map(|chunk| chunk.progress(self.latest.unwrap_or_default()))
    }

    fn wanted_in_flight(&self) -> Option<&InFlight> {
        self.in_flight.as_ref().filter(|chunk| !chunk.is_cancelled())
    }

    /// Whether there is nothing to send.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none() && self.queue.is_empty()
    }

    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Brings time, and what may be sent, up to date.
    fn accumulate(&mut self, now: Instant) {
        let dt = self.latest.map_or(Duration::ZERO, |latest| now - latest);
        self.latest = self.latest.max(Some(now));
        let most = self.config.accumulator(self.bytes_per_second);
        self.accumulated = (self.accumulated + self.bytes_per_second * dt.as_secs_f64()).min(most);
    }

    fn resend_delay(&self) -> Duration {
        match self.rtt {
            Some(rtt) => (rtt.saturating_mul(5) / 4).clamp(MIN_DELAY_SECONDS, MAX_DELAY_SECONDS),
            None => self.config.resend_delay,
        }
    }

    /// What a slice costs, headers included.
    fn packet_bytes(&self, chunk: &InFlight, slice: usize) -> usize {
        let last = slice == chunk.count() - 1;
        self.format.slice_packet_bytes(last, chunk.slice(slice).len()) + self.config.overhead
    }

    fn transmit(&mut self, chunk: &mut InFlight, slice: usize, now: Instant, out: &mut Datagrams<()>) {
        self.writer.clear();
        let count = chunk.count();
        let packet = SlicePacket { chunk: self.chunk_id, slice, count, data: chunk.slice(slice) };
        self.format.write_slice(&packet, &mut self.writer);
        out.push((), self.writer.as_bytes());
        self.counters.bytes_sent += self.packet_bytes(chunk, slice) as u64;
        self.counters.slices_sent += 1;
        self.counters.slices_resent += u64::from(chunk.sent(now, slice));
    }
}
