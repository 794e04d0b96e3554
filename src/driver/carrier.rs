//! A session and the driver that carries its datagrams, until it is closed.
//!
//! Promises: a turn is bounded; closing sends the goodbyes, once, and nothing after that.

use std::io;

use super::gathering::Gathering;
use super::polled::{Driver, DriverCounters};
use super::threaded::Next;
use super::udp::DEFAULT_RECEIVE_BOUND;
use crate::endpoint::{Dial, DisconnectReason, Goodbye, PeerHandle};
use crate::netcode;
use crate::rendezvous::{LobbyRefusal, MeetingFault, RendezvousClient, lobby_address};
use crate::session::Session;
use crate::time::{Duration, Instant};

/// Datagrams read in one turn between ticks: some 100 microseconds that a call of the game may have to wait.
pub(super) const READ_BOUND: usize = 64;

/// How long a thread leaves a socket alone that raised an error.
pub const AFTER_ERROR: Duration = Duration::from_millis(100);

/// A receive so soon after a step that emptied the socket doesn't ask the system again: an event loop calls one right
/// after the other.
const JUST_EMPTIED: Duration = Duration::from_micros(100);

/// A session and its driver.
pub struct Carrier {
    pub session: Session,
    // None once closed.
    driver: Option<Driver>,
    /// The driver's counters and the time at which it was closed.
    counters: DriverCounters,
    closed_at: Instant,
    gathering: Gathering,
    /// Until when the next receive has nothing to read, because a step has just read everything.
    read_until: Instant,
    /// The time at the last receive or step.
    read_at: Instant,
    /// The driver listens for reports that nothing listens where we dial.
    watching: bool,
}

impl Carrier {
    /// A carrier of a new session.
    pub fn new(session: Session, mut driver: Driver) -> Self {
        let watching = session.host().dials().any(Dial::is_pending);
        if watching {
            driver.watch_refusals(true);
        }
        Carrier {
            session,
            driver: Some(driver),
            counters: DriverCounters::default(),
            closed_at: Instant::ZERO,
            gathering: Gathering::default(),
            read_until: Instant::ZERO,
            read_at: Instant::ZERO,
            watching,
        }
    }

    /// [`Session::redial`] of this session; None once closed.
    pub fn redial(&mut self, netcode: netcode::Client) -> Option<PeerHandle> {
        let (session, driver) = self.parts()?;
        driver.watch_refusals(true);
        let peer = session.redial(netcode);
        self.watching = true;
        Some(peer)
    }

    /// The driver; None once closed.
    pub fn driver(&self) -> Option<&Driver> {
        self.driver.as_ref()
    }

    /// Whether nothing is sent any more.
    pub fn is_closed(&self) -> bool {
        self.driver.is_none()
    }

    /// The driver's counters, also after closing.
    pub fn counters(&self) -> DriverCounters {
        self.driver.as_ref().map_or(self.counters, Driver::counters)
    }

    /// The driver's time; once closed, when that was.
    pub fn now(&self) -> Instant {
        self.driver.as_ref().map_or(self.closed_at, Driver::now)
    }

    /// The driver's time at the last receive or step, without a look at the clock.
    pub fn read_at(&self) -> Instant {
        self.read_at
    }

    /// The session with its driver, for an action that may send; None once closed.
    pub fn parts(&mut self) -> Option<(&mut Session, &mut Driver)> {
        Some((&mut self.session, self.driver.as_mut()?))
    }

