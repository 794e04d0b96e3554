//! A client for Python: the sans-IO client, its tokens, messages and events.

use crate::python::inbox::EVENTS;
use crate::python::prelude::*;
use pyo3::exceptions::PyResourceWarning;

use super::capture::{Capture, Secrets};
use super::dialling::{FirstDial, claim, open_port};
use super::events::state_to_python;
use super::ghosts::{ClientWorld, made_classes};
use super::kind::CLIENT;
use super::log::log_end;
use super::randomness::skip_seed;
use super::reconnect::{Reconnecting, SeatSlot, Tokens, tokens};
use super::rendezvous::{self, Destination};
use super::settings::Congestion;
use super::token::ConnectToken;
use crate::driver::bind::check_families;
use crate::driver::{Carrier, ClaimedToken, unix_now};
use crate::endpoint::{ClientConfig, ConnectionEnd, DEVELOPMENT_KEY, Development, Dial, ReconnectConfig};
use crate::netcode::{self, ClientState};
use crate::transport::BudgetConfig;

/// A client that wasn't ticked for this long was forgotten by mistake.
const FORGOTTEN_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// The seconds of silence that end a connection, by default.
const TIMEOUT: u32 = 10;

/// The handle of no server.
const NOBODY: PeerHandle = PeerHandle { slot: u32::MAX, generation: u32::MAX };

#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Client {
    pub(super) endpoint: Endpoint,
    /// The core's handle of the server, as a number: each connection has another one.
    server: AtomicU64,
    netcode: netcode::ClientConfig,
    capture: Option<Py<Capture>>,
    reconnecting: Option<Box<Reconnecting>>,
    pub(super) world: Py<ClientWorld>,
    made_at: std::time::Instant,
    /// Whether the warning about missing ticks was given, or isn't needed.
    warned: AtomicBool,
}

