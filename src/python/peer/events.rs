//! The events of a game of peers, and the players they are about.

use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use crate::python::prelude::*;

use crate::mesh::LeaveReason;

#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct Player {
    /// Tells the peers of a process apart.
    pub(super) peer: u64,
    pub(super) number: u8,
    pub(super) joined: u32,
    pub(super) name: String,
    pub(super) address: Option<Address>,
    pub(super) data: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Player {
    properties! {
        number: u8 = self.number;
        name: &str = &self.name;
        client_id: u64 = client_id((self.number, self.joined));
        address: Option<Address> = self.address;
        data: Option<Py<PyAny>> = lock(&self.data).as_ref().map(|data| data.clone_ref(py));
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

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerJoined {
    pub(super) player: Py<Player>,
}

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerLeft {
    pub(super) player: Py<Player>,
    pub(super) reason: LeaveReason,
}

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct MasterChanged {
    pub(super) player: Py<Player>,
}

#[pyclass(frozen, get_all, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct HostChanged {
    pub(super) host: Py<Player>,
    pub(super) age: Option<f64>,
}

#[pymethods]
impl HostChanged {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("host", "age")
    }

    traverses!(self.host);

    fn __repr__(&self) -> String {
        let age = self.age.map_or("None".into(), |age| format!("{age:.3}"));
        format!("HostChanged(host={}, age={age})", self.host.get().__repr__())
    }
}

#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    #[pyo3(get)]
    pub(super) seed: u64,
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

    properties! {
        players: PyResult<Bound<'py, PyTuple>> = PyTuple::new(py, (0..16u8).filter(|player| self.players >> player & 1 == 1).collect::<Vec<_>>());
        __repr__: String = format!("Started(seed={:#x}, at={:.3})", self.seed, self.at);
    }
}

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct GameEnded {
    pub(super) reason: LeaveReason,
}

/// The id of a player's client at every host's server.
pub(super) fn client_id((player, joined): (u8, u32)) -> u64 {
    u64::from(joined) << 8 | u64::from(player)
}