    /// Passes the waiting datagrams to the session; not those that came within [`JUST_EMPTIED`] of a step.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::receive`].
    pub fn receive(&mut self) -> io::Result<()> {
        self.tell_ways();
        let read_until = core::mem::replace(&mut self.read_until, Instant::ZERO);
        if read_until > Instant::ZERO {
            self.read_at = self.now();
            if self.read_at < read_until {
                return Ok(());
            }
        }
        let Carrier { session, driver, gathering, read_at, .. } = self;
        let Some(driver) = driver else { return Ok(()) };
        let mut largest = 0;
        let received = driver.receive_at_most(DEFAULT_RECEIVE_BOUND, |now, unix, from, datagram, out| {
            largest = largest.max(datagram.len());
            session.handle_datagram(now, unix, from, datagram, out);
        });
        *read_at = driver.now();
        if matches!(received, Ok(false)) {
            gathering.note_emptied(*read_at);
        }
        gathering.note_largest(*read_at, largest);
        self.hear_refusals();
        received.map(drop)
    }

    /// [`Session::take_inputs`] of this session.
    pub fn take_inputs(&mut self) {
        let Carrier { session, driver, closed_at, .. } = self;
        session.take_inputs(|| driver.as_ref().map_or(*closed_at, Driver::now));
    }

    /// Gives a peer the address of its code, by which all reach it, and the players that carry for it. Gives the
    /// rendezvous the number of players, and a client the news that its code can't be reached.
    fn tell_ways(&mut self) {
        let Carrier { driver: Some(driver), session, .. } = self else { return };
        if let Some(peers) = session.peers() {
            if let Some(relay) = driver.member_relay() {
                peers.tell_neighbours(relay);
            }
            if let Some(hosted) = driver.hosted() {
                hosted.set_players(peers.mesh().identity(), peers.neighbours());
            }
        }
        if driver.rendezvous().is_none() {
            return;
        }
        let now = driver.now();
        let Some(client) = driver.rendezvous() else { return };
        if let Some(peers) = session.peers() {
            client.set_players(now, peers.mesh().roster().members.len() as u8);
            client.code().into_iter().for_each(|code| peers.mesh_mut().set_address(lobby_address(code)));
        } else if session.host().listener().is_some() {
            let clients = session.host().connected().count();
            client.set_players(now, clients.try_into().unwrap_or(u8::MAX));
        }
        tell_faults(now, session, client);
    }

    /// Reports unreachable servers to the session. Once a server has answered, reports are ignored: they come from
    /// the network, and must not end a connection.
    fn hear_refusals(&mut self) {
        let Some(driver) = self.driver.as_mut().filter(|_| self.watching) else { return };
        let is_pending = |session: &Session| session.host().dials().any(Dial::is_pending);
        for _ in 0..READ_BOUND {
            let Some(address) = driver.refused().filter(|_| is_pending(&self.session)) else { break };
            self.session.change().note_unreachable(driver.now(), address);
        }
        if !is_pending(&self.session) {
            driver.watch_refusals(false);
            self.watching = false;
        }
    }

    /// Sends the session's datagrams for a tick. Does nothing once closed.
    pub fn transmit(&mut self) {
        if let Some((session, driver)) = self.parts() {
            driver.transmit(|now, out| session.transmit(now, out));
        }
        self.end_linger();
    }

    /// Sends what the server and the client of the game that players host have queued on this port. Does nothing once
    /// closed.
    pub fn pass_hosted(&mut self) {
        self.tell_ways();
        if let Some(driver) = &mut self.driver {
            driver.transmit(|_, _| ());
        }
    }

    /// Like [`Carrier::step`], for a thread that does nothing else: it lets datagrams gather.
    ///
    /// # Errors
    ///
    /// Those of [`Carrier::step`].
    pub fn turn(&mut self) -> io::Result<Next> {
        // First, because a game that polls all the time leaves nothing to read.
        if let Some(pause) = self.gathering_pause() {
            return Ok(Next::Pause(pause));
        }
        let stepped = self.step();
        // A game that receives beside a thread gets what came until then.
        self.read_until = Instant::ZERO;
        Ok(match stepped? {
            Next::Wait(wait) => self.gathering_pause().map_or(Next::Wait(wait), Next::Pause),
            turn => turn,
        })
    }

    fn gathering_pause(&self) -> Option<Duration> {
        self.gathering.pause(self.driver.as_ref()?.now())
    }

