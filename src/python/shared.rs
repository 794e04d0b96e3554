//! What the game and a driver's thread share: a lock, and who may take it.
//!
//! Promises: what is shared is closed with its object, and one with a thread with the interpreter too, whichever comes
//! first; the thread ends then. A thread that panicked makes every later call raise.
//! Refuses a fork's child: the lock may be held there by a thread that doesn't exist, and the connections are its
//! parent's. Nothing goes out from there, no farewells either.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::exit::{Exit, close_at_exit};
use super::forks::Process;
use super::lock;
use crate::driver::{DriverThread, Station};

/// What can be shared.
pub(super) trait Close: Station {
    /// Ends all connections and tells their peers. Once is enough.
    fn close(&mut self);

    /// Closes without a word, as its state is not to be trusted, or another process's.
    fn forsake(&mut self);
}

pub(super) struct Shared<S: Close> {
    /// What it is, for sentences.
    name: &'static str,
    state: Arc<Mutex<S>>,
    thread: Option<DriverThread>,
    /// Where it may be used; None for everywhere.
    process: Option<Process>,
}

impl<S: Close> Shared<S> {
    /// Shares with a thread, if there is a `socket` for it to wait for.
    pub(super) fn new(
        py: Python<'_>,
        name: &'static str,
        state: S,
        socket: Option<std::net::UdpSocket>,
        process: Option<Process>,
    ) -> PyResult<Arc<Self>> {
        let state = Arc::new(Mutex::new(state));
        let thread = socket.map(|socket| DriverThread::start(&state, socket)).transpose()?;
        let shared = Arc::new(Shared { name, state, thread, process });
        if shared.thread.is_some() {
            close_at_exit(py, Arc::downgrade(&shared) as _)?;
        }
        Ok(shared)
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// In a fork's child, and when the thread has panicked.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, S>> {
        let name = self.name;
        if self.is_elsewhere() {
            let sentence =
                format!("the {name} belongs to the process that made it: after a fork, make a new one");
            return Err(PyRuntimeError::new_err(sentence));
        }
        if let Some(failure) = self.failure() {
            let sentence =
                format!("the {name} is lost, as its thread panicked, a fault of Tickwire: {failure}");
            return Err(PyRuntimeError::new_err(sentence));
        }
        Ok(lock(&self.state))
    }

    /// Takes the lock if nobody has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn weak(&self) -> Weak<Mutex<S>> {
        Arc::downgrade(&self.state)
    }

    pub(super) fn is_threaded(&self) -> bool {
        self.thread.is_some()
    }

    /// Has the thread see what is due now.
    pub(super) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    /// Ends the connections and the thread.
    pub(super) fn close(&self) {
        if self.is_elsewhere() {
            return;
        }
        if self.failure().is_some() {
            lock(&self.state).forsake();
        } else {
            lock(&self.state).close();
        }
        if let Some(thread) = &self.thread {
            // For the rest of a turn, which never waits for Python.
            thread.stop();
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.process.is_some_and(|process| !process.is_here())
    }

    fn failure(&self) -> Option<&str> {
        self.thread.as_ref()?.failure()
    }
}

impl<S: Close> Drop for Shared<S> {
    fn drop(&mut self) {
        if !self.is_elsewhere() {
            return self.close();
        }
        // There is no thread to wait for.
        mem::forget(self.thread.take());
        if let Some(mut state) = self.try_lock() {
            state.forsake();
        } else {
            // Whoever holds it is not there to say how far they were.
            mem::forget(Arc::clone(&self.state));
        }
    }
}

impl<S: Close> Exit for Shared<S> {
    fn close(&self, _: Python<'_>) {
        self.close();
    }
}
