//! Large blocks beside game traffic: chunks, cut into slices that fill packets, in both directions at once.
//!
//! A chunk is offered with its size, its hash and a label; its slices follow without waiting, up to a bound, until
//! the receiver has answered that it accepts the chunk and which slices it has. Packets' acks are the slices' acks:
//! the slice of a lost packet is sent again in another one. Chunks are sent in queue order; when the last slice of
//! one is in flight the next begins. `STANDARD.md` beside the framing has the bytes.
//!
//! Promises: chunks are handed over in the order in which they were queued; a received chunk has the content that was
//! sent, by its hash; each chunk ends in one event on either side; memory is what the receiver granted plus some bits
//! per slice. Refuses offers that the receiving application has no room for, before allocating memory. Items that fit
//! no chunk are dropped and counted ([`ChunkCounters`]): a peer harms only its own chunks.

mod assembly;
mod incoming;
mod offer_pace;
mod outgoing;
mod storage;

pub use assembly::Assembly;
#[cfg(test)]
pub(crate) use assembly::Slice;
pub use storage::{BytesSource, MemorySink, Sink, Source, StorageError, Stored};

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use assembly::ReadBack;
use incoming::Incoming;
use offer_pace::OfferPace;
use outgoing::Outgoing;

use crate::exact::decay;
use crate::store::counters::counters;
use crate::store::sequence::distance;
use crate::time::Instant;

/// The largest chunk that may go out at once: the article has some 100 KiB, and warns of more.
pub(super) const MAX_BURST_CHUNK_BYTES: u64 = 256 * 1024;

/// Bytes of a slice: as many as leave room in a datagram for its headers, an entry and some acks.
pub const SLICE_BYTES: usize = 1152;

/// Bits of a slice's length on the wire.
pub(crate) const SLICE_LENGTH_BITS: u32 = 11;

/// The maximum overhead of a packet with a slice.
const SLICE_PACKET_OVERHEAD: usize = 39;

/// The largest chunk: 40 bits of size on the wire.
pub const MAX_CHUNK_BYTES: u64 = (1 << 40) - 1;

pub const MAX_LABEL_BYTES: usize = 64;

/// Chunks waiting to be sent, those under way included.
pub const MAX_QUEUED_CHUNKS: usize = 256;

/// Chunks under way in one direction: the standard's. One would cost a round trip between two of them.
pub(crate) const MAX_OPEN: u16 = 4;

/// Runs of slices in an answer; slices beyond them are sent again.
pub(crate) const MAX_RUNS: usize = 128;

/// Identifies a chunk's content: its SHA-256.
pub type ContentHash = [u8; 32];

/// A sender's description of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The chunk's number in its direction.
    pub id: u16,
    /// Bytes of the chunk.
    pub size: u64,
    /// Bytes of each slice but the last.
    pub slice_bytes: u16,
    /// The hash of the whole content.
    pub hash: ContentHash,
    /// The sender's name for it.
    pub label: Box<str>,
}

impl Offer {
    /// How many slices the chunk has; at least one, of no bytes for an empty chunk.
    pub(crate) fn slices(&self) -> u32 {
        // At most 2^40 bytes in slices of at least 512: below 2^32.
        self.size.div_ceil(u64::from(self.slice_bytes)).max(1) as u32
    }

    /// The place of a slice in the chunk.
    pub(crate) fn slice(&self, index: u32) -> core::ops::Range<u64> {
        let start = u64::from(index) * u64::from(self.slice_bytes);
        start..(start + u64::from(self.slice_bytes)).min(self.size)
    }
}

/// Why a chunk is refused, or given up. The numbers are the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The receiver has no room for a chunk of this size.
    TooLarge,
    /// The receiving application doesn't want it.
    Cancelled,
    /// The received content is not the offered one.
    Damaged,
    /// The receiver could not store it.
    Storage,
    /// There is no room for it now where the receiver stores chunks.
    NoRoom,
}

impl Rejection {
    pub(crate) fn number(self) -> u8 {
        match self {
            Rejection::TooLarge => 1,
            Rejection::Cancelled => 2,
            Rejection::Damaged => 3,
            Rejection::Storage => 4,
            Rejection::NoRoom => 5,
        }
    }

    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Rejection::TooLarge,
            3 => Rejection::Damaged,
            4 => Rejection::Storage,
            5 => Rejection::NoRoom,
            _ => Rejection::Cancelled,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::TooLarge => {
                "the receiver takes no chunk of this size: give it more chunk_memory, or a chunk_directory; a server has \
                 neither unless told"
            }
            Rejection::Cancelled => "the receiver cancelled it",
            Rejection::Damaged => "what arrived is not what was offered: its hash differs",
            Rejection::Storage => "the receiver could not store it",
            Rejection::NoRoom => "the receiver's directory for chunks is full",
        })
    }
}

