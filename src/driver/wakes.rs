//! The descriptor that an event loop waits on for a busy server: an epoll of the socket and of a timer.
//!
//! Promises: it is readable as soon as something waits in the socket, or, while datagrams [gather](super::moderation), at
//! most an interval later, until it is read; and at once where a call's bound left some. Level-triggered and
//! edge-triggered waits both work. Linux only: elsewhere the socket is what to wait on.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::moderation::{INTERVAL, Moderation};
use crate::time::{Duration, Instant};

/// Wakes for one socket, which outlives it.
#[derive(Debug)]
pub(super) struct Wakes {
    epoll: OwnedFd,
    timer: OwnedFd,
    socket: RawFd,
    /// Whether a datagram wakes.
    watches: bool,
    /// Since when the timer wakes, or from when on.
    fires_at: Option<Instant>,
    moderation: Moderation,
}

impl Wakes {
    /// Wakes for this socket, at each of its datagrams for now.
    ///
    /// # Errors
    ///
    /// When the system has no descriptors to spare.
    pub(super) fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: it takes no memory, and the new descriptor is nobody else's.
        let epoll = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
        // SAFETY: as above.
        let timer = unsafe {
            owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC))
        }?;
        control(&epoll, libc::EPOLL_CTL_ADD, timer.as_raw_fd(), libc::EPOLLIN)?;
        control(&epoll, libc::EPOLL_CTL_ADD, socket.as_raw_fd(), libc::EPOLLIN)?;
        let socket = socket.as_raw_fd();
        Ok(Wakes { epoll, timer, socket, watches: true, fires_at: None, moderation: Moderation::default() })
    }

    /// The number of the descriptor to wait on.
    pub(super) fn number(&self) -> i64 {
        self.epoll.as_raw_fd().into()
    }

    /// This many datagrams were read; whether more wait.
    pub(super) fn note_read(&mut self, now: Instant, datagrams: usize, more_waits: bool) {
        let gathers = self.moderation.note_read(now, u32::try_from(datagrams).unwrap_or(u32::MAX));
        let armed = if more_waits {
            self.arm(now, Some(Duration::ZERO))
        } else if !gathers {
            self.arm(now, None)
        } else if self.fires_at.is_none_or(|at| at <= now) {
            self.arm(now, Some(INTERVAL))
        } else {
            Ok(())
        };
        // If the system refuses, each datagram wakes.
        let watches = !gathers || armed.is_err();
        if watches != self.watches {
            let events = if watches { libc::EPOLLIN } else { 0 };
            if control(&self.epoll, libc::EPOLL_CTL_MOD, self.socket, events).is_ok() {
                self.watches = watches;
            }
        }
    }

    /// Has the timer wake after some time, or not at all.
    fn arm(&mut self, now: Instant, after: Option<Duration>) -> io::Result<()> {
        if after.is_none() && self.fires_at.is_none() {
            return Ok(());
        }
        // SAFETY: integers, for which zeros are valid.
        let mut setting: libc::itimerspec = unsafe { zeroed() };
        // A time of zero would mean never.
        let nanos = after.map_or(0, |after| after.max(Duration::from_nanos(1)).subsec_nanos());
        setting.it_value.tv_nsec = nanos.cast_signed().into();
        // SAFETY: the system only reads the setting, which is in this frame.
        let result =
            unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &raw const setting, ptr::null_mut()) };
        succeeded(result)?;
        self.fires_at = after.map(|after| now + after);
        Ok(())
    }
}

/// Adds a descriptor to an epoll, or changes the events for which it wakes.
fn control(epoll: &OwnedFd, operation: c_int, of: RawFd, events: c_int) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: 0 };
    // SAFETY: the system only reads the event, which is in this frame.
    succeeded(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, of, &raw mut event) })
}

