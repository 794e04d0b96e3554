//! A dedicated server for Python: the sans-IO server and its driver behind one lock.

use core::net::SocketAddr;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::address::{Address, AddressLike};
use super::development;
use super::endpoint::{REPLAY_WINDOW, class_name, entropy, open_driver, send_options};
use super::errors::{ClosedError, StaleClientError, os_error, send_error, value_error};
use super::events::{ClientHandle, Connected, Disconnected};
use super::fields::within;
use super::hooks::{self, Answer, Priorities, Versioned};
use super::inbox::{Endpoint, Fates, Inbox, Packets, Pending, Tick, payload};
use super::lock;
use super::log::{DropLog, Dropped, Level, log, log_end};
use super::network::{Conditions, SimulatedNetwork};
use super::protocol::Protocol;
use super::stats::{ChannelSnapshot, ConnectionStats, Counted, SnapshotColumns};
use super::token::extract_key;
use crate::driver::{Driver, DriverCounters};
use crate::endpoint::{
    self, BudgetError, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, SendError, ServerConfig, ServerEvent,
};
use crate::limits::MAX_CLIENT_SLOTS;
use crate::netcode::{self, USER_DATA_BYTES};
use crate::time::Duration;
use crate::transport::{BudgetConfig, ConnectionConfig};

/// The most seconds a token may be said to live: a year.
const MOST_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The most seconds by which clocks may be said to differ: an hour. Clocks further apart want mending.
const MOST_CLOCK_SKEW: u64 = 3600;

