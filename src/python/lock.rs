//! Locks of classes with changing state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a class's state. A panic elsewhere leaves that consistent: no lock is held across more than one call
/// of the core.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
