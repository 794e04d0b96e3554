//! A dedicated server for Python: the sans-IO server, its settings and methods.

mod calls;
mod objects;
mod retained;
mod rooms;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
use super::rendezvous::{self, Registering};
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

/// The maximum lifetime of tokens in seconds: a year.
const MAX_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The maximum difference of clocks in seconds, an hour: fix clocks that are further apart.
const MAX_CLOCK_SKEW: u64 = 3600;

/// Bounds of the seconds that a reliable channel may stay full: no game waits longer for one player.
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
///     address (AddressLike): where to listen; port 0 picks a free one (see :attr:`address`). ``[::]`` listens on
///         all IPv6 and IPv4 addresses.
///     protocol (Protocol): what both sides share.
///     key (bytes | None, default None): the 32-byte private key shared with the login backend. None: development
///         mode with a well-known key. Anyone can connect, so it warns unless the address is loopback.
///     max_clients (int, default 64): client slots, 1 to 65,536.
///     public_addresses (Sequence[AddressLike] | None, default None): this server's addresses in connect tokens,
///         if they differ from ``address``.
///     max_token_lifetime (int | None, default None): the longest ``expires_in``, in seconds, that the login
///         backend uses: tokens with more are refused. Other libraries' tokens don't carry their time of
///         creation; with this setting, those that may be older than the server are refused too. (Tokens of
///         :meth:`ConnectToken.generate` carry it, and are always refused if they are older than the server.)
///     clock_skew (int, default 0): seconds by which the clocks of backend and server may differ: tokens are
///         accepted this long after they expire, and if made up to this long before the server's start.
///     replace_duplicates (bool, default True): a client whose ``client_id`` is already connected replaces the
///         old connection, which ends with :attr:`DisconnectReason.REPLACED` on both sides before the new
///         :class:`Connected`. False: the new client must wait until the old one has left or timed out.
///     stalled_timeout (float | None, default 5.0): seconds, 0.1 to 3,600. A player is dropped, with
///         :attr:`DisconnectReason.STALLED` on both sides, if a reliable channel to it is full and delivers
///         nothing for this long, or if the channel goes on refusing messages and delivering a full queue takes
///         more than twelve times as long. ``counters["connections.stalled"]`` counts them. None: never.
///     rendezvous (AddressLike | None, default None): a rendezvous server
///         (:class:`tickwire.peers.RendezvousServer`): the server gets a :attr:`code`, by which clients reach it
///         through NATs; None: clients reach it by address only.
///     title (str, default ''): the game's name in the rendezvous server's list, up to 48 bytes; '': not listed.
///     strict (bool, default False): calls that name one client raise :class:`StaleClientError` if it has left
///         and :class:`ChannelFullError` if it doesn't ack, instead of returning a result that says so.
///     factory (MessageFactory | None, default None): makes the message objects; None: calls the class.
///     priority (PriorityHook | None, default None): called once per flush if unordered messages are queued, with
///         their :class:`Candidates`, for all clients at once. Returns a buffer of float32 scores, one per
///         candidate: within a channel, higher scores go first. None keeps the order. If it raises, returns
///         anything else or a NaN, or sends or receives, the packets go out in their usual order, and
///         :meth:`flush`, or the ``with`` of :meth:`tick`, raises the exception.
///     admission (AdmissionHook | None, default None): called in each :meth:`receive` with newcomers, before the
///         game sees them, with the list of their :class:`ClientHandle`. Returns the ones to refuse, as handles
///         or client ids (other ids are ignored), or None; a mapping gives each the text for its event's
///         ``detail``, or None. Refused clients are disconnected with :attr:`DisconnectReason.KICKED`, and the
///         game sees nothing of them: no event, message, chunk or file in ``chunk_directory``. Clients that
///         connect while the hook runs wait for the next :meth:`receive`. If it raises, all these newcomers are
///         refused, and :meth:`receive` raises the exception.
///     slow_hook (float, default 0.005): seconds. The tick waits for its hooks. One that takes longer is logged,
///         at most once a second; ``counters`` has the times of all hooks.
///     chunk_memory (int, default 0): bytes of chunks from each client to hold in memory, running ones and ones
///         not yet taken from ``inbox.chunks``; 0: none are accepted. Larger chunks are refused.
///     chunk_directory (str | PathLike[str] | None, default None): receives chunks into files here, named by
///         their hash in hex, instead of into memory. It is made if missing. Unfinished files stay: when the same
///         peer offers the same content again, even to another process, only the rest is sent.
///     chunk_file_limit (int | None, default None): bytes of the largest such file; None: 1 GiB. Larger chunks
///         are refused.
///     chunk_directory_limit (int | None, default None): bytes of all such files together, unfinished ones
///         by the 4 KiB blocks that arrived; None: eight times ``chunk_file_limit``. What doesn't fit is refused.
///     congestion (Congestion | None, default None): how fast chunks may be sent; None:
///         :meth:`Congestion.adaptive`.
///     driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when
///         the game ticks. ``"thread"``: a native thread also serves connections between ticks and while the game
///         is busy: it acks, resends and paces chunks. A tick's messages still go out together, at its flush.
///     conditions (Conditions | None, default None): a bad network for everything sent, for tests. Give it to
///         both sides. All peers share its rate and its losses, as on one link.
///     seed (int | None, default None): makes these conditions repeatable; None: random.
///     network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a socket.
///     columns (Sequence[type] | None, default None): message classes delivered as columns
///         (:meth:`Inbox.columns`) instead of objects.
///     capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` for all datagrams, or the
///         path of a new one. If writing fails, it is logged and the game goes on.
///     mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280.
///         For paths that silently lose larger ones. Each side sets its own.
///     packet_notifications (bool, default False): whether :attr:`Inbox.packets` reports each packet as delivered
///         or lost; otherwise no such records are kept.
///
/// Raises:
///     OSError: the address can't be bound, or the directory can't be made; see errno.
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Server {
    /// Tells the servers of a process apart.
    id: u64,
    max_clients: usize,
    admission: Option<Py<PyAny>>,
    pub(super) endpoint: Endpoint,
    /// Locked after the endpoint where both are.
    players: Mutex<Players>,
    /// Values for newcomers. Locked inside the endpoint's lock, so that nobody misses a value.
    retained: Mutex<Retained>,
    rooms: Rooms,
    world: Py<World>,
}