#[pymethods]
impl Client {
    #[new]
    fn new<'py>(
        py: Python<'py>,
        protocol: Py<Protocol>,
        token: &Bound<'py, ConnectToken>,
        reconnect: Option<&Object<'py>>,
        ghosts: Option<&Object<'py>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let settings = Self::settings(Given::new(py, "Client.__new__", settings)?, ghosts, &protocol)?;
        let reconnect = reconnect.map(|reconnect| tokens(reconnect, None)).transpose()?;
        let first = FirstDial { token: Some(token.get().again()?), reconnect, is_development: false };
        Self::dial(py, protocol, first, None, settings)
    }

    #[staticmethod]
    fn connect<'py>(
        py: Python<'py>,
        address: Destination,
        protocol: Py<Protocol>,
        key: Option<&Object<'py>>,
        #[within(0, u64::MAX)] client_id: Option<u64>,
        reconnect: Option<&Object<'py>>,
        ghosts: Option<&Object<'py>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let (destination, address) = (address, address.address);
        if address.port() == 0 {
            return Err(PyValueError::new_err(format!(
                "address must have a port to connect to, not {address}"
            )));
        }
        if address.ip().is_unspecified() {
            let sentence = format!(
                "address must be the server's own address, not {address}, which means all addresses of a \
                 machine: \
                 on this machine use 127.0.0.1 or ::1"
            );
            return Err(PyValueError::new_err(sentence));
        }
        let settings = Self::settings(Given::new(py, "Client.connect", settings)?, ghosts, &protocol)?;
        let network = settings.network.clone();
        if network.is_none() && !destination.near().ip().is_loopback() {
            let address = rendezvous::described(address);
            let sentence = format!(
                "connecting to {address} in development mode: anyone with the key can be any player. \
                 Use tickwire.Client with a connect token from your login backend"
            );
            warn::<PyUserWarning>(py, sentence)?;
        }
        let mut entropy = entropy(network.clone());
        let development = Development {
            protocol_id: protocol.get().id,
            upper_protocol: protocol.get().upper_protocol().map(|upper| upper.hash),
            address,
            key: key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?,
            client_id: client_id.unwrap_or_else(|| random(&mut *entropy)),
            timeout: settings.tuning.get().timeout.unwrap_or(TIMEOUT),
        };
        if destination.rendezvous.is_some() && reconnect.is_some() {
            return Err(PyValueError::new_err(
                "reconnect must be None with a Code: the host may have another code by then, so ask the \
                 player for it",
            ));
        }
        let unix = network.as_ref().map_or_else(unix_now, VirtualNetwork::unix);
        let token = development.token(unix, &mut *entropy).map_err(value_error)?;
        let reconnect = reconnect.map(|reconnect| tokens(reconnect, Some(development))).transpose()?;
        let first = FirstDial { token: Some(token), reconnect, is_development: true };
        Self::dial(py, protocol, first, destination.rendezvous, settings)
    }

    #[staticmethod]
    fn local<'py>(
        py: Python<'py>,
        server: &Bound<'py, Server>,
        #[within(0, u64::MAX)] client_id: Option<u64>,
        ghosts: Option<&Object<'py>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let server = &server.get().endpoint;
        let protocol = server.protocol.clone_ref(py);
        let mut settings = Self::settings(Given::new(py, "Client.local", settings)?, ghosts, &protocol)?;
        settings.share_memory_with(py, server.network.as_ref())?;
        let mut entropy = entropy(settings.network.clone());
        let client_id = client_id.unwrap_or_else(|| random(&mut *entropy));
        let timeout = Some(settings.tuning.get().timeout.unwrap_or(TIMEOUT));
        let (token, driver) = server.with(|host, driver| {
            let (unix, address) = (driver.unix(), driver.local_address());
            let listener = host.listener().ok_or_else(not_connected)?;
            let token = listener.local_token(unix, address, client_id, timeout, &mut *entropy);
            Ok::<_, PyErr>((token.map_err(value_error)?, driver.connect_local()))
        })??;
        let first = FirstDial { token: Some(token), reconnect: None, is_development: false };
        Self::over(py, protocol, first, driver, settings)
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        if self.is_reconnecting() {
            return state_to_python(py, None);
        }
        let state = self.asked(|dial| dial.netcode().state())?;
        state_to_python(py, state.or(Some(ClientState::Disconnected)))
    }

    #[getter]
    fn disconnect_reason(&self) -> PyResult<Option<DisconnectReason>> {
        if !self.is_over()? {
            return Ok(None);
        }
        let last = || self.reconnecting.as_ref()?.core().last_end().map(|end| end.reason);
        Ok(self.asked(|dial| dial.end().map(|end| end.reason))?.flatten().or_else(last))
    }

    #[getter]
    fn disconnect_detail(&self) -> PyResult<Option<String>> {
        if !self.is_over()? {
            return Ok(None);
        }
        Ok(self.asked(|dial| dial.end()?.detail.as_deref().map(Into::into))?.flatten())
    }

    properties! {
        connected: PyResult<bool> = Ok(self.endpoint.state.lock()?.host().is_connected(self.server()));
        stats: PyResult<ConnectionStats> = self.endpoint.stats(self.server(), None);
        server_address: PyResult<Address> = self.asked(|dial| Address(dial.netcode().server_address()))?.ok_or_else(not_connected);
        id: PyResult<Option<u64>> = Ok(self.asked(|dial| dial.netcode().id())?.flatten());
        slot: PyResult<Option<u32>> = Ok(self.asked(|dial| dial.slot())?.flatten());
        world: Py<ClientWorld> = self.world.clone_ref(py);
    }

    #[getter]
    fn silence(&self) -> PyResult<f64> {
        let state = self.endpoint.state.lock()?;
        let now = Carrier::now(&state.carrier);
        Ok(state.host().silence(self.server(), now).map_or(0.0, |silence| silence.as_secs_f64()))
    }

    #[getter]
    fn quality(&self) -> PyResult<u8> {
        let state = self.endpoint.state.lock()?;
        let now = Carrier::now(&state.carrier);
        Ok(state.host().quality(self.server(), now))
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        call: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.endpoint.call(py, self.server(), call, args, kwargs)
    }

    fn set_budget(
        &self,
        #[number] bytes_per_second: f64,
        #[number] burst_bytes: f64,
        #[truth] adaptive: bool,
    ) -> PyResult<()> {
        let budget = BudgetConfig { adaptive, ..BudgetConfig::new(bytes_per_second, burst_bytes) };
        self.endpoint.state.lock()?.change().set_budget(None, budget).map_err(value_error)
    }

    fn set_congestion(&self, congestion: &Bound<'_, Congestion>) -> PyResult<()> {
        let congestion = congestion.get().0;
        self.endpoint.state.lock()?.change().set_congestion(None, congestion).map_err(value_error)
    }

    fn __repr__(&self) -> String {
        let asked = self.asked(|dial| (dial.netcode().server_address(), dial.netcode().state()));
        let (Ok(asked), Ok(closed)) = (asked, self.endpoint.closed()) else {
            return "<Client (unusable after fork)>".into();
        };
        let closed = if closed { ", closed" } else { "" };
        let Some((address, state)) = asked else { return format!("<Client without a server{closed}>") };
        format!("<Client of {}, {state:?}{closed}>", rendezvous::described(address))
    }

    traverses!(self.world, self.capture, self.reconnecting, self.endpoint);

    endpoint!();
}

