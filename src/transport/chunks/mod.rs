//! Chunks beside game traffic: cut into slices that fill packets, in both directions at once.
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
mod events;
mod incoming;
mod items;
mod offer_pace;
mod outgoing;
mod progress;
mod storage;

pub use assembly::Assembly;
#[cfg(test)]
pub(crate) use assembly::Slice;
pub use events::{ChunkError, ChunkEvent, ChunkFailure};
pub(super) use items::MAX_BURST_CHUNK_BYTES;
use items::SLICE_PACKET_OVERHEAD;
pub(crate) use items::{ChunkContent, Item, MAX_OPEN, MAX_RUNS, SLICE_LENGTH_BITS, Selection, Verdict};
pub use items::{
    ContentHash, MAX_CHUNK_BYTES, MAX_LABEL_BYTES, MAX_QUEUED_CHUNKS, Offer, Rejection, SLICE_BYTES,
};
pub use progress::{ChunkCounters, Progress};
pub use storage::{BytesSource, MemorySink, Sink, Source, StorageError, Stored};

use core::time::Duration;
use std::collections::VecDeque;

use assembly::ReadBack;
use incoming::Incoming;
use offer_pace::OfferPace;
use outgoing::Outgoing;

use crate::store::sequence::distance;
use crate::time::Instant;

/// The chunks of one connection, both directions.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Bytes of our slices.
    pub(crate) slice_bytes: u16,
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
    pub counters: ChunkCounters,
}

impl Chunks {
    /// No chunks yet; each slice of ours is to fit a packet of `packet_bytes` at most.
    pub(crate) fn new(packet_bytes: usize) -> Self {
        let slice = packet_bytes.saturating_sub(SLICE_PACKET_OVERHEAD).clamp(512, SLICE_BYTES);
        Chunks { slice_bytes: slice as u16, ..Chunks::default() }
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
        let Some(at) = self.outgoing.iter().position(|o| o.number == number && !o.withdrawn) else {
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
        if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.number == number) {
            outgoing.asks_first = true;
        }
    }

    /// Pauses or resumes an outgoing chunk; false if it is over.
    pub fn pause(&mut self, number: u64, paused: bool) -> bool {
        let outgoing = self.outgoing.iter_mut().find(|o| o.number == number && !o.withdrawn);
        outgoing.map(|outgoing| outgoing.paused = paused).is_some()
    }

    /// Asks the peer for no more slices of its chunk, or for the rest; false when it is over.
    pub fn pause_incoming(&mut self, id: u16, paused: bool) -> bool {
        let incoming = self.incoming.iter_mut().find(|i| i.offer.id == id && i.is_open());
        incoming.map(|incoming| incoming.pause(paused)).is_some()
    }

    /// Whether all chunks that the application gets before this one are known. A chunk that takes its place ahead of
    /// them could hold the room they need, and isn't handed over before they are.
    pub(crate) fn is_in_line(&self, id: u16) -> bool {
        let before = id.wrapping_sub(self.next_release);
        let known = self.incoming.iter().filter(|i| i.offer.id.wrapping_sub(self.next_release) < before);
        known.count() == usize::from(before)
    }

    /// Accepts a chunk of the peer into this place; false if it is over already.
    pub fn accept(&mut self, id: u16, assembly: Assembly) -> bool {
        self.incoming.iter_mut().find(|i| i.offer.id == id).is_some_and(|i| i.accept(assembly))
    }

    /// Ends a chunk of the peer; false when it is over already.
    pub fn reject(&mut self, id: u16, rejection: Rejection) -> bool {
        let failure = match rejection {
            Rejection::Cancelled => ChunkFailure::Cancelled,
            rejection => ChunkFailure::Rejected(rejection),
        };
        let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer.id == id) else { return false };
        incoming.reject(rejection, failure, &mut self.events)
    }

    pub fn poll_event(&mut self) -> Option<ChunkEvent> {
        self.events.pop_front()
    }

    /// The progress of an outgoing chunk; None if it is over.
    pub fn progress(&self, now: Instant, number: u64) -> Option<Progress> {
        let outgoing = self.outgoing.iter().find(|o| o.number == number && !o.withdrawn)?;
        Some(outgoing.progress(now))
    }

    /// The peer's chunks that are under way.
    pub fn incoming(&self, now: Instant) -> impl Iterator<Item = (&Offer, Progress)> {
        self.incoming.iter().filter(|i| i.is_open()).map(move |i| (&i.offer, i.progress(now)))
    }

    /// Ends everything, because the connection is over. Returns the assemblies that another connection may resume.
    pub fn finish(&mut self) -> Vec<Assembly> {
        for outgoing in self.outgoing.drain(..).filter(|outgoing| !outgoing.withdrawn) {
            let number = outgoing.number;
            self.events.push_back(ChunkEvent::NotSent { number, failure: ChunkFailure::Disconnected });
        }
        let mut partial = Vec::new();
        self.incoming
            .make_contiguous()
            .sort_by_key(|incoming| distance(incoming.offer.id, self.next_release));
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
        let over = |incoming: &&mut Incoming, id| incoming.offer.id == id && !incoming.is_open();
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
        let answers = self.incoming.iter().any(|incoming| incoming.answer_due);
        let busy = self.incoming.iter().any(Incoming::is_verifying);
        if answers || busy {
            return Instant::ZERO;
        }
        self.outgoing.iter().map(|o| o.next_deadline(probe_after)).min().unwrap_or(Instant::NEVER)
    }

    // --- receiving ---------------------------------------------------------------------------------------

    /// Whether a packet's chunk items may be applied now: see [`OfferPace`]. Repetitions cost nothing.
    pub(crate) fn affords(&mut self, now: Instant, items: &[Item]) -> bool {
        let find = |id| self.incoming.iter().find(|incoming| incoming.offer.id == id);
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
                let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer.id == id) else {
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
                } else if let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer.id == id) {
                    incoming.reject(Rejection::Cancelled, ChunkFailure::Withdrawn, &mut self.events);
                }
            }
        }
    }

    fn handle_offer(&mut self, now: Instant, offer: Offer) {
        let known = self.incoming.iter().find(|incoming| incoming.offer.id == offer.id);
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
        if !gap.contains(&ahead) || self.incoming.iter().any(|i| i.offer.id == id) {
            return false;
        }
        // One that ended in this packet has its turn first: those after it wait for that.
        self.release();
        let done = |incoming: &Incoming| {
            let other = incoming.offer.id;
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
        let number = self.outgoing[at].number;
        let over = self.outgoing[at].withdrawn;
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
    pub(crate) fn handle_ack(&mut self, now: Instant, sent: u64, carried: ChunkContent) {
        match carried {
            ChunkContent::Answer { .. } => {}
            ChunkContent::Offer { id } | ChunkContent::Slice { id, .. } | ChunkContent::Withdraw { id } => {
                if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.id() == Some(id)) {
                    outgoing.handle_ack(now, sent, carried);
                }
            }
        }
    }

    /// A packet that carried this is lost. It may yet be acked.
    pub(crate) fn handle_lost(&mut self, carried: ChunkContent) {
        match carried {
            ChunkContent::Answer { id, last } => {
                if let Some(incoming) = self.incoming.iter_mut().find(|i| i.offer.id == id) {
                    incoming.handle_answer_lost(last);
                }
            }
            ChunkContent::Offer { id } | ChunkContent::Slice { id, .. } | ChunkContent::Withdraw { id } => {
                if let Some(outgoing) = self.outgoing.iter_mut().find(|o| o.id() == Some(id)) {
                    outgoing.handle_lost(carried);
                }
            }
        }
    }
}