/// A receiver's word on a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is accepted; these runs of slices are here: (first, count), ascending. While it is paused no more should be
    /// sent.
    Accepted {
        have: Vec<(u32, u32)>,
        paused: bool,
    },
    /// It is here, complete and verified.
    Complete,
    Rejected(Rejection),
}

/// An item in an entry of a chunk channel. The bytes of slices are in the packet's arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Offer(Offer),
    Slice { id: u16, index: u32, bytes: core::ops::Range<usize> },
    Answer { id: u16, verdict: Verdict },
    Withdraw { id: u16 },
}

/// The chunk items in a packet, for when its outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    Offer { id: u16 },
    Slice { id: u16, index: u32 },
    Answer { id: u16, last: bool },
    Withdraw { id: u16 },
}

/// Why a chunk failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkFailure {
    /// The receiver refused it.
    Rejected(Rejection),
    /// This side's application cancelled it.
    Cancelled,
    /// The sender cancelled it, or couldn't read it any more.
    Withdrawn,
    /// This side could not store it, or could not read it any more.
    Storage(StorageError),
    /// The connection ended first.
    Disconnected,
}

impl fmt::Display for ChunkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkFailure::Rejected(rejection) => rejection.fmt(f),
            ChunkFailure::Cancelled => f.write_str("it was cancelled"),
            ChunkFailure::Withdrawn => f.write_str("the sender withdrew it"),
            ChunkFailure::Storage(error) => error.fmt(f),
            ChunkFailure::Disconnected => f.write_str("the connection ended before it was through"),
        }
    }
}

/// Something happened to a chunk.
#[derive(Debug)]
pub enum ChunkEvent {
    /// The peer offers a chunk: to be answered by [`Connection::accept_chunk`](super::Connection::accept_chunk) or
    /// [`Connection::reject_chunk`](super::Connection::reject_chunk), sooner or later. It is offered again if it was
    /// accepted as complete and the content turned out to be different.
    Offered(Offer),
    /// One of ours is at the peer, verified.
    Sent { number: u64 },
    /// One of ours is not going to be.
    NotSent { number: u64, failure: ChunkFailure },
    /// A chunk of the peer's is here, verified.
    Received { offer: Offer, stored: Stored },
    /// One of the peer's is not going to be.
    NotReceived {
        /// The offer of the failed chunk.
        offer: Offer,
        failure: ChunkFailure,
    },
}

/// Why a chunk can't be queued. Nothing was queued then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// The queue of chunks is full.
    Full,
    /// The chunk is too large.
    TooLarge { bytes: u64 },
    /// The chunk is too large to go out at once.
    Burst { bytes: u64 },
    /// The label is too long.
    Label {
        /// Its bytes in UTF-8.
        bytes: usize,
    },
    /// The protocol has no channel for chunks.
    NoChannel,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkError::Full => {
                write!(
                    f,
                    "{MAX_QUEUED_CHUNKS} chunks wait to be sent, which is the maximum: send more when some are over"
                )
            }
            ChunkError::TooLarge { bytes } => {
                write!(f, "the chunk must be at most {MAX_CHUNK_BYTES} bytes, not {bytes}")
            }
            ChunkError::Burst { bytes } => {
                write!(
                    f,
                    "a chunk with burst must be at most {MAX_BURST_CHUNK_BYTES} bytes, not {bytes}: more would flood the \
                     queues on its way and hold up all other traffic"
                )
            }
            ChunkError::Label { bytes } => {
                write!(f, "label must be at most {MAX_LABEL_BYTES} bytes in UTF-8, not {bytes}")
            }
            ChunkError::NoChannel => {
                f.write_str("the protocol has no channel of chunks: add tickwire.chunks() to its channels")
            }
        }
    }
}

impl core::error::Error for ChunkError {}

/// How far a chunk is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Bytes of the chunk.
    pub size: u64,
    /// Bytes received: on the sending side, known to be received.
    pub bytes: u64,
    /// Slices of the chunk.
    pub slices: u32,
    /// How many slices were received.
    pub slices_done: u32,
    /// Bytes per second in the recent past.
    pub rate: f64,
    /// This side paused it.
    pub paused: bool,
    /// The receiver paused it: known on the sending side.
    pub paused_by_peer: bool,
}

