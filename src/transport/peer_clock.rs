//! The peer's clock, as far as its acks show it: it measures how long packets waited on their way to the peer,
//! without the way of their acks.
//!
//! Promises: a time that advances like the peer's clock, whatever its origin and however often its few bits wrap, as
//! long as it is heard once in a while. Refuses nothing: a peer may report any time, so users must bound its effects.

use crate::time::{Duration, Instant};

/// When a packet was received, by the receiver's clock: in units of 64 µs, modulo 2^18, which is unambiguous over 8
/// seconds of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveTime(u32);

impl ReceiveTime {
    pub(crate) const BITS: u32 = 18;
    const UNIT_NANOS: u64 = 64_000;
    const MODULUS: u64 = 1 << Self::BITS;

    /// The time of a packet that is received now.
    pub(crate) fn at(now: Instant) -> Self {
        Self::from_bits(now.as_nanos() / Self::UNIT_NANOS)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        ReceiveTime((bits % Self::MODULUS) as u32)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0.into()
    }
}

/// Receive times without their wrapping.
#[derive(Debug, Default)]
pub(crate) struct PeerClock {
    /// When the last time was heard, and its value: in units, from an origin close to our own.
    last: Option<(Instant, u64)>,
}

impl PeerClock {
    /// The full time: the candidate nearest to the last one plus the elapsed time.
    pub(crate) fn read(&mut self, now: Instant, time: ReceiveTime) -> Instant {
        let ours = now.as_nanos() / ReceiveTime::UNIT_NANOS;
        let expected = match self.last {
            Some((at, units)) => units.saturating_add((now - at).as_nanos() as u64 / ReceiveTime::UNIT_NANOS),
            // Any multiple of the modulus would do.
            None => ours.max(ReceiveTime::MODULUS),
        };
        let ahead = time.bits().wrapping_sub(expected) % ReceiveTime::MODULUS;
        let units = if ahead < ReceiveTime::MODULUS / 2 {
            expected.saturating_add(ahead)
        } else {
            expected.saturating_sub(ReceiveTime::MODULUS - ahead)
        };
        self.last = Some((now, units));
        Instant::ZERO + Duration::from_nanos(units.saturating_mul(ReceiveTime::UNIT_NANOS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_across_the_wrap_and_across_long_silence() {
        for (ahead, drift) in [(0, 1.0), (3_000_000_000, 1.000_2), (777, 0.999_8)] {
            let mut clock = PeerClock::default();
            let theirs = |at: u64| Instant::from_nanos(ahead + (at as f64 * drift) as u64);
            let mut origin = None;
            // 10 ms apart, then a second, a minute, an hour; what is heard waited for up to a second.
            let mut at = 1_000_000_000;
            for step in 0..4_000u64 {
                at += match step {
                    0..3_000 => 10_000_000,
                    3_000..3_900 => 1_000_000_000,
                    3_900..3_980 => 60_000_000_000,
                    _ => 3_600_000_000_000,
                };
                let now = Instant::from_nanos(at + (step % 7) * 150_000_000);
                let read = clock.read(now, ReceiveTime::at(theirs(at)));
                let truth = theirs(at).as_secs_f64() - read.as_secs_f64();
                let origin = *origin.get_or_insert(truth);
                assert!((truth - origin).abs() < 1e-4, "{truth} {origin} in step {step}");
            }
        }
    }

    #[test]
    fn any_times_are_taken() {
        let mut clock = PeerClock::default();
        let mut rng = crate::rng::Rng::seeded(1);
        for _ in 0..10_000 {
            let now = Instant::from_nanos(rng.next_u64());
            clock.read(now, ReceiveTime::from_bits(rng.next_u64()));
        }
        clock.read(Instant::NEVER, ReceiveTime::from_bits(0));
        clock.read(Instant::ZERO, ReceiveTime::from_bits(u64::MAX));
    }
}
