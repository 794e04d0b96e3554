//! What happened to calls.

use std::sync::atomic::{AtomicU64, Ordering};

/// What may happen to a call or request.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallOutcome {
    Run,
    Failed,
    Refused,
    Limited,
    /// Its ghosts or its caller are gone.
    Gone,
    /// A reply found no room.
    Unanswered,
    TimedOut,
    LateReply,
}

const NAMES: [&str; 8] =
    ["run", "failed", "refused", "limited", "gone", "unanswered", "timed_out", "late_replies"];

/// How often each happened.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::python) struct CallCounters([u64; NAMES.len()]);

impl CallCounters {
    pub(in crate::python) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0)
    }
}

/// The counters while they count, without a lock.
#[derive(Debug, Default)]
pub(in crate::python) struct CallCounts([AtomicU64; NAMES.len()]);

impl CallCounts {
    pub(super) fn count(&self, outcome: CallOutcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::python) fn now(&self) -> CallCounters {
        CallCounters(self.0.each_ref().map(|counter| counter.load(Ordering::Relaxed)))
    }
}
