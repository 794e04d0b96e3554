//! Time as an input: a monotonic instant and the wall clock of tokens. Nothing here reads a clock.

use core::ops::{Add, AddAssign, Sub};
pub use core::time::Duration;

/// A monotonic instant: nanoseconds since an origin that the driver chose (its start, or the start of virtual time).
/// Only differences are meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    pub const ZERO: Instant = Instant(0);
    /// Later than every other instant: a deadline that never comes.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// An instant this many nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// An instant this many milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Instant(millis * 1_000_000)
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        // Division gives the nearest float: 30 ms are 0.03.
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    // Saturates at `Instant::NEVER`.
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Saturates at zero like [`Instant::since`].
    fn sub(self, rhs: Instant) -> Duration {
        self.since(rhs)
    }
}

/// Whole seconds of the wall clock since 1970, as in connect tokens. Nothing else uses the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_saturate_at_zero() {
        let a = Instant::from_millis(5);
        assert_eq!(a - Instant::from_millis(7), Duration::ZERO);
        assert_eq!(a + Duration::from_millis(2) - a, Duration::from_millis(2));
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
    }

    #[test]
    fn seconds_are_the_nearest_float() {
        assert_eq!(Instant::from_millis(30).as_secs_f64(), 0.03);
    }
}
