//! How a player is reached.

use crate::python::prelude::*;

use super::events::Player;
use crate::rendezvous::{PathKind, member_of};

#[pyclass(frozen, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerPath {
    pub(super) kind: PathKind,
    #[pyo3(get)]
    pub(super) through: Option<Py<Player>>,
}

#[pymethods]
impl PlayerPath {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("kind", "through")
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.kind {
            PathKind::Direct => "direct",
            PathKind::Punched => "punched",
            PathKind::Relayed => "relayed",
        }
    }

    fn __repr__(&self) -> String {
        let through = self.through.as_ref().map_or("None".into(), |player| player.get().__repr__());
        format!("PlayerPath(kind='{}', through={through})", self.kind())
    }

    traverses!(self.through);
}

/// How the peer at this address is reached, and the number of the player who carries.
pub(super) fn of(driver: &mut Driver, address: SocketAddr) -> (PathKind, Option<u8>) {
    if let Some((player, joined)) = member_of(address) {
        let through = driver.member_relay().and_then(|relay| relay.through(player, joined));
        return (PathKind::Relayed, through);
    }
    let found = driver.rendezvous().and_then(|client| client.kind_of(address));
    (found.unwrap_or(PathKind::Direct), None)
}
