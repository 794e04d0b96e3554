//! A client for Python: the sans-IO client and its driver behind one lock.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io;
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::address::{Address, AddressLike};
use super::development;
use super::endpoint::{REPLAY_WINDOW, class_name, entropy, open_driver, random, send_options};
use super::errors::{ClosedError, NotConnectedError, os_error, send_error, value_error};
use super::events::{Connected, Disconnected, reason_to_python, state_to_python};
use super::fields::within;
use super::hooks::{self, Answer, Priorities, Versioned};
use super::inbox::{Endpoint, Fates, Inbox, Packets, Pending, Tick, payload};
use super::lock;
use super::log::{DropLog, Dropped, Level, log, log_end};
use super::network::{Conditions, SimulatedNetwork};
use super::protocol::Protocol;
use super::stats::{ConnectionStats, Counted};
use super::token::{ConnectToken, extract_key, extract_timeout, extract_user_data};
use crate::driver::{Driver, DriverCounters, VirtualNetwork, unix_now};
use crate::endpoint::{self, ChunkLimits, ClientConfig, ClientEvent, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY};
use crate::netcode::{self, TokenParams};
use crate::transport::{BudgetConfig, ConnectionConfig};

/// Seconds in which a token made on the spot must start its connection.
const TOKEN_LIFETIME: u32 = 60;

