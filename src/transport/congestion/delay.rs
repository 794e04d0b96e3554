//! How long packets wait in queues: round trips above the least one.

use crate::time::{Duration, Instant};

/// The least value of a time that reaches back one to two buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    since: Instant,
    current: Option<f64>,
    previous: Option<f64>,
}

impl Floor {
    pub(super) fn push(&mut self, now: Instant, bucket: Duration, value: f64) {
        let age = now - self.since;
        if self.current.is_none() || age >= bucket {
            // After a long silence both buckets are old.
            self.previous = self.current.filter(|_| age < bucket * 2);
            (self.since, self.current) = (now, Some(value));
        } else {
            self.current = self.current.map(|least| least.min(value));
        }
    }

    pub(super) fn value(&self) -> Option<f64> {
        match (self.previous, self.current) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Floor::default();
    }
}

/// How far apart events are that come in groups: of packets acked or sent together, the first counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rhythm {
    last: Option<Instant>,
    /// Seconds.
    interval: f64,
}

impl Rhythm {
    pub(super) fn beat(&mut self, now: Instant, longest: f64) {
        let Some(last) = self.last.replace(now) else { return };
        let gap = (now - last).as_secs_f64();
        if gap > 0.0 && gap < longest {
            self.interval += (gap - self.interval) / 8.0;
        }
    }

    pub(super) fn interval(&self) -> f64 {
        self.interval
    }
}
