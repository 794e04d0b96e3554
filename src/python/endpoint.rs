//! The shared part of servers and clients: the sans-IO core and its driver behind one lock, the two halves of a tick
//! around them, and the priority hook between.
//!
//! Promises: the lock is held briefly, never while Python runs; a wrong hook never costs the tick's packets. With a
//! driver's thread, everything except hooks and Python objects goes on without the game.

use std::sync::atomic::AtomicU32;

use crate::python::prelude::*;

use super::calls::Desk;
use super::forks::Process;
use super::ghosts::{self, Population};
use super::kind::EndpointKind;
use super::randomness::{network_id_key, visit_seed};
use super::rendezvous;
use crate::driver::udp::UdpSocket;
use crate::driver::{Carrier, Poller};
use crate::endpoint::PeerStats;
use crate::replication::Copies;
use crate::session::Ghosts;

/// Replaces the count once it has sent, or a thread does.
pub(super) const SENT: u32 = u32::MAX;

pub(super) struct Endpoint {
    pub(super) kind: &'static EndpointKind,
    /// Whether a player's doings raise in calls that name the player.
    pub(super) strict: bool,
    /// Whether the game has ticked it in any way.
    pub(super) ticked: AtomicBool,
    /// How often it received before it first sent; [`SENT`] afterwards.
    pub(super) received_alone: AtomicU32,
    pub(super) address: Address,
    pub(super) protocol: Py<Protocol>,
    pub(super) factory: Option<Py<PyAny>>,
    pub(super) priority: Option<Py<PyAny>>,
    /// The network whose time it has, instead of the system's.
    pub(super) network: Option<Py<SimulatedNetwork>>,
    /// The ghosts of the protocol's classes.
    pub(super) population: Arc<Population>,
    pub(super) copies: Copies,
    /// Its waiting calls, if its protocol has calls.
    pub(super) desk: Option<Arc<Desk>>,
    /// Candidates refer to it while their hook runs.
    pub(super) state: Arc<Shared<State>>,
    /// None while objects are being made of it.
    pub(super) pending: Mutex<Option<Box<Pending>>>,
    /// The peer whose port carries its datagrams, if players host the game.
    pub(super) carrier: Option<Weak<Shared<State>>>,
}

impl Endpoint {
    pub(super) fn new(
        py: Python<'_>,
        host: Host,
        driver: Driver,
        protocol: Py<Protocol>,
        settings: Settings<'_>,
    ) -> PyResult<Self> {
        let address = Address(driver.local_address());
        // A fork copies a virtual network with all its endpoints.
        let process = driver.socket().map(|_| Process::current(py)).transpose()?;
        let Settings { kind, tuning, debugging, hooks, pending, made, simulated: network, .. } = settings;
        let (tuning, strict) = (tuning.get(), debugging.get().strict);
        let socket = driver.socket().filter(|_| tuning.is_threaded());
        let poller = socket.map(|socket| Poller::new(socket.handle()?)).transpose();
        let poller = poller.map_err(|error| os_error(py, &error, address.0))?;
        let seed = visit_seed(network.is_some(), driver.now());
        let (core, classes) = (&protocol.get().core, protocol.get().ghost_classes.as_ref());
        let roles = match kind.has_world {
            true => (ghosts::part(classes, core, kind.is_server, seed), protocol.get().time.as_ref()),
            false => (Ghosts::None, None),
        };
        let state = State::new(host, driver, roles, hooks);
        let state = Shared::new(py, kind.name, state, poller, process)?;
        let server = kind.is_server.then(|| Arc::downgrade(&state));
        let population = Population::new(
            py,
            &protocol.get().ghosts,
            &protocol.get().references,
            network_id_key(network.is_some()),
            server,
            &made,
        );
        let population = Arc::new(population?);
        let desk = (!protocol.get().calls.is_empty()).then(|| {
            let (weak, population) = (Arc::downgrade(&state), population.clone());
            let counts = state.lock().map(|state| state.calls.clone());
            counts.map(|counts| Arc::new(Desk::new(py, &protocol, kind, counts, weak, population)))
        });
        let desk = desk.transpose()?;
        Ok(Endpoint {
            kind,
            desk,
            population,
            copies: Copies::default(),
            strict,
            ticked: AtomicBool::new(false),
            received_alone: AtomicU32::new(if tuning.is_threaded() { SENT } else { 0 }),
            address,
            protocol,
            factory: tuning.factory.as_ref().map(|factory| factory.clone_ref(py)),
            priority: tuning.priority.as_ref().map(|priority| priority.clone_ref(py)),
            network,
            state,
            pending: Mutex::new(Some(Box::new(pending))),
            carrier: None,
        })
    }

