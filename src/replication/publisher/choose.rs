//! In which order a client's due ghosts go out in a tick that may have no room for all: destroys, what the client must know (its
//! creates first) in a share of the budget, then the rest and copies of destroys in flight by priority.
//!
//! A ghost's priority is the ticks since it was sent last (or since the client was to have it), by the weight of its row and how near it is. It is
//! told apart in steps of an eighth: the highest steps go, and of the step that has no room for all, the lowest ids. Who
//! didn't go has a higher priority in the next tick, so each goes at some time, whatever its weight (if it has one above 0).
//!
//! How much fits is an estimate, and other streams' share of the link is unknown. Writing all chosen ghosts by id would
//! always cut off the highest ids; so each packet takes as many of the next ones as it may have room for, and writes
//! these by id. Only if all are expected to fit, and did in the tick before, they go by id without ordering.
//!
//! Promises: one pass over due ghosts; only those that go are put in order.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::table::Table;
use super::averages::Averages;
use super::peer::Peer;
use super::scope::{GhostState, Scope};
use super::urgency::Urgency;

/// Priorities are compared by these bits: the exponent and three of the fraction.
const STEP_SHIFT: u32 = 20;
const STEPS: u16 = 1 << (31 - STEP_SHIFT);

/// Of the budget, what clients must know goes before the rest: what is more than that waits among the others.
const MUST_SHARE: f32 = 0.5;

/// Behind the steps of what needn't be known come those of updates that must, then of creates; the last is for destroys, as no priority
/// has it.
const DESTROYS: u16 = 3 * STEPS - 1;

/// The step of a priority: priorities are positive, so their bit patterns rise with them.
fn step(age: u32, weight: f32) -> u16 {
    let priority = (age + 1) as f32 * weight;
    // The sign is 0, so 11 bits are left.
    if priority > 0.0 { (priority.to_bits() >> STEP_SHIFT) as u16 } else { 0 }
}

/// A ghost that was chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChosenGhost {
    class: u8,
    id: u16,
}

/// A due ghost by its step, then its class and id, the lowest first.
type Candidate = (u16, Reverse<(u8, u16)>, GhostState);

#[derive(Debug, Default)]
pub(super) struct Chooser {
    /// Kept for the next client.
    candidates: Vec<Candidate>,
}

impl Chooser {
    /// Chooses what of a client's due ghosts fits this many bits, and at least one where these are any. `tables`, `weights` and
    /// `must` are by class, the latter two then by row.
    pub(super) fn choose(
        &mut self,
        peer: &mut Peer,
        tick: u32,
        budget: f32,
        tables: &[Table],
        weights: &[Vec<f32>],
        must: &[Vec<u8>],
    ) {
        let Peer { scopes, averages, chosen, next_chosen, sights, .. } = peer;
        chosen.clear();
        *next_chosen = 0;
        let most = scopes.iter().zip(&*averages).map(|(scope, each)| scope.due_count() as f32 * each.max());
        if !peer.was_cut && most.sum::<f32>() <= budget {
            scopes.iter_mut().for_each(|scope| scope.ready_all());
            return;
        }
        scopes.iter_mut().for_each(|scope| scope.ready_none());
        let mut candidates = core::mem::take(&mut self.candidates);
        for (class, scope) in scopes.iter().enumerate() {
            let (table, weights, must) = (&tables[class], &*weights[class], &*must[class]);
            let urgency = Urgency { table, weights, must, sight: sights[class].as_ref() };
            for (id, row, age, state) in scope.each_due(tick) {
                let of = || step(age, urgency.weight(row));
                let at = match state {
                    // The row may be another object's by now.
                    GhostState::Destroying if scope.is_destroy_repeated(id) => step(age, 1.0),
                    GhostState::Destroying => DESTROYS,
                    GhostState::Creating if urgency.is_must(row) => of() + 2 * STEPS,
                    GhostState::Live if urgency.is_must(row) => of() + STEPS,
                    _ => of(),
                };
                // There are at most 256 classes, and ids are below 2^16.
                candidates.push((at, Reverse((class as u8, id as u16)), state));
            }
        }
        let (mut left, mut share) = (budget, budget * MUST_SHARE);
        let mut heap = BinaryHeap::from(candidates);
        while let Some((at, place, state)) = heap.pop().filter(|_| left > 0.0) {
            let Reverse((class, id)) = place;
            let cost = averages[usize::from(class)].of(state);
            if at >= STEPS && at != DESTROYS {
                if share <= 0.0 {
                    heap.push((at % STEPS, place, state));
                    continue;
                }
                share -= cost;
            }
            left -= cost;
            chosen.push(ChosenGhost { class, id });
        }
        self.candidates = heap.into_vec();
        self.candidates.clear();
    }
}

impl Peer {
    /// Makes ready as many of the next chosen ghosts as a packet of this many bits may hold, including those that an
    /// earlier packet had no room for; at least one.
    pub(super) fn make_ready(&mut self, room: usize) {
        let Peer { scopes, averages, chosen, next_chosen, .. } = self;
        let Some(next) = chosen.get(*next_chosen..).filter(|next| !next.is_empty()) else { return };
        let of = |(scope, each): (&Scope, &Averages)| scope.ready_count() as f32 * each.max();
        let mut left = room as f32 - scopes.iter().zip(&*averages).map(of).sum::<f32>();
        for ChosenGhost { class, id } in next {
            if left <= 0.0 {
                break;
            }
            *next_chosen += 1;
            let class = usize::from(*class);
            if let Some(state) = scopes[class].make_ready((*id).into()) {
                left -= averages[class].of(state);
            }
        }
    }

    /// Whether some chosen ghosts had no room.
    pub(super) fn has_left(&self) -> bool {
        self.next_chosen < self.chosen.len() || self.scopes.iter().any(|scope| scope.has_ready())
    }
}
