//! The events of a game of peers, and the players they are about.

use crate::python::prelude::*;

use crate::mesh::LeaveReason;
use crate::python::events::hash;
use crate::session::client_id;

#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct Player {
    /// Tells the peers of a process apart.
    pub(super) peer: u64,
    pub(super) number: u8,
    pub(super) joined: u32,
    pub(super) name: String,
    pub(super) address: Option<Address>,
    pub(super) data: ObjectCell,
}

#[pymethods]
impl Player {
    properties! {
        number: u8 = self.number;
        name: &str = &self.name;
        client_id: u64 = client_id((self.number, self.joined));
        address: Option<Address> = self.address;
        data: Option<Py<PyAny>> = self.data.get(py);
    }

    #[setter]
    fn set_data(&self, data: Option<Py<PyAny>>) {
        self.data.set(data);
    }

    fn __eq__(&self, other: &Object<'_>) -> bool {
        let same = |other: &Player| {
            (other.peer, other.number, other.joined) == (self.peer, self.number, self.joined)
        };
        other.cast::<Player>().is_ok_and(|other| same(other.get()))
    }

    fn __hash__(&self) -> u64 {
        hash((self.peer, self.number, self.joined))
    }

    pub(super) fn __repr__(&self) -> String {
        format!("<Player {} {:?}>", self.number, self.name)
    }

    traverses!(self.data);

    fn __clear__(&self) {
        self.data.set(None);
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

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct HostChanged {
    pub(super) host: Py<Player>,
    pub(super) age: Option<f64>,
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
        players: PyResult<Bound<'py, PyTuple>> = numbers_of(py, self.players);
        __repr__: String = format!("Started(seed={:#x}, at={:.3})", self.seed, self.at);
    }
}

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct GameEnded {
    pub(super) reason: LeaveReason,
}

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerPath {
    pub(super) kind: &'static str,
    pub(super) through: Option<Py<Player>>,
}

/// The numbers of the players in a mask.
pub(in crate::python) fn numbers_of(py: Python<'_>, mask: u16) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, (0..16_u8).filter(|player| mask >> player & 1 == 1).collect::<Vec<_>>())
}
