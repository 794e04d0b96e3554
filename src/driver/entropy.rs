//! Random bytes from the operating system, or those that a captured endpoint drew.

use std::collections::VecDeque;

use crate::rng::Entropy;

/// The operating system's random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    /// # Panics
    /// When the system has no randomness to give: no key could be made then.
    fn fill(&mut self, out: &mut [u8]) {
        getrandom::fill(out).expect("the operating system gives random bytes");
    }
}

/// Randomness that is recorded, to be drawn again when a capture is replayed.
pub struct Recorded<'a> {
    from: &'a mut dyn Entropy,
    drawn: Vec<u8>,
}

impl<'a> Recorded<'a> {
    pub fn new(from: &'a mut dyn Entropy) -> Self {
        Recorded { from, drawn: Vec::new() }
    }

    /// All that was drawn, in order.
    pub fn drawn(&self) -> &[u8] {
        &self.drawn
    }
}

impl Entropy for Recorded<'_> {
    fn fill(&mut self, out: &mut [u8]) {
        self.from.fill(out);
        self.drawn.extend_from_slice(out);
    }
}

/// Recorded draws, in the same order.
#[derive(Clone, Debug)]
pub struct Replayed(VecDeque<u8>);

impl Replayed {
    pub fn new(drawn: Vec<u8>) -> Self {
        Replayed(drawn.into())
    }
}

impl Entropy for Replayed {
    /// Zeros when there are no more.
    fn fill(&mut self, out: &mut [u8]) {
        out.fill_with(|| self.0.pop_front().unwrap_or(0));
    }
}
