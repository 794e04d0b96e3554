//! Locks and threads: the standard library's, or those of loom, which runs a model once for each order that threads can
//! do things in.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(super) use std::thread::{Builder, JoinHandle, park_timeout};

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(all(test, loom))]
pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(all(test, loom))]
pub(super) use loom::thread::{Builder, JoinHandle};

/// Models have no clock: a short pause ends by itself, a long one when somebody ends it.
#[cfg(all(test, loom))]
pub(super) fn park_timeout(pause: crate::time::Duration) {
    if pause < crate::time::Duration::from_secs(1) { loom::thread::yield_now() } else { loom::thread::park() }
}
