//! Key presses: fields of an input that are true in one tick only, however often the input is sent or repeated.
//!
//! Promises: a kept press is released once.

use std::sync::Arc;

/// Where an input's presses are in its row, and presses that wait for the next input.
#[derive(Clone, Debug)]
pub(super) struct Presses {
    places: Arc<[usize]>,
    kept: Box<[bool]>,
}

impl Presses {
    /// No press waits; the places are offsets in an input's row.
    pub(super) fn new(places: Arc<[usize]>) -> Self {
        Presses { kept: vec![false; places.len()].into(), places }
    }

    /// Whether inputs have no presses.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Keeps an input's presses for the next input.
    pub(super) fn keep(&mut self, input: &[u8]) {
        for (kept, place) in self.kept.iter_mut().zip(&*self.places) {
            *kept |= input[*place] != 0;
        }
    }

    /// Adds the kept presses to an input; none is kept any more.
    pub(super) fn release(&mut self, input: &mut [u8]) {
        for (kept, place) in self.kept.iter_mut().zip(&*self.places) {
            input[*place] |= u8::from(core::mem::take(kept));
        }
    }

    /// Clears an input's presses.
    pub(super) fn clear(&self, input: &mut [u8]) {
        for place in &*self.places {
            input[*place] = 0;
        }
    }
}