/// The receivers of a message.
enum Audience<'a> {
    Everybody,
    These(Recipients),
    Room(&'a Members),
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

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (address, protocol, *, key = None, max_clients = 64, public_addresses = None,
                        max_token_lifetime = None, clock_skew = 0, replace_duplicates = true,
                        stalled_timeout = Some(5.0), admission = None, rendezvous = None, title = "",
                        **settings))]
    #[pyo3(text_signature = "(address, protocol, *, key=None, max_clients=64, public_addresses=None, \
                             max_token_lifetime=None, clock_skew=0, replace_duplicates=True, \
                             stalled_timeout=5.0, rendezvous=None, title='', strict=False, factory=None, \
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
        rendezvous: Option<AddressLike>,
        title: &str,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        hooks::check(py, "admission", admission.as_ref())?;
        let rendezvous = Registering::new(rendezvous, title)?;
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
        // The well-known key keeps nobody out. With a key of its own a server doesn't explain refusals even on
        // loopback: a relay may listen in front of it, and strangers ask through that.
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
        if let Some(rendezvous) = rendezvous {
            // The server's own bound counts if the rendezvous can't count so far.
            let max_players = u8::try_from(max_clients).unwrap_or(0);
            rendezvous.register(&mut driver, &mut *source, protocol.get().id, (0, max_players));
        }
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

    /// The address it listens on, with the actual port.
    #[getter]
    fn address(&self) -> Address {
        self.endpoint.address
    }

    /// The code at the rendezvous server by which clients reach it (:class:`tickwire.peers.Code`), once there is one.
    #[getter]
    fn code(&self) -> PyResult<Option<String>> {
        rendezvous::code(&self.endpoint)
    }

    /// Why there is no :attr:`code`, or why the rendezvous server may not know it any more; None without such a
    /// problem. Registering goes on all the same.
    #[getter]
    fn code_error(&self) -> PyResult<Option<String>> {
        rendezvous::code_error(&self.endpoint)
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

    /// Its ghosts: objects spawned here appear at its clients.
    #[getter]
    fn world(&self, py: Python<'_>) -> Py<World> {
        self.world.clone_ref(py)
    }

    /// The inputs of the tick that runs.
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

    /// Whether :meth:`close` was called and any linger is over.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        self.endpoint.closed()
    }

    /// All counters since the start, with every drop under a name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.endpoint.counters(py)
    }

    /// ``with server.tick() as inbox:`` receives on entry and sends on exit.
    fn tick(slf: Py<Self>) -> Tick {
        Tick(Ticking::Server(slf))
    }

    /// The first half of a tick: takes everything that arrived.
    pub(super) fn receive(&self, py: Python<'_>) -> PyResult<Inbox> {
        let make = |pending: &mut _, events| self.make_objects(py, pending, events);
        self.endpoint.receive(py, || self.admit(py), make)
    }

    /// The second half of a tick: sends everything queued.
    ///
    /// Raises:
    ///     Exception: from the priority hook. The packets were sent, in their usual order.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let asked = self.ask_world(py);
        self.endpoint.flush(py).and(asked)
    }

    /// Keeps connections alive without taking messages, for example while loading. Messages wait, and once the
    /// receive window is full, their sender waits too. Nothing reliable is lost.
    fn pump(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.pump(py)
    }

    /// Does the work that needn't wait for a tick: reads, acks, keeps alive, resends, sends chunks. Event
    /// loops call it when the socket is readable and when its time has come. Messages wait for :meth:`receive`,
    /// as with :meth:`pump`. Returns the seconds until it is due again, unless something arrives or is sent
    /// first.
    ///
    /// Raises:
    ///     OSError: the socket failed.
    ///     ClosedError: the server is closed.
    fn step(&self, py: Python<'_>) -> PyResult<f64> {
        self.endpoint.step(py)
    }

    /// Whether :meth:`step` should be called between ticks, each millisecond: chunks are under way.
    #[getter]
    fn _moves_chunks(&self) -> PyResult<bool> {
        self.endpoint.moves_chunks()
    }

    /// Whether the next :meth:`receive` has anything new: events, messages, notifications, chunks, ends of
    /// transfers.
    #[getter]
    fn has_news(&self) -> PyResult<bool> {
        self.endpoint.has_news()
    }

    /// The file descriptor for event loops: call :meth:`step` when it is readable. On Linux it isn't the socket
    /// itself: while datagrams come fast, some 16,000 a second, it becomes readable once in two milliseconds,
    /// when many can be read together; otherwise at once.
    ///
    /// Raises:
    ///     ValueError: there is no socket to watch: a thread has it, or the network is simulated.
    ///     OSError: the process has no descriptor to spare.
    fn fileno(&self, py: Python<'_>) -> PyResult<i64> {
        self.endpoint.fileno(py)
    }

    /// Queues a message for the next flush. Returns :attr:`SendResult.SENT`, which is true; or ``GONE`` (the
    /// player left, maybe in this very tick) or ``FULL`` (the player doesn't ack or read), which are false: then
    /// nothing was queued. Nothing a player does makes it raise.
    ///
    /// Args:
    ///     client (ClientHandle): the receiver.
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the
    ///         first.
    ///     key (int, default 0): on a latest channel, the key whose value this is.
    ///     tag (int, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     FieldError: a field's value is out of its range.
    ///     UnregisteredMessageError: the class is not in the protocol.
    ///     MessageTooLargeError: it has more bytes than the channel allows.
    ///     ChannelError: the channel or its key doesn't exist, or it takes payloads.
    ///     ValueError: the client belongs to another server, or a number is out of its bounds.
    ///     ClosedError: the server is closed.
    ///     StaleClientError, ChannelFullError: with ``strict=True``, instead of ``GONE`` and ``FULL``.
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

    /// Queues bytes on a payload channel for the next flush. ``inbox.notifications`` reports them under
    /// ``tag`` as delivered or lost, exactly once, in packet order. Returns what :meth:`send` does.
    ///
    /// Args:
    ///     client (ClientHandle): the receiver.
    ///     data (bytes): the payload.
    ///     channel (int | str): a payload channel, by index or name.
    ///     tag (int): your own 32-bit number for it, repeated in notifications and candidates.
    ///
    /// Raises:
    ///     Exception: as :meth:`send`.
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

    /// Queues large data for a client. It is sent in slices beside the messages, which come first, as fast as
    /// ``congestion`` allows; lost slices are resent. Once it is whole and verified, the client has it in
    /// ``inbox.chunks``. Chunks arrive in the order of these calls. If the client has left, or 256 chunks already
    /// wait for it, the returned transfer is over and its ``error`` says why.
    ///
    /// Args:
    ///     client (ClientHandle): the receiver.
    ///     data (Chunk | Buffer | str | PathLike[str]): bytes (not copied), another contiguous buffer (copied
    ///         once), or a path (read as it is sent). This call reads and hashes it; to send the same to several
    ///         clients, make one :class:`Chunk`.
    ///     label (str, default ''): your own name for it, up to 64 bytes of UTF-8.
    ///     burst (bool, default False): on a link not yet measured, send all of it within a round trip instead of
    ///         starting slowly. A slow link may then drop packets, those of messages too. At most 256 KiB; for
    ///         loading screens.
    ///     ask_first (bool, default False): wait until the receiver has reported what it already has, so that a
    ///         file in its ``chunk_directory`` is not sent at all. Costs other contents a round trip.
    ///
    /// Raises:
    ///     StaleClientError, ChannelFullError: with ``strict=True``, instead of such a transfer.
    ///     ChannelError: the protocol has no channel of chunks.
    ///     MessageTooLargeError: the chunk is 2**40 bytes or more, or above 256 KiB with ``burst``.
    ///     ValueError: the label is too long, or the buffer is not contiguous.
    ///     TypeError: ``data`` is neither a buffer nor a path.
    ///     OSError: the file can't be read; errno and filename say why.
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

    /// A client's chunks that are running or waiting for room, as they are now; empty if it has left.
    fn incoming_chunks(
        &self,
        py: Python<'_>,
        client: &Bound<'_, ClientHandle>,
    ) -> PyResult<Vec<IncomingChunk>> {
        let handle = self.core_handle(client.get())?;
        self.endpoint.incoming_chunks(py, handle, Some(client.as_unbound()))
    }

    /// Sets the budget of messages for a client, or for every client, present and future. The default is
    /// 1,250,000 bytes a second in bursts of 65,536. Chunks have a rate of their own (``congestion``) and don't
    /// use the budget. Returns False if that client has left.
    ///
    /// Args:
    ///     bytes_per_second (float): the rate, UDP/IP headers included.
    ///     burst_bytes (float): the most bytes sent at once after a pause. A tick's packets are such a burst.
    ///     client (ClientHandle | None, default None): None: every client, present and future.
    ///     adaptive (bool, default True): send less while the link is congested: while round trips grow by 100 ms
    ///         or more, a fifth or more of the packets is lost, or acks stop. This is a window of bytes in
    ///         flight, after TCP's (RFC 5681) and LEDBAT's (RFC 6817). At least 8 KiB may always be in flight, so
    ///         most games never reach it. False: the budget alone decides.
    ///
    /// Raises:
    ///     ValueError: naming the argument, its value and its bound. Nothing is changed.
    ///     StaleClientError: with ``strict=True``, the client has left.
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

    /// Changes how fast chunks may be sent to a client, or to every client, present and future. New settings
    /// of the same kind keep the measurements of the link; another kind starts without. Returns False if that
    /// client has left.
    ///
    /// Args:
    ///     congestion (Congestion): how fast chunks may be sent.
    ///     client (ClientHandle | None, default None): None: every client, present and future.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, the client has left.
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

    /// Queues one message, encoded once, for every connected client or for ``clients``. Returns the clients
    /// for which it was not queued because their channel is full, or because they left in this tick. Clients that
    /// left earlier are skipped.
    ///
    /// Args:
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the
    ///         first.
    ///     clients (Iterable[ClientHandle] | None, default None): the receivers; None: all connected clients.
    ///     exclude (ClientHandle | None, default None): a client to leave out.
    ///     key (int, default 0): on a latest channel, the key whose value this is.
    ///     tag (int, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
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

    /// Queues one row per client. Returns the indices of the rows that were not queued because their client
    /// has left or its channel is full. A client listed twice gets both rows. If any row is invalid, nothing is
    /// queued.
    ///
    /// Args:
    ///     clients (Iterable[ClientHandle] | array): handles, or their numbers (uint64), as the ``client`` column of
    ///         rows has them.
    ///     class_ (type): the rows' message class.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`. It is
    ///         copied before it is checked; if another thread writes to it meanwhile, the copy may mix old and
    ///         new values.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the
    ///         first.
    ///     arena (array | None, default None): the buffer with the rows' texts, data and lists; their cells are
    ///         offset (from its start) and length.
    ///     key (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
    ///     tag (int | array, default 0): a number for all rows, or a buffer of uint32 with one for each.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     FieldError: naming the first row that is wrong, its field, its value and what it must be.
    ///     TypeError, ValueError: the rows are not of this class.
    ///     Exception: as :meth:`send`, except for clients that have left and full channels.
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

    /// Queues many rows for one client. Returns the indices of the rows that were not queued: those that found
    /// the channel full, or all if the client has left.
    ///
    /// Args:
    ///     client (ClientHandle): the receiver.
    ///     class_ (type): the rows' message class.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the
    ///         first.
    ///     arena (array | None, default None): the buffer with the rows' texts, data and lists; their cells are
    ///         offset (from its start) and length.
    ///     key (int | array, default 0): on a latest channel, the key whose value this is.
    ///     tag (int | array, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, the client has left.
    ///     Exception: as :meth:`send_columns`.
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

    /// Queues rows, each encoded once, for every connected client or for ``clients``. Returns the clients
    /// whose channel had no room for all of the rows, as :meth:`broadcast` does.
    ///
    /// Args:
    ///     class_ (type): the rows' message class.
    ///     rows (array): an array of :func:`dtype`, or a buffer of rows packed by :func:`row_format`.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the
    ///         first.
    ///     arena (array | None, default None): the buffer with the rows' texts, data and lists; their cells are
    ///         offset (from its start) and length.
    ///     clients (Iterable[ClientHandle] | None, default None): the receivers; None: all connected clients.
    ///     exclude (ClientHandle | None, default None): a client to leave out.
    ///     key (int | array, default 0): on a latest channel, the key whose value this is.
    ///     tag (int | array, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     Exception: as :meth:`send_columns`.
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

    /// Makes a client run a call, or several clients if the call is :data:`tickwire.to_all`. For
    /// one client, returns what :meth:`send` does, or ``HIDDEN`` if a ghost in it is not relevant
    /// to the client; for several, those whose channel is full or who are gone.
    ///
    /// Args:
    ///     client (ClientHandle | Iterable[ClientHandle]): the client or clients that run it,
    ///         such as a :class:`Room`.
    ///     call (ClientCall): a call of the protocol; its arguments follow.
    ///
    /// Raises:
    ///     TypeError: the arguments aren't those of the function.
    ///     FieldError: one of them is not in its range.
    ///     UnregisteredMessageError: it is no call of the protocol.
    ///     ValueError: it is one that the server runs, or one for one client and several are given.
    ///     GhostError: a ghost that is named is not in this world, or not any more.
    ///     StaleClientError, ChannelFullError: with ``strict=True``, in place of what is false.
    #[pyo3(signature = (client, call, /, *args, **kwargs))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        client: &Bound<'py, PyAny>,
        call: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.call_one_or_several(py, client, call, args, kwargs)
    }

    /// Makes all clients run a call; if it names ghosts, those clients to whom all of them are
    /// relevant. Returns the clients whose channel was full: the others have it.
    ///
    /// Args:
    ///     call (ClientCall): a call :data:`tickwire.to_all`; its arguments follow.
    ///
    /// Raises:
    ///     As :meth:`call`.
    #[pyo3(signature = (call, /, *args, **kwargs))]
    fn call_all<'py>(
        &self,
        py: Python<'py>,
        call: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        self.call_several(py, None, call, args, kwargs)
    }

    /// Makes a client run a call, and returns a request for its result. If no reply can come any
    /// more, the request has an error. At most 256 wait at a time for one client.
    ///
    /// Args:
    ///     client (ClientHandle): the client that runs it.
    ///     call (ClientCall): a call of the protocol; its arguments follow.
    ///
    /// Raises:
    ///     TypeError: the function returns None, or the arguments aren't those of the function.
    ///     FieldError, UnregisteredMessageError, ValueError, GhostError: as :meth:`call`.
    ///     StaleClientError, ChannelFullError: with ``strict=True``, in place of a request that failed.
    #[pyo3(signature = (client, call, /, *args, **kwargs))]
    fn request<'py>(
        &self,
        py: Python<'py>,
        client: &Bound<'py, ClientHandle>,
        call: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.endpoint.request(py, self.core_handle(client.get())?, call, args, kwargs)
    }

    /// Sets another function to run a call that arrives here.
    ///
    /// Args:
    ///     call (ServerCall): a call of the protocol.
    ///     function (Callable): called like the declared function. Not a coroutine function.
    #[pyo3(signature = (call, function, /))]
    fn implement(&self, call: &Bound<'_, PyAny>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        self.endpoint.implement(call, function)
    }

    /// Makes an empty :class:`Room` of this server's clients.
    fn room(slf: Py<Self>) -> Room {
        Room::new(slf)
    }

    /// Stops sending newcomers the newest value of a key, or of all keys, of a channel with ``retain=True``.
    /// Clients that have it keep it. Returns how many values were dropped.
    ///
    /// Args:
    ///     channel (int | str): index or name.
    ///     key (int | None, default None): None: all keys.
    ///
    /// Raises:
    ///     ChannelError: there is no such channel.
    ///     ValueError: the key is negative or above 2**32 - 1.
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

    /// The client with this :attr:`ClientHandle.number`, as in the ``client`` column of rows; None if it has
    /// left.
    #[pyo3(signature = (number, /))]
    fn client(&self, py: Python<'_>, number: u64) -> Option<Py<ClientHandle>> {
        let players = lock(&self.players);
        let handle = players.handles.get(&PeerHandle::from_number(number))?;
        Some(handle.clone_ref(py))
    }

    /// Ends one connection; its player sees :attr:`DisconnectReason.KICKED`. Never blocks. Returns False if it
    /// is over.
    ///
    /// Without ``linger`` it ends at once. Messages that are not yet acked are lost, even if they were flushed:
    /// reliable ones are not resent, and the goodbye may overtake them. With ``linger``, the following ticks go
    /// on sending until the player has acked every reliable message and the newest values of latest channels, and
    /// every other packet is delivered or lost; then comes the goodbye. For the game the client has left from now
    /// on: the handle is stale, messages from the player are dropped, and running chunks end. The slot becomes
    /// free, and the :class:`Disconnected` event comes, when the connection is over: after ``linger`` seconds at
    /// the latest.
    ///
    /// Args:
    ///     client (ClientHandle): the player to disconnect.
    ///     reason (str | None, default None): a text for the player, as the ``detail`` of its event: 1 to 128 bytes
    ///         in UTF-8. Not in yojimbo's framing.
    ///     linger (float, default 0.0): seconds, 0 to 60.
    ///
    /// Raises:
    ///     StaleClientError: with ``strict=True``, the client has left already.
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
        if left.is_err() {
            return self.absent();
        }
        self.endpoint.discard_calls(client);
        Ok(true)
    }

    /// Statistics of a client's connection; its last ones if the client has left.
    fn stats(&self, client: &Bound<'_, ClientHandle>) -> PyResult<ConnectionStats> {
        self.endpoint.stats(self.core_handle(client.get())?, client.get().end.get())
    }

    /// Counts of all channels of all connected clients.
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

    /// Ends all connections (players see :attr:`DisconnectReason.SERVER_CLOSED`) and closes the socket.
    ///
    /// Without ``linger`` it closes at once. Messages that are not yet acked are lost, as with
    /// :meth:`disconnect`, and so is everything queued since the last flush. With ``linger``, the queue is
    /// flushed (without the priority hook), each connection ends as :meth:`disconnect` describes, and nobody new
    /// gets in. Meanwhile the game's calls raise :class:`ClosedError`, and players' messages are dropped.
    ///
    /// A second call without ``linger`` ends the lingering at once, and so does Ctrl-C.
    ///
    /// Args:
    ///     linger (float, default 0.0): seconds, 0 to 60.
    ///     reason (str | None, default None): a text for the players, as for :meth:`disconnect`.
    ///     wait (bool, default True): whether to block until it is over, while other Python threads run. If not,
    ///         go on calling :meth:`tick`, :meth:`step` or :meth:`pump` until :attr:`closed`. On a simulated
    ///         network, where the game moves time, nothing blocks.
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
        self.endpoint.close(py, linger, reason, wait)?;
        self.endpoint.end_calls(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (kind, value, traceback);
        self.endpoint.state.close();
        self.endpoint.end_calls(py)
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

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.admission)?;
        visit.call(&self.world)?;
        // A locked mutex is in use, so its objects are reachable anyway.
        if let Ok(players) = self.players.try_lock() {
            let mut handles = players.handles.values().chain(players.newcomers.values());
            handles.try_for_each(|handle| visit.call(handle))?;
        }
        self.endpoint.traverse(visit)
    }
}