impl Facade for Client {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn make_objects(&self, py: Python<'_>, pending: &mut Pending, events: Vec<Event>) -> PyResult<()> {
        self.make_events(py, pending, events)?;
        pending.make_ghosts(py, &self.endpoint)?;
        pending.make_received(py, &self.endpoint, |_| Some(None))
    }

    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        match &self.reconnecting {
            Some(reconnecting) if !self.endpoint.closed()? => {
                if let Some(end) = reconnecting.end_by_other_server() {
                    self.lose_server(end)?;
                }
                reconnecting.poll(&self.endpoint, py, |token| self.dial_again(py, token))
            }
            _ => Ok(()),
        }
    }

    fn next_work(&self) -> PyResult<f64> {
        let Some(reconnecting) = &self.reconnecting else { return Ok(f64::INFINITY) };
        let now = self.endpoint.now()?;
        Ok(reconnecting.core().next_poll(now).map_or(f64::INFINITY, |at| (at - now).as_secs_f64()))
    }

    fn has_own_news(&self) -> PyResult<bool> {
        Ok(self.reconnecting.as_ref().is_some_and(|reconnecting| reconnecting.has_events()))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let stopped = self.reconnecting.as_ref().map_or(Ok(()), |reconnecting| reconnecting.stop(py));
        self.endpoint.end_calls(py).and(stopped)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let forgotten =
            !self.endpoint.ticked.load(Ordering::Relaxed) && self.made_at.elapsed() >= FORGOTTEN_AFTER;
        if forgotten && !self.warned.swap(true, Ordering::Relaxed) {
            // An exiting interpreter takes no warnings any more.
            let _ = Python::try_attach(|py| self.warn_never_ticked(py));
        }
    }
}

