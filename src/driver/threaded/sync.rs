//! Locks and threads: the standard library's, or those of loom, which runs a model once for each possible
//! interleaving.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
#[cfg(not(all(test, loom)))]
pub(super) use std::thread::{Builder, JoinHandle, park_timeout};

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(all(test, loom))]
pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(all(test, loom))]
pub(super) use loom::thread::{Builder, JoinHandle};

/// Loom has no `OnceLock`: this one lets it try what others do before the value is set.
#[cfg(all(test, loom))]
#[derive(Debug, Default)]
pub(super) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    is_set: AtomicBool,
}

#[cfg(all(test, loom))]
impl<T> OnceLock<T> {
    pub(super) fn get(&self) -> Option<&T> {
        self.is_set.load(Ordering::Acquire).then(|| self.value.get()).flatten()
    }

    pub(super) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }
}

/// Models have no clock: a short pause ends by itself, a long one only by a waker.
#[cfg(all(test, loom))]
pub(super) fn park_timeout(pause: crate::time::Duration) {
    if pause < crate::time::Duration::from_secs(1) { loom::thread::yield_now() } else { loom::thread::park() }
}
