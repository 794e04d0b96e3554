//! Chooses the order of a client's due ghosts in a tick that may lack room for all: destroys first, then by priority.
//!
//! A ghost's priority is the number of ticks since it was last sent (or since the client was to have it), times the
//! weight of its row. Priorities are compared in steps of an eighth: the highest steps go, and the lowest ids of the
//! step that doesn't fit completely. A ghost that isn't sent has a higher priority in the next tick, so each is sent at
//! some time, whatever its weight (unless that is 0).
//!
//! How much fits is an estimate, and other streams' share of the link is unknown. Writing all chosen ghosts by id would
//! always cut off the highest ids; so each packet takes as many of the next ones as it may have room for, and writes
//! these by id. Only if all are expected to fit, and did in the tick before, they go by id without ordering.
//!
//! Promises: two passes over due ghosts and one over chosen ones, without comparisons.

use super::averages::Averages;
use super::peer::Peer;
use super::scope::{GhostState, Scope};

/// Priorities are compared by these bits: the exponent and three of the fraction.
const STEP_SHIFT: u32 = 20;
const STEPS: usize = 1 << (31 - STEP_SHIFT);

/// The step of a priority: priorities are positive, so their bit patterns rise with them.
fn step(age: u32, weight: f32) -> usize {
    let priority = (age + 1) as f32 * weight;
    if priority > 0.0 { (priority.to_bits() >> STEP_SHIFT) as usize } else { 0 }
}

fn step_of(state: GhostState, weights: &[f32], row: u32, age: u32) -> usize {
    match state {
        GhostState::Destroying => STEPS - 1,
        _ => step(age, weights.get(row as usize).copied().unwrap_or(1.0)),
    }
}

/// A ghost that was chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    class: u8,
    id: u16,
}

/// The ghosts of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Their estimated cost in bits.
    cost: f32,
    count: u32,
    /// Where the next of them goes in the list of chosen ghosts.
    next: u32,
}

#[derive(Debug, Default)]
pub(super) struct Chooser {
    steps: Vec<Step>,
}

impl Chooser {
    /// Chooses which of a client's due ghosts fit this many bits, at least one if the budget isn't 0. `weights` are by
    /// class, then by row.
    pub(super) fn choose(&mut self, peer: &mut Peer, tick: u32, budget: f32, weights: &[Vec<f32>]) {
        let Peer { scopes, averages, chosen, next_chosen, .. } = peer;
        chosen.clear();
        *next_chosen = 0;
        let most = scopes.iter().zip(&*averages).map(|(scope, each)| scope.due_count() as f32 * each.max());
        if !peer.was_cut && most.sum::<f32>() <= budget {
            scopes.iter_mut().for_each(|scope| scope.ready_all());
            return;
        }
        scopes.iter_mut().for_each(|scope| scope.ready_none());
        self.steps.clear();
        self.steps.resize(STEPS, Step::default());
        for (scope, (averages, weights)) in scopes.iter().zip(averages.iter().zip(weights)) {
            for (_, row, age, state) in scope.each_due(tick) {
                let step = &mut self.steps[step_of(state, weights, row, age)];
                step.cost += averages.of(state);
                step.count += 1;
            }
        }
        // Part of the first step that doesn't fit completely goes too.
        let (mut left, mut count, mut last, mut short) = (budget, 0, 0, false);
        for (at, step) in self.steps.iter_mut().enumerate().rev() {
            if left <= 0.0 {
                last = at + 1;
                break;
            }
            (step.next, count) = (count, count + step.count);
            if step.cost > left {
                (last, short) = (at, true);
                break;
            }
            left -= step.cost;
        }
        chosen.resize(count as usize, Chosen::default());
        let mut end = count as usize;
        for (class, (scope, (averages, weights))) in
            scopes.iter().zip(averages.iter().zip(weights)).enumerate()
        {
            for (id, row, age, state) in scope.each_due(tick) {
                let at = step_of(state, weights, row, age);
                if at < last {
                    continue;
                }
                let step = &mut self.steps[at];
                if at == last && short {
                    if left <= 0.0 {
                        end = end.min(step.next as usize);
                        continue;
                    }
                    left -= averages.of(state);
                }
                // There are at most 256 classes, and ids are below 2^16.
                chosen[step.next as usize] = Chosen { class: class as u8, id: id as u16 };
                step.next += 1;
            }
        }
        chosen.truncate(end);
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
        for Chosen { class, id } in next {
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
