//! Secrets from the operating system.

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
