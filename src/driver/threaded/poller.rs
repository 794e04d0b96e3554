//! What ends a thread's wait: a datagram, or a waker.
//!
//! Promises: waking while nobody waits ends the next wait.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::time::Duration;

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);

/// Waits for a socket and for `PollWaker`s.
#[derive(Debug)]
pub struct Poller {
    poll: Poll,
    socket: UdpSocket,
    events: Events,
    waker: Arc<Waker>,
}

#[derive(Clone, Debug)]
pub(super) struct PollWaker(Arc<Waker>);

impl Poller {
    /// A poller for `socket`, a second handle of the service's socket.
    ///
    /// # Errors
    ///
    /// When the system has no resources for it.
    pub fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut socket = UdpSocket::from_std(socket);
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE)?;
        Ok(Poller { poll, socket, events: Events::with_capacity(2), waker })
    }

    pub(super) fn waker(&self) -> PollWaker {
        PollWaker(Arc::clone(&self.waker))
    }

    /// Waits, for this long at most. True if a datagram ended the wait. A signal ends it too.
    ///
    /// # Errors
    ///
    /// When the system can't wait: never seen.
    pub fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        // The service reads the socket through another handle, so only re-registering makes it report again on all
        // systems.
        let was_ready = self.events.iter().any(|event| event.token() == SOCKET);
        let registry = self.poll.registry();
        let armed = if was_ready {
            registry.reregister(&mut self.socket, SOCKET, Interest::READABLE)
        } else {
            Ok(())
        };
        match armed.and_then(|()| self.poll.poll(&mut self.events, Some(longest))) {
            Ok(()) => Ok(self.events.iter().any(|event| event.token() == SOCKET)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl PollWaker {
    pub(super) fn ring(&self) {
        // If that fails, the wait ends when it has lasted for long enough.
        let _sooner = self.0.wake();
    }
}