/// A dedicated server on one UDP socket.
///
/// Args:
///     address: where to listen; port 0 picks one (see :attr:`address`).
///     protocol: what both sides share.
///     key: the 32-byte private key shared with the login backend. None: development mode, a well-known
///         key; anyone can connect, so a warning is given unless the address is loopback.
///     max_clients: client slots, 1 to 65,536.
///     public_addresses: what connect tokens call this server, when not its own address.
///     max_token_lifetime: the longest ``expires_in``, in seconds, that the login backend gives to tokens. With it,
///         a token that may have been used before this server's start is refused, and so is one that lives
///         longer. None: neither, and a token used before a restart can be used once more after it.
///     clock_skew: seconds by which the clocks of backend and server may differ. With ``max_token_lifetime``,
///         players can't get in for this long after a start.
///     factory: makes the message objects; None: plain construction.
///     priority: called in each flush in which messages wait whose order is free, with their
///         :class:`Candidates`; returns scores.
///     admission: called with the newcomers of a tick; returns those it refuses.
///     conditions: a bad network to put on all that is sent, for tests. Its rate and its luck are those of one
///         line: all peers share them.
///     seed: makes those conditions repeatable; None: random.
///     network: a simulated network with virtual time instead of a socket.
///
/// Raises:
///     OSError: the address can't be bound; errno says why.
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Server {
    /// Tells the servers of one process apart.
    id: u64,
    address: Address,
    max_clients: usize,
    protocol: Py<Protocol>,
    factory: Option<Py<PyAny>>,
    priority: Option<Py<PyAny>>,
    admission: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    core: Versioned<endpoint::Server>,
    priorities: Priorities,
    /// None once closed.
    driver: Option<Driver>,
    /// Of the driver, once closed.
    driver_counters: DriverCounters,
    drops: DropLog,
    /// None while objects are being made of it.
    pending: Option<Pending>,
    handles: HashMap<endpoint::ClientHandle, Py<ClientHandle>>,
    /// Handles to forget when the messages of their clients are handed over.
    gone: Vec<endpoint::ClientHandle>,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (address, protocol, *, key = None, max_clients = 64, public_addresses = None,
                        max_token_lifetime = None, clock_skew = 0, factory = None, priority = None,
                        admission = None, conditions = None, seed = None, network = None))]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn new(
        py: Python<'_>,
        address: AddressLike,
        protocol: Py<Protocol>,
        key: Option<&[u8]>,
        max_clients: i128,
        public_addresses: Option<Vec<AddressLike>>,
        max_token_lifetime: Option<i128>,
        clock_skew: i128,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        admission: Option<Py<PyAny>>,
        conditions: Option<&Bound<'_, Conditions>>,
        seed: Option<i128>,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        let network = network.map(|network| network.get().0.clone());
        hooks::check(py, "priority", priority.as_ref())?;
        hooks::check(py, "admission", admission.as_ref())?;
        let private_key = key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?;
        let max_clients = within("max_clients", max_clients, 1, MAX_CLIENT_SLOTS)?;
        let lifetime = |seconds| within("max_token_lifetime", seconds, 1, MOST_TOKEN_LIFETIME);
        let max_token_lifetime = max_token_lifetime.map(lifetime).transpose()?;
        let clock_skew = within("clock_skew", clock_skew, 0, MOST_CLOCK_SKEW)?;
        let address = address.0;
        if key.is_none() && network.is_none() && !address.ip().is_loopback() {
            let sentence = format!(
                "the server at {address} has no key: it is in development mode and anyone can connect. \
                 Give it the key it shares with your login backend"
            );
            development::warn(py, sentence)?;
        } else if key.is_some() && public_addresses.is_none() && address.ip().is_unspecified() {
            let sentence = format!(
                "connect tokens can't name a server at {address}: \
                 give public_addresses, the addresses that your tokens have"
            );
            development::warn(py, sentence)?;
        }

        let driver = open_driver(py, address, conditions, seed, network.as_ref())?;
        let address = driver.local_address();
        let mut names = public_addresses
            .map_or_else(|| vec![address], |given| given.into_iter().map(|address| address.0).collect());
        names.push(DEVELOPMENT_ADDRESS);
        let mut settings = netcode::ServerConfig::new(protocol.get().id, private_key, max_clients, names);
        settings.replay_window = REPLAY_WINDOW;
        settings.max_token_lifetime = max_token_lifetime.map(Duration::from_secs);
        settings.clock_skew = Duration::from_secs(clock_skew);
        let connection = ConnectionConfig { packet_fates: true, ..ConnectionConfig::default() };
        let config = ServerConfig { netcode: settings, connection };
        let mut entropy = entropy(network);
        let core = protocol.get().core.clone();
        let core = endpoint::Server::new(config, core, &mut *entropy, driver.unix()).map_err(value_error)?;
        static SERVERS: AtomicU64 = AtomicU64::new(0);
        Ok(Server {
            id: SERVERS.fetch_add(1, Ordering::Relaxed),
            address: Address(address),
            max_clients,
            protocol,
            factory,
            priority,
            admission,
            state: Mutex::new(State {
                core: Versioned::new(core),
                priorities: Priorities::default(),
                driver: Some(driver),
                driver_counters: DriverCounters::default(),
                drops: DropLog::default(),
                pending: Some(Pending::default()),
                handles: HashMap::new(),
                gone: Vec::new(),
            }),
        })
    }

    #[getter]
    fn address(&self) -> Address {
        self.address
    }

    #[getter]
    fn protocol(&self, py: Python<'_>) -> Py<Protocol> {
        self.protocol.clone_ref(py)
    }

    #[getter]
    fn max_clients(&self) -> usize {
        self.max_clients
    }

    /// The connected clients, by slot.
    #[getter]
    fn clients(&self, py: Python<'_>) -> Vec<Py<ClientHandle>> {
        let state = lock(&self.state);
        state.core.clients().filter_map(|client| Some(state.handles.get(&client)?.clone_ref(py))).collect()
    }

    #[getter]
    fn closed(&self) -> bool {
        lock(&self.state).driver.is_none()
    }

    /// Everything counted since the start, drops by name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = lock(&self.state).counted();
        counted.to_python(py)
    }

    /// ``with server.tick() as inbox:`` receives on entry and sends on exit.
    fn tick(slf: Py<Self>) -> Tick {
        Tick(Endpoint::Server(slf))
    }

    /// The first half of a tick: takes what arrived.
    pub(super) fn receive(&self, py: Python<'_>) -> PyResult<Inbox> {
        let (mut pending, events) = self.receive_datagrams(py)?;
        let made = self.make_objects(py, &mut pending, events);
        let inbox = made.and_then(|()| {
            let fates = lock(&self.state).fates();
            pending.take(py, fates)
        });
        lock(&self.state).pending = Some(pending);
        inbox
    }

    /// The second half of a tick: sends what is queued.
    ///
    /// Raises:
    ///     What the priority hook raised. The packets are out then, in the order they have without it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if self.transmit(py)? { Ok(()) } else { Err(closed()) }
    }

    /// Keeps connections alive without taking messages (while loading, say): they wait, and when the
    /// receive window is full their sender has to wait too. Nothing reliable is lost.
    fn pump(&self, py: Python<'_>) -> PyResult<()> {
        let (received, dropped) = {
            let mut state = lock(&self.state);
            (state.receive().ok_or_else(closed)?, state.look_for_drops())
        };
        self.log_drops(py, dropped);
        received.map_err(|error| os_error(py, &error, self.address.0))?;
        self.flush(py)
    }

    /// Queues a message for the next flush.
    ///
    /// Raises:
    ///     FieldError: a field's value is not in its range.
    ///     UnregisteredMessageError: the class is not in the protocol.
    ///     MessageTooLargeError: more bytes than the channel takes.
    ///     ChannelFullError: too many messages wait on the channel.
    ///     ChannelError: there is no such channel.
    ///     StaleClientError: the client is gone.
    ///     ClosedError: the server is closed.
    #[pyo3(signature = (client, message, channel = 0, *, key = 0, tag = 0, notify = false))]
    fn send(
        &self,
        client: &Bound<'_, ClientHandle>,
        message: &Bound<'_, PyAny>,
        channel: i64,
        key: i128,
        tag: i128,
        notify: bool,
    ) -> PyResult<()> {
        let options = send_options(key, tag, notify)?;
        let encoded = self.protocol.get().encode_message(message)?;
        let channel = self.protocol.get().channel(channel)?;
        let sent = {
            let mut state = lock(&self.state);
            let now = state.driver.as_ref().ok_or_else(closed)?.now();
            let client = self.core_handle(client.get())?;
            state.core.send(now, client, channel, encoded, options)
        };
        sent.map_err(|error| send_error(&class_name(message), channel, &error))
    }

    /// Queues bytes on a payload channel for the next flush. Their fate comes in ``inbox.notifications``, exactly
    /// once while the connection lasts, in the order of the packets.
    ///
    /// Raises:
    ///     As :meth:`send`.
    #[pyo3(signature = (client, data, channel, *, tag))]
    fn send_payload(
        &self,
        client: &Bound<'_, ClientHandle>,
        data: &[u8],
        channel: i64,
        tag: i128,
    ) -> PyResult<()> {
        let tag = within("tag", tag, 0, u32::MAX)?;
        let channel = self.protocol.get().channel(channel)?;
        let sent = {
            let mut state = lock(&self.state);
            let now = state.driver.as_ref().ok_or_else(closed)?.now();
            let client = self.core_handle(client.get())?;
            state.core.send_payload(now, client, channel, payload(data), tag)
        };
        sent.map_err(|error| send_error("the payload", channel, &error))
    }

    /// Changes how much may be sent to one client, or with None to each of them, those to come included.
    #[pyo3(signature = (bytes_per_second, burst_bytes, client = None))]
    fn set_budget(
        &self,
        bytes_per_second: f64,
        burst_bytes: f64,
        client: Option<&Bound<'_, ClientHandle>>,
    ) -> PyResult<()> {
        let client = client.map(|client| self.core_handle(client.get())).transpose()?;
        let budget = BudgetConfig { bytes_per_second, burst_bytes };
        lock(&self.state).core.set_budget(client, budget).map_err(|error| match error {
            BudgetError::StaleClient => stale(),
            BudgetError::Config(error) => value_error(error),
        })
    }

    /// Queues one message for every connected client; it is encoded once. Returns the clients whose
    /// channel was full: the others have it.
    #[pyo3(signature = (message, channel = 0, *, exclude = None, key = 0, tag = 0, notify = false))]
    fn broadcast(
        &self,
        message: &Bound<'_, PyAny>,
        channel: i64,
        exclude: Option<&Bound<'_, ClientHandle>>,
        key: i128,
        tag: i128,
        notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let options = send_options(key, tag, notify)?;
        let py = message.py();
        let encoded = self.protocol.get().encode_message(message)?;
        let channel = self.protocol.get().channel(channel)?;
        let exclude = exclude.and_then(|client| self.core_handle(client.get()).ok());
        let mut full = Vec::new();
        let mut state = lock(&self.state);
        let State { core, driver, handles, .. } = &mut *state;
        let now = driver.as_ref().ok_or_else(closed)?.now();
        // Whom no event has told the game of may yet be refused.
        let known = core.clients().filter(|client| handles.contains_key(client));
        let clients: Vec<_> = known.filter(|client| Some(*client) != exclude).collect();
        for client in clients {
            match core.send(now, client, channel, encoded.clone(), options) {
                Ok(()) => {}
                Err(SendError::Channel(crate::transport::SendError::Full { .. })) => {
                    full.extend(handles.get(&client).map(|handle| handle.clone_ref(py)));
                }
                // Too large: for the first client and for all others.
                Err(error) => {
                    drop(state);
                    return Err(send_error(&class_name(message), channel, &error));
                }
            }
        }
        Ok(full)
    }

    /// Ends one connection; its player sees :attr:`DisconnectReason.KICKED`. Queued messages are dropped.
    ///
    /// Raises:
    ///     StaleClientError: the client is gone already.
    fn disconnect(&self, client: &Bound<'_, ClientHandle>) -> PyResult<()> {
        let client = self.core_handle(client.get())?;
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
        let driver = driver.as_mut().ok_or_else(closed)?;
        driver.transmit(|now, out| core.disconnect(now, client, out)).map_err(|_| stale())
    }

    /// How the connection of a client is doing.
    ///
    /// Raises:
    ///     StaleClientError: the client is gone.
    fn stats(&self, client: &Bound<'_, ClientHandle>) -> PyResult<ConnectionStats> {
        let client = self.core_handle(client.get())?;
        let state = lock(&self.state);
        let stats = state.core.stats(client).ok_or_else(stale)?;
        let budget = state.core.budget(client).ok_or_else(stale)?;
        Ok(ConnectionStats::new(stats, budget, &self.protocol.get().core, |channel| {
            state.core.channel_stats(client, channel)
        }))
    }

    /// Counts of all channels of all connected clients, as columns.
    fn channel_stats(&self) -> ChannelSnapshot {
        let state = lock(&self.state);
        let mut snapshot = SnapshotColumns::default();
        for client in state.core.clients() {
            let channels = (0..=u8::MAX)
                .map_while(|channel| Some((channel, state.core.channel_stats(client, channel.into())?)));
            channels.for_each(|(channel, counts)| snapshot.push(client.slot, channel, &counts));
        }
        ChannelSnapshot(Arc::new(snapshot))
    }

    /// Ends all connections (players see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket.
    /// Closing twice is fine.
    fn close(&self) {
        lock(&self.state).close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(&self, kind: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, traceback: &Bound<'_, PyAny>) {
        let _ = (kind, value, traceback);
        self.close();
    }

    fn __repr__(&self) -> String {
        let state = lock(&self.state);
        let clients = state.core.clients().count();
        let closed = if state.driver.is_none() { ", closed" } else { "" };
        format!("<Server at {} with {clients} of {} clients{closed}>", self.address.0, self.max_clients)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.protocol)?;
        visit.call(&self.factory)?;
        visit.call(&self.priority)?;
        visit.call(&self.admission)?;
        match self.state.try_lock() {
            Ok(state) => state.pending.iter().try_for_each(|pending| pending.traverse(visit)),
            // What is being worked on is in use.
            Err(_) => Ok(()),
        }
    }
}

