//! Counters of calls, also for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The current counters.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::python) struct CallCounters {
    pub(in crate::python) run: u64,
    pub(in crate::python) failed: u64,
    pub(in crate::python) refused: u64,
    pub(in crate::python) limited: u64,
    pub(in crate::python) gone: u64,
    pub(in crate::python) unanswered: u64,
    pub(in crate::python) timed_out: u64,
    pub(in crate::python) late_replies: u64,
}

impl CallCounters {
    /// Each count under its name.
    pub(in crate::python) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("run", self.run),
            ("failed", self.failed),
            ("refused", self.refused),
            ("limited", self.limited),
            ("gone", self.gone),
            ("unanswered", self.unanswered),
            ("timed_out", self.timed_out),
            ("late_replies", self.late_replies),
        ]
        .into_iter()
    }
}

/// An endpoint's counters, readable without its lock.
#[derive(Debug, Default)]
pub(in crate::python) struct CallCounts {
    pub(super) run: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) gone: AtomicU64,
    pub(super) unanswered: AtomicU64,
    pub(super) timed_out: AtomicU64,
    pub(super) late_replies: AtomicU64,
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl CallCounts {
    pub(in crate::python) fn now(&self) -> CallCounters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CallCounters {
            run: of(&self.run),
            failed: of(&self.failed),
            refused: of(&self.refused),
            limited: of(&self.limited),
            gone: of(&self.gone),
            unanswered: of(&self.unanswered),
            timed_out: of(&self.timed_out),
            late_replies: of(&self.late_replies),
        }
    }
}
