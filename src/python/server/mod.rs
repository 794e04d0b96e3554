//! A dedicated server for Python: the sans-IO server, its settings, and what the game calls.

mod objects;
mod retained;
mod rooms;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::retained::Retained;
pub(crate) use self::rooms::Room;
use self::rooms::{Members, Rooms};
use super::address::{Address, AddressLike, AddressList};
use super::arguments::{int, number, optional_int, optional_number, shared, truth};
use super::arrays::{Recipients, Rows};
use super::capture::{self, Secrets};
use super::chunks::{Chunk, IncomingChunk, Transfer};
use super::congestion::Congestion;
use super::development;
use super::endpoint::{Endpoint, SERVER};
use super::errors::{stale_client, value_error};
use super::events::ClientHandle;
use super::fields::within;
use super::ghosts::World;
use super::goodbye::goodbye;
use super::hooks;
use super::inbox::{Inbox, Tick, Ticking, payload};
use super::lock;
use super::network::SimulatedNetwork;
use super::protocol::Protocol;
use super::settings::Settings;
use super::setup::{REPLAY_WINDOW, class_name, entropy, open_driver, send_options};
use super::stats::{ChannelSnapshot, ConnectionStats, SnapshotColumns};
use super::time::Inputs;
use super::token::extract_key;
use crate::driver::{Recorded, VirtualNetwork};
use crate::endpoint::{
    BudgetError, ChunkLimits, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, PeerHandle, SendError, ServerConfig,
};
use crate::limits::MAX_CLIENT_SLOTS;
use crate::netcode;
use crate::time::{Duration, Instant};
use crate::transport::{self, BudgetConfig, Message, SendOptions};

/// The most seconds a token may be said to live: a year.
const MAX_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The most seconds by which clocks may be said to differ: an hour. Clocks further apart want mending.
const MAX_CLOCK_SKEW: u64 = 3600;

/// Seconds that a reliable channel may be said to stay full: no game waits longer for one player.
const STALLED_TIMEOUT: core::ops::RangeInclusive<f64> = 0.1..=3600.0;

fn extract_stalled_timeout(seconds: f64) -> PyResult<Duration> {
    if STALLED_TIMEOUT.contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let (low, high) = (STALLED_TIMEOUT.start(), STALLED_TIMEOUT.end());
    Err(PyValueError::new_err(format!(
        "stalled_timeout must be {low} to {high} seconds, or None, not {seconds}"
    )))
}

/// A dedicated server on one UDP socket.
///
/// Args:
///     address (AddressLike): where to listen; port 0 picks one (see :attr:`address`). ``[::]``: all of IPv6 and
///         IPv4.
///     protocol (Protocol): what both sides share.
///     key (bytes | None, default None): the 32-byte private key shared with the login backend. None: development
///         mode, a well-known key; anyone can connect, so a warning is given unless the address is loopback.
///     max_clients (int, default 64): client slots, 1 to 65,536.
///     public_addresses (Sequence[AddressLike] | None, default None): what connect tokens call this server, when not
///         its own address.
///     max_token_lifetime (int | None, default None): the longest ``expires_in``, in seconds, that the login backend
///         gives to tokens: one that lives longer is refused.
///     clock_skew (int, default 0): seconds by which the clocks of backend and server may differ: tokens are taken
///         this long after they expire, and from this long before the start.
///     replace_duplicates (bool, default True): whether a client takes the place of one with its ``client_id`` that
///         is connected.
///     stalled_timeout (float | None, default 5.0): seconds, 0.1 to 3,600: a player is dropped when a reliable
///         channel to it is full and nothing of it is delivered for so long; None: never.
///     strict (bool, default False): whether what a player does raises where a player is named, as :meth:`send` says.
///     factory (MessageFactory | None, default None): makes the message objects; None: plain construction.
///     priority (PriorityHook | None, default None): called in each flush in which messages wait whose order is free,
///         with their :class:`Candidates`; returns scores.
///     admission (AdmissionHook | None, default None): called with the newcomers of a tick; returns those it refuses.
///     slow_hook (float, default 0.005): seconds; of a hook that takes longer the logger is told, at most once a
///         second.
///     chunk_memory (int, default 0): bytes of chunks that each client may have in memory here; 0: none are taken.
///     chunk_directory (str | PathLike[str] | None, default None): where they go instead, as files.
///     chunk_file_limit (int | None, default None): bytes of the largest of these files; None: 1 GiB.
///     chunk_directory_limit (int | None, default None): bytes of all of them together; None: eight times
///         chunk_file_limit.
///     congestion (Congestion | None, default None): how fast chunks may go out; None: adaptive.
///     driver (Literal['polled', 'thread'], default 'polled'): "polled": the socket is read and written when the game
///         ticks. "thread": a native thread keeps the connections going between ticks, and while the game is busy.
///     conditions (Conditions | None, default None): a bad network to put on all that is sent, for tests. Its rate
///         and its luck are those of one line: all peers share them.
///     seed (int | None, default None): makes those conditions repeatable; None: random.
///     network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
///     columns (Sequence[type] | None, default None): message classes that come as columns (:meth:`Inbox.columns`)
///         and not as objects.
///     capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` of all datagrams, or the path
///         of a new one.
///     mtu (int, default 1280): bytes of the largest IP packets to send, 1,126 to 1,280.
///     packet_notifications (bool, default False): whether ``inbox.packets`` tells what became of each packet.
///
/// Raises:
///     OSError: the address can't be bound; errno says why.
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Server {
    /// Tells the servers of one process apart.
    id: u64,
    max_clients: usize,
    admission: Option<Py<PyAny>>,
    pub(super) endpoint: Endpoint,
    /// Locked last, where the endpoint is locked too.
    players: Mutex<Players>,
    /// What newcomers are sent. Locked inside of the endpoint's lock, so that none misses a value.
    retained: Mutex<Retained>,
    rooms: Rooms,
    world: Py<World>,
}

