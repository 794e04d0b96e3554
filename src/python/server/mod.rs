//! A dedicated server for Python: the sans-IO server, its settings and methods.

mod calls;
mod objects;
mod rooms;

use crate::python::prelude::*;

pub(crate) use self::rooms::Room;
use super::address::AddressList;
use super::arrays::{Batch, Recipients};
use super::capture::Secrets;
use super::ghosts::World;
use super::kind::SERVER;
use super::rendezvous::{self, Rendezvous};
use super::sending::EncodedMessages;
use super::settings::Congestion;
use super::setup::{listen, open_driver};
use super::stats::{ChannelSnapshot, SnapshotColumns};
use crate::driver::Recorded;
use crate::endpoint::{self, BudgetError, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, RoomError, ToRoom};
use crate::limits::MAX_CLIENT_SLOTS;
use crate::netcode;
use crate::transport::BudgetConfig;

/// The maximum lifetime of tokens in seconds: a year.
const MAX_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The maximum difference of clocks in seconds, an hour: fix clocks that are further apart.
const MAX_CLOCK_SKEW: u64 = 3600;

#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Server {
    /// Tells the servers of a process apart.
    id: u64,
    max_clients: usize,
    admission: Option<Py<PyAny>>,
    pub(super) endpoint: Endpoint,
    /// Locked after the endpoint where both are.
    players: Mutex<Players>,
    /// The room of all clients that the game knows.
    everybody: endpoint::PeerRoom,
    world: Py<World>,
}

/// The receivers of a message.
enum Audience<'a> {
    These(Recipients),
    Room(&'a endpoint::PeerRoom),
}

/// The clients that the game knows of.
#[derive(Default)]
struct Players {
    handles: HashMap<PeerHandle, Py<ClientHandle>>,
    /// Newcomers that the admission hook was asked about, until the game hears of them: their handles keep the hook's
    /// data.
    newcomers: HashMap<PeerHandle, Py<ClientHandle>>,
    /// Handles to forget once the messages of their clients are handed over.
    gone: Vec<PeerHandle>,
}

#[record(module = "tickwire.tokens")]
#[derive(Debug)]
pub(crate) struct Access {
    #[callable(1)]
    pub(super) admission: Option<Py<PyAny>>,
    pub(super) public_addresses: Option<AddressList>,
    #[within(1, MAX_TOKEN_LIFETIME)]
    max_token_lifetime: Option<u64>,
    #[within(0, MAX_CLOCK_SKEW)]
    clock_skew: u64,
    #[truth]
    replace_duplicates: bool,
}

