//! One chunk of ours: queued, offered, sent slice by slice, sent again where packets were lost.

use std::collections::VecDeque;

use super::items::{ChunkContent, Item, Offer, SLICE_BYTES, SLICE_LENGTH_BITS, Selection};
use super::progress::{ChunkCounters, Progress, Rate};
use super::storage::{Source, StorageError};
use crate::store::BitSet;
use crate::time::{Duration, Instant};

/// Slices sent before the receiver has answered: 256 KiB, as many as the article would send at once.
const UNANSWERED_SLICES: u32 = (256 * 1024usize).div_ceil(SLICE_BYTES) as u32;

/// The offer is repeated after this many slices while it may be lost.
const OFFER_AGAIN: u32 = 16;

/// How long after a resent slice it is retransmitted again, if there is nothing else to send: otherwise each loss of
/// the last slices would cost a round trip.
const TAIL_RETRANSMIT_AFTER: Duration = Duration::from_millis(4);

/// The limit of tail retransmits: one for this many resent slices, and one for this many slices in all.
const RESENT_PER_TAIL_RETRANSMIT: u32 = 5;
const SLICES_PER_TAIL_RETRANSMIT: u32 = 72;

/// A chunk of ours.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) number: u64,
    offer: Offer,
    /// It has an id.
    opened: bool,
    source: Box<dyn Source>,
    offer_due: bool,
    /// The peer has answered the offer.
    accepted: bool,
    /// Packets up to this one may have arrived before the chunk was accepted, in which case their slices were not
    /// kept: their acks may come after the answer.
    doubted_until: Option<u64>,
    /// The chunk is over, which was reported, and the peer must hear of it (again, if due).
    pub(super) withdrawn: bool,
    withdrawal_due: bool,
    /// No slices go: this side's application wants it so.
    pub(super) paused: bool,
    /// Paused by the peer, as of the newest packet with an answer.
    paused_by_peer: bool,
    answered_in: u64,
    /// An acceptance has listed the peer's slices. After one that pauses, the peer may yet find that it doesn't have
    /// them.
    settled: bool,
    /// Sends no slices before the peer's answer.
    pub(super) asks_first: bool,
    /// Slices the peer has.
    acked: BitSet,
    bytes: u64,
    /// Slices from here on were never sent.
    fresh: u32,
    /// Slices to resend, in the order in which they were lost; `waiting` marks them.
    lost: VecDeque<u32>,
    waiting: BitSet,
    /// Slices that were recently sent again, and when.
    resent: VecDeque<(Instant, u32)>,
    resent_count: u32,
    /// Slices sent again at the tail.
    tail_retransmits: u32,
    last_sent: Instant,
    rate: Rate,
}

impl Outgoing {
    pub(super) fn new(now: Instant, number: u64, offer: Offer, source: Box<dyn Source>) -> Self {
        let slices = offer.slices() as usize;
        Outgoing {
            number,
            offer,
            opened: false,
            source,
            offer_due: false,
            accepted: false,
            doubted_until: None,
            withdrawn: false,
            withdrawal_due: false,
            paused: false,
            paused_by_peer: false,
            answered_in: 0,
            settled: false,
            asks_first: false,
            acked: BitSet::new(slices),
            bytes: 0,
            fresh: 0,
            lost: VecDeque::new(),
            waiting: BitSet::new(slices),
            resent: VecDeque::new(),
            resent_count: 0,
            tail_retransmits: 0,
            last_sent: now,
            rate: Rate::default(),
        }
    }

    /// Its id, once it has one.
    pub(super) fn id(&self) -> Option<u16> {
        self.opened.then_some(self.offer.id)
    }

    pub(super) fn open(&mut self, id: u16) {
        self.offer.id = id;
        self.opened = true;
        self.offer_due = true;
    }

    pub(super) fn withdraw(&mut self) {
        self.withdrawn = true;
        self.withdrawal_due = true;
    }

    fn is_paused(&self) -> bool {
        self.paused || self.paused_by_peer
    }

