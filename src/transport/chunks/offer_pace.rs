//! How often a peer may offer and withdraw chunks: each offer may have a file made or memory zeroed, and each withdrawal has
//! it thrown away again, all for some ten bytes.
//!
//! An honest sender has four chunks open and opens the next when one is over, so it only comes here with more than a
//! thousand small ones a second; then its packets seem lost, and it says again what was in them.

use super::Offer;
use crate::time::Instant;
use crate::transport::pacing::{Budget, RateConfig};

/// Offers and withdrawals a second: a hundredth of a processor's time at some ten microseconds each.
const PER_SECOND: f64 = 1000.0;

const BURST: f64 = 256.0;

/// Bytes of a chunk that count as much as an offer: memory is zeroed at some ten gigabytes a second.
const BYTES_EACH: u64 = 128 << 10;

/// Of a chunk, no more than these count: the system hands out larger memory, and files, without touching them.
const MAX_COUNTED_BYTES: u64 = 32 << 20;

/// What a peer has left of them.
#[derive(Debug)]
pub(super) struct OfferPace(Budget);

impl Default for OfferPace {
    fn default() -> Self {
        OfferPace(Budget::new(RateConfig { bytes_per_second: PER_SECOND, burst_bytes: BURST }))
    }
}

impl OfferPace {
    /// What an offer counts.
    pub(super) fn cost(offer: &Offer) -> usize {
        1 + (offer.size.min(MAX_COUNTED_BYTES) / BYTES_EACH) as usize
    }

    /// Whether so much may be done now; if so, it counts. The last one may overdraw.
    pub(super) fn spend(&mut self, now: Instant, cost: usize) -> bool {
        self.0.refill(now);
        let allowed = self.0.allows();
        if allowed {
            self.0.spend(cost);
        }
        allowed
    }
}
