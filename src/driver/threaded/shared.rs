//! The service that the game and a driver's thread share, behind a lock.
//!
//! Promises: the state left by a turn that panicked is never used, and no farewells are sent from it. No thread is
//! left when [`Shared::close`] returns, even if others close at the same time.

use std::io;
use std::mem;
use std::sync::{PoisonError, TryLockError};

use super::sync::{Arc, Mutex, MutexGuard, Ordering};
use super::{DriverThread, Poller, Service};

/// A service, with a thread or without one. Dropping it ends the thread, and closes nothing.
#[derive(Debug)]
pub struct Shared<S: Service> {
    pub(super) service: Arc<Mutex<S>>,
    thread: Option<DriverThread>,
}

impl<S: Service> Shared<S> {
    /// Shares with a thread, if there is a poller for it to wait at.
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn new(service: S, poller: Option<Poller>) -> io::Result<Self> {
        let service = Arc::new(Mutex::new(service));
        let thread = poller.map(|poller| DriverThread::start(&service, poller)).transpose()?;
        Ok(Shared { service, thread })
    }

    /// Takes the lock.
    ///
    /// # Errors
    ///
    /// The message with which the thread panicked, if it did.
    pub fn lock(&self) -> Result<MutexGuard<'_, S>, &str> {
        let service = self.lock_service();
        // Checked under the lock, because the thread reports a panic before it releases the lock.
        self.failure().map_or(Ok(service), Err)
    }

    /// Takes the lock, before the thread takes another turn if it can help it.
    fn lock_service(&self) -> MutexGuard<'_, S> {
        let Some(thread) = &self.thread else { return lock(&self.service) };
        self.try_lock().unwrap_or_else(|| {
            thread.status.wanted.fetch_add(1, Ordering::Relaxed);
            let service = lock(&self.service);
            thread.status.wanted.fetch_sub(1, Ordering::Relaxed);
            service
        })
    }

    /// Takes the lock if it is free, even after a panic.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        match self.service.try_lock() {
            Ok(service) => Some(service),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether there is a thread, at work or not any more.
    pub fn is_threaded(&self) -> bool {
        self.thread.is_some()
    }

    /// Makes the thread's next turn begin now, unless it pauses: after any change made under the lock.
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    /// Closes the service and ends the thread; waits for the rest of a turn. Once is enough.
    pub fn close(&self) {
        let mut service = self.lock_service();
        if self.failure().is_some() {
            service.discard();
        } else {
            service.close();
        }
        drop(service);
        if let Some(thread) = &self.thread {
            thread.stop();
        }
    }

    /// Closes without goodbyes and without waiting: in a fork's child, which has no thread, and where the lock's
    /// holder stopped at an unknown point.
    pub fn abandon(&mut self) {
        mem::forget(self.thread.take());
        if let Some(mut service) = self.try_lock() {
            service.discard();
        } else {
            mem::forget(Arc::clone(&self.service));
        }
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.thread.as_ref()?.failure()
    }
}

/// Takes a lock. The caller saw any panic and knows its effects.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