/// The owner of a descriptor that the system has just made.
///
/// # Safety
///
/// Nobody else may own it.
unsafe fn owned(made: c_int) -> io::Result<OwnedFd> {
    succeeded(made.min(0))?;
    // SAFETY: it is open, and the caller vouches that nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

fn succeeded(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// Practically forever, for a test.
    const LONG: Duration = Duration::from_secs(20);

    struct Busy {
        wakes: Wakes,
        socket: UdpSocket,
        now: Instant,
    }

    impl Busy {
        fn new() -> Self {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            Busy { wakes: Wakes::new(socket.as_fd()).unwrap(), socket, now: Instant::from_millis(1_000) }
        }

        /// As if it had read many datagrams for some time.
        fn make_busy(&mut self) {
            for _ in 0..2 {
                self.pass(10_000, false);
            }
            assert!(!self.wakes.watches);
        }

        /// Reads this many datagrams, as it seems, 10 milliseconds after the last ones.
        fn pass(&mut self, datagrams: usize, more_waits: bool) {
            self.now += Duration::from_millis(10);
            self.wakes.note_read(self.now, datagrams, more_waits);
        }

        fn send(&self) {
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.send_to(b"a", self.socket.local_addr().unwrap()).unwrap();
        }

        fn is_woken(&self, within: Duration) -> bool {
            let mut polled =
                libc::pollfd { fd: self.wakes.number() as RawFd, events: libc::POLLIN, revents: 0 };
            // SAFETY: the system writes to this one entry, in this frame.
            unsafe { libc::poll(&raw mut polled, 1, within.as_millis() as c_int) == 1 }
        }
    }

    #[test]
    fn a_datagram_wakes_at_once_until_it_is_read() {
        let mut quiet = Busy::new();
        assert!(!quiet.is_woken(Duration::ZERO));
        quiet.send();
        assert!(quiet.is_woken(LONG) && quiet.is_woken(Duration::ZERO));
        assert_eq!(quiet.socket.recv(&mut [0; 8]).unwrap(), 1);
        quiet.pass(1, false);
        assert!(!quiet.is_woken(Duration::ZERO));
    }

    #[test]
    fn a_busy_server_is_woken_after_an_interval_until_it_reads() {
        let mut busy = Busy::new();
        let before = std::time::Instant::now();
        busy.make_busy();
        busy.send();
        assert!(busy.is_woken(LONG) && before.elapsed() >= INTERVAL);
        assert!(busy.is_woken(Duration::ZERO), "it hasn't read");
    }

    #[test]
    fn what_came_while_datagrams_gathered_wakes_once_they_do_no_more() {
        let mut busy = Busy::new();
        busy.make_busy();
        busy.send();
        // As if the datagram had come right after this read.
        busy.pass(0, false);
        assert!(busy.wakes.watches && busy.wakes.fires_at.is_none());
        assert!(busy.is_woken(LONG));
        assert_eq!(busy.socket.recv(&mut [0; 8]).unwrap(), 1);
        assert!(!busy.is_woken(Duration::ZERO), "the timer has stopped");
    }

    #[test]
    fn what_a_bound_left_wakes_at_once_though_the_socket_is_empty() {
        let mut busy = Busy::new();
        busy.pass(64, true);
        assert!(busy.is_woken(LONG));
        busy.pass(1, false);
        assert!(!busy.is_woken(Duration::ZERO));
        busy.make_busy();
        busy.pass(10_000, true);
        assert!(busy.is_woken(LONG));
    }

    #[test]
    fn a_read_between_two_wakes_leaves_the_next_one_where_it_is() {
        let mut busy = Busy::new();
        busy.make_busy();
        let fires_at = busy.wakes.fires_at;
        busy.wakes.note_read(busy.now + INTERVAL / 2, 10, false);
        assert_eq!(busy.wakes.fires_at, fires_at);
        busy.wakes.note_read(busy.now + INTERVAL, 10, false);
        assert_eq!(busy.wakes.fires_at, Some(busy.now + INTERVAL + INTERVAL));
    }
}