/// Whom something is for.
enum Audience<'a> {
    Everybody,
    These(Recipients),
    Room(&'a Members),
}

/// Those that the game knows of.
#[derive(Default)]
struct Players {
    handles: HashMap<PeerHandle, Py<ClientHandle>>,
    /// Of those that the admission hook was asked about, until the game is notified of them: what it notes there is kept.
    newcomers: HashMap<PeerHandle, Py<ClientHandle>>,
    /// Handles to forget when the messages of their clients are handed over.
    gone: Vec<PeerHandle>,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (address, protocol, *, key = None, max_clients = 64, public_addresses = None,
                        max_token_lifetime = None, clock_skew = 0, replace_duplicates = true,
                        stalled_timeout = Some(5.0), admission = None, **settings))]
    #[pyo3(text_signature = "(address, protocol, *, key=None, max_clients=64, public_addresses=None, \
                             max_token_lifetime=None, clock_skew=0, replace_duplicates=True, \
                             stalled_timeout=5.0, strict=False, factory=None, \
                             priority=None, admission=None, slow_hook=0.005, chunk_memory=0, \
                             chunk_directory=None, chunk_file_limit=None, chunk_directory_limit=None, \
                             congestion=None, driver='polled', conditions=None, seed=None, network=None, \
                             columns=None, capture=None, mtu=1280, \
                             packet_notifications=False)")]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn new<'py>(
        py: Python<'py>,
        address: AddressLike,
        #[pyo3(from_py_with = shared::protocol)] protocol: Py<Protocol>,
        key: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = int::max_clients)] max_clients: i128,
        public_addresses: Option<AddressList>,
        #[pyo3(from_py_with = optional_int::max_token_lifetime)] max_token_lifetime: Option<i128>,
        #[pyo3(from_py_with = int::clock_skew)] clock_skew: i128,
        #[pyo3(from_py_with = truth::replace_duplicates)] replace_duplicates: bool,
        #[pyo3(from_py_with = optional_number::stalled_timeout)] stalled_timeout: Option<f64>,
        admission: Option<Py<PyAny>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        hooks::check(py, "admission", admission.as_ref())?;
        let private_key = key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?;
        let max_clients = within("max_clients", max_clients, 1, MAX_CLIENT_SLOTS)?;
        let lifetime = |seconds| within("max_token_lifetime", seconds, 1, MAX_TOKEN_LIFETIME);
        let max_token_lifetime = max_token_lifetime.map(lifetime).transpose()?;
        let clock_skew = within("clock_skew", clock_skew, 0, MAX_CLOCK_SKEW)?;
        let stalled_timeout = stalled_timeout.map(extract_stalled_timeout).transpose()?;
        let none = ChunkLimits::SERVER.memory_bytes;
        let mut settings = Settings::new(py, "Server.__new__", settings, none, protocol.get())?;
        settings.pending.has_senders = true;
        let (network, address) = (settings.network.clone(), address.0);
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

        let capture = capture::chosen(py, settings.capture.take())?;
        let mut driver = open_driver(py, address, &settings)?;
        let address = driver.local_address();
        let mut names = public_addresses.map_or_else(|| vec![address], |given| given.0);
        names.push(DEVELOPMENT_ADDRESS);
        let mut netcode = netcode::ServerConfig::new(protocol.get().id, private_key, max_clients, names);
        netcode.replay_window = REPLAY_WINDOW;
        netcode.max_token_lifetime = max_token_lifetime.map(Duration::from_secs);
        netcode.clock_skew = Duration::from_secs(clock_skew);
        netcode.replace_duplicates = replace_duplicates;
        // Nobody is kept out by the well-known key. With one of its own a server is silent at a loopback address too: a relay
        // may listen before it, and strangers ask through that.
        netcode.explains = key.is_none();
        netcode.spoken = protocol.get().spoken();
        let (connection, chunks) = (settings.connection.clone(), settings.arrivals.limits);
        let config = ServerConfig { netcode, connection, chunks };
        let recorded = network.as_ref().and_then(VirtualNetwork::recorded);
        let mut source = recorded.map_or_else(|| entropy(network), |recorded| Box::new(recorded));
        let mut entropy = Recorded::new(&mut *source);
        let core = protocol.get().core.clone();
        let mut host = Host::server(config, core, &mut entropy, driver.unix()).map_err(value_error)?;
        if let Some(capture) = capture {
            let secrets = Secrets::Server { key: &private_key, entropy: entropy.drawn() };
            capture.get().attach(py, &mut driver, &secrets)?;
        }
        if let Some(directory) = settings.arrivals.directory.take() {
            host.set_chunk_store(Box::new(directory.per_client()));
        }
        if admission.is_some() {
            host.ask_admission();
        }
        host.set_stalled_timeout(stalled_timeout);
        static SERVERS: AtomicU64 = AtomicU64::new(0);
        let id = SERVERS.fetch_add(1, Ordering::Relaxed);
        let endpoint = Endpoint::new(py, &SERVER, host, driver, protocol, settings)?;
        let state = Arc::downgrade(&endpoint.state);
        let world = World::new(endpoint.population.clone(), state, id, endpoint.strict);
        Ok(Server {
            id,
            max_clients,
            admission,
            endpoint,
            world: Py::new(py, world)?,
            players: Mutex::default(),
            retained: Mutex::default(),
            rooms: Rooms::default(),
        })
    }

    /// Where it listens, with the port that was picked.
    #[getter]
    fn address(&self) -> Address {
        self.endpoint.address
    }

    /// The simulated network it is on; None on a real one.
    #[getter]
    fn network(&self, py: Python<'_>) -> Option<Py<SimulatedNetwork>> {
        self.endpoint.network.as_ref().map(|network| network.clone_ref(py))
    }

    /// What both sides share.
    #[getter]
    fn protocol(&self, py: Python<'_>) -> Py<Protocol> {
        self.endpoint.protocol.clone_ref(py)
    }

    /// Its ghosts: what is spawned here appears at its clients.
    #[getter]
    fn world(&self, py: Python<'_>) -> Py<World> {
        self.world.clone_ref(py)
    }

    /// The inputs of the tick that runs: the protocol must have ``inputs``.
    #[getter]
    fn inputs(slf: Py<Self>) -> Inputs {
        Inputs(slf)
    }

    /// The number of client slots.
    #[getter]
    fn max_clients(&self) -> usize {
        self.max_clients
    }

    /// The connected clients, by slot.
    #[getter]
    fn clients(&self, py: Python<'_>) -> PyResult<Vec<Py<ClientHandle>>> {
        let state = self.endpoint.state.lock()?;
        let players = lock(&self.players);
        let known = |client| Some(players.handles.get(&client)?.clone_ref(py));
        Ok(state.host().connected().filter_map(known).collect())
    }

    /// Whether :meth:`close` was called, and what it lingered for is over.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        self.endpoint.closed()
    }

    /// Everything counted since the start, drops by name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.endpoint.counters(py)
    }

    /// ``with server.tick() as inbox:`` receives on entry and sends on exit.
    fn tick(slf: Py<Self>) -> Tick {
        Tick(Ticking::Server(slf))
    }

    /// The first half of a tick: takes what arrived.
    pub(super) fn receive(&self, py: Python<'_>) -> PyResult<Inbox> {
        let make = |pending: &mut _, events| self.make_objects(py, pending, events);
        self.endpoint.receive(py, || self.admit(py), make)
    }

    /// The second half of a tick: sends what is queued.
    ///
    /// Raises:
    ///     What the priority hook raised. The packets are out then, in the order they have without it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.flush(py)
    }

    /// Keeps connections alive without taking messages (while loading, say): they wait, and when the
    /// receive window is full their sender has to wait too. Nothing reliable is lost.
    fn pump(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.pump(py)
    }

    /// What needn't wait for a tick, for event loops to call when the socket is readable and when it is time: reads,
    /// acks, keeps alive, and sends chunks and again what was lost. Messages wait for :meth:`receive` as with
    /// :meth:`pump`. Returns the seconds after which it is time again, if nothing arrives or is sent before.
    ///
    /// Raises:
    ///     OSError: receiving doesn't work any more.
    ///     ClosedError: the server is closed.
    fn step(&self, py: Python<'_>) -> PyResult<f64> {
        self.endpoint.step(py)
    }

    /// Whether the next :meth:`receive` has something that wasn't told: events, messages, notifications, chunks,
    /// ends of transfers.
    #[getter]
    fn has_news(&self) -> PyResult<bool> {
        self.endpoint.has_news()
    }

    /// The system's number of the socket, for event loops to watch: when it is readable, :meth:`step`.
    ///
    /// Raises:
    ///     ValueError: there is no socket to watch: a thread does, or the network is simulated.
    fn fileno(&self) -> PyResult<i64> {
        self.endpoint.fileno()
    }

    /// Queues a message for the next flush. Returns :attr:`SendResult.SENT`, which is true, or what its player did that it
    /// wasn't queued: ``GONE`` or ``FULL``, which are false.
    ///
    /// Args:
    ///     client (ClientHandle): who gets it.
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): by number or by name; None: the one that the message's class
    ///         names as its own, else the first.
    ///     key (int, default 0): on a latest channel, what the message is the value of.
    ///     tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
    ///     notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
    ///
    /// Raises:
    ///     FieldError: a field's value is not in its range.
    ///     UnregisteredMessageError: the class is not in the protocol.
    ///     MessageTooLargeError: more bytes than the channel takes.
    ///     ChannelError: there is no such channel.
    ///     ValueError: the client is another server's.
    ///     ClosedError: the server is closed.
    ///     StaleClientError, ChannelFullError: with ``strict=True``, in place of ``GONE`` and ``FULL``.
    #[pyo3(signature = (client, message, channel = None, *, key = 0, tag = 0, notify = false))]
    fn send(
        &self,
        client: &Bound<'_, ClientHandle>,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = int::key)] key: i128,
        #[pyo3(from_py_with = int::tag)] tag: i128,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Py<PyAny>> {
        let options = send_options(key, tag, notify)?;
        let encoded = self.endpoint.protocol.get().encode_message(message)?;
        let channel = self.endpoint.protocol.get().channel(channel, Some(encoded.message_type))?;
        let client = self.core_handle(client.get());
        let sent = self.endpoint.with(|core, driver| {
            client.map(|client| core.send(driver.now(), client, channel, encoded, options))
        })??;
        self.endpoint.answer(message.py(), sent, channel, || class_name(message))
    }

    /// Queues bytes on a payload channel for the next flush. Their fate comes in ``inbox.notifications``, exactly
    /// once, in the order of the packets. Returns what :meth:`send` does.
    ///
    /// Args:
    ///     client (ClientHandle): who gets it.
    ///     data (bytes): the payload.
    ///     channel (int | str): a payload channel, by number or by name.
    ///     tag (int): your own name for it, 32 bits: notifications and candidates have it.
    ///
    /// Raises:
    ///     As :meth:`send`.
    #[pyo3(signature = (client, data, channel, *, tag))]
    fn send_payload(
        &self,
        client: &Bound<'_, ClientHandle>,
        data: &[u8],
        channel: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = int::tag)] tag: i128,
    ) -> PyResult<Py<PyAny>> {
        let tag = within("tag", tag, 0, u32::MAX)?;
        let channel = self.endpoint.protocol.get().channel(Some(channel), None)?;
        let handle = self.core_handle(client.get());
        let sent = self.endpoint.with(|core, driver| {
            handle.map(|client| core.send_payload(driver.now(), client, channel, payload(data), tag))
        })??;
        self.endpoint.answer(client.py(), sent, channel, || "the payload".into())
    }

    /// Queues a chunk for a client: it goes beside the messages, which come first. When the client is gone, or too many
    /// chunks wait for it, the transfer is over already, with an error.
    ///
    /// Args:
    ///     client (ClientHandle): who gets it.
    ///     data (Chunk | Buffer | str | PathLike[str]): bytes (held, not copied), another contiguous buffer (copied
    ///         once), or the path of a file (read as it is sent). It is read and hashed in this call: see
    ///         :class:`Chunk`, which is what to give when several clients get the same.
    ///     label (str, default ''): your own name for it, up to 64 bytes of UTF-8.
    ///     burst (bool, default False): while nothing is known of the link, send all of it within a round trip
    ///         instead of feeling the way, at the risk that a slow link drops some, and messages with it. At most 256
    ///         KiB; for load screens, when nothing else matters.
    ///     ask_first (bool, default False): send nothing of it before the receiver has said what it has, so that a
    ///         file that is there in its ``chunk_directory`` costs nothing at all. Others take a round trip more.
    ///
    /// Raises:
    ///     StaleClientError, ChannelFullError: with ``strict=True``, in place of that.
    ///     ChannelError: the protocol has no channel of chunks.
    ///     MessageTooLargeError: the chunk is too large, or too large for ``burst``.
    ///     ValueError: the label is too long.
    ///     OSError: the file can't be read; errno says why.
    ///     ClosedError: the server is closed.
    #[pyo3(signature = (client, data, /, *, label = "", burst = false, ask_first = false))]
    fn send_chunk(
        &self,
        client: &Bound<'_, ClientHandle>,
        data: &Bound<'_, PyAny>,
        label: &str,
        #[pyo3(from_py_with = truth::burst)] burst: bool,
        #[pyo3(from_py_with = truth::ask_first)] ask_first: bool,
    ) -> PyResult<Transfer> {
        let handle = self.core_handle(client.get())?;
        self.endpoint.check_open(handle)?;
        self.endpoint.send_chunk(
            handle,
            Some(client.clone().unbind()),
            &Chunk::given(data)?,
            label,
            burst,
            ask_first,
        )
    }

    /// The chunks of a client that are under way, as they are now; none when it is gone.
    fn incoming_chunks(
        &self,
        py: Python<'_>,
        client: &Bound<'_, ClientHandle>,
    ) -> PyResult<Vec<IncomingChunk>> {
        let handle = self.core_handle(client.get())?;
        self.endpoint.incoming_chunks(py, handle, Some(client.as_unbound()))
    }

    /// Changes how much may be sent to one client, or with None to each of them, those to come included. False when that client
    /// is gone.
    ///
    /// Args:
    ///     bytes_per_second (float): what may be sent, UDP/IP headers included.
    ///     burst_bytes (float): what may be sent at once after a silence. A tick's packets are such a burst.
    ///     client (ClientHandle | None, default None): None: each of them, those to come included.
    ///     adaptive (bool, default True): send less while the line shows that it is full: while round trips grow by
    ///         100 ms or more, a fifth and more of what is sent is lost, or acks stay out. A window of bytes in
    ///         flight, after TCP's (RFC 5681) and LEDBAT's (RFC 6817); 8 KiB may always be in flight, so that a usual
    ///         game never meets it. False: the budget alone decides.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, in place of that.
    #[pyo3(signature = (bytes_per_second, burst_bytes, client = None, *, adaptive = true))]
    fn set_budget(
        &self,
        #[pyo3(from_py_with = number::bytes_per_second)] bytes_per_second: f64,
        #[pyo3(from_py_with = number::burst_bytes)] burst_bytes: f64,
        client: Option<&Bound<'_, ClientHandle>>,
        #[pyo3(from_py_with = truth::adaptive)] adaptive: bool,
    ) -> PyResult<bool> {
        let client = client.map(|client| self.core_handle(client.get())).transpose()?;
        let budget = BudgetConfig { adaptive, ..BudgetConfig::new(bytes_per_second, burst_bytes) };
        match self.endpoint.state.lock()?.change().set_budget(client, budget) {
            Ok(()) => Ok(true),
            Err(BudgetError::NotConnected) => self.absent(),
            Err(BudgetError::Config(error)) => Err(value_error(error)),
        }
    }

    /// Changes how fast chunks may go to one client, or with None to each of them, those to come included. False when that
    /// client is gone.
    ///
    /// Args:
    ///     congestion (Congestion): how fast chunks may go out.
    ///     client (ClientHandle | None, default None): None: each of them, those to come included.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, in place of that.
    #[pyo3(signature = (congestion, client = None, /))]
    fn set_congestion(
        &self,
        congestion: &Bound<'_, Congestion>,
        client: Option<&Bound<'_, ClientHandle>>,
    ) -> PyResult<bool> {
        let client = client.map(|client| self.core_handle(client.get())).transpose()?;
        match self.endpoint.state.lock()?.change().set_congestion(client, congestion.get().0) {
            Ok(()) => Ok(true),
            Err(BudgetError::NotConnected) => self.absent(),
            Err(BudgetError::Config(error)) => Err(value_error(error)),
        }
    }

    /// Queues one message for every connected client; it is encoded once. Returns the clients whose
    /// channel was full: the others have it.
    ///
    /// Args:
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): by number or by name; None: the one that the message's class
    ///         names as its own, else the first.
    ///     clients (Iterable[ClientHandle] | None, default None): these alone; None: all who are connected.
    ///     exclude (ClientHandle | None, default None): one who doesn't get it.
    ///     key (int, default 0): on a latest channel, what the message is the value of.
    ///     tag (int, default 0): your own name for it, 32 bits: notifications and candidates have it.
    ///     notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
    #[pyo3(signature = (message, channel = None, *, clients = None, exclude = None, key = 0, tag = 0, notify = false))]
    #[allow(clippy::too_many_arguments)] // Options, nearly all by keyword.
    fn broadcast(
        &self,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        clients: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        #[pyo3(from_py_with = int::key)] key: i128,
        #[pyo3(from_py_with = int::tag)] tag: i128,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let options = send_options(key, tag, notify)?;
        let (clients, retained) = self.audience(clients)?;
        self.broadcast_message(message, channel, clients, exclude, options, retained)
    }

    /// Queues a row for each client. Returns the rows, by index, that were not queued because their client is gone or
    /// its channel is full. Nothing is queued when a row is wrong.
    ///
    /// Args:
    ///     clients (Iterable[ClientHandle] | array): handles, or their numbers (uint64), as the ``client`` column of
    ///         rows has them.
    ///     class_ (type): the message class that the rows are of.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`. It is copied
    ///         before it is checked: when another thread writes to it meanwhile, what is sent is old in parts and new
    ///         in others.
    ///     channel (int | str | None, default None): by number or by name; None: the one that the message's class
    ///         names as its own, else the first.
    ///     arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
    ///         (from its start) and length.
    ///     key (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
    ///     tag (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
    ///     notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
    ///
    /// Raises:
    ///     FieldError: naming the first row that is wrong, its field, its value and what it must be.
    ///     As :meth:`send`, but for a client that is gone and a channel that is full.
    #[pyo3(signature = (clients, class_, rows, channel = None, *, arena = None, key = None, tag = None, notify = false))]
    #[pyo3(
        text_signature = "($self, clients, class_, rows, channel=None, *, arena=None, key=0, tag=0, notify=False)"
    )]
    #[allow(clippy::too_many_arguments)] // Options, nearly all by keyword.
    fn send_columns(
        &self,
        clients: &Bound<'_, PyAny>,
        class_: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        arena: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Vec<usize>> {
        let rows = Rows::new(self.endpoint.protocol.get(), class_, rows, arena, channel, key, tag, notify)?;
        let clients = self.recipients(clients)?;
        clients.check_count(&rows)?;
        self.endpoint.with(|core, driver| {
            let now = driver.now();
            rows.queue(|row, channel, message, options| {
                let client = clients.0.get(row).copied().flatten().ok_or(SendError::NotConnected)?;
                core.send(now, client, channel, message, options)
            })
        })?
    }

    /// Queues many rows for one client. Returns the rows, by index, that were not queued: for which the channel had no room, or
    /// all when the client is gone.
    ///
    /// Args:
    ///     client (ClientHandle): who gets them.
    ///     class_ (type): the message class that the rows are of.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
    ///     channel (int | str | None, default None): by number or by name; None: the one that the message's class
    ///         names as its own, else the first.
    ///     arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
    ///         (from its start) and length.
    ///     key (int | array, default 0): on a latest channel, what the message is the value of.
    ///     tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
    ///     notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
    ///
    /// Raises:
    ///     As :meth:`send_columns`; StaleClientError: with ``strict=True``, the client is gone.
    #[pyo3(signature = (client, class_, rows, channel = None, *, arena = None, key = None, tag = None, notify = false))]
    #[pyo3(
        text_signature = "($self, client, class_, rows, channel=None, *, arena=None, key=0, tag=0, notify=False)"
    )]
    #[allow(clippy::too_many_arguments)] // Options, nearly all by keyword.
    fn send_rows(
        &self,
        client: &Bound<'_, ClientHandle>,
        class_: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        arena: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Vec<usize>> {
        let rows = Rows::new(self.endpoint.protocol.get(), class_, rows, arena, channel, key, tag, notify)?;
        let client = self.core_handle(client.get())?;
        self.endpoint.with(|core, driver| {
            if self.endpoint.strict && !core.is_connected(client) {
                return Err(stale_client());
            }
            let now = driver.now();
            rows.queue(|_, channel, message, options| core.send(now, client, channel, message, options))
        })?
    }

    /// Queues rows for every connected client, or for those given; each row is encoded once. Returns the clients whose
    /// channel had no room for all of them, and those given that are gone.
    ///
    /// Args:
    ///     class_ (type): the message class that the rows are of.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
    ///     channel (int | str | None, default None): by number or by name; None: the one that the message's class
    ///         names as its own, else the first.
    ///     arena (array | None, default None): where texts, data and lists of the rows lie; their cells are offset
    ///         (from its start) and length.
    ///     clients (Iterable[ClientHandle] | None, default None): these alone; None: all who are connected.
    ///     exclude (ClientHandle | None, default None): one who doesn't get it.
    ///     key (int | array, default 0): on a latest channel, what the message is the value of.
    ///     tag (int | array, default 0): your own name for it, 32 bits: notifications and candidates have it.
    ///     notify (bool, default False): tell in ``inbox.notifications`` what became of it, exactly once.
    ///
    /// Raises:
    ///     As :meth:`send_columns`.
    #[pyo3(signature = (class_, rows, channel = None, *, arena = None, clients = None, exclude = None, key = None,
                        tag = None, notify = false))]
    #[pyo3(
        text_signature = "($self, class_, rows, channel=None, *, arena=None, clients=None, exclude=None, key=0, \
                             tag=0, notify=False)"
    )]
    #[allow(clippy::too_many_arguments)] // Options, nearly all by keyword.
    fn broadcast_rows(
        &self,
        class_: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        arena: Option<&Bound<'_, PyAny>>,
        clients: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        key: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let rows = Rows::new(self.endpoint.protocol.get(), class_, rows, arena, channel, key, tag, notify)?;
        let (clients, retained) = self.audience(clients)?;
        self.queue_rows_for(class_.py(), &rows, clients, exclude, retained)
    }

    /// A room of this server's clients, with nobody in it: see :class:`Room`.
    fn room(slf: Py<Self>) -> Room {
        Room::new(slf)
    }

    /// No longer sends newcomers the newest value of a key, or of all keys, of a channel that retains. Returns how many values
    /// that were.
    ///
    /// Args:
    ///     channel (int | str): by number or by name.
    ///     key (int | None, default None): None: all keys.
    #[pyo3(signature = (channel, key = None))]
    fn forget(
        &self,
        channel: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = optional_int::key)] key: Option<i128>,
    ) -> PyResult<usize> {
        let channel = self.endpoint.protocol.get().channel(Some(channel), None)?;
        let key = key.map(|key| within("key", key, 0, u32::MAX)).transpose()?;
        Ok(lock(&self.retained).forget(channel, key))
    }

    /// The client of a :attr:`ClientHandle.number`, as the ``client`` column of rows has it; None when it is gone.
    #[pyo3(signature = (number, /))]
    fn client(&self, py: Python<'_>, number: u64) -> Option<Py<ClientHandle>> {
        let players = lock(&self.players);
        let handle = players.handles.get(&PeerHandle::from_number(number))?;
        Some(handle.clone_ref(py))
    }

    /// Ends one connection; its player sees :attr:`DisconnectReason.KICKED`, and ``reason`` as the event's ``detail``. What
    /// was sent and isn't there yet is lost, unless ``linger`` gives it time. Never blocks. False when it is gone already.
    ///
    /// Args:
    ///     client (ClientHandle): whose connection ends.
    ///     reason (str | None, default None): a text for the player, as the ``detail`` of its event: 1 to 128 bytes
    ///         in UTF-8. Not in yojimbo's framing.
    ///     linger (float, default 0.0): seconds, 0 to 60.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, in place of that.
    ///     ValueError: naming the argument, its value and its bound.
    #[pyo3(signature = (client, *, reason = None, linger = 0.0))]
    fn disconnect(
        &self,
        client: &Bound<'_, ClientHandle>,
        reason: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number::linger)] linger: f64,
    ) -> PyResult<bool> {
        let goodbye = goodbye(self.endpoint.protocol.get(), linger, reason)?;
        let client = self.core_handle(client.get())?;
        let left = self.endpoint.with(|core, driver| {
            driver.transmit(|now, out| core.disconnect_with(now, client, goodbye, out))
        })?;
        self.endpoint.state.wake();
        if left.is_ok() { Ok(true) } else { self.absent() }
    }

    /// How the connection of a client is doing; of one that is gone, how it was at its end.
    fn stats(&self, client: &Bound<'_, ClientHandle>) -> PyResult<ConnectionStats> {
        self.endpoint.stats(self.core_handle(client.get())?, client.get().end.get())
    }

    /// Counts of all channels of all connected clients, as columns.
    fn channel_stats(&self) -> PyResult<ChannelSnapshot> {
        let state = self.endpoint.state.lock()?;
        let mut snapshot = SnapshotColumns::default();
        for client in state.host().connected() {
            let channels = (0..=u8::MAX)
                .map_while(|channel| Some((channel, state.host().channel_stats(client, channel.into())?)));
            channels.for_each(|(channel, counts)| snapshot.push(client.slot, channel, &counts));
        }
        Ok(ChannelSnapshot(Arc::new(snapshot)))
    }

    /// Ends all connections (players see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket; with ``linger``, when
    /// the players have what was sent. Closing twice is fine.
    ///
    /// Args:
    ///     linger (float, default 0.0): seconds, 0 to 60.
    ///     reason (str | None, default None): a text for the players, as for :meth:`disconnect`.
    ///     wait (bool, default True): whether to block until it is over, other Python threads going on meanwhile. If
    ///         not, go on with ticks, :meth:`step` or :meth:`pump` until :attr:`closed`. On a simulated network,
    ///         where time passes only as the game has it, nothing blocks.
    ///
    /// Raises:
    ///     ValueError: naming the argument, its value and its bound.
    #[pyo3(signature = (*, linger = 0.0, reason = None, wait = true))]
    fn close(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::linger)] linger: f64,
        reason: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = truth::wait)] wait: bool,
    ) -> PyResult<()> {
        self.endpoint.close(py, linger, reason, wait)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(&self, kind: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, traceback: &Bound<'_, PyAny>) {
        let _ = (kind, value, traceback);
        self.endpoint.state.close();
    }

    fn __repr__(&self) -> String {
        let Ok(state) = self.endpoint.state.lock() else { return "<Server, of no use here>".into() };
        let clients = state.host().connected().count();
        let closed = if state.is_closed() { ", closed" } else { "" };
        format!(
            "<Server at {} with {clients} of {} clients{closed}>",
            self.endpoint.address.0, self.max_clients
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.admission)?;
        // What is being worked on is in use.
        if let Ok(players) = self.players.try_lock() {
            let mut handles = players.handles.values().chain(players.newcomers.values());
            handles.try_for_each(|handle| visit.call(handle))?;
        }
        self.endpoint.traverse(visit)
    }
}