/// A client of one server, dialling with a connect token.
///
/// Args:
///     protocol: what both sides share.
///     token: from the login backend.
///     bind: the local address; None: any free port.
///     factory, priority, conditions, seed, network: as for :class:`Server`.
///
/// Raises:
///     OSError: no socket could be made.
///     ValueError: the token is for another protocol id.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Client {
    address: Address,
    protocol: Py<Protocol>,
    factory: Option<Py<PyAny>>,
    priority: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    core: Versioned<endpoint::Client>,
    priorities: Priorities,
    /// None once closed.
    driver: Option<Driver>,
    /// Of the driver, once closed.
    driver_counters: DriverCounters,
    drops: DropLog,
    /// None while objects are being made of it.
    pending: Option<Pending>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (protocol, token, *, bind = None, factory = None, priority = None, conditions = None,
                        seed = None, network = None))]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn new(
        py: Python<'_>,
        protocol: Py<Protocol>,
        token: &Bound<'_, ConnectToken>,
        bind: Option<AddressLike>,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        conditions: Option<&Bound<'_, Conditions>>,
        seed: Option<i128>,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        let network = network.map(|network| network.get().0.clone());
        Self::dial(py, protocol, token.get().again()?, bind, factory, priority, conditions, seed, network)
    }

    /// Development mode: makes its own token, with the well-known key or a shared one. Not for
    /// production: who holds the key can be anyone. A warning is given unless the address is loopback.
    ///
    /// Args:
    ///     client_id: None picks a random one.
    #[staticmethod]
    #[pyo3(signature = (address, protocol, *, key = None, client_id = None, timeout = Some(10),
                        user_data = None, bind = None, factory = None, priority = None, conditions = None,
                        seed = None, network = None))]
    #[pyo3(text_signature = "(address, protocol, *, key=None, client_id=None, timeout=10, user_data=b'', \
                             bind=None, factory=None, priority=None, conditions=None, seed=None, network=None)")]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn connect(
        py: Python<'_>,
        address: AddressLike,
        protocol: Py<Protocol>,
        key: Option<&[u8]>,
        client_id: Option<i128>,
        timeout: Option<i128>,
        user_data: Option<&[u8]>,
        bind: Option<AddressLike>,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        conditions: Option<&Bound<'_, Conditions>>,
        seed: Option<i128>,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        let network = network.map(|network| network.get().0.clone());
        let address = address.0;
        if address.port() == 0 {
            return Err(PyValueError::new_err(format!("address must have a port to dial, not {address}")));
        }
        if network.is_none() && !address.ip().is_loopback() {
            let sentence = format!(
                "connecting to {address} in development mode: who holds the key can be any player. \
                 Use tickwire.Client with a connect token from your login backend"
            );
            development::warn(py, sentence)?;
        }
        let mut entropy = entropy(network.clone());
        let client_id = match client_id {
            Some(id) => within("client_id", id, 0, u64::MAX)?,
            None => random(&mut *entropy),
        };
        let params = TokenParams {
            protocol_id: protocol.get().id,
            private_key: &key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?,
            client_id,
            created: network.as_ref().map_or_else(unix_now, VirtualNetwork::unix),
            lifetime: Some(TOKEN_LIFETIME),
            timeout: extract_timeout(timeout)?,
            public_addresses: &[address],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &extract_user_data(user_data)?,
        };
        let token = netcode::ConnectToken::generate(&params, &mut *entropy).map_err(value_error)?;
        Self::dial(py, protocol, token, bind, factory, priority, conditions, seed, network)
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = lock(&self.state).core.state();
        state_to_python(py, state)
    }

    #[getter]
    fn connected(&self) -> bool {
        lock(&self.state).core.is_connected()
    }

    #[getter]
    fn closed(&self) -> bool {
        lock(&self.state).driver.is_none()
    }

    #[getter]
    fn disconnect_reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reason = lock(&self.state).core.disconnect_reason();
        reason.map(|reason| reason_to_python(py, reason)).transpose()
    }

    /// The local address.
    #[getter]
    fn address(&self) -> Address {
        self.address
    }

    /// The server dialled now.
    #[getter]
    fn server_address(&self) -> Address {
        Address(lock(&self.state).core.server_address())
    }

    /// Our client slot on the server, once connected.
    #[getter]
    fn slot(&self) -> Option<u32> {
        lock(&self.state).core.slot()
    }

    #[getter]
    fn protocol(&self, py: Python<'_>) -> Py<Protocol> {
        self.protocol.clone_ref(py)
    }

    /// Everything counted since the start, drops by name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = lock(&self.state).counted();
        counted.to_python(py)
    }

    /// ``with client.tick() as inbox:`` receives on entry and sends on exit.
    fn tick(slf: Py<Self>) -> Tick {
        Tick(Endpoint::Client(slf))
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

    /// Keeps the connection alive without taking messages, as :meth:`Server.pump`.
    fn pump(&self, py: Python<'_>) -> PyResult<()> {
        let (received, dropped) = {
            let mut state = lock(&self.state);
            (state.receive().ok_or_else(closed)?, state.look_for_drops())
        };
        self.log_drops(py, dropped);
        received.map_err(|error| os_error(py, &error, self.address.0))?;
        self.flush(py)
    }

    /// As :meth:`Server.send`.
    ///
    /// Raises:
    ///     NotConnectedError: the connection is not up (yet, or any more).
    #[pyo3(signature = (message, channel = 0, *, key = 0, tag = 0, notify = false))]
    fn send(
        &self,
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
            state.core.send(now, channel, encoded, options)
        };
        sent.map_err(|error| send_error(&class_name(message), channel, &error))
    }

    /// As :meth:`Server.send_payload`.
    #[pyo3(signature = (data, channel, *, tag))]
    fn send_payload(&self, data: &[u8], channel: i64, tag: i128) -> PyResult<()> {
        let tag = within("tag", tag, 0, u32::MAX)?;
        let channel = self.protocol.get().channel(channel)?;
        let sent = {
            let mut state = lock(&self.state);
            let now = state.driver.as_ref().ok_or_else(closed)?.now();
            state.core.send_payload(now, channel, payload(data), tag)
        };
        sent.map_err(|error| send_error("the payload", channel, &error))
    }

    /// Changes how much may be sent, also before the connection is up.
    #[pyo3(signature = (bytes_per_second, burst_bytes))]
    fn set_budget(&self, bytes_per_second: f64, burst_bytes: f64) -> PyResult<()> {
        let budget = BudgetConfig { bytes_per_second, burst_bytes };
        lock(&self.state).core.set_budget(budget).map_err(value_error)
    }

    /// How the connection is doing.
    ///
    /// Raises:
    ///     NotConnectedError: the connection is not up (yet, or any more).
    fn stats(&self) -> PyResult<ConnectionStats> {
        let state = lock(&self.state);
        let not_connected = || NotConnectedError::new_err("the connection is not up");
        let stats = state.core.stats().ok_or_else(not_connected)?;
        Ok(ConnectionStats::new(stats, state.core.budget(), &self.protocol.get().core, |channel| {
            state.core.channel_stats(channel)
        }))
    }

    /// Disconnects and closes the socket. Closing twice is fine.
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
        let closed = if state.driver.is_none() { ", closed" } else { "" };
        format!("<Client of {}, {:?}{closed}>", state.core.server_address(), state.core.state())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.protocol)?;
        visit.call(&self.factory)?;
        visit.call(&self.priority)?;
        match self.state.try_lock() {
            Ok(state) => state.pending.iter().try_for_each(|pending| pending.traverse(visit)),
            // What is being worked on is in use.
            Err(_) => Ok(()),
        }
    }
}