#[pymethods]
impl Server {
    #[new]
    fn new<'py>(
        py: Python<'py>,
        address: Address,
        protocol: Py<Protocol>,
        key: Option<&Object<'py>>,
        #[within(1, MAX_CLIENT_SLOTS)] max_clients: usize,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let private_key = key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?;
        let given = Given::new(py, "Server.__new__", settings)?;
        let access: Bound<'py, Access> = given.settings("access")?;
        let access = access.get();
        let meeting = given.settings::<Rendezvous>("rendezvous")?;
        let mut settings = Settings::new(given, &SERVER, protocol.get(), Vec::new())?;
        if settings.tuning.get().bind.is_some() {
            return Err(value_error("bind must be None for a server: it binds to its address"));
        }
        let (network, address) = (settings.network.clone(), address.0);
        let has_names = access.public_addresses.is_some();
        warn_of_address(py, address, key.is_some(), has_names, network.is_some())?;
        let capture = settings.debugging.get().capture(py)?;
        let mut driver = open_driver(py, address, &settings)?;
        let address = driver.local_address();
        let public = access.public_addresses.as_ref();
        let mut names = public.map_or_else(|| vec![address], AddressList::sockets);
        names.push(DEVELOPMENT_ADDRESS);
        let mut netcode = netcode::ServerConfig::new(protocol.get().id, private_key, max_clients, names);
        access.apply(&mut netcode);
        // The well-known key keeps nobody out. With a key of its own a server doesn't explain refusals even on
        // loopback: a relay may listen in front of it, and strangers ask through that.
        netcode.explains = key.is_none();
        netcode.upper_protocol = protocol.get().upper_protocol();
        let recorded = network.as_ref().and_then(VirtualNetwork::recorded);
        let mut source = recorded.map_or_else(|| entropy(network), |recorded| Box::new(recorded));
        let mut entropy = Recorded::new(&mut *source);
        let mut host =
            listen(netcode, protocol.get().core.clone(), &mut settings, &mut entropy, driver.unix())?;
        if let Some(capture) = capture {
            let secrets = Secrets::Server { key: &private_key, entropy: entropy.drawn() };
            capture.get().attach(py, &mut driver, &secrets)?;
        }
        if access.admission.is_some() {
            host.ask_admission();
        }
        // The server's own bound counts if the rendezvous can't count so far.
        let places = u8::try_from(max_clients).unwrap_or(0);
        meeting.get().register(&mut driver, &mut *source, protocol.get().id, (0, places));
        let admission = access.admission.as_ref().map(|hook| hook.clone_ref(py));
        Self::over(py, (host, driver), protocol, settings, max_clients, admission)
    }

    properties! {
        max_clients: usize = self.max_clients;
        code: PyResult<Option<String>> = rendezvous::code(&self.endpoint.state);
        code_error: PyResult<Option<String>> = rendezvous::code_error(&self.endpoint.state);
        world: Py<World> = self.world.clone_ref(py);
    }

    #[getter]
    fn clients(&self, py: Python<'_>) -> PyResult<Vec<Py<ClientHandle>>> {
        let state = self.endpoint.state.lock()?;
        let players = lock(&self.players);
        let known = |client| Some(players.handles.get(&client)?.clone_ref(py));
        Ok(state.host().connected().filter_map(known).collect())
    }

    fn send(
        &self,
        client: &Object<'_>,
        message: &Object<'_>,
        channel: Option<&Object<'_>>,
        key: Option<&Object<'_>>,
        tag: Option<&Object<'_>>,
        #[truth] notify: bool,
    ) -> PyResult<Py<PyAny>> {
        let sending = Sending { message, channel, key, tag, notify };
        match client.cast::<ClientHandle>() {
            Ok(client) => self.endpoint.send(self.core_handle("client", client.get())?, sending),
            Err(_) => self.send_rows(client, sending),
        }
    }

    fn set_budget(
        &self,
        #[number] bytes_per_second: f64,
        #[number] burst_bytes: f64,
        client: Option<&ClientHandle>,
        #[truth] adaptive: bool,
    ) -> PyResult<bool> {
        let client = client.map(|client| self.core_handle("client", client)).transpose()?;
        let budget = BudgetConfig { adaptive, ..BudgetConfig::new(bytes_per_second, burst_bytes) };
        let set = self.endpoint.state.lock()?.change().set_budget(client, budget);
        self.answer(set)
    }

    fn set_congestion(&self, congestion: &Congestion, client: Option<&ClientHandle>) -> PyResult<bool> {
        let client = client.map(|client| self.core_handle("client", client)).transpose()?;
        let set = self.endpoint.state.lock()?.change().set_congestion(client, congestion.0);
        self.answer(set)
    }

    fn broadcast(
        &self,
        message: &Object<'_>,
        channel: Option<&Object<'_>>,
        clients: Option<&Object<'_>>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        key: Option<&Object<'_>>,
        tag: Option<&Object<'_>>,
        #[truth] notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let sending = Sending { message, channel, key, tag, notify };
        let outgoing = self.endpoint.encode(sending)?;
        let clients = match clients {
            Some(clients) => Audience::These(self.recipients(clients)?),
            None => Audience::Room(&self.everybody),
        };
        self.broadcast_to(message, clients, exclude, &outgoing)
    }

    fn room(slf: Py<Self>) -> PyResult<Room> {
        Room::new(slf)
    }

    fn forget(&self, channel: &Object<'_>, #[within(0, u32::MAX)] key: Option<u32>) -> PyResult<usize> {
        let channel = self.endpoint.protocol.get().channel(Some(channel), None)?;
        Ok(self.everybody.forget(channel, key))
    }

    fn client(&self, py: Python<'_>, number: u64) -> Option<Py<ClientHandle>> {
        let players = lock(&self.players);
        let handle = players.handles.get(&PeerHandle::from_number(number))?;
        Some(handle.clone_ref(py))
    }

    fn disconnect(
        &self,
        client: &ClientHandle,
        reason: Option<&Object<'_>>,
        #[number] linger: f64,
    ) -> PyResult<bool> {
        let goodbye = goodbye(self.endpoint.protocol.get(), linger, reason)?;
        let client = self.core_handle("client", client)?;
        let left = self.endpoint.with(|core, driver| {
            driver.transmit(|now, out| core.disconnect_with(now, client, goodbye, out))
        })?;
        self.endpoint.state.wake();
        if left.is_err() {
            return self.absent();
        }
        self.endpoint.discard_calls(client);
        Ok(true)
    }

    methods! {
        stats(client: &ClientHandle) -> PyResult<ConnectionStats> =
            self.endpoint.stats(self.core_handle("client", client)?, client.end.get());
    }

    #[getter]
    fn channel_stats(&self) -> PyResult<ChannelSnapshot> {
        let state = self.endpoint.state.lock()?;
        let mut snapshot = SnapshotColumns::default();
        for client in state.host().connected() {
            let Some(connection) = state.host().connection(client) else { continue };
            for channel in 0..state.host().protocol().channels().len() {
                snapshot.push(client.slot, channel as u8, &connection.channel_stats(channel));
            }
        }
        Ok(ChannelSnapshot(Arc::new(snapshot)))
    }

    fn __repr__(&self) -> String {
        let Ok(state) = self.endpoint.state.lock() else { return "<Server (unusable after fork)>".into() };
        let clients = state.host().connected().count();
        let closed = if state.is_closed() { ", closed" } else { "" };
        format!(
            "<Server at {} with {clients} of {} clients{closed}>",
            self.endpoint.address.0, self.max_clients
        )
    }

    traverses!(self.admission, self.world, self.players, self.endpoint);

    endpoint!(client: ClientHandle);
}