    pub(super) fn progress(&self, now: Instant) -> Progress {
        // Before the answer, acked slices may not have been kept.
        let (bytes, slices_done) = if self.accepted { (self.bytes, self.acked.len() as u32) } else { (0, 0) };
        let Offer { size, .. } = self.offer;
        let Outgoing { paused, paused_by_peer, .. } = *self;
        let (slices, rate) = (self.offer.slices(), self.rate.per_second(now));
        Progress { size, bytes, slices, slices_done, rate, paused, paused_by_peer }
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// Selects the items that must be sent now, other than slices.
    pub(super) fn select_control(&mut self, now: Instant, probe_after: Duration, selection: &mut Selection) {
        let id = self.offer.id;
        if core::mem::take(&mut self.withdrawal_due) {
            selection.items.push(Item::Withdraw { id });
            selection.carried.push(ChunkContent::Withdraw { id });
        }
        if self.offer_due || self.next_deadline(probe_after) <= now {
            self.offer_due = false;
            self.last_sent = now;
            selection.items.push(Item::Offer(self.offer.clone()));
            selection.carried.push(ChunkContent::Offer { id });
        }
    }

    /// When [`Outgoing::select_control`] has something to send. With nothing left to send, the offer is repeated
    /// until the outcome of the last slices is known: acks of later packets show which of them are lost.
    pub(super) fn next_deadline(&self, probe_after: Duration) -> Instant {
        if self.withdrawal_due || (self.offer_due && !self.withdrawn) {
            return Instant::ZERO;
        }
        // A paused chunk has nothing to find out: other packets show what is lost.
        let open = self.opened && !self.withdrawn && !self.is_paused();
        let idle = open && !self.has_due_slices() && !self.acked.is_full();
        if idle { self.last_sent + probe_after } else { Instant::NEVER }
    }

    /// When there is a slice to send.
    pub(super) fn next_slice_at(&self) -> Instant {
        if self.has_due_slices() {
            return Instant::ZERO;
        }
        self.next_tail_retransmit().map_or(Instant::NEVER, |(at, _)| at)
    }

    /// The next slice to be retransmitted at the tail, and when.
    fn next_tail_retransmit(&self) -> Option<(Instant, u32)> {
        let allowed =
            self.resent_count / RESENT_PER_TAIL_RETRANSMIT + self.offer.slices() / SLICES_PER_TAIL_RETRANSMIT;
        let open = self.offer.slices() - self.acked.len() as u32;
        let next = self.resent.iter().find(|(_, index)| !self.acked.contains(*index as usize));
        let next =
            next.filter(|_| !self.withdrawn && !self.is_paused() && self.tail_retransmits + open <= allowed);
        next.map(|(at, index)| (*at + TAIL_RETRANSMIT_AFTER, *index))
    }

    /// Whether there is a slice that was never sent, or lost.
    fn has_due_slices(&self) -> bool {
        let fresh_bound = match self.accepted {
            true => u32::MAX,
            false if self.asks_first => 0,
            false => UNANSWERED_SLICES,
        };
        let fresh = self.fresh < self.offer.slices().min(fresh_bound);
        self.opened && !self.withdrawn && !self.is_paused() && (fresh || !self.lost.is_empty())
    }

    /// Selects the next slice, if there is one and it fits. Fails if the source does.
    pub(super) fn select_slice(
        &mut self,
        now: Instant,
        bits_left: usize,
        selection: &mut Selection,
        counters: &mut ChunkCounters,
    ) -> Option<Result<(), (u64, StorageError)>> {
        if self.next_slice_at() > now || slice_bits(usize::from(self.offer.slice_bytes)) > bits_left {
            return None;
        }
        let (index, again) = self.next_slice(now)?;
        let place = self.offer.slice(index);
        let start = selection.arena.len();
        selection.arena.resize(start + (place.end - place.start) as usize, 0);
        if let Err(error) = self.source.read_at(place.start, &mut selection.arena[start..]) {
            selection.arena.truncate(start);
            return Some(Err((self.number, error)));
        }
        let bytes = start..selection.arena.len();
        *(if again { &mut counters.slices_resent } else { &mut counters.slices_sent }) += 1;
        counters.bytes_sent += bytes.len() as u64;
        let id = self.offer.id;
        selection.items.push(Item::Slice { id, index, bytes });
        selection.carried.push(ChunkContent::Slice { id, index });
        self.last_sent = now;
        self.offer_due |= !self.accepted && self.fresh.is_multiple_of(OFFER_AGAIN);
        Some(Ok(()))
    }

    /// Which slice goes next, and whether it was sent before.
    fn next_slice(&mut self, now: Instant) -> Option<(u32, bool)> {
        while let Some(index) = self.lost.pop_front() {
            self.waiting.remove(index as usize);
            if !self.acked.contains(index as usize) {
                self.resent.push_back((now, index));
                self.resent_count += 1;
                return Some((index, true));
            }
        }
        while self.has_due_slices() {
            let index = self.fresh;
            self.fresh += 1;
            if !self.acked.contains(index as usize) {
                return Some((index, false));
            }
        }
        let (_, index) = self.next_tail_retransmit().filter(|(at, _)| *at <= now)?;
        while self.resent.pop_front().is_some_and(|(_, other)| other != index) {}
        self.tail_retransmits += 1;
        Some((index, true))
    }

    // --- what became of it -------------------------------------------------------------------------------

    /// The receiver accepts the chunk and has these runs of slices; false if the chunk has no such slices. `known` is
    /// the newest packet that had arrived at the receiver. Answers may overtake each other: for pauses the newest
    /// packet counts.
    pub(super) fn handle_accepted(
        &mut self,
        now: Instant,
        have: &[(u32, u32)],
        paused: bool,
        known: u64,
        arrival: u64,
    ) -> bool {
        let slices = u64::from(self.offer.slices());
        let mut end = 0u64;
        for &(first, count) in have {
            if u64::from(first) < end {
                return false;
            }
            end = u64::from(first) + u64::from(count);
        }
        if end > slices {
            return false;
        }
        if arrival < self.answered_in {
            return true;
        }
        (self.paused_by_peer, self.answered_in) = (paused, arrival);
        let is_news = !self.accepted || !(paused || self.settled);
        self.accepted = true;
        self.settled |= !paused;
        if !is_news {
            return true;
        }
        self.doubted_until = Some(known);
        // The answer decides: slices that arrived before the offer or before the chunk was accepted were acked with
        // their packets and yet not kept.
        let mut there = BitSet::new(slices as usize);
        for &(first, count) in have {
            (first..first + count).for_each(|index| {
                there.insert(index as usize);
            });
        }
        let said = if have.len() == super::MAX_RUNS { end as u32 } else { self.fresh };
        for index in 0..self.fresh {
            let kept = there.contains(index as usize);
            if self.acked.contains(index as usize) && !kept {
                if index >= said {
                    there.insert(index as usize);
                } else {
                    self.want(index);
                }
            }
        }
        let known: u64 = there.iter().map(|index| self.length(index as u32)).sum();
        self.rate.add(now, 0);
        self.bytes = known;
        self.acked = there;
        true
    }

    fn length(&self, index: u32) -> u64 {
        let place = self.offer.slice(index);
        place.end - place.start
    }

    fn want(&mut self, index: u32) {
        if self.waiting.insert(index as usize) {
            self.lost.push_back(index);
        }
    }

    pub(super) fn handle_ack(&mut self, now: Instant, sent: u64, carried: ChunkContent) {
        if let ChunkContent::Slice { index, .. } = carried
            && self.accepted
            && self.doubted_until.is_some_and(|until| sent <= until)
        {
            if !self.acked.contains(index as usize) {
                self.want(index);
            }
        } else if let ChunkContent::Slice { index, .. } = carried
            && self.acked.insert(index as usize)
        {
            let bytes = self.length(index);
            self.bytes += bytes;
            self.rate.add(now, bytes);
            let there = &self.acked;
            while self.resent.front().is_some_and(|(_, index)| there.contains(*index as usize)) {
                self.resent.pop_front();
            }
        }
    }

    pub(super) fn handle_lost(&mut self, carried: ChunkContent) {
        match carried {
            ChunkContent::Slice { index, .. } if !self.acked.contains(index as usize) => self.want(index),
            ChunkContent::Offer { .. } => self.offer_due |= !self.accepted,
            ChunkContent::Withdraw { .. } => self.withdrawal_due = true,
            _ => {}
        }
    }
}

/// Bits of a slice of this many bytes with its item, at most.
fn slice_bits(bytes: usize) -> usize {
    2 + 16 + 32 + SLICE_LENGTH_BITS as usize + 7 + bytes * 8
}
