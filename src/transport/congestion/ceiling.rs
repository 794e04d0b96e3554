//! The rate after a queue overflowed: how far below it goes, and how it rises again.

use super::constants::{CUBIC, CUBIC_KEEP, FRUITFUL, PACKET, RENO};
use super::delivery::Signs;
use crate::exact::cube_root;
use crate::time::{Duration, Instant};

/// The rate after an overflow, as a part of what arrived. Beside others it is [`CUBIC_KEEP`].
const ALONE: f64 = 0.97;

/// How long the rate is held alone before more is tried: [`FRUITFUL`] in each epoch, and a fifth of it while the rate is
/// near what overflowed, so that little doesn't fit.
const HOLD: Duration = Duration::from_secs(2);

/// Beside others, more is tried when Reno would be back, or after this many seconds (like BBR version 3's time between
/// probes): what is spread evenly overflows a queue less often than what TCP sends.
const MAX_CONTENDED_HOLD: f64 = 3.0;

/// Beside others where waits are blurred: how much more for each second.
const RAISE_A_SECOND: f64 = 0.08;

/// No faster than this. Rates are bytes a second.
#[derive(Debug)]
pub(super) struct Ceiling {
    pub(super) rate: f64,
    /// What was sent when the queue overflowed.
    overflowed: f64,
    since: Instant,
    contended: bool,
}

impl Ceiling {
    /// After this rate overflowed the queue, beside others or alone; at least `floor`, unless that overflowed it.
    pub(super) fn new(now: Instant, overflowed: f64, contended: bool, floor: f64) -> Self {
        let part = if contended { CUBIC_KEEP } else { ALONE };
        let rate = (part * overflowed).max(floor.min(overflowed));
        Ceiling { rate, overflowed, since: now, contended }
    }

    /// Whether we send as we did right after the overflow, and nobody else was found.
    pub(super) fn is_held_alone(&self, now: Instant) -> bool {
        !self.contended && now - self.since < HOLD
    }

    /// Tries more, after an epoch of this many seconds. `max_rate` is what once arrived.
    pub(super) fn raise(&mut self, now: Instant, seconds: f64, max_rate: f64, signs: Signs) {
        if self.contended && signs.clear {
            self.raise_beside_tcp(now, seconds, max_rate, signs.rtt);
        } else if self.contended {
            self.rate *= 1.0 + RAISE_A_SECOND * seconds;
        } else if now - self.since > HOLD {
            let near = signs.clear && self.rate < (1.0 + 2.0 * FRUITFUL) * self.overflowed;
            self.rate *= if near { 1.0 + 0.2 * FRUITFUL } else { 1.0 + FRUITFUL };
        }
    }

    /// As Cubic or Reno with half of the link, of which `max_rate` once arrived, but later and half as fast.
    fn raise_beside_tcp(&mut self, now: Instant, seconds: f64, max_rate: f64, rtt: f64) {
        let lost = (1.0 - CUBIC_KEEP) * 0.5 * max_rate * rtt / PACKET;
        let reno = RENO / rtt;
        let cubic = lost / cube_root(lost / CUBIC);
        if (now - self.since).as_secs_f64() > (lost / reno).min(MAX_CONTENDED_HOLD) {
            self.rate += 0.5 * reno.max(cubic) * PACKET / rtt * seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: Signs = Signs { target: 0.01, rtt: 0.05, blur: 0.0, clear: true, unhindered: false };

    /// The seconds until it is back at what overflowed, in epochs of 50 ms.
    fn seconds_to_be_back(contended: bool, signs: Signs) -> f64 {
        let mut ceiling = Ceiling::new(Instant::ZERO, 1e6, contended, 0.0);
        let mut epochs = 0;
        while ceiling.rate < 1e6 {
            epochs += 1;
            ceiling.raise(Instant::from_millis(50 * epochs), 0.05, 1e6, signs);
        }
        0.05 * epochs as f64
    }

    #[test]
    fn alone_it_is_back_soon_and_beside_others_later() {
        let alone = seconds_to_be_back(false, SIGNS);
        let others = seconds_to_be_back(true, SIGNS);
        let blurred = seconds_to_be_back(true, Signs { clear: false, ..SIGNS });
        assert!((2.0..3.0).contains(&alone), "{alone}");
        assert!((alone..4.0).contains(&others) && (4.0..6.0).contains(&blurred), "{others} {blurred}");
    }

    #[test]
    fn the_floor_is_kept_unless_that_overflowed() {
        let rate = |overflowed, floor| Ceiling::new(Instant::ZERO, overflowed, true, floor).rate;
        assert_eq!(
            (rate(1_000.0, 0.0), rate(1_000.0, 800.0), rate(1_000.0, 2_000.0)),
            (700.0, 800.0, 1_000.0)
        );
    }

    #[test]
    fn no_round_trip_or_rate_makes_it_no_number() {
        for (rtt, max_rate) in [(0.0, 0.0), (0.0, 1e9), (1e-9, 1e9), (1e3, 0.0)] {
            let mut ceiling = Ceiling::new(Instant::ZERO, 1e6, true, 0.0);
            (1..200).for_each(|second| {
                ceiling.raise(Instant::from_millis(1_000 * second), 1.0, max_rate, Signs { rtt, ..SIGNS });
            });
            assert!(ceiling.rate >= 7e5, "{rtt} {max_rate} {ceiling:?}");
        }
    }
}