holds!(Players: handles, newcomers);

impl Server {
    /// A server of this host, over this driver.
    fn over(
        py: Python<'_>,
        (host, driver): (Host, Driver),
        protocol: Py<Protocol>,
        settings: Settings<'_>,
        max_clients: usize,
        admission: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        static SERVERS: AtomicU64 = AtomicU64::new(0);
        let id = SERVERS.fetch_add(1, Ordering::Relaxed);
        let endpoint = Endpoint::new(py, host, driver, protocol, settings)?;
        let state = Arc::downgrade(&endpoint.state);
        let world = World::new(endpoint.population.clone(), state, id, endpoint.strict, max_clients);
        let everybody = endpoint.state.lock()?.carrier.session.rooms().everybody().clone();
        Ok(Server {
            id,
            max_clients,
            admission,
            endpoint,
            world: Py::new(py, world)?,
            players: Mutex::default(),
            everybody,
        })
    }

    /// A server on the port of a peer: it takes only the tokens that it makes itself.
    pub(super) fn hosted<'py>(
        py: Python<'py>,
        protocol: Py<Protocol>,
        given: Given<'py>,
        world: Option<&[u8]>,
        (peer, address, players): (&Endpoint, SocketAddr, usize),
    ) -> PyResult<Self> {
        let mut settings = Settings::new(given, &SERVER, protocol.get(), Vec::new())?;
        settings.share_network(py, peer.network.as_ref());
        let mut entropy = entropy(settings.network.clone());
        let mut key = [0; 32];
        entropy.fill(&mut key);
        let netcode = netcode::ServerConfig::new(protocol.get().id, key, players, vec![address]);
        let driver = peer.with(|_, driver| driver.open_hosted(true, driver.local_address()))?;
        let host = listen(netcode, protocol.get().core.clone(), &mut settings, &mut *entropy, driver.unix())?;
        let mut server = Self::over(py, (host, driver), protocol, settings, players, None)?;
        server.endpoint.carrier = Some(Arc::downgrade(&peer.state));
        if let Some(bytes) = world {
            server.world.get().load(PyBytes::new(py, bytes).as_any())?;
        }
        Ok(server)
    }

    /// The bytes of its world.
    pub(super) fn save(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        Ok(self.world.get().save(py)?.as_bytes().to_vec())
    }

    /// Another player hosts the game: it ends without a goodbye.
    pub(super) fn end_hosted(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.state.close();
        self.endpoint.end_calls(py)
    }

    /// The core's handle of a client: see `endpoint!()`.
    fn peer(&self, client: &Bound<'_, ClientHandle>) -> PyResult<PeerHandle> {
        self.core_handle("client", client.get())
    }

    fn recipients(&self, clients: &Object<'_>) -> PyResult<Recipients> {
        Recipients::new(clients, |client| self.core_handle("clients[]", client))
    }

    /// Queues a row of a batch for each client.
    fn send_rows(&self, clients: &Object<'_>, sending: Sending<'_, '_>) -> PyResult<Py<PyAny>> {
        let py = clients.py();
        if !sending.message.is_instance_of::<Batch>() {
            let class = clients.get_type().name()?;
            refuse!(
                PyTypeError,
                "client must be a ClientHandle, not {class}: use broadcast() or a Batch for several clients"
            );
        }
        let EncodedMessages::Rows(rows) = self.endpoint.encode(sending)? else { return Ok(py.None()) };
        let clients = self.recipients(clients)?;
        clients.check_count(&rows)?;
        let left_out = self.endpoint.with(|core, driver| {
            let now = driver.now();
            rows.queue(|row, channel, message, options| {
                let client = clients.0.get(row).copied().ok_or(SendError::NotConnected)?;
                core.send(now, client, channel, message, options)
            })
        })??;
        Ok(left_out.into_pyobject(py)?.unbind())
    }

    /// Queues a message or a batch for each of `clients`; a room retains it if its channel does. Returns the clients without
    /// room for all of it, and the given ones that are gone.
    fn broadcast_to(
        &self,
        message: &Object<'_>,
        clients: Audience<'_>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        outgoing: &EncodedMessages,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        self.send_all(message.py(), &class_name(message), clients, exclude, outgoing.messages())
    }

    /// Like `broadcast_to`, for encoded messages of this class.
    fn send_all(
        &self,
        py: Python<'_>,
        class: &str,
        clients: Audience<'_>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        (channel, messages): (usize, &[(Message, SendOptions)]),
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let exclude = exclude.map(|client| self.core_handle("exclude", client.get())).transpose()?;
        let sent = self.endpoint.with(|core, driver| match clients {
            Audience::These(Recipients(clients)) => {
                let clients = clients.into_iter().filter(|client| Some(*client) != exclude);
                core.send_all(driver.now(), clients, channel, messages).map_err(RoomError::Send)
            }
            Audience::Room(room) => {
                let retain_bytes = self.endpoint.protocol.get().retains(channel);
                room.send(driver.now(), core, ToRoom { channel, messages, exclude, retain_bytes })
            }
        })?;
        let left_out = sent.map_err(|error| match error {
            RoomError::Send(error) => self.endpoint.send_error(class, channel, error),
            RoomError::Full { .. } => {
                MessageTooLargeError::new_err(format!("retain_bytes of channel {channel} {error}"))
            }
        })?;
        Ok(left_out.into_iter().filter_map(|client| self.handle_of(py, client)).collect())
    }

    /// The handle of a client, if the game knows it.
    pub(super) fn handle_of(&self, py: Python<'_>, peer: PeerHandle) -> Option<Py<ClientHandle>> {
        lock(&self.players).handles.get(&peer).map(|handle| handle.clone_ref(py))
    }

    /// The core's handle, if the client in an argument is this server's.
    pub(super) fn core_handle(&self, name: &str, client: &ClientHandle) -> PyResult<PeerHandle> {
        client.of_server(name, self.id)
    }

    /// The answer of a setting.
    fn answer(&self, set: Result<(), BudgetError>) -> PyResult<bool> {
        match set {
            Ok(()) => Ok(true),
            Err(BudgetError::NotConnected) => self.absent(),
            Err(BudgetError::Refused(error)) => Err(value_error(error)),
        }
    }

    /// The answer if a client is gone.
    fn absent(&self) -> PyResult<bool> {
        if self.endpoint.strict { Err(stale_client()) } else { Ok(false) }
    }
}

impl Access {
    /// Sets what concerns tokens.
    pub(super) fn apply(&self, netcode: &mut netcode::ServerConfig) {
        netcode.max_token_lifetime = self.max_token_lifetime.map(Duration::from_secs);
        netcode.clock_skew = Duration::from_secs(self.clock_skew);
        netcode.replace_duplicates = self.replace_duplicates;
    }
}

/// Warns of a server that anyone can join, or that no token can name.
fn warn_of_address(
    py: Python<'_>,
    address: SocketAddr,
    has_key: bool,
    has_names: bool,
    is_simulated: bool,
) -> PyResult<()> {
    if !has_key && !is_simulated && !address.ip().is_loopback() {
        let sentence = format!(
            "the server at {address} has no key: it is in development mode and anyone can connect. \
             Give it the key of your login backend"
        );
        warn::<PyUserWarning>(py, sentence)?;
    } else if has_key && !has_names && address.ip().is_unspecified() {
        let sentence = format!(
            "connect tokens can't contain the address {address}: \
             give access=tickwire.tokens.Access(public_addresses=[...]) with the addresses in your tokens"
        );
        warn::<PyUserWarning>(py, sentence)?;
    }
    Ok(())
}
