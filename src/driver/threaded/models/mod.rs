//! Models of a game, its driver's thread and others, whose every interleaving loom tries: `RUSTFLAGS="--cfg loom"
//! cargo test --lib models`.
//!
//! The code is the library's, with loom's locks and threads. A model that hangs in some interleaving fails, because
//! nothing in it ends by the clock. Simple services stand in for endpoints, which share nothing inside.

pub(super) mod poller;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::{Arc, Condvar, Mutex};

use poller::Poller;

use super::{Next, Service, Shared};
use crate::time::Duration;

/// Ended by somebody, or never.
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_micros(100);

/// Tries each interleaving with at most this many preemptions, or all of them if there are few enough. Prints how
/// many there were.
fn model(preemptions: Option<usize>, run: impl Fn() + Send + Sync + 'static) {
    let orders = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = orders.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    println!("{} orders", orders.load(Ordering::Relaxed));
}

/// The outside's view of a service, behind a lock of its own.
#[derive(Debug, Default)]
struct Outside {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Sent to the peer, in this order.
    sent: Vec<u32>,
    turns: usize,
    farewells: usize,
    dropped: bool,
}

impl Outside {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Waits for the thread, without waking it.
    fn wait_until(&self, done: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.lock().unwrap();
        while !done(&seen) {
            seen = self.changed.wait(seen).unwrap();
        }
    }
}

/// A service that sends what the game left in the outbox, and answers each message.
#[derive(Debug)]
struct Echo {
    outside: Arc<Outside>,
    outbox: VecDeque<u32>,
    inbox: Vec<u32>,
    closed: bool,
    /// This many messages a turn.
    bound: usize,
    then: Next,
    /// A turn that begins with this message panics, after it changed something.
    poison: Option<u32>,
    /// Something that a panic leaves untrue.
    whole: bool,
}

impl Echo {
    fn new(outside: &Arc<Outside>) -> Self {
        Echo {
            outside: Arc::clone(outside),
            outbox: VecDeque::new(),
            inbox: Vec::new(),
            closed: false,
            bound: usize::MAX,
            then: Next::Wait(LONG),
            poison: None,
            whole: true,
        }
    }

    fn shared(outside: &Arc<Outside>, set: impl FnOnce(&mut Self)) -> Shared<Self> {
        let mut echo = Echo::new(outside);
        set(&mut echo);
        Shared::new(echo, Some(Poller::default())).unwrap()
    }

    fn work(&mut self, bound: usize) {
        for _ in 0..bound {
            let Some(message) = self.outbox.pop_front() else { return };
            self.outside.change(|seen| seen.sent.push(message));
            self.inbox.push(message);
        }
    }
}

impl Service for Echo {
    fn turn(&mut self) -> Next {
        if self.closed {
            return Next::Over;
        }
        if self.outbox.front().is_some_and(|message| self.poison == Some(*message)) {
            self.whole = false;
            // Not printed, as a panic would be.
            std::panic::resume_unwind(Box::new("broken on purpose"));
        }
        self.work(self.bound);
        self.outside.change(|seen| seen.turns += 1);
        if self.outbox.is_empty() { self.then } else { Next::Again }
    }

    fn close(&mut self) {
        assert!(self.whole);
        if !self.closed {
            self.closed = true;
            self.work(usize::MAX);
            self.outside.change(|seen| seen.farewells += 1);
        }
    }

    fn discard(&mut self) {
        self.closed = true;
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.outside.change(|seen| seen.dropped = true);
    }
}

/// A tick: takes the answers, leaves a message, and wakes the thread.
fn tick(shared: &Shared<Echo>, message: u32, into: &mut Vec<u32>) {
    let mut service = shared.lock().unwrap();
    into.append(&mut service.inbox);
    service.outbox.push_back(message);
    drop(service);
    shared.wake();
}

#[test]
fn each_message_is_sent_once_and_in_order_with_no_other_wake_than_its_own() {
    model(Some(4), || {
        let outside = Arc::default();
        let shared = Echo::shared(&outside, |_| {});
        let mut answers = Vec::new();
        tick(&shared, 1, &mut answers);
        tick(&shared, 2, &mut answers);
        outside.wait_until(|seen| seen.sent.len() == 2);
        answers.append(&mut shared.lock().unwrap().inbox);
        shared.close();
        assert_eq!(answers, [1, 2]);
        assert_eq!(outside.seen().sent, [1, 2]);
    });
}

