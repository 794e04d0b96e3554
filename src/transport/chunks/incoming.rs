//! One chunk of the peer: offered, accepted, stored, verified, answered.

use std::collections::VecDeque;

use super::assembly::{Assembly, Slice};
use super::events::{ChunkEvent, ChunkFailure};
use super::items::{ChunkContent, Item, MAX_RUNS, Offer, Rejection, Selection, Verdict};
use super::progress::{ChunkCounters, Progress, Rate};
use super::storage::Stored;
use crate::time::Instant;

/// A chunk of the peer.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) offer: Offer,
    state: State,
    /// The answer must be sent (again).
    pub(super) answer_due: bool,
    paused: bool,
    rate: Rate,
}

#[derive(Debug)]
enum State {
    /// The application has not answered.
    Offered,
    Storing(Box<Assembly>),
    /// With the content still to be handed to the application, in its turn.
    Over(Verdict, Option<Stored>),
}

impl Incoming {
    pub(super) fn new(now: Instant, offer: Offer) -> Self {
        let mut rate = Rate::default();
        rate.add(now, 0);
        Incoming { offer, state: State::Offered, answer_due: false, paused: false, rate }
    }

    /// A chunk that was withdrawn before it was offered.
    pub(super) fn withdrawn(offer: Offer) -> Self {
        let state = State::Over(Verdict::Rejected(Rejection::Cancelled), None);
        Incoming { offer, state, answer_due: true, paused: false, rate: Rate::default() }
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, State::Over(..))
    }

    pub(super) fn is_verifying(&self) -> bool {
        matches!(&self.state, State::Storing(assembly) if assembly.is_whole())
    }

    pub(super) fn into_parts(self) -> (Offer, Option<Assembly>) {
        match self.state {
            State::Storing(assembly) => (self.offer, Some(*assembly)),
            _ => (self.offer, None),
        }
    }

    pub(super) fn progress(&self, now: Instant) -> Progress {
        let (bytes, slices_done) = match &self.state {
            State::Storing(assembly) => (assembly.bytes(), assembly.slices()),
            _ => (0, 0),
        };
        let Offer { size, .. } = self.offer;
        let (slices, rate) = (self.offer.slices(), self.rate.per_second(now));
        Progress { size, bytes, slices, slices_done, rate, paused: self.paused, paused_by_peer: false }
    }

    /// Slices that arrive meanwhile are kept.
    pub(super) fn pause(&mut self, paused: bool) {
        // Before it is accepted, the acceptance will carry the pause.
        self.answer_due |= core::mem::replace(&mut self.paused, paused) != paused;
    }

    pub(super) fn accept(&mut self, assembly: Assembly) -> bool {
        if !matches!(self.state, State::Offered) || !assembly.is_of(&self.offer) {
            return false;
        }
        self.state = State::Storing(Box::new(assembly));
        self.answer_due = true;
        true
    }

    pub(super) fn reject(
        &mut self,
        rejection: Rejection,
        failure: ChunkFailure,
        events: &mut VecDeque<ChunkEvent>,
    ) -> bool {
        if !self.is_open() {
            return false;
        }
        let over = State::Over(Verdict::Rejected(rejection), None);
        if let State::Storing(assembly) = core::mem::replace(&mut self.state, over) {
            // A complete file from before the offer stays as it was. What others left no room for may be resumed.
            if !assembly.is_kept() && rejection != Rejection::NoRoom {
                assembly.discard();
            }
        }
        self.answer_due = true;
        events.push_back(ChunkEvent::NotReceived { offer: self.offer.clone(), failure });
        true
    }

    pub(super) fn handle_slice(
        &mut self,
        now: Instant,
        index: u32,
        bytes: &[u8],
        counters: &mut ChunkCounters,
        events: &mut VecDeque<ChunkEvent>,
    ) {
        let State::Storing(assembly) = &mut self.state else {
            counters.slices_unexpected += 1;
            return;
        };
        match assembly.handle(&self.offer, index, bytes) {
            Ok(Slice::New) => {
                counters.slices_received += 1;
                self.rate.add(now, bytes.len() as u64);
            }
            Ok(Slice::Duplicate) => counters.slice_duplicates += 1,
            Ok(Slice::Invalid) => counters.slices_invalid += 1,
            Ok(Slice::NoRoom) => {
                let full = Rejection::NoRoom;
                self.reject(full, ChunkFailure::Rejected(full), events);
            }
            Err(error) => {
                self.reject(Rejection::Storage, ChunkFailure::Storage(error), events);
            }
        }
    }

    /// Continues hashing, and ends the chunk once everything is hashed.
    pub(super) fn update(
        &mut self,
        allowed: &mut u64,
        counters: &mut ChunkCounters,
        events: &mut VecDeque<ChunkEvent>,
    ) {
        let State::Storing(assembly) = &mut self.state else { return };
        match assembly.hash_on(allowed) {
            Ok(false) => {}
            Ok(true) => self.verify(counters, events),
            Err(_) if assembly.is_kept() => self.ask_again(events),
            Err(error) => {
                self.reject(Rejection::Storage, ChunkFailure::Storage(error), events);
            }
        }
    }

    /// The kept content is not the offered one: the application must find another place for it.
    fn ask_again(&mut self, events: &mut VecDeque<ChunkEvent>) {
        if let State::Storing(assembly) = core::mem::replace(&mut self.state, State::Offered) {
            assembly.discard();
        }
        events.push_back(ChunkEvent::Offered(self.offer.clone()));
    }

    fn verify(&mut self, counters: &mut ChunkCounters, events: &mut VecDeque<ChunkEvent>) {
        let whole = core::mem::replace(&mut self.state, State::Offered);
        let State::Storing(assembly) = whole else { return };
        let is_kept = assembly.is_kept();
        match assembly.finish() {
            Ok(Some(stored)) => {
                counters.chunks_reused += u64::from(is_kept);
                self.state = State::Over(Verdict::Complete, Some(stored));
                self.answer_due = true;
            }
            Ok(None) | Err(_) if is_kept => self.ask_again(events),
            Ok(None) => {
                let damaged = Rejection::Damaged;
                self.reject(damaged, ChunkFailure::Rejected(damaged), events);
            }
            Err(error) => {
                self.reject(Rejection::Storage, ChunkFailure::Storage(error), events);
            }
        }
    }

    /// Hands the chunk to the application if it is whole.
    pub(super) fn release(&mut self, events: &mut VecDeque<ChunkEvent>) {
        if let State::Over(_, stored) = &mut self.state
            && let Some(stored) = stored.take()
        {
            events.push_back(ChunkEvent::Received { offer: self.offer.clone(), stored });
        }
    }

    pub(super) fn select_answer(&mut self, selection: &mut Selection) {
        if !core::mem::take(&mut self.answer_due) {
            return;
        }
        let verdict = match &self.state {
            State::Offered => return,
            // As of now: the sender's acks and this answer may contradict each other, and the answer decides. Nothing
            // should arrive before it is known whether the kept content is the chunk: otherwise all of it must.
            State::Storing(assembly) if assembly.is_kept() => {
                Verdict::Accepted { have: Vec::new(), paused: true }
            }
            State::Storing(assembly) => {
                Verdict::Accepted { have: assembly.runs(MAX_RUNS), paused: self.paused }
            }
            State::Over(verdict, _) => verdict.clone(),
        };
        let (id, last) = (self.offer.id, !self.is_open());
        selection.items.push(Item::Answer { id, verdict });
        selection.carried.push(ChunkContent::Answer { id, last });
    }

    pub(super) fn handle_answer_lost(&mut self, last: bool) {
        // An acceptance that was overtaken by the end needn't be repeated.
        self.answer_due |= last || self.is_open();
    }
}
