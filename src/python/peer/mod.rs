//! A peer of a game without a server, for Python: it hosts or joins, and is connected to all other players.

mod events;
mod open;
mod path;
mod states;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::IntoPyObjectExt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use self::events::reason_to_python;
pub(crate) use self::events::{GameEnded, MasterChanged, Player, PlayerJoined, PlayerLeft, Started};
use self::open::{Opening, open};
pub(crate) use self::path::PlayerPath;
use super::address::{Address, AddressLike};
use super::arguments::{int, number, optional_int, shared, truth};
use super::chunks::{Chunk, Transfer};
use super::endpoint::Endpoint;
use super::errors::value_error;
use super::fields::within;
use super::inbox::{Inbox, Pending, Tick, Ticking};
use super::lock;
use super::log::{Level, log};
use super::network::SimulatedNetwork;
use super::protocol::{Protocol, seconds};
use super::rendezvous::{self, Registering};
use super::settings::Settings;
use super::setup::{class_name, entropy, random, send_options};
use super::stats::ConnectionStats;
use crate::endpoint::{ChunkLimits, Event, PeerHandle};
use crate::mesh::{Happening, Phase, Start};
use crate::session::PeerPart;
use crate::time::Instant;

/// The longest countdown, in seconds.
const MAX_COUNTDOWN: f64 = 60.0;

/// A peer of a game without a server: one UDP port on which it listens and dials. Made by :meth:`host` or :meth:`join`.
///
/// Every player is connected to every other. One of them, at first the host, is the master, which lets others
/// in and starts the game. When it is gone, the players elect a new one by themselves.
#[pyclass(frozen, generic, module = "tickwire.peers")]
pub(crate) struct Peer {
    /// Tells the peers of a process apart.
    id: u64,
    pub(super) endpoint: Endpoint,
    /// Locked after the endpoint where both are.
    players: Mutex<Known>,
    /// Worlds of a lockstep game that came.
    states: Mutex<states::States>,
}

/// The players that events have told the game of.
#[derive(Default)]
struct Known {
    by_number: HashMap<u8, Py<Player>>,
    by_handle: HashMap<PeerHandle, Py<Player>>,
}

