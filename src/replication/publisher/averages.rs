//! The average size of a client's records, to estimate how many fit. Each client has its own: what one client has must
//! not influence what another gets.

use super::scope::GhostState;

/// Average bits of records, measured as they are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Averages {
    update: f32,
    create: f32,
}

/// The weight of a record in the average.
const GAIN: f32 = 1.0 / 64.0;

/// The assumed bits of a destroy.
const DESTROY: f32 = 8.0;

impl Averages {
    pub(super) fn new(max_bits: usize) -> Self {
        let bits = max_bits.min(256) as f32;
        Averages { update: bits / 2.0, create: bits }
    }

    pub(super) fn note_updates(&mut self, bits: usize, count: usize) {
        self.update += (bits as f32 / count as f32 - self.update) * (GAIN * count as f32).min(1.0);
    }

    pub(super) fn note_creates(&mut self, bits: usize, count: usize) {
        self.create += (bits as f32 / count as f32 - self.create) * (GAIN * count as f32).min(1.0);
    }

    pub(super) fn of(&self, state: GhostState) -> f32 {
        match state {
            GhostState::Live => self.update,
            GhostState::Creating => self.create,
            GhostState::Destroying => DESTROY,
        }
    }

    pub(super) fn max(&self) -> f32 {
        self.update.max(self.create).max(DESTROY)
    }
}