impl Client {
    #[allow(clippy::too_many_arguments)] // What both constructors have in common.
    fn dial(
        py: Python<'_>,
        protocol: Py<Protocol>,
        token: netcode::ConnectToken,
        bind: Option<AddressLike>,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        conditions: Option<&Bound<'_, Conditions>>,
        seed: Option<i128>,
        network: Option<VirtualNetwork>,
    ) -> PyResult<Self> {
        hooks::check(py, "priority", priority.as_ref())?;
        let bind = match bind {
            Some(address) => address.0,
            None => any_port(token.addresses().first(), network.is_some()),
        };
        let driver = open_driver(py, bind, conditions, seed, network.as_ref())?;
        let mut settings = netcode::ClientConfig::new(protocol.get().id);
        settings.replay_window = REPLAY_WINDOW;
        let connection = ConnectionConfig { packet_fates: true, ..ConnectionConfig::default() };
        let config = ClientConfig { netcode: settings, connection, chunks: ChunkLimits::CLIENT };
        let core = endpoint::Client::new(config, protocol.get().core.clone(), token, driver.now())
            .map_err(value_error)?;
        Ok(Client {
            address: Address(driver.local_address()),
            protocol,
            factory,
            priority,
            state: Mutex::new(State {
                core: Versioned::new(core),
                priorities: Priorities::default(),
                driver: Some(driver),
                driver_counters: DriverCounters::default(),
                drops: DropLog::default(),
                pending: Some(Pending::default()),
            }),
        })
    }

    /// The first part of a receive, without Python: reads the socket and takes what the core has.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<(Pending, Vec<ClientEvent>)> {
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

    /// For log lines.
    fn described(&self) -> String {
        format!("the client at {} of {}", self.address.0, lock(&self.state).core.server_address())
    }

    fn log_drops(&self, py: Python<'_>, dropped: Option<Dropped>) {
        if let Some(dropped) = dropped {
            dropped.log(py, || self.described());
        }
    }

    /// Makes Python objects of what was taken. The lock is held for moments only, never while Python runs.
    fn make_objects(&self, py: Python<'_>, pending: &mut Pending, events: Vec<ClientEvent>) -> PyResult<()> {
        self.make_events(py, pending, events)?;
        let mut refused = Vec::new();
        let protocol = self.protocol.get();
        let made =
            pending.make_messages(py, protocol, self.factory.as_ref(), &mut refused, |_, what| match what {
                [alone] => Ok(Some(alone.clone().unbind())),
                several => Ok(Some(PyTuple::new(py, several)?.into_any().unbind())),
            });
        if !refused.is_empty() {
            self.make_events(py, pending, self.refuse())?;
        }
        made
    }

    fn make_events(&self, py: Python<'_>, pending: &mut Pending, events: Vec<ClientEvent>) -> PyResult<()> {
        for event in events {
            pending.events.push(match event {
                ClientEvent::Connected { client_index, .. } => {
                    log(py, Level::Info, || format!("{} connected, slot {client_index}", self.described()));
                    Py::new(py, Connected { client: None })?.into_any()
                }
                ClientEvent::Disconnected { reason, violation } => {
                    log_end(py, reason, violation.as_ref(), || self.described());
                    Py::new(py, Disconnected { client: None, reason })?.into_any()
                }
            });
        }
        Ok(())
    }

    /// Ends the connection to a server that sent what a class refuses.
    fn refuse(&self) -> Vec<ClientEvent> {
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
        let Some(driver) = driver else { return Vec::new() };
        driver.transmit(|now, out| core.refuse_message(now, out));
        std::iter::from_fn(|| core.poll_event()).collect()
    }
}

impl State {
    /// Gives the core the datagrams that wait; None once closed.
    fn receive(&mut self) -> Option<io::Result<()>> {
        let State { core, driver, .. } = self;
        Some(driver.as_mut()?.receive(|now, _, from, datagram, out| {
            core.handle_datagram(now, from, datagram, out);
        }))
    }

    /// What became of messages and packets since the last time.
    fn fates(&mut self) -> (Fates, Packets) {
        let (mut fates, mut packets) = (Fates::default(), Packets::default());
        while let Some(told) = self.core.poll_notification() {
            fates.push(0, told);
        }
        while let Some(fate) = self.core.poll_packet_fate() {
            packets.push(0, fate);
        }
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

/// Any free port, of the server's family. A host of a simulated network must have an address of its own.
fn any_port(server: Option<&SocketAddr>, simulated: bool) -> SocketAddr {
    let ip = match (server.is_some_and(SocketAddr::is_ipv6), simulated) {
        (false, false) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (true, false) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (false, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (true, true) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, 0)
}

fn closed() -> PyErr {
    ClosedError::new_err("the client is closed")
}