#[test]
fn a_thread_with_more_to_do_than_one_turn_does_it_all() {
    model(Some(3), || {
        let outside = Arc::default();
        let shared = Echo::shared(&outside, |echo| echo.bound = 1);
        shared.lock().unwrap().outbox.extend([1, 2, 3]);
        shared.wake();
        outside.wait_until(|seen| seen.sent.len() == 3);
        shared.close();
        assert_eq!(outside.seen().sent, [1, 2, 3]);
    });
}

#[test]
fn two_that_wake_the_thread_are_both_served() {
    model(Some(3), || {
        let outside = Arc::default();
        let shared = Arc::new(Echo::shared(&outside, |_| {}));
        let other = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || tick(&other, 1, &mut Vec::new()));
        tick(&shared, 2, &mut Vec::new());
        outside.wait_until(|seen| seen.sent.len() == 2);
        thread.join().unwrap();
        shared.close();
        let mut sent = outside.seen().sent;
        sent.sort_unstable();
        assert_eq!(sent, [1, 2]);
    });
}

#[test]
fn closing_sends_what_is_left_and_ends_the_thread_wherever_it_is() {
    for then in [Next::Wait(LONG), Next::Pause(LONG), Next::Pause(SHORT), Next::Over] {
        model(None, move || {
            let outside = Arc::default();
            let shared = Echo::shared(&outside, |echo| echo.then = then);
            tick(&shared, 1, &mut Vec::new());
            shared.close();
            let closed = outside.seen();
            assert_eq!((closed.sent.as_slice(), closed.farewells), ([1].as_slice(), 1));
            shared.wake();
            shared.close();
            drop(shared);
            assert_eq!(outside.seen(), Seen { dropped: true, ..closed }, "no turn comes later");
        });
    }
}

#[test]
fn whoever_closes_waits_until_the_thread_has_ended() {
    model(Some(4), || {
        let outside: Arc<Outside> = Arc::default();
        let shared = Arc::new(Echo::shared(&outside, |_| {}));
        // The game, and the interpreter's exit.
        let closes = {
            let (shared, outside) = (Arc::clone(&shared), Arc::clone(&outside));
            move || {
                shared.close();
                assert_eq!(Arc::strong_count(&shared.service), 1, "its thread is gone");
                assert_eq!(outside.seen().farewells, 1);
            }
        };
        let other = loom::thread::spawn(closes.clone());
        closes();
        other.join().unwrap();
    });
}

#[test]
fn a_game_that_goes_on_while_another_closes_sees_it_closed() {
    model(Some(4), || {
        let outside = Arc::default();
        let shared = Arc::new(Echo::shared(&outside, |_| {}));
        let other = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || other.close());
        let mut service = shared.lock().unwrap();
        let closed = service.closed;
        if !closed {
            service.outbox.push_back(1);
        }
        drop(service);
        shared.wake();
        thread.join().unwrap();
        // Before it was closed and sent, or after it and refused.
        assert_eq!(outside.seen().sent.len(), usize::from(!closed));
    });
}

#[test]
fn dropping_without_closing_ends_the_thread_and_the_station() {
    model(None, || {
        let outside: Arc<Outside> = Arc::default();
        let shared = Echo::shared(&outside, |_| {});
        shared.lock().unwrap().outbox.push_back(1);
        shared.wake();
        drop(shared);
        assert!(outside.seen().dropped);
    });
}

#[test]
fn what_a_panic_left_behind_is_never_seen() {
    model(Some(5), || {
        let outside = Arc::default();
        let shared = Echo::shared(&outside, |echo| echo.poison = Some(1));
        let mut refused = false;
        for message in 1..=2 {
            match shared.lock() {
                Ok(mut service) => {
                    assert!(service.whole && !refused);
                    service.outbox.push_back(message);
                }
                Err(words) => {
                    assert_eq!(words, "broken on purpose");
                    refused = true;
                }
            }
            shared.wake();
        }
        // Sends a farewell, unless the thread broke it before.
        shared.close();
        let broken = shared.failure().is_some();
        assert_eq!(outside.seen().farewells, usize::from(!broken));
        assert!(broken || !refused);
    });
}