impl Server {
    /// The first part of a receive, without Python: reads the socket and takes what the core has.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<(Pending, Vec<ServerEvent>)> {
        let mut state = lock(&self.state);
        if state.driver.is_none() {
            return Err(closed());
        }
        let Some(mut pending) = state.pending.take() else {
            return Err(PyRuntimeError::new_err("another receive() is still running"));
        };
        let received = state.receive().unwrap_or(Ok(()));
        let dropped = state.look_for_drops();
        state.core.take_messages(&mut pending.records);
        if let Err(error) = received {
            state.pending = Some(pending);
            drop(state);
            self.log_drops(py, dropped);
            return Err(os_error(py, &error, self.address.0));
        }
        let events = std::iter::from_fn(|| state.core.poll_event()).collect();
        drop(state);
        self.log_drops(py, dropped);
        Ok((pending, events))
    }

    /// For log lines.
    fn described(&self) -> String {
        format!("the server at {}", self.address.0)
    }

    fn log_drops(&self, py: Python<'_>, dropped: Option<Dropped>) {
        if let Some(dropped) = dropped {
            dropped.log(py, || self.described());
        }
    }

    /// Sends what is queued, in the order that the priority hook gives; false once closed.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        let answer = self.ask_priority(py);
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
        let Some(driver) = driver else { return Ok(false) };
        let ordered = answer.and_then(|answer| answer.map_or(Ok(()), |answer| answer.apply(core)));
        driver.transmit(|now, out| core.transmit(now, out));
        ordered.map(|()| true)
    }

    fn ask_priority(&self, py: Python<'_>) -> PyResult<Option<Answer>> {
        let Some(hook) = &self.priority else { return Ok(None) };
        let question = {
            let mut state = lock(&self.state);
            let State { core, driver, priorities, .. } = &mut *state;
            let Some(driver) = driver else { return Ok(None) };
            priorities.question(driver.now(), core)?
        };
        let Some(question) = question else { return Ok(None) };
        let answer = question.ask(hook.bind(py));
        lock(&self.state).priorities.asked();
        answer
    }

    /// Asks the admission hook about the newcomers, disconnects those it refuses and takes them out of `events`.
    fn admit(&self, py: Python<'_>, events: &mut Vec<ServerEvent>) -> PyResult<()> {
        let Some(hook) = &self.admission else { return Ok(()) };
        let newcomers = events.iter().filter_map(|event| match event {
            ServerEvent::Connected { client, client_id, address, user_data } => {
                Some(Py::new(py, self.handle(*client, *client_id, *address, user_data.clone())))
            }
            ServerEvent::Disconnected { .. } => None,
        });
        let newcomers = newcomers.collect::<PyResult<Vec<_>>>()?;
        if newcomers.is_empty() {
            return Ok(());
        }
        let (refused, answered) = hooks::refused_by(hook.bind(py), &newcomers);
        let kicked = {
            let mut state = lock(&self.state);
            let State { core, driver, .. } = &mut *state;
            if let Some(driver) = driver.as_mut().filter(|_| !refused.is_empty()) {
                // Those who left by themselves meanwhile are gone already.
                driver.transmit(|now, out| {
                    refused.iter().for_each(|client| drop(core.disconnect(now, *client, out)));
                });
            }
            std::iter::from_fn(|| core.poll_event()).collect::<Vec<_>>()
        };
        events.extend(kicked);
        events.retain(|event| match event {
            ServerEvent::Connected { client, .. } | ServerEvent::Disconnected { client, .. } => {
                !refused.contains(client)
            }
        });
        for newcomer in newcomers.iter().map(Py::get).filter(|newcomer| refused.contains(&newcomer.core)) {
            log(py, Level::Info, || {
                format!("{} was refused by the admission hook of {}", newcomer.described(), self.described())
            });
        }
        answered
    }

    fn handle(
        &self,
        core: endpoint::ClientHandle,
        id: u64,
        address: SocketAddr,
        user_data: Box<[u8; USER_DATA_BYTES]>,
    ) -> ClientHandle {
        ClientHandle { server: self.id, core, id, address: Address(address), user_data }
    }

    /// Makes Python objects of what was taken. The lock is held for moments only, never while Python runs.
    fn make_objects(
        &self,
        py: Python<'_>,
        pending: &mut Pending,
        mut events: Vec<ServerEvent>,
    ) -> PyResult<()> {
        let admitted = self.admit(py, &mut events);
        let mut refused = Vec::new();
        self.make_events(py, pending, events)?;
        let protocol = self.protocol.get();
        let made =
            pending.make_messages(py, protocol, self.factory.as_ref(), &mut refused, |client, what| {
                let handle = lock(&self.state).handles.get(&client).map(|handle| handle.clone_ref(py));
                // Whoever was not admitted has none.
                let Some(handle) = handle else { return Ok(None) };
                let handle = handle.into_bound(py).into_any();
                let tuple = match what {
                    [message] => PyTuple::new(py, [&handle, message])?,
                    several => PyTuple::new(py, [&[handle], several].concat())?,
                };
                Ok(Some(tuple.into_any().unbind()))
            });
        if !refused.is_empty() {
            let events = self.refuse(&refused);
            self.make_events(py, pending, events)?;
        }
        admitted.and(made)?;
        let forgotten: Vec<Option<Py<ClientHandle>>> = {
            let mut state = lock(&self.state);
            let State { handles, gone, .. } = &mut *state;
            gone.drain(..).map(|client| handles.remove(&client)).collect()
        };
        drop(forgotten);
        Ok(())
    }

    fn make_events(&self, py: Python<'_>, pending: &mut Pending, events: Vec<ServerEvent>) -> PyResult<()> {
        for event in events {
            let object = match event {
                ServerEvent::Connected { client, client_id, address, user_data } => {
                    let handle = Py::new(py, self.handle(client, client_id, address, user_data))?;
                    lock(&self.state).handles.insert(client, handle.clone_ref(py));
                    log(py, Level::Info, || {
                        let slot = client.slot;
                        format!("{} connected to {}, slot {slot}", handle.get().described(), self.described())
                    });
                    Py::new(py, Connected { client: Some(handle) })?.into_any()
                }
                ServerEvent::Disconnected { client, reason, violation } => {
                    let handle = {
                        let mut state = lock(&self.state);
                        state.gone.push(client);
                        state.handles.get(&client).map(|handle| handle.clone_ref(py))
                    };
                    log_end(py, reason, violation.as_ref(), || {
                        let client = handle.as_ref().map(|handle| handle.get().described());
                        format!("{} of {}", client.unwrap_or_default(), self.described())
                    });
                    Py::new(py, Disconnected { client: handle, reason })?.into_any()
                }
            };
            pending.events.push(object);
        }
        Ok(())
    }

    /// Ends the connections of clients that sent what their class refuses.
    fn refuse(&self, clients: &[endpoint::ClientHandle]) -> Vec<ServerEvent> {
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
        let Some(driver) = driver else { return Vec::new() };
        driver.transmit(|now, out| clients.iter().for_each(|client| core.refuse_message(now, *client, out)));
        std::iter::from_fn(|| core.poll_event()).collect()
    }

    /// The core's handle, if it is one of this server's.
    fn core_handle(&self, client: &ClientHandle) -> PyResult<endpoint::ClientHandle> {
        if client.server == self.id { Ok(client.core) } else { Err(stale()) }
    }
}

