//! The average size of a client's records, to estimate how many fit. Each client has its own: what one client has must
//! not influence what another gets.

use super::scope::GhostState;

/// Average bits of records by the ghost's state, measured as they are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Averages([f32; 3]);

/// The weight of a record in the average.
const GAIN: f32 = 1.0 / 64.0;

/// The assumed bits of a destroy.
const DESTROY: f32 = 8.0;

impl Averages {
    pub(super) fn new(max_bits: usize) -> Self {
        let bits = max_bits.min(256) as f32;
        let mut averages = Averages([DESTROY; 3]);
        averages.0[GhostState::Live as usize] = bits / 2.0;
        averages.0[GhostState::Creating as usize] = bits;
        averages
    }

    /// Notes the bits and the number of records of ghosts in a state.
    pub(super) fn note(&mut self, state: GhostState, (bits, count): (usize, usize)) {
        if count > 0 {
            let average = &mut self.0[state as usize];
            *average += (bits as f32 / count as f32 - *average) * (GAIN * count as f32).min(1.0);
        }
    }

    pub(super) fn of(&self, state: GhostState) -> f32 {
        self.0[state as usize]
    }

    pub(super) fn max(&self) -> f32 {
        self.0.into_iter().fold(0.0, f32::max)
    }
}