#[pymethods]
impl Peer {
    /// Begins a game: this peer is its first player and its master.
    ///
    /// Args:
    ///     protocol (Protocol): the protocol of all peers, made with ``peers=True``.
    ///     name (str, default ''): the player's name, up to 32 bytes in UTF-8.
    ///     players (int, default 4): the maximum of players, this one included, 1 to 16.
    ///     late_joining (bool, default False): whether players may join after the start.
    ///     bind (AddressLike | None, default None): the local address; None: any free port.
    ///     key (bytes | None, default None): 32 bytes that only the game's peers have; None: development
    ///         mode, in which anyone can join.
    ///     timeout (int, default 5): seconds of silence, 1 to 60, after which a player counts as gone.
    ///     rendezvous (AddressLike | None, default None): a rendezvous server (:class:`RendezvousServer`):
    ///         the game gets a :attr:`code`, by which players behind NATs join; None: players join by address
    ///         only.
    ///     title (str, default ''): the game's name in the rendezvous server's list, up to 48 bytes; '': not
    ///         listed.
    ///     relaying (bool, default True): whether this player carries for two others who don't reach each other, at up to
    ///         128 KiB a second, and may be reached by way of another one itself. False of the host: newcomers who don't
    ///         reach all players are refused.
    ///     factory (MessageFactory | None, default None): makes the message objects; None: calls the class.
    ///     priority (PriorityHook | None, default None): called once per flush if unordered messages are queued,
    ///         with their :class:`Candidates`, for all players at once. Returns a buffer of float32 scores, one
    ///         per candidate: within a channel, higher scores go first. None keeps the order. If it raises,
    ///         returns anything else or a NaN, or sends or receives, the packets go out in their usual order, and
    ///         :meth:`flush`, or the ``with`` of :meth:`tick`, raises the exception.
    ///     slow_hook (float, default 0.005): seconds. The tick waits for its hooks. One that takes longer is
    ///         logged, at most once a second; ``counters`` has the times of all hooks.
    ///     chunk_memory (int, default 67108864): bytes of chunks from each player to hold in memory, running ones
    ///         and ones not yet taken from ``inbox.chunks``; 0: none are accepted. Larger chunks are refused.
    ///     chunk_directory (str | PathLike[str] | None, default None): receives chunks into files here, named by
    ///         their hash in hex, instead of into memory. It is made if missing. Unfinished files stay: when the
    ///         same peer offers the same content again, even to another process, only the rest is sent.
    ///     chunk_file_limit (int | None, default None): bytes of the largest such file; None: 1 GiB. Larger
    ///         chunks are refused.
    ///     chunk_directory_limit (int | None, default None): bytes of all such files together, unfinished ones
    ///         by the 4 KiB blocks that arrived; None: eight times ``chunk_file_limit``. What doesn't fit is refused.
    ///     congestion (Congestion | None, default None): how fast chunks may be sent; None:
    ///         :meth:`Congestion.adaptive`.
    ///     driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written
    ///         when the game ticks. ``"thread"``: a native thread also serves connections between ticks and while
    ///         the game is busy: it acks, resends and paces chunks. A tick's messages still go out together, at
    ///         its flush.
    ///     conditions (Conditions | None, default None): a bad network for everything sent, for tests. Give it to
    ///         both sides. All peers share its rate and its losses, as on one link.
    ///     seed (int | None, default None): makes these conditions repeatable; None: random.
    ///     network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a
    ///         socket.
    ///     columns (Sequence[type] | None, default None): message classes delivered as columns
    ///         (:meth:`Inbox.columns`) instead of objects.
    ///     capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` for all datagrams, or
    ///         the path of a new one. If writing fails, it is logged and the game goes on.
    ///     mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to
    ///         1,280. For paths that silently lose larger ones. Each side sets its own.
    ///     packet_notifications (bool, default False): whether :attr:`Inbox.packets` reports each packet as
    ///         delivered or lost; otherwise no such records are kept.
    ///     strict (bool, default False): calls raise :class:`NotConnectedError` and :class:`ChannelFullError`
    ///         instead of returning a result that says so.
    ///
    /// Raises:
    ///     OSError: the address can't be bound.
    ///     ValueError: naming the argument, its value and its bound.
    #[staticmethod]
    #[pyo3(signature = (protocol, *, name = "", players = 4, late_joining = false, bind = None, key = None, timeout = 5,
                        rendezvous = None, title = "", relaying = true, **settings))]
    #[pyo3(text_signature = "(protocol, *, name='', players=4, late_joining=False, bind=None, key=None, \
                             timeout=5, rendezvous=None, title='', relaying=True, factory=None, priority=None, slow_hook=0.005, \
                             chunk_memory=67108864, chunk_directory=None, chunk_file_limit=None, \
                             chunk_directory_limit=None, congestion=None, driver='polled', conditions=None, \
                             seed=None, network=None, columns=None, capture=None, mtu=1280, \
                             packet_notifications=False, strict=False)")]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn host<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = shared::protocol)] protocol: Py<Protocol>,
        name: &str,
        #[pyo3(from_py_with = int::players)] players: i128,
        #[pyo3(from_py_with = truth::late_joining)] late_joining: bool,
        bind: Option<AddressLike>,
        key: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = int::timeout)] timeout: i128,
        rendezvous: Option<AddressLike>,
        title: &str,
        #[pyo3(from_py_with = truth::relaying)] relaying: bool,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let settings = Self::settings(py, "Peer.host", settings, &protocol)?;
        let late = late_joining;
        let rendezvous = Registering::new(rendezvous, title)?;
        let (places, contact) = (players, None);
        let opening = Opening { bind, key, name, timeout, places, late, contact, relaying, rendezvous };
        Ok(Self::over(open(py, protocol, opening, settings)?))
    }

    /// Joins a game. The first events have the outcome: :class:`PlayerJoined` for each player and this
    /// one, or :class:`GameEnded` with the reason.
    ///
    /// Args:
    ///     address (AddressLike): the address of any player in the game, which sends newcomers on to the
    ///         master. With ``rendezvous``: any player's code.
    ///     protocol (Protocol): the protocol of all peers, made with ``peers=True``.
    ///     name (str, default ''): the player's name, up to 32 bytes in UTF-8.
    ///     bind (AddressLike | None, default None): the local address; None: any free port.
    ///     key (bytes | None, default None): the 32 bytes of the game; None: development mode.
    ///     timeout (int, default 5): seconds of silence, 1 to 60, after which a player counts as gone.
    ///     rendezvous (AddressLike | None, default None): a rendezvous server: ``address`` is a code there.
    ///     relaying (bool, default True): whether this player carries for two others who don't reach each other, at up to
    ///         128 KiB a second, and may be reached by way of another one itself.
    ///     factory (MessageFactory | None, default None): makes the message objects; None: calls the class.
    ///     priority (PriorityHook | None, default None): called once per flush if unordered messages are queued,
    ///         with their :class:`Candidates`, for all players at once. Returns a buffer of float32 scores, one
    ///         per candidate: within a channel, higher scores go first. None keeps the order. If it raises,
    ///         returns anything else or a NaN, or sends or receives, the packets go out in their usual order, and
    ///         :meth:`flush`, or the ``with`` of :meth:`tick`, raises the exception.
    ///     slow_hook (float, default 0.005): seconds. The tick waits for its hooks. One that takes longer is
    ///         logged, at most once a second; ``counters`` has the times of all hooks.
    ///     chunk_memory (int, default 67108864): bytes of chunks from each player to hold in memory, running ones
    ///         and ones not yet taken from ``inbox.chunks``; 0: none are accepted. Larger chunks are refused.
    ///     chunk_directory (str | PathLike[str] | None, default None): receives chunks into files here, named by
    ///         their hash in hex, instead of into memory. It is made if missing. Unfinished files stay: when the
    ///         same peer offers the same content again, even to another process, only the rest is sent.
    ///     chunk_file_limit (int | None, default None): bytes of the largest such file; None: 1 GiB. Larger
    ///         chunks are refused.
    ///     chunk_directory_limit (int | None, default None): bytes of all such files together, unfinished ones
    ///         by the 4 KiB blocks that arrived; None: eight times ``chunk_file_limit``. What doesn't fit is refused.
    ///     congestion (Congestion | None, default None): how fast chunks may be sent; None:
    ///         :meth:`Congestion.adaptive`.
    ///     driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written
    ///         when the game ticks. ``"thread"``: a native thread also serves connections between ticks and while
    ///         the game is busy: it acks, resends and paces chunks. A tick's messages still go out together, at
    ///         its flush.
    ///     conditions (Conditions | None, default None): a bad network for everything sent, for tests. Give it to
    ///         both sides. All peers share its rate and its losses, as on one link.
    ///     seed (int | None, default None): makes these conditions repeatable; None: random.
    ///     network (SimulatedNetwork | None, default None): a simulated network with virtual time instead of a
    ///         socket.
    ///     columns (Sequence[type] | None, default None): message classes delivered as columns
    ///         (:meth:`Inbox.columns`) instead of objects.
    ///     capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` for all datagrams, or
    ///         the path of a new one. If writing fails, it is logged and the game goes on.
    ///     mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to
    ///         1,280. For paths that silently lose larger ones. Each side sets its own.
    ///     packet_notifications (bool, default False): whether :attr:`Inbox.packets` reports each packet as
    ///         delivered or lost; otherwise no such records are kept.
    ///     strict (bool, default False): calls raise :class:`NotConnectedError` and :class:`ChannelFullError`
    ///         instead of returning a result that says so.
    ///
    /// Raises:
    ///     OSError: the address can't be bound.
    ///     ValueError: naming the argument, its value and its bound.
    #[staticmethod]
    #[pyo3(signature = (address, protocol, *, name = "", bind = None, key = None, timeout = 5, rendezvous = None,
                        relaying = true, **settings))]
    #[pyo3(text_signature = "(address, protocol, *, name='', bind=None, key=None, timeout=5, \
                             rendezvous=None, relaying=True, factory=None, \
                             priority=None, slow_hook=0.005, chunk_memory=67108864, chunk_directory=None, \
                             chunk_file_limit=None, chunk_directory_limit=None, congestion=None, \
                             driver='polled', conditions=None, seed=None, network=None, columns=None, \
                             capture=None, mtu=1280, packet_notifications=False, strict=False)")]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn join<'py>(
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = shared::protocol)] protocol: Py<Protocol>,
        name: &str,
        bind: Option<AddressLike>,
        key: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = int::timeout)] timeout: i128,
        rendezvous: Option<AddressLike>,
        #[pyo3(from_py_with = truth::relaying)] relaying: bool,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let rendezvous = Registering::new(rendezvous, "")?;
        let address = match rendezvous {
            Some(_) => rendezvous::code_address(address, "address")?,
            None => address.extract::<AddressLike>()?.0,
        };
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(value_error(format!(
                "address must be where a player can be reached, with its port, not {address}"
            )));
        }
        let settings = Self::settings(py, "Peer.join", settings, &protocol)?;
        let contact = Some(address);
        let opening =
            Opening { bind, key, name, timeout, places: 1, late: false, contact, relaying, rendezvous };
        Ok(Self::over(open(py, protocol, opening, settings)?))
    }

    /// The local address, with the actual port.
    #[getter]
    fn address(&self) -> Address {
        self.endpoint.address
    }

    /// The code at the rendezvous server by which others join, once there is one.
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

    /// The protocol of all peers.
    #[getter]
    fn protocol(&self, py: Python<'_>) -> Py<Protocol> {
        self.endpoint.protocol.clone_ref(py)
    }

    /// The players in the game, as far as events have told, this one included, by number.
    #[getter]
    fn players(&self, py: Python<'_>) -> Vec<Py<Player>> {
        let known = lock(&self.players);
        let mut players: Vec<_> = known.by_number.values().map(|player| player.clone_ref(py)).collect();
        players.sort_by_key(|player| player.get().number);
        players
    }

    /// This player; None until it is in the game.
    #[getter]
    fn me(&self, py: Python<'_>) -> PyResult<Option<Py<Player>>> {
        let me = self.part(|part, _| part.mesh().me())?;
        Ok(me.and_then(|me| self.player(py, me)))
    }

    /// The master; None until this peer is in the game.
    #[getter]
    fn master(&self, py: Python<'_>) -> PyResult<Option<Py<Player>>> {
        let master = self.part(|part, _| part.mesh().master())?;
        Ok(master.and_then(|master| self.player(py, master)))
    }

    /// Whether this peer is the master.
    #[getter]
    fn is_master(&self) -> PyResult<bool> {
        self.part(|part, _| part.mesh().is_master() && part.mesh().master() == part.mesh().me())
    }

    /// Why this peer is out of the game; None before.
    #[getter]
    fn ended<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.part(|part, _| part.mesh().phase())? {
            Phase::Ended(reason) => reason_to_python(py, reason).map(Some),
            _ => Ok(None),
        }
    }

    /// Seconds since this peer's start: the clock of :attr:`Started.at`.
    #[getter]
    fn time(&self) -> PyResult<f64> {
        self.part(|_, now| now.as_secs_f64())
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

    /// ``with peer.tick() as inbox:`` receives on entry and sends on exit.
    fn tick(slf: Py<Self>) -> Tick {
        Tick(Ticking::Peer(slf))
    }

    /// The first half of a tick: takes everything that arrived.
    pub(super) fn receive(&self, py: Python<'_>) -> PyResult<Inbox> {
        self.endpoint.receive(py, || Ok(()), |pending, ends| self.make_objects(py, pending, &ends))
    }

    /// The second half of a tick: sends everything queued.
    ///
    /// Raises:
    ///     Exception: from the priority hook. The packets were sent, in their usual order.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.flush(py)
    }

    /// Keeps connections alive without taking messages, like :meth:`Server.pump`.
    fn pump(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.pump(py)
    }

    /// Serves the connections between ticks, for event loops, like :meth:`Server.step`.
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
        let told = self.part(|part, _| part.has_news())?;
        Ok(told || self.endpoint.has_news()?)
    }

    /// The socket's file descriptor, to use like that of :meth:`Server.fileno`.
    fn fileno(&self, py: Python<'_>) -> PyResult<i64> {
        self.endpoint.fileno(py)
    }

    /// Begins the game, for all players at the same moment. Returns False if this peer isn't the master,
    /// or the game has begun.
    ///
    /// Args:
    ///     countdown (float, default 1.0): seconds until the start, 0 to 60: long enough for all players to
    ///         hear of it.
    ///     seed (int | None, default None): 64 bits for all players' random numbers; None: random ones.
    ///
    /// Raises:
    ///     ValueError: naming the argument, its value and its bound.
    #[pyo3(signature = (*, countdown = 1.0, seed = None))]
    fn start(
        &self,
        #[pyo3(from_py_with = number::countdown)] countdown: f64,
        #[pyo3(from_py_with = optional_int::seed)] seed: Option<i128>,
    ) -> PyResult<bool> {
        let countdown = seconds("countdown", countdown, MAX_COUNTDOWN)?.as_micros() as u32;
        let network = self.endpoint.network.as_ref().map(|network| network.get().0.clone());
        let seed = match seed {
            Some(seed) => within("seed", seed, 0, u64::MAX)?,
            None => random(&mut *entropy(network)),
        };
        self.part(|part, now| part.mesh_mut().start(now, Start { seed, countdown, players: 0 }))
    }

    /// Removes a player from the game. Returns False if this peer isn't the master, or the player is gone.
    ///
    /// Args:
    ///     player (Player): the player to remove.
    #[pyo3(signature = (player, /))]
    fn kick(&self, player: &Bound<'_, Player>) -> PyResult<bool> {
        let player = self.check(player.get())?;
        self.part(|part, now| {
            let is_here = part.mesh().roster().has(player.number, player.joined);
            is_here && part.mesh_mut().kick(now, player.number)
        })
    }

    /// How a player is reached; None for this peer itself, and for a player who is gone.
    ///
    /// Args:
    ///     player (Player): whose path.
    #[pyo3(signature = (player, /))]
    fn path(&self, py: Python<'_>, player: &Bound<'_, Player>) -> PyResult<Option<PlayerPath>> {
        let player = self.check(player.get())?;
        let who = (player.number, player.joined);
        let found = {
            let mut state = self.endpoint.state.lock()?;
            let (session, driver) = state.carrier.parts().ok_or_else(|| self.endpoint.closed_error())?;
            let address = session.peers().and_then(|part| part.address_of(who));
            address.map(|address| path::of(driver, address))
        };
        Ok(found.map(|(kind, through)| PlayerPath {
            kind,
            through: through.and_then(|number| self.player(py, number)),
        }))
    }

    /// Queues a message for one player, for the next flush. Returns :attr:`SendResult.SENT`, which is true; or ``GONE``
    /// or ``FULL``, which are false: then nothing was queued.
    ///
    /// Args:
    ///     player (Player): the receiver, any but this one.
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the first.
    ///     key (int, default 0): on a latest channel, the key whose value this is.
    ///     tag (int, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     Exception: as :meth:`Server.send`.
    #[pyo3(signature = (player, message, channel = None, *, key = 0, tag = 0, notify = false))]
    fn send(
        &self,
        player: &Bound<'_, Player>,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = int::key)] key: i128,
        #[pyo3(from_py_with = int::tag)] tag: i128,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Py<PyAny>> {
        let options = send_options(key, tag, notify)?;
        let player = self.check(player.get())?;
        let encoded = self.endpoint.protocol.get().encode_message(message)?;
        let channel = self.endpoint.protocol.get().channel(channel, Some(encoded.message_type))?;
        let handle = self.handle_of(player)?;
        let sent =
            self.endpoint.with(|core, driver| core.send(driver.now(), handle, channel, encoded, options))?;
        self.endpoint.answer(message.py(), sent, channel, || class_name(message))
    }

    /// Queues a message for all other players. Returns those for whom nothing was queued, as their channel is full.
    ///
    /// Args:
    ///     message (message): an object of one of the protocol's classes.
    ///     channel (int | str | None, default None): index or name; None: the class's own channel, else the first.
    ///     key (int, default 0): on a latest channel, the key whose value this is.
    ///     tag (int, default 0): your own 32-bit number for it, repeated in notifications and candidates.
    ///     notify (bool, default False): report it in ``inbox.notifications`` as delivered or lost, exactly once.
    ///
    /// Raises:
    ///     Exception: as :meth:`Server.broadcast`.
    #[pyo3(signature = (message, channel = None, *, key = 0, tag = 0, notify = false))]
    fn broadcast(
        &self,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = int::key)] key: i128,
        #[pyo3(from_py_with = int::tag)] tag: i128,
        #[pyo3(from_py_with = truth::notify)] notify: bool,
    ) -> PyResult<Vec<Py<Player>>> {
        use crate::endpoint::SendError;
        use crate::transport::SendError as Refused;
        let py = message.py();
        let options = send_options(key, tag, notify)?;
        let encoded = self.endpoint.protocol.get().encode_message(message)?;
        let channel = self.endpoint.protocol.get().channel(channel, Some(encoded.message_type))?;
        let mut others: Vec<(PeerHandle, Py<Player>)> = {
            let known = lock(&self.players);
            known.by_handle.iter().map(|(handle, player)| (*handle, player.clone_ref(py))).collect()
        };
        others.sort_by_key(|(_, player)| player.get().number);
        let mut left_out = Vec::new();
        // Players are dropped where nothing is locked: the last one's destructors are the game's code.
        let sent = self.endpoint.with(|core, driver| {
            let now = driver.now();
            for (handle, player) in &others {
                match core.send(now, *handle, channel, encoded.clone(), options) {
                    Ok(()) | Err(SendError::NotConnected) => {}
                    Err(SendError::Channel(Refused::Full { .. } | Refused::TickFull { .. })) => {
                        left_out.push(player.clone_ref(py));
                    }
                    // The message is too large, for this and all other players.
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        sent.map_err(|error| self.endpoint.send_error(&class_name(message), channel, error))?;
        Ok(left_out)
    }

    /// Queues a large block of data for one player, as :meth:`Server.send_chunk`.
    ///
    /// Args:
    ///     player (Player): the receiver, any but this one.
    ///     data (Chunk | Buffer | str | PathLike[str]): bytes, another contiguous buffer, a path, or a :class:`Chunk`.
    ///     label (str, default ''): your own name for it, up to 64 bytes of UTF-8.
    ///     burst (bool, default False): send all of it within a round trip instead of starting slowly; at most
    ///         256 KiB.
    ///     ask_first (bool, default False): wait until the receiver has reported what it already has.
    #[pyo3(signature = (player, data, /, *, label = "", burst = false, ask_first = false))]
    fn send_chunk(
        &self,
        player: &Bound<'_, Player>,
        data: &Bound<'_, PyAny>,
        label: &str,
        #[pyo3(from_py_with = truth::burst)] burst: bool,
        #[pyo3(from_py_with = truth::ask_first)] ask_first: bool,
    ) -> PyResult<Transfer> {
        let handle = self.handle_of(self.check(player.get())?)?;
        self.endpoint.check_open(handle)?;
        self.endpoint.send_chunk(handle, None, &Chunk::given(data)?, label, burst, ask_first)
    }

    /// Statistics of the connection to a player; zeros once it is gone.
    ///
    /// Args:
    ///     player (Player): any but this one.
    #[pyo3(signature = (player, /))]
    fn stats(&self, player: &Bound<'_, Player>) -> PyResult<ConnectionStats> {
        let handle = self.handle_of(self.check(player.get())?)?;
        self.endpoint.stats(handle, None)
    }

    /// Leaves the game and closes the socket. The others learn of it at once, and elect a new master if
    /// this peer was it. Otherwise like :meth:`Client.close`.
    ///
    /// Args:
    ///     linger (float, default 0.0): seconds, 0 to 60, to wait for what is queued.
    ///     wait (bool, default True): whether to block until it is over.
    #[pyo3(signature = (*, linger = 0.0, wait = true))]
    fn close(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::linger)] linger: f64,
        #[pyo3(from_py_with = truth::wait)] wait: bool,
    ) -> PyResult<()> {
        self.endpoint.close(py, linger, None, wait)
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
        let (Ok(phase), Ok(closed)) = (self.part(|part, _| part.mesh().phase()), self.endpoint.closed())
        else {
            return "<Peer (unusable after fork)>".into();
        };
        let count = lock(&self.players).by_number.len();
        let state = match phase {
            _ if closed => "closed".into(),
            Phase::Asking { .. } | Phase::Joining => "joining".into(),
            Phase::Member => format!("{count} players"),
            Phase::Ended(reason) => format!("ended: {reason:?}"),
        };
        format!("<Peer at {}, {state}>", self.endpoint.address.0)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A locked mutex is in use, so its objects are reachable anyway.
        if let Ok(known) = self.players.try_lock() {
            known
                .by_number
                .values()
                .chain(known.by_handle.values())
                .try_for_each(|player| visit.call(player))?;
        }
        self.endpoint.traverse(visit)
    }
}

impl Peer {
    fn settings<'py>(
        py: Python<'py>,
        function: &'static str,
        settings: Option<Bound<'py, PyDict>>,
        protocol: &Py<Protocol>,
    ) -> PyResult<Settings<'py>> {
        let mut settings =
            Settings::new(py, function, settings, ChunkLimits::CLIENT.memory_bytes, protocol.get())?;
        settings.pending.has_senders = true;
        Ok(settings)
    }

    fn over(endpoint: Endpoint) -> Self {
        static PEERS: AtomicU64 = AtomicU64::new(0);
        Peer {
            id: PEERS.fetch_add(1, Ordering::Relaxed),
            endpoint,
            players: Mutex::default(),
            states: Mutex::default(),
        }
    }

    /// Runs `work` on the mesh part at the current time.
    pub(super) fn part<T>(&self, work: impl FnOnce(&mut PeerPart, Instant) -> T) -> PyResult<T> {
        let mut state = self.endpoint.state.lock()?;
        let now = state.carrier.now();
        let part = state.carrier.session.peers().ok_or_else(|| self.endpoint.closed_error())?;
        Ok(work(part, now))
    }

    /// The player with this number, if the game knows it.
    pub(super) fn player(&self, py: Python<'_>, number: u8) -> Option<Py<Player>> {
        lock(&self.players).by_number.get(&number).map(|player| player.clone_ref(py))
    }

    /// [`Endpoint::run_calls`] for this peer.
    pub(super) fn run_calls(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint.run_calls(py)
    }

    /// [`Endpoint::transmit`] for this peer.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        self.endpoint.transmit(py)
    }

    /// Checks that a player belongs to this peer's game.
    fn check<'a>(&self, player: &'a Player) -> PyResult<&'a Player> {
        if player.peer == self.id {
            return Ok(player);
        }
        Err(value_error(format!(
            "player must be from this peer's events, and {} is another peer's",
            player.__repr__()
        )))
    }

    /// The connection to a player; a handle without a connection if the player is gone.
    fn handle_of(&self, player: &Player) -> PyResult<PeerHandle> {
        let (is_me, handle) = self.part(|part, _| {
            let is_here = part.mesh().roster().has(player.number, player.joined);
            let handle = part.handle_of(player.number).filter(|_| is_here);
            (is_here && part.mesh().me() == Some(player.number), handle)
        })?;
        if is_me {
            return Err(value_error("player must be another one: this is the peer's own"));
        }
        Ok(handle.unwrap_or(PeerHandle { slot: u32::MAX, generation: u32::MAX }))
    }

    /// Makes Python objects of a tick's arrivals. Locks are held briefly, never while Python runs.
    fn make_objects(&self, py: Python<'_>, pending: &mut Pending, ends: &[Event]) -> PyResult<()> {
        for event in ends {
            let Event::Disconnected { peer, violation: Some(how), .. } = event else {
                continue;
            };
            let who = lock(&self.players).by_handle.get(peer).map(|player| player.get().__repr__());
            if let Some(who) = who {
                let here = self.endpoint.address.0;
                log(py, Level::Warning, || {
                    format!(
                        "the peer at {here}: the connection to {who} was ended, as it broke the rules: {how}"
                    )
                });
            }
        }
        for happening in core::mem::take(&mut pending.tick.players) {
            let event = self.make_event(py, happening)?;
            pending.events.extend(event);
        }
        self.keep_states(&mut pending.tick.chunks)?;
        let player_of =
            |handle| lock(&self.players).by_handle.get(&handle).map(|player| player.clone_ref(py));
        pending.make_chunks(py, |handle| Some(Some(player_of(handle)?.into_any())))?;
        let mut refused = Vec::new();
        let made = pending.make_messages(py, &self.endpoint, &mut refused, |handle, what| {
            let Some(player) = player_of(handle) else { return Ok(None) };
            let mut all = vec![player.into_bound_py_any(py)?];
            all.extend(what.iter().cloned());
            Ok(Some(PyTuple::new(py, all)?.into_any().unbind()))
        });
        for (peer, why) in refused {
            // If the game has closed the peer meanwhile, the connection is gone anyway.
            let _ = self.endpoint.with(|core, driver| {
                driver.transmit(|now, out| core.refuse_message(now, peer, &why, out));
            });
        }
        made
    }

    fn make_event(&self, py: Python<'_>, happening: Happening) -> PyResult<Option<Py<PyAny>>> {
        let say = |line: String| {
            log(py, Level::Info, || format!("the peer at {}: {line}", self.endpoint.address.0));
        };
        Ok(match happening {
            Happening::Joined { player: number, joined } => {
                let (handle, name, address) = self.part(|part, _| {
                    let member = part.mesh().roster().member(number).filter(|member| member.joined == joined);
                    let (name, address) = member.map_or((String::new(), None), |member| {
                        (member.name.clone(), member.addresses.first().copied())
                    });
                    let is_me = part.mesh().me() == Some(number);
                    let handle = part.handle_of(number).filter(|_| !is_me);
                    (handle, name, address.filter(|_| !is_me))
                })?;
                let data = Mutex::default();
                let address = address.map(Address);
                let player = Player { peer: self.id, number, joined, name, address, data };
                let player = Py::new(py, player)?;
                say(format!("{} joined", player.get().__repr__()));
                let mut known = lock(&self.players);
                let before = known.by_number.insert(number, player.clone_ref(py));
                let its = handle.map(|handle| known.by_handle.insert(handle, player.clone_ref(py)));
                drop(known);
                drop((before, its));
                Some(Py::new(py, PlayerJoined { player })?.into_any())
            }
            Happening::Left { player: number, joined, reason } => {
                let mut known = lock(&self.players);
                let is_it =
                    |player: &Py<Player>| (player.get().number, player.get().joined) == (number, joined);
                let player =
                    known.by_number.get(&number).filter(|player| is_it(player)).map(|it| it.clone_ref(py));
                let left = known.by_number.extract_if(|_, player| is_it(player)).map(|(_, player)| player);
                let mut left: Vec<_> = left.collect();
                left.extend(known.by_handle.extract_if(|_, player| is_it(player)).map(|(_, player)| player));
                drop(known);
                drop(left);
                let Some(player) = player else { return Ok(None) };
                say(format!("{} left: {reason:?}", player.get().__repr__()));
                Some(Py::new(py, PlayerLeft { player, reason })?.into_any())
            }
            Happening::Master { player } => {
                let Some(player) = self.player(py, player) else { return Ok(None) };
                say(format!("{} is the master", player.get().__repr__()));
                Some(Py::new(py, MasterChanged { player })?.into_any())
            }
            Happening::Starts { seed, players } => {
                let at = self.part(|part, now| part.mesh().start_at().unwrap_or(now))?.as_secs_f64();
                Some(Py::new(py, Started { seed, at, players })?.into_any())
            }
            Happening::Ended { reason } => {
                say(format!("the game is over for it: {reason:?}"));
                Some(Py::new(py, GameEnded { reason })?.into_any())
            }
        })
    }
}
