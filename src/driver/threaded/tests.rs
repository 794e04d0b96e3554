//! The thread over real sockets. `models` checks every order of its steps and the game's.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Practically forever, for a test.
const LONG: Duration = Duration::from_secs(20);

struct Counting<F> {
    turn: F,
}

impl<F: FnMut() -> Next + Send + 'static> Service for Counting<F> {
    fn turn(&mut self) -> Next {
        (self.turn)()
    }

    fn close(&mut self) {}

    fn discard(&mut self) {}
}

fn start<F: FnMut() -> Next + Send + 'static>(
    turn: F,
) -> (Arc<Mutex<Counting<F>>>, std::net::UdpSocket, DriverThread) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let service = Arc::new(Mutex::new(Counting { turn }));
    let thread = DriverThread::start(&service, Poller::new(socket.try_clone().unwrap()).unwrap()).unwrap();
    (service, socket, thread)
}

/// A turn that reads everything and reports the count.
fn reading(socket: std::net::UdpSocket, counts: Sender<usize>) -> impl FnMut() -> Next {
    move || {
        let mut buffer = [0; 64];
        counts.send(std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count()).unwrap();
        Next::Wait(LONG)
    }
}

#[test]
fn turns_come_for_datagrams_for_wakes_and_for_what_is_due() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let (sender, turns) = channel();
    let service = Arc::new(Mutex::new(Counting { turn: reading(socket.try_clone().unwrap(), sender) }));
    let thread = DriverThread::start(&service, Poller::new(socket.try_clone().unwrap()).unwrap()).unwrap();
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
    let mut left = 15;
    let (service, _, thread) = start(move || {
        left -= 1;
        match left {
            0 => Next::Over,
            1..=2 => Next::Pause(Duration::from_micros(10)),
            _ => Next::Again,
        }
    });
    let handle = thread.thread.lock().unwrap().take().unwrap();
    handle.join().unwrap();
    assert_eq!(Arc::strong_count(&service), 1);
}

#[test]
fn a_thread_that_always_has_more_to_do_leaves_the_lock_to_others() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let service = Counting { turn: || Next::Again };
    let shared = Shared::new(service, Some(Poller::new(socket).unwrap())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..100).for_each(|_| drop(shared.lock().unwrap())));
        }
    });
    shared.close();
}

#[test]
fn a_thread_ends_with_what_holds_it() {
    let (service, _, thread) = start(|| Next::Wait(LONG));
    drop(thread);
    assert_eq!(Arc::strong_count(&service), 1, "its thread is gone");
}

#[test]
fn a_pause_ends_when_the_thread_is_to_end() {
    let (sender, turns) = channel();
    let (_station, _, thread) = start(move || {
        sender.send(()).unwrap();
        Next::Pause(LONG)
    });
    turns.recv_timeout(LONG).unwrap();
    thread.wake();
    let before = std::time::Instant::now();
    thread.stop();
    assert!(before.elapsed() < LONG / 2);
    assert!(turns.try_recv().is_err(), "no wake ends it");
}

/// Panics while another thread waits for the lock.
fn breaking(turns: Sender<()>, breaks: Receiver<()>) -> impl FnMut() -> Next {
    move || {
        turns.send(()).unwrap();
        breaks.recv_timeout(LONG).unwrap();
        // Resumed, so that it isn't printed as a panic would be.
        std::panic::resume_unwind(Box::new("broken on purpose"))
    }
}

#[test]
fn a_panic_is_told_to_all_who_take_the_lock_after_it() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let ((turn_sender, turns), (breaker, breaks)) = (channel(), channel());
    let service = Counting { turn: breaking(turn_sender, breaks) };
    let shared = Shared::new(service, Some(Poller::new(socket).unwrap())).unwrap();
    turns.recv_timeout(LONG).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| shared.lock().map(drop));
        breaker.send(()).unwrap();
        assert_eq!(waits.join().unwrap(), Err("broken on purpose"));
    });
    shared.wake();
    assert_eq!(shared.lock().map(drop), Err("broken on purpose"), "it stays so");
    shared.close();
}