impl Client {
    /// Reads the arguments that all endpoints have; `ghosts` are the classes that it makes of the protocol's.
    fn settings<'py>(
        given: Given<'py>,
        ghosts: Option<&Object<'py>>,
        protocol: &Py<Protocol>,
    ) -> PyResult<Settings<'py>> {
        let made = made_classes(ghosts, &protocol.get().ghosts)?;
        Settings::new(given, &CLIENT, protocol.get(), made)
    }

    fn dial(
        py: Python<'_>,
        protocol: Py<Protocol>,
        first: FirstDial,
        rendezvous: Option<SocketAddr>,
        settings: Settings<'_>,
    ) -> PyResult<Self> {
        let driver = open_port(py, &first, rendezvous, &settings, protocol.get().id)?;
        Self::over(py, protocol, first, driver, settings)
    }

    /// A client that dials over this driver.
    fn over(
        py: Python<'_>,
        protocol: Py<Protocol>,
        first: FirstDial,
        mut driver: Driver,
        mut settings: Settings<'_>,
    ) -> PyResult<Self> {
        let FirstDial { token, reconnect, is_development } = first;
        let network = settings.network.clone();
        let capture = settings.debugging.get().capture(py)?;
        if let (Some(capture), Some(token)) = (&capture, &token) {
            capture.get().attach(py, &mut driver, &Secrets::Client { token })?;
        }
        let mut config = ClientConfig {
            netcode: netcode::ClientConfig::new(protocol.get().id),
            connection: settings.connection.clone(),
            chunks: settings.arrivals.limits,
        };
        config.netcode.development = is_development;
        config.connection.skip_seed = skip_seed(network.as_ref());
        let (netcode, core) = (config.netcode, protocol.get().core.clone());
        let mut host = Host::idle_client(config, core).map_err(value_error)?;
        let mut server = NOBODY;
        if let Some(token) = token {
            let claimed = ClaimedToken::from(&token);
            server = host.dial(driver.now(), netcode, token, 0).map_err(value_error)?;
            claim(
                network.as_ref(),
                &claimed,
                host.dialled(server).map(|dial| dial.netcode().token_use()).unwrap_or_default(),
            )?;
        }
        if let Some(directory) = settings.arrivals.directory.take() {
            host.set_chunk_store(Box::new(directory));
        }
        let rate = protocol.get().time.as_ref().map(|time| time.rate);
        let reconnecting = reconnect.map(|(tokens, config)| {
            let seed = random(&mut *entropy(network.clone()));
            Box::new(Reconnecting::new(tokens, config, seed, driver.now()))
        });
        let endpoint = Endpoint::new(py, host, driver, protocol, settings)?;
        // A thread ticks it; and in virtual time, a test of something else needs no ticks.
        let warned = AtomicBool::new(network.is_some() || endpoint.state.is_threaded());
        let state = Arc::downgrade(&endpoint.state);
        let world = Py::new(py, ClientWorld::new(py, &endpoint.population, state, rate)?)?;
        let (server, made_at) = (AtomicU64::new(server.number()), std::time::Instant::now());
        let capture = capture.map(Bound::unbind);
        Ok(Client { endpoint, server, netcode, capture, reconnecting, world, made_at, warned })
    }

    /// The only peer: see `endpoint!()`.
    fn peer(&self) -> PyResult<PeerHandle> {
        Ok(self.server())
    }

    /// The core's handle of the server.
    pub(super) fn server(&self) -> PeerHandle {
        PeerHandle::from_number(self.server.load(Ordering::Relaxed))
    }

    fn is_reconnecting(&self) -> bool {
        self.reconnecting.as_ref().is_some_and(|reconnecting| reconnecting.core().is_waiting())
    }

    /// Whether no connection follows the current one.
    fn is_over(&self) -> PyResult<bool> {
        let Some(reconnecting) = &self.reconnecting else { return Ok(true) };
        Ok(reconnecting.core().is_over() || self.endpoint.closed()?)
    }

    fn lose_server(&self, reason: DisconnectReason) -> PyResult<()> {
        self.endpoint.state.lock()?.change().lose(self.server(), reason);
        Ok(())
    }

    /// A client of a game that players host: it dials whenever there is another seat.
    pub(super) fn hosted<'py>(
        py: Python<'py>,
        protocol: Py<Protocol>,
        (given, made): (Given<'py>, Vec<(usize, Py<PyType>)>),
        (peer, seat): (&Endpoint, SeatSlot),
    ) -> PyResult<Self> {
        let mut settings = Settings::new(given, &CLIENT, protocol.get(), made)?;
        settings.share_network(py, peer.network.as_ref());
        let driver = peer.with(|_, driver| driver.open_hosted(false, driver.local_address()))?;
        let reconnect = Some((Tokens::Seat(seat), ReconnectConfig::AT_ONCE));
        let first = FirstDial { token: None, reconnect, is_development: false };
        let mut client = Self::over(py, protocol, first, driver, settings)?;
        client.endpoint.carrier = Some(Arc::downgrade(&peer.state));
        client.warned = AtomicBool::new(true);
        Ok(client)
    }

    /// Ends with its peer.
    pub(super) fn close_hosted(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.state.close();
        self.stop(py)
    }

    /// The game that players host is over for this one.
    pub(super) fn end_hosted(&self, py: Python<'_>, reason: DisconnectReason) -> PyResult<()> {
        if let Some(reconnecting) = &self.reconnecting {
            reconnecting.end(py, reason)?;
        }
        self.lose_server(reason)
    }

    /// Dials with another token, after the last connection is over.
    fn dial_again(&self, py: Python<'_>, token: netcode::ConnectToken) -> PyResult<()> {
        let network = self.endpoint.virtual_network();
        if self.endpoint.carrier.is_none() {
            let bound = self.endpoint.address.0;
            check_families(bound, token.addresses(), network.is_some()).map_err(value_error)?;
        }
        let claimed = ClaimedToken::from(&token);
        let mut state = self.endpoint.state.lock()?;
        if let (Some(capture), Some((_, driver))) = (&self.capture, state.carrier.parts()) {
            capture.get().attach(py, driver, &Secrets::Client { token: &token })?;
        }
        let now = Carrier::now(&state.carrier);
        let dialling = netcode::Client::new(self.netcode, token, now).map_err(value_error)?;
        claim(network.as_ref(), &claimed, dialling.token_use())?;
        let server = state.carrier.redial(dialling).ok_or_else(|| self.endpoint.closed_error())?;
        self.server.store(server.number(), Ordering::Relaxed);
        drop(state);
        self.endpoint.state.wake();
        Ok(())
    }

    /// Warns that nobody ticked it. An exception in flight stays as it is.
    fn warn_never_ticked(&self, py: Python<'_>) {
        let raised = PyErr::take(py);
        let sentence = format!(
            "{} was never ticked, so it never connected: call tick(), or receive() and flush(), some 60 times a second",
            self.endpoint.described()
        );
        if let Err(error) = warn::<PyResourceWarning>(py, sentence) {
            error.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    }

    /// Asks the connection for something; None if it never dialled.
    fn asked<T>(&self, ask: impl FnOnce(&Dial) -> T) -> PyResult<Option<T>> {
        let state = self.endpoint.state.lock()?;
        // It is the only connection, so no other has its place.
        Ok(state.host().dialled(self.server()).map(ask))
    }

    fn make_events(&self, py: Python<'_>, pending: &mut Pending, events: Vec<Event>) -> PyResult<()> {
        let reconnecting = self.reconnecting.as_deref();
        if let Some(reconnecting) = reconnecting {
            pending.lists[EVENTS].append(&mut reconnecting.take_events());
        }
        for event in events {
            pending.lists[EVENTS].push(match event {
                Event::Accepted { .. } => continue,
                Event::Dialled { client_index, .. } => {
                    log(py, Level::Info, || {
                        format!("{} connected, slot {client_index}", self.endpoint.described())
                    });
                    if let Some(reconnecting) = reconnecting {
                        let now = self.endpoint.now()?;
                        reconnecting.core().note_connected(now);
                    }
                    Py::new(py, Connected { client: None })?.into_any()
                }
                Event::Disconnected { reason, violation, detail, .. } => {
                    log_end(py, reason, violation.as_ref(), detail.as_deref(), || self.endpoint.described());
                    match reconnecting {
                        Some(reconnecting) => reconnecting.note_end(
                            &self.endpoint,
                            py,
                            self.endpoint.now()?,
                            ConnectionEnd { reason, detail },
                        )?,
                        None => Disconnected::event(py, None, reason, detail)?,
                    }
                }
            });
        }
        Ok(())
    }
}
