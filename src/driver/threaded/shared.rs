//! What the game and a driver's thread share: a station behind a lock, and who may take it.
//!
//! Promises: what a turn that panicked left behind is never seen, and no farewells are said from it. No thread is left when
//! [`Shared::close`] returns, whoever else closes at the same time.

use std::io;
use std::mem;
use std::sync::{PoisonError, TryLockError};

use super::sync::{Arc, Mutex, MutexGuard};
use super::{Bell, DriverThread, Station};

/// A station, with a thread or without one. Dropping it ends the thread, and closes nothing.
#[derive(Debug)]
pub struct Shared<S: Station> {
    pub(super) station: Arc<Mutex<S>>,
    thread: Option<DriverThread>,
}

impl<S: Station> Shared<S> {
    /// Shares with a thread, if there is a bell for it to wait at.
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn new(station: S, bell: Option<Bell>) -> io::Result<Self> {
        let station = Arc::new(Mutex::new(station));
        let thread = bell.map(|bell| DriverThread::start(&station, bell)).transpose()?;
        Ok(Shared { station, thread })
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// The words with which the thread panicked, if it did.
    pub fn lock(&self) -> Result<MutexGuard<'_, S>, &str> {
        let station = lock(&self.station);
        // Asked with the lock held: what the thread says of itself, it says before it lets go.
        self.failure().map_or(Ok(station), Err)
    }

    /// Takes the lock if nobody has it, whatever became of the thread.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        match self.station.try_lock() {
            Ok(station) => Some(station),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether there is a thread, at work or not any more.
    pub fn is_threaded(&self) -> bool {
        self.thread.is_some()
    }

    /// Has the thread's next turn begin now, unless it pauses: after something was done with the lock taken.
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    /// Closes the station and ends the thread; waits for the rest of a turn. Once is enough.
    pub fn close(&self) {
        let mut station = lock(&self.station);
        if self.failure().is_some() {
            station.forsake();
        } else {
            station.close();
        }
        drop(station);
        if let Some(thread) = &self.thread {
            thread.stop();
        }
    }

    /// Closes without a word and without waiting: for a fork's child, where there is no thread, and nobody to say how far they
    /// were who held the lock.
    pub fn abandon(&mut self) {
        mem::forget(self.thread.take());
        if let Some(mut station) = self.try_lock() {
            station.forsake();
        } else {
            mem::forget(Arc::clone(&self.station));
        }
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.thread.as_ref()?.failure()
    }
}

/// Takes a lock. What a panic in a call left behind it is for the caller to know, who saw it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