impl State {
    /// Gives the core the datagrams that wait; None once closed.
    fn receive(&mut self) -> Option<io::Result<()>> {
        let State { core, driver, .. } = self;
        Some(driver.as_mut()?.receive(|now, unix, from, datagram, out| {
            core.handle_datagram(now, unix, from, datagram, out);
        }))
    }

    /// What became of messages and packets since the last time.
    fn fates(&mut self) -> (Fates, Packets) {
        let (mut told, mut fates) = (Vec::new(), Fates::default());
        self.core.take_notifications(&mut told);
        told.into_iter().for_each(|(client, told)| fates.push(client.slot, told));
        let (mut known, mut packets) = (Vec::new(), Packets::default());
        self.core.take_packet_fates(&mut known);
        known.into_iter().for_each(|(client, fate)| packets.push(client.slot, fate));
        (fates, packets)
    }

    fn counted(&self) -> Counted {
        Counted {
            driver: self.driver.as_ref().map_or(self.driver_counters, Driver::counters),
            netcode: self.core.netcode().counters().clone(),
            packets: self.core.packet_counters(),
        }
    }

    fn look_for_drops(&mut self) -> Option<Dropped> {
        let now = self.driver.as_ref()?.now();
        if !self.drops.is_due(now) {
            return None;
        }
        let counted = self.counted();
        self.drops.look(now, counted)
    }

    fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.core.close(now, out));
        driver.finish();
        self.driver_counters = driver.counters();
    }
}

/// An endpoint that is dropped says goodbye.
impl Drop for State {
    fn drop(&mut self) {
        self.close();
    }
}

fn closed() -> PyErr {
    ClosedError::new_err("the server is closed")
}

fn stale() -> PyErr {
    StaleClientError::new_err("the client is not connected any more")
}
