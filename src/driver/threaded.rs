//! A thread that keeps an endpoint going between the game's calls, and while the game makes none.
//!
//! Promises: it sleeps until a datagram comes or something is due; it holds the lock that it shares with the game for
//! one [`Station::turn`] at a time; it ends before [`DriverThread::stop`] returns. Should it panic, [`DriverThread::failure`] says so.
//! Refuses: to run anything of the game. What is due is known to a millisecond.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::time::Duration;

/// How long the thread sleeps at most: should waking it fail, it finds out then.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);

/// What a thread keeps going.
pub trait Station: Send + 'static {
    /// Does what is due now, for a bounded time.
    fn turn(&mut self) -> Turn;
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
pub struct DriverThread {
    told: Arc<Told>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread and who has it tell each other.
#[derive(Debug, Default)]
struct Told {
    stop: AtomicBool,
    failure: OnceLock<String>,
}

impl DriverThread {
    /// Lets a thread take turns. `socket` is a handle of the one that the station reads.
    ///
    /// # Errors
    /// When the system has no thread, or nothing to wait with, to spare.
    pub fn start<S: Station>(station: &Arc<Mutex<S>>, socket: std::net::UdpSocket) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut socket = UdpSocket::from_std(socket);
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE)?;
        let told = Arc::new(Told::default());
        let (told_here, station) = (told.clone(), Arc::downgrade(station));
        let thread = Builder::new().name("tickwire-driver".into()).spawn(move || {
            let work = || run(poll, socket, &station, &told.stop);
            // The station is as a panic in any other call would leave it, and nobody uses it any more.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                let _first = told.failure.set(words_of(&*panic));
            }
        })?;
        Ok(DriverThread { told: told_here, waker, thread: Mutex::new(Some(thread)) })
    }

    /// Has the next turn begin now.
    pub fn wake(&self) {
        // If that fails, it begins when the thread's wait ends.
        let _sooner = self.waker.wake();
    }

    /// With which words the thread panicked, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.told.failure.get().map(String::as_str)
    }

    /// Waits until the thread has ended: for the rest of a turn. Not to be called with the station's lock held.
    pub fn stop(&self) {
        self.told.stop.store(true, Ordering::Relaxed);
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
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

fn run<S: Station>(mut poll: Poll, mut socket: UdpSocket, station: &Weak<Mutex<S>>, stop: &AtomicBool) {
    let mut events = Events::with_capacity(2);
    while !stop.load(Ordering::Relaxed) {
        let Some(station) = station.upgrade() else { return };
        let turn = station.lock().unwrap_or_else(PoisonError::into_inner).turn();
        drop(station);
        let wait = match turn {
            Turn::Over => return,
            Turn::Pause(pause) => {
                std::thread::park_timeout(pause);
                continue;
            }
            Turn::Wait(wait) => wait.min(LONGEST_WAIT),
        };
        // The socket is read by another handle, so only this has it tell again everywhere.
        let told = events.iter().any(|event| event.token() == SOCKET);
        let armed =
            if told { poll.registry().reregister(&mut socket, SOCKET, Interest::READABLE) } else { Ok(()) };
        match armed.and_then(|()| poll.poll(&mut events, Some(wait))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                // Never seen; should it last, it must not take the whole processor.
                std::thread::park_timeout(Duration::from_millis(1));
            }
            _ => {}
        }
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::{Sender, channel};

    /// As good as for ever.
    const LONG: Duration = Duration::from_secs(20);

    struct Counting<F> {
        turn: F,
    }

    impl<F: FnMut() -> Turn + Send + 'static> Station for Counting<F> {
        fn turn(&mut self) -> Turn {
            (self.turn)()
        }
    }

    fn start<F: FnMut() -> Turn + Send + 'static>(
        turn: F,
    ) -> (Arc<Mutex<Counting<F>>>, std::net::UdpSocket, DriverThread) {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let station = Arc::new(Mutex::new(Counting { turn }));
        let thread = DriverThread::start(&station, socket.try_clone().unwrap()).unwrap();
        (station, socket, thread)
    }

    /// A turn that reads everything and tells what.
    fn reading(socket: std::net::UdpSocket, told: Sender<usize>) -> impl FnMut() -> Turn {
        move || {
            let mut buffer = [0; 64];
            told.send(std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count()).unwrap();
            Turn::Wait(LONG)
        }
    }

    #[test]
    fn turns_come_for_datagrams_for_wakes_and_for_what_is_due() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (sender, turns) = channel();
        let station = Arc::new(Mutex::new(Counting { turn: reading(socket.try_clone().unwrap(), sender) }));
        let thread = DriverThread::start(&station, socket.try_clone().unwrap()).unwrap();
        assert_eq!(turns.recv_timeout(LONG), Ok(0), "the first is at once");
        for _ in 0..10 {
            let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            other.send_to(b"a", socket.local_addr().unwrap()).unwrap();
            while turns.recv_timeout(LONG).unwrap() == 0 {}
        }
        while turns.try_recv().is_ok() {}
        thread.wake();
        assert_eq!(turns.recv_timeout(LONG), Ok(0));
        thread.stop();
        assert_eq!(thread.failure(), None);
    }

    #[test]
    fn a_thread_goes_on_while_there_is_more_and_ends_when_all_is_over() {
        let mut left = 5;
        let (station, _, thread) = start(move || {
            left -= 1;
            if left > 0 { Turn::Pause(Duration::from_micros(10)) } else { Turn::Over }
        });
        let handle = thread.thread.lock().unwrap().take().unwrap();
        handle.join().unwrap();
        assert_eq!(Arc::strong_count(&station), 1);
    }

    #[test]
    fn a_thread_ends_with_what_holds_it_and_with_its_station() {
        let (station, _, thread) = start(|| Turn::Wait(LONG));
        drop(thread);
        assert_eq!(Arc::weak_count(&station), 0, "its thread is gone");
        let (station, _, thread) = start(|| Turn::Wait(LONG));
        drop(station);
        thread.wake();
        let handle = thread.thread.lock().unwrap().take().unwrap();
        handle.join().unwrap();
    }

    #[test]
    fn a_pause_ends_when_the_thread_is_to_end() {
        let (sender, turns) = channel();
        let (_station, _, thread) = start(move || {
            sender.send(()).unwrap();
            Turn::Pause(LONG)
        });
        turns.recv_timeout(LONG).unwrap();
        thread.wake();
        let before = std::time::Instant::now();
        thread.stop();
        assert!(before.elapsed() < LONG / 2);
        assert!(turns.try_recv().is_err(), "no wake ends it");
    }

    #[test]
    fn a_panic_is_kept_for_who_asks() {
        // Not printed, as a panic would be.
        let (_station, _, thread) = start(|| std::panic::resume_unwind(Box::new("broken on purpose")));
        let handle = thread.thread.lock().unwrap().take().unwrap();
        handle.join().unwrap();
        assert_eq!(thread.failure(), Some("broken on purpose"));
    }
}
