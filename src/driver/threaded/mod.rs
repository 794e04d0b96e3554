//! A thread that serves an endpoint between the game's calls, and while the game makes none.
//!
//! Promises: it sleeps until a datagram arrives or something is due; it holds the lock that it shares with the game
//! for one [`Service::turn`] at a time; it ends before [`Shared::close`] returns. If it panics, later users of the
//! lock get an error. Refuses to run any of the game's code. Deadlines are exact to a millisecond.

#[cfg(all(test, loom))]
mod models;
#[cfg(not(all(test, loom)))]
mod poller;
mod shared;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(all(test, loom))]
pub use models::poller::Poller;
#[cfg(not(all(test, loom)))]
pub use poller::Poller;
pub use shared::Shared;

#[cfg(all(test, loom))]
use models::poller::PollWaker;
#[cfg(not(all(test, loom)))]
use poller::PollWaker;
use shared::lock;
use sync::{Arc, AtomicBool, AtomicUsize, Builder, JoinHandle, Mutex, OnceLock, Ordering, park_timeout};

use crate::time::Duration;

/// How long the thread sleeps at most: should waking it fail, it finds out then.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// How long the thread waits for the game although it could go on: releasing a lock doesn't hand it over.
pub const BETWEEN_TURNS: Duration = Duration::from_micros(100);

/// Turns that the thread takes in a row while nobody wants the lock. A pause costs as much as a dozen datagrams, but a
/// flood isn't to have a whole processor.
const MAX_IN_A_ROW: u32 = 4;

/// What a thread serves.
pub trait Service: Send + 'static {
    /// Does everything that is due now, for a bounded time.
    fn turn(&mut self) -> Next;

    /// Ends it, with its goodbyes; later turns do nothing. Called once.
    fn close(&mut self);

    /// Closes without a word, as its state is not to be trusted, or another process's.
    fn discard(&mut self);
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next one at once, or, where others want the lock, after [`BETWEEN_TURNS`]: there is more to do.
    Again,
    /// The next one after this long, whatever comes before.
    Pause(Duration),
    /// The next one when a datagram comes, and after this long at the latest.
    Wait(Duration),
    // None.
    Over,
}

/// A thread at work. Dropping it stops it.
#[derive(Debug)]
struct DriverThread {
    status: Arc<ThreadStatus>,
    waker: PollWaker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state shared between the thread and its owner.
#[derive(Debug, Default)]
struct ThreadStatus {
    stop: AtomicBool,
    /// The thread waits, or is about to: set under the service's lock, so that the next holder of the lock knows.
    waits: AtomicBool,
    /// How many wait for the service's lock.
    wanted: AtomicUsize,
    failure: OnceLock<String>,
}

impl DriverThread {
    /// Starts a thread that takes turns.
    fn start<S: Service>(service: &Arc<Mutex<S>>, poller: Poller) -> io::Result<Self> {
        let (status, waker) = (Arc::new(ThreadStatus::default()), poller.waker());
        let (status_here, service) = (Arc::clone(&status), Arc::clone(service));
        let thread =
            Builder::new().name("tickwire-driver".into()).spawn(move || run(poller, &service, &status))?;
        Ok(DriverThread { status: status_here, waker, thread: Mutex::new(Some(thread)) })
    }

    /// Makes the next turn begin now, or after the current pause: call it after releasing the service's lock. Costs a
    /// system call and an extra turn.
    fn wake(&self) {
        if self.status.waits.load(Ordering::Relaxed) {
            self.waker.ring();
        }
    }

    /// With which words the thread panicked, if it did.
    fn failure(&self) -> Option<&str> {
        self.status.failure.get().map(String::as_str)
    }

    /// Waits until the thread has ended: for the rest of a turn. Not to be called with the service's lock held.
    fn stop(&self) {
        self.status.stop.store(true, Ordering::Relaxed);
        self.waker.ring();
        // Held while joining, so that a second caller waits too.
        let mut thread = lock(&self.thread);
        if let Some(thread) = thread.take() {
            thread.thread().unpark();
            // It caught its panics.
            let _ended = thread.join();
        }
    }
}

impl Drop for DriverThread {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run<S: Service>(mut poller: Poller, service: &Mutex<S>, status: &ThreadStatus) {
    let mut in_a_row = 0;
    while !status.stop.load(Ordering::Relaxed) {
        let next = turn(service, status);
        in_a_row = if next == Next::Again { (in_a_row + 1) % MAX_IN_A_ROW } else { 0 };
        match next {
            Next::Over => return,
            Next::Again if in_a_row == 0 || status.wanted.load(Ordering::Relaxed) > 0 => {
                park_timeout(BETWEEN_TURNS);
            }
            Next::Again => {}
            Next::Pause(pause) => park_timeout(pause),
            Next::Wait(wait) => {
                if poller.wait(wait.min(MAX_WAIT)).is_err() {
                    // If the error lasts, it must not take the whole processor.
                    park_timeout(BETWEEN_TURNS);
                }
            }
        }
    }
}

/// Takes a turn. A panic is noted while the lock is still held, so that nobody uses the state it left.
fn turn<S: Service>(service: &Mutex<S>, status: &ThreadStatus) -> Next {
    let mut service = lock(service);
    let turn = catch_unwind(AssertUnwindSafe(|| service.turn())).unwrap_or_else(|panic| {
        let _first = status.failure.set(words_of(&*panic));
        Next::Over
    });
    status.waits.store(matches!(turn, Next::Wait(_)), Ordering::Relaxed);
    turn
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
