//! Several sessions on one port: a server and clients of other servers, as in a peer-to-peer game.
//!
//! Promises: each datagram goes to its session as it is read, whichever session's turn it is: by a [`Router`]. One
//! session is ticked and closed independently of the others.

use std::collections::BTreeMap;
use std::io;

use super::carrier::{AFTER_ERROR, READ_BOUND};
use super::polled::{Driver, DriverCounters};
use super::router::{MemberId, Router};
use super::threaded::{Next, Service};
use super::udp::DEFAULT_RECEIVE_BOUND;
use crate::endpoint::Host;
use crate::session::Session;
use crate::time::Instant;

/// A port and the sessions on it.
pub struct Hub {
    driver: Driver,
    router: Router,
    sessions: BTreeMap<MemberId, Session>,
    unrouted: u64,
    /// A socket's error in a turn of a thread.
    failed: Option<io::Error>,
    closed: bool,
}

impl Hub {
    /// A hub without sessions.
    pub fn new(driver: Driver) -> Self {
        Hub {
            driver,
            router: Router::default(),
            sessions: BTreeMap::new(),
            unrouted: 0,
            failed: None,
            closed: false,
        }
    }

    /// Adds a session, which gets datagrams from the servers it dials; a listening session gets all others.
    ///
    /// # Errors
    ///
    /// When another session listens, or dials the same server. The session is dropped then.
    pub fn add(&mut self, session: Session) -> io::Result<MemberId> {
        let in_use = |what: String| io::Error::new(io::ErrorKind::AddrInUse, what);
        let member = match session.host().listener() {
            Some(_) => self.router.add_listener(),
            None => Some(self.router.add()),
        };
        let member = member.ok_or_else(|| in_use("another session listens on this port".into()))?;
        if let Some(server) = self.router.set_routes(member, dialled(session.host())) {
            self.router.remove(member);
            return Err(in_use(format!("another session on this port dials {server}")));
        }
        self.sessions.insert(member, session);
        Ok(member)
    }

    /// A session, for queries and changes; None once closed.
    pub fn session(&mut self, member: MemberId) -> Option<&mut Session> {
        self.sessions.get_mut(&member)
    }

    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The port's counters, and the number of datagrams for no session.
    pub fn counters(&self) -> (DriverCounters, u64) {
        (self.driver.counters(), self.unrouted)
    }

    /// Passes the waiting datagrams to their sessions.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::receive`].
    pub fn receive(&mut self) -> io::Result<()> {
        self.receive_at_most(DEFAULT_RECEIVE_BOUND).map(drop)
    }

    fn receive_at_most(&mut self, bound: usize) -> io::Result<bool> {
        let Hub { driver, router, sessions, unrouted, .. } = self;
        driver.receive_at_most(bound, |now, unix, from, datagram, out| {
            match router.route(from).and_then(|member| sessions.get_mut(&member)) {
                Some(session) => session.handle_datagram(now, unix, from, datagram, out),
                None => *unrouted += 1,
            }
        })
    }

    /// Sends one session's datagrams for a tick.
    pub fn transmit(&mut self, member: MemberId) {
        let Some(session) = self.sessions.get_mut(&member) else { return };
        self.driver.transmit(|now, out| session.transmit(now, out));
        // It may dial another server now.
        self.router.set_routes(member, dialled(session.host()));
    }

    /// Does what needn't wait for a tick, for all sessions, and returns when there is more to do.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::receive`]. Pending datagrams were sent all the same.
    pub fn turn(&mut self) -> io::Result<Next> {
        let received = self.receive_at_most(READ_BOUND);
        let Hub { driver, router, sessions, .. } = self;
        for (member, session) in &mut *sessions {
            driver.transmit(|now, out| session.transmit_between(now, out));
            router.set_routes(*member, dialled(session.host()));
        }
        let due = sessions.values().map(Session::next_deadline).fold(driver.next_delivery(), Instant::min);
        let wait = due - driver.now();
        Ok(if received? { Next::Again } else { Next::Wait(wait) })
    }

    /// Ends a session's connections with their goodbyes, and its routes. The others go on.
    pub fn close(&mut self, member: MemberId) {
        if let Some(mut session) = self.sessions.remove(&member) {
            self.driver.transmit(|now, out| session.change().close(now, out));
        }
        self.router.remove(member);
    }

    /// The last error of the socket in a turn of a thread.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}

/// A thread keeps all sessions going.
impl Service for Hub {
    fn turn(&mut self) -> Next {
        if self.closed {
            return Next::Over;
        }
        Hub::turn(self).unwrap_or_else(|error| {
            self.failed = Some(error);
            Next::Pause(AFTER_ERROR)
        })
    }

    fn close(&mut self) {
        if !core::mem::replace(&mut self.closed, true) {
            for member in self.sessions.keys().copied().collect::<Vec<_>>() {
                Hub::close(self, member);
            }
            self.driver.finish();
        }
    }

    fn discard(&mut self) {
        self.closed = true;
        self.sessions.clear();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        Service::close(self);
    }
}

/// The servers that a host dials now.
fn dialled(host: &Host) -> impl Iterator<Item = std::net::SocketAddr> + Clone {
    host.dials().filter(|dial| !dial.is_over()).map(|dial| dial.server_address())
}