impl Progress {
    /// The remaining time at the recent rate; None before there is one, and while the chunk is paused.
    pub fn time_left(&self) -> Option<Duration> {
        if self.paused || self.paused_by_peer {
            return None;
        }
        let seconds = (self.size - self.bytes) as f64 / self.rate;
        // Bounded by a year.
        (self.rate > 0.0).then(|| Duration::from_secs_f64(seconds.min(3.2e7)))
    }
}

counters! {
    /// Counts of chunks, and of dropped items of the peer's.
    pub struct ChunkCounters {
        /// Slices sent, each counted once.
        slices_sent,
        slices_resent,
        /// Bytes of slices sent, each time they were sent.
        bytes_sent,
        /// Slices received, each counted once.
        slices_received,
        slice_duplicates,
        /// Slices of chunks that are not open: unknown, over, or not accepted yet.
        slices_unexpected,
        /// Slices whose place or length doesn't fit the chunk.
        slices_invalid,
        /// Offers out of turn, or that contradict themselves.
        offers_invalid,
        /// Packets not taken, and not acked, because offers and withdrawals came too fast.
        offers_too_fast,
        /// Chunks that were here before they were offered, and were not sent.
        chunks_reused,
        /// Answers for chunks that were never offered, or with slices that these don't have.
        answers_invalid,
    }
}

/// A recent rate: amounts from a second ago count 1 / e.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    bytes: f64,
    seconds: f64,
    at: Option<Instant>,
}

impl Rate {
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        let past = (now - self.at.replace(now).unwrap_or(now)).as_secs_f64();
        let keep = decay(past);
        self.bytes = self.bytes * keep + bytes as f64;
        self.seconds = self.seconds * keep + past;
    }

    // Bytes per second.
    pub(crate) fn per_second(&self, now: Instant) -> f64 {
        let past = (now - self.at.unwrap_or(now)).as_secs_f64();
        let keep = decay(past);
        let seconds = self.seconds * keep + past;
        if seconds > 0.0 { self.bytes * keep / seconds } else { 0.0 }
    }
}

/// The chunks of one connection, both directions.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Bytes of our slices.
    slice_bytes: u16,
    /// In the order of their numbers; the first ones are open.
    outgoing: VecDeque<Outgoing>,
    /// The id of the chunk that is opened next.
    next_id: u16,
    /// The number of the chunk that is queued next.
    next_number: u64,
    /// In the order of their ids.
    incoming: VecDeque<Incoming>,
    /// One past the newest id the peer has offered.
    next_incoming: u16,
    /// The id of the chunk that is the application's next.
    next_release: u16,
    read_back: ReadBack,
    offer_pace: OfferPace,
    events: VecDeque<ChunkEvent>,
    counters: ChunkCounters,
}

/// The chunk items selected for a packet, with the bytes of the slices.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) items: Vec<Item>,
    pub(crate) carried: Vec<Carried>,
    pub(crate) arena: Vec<u8>,
}

impl Selection {
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.carried.clear();
        self.arena.clear();
    }
}

impl Chunks {
    /// No chunks yet; each slice of ours is to fit a packet of `packet_bytes` at most.
    pub(crate) fn new(packet_bytes: usize) -> Self {
        let slice = packet_bytes.saturating_sub(SLICE_PACKET_OVERHEAD).clamp(512, SLICE_BYTES);
        Chunks { slice_bytes: slice as u16, ..Chunks::default() }
    }

    /// Bytes of our slices.
    pub(crate) fn slice_bytes(&self) -> u16 {
        self.slice_bytes
    }