impl Server {
    /// See [`Endpoint::transmit`].
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        self.endpoint.transmit(py)
    }

    /// See [`Endpoint::break_thread`].
    #[cfg(feature = "faults")]
    pub(super) fn break_thread(&self) -> PyResult<()> {
        self.endpoint.break_thread()
    }

    /// Those given, or everybody; and what keeps what everybody is sent.
    fn audience(
        &self,
        clients: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Audience<'_>, Option<&Mutex<Retained>>)> {
        match clients {
            Some(clients) => Ok((Audience::These(self.recipients(clients)?), None)),
            None => Ok((Audience::Everybody, Some(&self.retained))),
        }
    }

    fn recipients(&self, clients: &Bound<'_, PyAny>) -> PyResult<Recipients> {
        Recipients::new(clients, |client| self.core_handle(client).ok())
    }

    /// Encodes a message once and queues it for each of `clients`.
    fn broadcast_message(
        &self,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        clients: Audience<'_>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        options: SendOptions,
        retained: Option<&Mutex<Retained>>,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let encoded = self.endpoint.protocol.get().encode_message(message)?;
        let channel = self.endpoint.protocol.get().channel(channel, Some(encoded.message_type))?;
        let messages = [(encoded, options)];
        let sent = self.send_all(message.py(), clients, exclude, channel, &messages, retained)?;
        sent.map_err(|error| self.endpoint.send_error(&class_name(message), channel, error))
    }

    /// Queues rows for each of `clients`.
    fn queue_rows_for(
        &self,
        py: Python<'_>,
        rows: &Rows,
        clients: Audience<'_>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        retained: Option<&Mutex<Retained>>,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let (channel, messages) = rows.messages();
        let sent = self.send_all(py, clients, exclude, channel, messages, retained)?;
        sent.map_err(|error| self.endpoint.send_error("the rows", channel, error))
    }

    /// Queues messages for each of `clients`, or for everybody that the game knows of, and keeps those of a channel that
    /// retains. Gives those who have no room for all of them, and those who are gone and known by their handle.
    fn send_all(
        &self,
        py: Python<'_>,
        clients: Audience<'_>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        channel: usize,
        messages: &[(Message, SendOptions)],
        retained: Option<&Mutex<Retained>>,
    ) -> PyResult<Result<Vec<Py<ClientHandle>>, SendError>> {
        let exclude = exclude.and_then(|client| self.core_handle(client.get()).ok());
        let send = |core: &mut Host, now: Instant, client| {
            messages
                .iter()
                .try_for_each(|(message, options)| core.send(now, client, channel, message.clone(), *options))
        };
        self.endpoint.with(|core, driver| {
            if let Some(retained) = retained {
                lock(retained).put(self.endpoint.protocol.get(), channel, messages)?;
            }
            let players = lock(&self.players);
            let clients = match clients {
                Audience::These(Recipients(clients)) => clients.into_iter().flatten().collect(),
                Audience::Room(members) => lock(members).keys().copied().collect(),
                // Whom no event has told the game of may yet be refused.
                Audience::Everybody => {
                    core.connected().filter(|client| players.handles.contains_key(client)).collect::<Vec<_>>()
                }
            };
            let (now, mut left_out) = (driver.now(), Vec::new());
            for client in clients.into_iter().filter(|client| Some(*client) != exclude) {
                match send(core, now, client) {
                    Err(
                        SendError::NotConnected
                        | SendError::Channel(
                            transport::SendError::Full { .. } | transport::SendError::TickFull { .. },
                        ),
                    ) => {
                        left_out.extend(players.handles.get(&client).map(|handle| handle.clone_ref(py)));
                    }
                    // Too large: for the first client and for all others.
                    Err(error) => return Ok(Err(error)),
                    Ok(()) => (),
                }
            }
            Ok(Ok(left_out))
        })?
    }

    /// The handle of a client that the game knows of.
    pub(super) fn handle_of(&self, py: Python<'_>, peer: PeerHandle) -> Option<Py<ClientHandle>> {
        lock(&self.players).handles.get(&peer).map(|handle| handle.clone_ref(py))
    }

    /// The core's handle, if it is one of this server's.
    fn core_handle(&self, client: &ClientHandle) -> PyResult<PeerHandle> {
        if client.server == self.id {
            return Ok(client.core);
        }
        Err(PyValueError::new_err(format!(
            "client must be one of this server, and {} is another server's: forget handles with their server",
            client.described()
        )))
    }

    /// The answer where a client is gone.
    fn absent(&self) -> PyResult<bool> {
        if self.endpoint.strict { Err(stale_client()) } else { Ok(false) }
    }
}