    /// Runs `work` on the endpoint and its driver.
    ///
    /// # Errors
    /// The endpoint is closed.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Host, &mut Driver) -> T) -> PyResult<T> {
        let mut state = self.state.lock()?;
        let parts = state.carrier.parts().filter(|(session, _)| !session.is_lingering());
        let (session, driver) = parts.ok_or_else(|| self.closed_error())?;
        Ok(work(session.change(), driver))
    }

    /// The exception for a message that a peer's connection refuses.
    pub(super) fn send_error(&self, class: &str, channel: usize, error: SendError) -> PyErr {
        match error {
            SendError::NotConnected => (self.kind.missing)(),
            SendError::Refused(error) => channel_error(class, channel, &error),
        }
    }

    /// The statistics of a peer's connection, or those at its `end` if that was long ago; before its beginning, all
    /// zeros.
    pub(super) fn stats(&self, peer: PeerHandle, end: Option<&PeerStats>) -> PyResult<ConnectionStats> {
        let stats = {
            let state = self.state.lock()?;
            let host = state.host();
            let known = host.peer_stats(peer).or_else(|| end.cloned());
            known.unwrap_or_else(|| host.fresh_stats())
        };
        Ok(ConnectionStats::new(stats, &self.protocol.get().core))
    }

    /// Whether the next receive has something for the game.
    pub(super) fn has_news(&self) -> PyResult<bool> {
        let mut state = self.state.lock()?;
        let ghosts_changed = state.carrier.session.ghosts().has_news();
        let now = state.carrier.driver().map_or(Instant::ZERO, Driver::now);
        let due = self.desk.as_ref().and_then(|desk| desk.deadline()).is_some_and(|at| at <= now);
        Ok(ghosts_changed || due || state.host().has_news() || state.transfers.has_news() || state.unfinished)
    }

    /// Whether a loop should call [`Endpoint::step`] between ticks, because chunks are under way and no thread moves them.
    pub(super) fn moves_chunks(&self) -> PyResult<bool> {
        Ok(!self.state.is_threaded() && self.state.lock()?.host().moves_chunks())
    }

    /// The time of its driver.
    pub(super) fn now(&self) -> PyResult<Instant> {
        Ok(Carrier::now(&self.state.lock()?.carrier))
    }

    /// What an event loop waits on: the socket, or, for a server, a descriptor that moderates wakes.
    pub(super) fn fileno(&self, py: Python<'_>) -> PyResult<i64> {
        if self.state.is_threaded() {
            let sentence = format!(
                "the {} has a thread, which waits for its socket: make it with driver='polled' to wait yourself",
                self.kind.name
            );
            return Err(PyValueError::new_err(sentence));
        }
        // A process may have a thousand clients, for each of which another descriptor would cost more than it saves.
        let number = self.with(|_, driver| match self.kind.is_server {
            true => driver.wake_number(),
            false => Ok(driver.socket().map(UdpSocket::number)),
        })?;
        let number = number.map_err(|error| os_error(py, &error, self.address.0))?;
        let sentence = || match self.network {
            Some(_) => format!(
                "the {} is on a simulated network and has no socket: tick it, and advance the network",
                self.kind.name
            ),
            None => "the client is local and has no socket: tick it after its server".into(),
        };
        number.ok_or_else(|| PyValueError::new_err(sentence()))
    }

    pub(super) fn closed(&self) -> PyResult<bool> {
        Ok(self.state.lock()?.is_closed())
    }

    pub(super) fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = self.state.lock()?.counted();
        counts(py, counted.iter().map(|(layer, name, count)| (format!("{layer}.{name}"), count)))
    }

    /// Names it in log lines.
    pub(super) fn described(&self) -> String {
        let (name, address) = (self.kind.name, self.address.0);
        let Ok(state) = self.state.lock() else { return name.into() };
        match state.host().dials().next() {
            Some(dial) => {
                let server = rendezvous::described(dial.netcode.server_address());
                format!("the {name} at {address} of {server}")
            }
            None => format!("the {name} at {address}"),
        }
    }

    /// The network whose time it has, instead of the system's.
    pub(super) fn virtual_network(&self) -> Option<VirtualNetwork> {
        self.network.as_ref().map(|network| network.get().0.clone())
    }

    pub(super) fn closed_error(&self) -> PyErr {
        closed_error(self.kind.name)
    }
}

holds!(Endpoint: protocol, factory, priority, desk, pending);
