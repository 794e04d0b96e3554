//! The least of the last seconds.

use crate::time::{Duration, Instant};

/// How long a value counts at least; at most twice that.
const HALF: Duration = Duration::from_secs(5);

/// The least of values of the last 5 to 10 seconds, in two halves: constant memory, and no value is kept for longer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMin {
    current: Option<Duration>,
    previous: Option<Duration>,
    began: Instant,
}

impl WindowedMin {
    pub(crate) fn add(&mut self, now: Instant, value: Duration) {
        if now - self.began >= HALF {
            self.previous = if now - self.began < 2 * HALF { self.current } else { None };
            self.current = None;
            self.began = now;
        }
        self.current = Some(self.current.map_or(value, |least| least.min(value)));
    }

    /// Zero before the first value.
    pub(crate) fn get(&self) -> Duration {
        let least = [self.current, self.previous].into_iter().flatten().min();
        least.unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_after_five_to_ten_seconds() {
        let ms = Duration::from_millis;
        let mut min = WindowedMin::default();
        assert_eq!(min.get(), Duration::ZERO);
        min.add(Instant::from_millis(0), ms(50));
        min.add(Instant::from_millis(4_000), ms(80));
        assert_eq!(min.get(), ms(50));
        min.add(Instant::from_millis(6_000), ms(90));
        assert_eq!(min.get(), ms(50));
        min.add(Instant::from_millis(11_000), ms(100));
        assert_eq!(min.get(), ms(90));
        min.add(Instant::from_millis(40_000), ms(110));
        assert_eq!(min.get(), ms(110));
    }
}
