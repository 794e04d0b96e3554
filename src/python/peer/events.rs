//! What happens in a game of peers, and whom it is about.

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

/// A player of a game without a server, as one :class:`Peer` knows it: the same object in every event and list. One who
/// left is never taken for the next one with that number.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Player {
    /// Tells the peers of one process apart.
    pub(super) peer: u64,
    pub(super) number: u8,
    pub(super) joined: u32,
    pub(super) name: String,
    pub(super) address: Option<Address>,
    /// Whatever the game keeps of the player.
    pub(super) data: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Player {
    /// Its number in the game, 0 to 15: the same on all peers. Those of players who left are given again.
    #[getter]
    fn number(&self) -> u8 {
        self.number
    }

    /// What it calls itself: any text of at most 32 bytes.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, as the master sees it; None of this peer itself.
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
        // What was there may run code of the game when it goes.
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

/// A player is in the game from now on. A peer that gets in has this event of itself, too, with those of all who are
/// there.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct PlayerJoined {
    /// Who it is.
    #[pyo3(get)]
    pub(super) player: Py<Player>,
    /// What way leads to it: ``"direct"``, ``"punched"`` through a NAT, or ``"relayed"``; None of this peer itself.
    #[pyo3(get)]
    pub(super) path: Option<&'static str>,
}

#[pymethods]
impl PlayerJoined {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("player", "path")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.player)
    }

    fn __repr__(&self) -> String {
        let path = self.path.map_or("None".into(), |path| format!("{path:?}"));
        format!("PlayerJoined(player={}, path={path})", self.player.get().__repr__())
    }
}

/// A player isn't in the game any more.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct PlayerLeft {
    /// Who it was.
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

    /// Why: the same on all peers.
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

/// Another player is the master, as the one before is gone.
#[pyclass(frozen, module = "tickwire")]
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

/// The game begins: in the first tick after the countdown; with who joins late, as soon as it is in.
#[pyclass(frozen, module = "tickwire")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    /// 64 random bits: the same on all peers.
    #[pyo3(get)]
    pub(super) seed: u64,
    /// When it began, as :attr:`Peer.time` has it: within milliseconds the same moment on all peers.
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

    /// Numbers of those who were there when all agreed on the start: the same on all peers, whoever left since.
    #[getter]
    fn players<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, (0..16u8).filter(|player| self.players >> player & 1 == 1).collect::<Vec<_>>())
    }

    fn __repr__(&self) -> String {
        format!("Started(seed={:#x}, at={:.3})", self.seed, self.at)
    }
}

/// This peer is out of the game, or never got in: its last event.
#[pyclass(frozen, module = "tickwire")]
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

    /// Why.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        reason_to_python(py, self.reason)
    }

    fn __repr__(&self) -> String {
        format!("GameEnded(reason={})", reason_name(self.reason))
    }
}

/// The name of a reason's member in `tickwire.connection.LeaveReason`.
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
    CLASS.import(py, "tickwire.connection", "LeaveReason")?.getattr(reason_name(reason))
}