impl Server {
    /// [`Endpoint::run_calls`] for this server.
    pub(super) fn run_calls(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.run_calls(py)
    }

    /// [`Endpoint::transmit`] for this server.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        let asked = self.ask_world(py);
        self.endpoint.transmit(py).and_then(|sent| asked.map(|()| sent))
    }

    /// Calls the world's hooks, if it has any.
    fn ask_world(&self, py: Python<'_>) -> PyResult<()> {
        if !self.world.get().has_hooks() || self.endpoint.closed()? {
            return Ok(());
        }
        let clients = self.clients(py)?;
        let clock = |name: &'static str, hook: &mut dyn FnMut()| self.endpoint.clocked(py, name, hook);
        self.world.get().ask_hooks(py, &clients, &clock)
    }

    /// [`Endpoint::break_thread`] for this server.
    #[cfg(feature = "faults")]
    pub(super) fn break_thread(&self) -> PyResult<()> {
        self.endpoint.break_thread()
    }

    /// The given clients, or everybody; for everybody, also the store of retained values.
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

    /// Queues messages for each of `clients`, or for everybody that the game knows, and retains those of a retaining
    /// channel. Returns the clients without room for all of them, and the given ones that are gone.
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
                // A client that the game hasn't heard of may still be refused.
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
                    // The message is too large, for this and all other clients.
                    Err(error) => return Ok(Err(error)),
                    Ok(()) => (),
                }
            }
            Ok(Ok(left_out))
        })?
    }

    /// The handle of a client, if the game knows it.
    pub(super) fn handle_of(&self, py: Python<'_>, peer: PeerHandle) -> Option<Py<ClientHandle>> {
        lock(&self.players).handles.get(&peer).map(|handle| handle.clone_ref(py))
    }

    /// The core's handle, if the client is this server's.
    fn core_handle(&self, client: &ClientHandle) -> PyResult<PeerHandle> {
        if client.server == self.id {
            return Ok(client.core);
        }
        Err(PyValueError::new_err(format!(
            "client must be one of this server, and {} is another server's: forget handles with their server",
            client.described()
        )))
    }

    /// The answer if a client is gone.
    fn absent(&self) -> PyResult<bool> {
        if self.endpoint.strict { Err(stale_client()) } else { Ok(false) }
    }
}
