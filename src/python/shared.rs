//! State shared by the game and a driver's thread, as Python sees it.
//!
//! Promises: shared state is closed with its object, or, if it has a thread, with the interpreter if that comes first;
//! then the thread ends. After a panic of the thread every later call raises.
//! Refuses a fork's child: there, a thread that doesn't exist may hold the lock, and the connections are the parent's.
//! Nothing is sent from there, not even a goodbye.

use std::sync::PoisonError;

use crate::python::prelude::*;

use super::exit::{Exit, close_at_exit};
use super::forks::Process;
use crate::driver::{self, Poller, Service};

pub(super) struct Shared<S: Service> {
    /// Its kind, for sentences.
    name: &'static str,
    shared: driver::Shared<S>,
    /// The only process that may use it; None for all.
    process: Option<Process>,
}

impl<S: Service> Shared<S> {
    /// Shares state with a thread, if there is a `poller` for it to wait on.
    pub(super) fn new(
        py: Python<'_>,
        name: &'static str,
        state: S,
        poller: Option<Poller>,
        process: Option<Process>,
    ) -> PyResult<Arc<Self>> {
        let shared = Arc::new(Shared { name, shared: driver::Shared::new(state, poller)?, process });
        if shared.is_threaded() {
            close_at_exit(py, Arc::downgrade(&shared) as _)?;
        }
        Ok(shared)
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// This is a fork's child, or the thread has panicked.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, S>> {
        let name = self.name;
        if self.is_elsewhere() {
            let sentence =
                format!("the {name} belongs to the process that made it: after a fork, make a new one");
            return Err(PyRuntimeError::new_err(sentence));
        }
        self.shared.lock().map_err(|failure| {
            let sentence = format!(
                "the {name} has failed: its thread panicked (a bug in Tickwire, please report it): {failure}"
            );
            PyRuntimeError::new_err(sentence)
        })
    }

    pub(super) fn is_threaded(&self) -> bool {
        self.shared.is_threaded()
    }

    /// Wakes the thread to see what is due now.
    pub(super) fn wake(&self) {
        self.shared.wake();
    }

    /// Ends the connections and the thread, which never waits for Python.
    pub(super) fn close(&self) {
        if !self.is_elsewhere() {
            self.shared.close();
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.process.is_some_and(|process| !process.is_here())
    }
}

impl<S: Service> Drop for Shared<S> {
    fn drop(&mut self) {
        if self.is_elsewhere() {
            self.shared.abandon();
        } else {
            self.shared.close();
        }
    }
}

impl<S: Service> Exit for Shared<S> {
    fn close(&self, _: Python<'_>) {
        self.close();
    }
}

/// Locks a class's state. A panic elsewhere leaves that consistent: no lock is held across more than one call
/// of the core.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
