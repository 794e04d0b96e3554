//! What happened to calls, by name.

use std::sync::atomic::{AtomicU64, Ordering};

/// What may happen to a call or request.
#[derive(Clone, Copy, Debug)]
pub enum CallOutcome {
    /// Its function returned or raised.
    Run,
    /// Its function raised an exception.
    Failed,
    /// Its caller may not make it.
    Refused,
    /// It came more often than its rate allows.
    Limited,
    /// Its ghosts or its caller are gone.
    Gone,
    /// A reply found no room.
    Unanswered,
    /// No reply came in time.
    TimedOut,
    /// A reply came when nothing waited for it any more.
    LateReply,
}

const NAMES: [&str; 8] =
    ["run", "failed", "refused", "limited", "gone", "unanswered", "timed_out", "late_replies"];

/// How often each happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallCounters([u64; NAMES.len()]);

impl CallCounters {
    /// Each count with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0)
    }
}

/// The counters while they count, without a lock.
#[derive(Debug, Default)]
pub struct CallCounts([AtomicU64; NAMES.len()]);

impl CallCounts {
    /// Counts one more of them.
    pub fn count(&self, outcome: CallOutcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn now(&self) -> CallCounters {
        CallCounters(self.0.each_ref().map(|counter| counter.load(Ordering::Relaxed)))
    }
}
