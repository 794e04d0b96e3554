//! The events of a game of peers, and the players they are about.

use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;
use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::mesh::LeaveReason;
use crate::python::address::Address;
use crate::python::lock;

/// A player of a game without a server, as one :class:`Peer` knows it: the same object in every event and
/// list. A later player with the same number is another object.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct Player {
    /// Tells the peers of a process apart.
    pub(super) peer: u64,
    pub(super) number: u8,
    pub(super) joined: u32,
    pub(super) name: String,
    pub(super) address: Option<Address>,
    /// The game's own data for the player.
    pub(super) data: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Player {
    /// Its number in the game, 0 to 15, the same on all peers. Numbers of players who left are reused.
    #[getter]
    fn number(&self) -> u8 {
        self.number
    }

    /// The name that the player chose: any text of at most 32 bytes.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its address as the master sees it; None for this peer itself.
    #[getter]
    fn address(&self) -> Option<Address> {
        self.address
    }

    /// Anything the game keeps for this player; None until it is set.
    #[getter]
    fn data(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.data).as_ref().map(|data| data.clone_ref(py))
    }

    #[setter]
    fn set_data(&self, data: Option<Py<PyAny>>) {
        // Dropping the old object may run code of the game, so it happens after the lock is released.
        let before = core::mem::replace(&mut *lock(&self.data), data);
        drop(before);
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |other: &Player| {
            (other.peer, other.number, other.joined) == (self.peer, self.number, self.joined)
        };
        other.cast::<Player>().is_ok_and(|other| same(other.get()))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.peer, self.number, self.joined).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn __repr__(&self) -> String {
        format!("<Player {} {:?}>", self.number, self.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.data.try_lock().map_or(Ok(()), |data| visit.call(&*data))
    }

    fn __clear__(&self) {
        let before = lock(&self.data).take();
        drop(before);
    }
}

/// A player has joined the game. A peer that joins gets this event for itself, too, and for all players
/// who are in the game already.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerJoined {
    /// The new player.
    #[pyo3(get)]
    pub(super) player: Py<Player>,
}

#[pymethods]
impl PlayerJoined {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("player",)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.player)
    }

    fn __repr__(&self) -> String {
        format!("PlayerJoined(player={})", self.player.get().__repr__())
    }
}

/// A player has left the game.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerLeft {
    /// The player who left.
    #[pyo3(get)]
    pub(super) player: Py<Player>,
    pub(super) reason: LeaveReason,
}

#[pymethods]
impl PlayerLeft {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("player", "reason")
    }

    /// The reason, the same on all peers.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        reason_to_python(py, self.reason)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.player)
    }

    fn __repr__(&self) -> String {
        format!("PlayerLeft(player={}, reason={})", self.player.get().__repr__(), reason_name(self.reason))
    }
}

/// Another player has become the master, as the former one is gone.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct MasterChanged {
    /// The new one.
    #[pyo3(get)]
    pub(super) player: Py<Player>,
}

#[pymethods]
impl MasterChanged {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("player",)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.player)
    }

    fn __repr__(&self) -> String {
        format!("MasterChanged(player={})", self.player.get().__repr__())
    }
}

/// The game begins: in the first tick after the countdown; for a late player, as soon as it has joined.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    /// 64 random bits: the same on all peers.
    #[pyo3(get)]
    pub(super) seed: u64,
    /// When the game began, in seconds of :attr:`Peer.time`; within milliseconds the same moment on all
    /// peers.
    #[pyo3(get)]
    pub(super) at: f64,
    pub(super) players: u16,
}

#[pymethods]
impl Started {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("seed", "at")
    }

    /// Numbers of the players at the time when all agreed on the start: the same on all peers, even if
    /// some have left.
    #[getter]
    fn players<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, (0..16u8).filter(|player| self.players >> player & 1 == 1).collect::<Vec<_>>())
    }

    fn __repr__(&self) -> String {
        format!("Started(seed={:#x}, at={:.3})", self.seed, self.at)
    }
}

/// This peer has left the game, or never got in: its last event.
#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GameEnded {
    pub(super) reason: LeaveReason,
}

#[pymethods]
impl GameEnded {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("reason",)
    }

    /// The reason.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        reason_to_python(py, self.reason)
    }

    fn __repr__(&self) -> String {
        format!("GameEnded(reason={})", reason_name(self.reason))
    }
}

/// The name of a reason in `tickwire._connection.LeaveReason`.
fn reason_name(reason: LeaveReason) -> &'static str {
    match reason {
        LeaveReason::Left => "LEFT",
        LeaveReason::Lost => "LOST",
        LeaveReason::Kicked => "KICKED",
        LeaveReason::Unreachable => "UNREACHABLE",
        LeaveReason::Violation => "VIOLATION",
        LeaveReason::Minority => "MINORITY",
        LeaveReason::Full => "FULL",
        LeaveReason::Started => "STARTED",
        LeaveReason::Mismatch => "MISMATCH",
        LeaveReason::NoAnswer => "NO_ANSWER",
        LeaveReason::Closed => "CLOSED",
    }
}

pub(super) fn reason_to_python(py: Python<'_>, reason: LeaveReason) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._connection", "LeaveReason")?.getattr(reason_name(reason))
}
