//! Limits how often a peer may offer and withdraw chunks: each offer takes a look at a directory and a bit for each
//! slice, and each withdrawal discards them, all for some ten bytes. Memory and files are created with slices.
//!
//! An honest sender has four chunks open and opens the next when one is over, so it only gets here with more than a
//! thousand small ones a second. Its packets then count as lost, and it repeats their contents.

use super::items::Offer;
use crate::time::Instant;
use crate::transport::pacing::{Budget, RateConfig};

/// Offers and withdrawals a second: a hundredth of a processor's time at some ten microseconds each.
const PER_SECOND: f64 = 1000.0;

const BURST: f64 = 256.0;

/// Bytes of a chunk that cost as much as an offer: a bit for each slice is zeroed.
const BYTES_EACH: u64 = 512 << 20;

/// No more bytes of a chunk than this count: the system hands out larger memory without touching it.
const MAX_COUNTED_BYTES: u64 = 128 << 30;

/// A peer's remaining allowance.
#[derive(Debug)]
pub(super) struct OfferPace(Budget);

impl Default for OfferPace {
    fn default() -> Self {
        OfferPace(Budget::new(RateConfig { bytes_per_second: PER_SECOND, burst_bytes: BURST }))
    }
}

impl OfferPace {
    /// The cost of an offer.
    pub(super) fn cost(offer: &Offer) -> usize {
        1 + (offer.size.min(MAX_COUNTED_BYTES) / BYTES_EACH) as usize
    }

    /// Whether this much may be done now; if so, it is charged. The last one may overdraw.
    pub(super) fn spend(&mut self, now: Instant, cost: usize) -> bool {
        self.0.refill(now);
        let allowed = self.0.pacer.allows();
        if allowed {
            self.0.pacer.spend(cost as f64);
        }
        allowed
    }
}
