//! What goes out in a tick whose budget is too small for all that is due: destroys, then by priority.
//!
//! A ghost's priority is the ticks since it was sent last (or since the client was to have it), by the weight of its row. It is
//! told apart in steps of an eighth: all above a step go, and of the step that has no room for all, the lowest ids. Who didn't go
//! has a higher priority in the next tick, so each goes at some time, whatever its weight (if it has one above 0).
//!
//! Promises: two passes over what is due, no sorting.

use super::peer::Peer;
use super::scope::GhostState;

/// Priorities are told apart by these many of their bits: the exponent and three of the fraction.
const STEP_SHIFT: u32 = 20;
const STEPS: usize = 1 << (31 - STEP_SHIFT);

/// A priority's step: priorities are positive, so that their patterns rise with them.
fn step(age: u32, weight: f32) -> usize {
    let priority = (age + 1) as f32 * weight;
    if priority > 0.0 { (priority.to_bits() >> STEP_SHIFT) as usize } else { 0 }
}

#[derive(Debug, Default)]
pub(super) struct Chooser {
    /// Bits of the candidates of each step.
    costs: Vec<f32>,
}

impl Chooser {
    /// Makes ready what of a client's due ghosts fits this many bits. `averages` and `weights` are by class, weights then by row.
    pub(super) fn choose(&mut self, peer: &mut Peer, tick: u32, budget: f32, weights: &[Vec<f32>]) {
        let Peer { scopes, averages, .. } = peer;
        let most = scopes.iter().zip(&*averages).map(|(scope, each)| scope.due_count() as f32 * each.max());
        if most.sum::<f32>() <= budget {
            scopes.iter_mut().for_each(|scope| scope.ready_all());
            return;
        }
        let of = |state, weights: &[f32], row: u32, age| match state {
            GhostState::Destroying => STEPS - 1,
            _ => step(age, weights.get(row as usize).copied().unwrap_or(1.0)),
        };
        self.costs.clear();
        self.costs.resize(STEPS, 0.0);
        for (scope, (averages, weights)) in scopes.iter().zip(averages.iter().zip(weights)) {
            for (_, row, age, state) in scope.each_due(tick) {
                self.costs[of(state, weights, row, age)] += averages.of(state);
            }
        }
        let (mut left, mut last) = (budget, 0);
        for (step, cost) in self.costs.iter().enumerate().rev() {
            if *cost > left {
                last = step + 1;
                break;
            }
            left -= cost;
        }
        // The step below `last` has no room for all.
        for (scope, (averages, weights)) in scopes.iter_mut().zip(averages.iter().zip(weights)) {
            scope.ready_none();
            let mut ready = core::mem::take(&mut scope.ready);
            for (id, row, age, state) in scope.each_due(tick) {
                let step = of(state, weights, row, age);
                if step + 1 == last {
                    left -= averages.of(state);
                }
                if step >= last || step + 1 == last && left >= 0.0 {
                    ready[id as usize / 64] |= 1 << (id % 64);
                }
            }
            scope.ready = ready;
        }
    }
}
