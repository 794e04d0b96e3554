//! In which order a client's due ghosts go out in a tick that may have no room for all: destroys, what the client must know (its
//! creates first) in a share of the budget, then by priority.
//!
//! A ghost's priority is the ticks since it was sent last (or since the client was to have it), by the weight of its row and how near it is. It is
//! told apart in steps of an eighth: the highest steps go, and of the step that has no room for all, the lowest ids. Who
//! didn't go has a higher priority in the next tick, so each goes at some time, whatever its weight (if it has one above 0).
//!
//! How much fits is an estimate, and other streams' share of the link is unknown. Writing all chosen ghosts by id would
//! always cut off the highest ids; so each packet takes as many of the next ones as it may have room for, and writes
//! these by id. Only if all are expected to fit, and did in the tick before, they go by id without ordering.
//!
//! Promises: two passes over due ghosts and one over chosen ones, without comparisons.

use super::super::table::Table;
use super::averages::Averages;
use super::peer::Peer;
use super::scope::{GhostState, Scope};
use super::urgency::Urgency;

/// Priorities are compared by these bits: the exponent and three of the fraction.
const STEP_SHIFT: u32 = 20;
const STEPS: usize = 1 << (31 - STEP_SHIFT);

/// Of the budget, what clients must know goes before the rest: what is more than that waits among the others.
const MUST_SHARE: f32 = 0.5;

/// Behind the steps of what needn't be known: those of updates that must, and of creates.
const MUST_RANGES: usize = 3;

/// The step of a priority: priorities are positive, so their bit patterns rise with them.
fn step(age: u32, weight: f32) -> usize {
    let priority = (age + 1) as f32 * weight;
    if priority > 0.0 { (priority.to_bits() >> STEP_SHIFT) as usize } else { 0 }
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
    /// How many more of those that must be known stay before the rest.
    keeps: u32,
}

#[derive(Debug, Default)]
pub(super) struct Chooser {
    steps: Vec<Step>,
    /// The step of each due ghost, by class and id.
    places: Vec<u16>,
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
        let ranges = if must.iter().any(|must| !must.is_empty()) { MUST_RANGES } else { 1 };
        // No priority has the last step.
        let destroys = ranges * STEPS - 1;
        self.steps.clear();
        self.steps.resize(ranges * STEPS, Step::default());
        self.places.clear();
        for (class, (scope, averages)) in scopes.iter().zip(&*averages).enumerate() {
            let (table, weights, must) = (&tables[class], &*weights[class], &*must[class]);
            let urgency = Urgency { table, weights, must, sight: sights[class].as_ref() };
            for (_, row, age, state) in scope.each_due(tick) {
                let of = || step(age, urgency.weight(row));
                let at = match state {
                    GhostState::Destroying => destroys,
                    GhostState::Creating if urgency.is_must(row) => of() + 2 * STEPS,
                    GhostState::Live if urgency.is_must(row) => of() + STEPS,
                    _ => of(),
                };
                self.places.push(at as u16);
                let step = &mut self.steps[at];
                step.cost += averages.of(state);
                step.count += 1;
            }
        }
        self.bound_share(budget * MUST_SHARE, destroys);
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
        let mut places = self.places.iter();
        for (class, (scope, averages)) in scopes.iter().zip(&*averages).enumerate() {
            for ((id, _, _, state), place) in scope.each_due(tick).zip(&mut places) {
                let mut at = usize::from(*place);
                if at >= STEPS && at != destroys {
                    let step = &mut self.steps[at];
                    if step.keeps == 0 {
                        at %= STEPS;
                    } else {
                        step.keeps -= 1;
                    }
                }
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

    /// Puts what must be known and has no room in this many bits among the rest, the least urgent first.
    fn bound_share(&mut self, share: f32, destroys: usize) {
        let mut left = share;
        for at in (STEPS..destroys).rev() {
            let step = &mut self.steps[at];
            if step.count == 0 {
                continue;
            }
            let (cost, count) = (step.cost, step.count);
            // At least one where there is room for a part of it.
            step.keeps =
                if cost <= left { count } else { (left.max(0.0) / cost * count as f32).ceil() as u32 };
            left -= cost;
            let moved = count - step.keeps.min(count);
            let bits = cost * moved as f32 / count as f32;
            (step.cost, step.count) = (cost - bits, count - moved);
            let rest = &mut self.steps[at % STEPS];
            (rest.cost, rest.count) = (rest.cost + bits, rest.count + moved);
        }
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