    /// Queues a chunk; its number names it from now on.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
    ) -> Result<u64, ChunkError> {
        let size = source.size();
        if size > MAX_CHUNK_BYTES {
            return Err(ChunkError::TooLarge { bytes: size });
        }
        if label.len() > MAX_LABEL_BYTES {
            return Err(ChunkError::Label { bytes: label.len() });
        }
        if self.outgoing.len() >= MAX_QUEUED_CHUNKS {
            return Err(ChunkError::Full);
        }
        let number = self.next_number;
        self.next_number += 1;
        let offer = Offer { id: 0, size, slice_bytes: self.slice_bytes, hash, label: label.into() };
        self.outgoing.push_back(Outgoing::new(now, number, offer, source));
        self.open_next();
        Ok(number)
    }

    /// Gives ids to the chunks at the front of the queue, as many as the standard allows to be open.
    fn open_next(&mut self) {
        let oldest = self.outgoing.front().and_then(Outgoing::id).unwrap_or(self.next_id);
        for outgoing in self.outgoing.iter_mut().filter(|outgoing| outgoing.id().is_none()) {
            if self.next_id.wrapping_sub(oldest) >= MAX_OPEN {
                return;
            }
            outgoing.open(self.next_id);
            self.next_id = self.next_id.wrapping_add(1);
        }
    }

    /// Ends a chunk of ours; false when it is over already.
    pub fn cancel(&mut self, number: u64) -> bool {
        self.fail(number, ChunkFailure::Cancelled)
    }

    fn fail(&mut self, number: u64, failure: ChunkFailure) -> bool {
        let Some(at) = self.outgoing.iter().position(|o| o.number() == number && !o.is_over()) else {
            return false;
        };
        self.events.push_back(ChunkEvent::NotSent { number, failure });
        if self.outgoing[at].id().is_some() {
            // The peer must hear of it before the place is free.
            self.outgoing[at].withdraw();
        } else {
            self.outgoing.remove(at);
        }
        true
    }

    /// Sends no slices of an outgoing chunk before the peer has said which it has.
    pub fn ask_first(&mut self, number: u64) {
        if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.number() == number) {
            outgoing.ask_first();
        }
    }

    /// Pauses or resumes an outgoing chunk; false if it is over.
    pub fn pause(&mut self, number: u64, paused: bool) -> bool {
        let outgoing = self.outgoing.iter_mut().find(|o| o.number() == number && !o.is_over());
        outgoing.map(|outgoing| outgoing.pause(paused)).is_some()
    }

    /// Asks the peer for no more slices of its chunk, or for the rest; false when it is over.
    pub fn pause_incoming(&mut self, id: u16, paused: bool) -> bool {
        let incoming = self.incoming.iter_mut().find(|i| i.offer().id == id && i.is_open());
        incoming.map(|incoming| incoming.pause(paused)).is_some()
    }

    /// Whether all chunks that the application gets before this one are known. A chunk that takes its place ahead of
    /// them could hold the room they need, and isn't handed over before they are.
    pub(crate) fn is_in_line(&self, id: u16) -> bool {
        let before = id.wrapping_sub(self.next_release);
        let known = self.incoming.iter().filter(|i| i.offer().id.wrapping_sub(self.next_release) < before);
        known.count() == usize::from(before)
    }

    /// Accepts a chunk of the peer into this place; false if it is over already.
    pub fn accept(&mut self, id: u16, assembly: Assembly) -> bool {
        self.incoming.iter_mut().find(|i| i.offer().id == id).is_some_and(|i| i.accept(assembly))
    }

    /// Ends a chunk of the peer; false when it is over already.
    pub fn reject(&mut self, id: u16, rejection: Rejection) -> bool {
        let failure = match rejection {
            Rejection::Cancelled => ChunkFailure::Cancelled,
            rejection => ChunkFailure::Rejected(rejection),
        };
        let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer().id == id) else { return false };
        incoming.reject(rejection, failure, &mut self.events)
    }

    pub fn poll_event(&mut self) -> Option<ChunkEvent> {
        self.events.pop_front()
    }

    /// The progress of an outgoing chunk; None if it is over.
    pub fn progress(&self, now: Instant, number: u64) -> Option<Progress> {
        let outgoing = self.outgoing.iter().find(|o| o.number() == number && !o.is_over())?;
        Some(outgoing.progress(now))
    }

    /// The peer's chunks that are under way.
    pub fn incoming(&self, now: Instant) -> impl Iterator<Item = (&Offer, Progress)> {
        self.incoming.iter().filter(|i| i.is_open()).map(move |i| (i.offer(), i.progress(now)))
    }

    /// Ends everything, because the connection is over. Returns the assemblies that another connection may resume.
    pub fn finish(&mut self) -> Vec<Assembly> {
        for outgoing in self.outgoing.drain(..).filter(|outgoing| !outgoing.is_over()) {
            let number = outgoing.number();
            self.events.push_back(ChunkEvent::NotSent { number, failure: ChunkFailure::Disconnected });
        }
        let mut partial = Vec::new();
        self.incoming
            .make_contiguous()
            .sort_by_key(|incoming| distance(incoming.offer().id, self.next_release));
        for mut incoming in self.incoming.drain(..) {
            incoming.release(&mut self.events);
            if !incoming.is_open() {
                continue;
            }
            let (offer, assembly) = incoming.into_parts();
            partial.extend(assembly);
            self.events.push_back(ChunkEvent::NotReceived { offer, failure: ChunkFailure::Disconnected });
        }
        partial
    }

    pub fn counters(&self) -> ChunkCounters {
        self.counters
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// Verifies received slices, as far as the elapsed time and the received bytes allow.
    pub(crate) fn update(&mut self, now: Instant) {
        self.read_back.refill(now);
        for incoming in &mut self.incoming {
            incoming.update(&mut self.read_back.bytes, &mut self.counters, &mut self.events);
        }
        self.release();
    }

    /// Hands over complete chunks, in order.
    fn release(&mut self) {
        let over = |incoming: &&mut Incoming, id| incoming.offer().id == id && !incoming.is_open();
        while let Some(next) = self.incoming.iter_mut().find(|i| over(i, self.next_release)) {
            next.release(&mut self.events);
            self.next_release = self.next_release.wrapping_add(1);
        }
    }

    /// Selects all chunk items other than slices that a packet must carry now; false if there are none.
    ///
    /// The packet must ack every packet received: an acceptance lists the slices that were kept, and a later packet
    /// must not ack one that wasn't.
    pub(crate) fn select_control(
        &mut self,
        now: Instant,
        probe_after: Duration,
        selection: &mut Selection,
    ) -> bool {
        self.incoming.iter_mut().for_each(|incoming| incoming.select_answer(selection));
        self.outgoing.iter_mut().for_each(|outgoing| outgoing.select_control(now, probe_after, selection));
        !selection.items.is_empty()
    }

    /// Selects a slice for a packet with `bits_left`; false if there is none.
    pub(crate) fn select_slice(&mut self, now: Instant, bits_left: usize, selection: &mut Selection) -> bool {
        loop {
            let counters = &mut self.counters;
            let mut slices = self.outgoing.iter_mut();
            match slices.find_map(|outgoing| outgoing.select_slice(now, bits_left, selection, counters)) {
                None => return false,
                Some(Ok(())) => return true,
                Some(Err((number, error))) => drop(self.fail(number, ChunkFailure::Storage(error))),
            }
        }
    }

    /// Whether there are no chunks, and were none recently.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Whether [`Chunks::select_slice`] would find one.
    pub(crate) fn has_slices(&self, now: Instant) -> bool {
        self.next_slice_at() <= now
    }

    /// When the next slice is due, unless something is lost earlier.
    pub(crate) fn next_slice_at(&self) -> Instant {
        self.outgoing.iter().map(Outgoing::next_slice_at).min().unwrap_or(Instant::NEVER)
    }

    /// When [`Chunks::select_control`] finds something.
    pub(crate) fn next_deadline(&self, probe_after: Duration) -> Instant {
        let answers = self.incoming.iter().any(Incoming::answer_due);
        let busy = self.incoming.iter().any(Incoming::is_verifying);
        if answers || busy {
            return Instant::ZERO;
        }
        self.outgoing.iter().map(|o| o.next_deadline(probe_after)).min().unwrap_or(Instant::NEVER)
    }

    // --- receiving ---------------------------------------------------------------------------------------

    /// Whether a packet's chunk items may be applied now: see [`OfferPace`]. Repetitions cost nothing.
    pub(crate) fn affords(&mut self, now: Instant, items: &[Item]) -> bool {
        let find = |id| self.incoming.iter().find(|incoming| incoming.offer().id == id);
        let cost = items.iter().map(|item| match item {
            Item::Offer(offer) if find(offer.id).is_none() => OfferPace::cost(offer),
            Item::Withdraw { id } if find(*id).is_none_or(Incoming::is_open) => 1,
            _ => 0,
        });
        let cost = cost.sum();
        let affords = cost == 0 || self.offer_pace.spend(now, cost);
        self.counters.offers_too_fast += u64::from(!affords);
        affords
    }

    /// Applies a chunk item of a peer's packet. `known` is the packet's number on this side, which never repeats, and
    /// the newest packet of ours that the peer knew.
    pub(crate) fn handle(&mut self, now: Instant, item: Item, arena: &[u8], known: u64, arrival: u64) {
        match item {
            Item::Offer(offer) => self.handle_offer(now, offer),
            Item::Slice { id, index, bytes } => {
                let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer().id == id) else {
                    self.counters.slices_unexpected += 1;
                    return;
                };
                self.read_back.pay(bytes.len());
                incoming.handle_slice(now, index, &arena[bytes], &mut self.counters, &mut self.events);
            }
            Item::Answer { id, verdict } => self.handle_answer(now, id, &verdict, known, arrival),
            Item::Withdraw { id } => {
                if self.make_room_for(id) {
                    // Withdrawn before it was offered: the peer still waits for the answer.
                    let nothing = Offer {
                        id,
                        size: 0,
                        slice_bytes: SLICE_BYTES as u16,
                        hash: [0; 32],
                        label: "".into(),
                    };
                    self.incoming.push_back(Incoming::withdrawn(nothing));
                } else if let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer().id == id) {
                    incoming.reject(Rejection::Cancelled, ChunkFailure::Withdrawn, &mut self.events);
                }
            }
        }
    }

    fn handle_offer(&mut self, now: Instant, offer: Offer) {
        let known = self.incoming.iter().find(|incoming| incoming.offer().id == offer.id);
        if known.is_some() {
            // Repeated, which is allowed.
            return;
        }
        if !self.make_room_for(offer.id) {
            self.counters.offers_invalid += 1;
            return;
        }
        self.events.push_back(ChunkEvent::Offered(offer.clone()));
        self.incoming.push_back(Incoming::new(now, offer));
    }

    /// Whether `id` may be new now. Ids that must be over by then are forgotten.
    fn make_room_for(&mut self, id: u16) -> bool {
        let ahead = distance(id, self.next_incoming);
        // Offers may overtake each other.
        let gap = -i32::from(MAX_OPEN)..i32::from(MAX_OPEN);
        if !gap.contains(&ahead) || self.incoming.iter().any(|i| i.offer().id == id) {
            return false;
        }
        // One that ended in this packet has its turn first: those after it wait for that.
        self.release();
        let done = |incoming: &Incoming| {
            let other = incoming.offer().id;
            distance(id, other) >= i32::from(MAX_OPEN) && distance(other, self.next_release) < 0
        };
        self.incoming.retain(|incoming| !done(incoming));
        if self.incoming.len() >= 2 * usize::from(MAX_OPEN) {
            return false;
        }
        if ahead >= 0 {
            self.next_incoming = id.wrapping_add(1);
        }
        true
    }

    fn handle_answer(&mut self, now: Instant, id: u16, verdict: &Verdict, known: u64, arrival: u64) {
        let Some(at) = self.outgoing.iter().position(|outgoing| outgoing.id() == Some(id)) else {
            // Repeated after it was heard, which is allowed.
            self.counters.answers_invalid += u64::from(distance(id, self.next_id) >= 0);
            return;
        };
        let number = self.outgoing[at].number();
        let over = self.outgoing[at].is_over();
        match verdict {
            Verdict::Accepted { have, paused } => {
                if !self.outgoing[at].handle_accepted(now, have, *paused, known, arrival) {
                    self.counters.answers_invalid += 1;
                }
                return;
            }
            Verdict::Complete if over => {}
            Verdict::Complete => self.events.push_back(ChunkEvent::Sent { number }),
            Verdict::Rejected(_) if over => {}
            Verdict::Rejected(rejection) => {
                let failure = ChunkFailure::Rejected(*rejection);
                self.events.push_back(ChunkEvent::NotSent { number, failure });
            }
        }
        self.outgoing.remove(at);
        self.open_next();
    }

    /// A packet that carried this was acked.
    pub(crate) fn handle_ack(&mut self, now: Instant, sent: u64, carried: Carried) {
        match carried {
            Carried::Answer { .. } => {}
            Carried::Offer { id } | Carried::Slice { id, .. } | Carried::Withdraw { id } => {
                if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.id() == Some(id)) {
                    outgoing.handle_ack(now, sent, carried);
                }
            }
        }
    }

    /// A packet that carried this is lost. It may yet be acked.
    pub(crate) fn handle_lost(&mut self, carried: Carried) {
        match carried {
            Carried::Answer { id, last } => {
                if let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer().id == id) {
                    incoming.handle_answer_lost(last);
                }
            }
            Carried::Offer { id } | Carried::Slice { id, .. } | Carried::Withdraw { id } => {
                if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.id() == Some(id)) {
                    outgoing.handle_lost(carried);
                }
            }
        }
    }
}