    /// Does what needn't wait for a tick of the game, for a bounded time, and returns when there is more to do.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::receive`]. Pending datagrams were sent all the same.
    pub fn step(&mut self) -> io::Result<Next> {
        self.hear_refusals();
        self.tell_ways();
        let Carrier { session, driver, gathering, read_until, read_at, .. } = self;
        let Some(driver) = driver else { return Ok(Next::Over) };
        let (mut read, mut largest) = (false, 0);
        let received = driver.receive_at_most(READ_BOUND, |now, unix, from, datagram, out| {
            (read, largest) = (true, largest.max(datagram.len()));
            session.handle_datagram(now, unix, from, datagram, out);
        });
        let more_waits = matches!(received, Ok(true));
        let received_at = driver.now();
        *read_at = received_at;
        // A virtual network's time stands still from one call to the next, and a local client may send in between.
        let emptied = matches!(received, Ok(false)) && driver.socket().is_some() && !driver.has_locals();
        *read_until = if emptied { received_at + JUST_EMPTIED } else { Instant::ZERO };
        let meets = driver.rendezvous().is_some();
        if meets || session.is_lingering() || gathering.asks(received_at, more_waits) {
            let sent = driver.transmit_at(received_at, |now, out| {
                session.transmit_between(now, out);
                out.entries().iter().map(|(_, bytes)| bytes.len()).max()
            });
            largest = largest.max(sent.unwrap_or(0));
        }
        gathering.note_largest(received_at, largest);
        let turn = received.map(|more_waits| {
            if more_waits {
                return Next::Again;
            }
            if read {
                gathering.note_emptied(received_at);
            }
            // Only now, because computing it visits each peer.
            let due = session.next_deadline().min(driver.next_delivery());
            gathering.note_due(due);
            // Sending took time.
            Next::Wait(due - driver.now())
        });
        self.end_linger();
        turn.map(|turn| if self.is_closed() { Next::Over } else { turn })
    }

    /// Ends the connections, or begins to, if they linger longer than now: returns for how long at most, because of this
    /// call or an earlier one.
    pub fn begin_close(&mut self, goodbye: Goodbye) -> Option<Duration> {
        let (session, driver) = self.parts()?;
        let lingers = driver.transmit(|now, out| session.begin_close(now, goodbye, out));
        self.end_linger();
        lingers
    }

    /// Ends the connections with their goodbyes, and the driver.
    pub fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.session.change().close(now, out));
        driver.finish();
        (self.counters, self.closed_at) = (driver.counters(), driver.now());
    }

    /// Ends the driver without a word.
    pub fn discard(&mut self) {
        self.driver = None;
    }

    /// Closes a session that is done lingering.
    fn end_linger(&mut self) {
        let lingers = self.session.is_lingering();
        if lingers && self.driver.as_ref().is_some_and(|driver| self.session.has_lingered(driver.now())) {
            self.close();
        }
    }
}

/// Ends dials whose code can't be reached.
fn tell_faults(now: Instant, session: &mut Session, client: &RendezvousClient) {
    let faults = session.host().dials().filter(|dial| dial.is_pending());
    let faults = faults.filter_map(|dial| Some((dial.peer, client.fault_of(dial.netcode.server_address())?)));
    for (peer, fault) in faults.collect::<Vec<_>>() {
        session.change().note_no_way(now, peer, reason_of(fault), fault.to_string());
    }
}

fn reason_of(fault: MeetingFault) -> DisconnectReason {
    match fault {
        MeetingFault::Refused(LobbyRefusal::UnknownCode) => DisconnectReason::UnknownCode,
        MeetingFault::Refused(LobbyRefusal::Protocol) => DisconnectReason::ProtocolMismatch,
        MeetingFault::Refused(LobbyRefusal::GameFull) => DisconnectReason::ServerFull,
        MeetingFault::Refused(LobbyRefusal::ServerFull) | MeetingFault::Silent | MeetingFault::NoPath => {
            DisconnectReason::NoPath
        }
    }
}
