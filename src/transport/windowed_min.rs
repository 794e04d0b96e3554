//! The least of the last seconds.

use crate::time::{Duration, Instant};

/// The minimum of the values in the last one to two buckets of time, in constant memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMin<T> {
    since: Instant,
    current: Option<T>,
    previous: Option<T>,
}

impl<T> Default for WindowedMin<T> {
    fn default() -> Self {
        WindowedMin { since: Instant::ZERO, current: None, previous: None }
    }
}

impl<T: Copy + PartialOrd> WindowedMin<T> {
    pub(crate) fn push(&mut self, now: Instant, bucket: Duration, value: T) {
        let age = now - self.since;
        match &mut self.current {
            Some(least) if age < bucket => *least = min_of(*least, value),
            current => {
                self.previous = current.filter(|_| age < bucket * 2);
                (self.since, self.current) = (now, Some(value));
            }
        }
    }

    /// None before the first value.
    pub(crate) fn value(&self) -> Option<T> {
        match (self.previous, self.current) {
            (Some(a), Some(b)) => Some(min_of(a, b)),
            (a, b) => a.or(b),
        }
    }
}

fn min_of<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_after_one_to_two_buckets() {
        let (mut min, bucket) = (WindowedMin::default(), Duration::from_secs(5));
        assert_eq!(min.value(), None);
        for (at, value, least) in
            [(0, 50, 50), (4_000, 80, 50), (6_000, 90, 50), (11_000, 100, 90), (40_000, 110, 110)]
        {
            min.push(Instant::from_millis(at), bucket, value);
            assert_eq!(min.value(), Some(least), "at {at} ms");
        }
    }
}
