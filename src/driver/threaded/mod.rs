//! A thread that keeps an endpoint going between the game's calls, and while the game makes none.
//!
//! Promises: it sleeps until a datagram comes or something is due; it holds the lock that it shares with the game for
//! one [`Station::turn`] at a time; it ends before [`Shared::close`] returns. Should it panic, all that take the lock later
//! are told so.
//! Refuses: to run anything of the game. What is due is known to a millisecond.

#[cfg(not(all(test, loom)))]
mod bell;
#[cfg(all(test, loom))]
mod models;
mod shared;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(not(all(test, loom)))]
pub use bell::Bell;
#[cfg(all(test, loom))]
pub use models::bell::Bell;
pub use shared::Shared;

#[cfg(not(all(test, loom)))]
use bell::Ringer;
#[cfg(all(test, loom))]
use models::bell::Ringer;
use shared::lock;
use sync::{Arc, AtomicBool, Builder, JoinHandle, Mutex, OnceLock, Ordering, park_timeout};

use crate::time::Duration;

/// How long the thread sleeps at most: should waking it fail, it finds out then.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// What a thread keeps going.
pub trait Station: Send + 'static {
    /// Does what is due now, for a bounded time.
    fn turn(&mut self) -> Turn;

    /// Ends what it does, with all that is to be said then. Later turns are over. Once is enough.
    fn close(&mut self);

    /// Closes without a word, as its state is not to be trusted, or another process's.
    fn forsake(&mut self);
}

/// What comes after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The next one after this long, whatever comes before: there is more to do, and others want the lock.
    Pause(Duration),
    /// The next one when a datagram comes, and after this long at the latest.
    Wait(Duration),
    /// None.
    Over,
}

/// A thread at work. Dropping it stops it.
#[derive(Debug)]
struct DriverThread {
    told: Arc<Told>,
    ringer: Ringer,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread and who has it tell each other.
#[derive(Debug, Default)]
struct Told {
    stop: AtomicBool,
    /// The thread waits, or is about to: told under the station's lock, so that whoever has it after a turn knows what comes next.
    waits: AtomicBool,
    failure: OnceLock<String>,
}

impl DriverThread {
    /// Lets a thread take turns.
    fn start<S: Station>(station: &Arc<Mutex<S>>, bell: Bell) -> io::Result<Self> {
        let (told, ringer) = (Arc::new(Told::default()), bell.ringer());
        let (told_here, station) = (Arc::clone(&told), Arc::clone(station));
        let thread =
            Builder::new().name("tickwire-driver".into()).spawn(move || run(bell, &station, &told))?;
        Ok(DriverThread { told: told_here, ringer, thread: Mutex::new(Some(thread)) })
    }

    /// Has the next turn begin now, or when the pause before it ends: to be called by who has had the station's lock. A ring is a
    /// system call, and a turn more.
    fn wake(&self) {
        if self.told.waits.load(Ordering::Relaxed) {
            self.ringer.ring();
        }
    }

    /// With which words the thread panicked, if it did.
    fn failure(&self) -> Option<&str> {
        self.told.failure.get().map(String::as_str)
    }

    /// Waits until the thread has ended: for the rest of a turn. Not to be called with the station's lock held.
    fn stop(&self) {
        self.told.stop.store(true, Ordering::Relaxed);
        self.ringer.ring();
        // Held while waiting, so that whoever stops it too waits as well.
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

fn run<S: Station>(mut bell: Bell, station: &Mutex<S>, told: &Told) {
    while !told.stop.load(Ordering::Relaxed) {
        match turn(station, told) {
            Turn::Over => return,
            Turn::Pause(pause) => park_timeout(pause),
            Turn::Wait(wait) => bell.wait(wait.min(LONGEST_WAIT)),
        }
    }
}

/// Takes a turn. A panic is told of while the lock is still held, so that nobody who takes it next trusts what is behind it.
fn turn<S: Station>(station: &Mutex<S>, told: &Told) -> Turn {
    let mut station = lock(station);
    let turn = catch_unwind(AssertUnwindSafe(|| station.turn())).unwrap_or_else(|panic| {
        let _first = told.failure.set(words_of(&*panic));
        Turn::Over
    });
    told.waits.store(matches!(turn, Turn::Wait(_)), Ordering::Relaxed);
    turn
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
