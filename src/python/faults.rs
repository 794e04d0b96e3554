//! Breaks things on purpose, to test the recovery. Only in development builds, by the Cargo feature `faults`.

use crate::python::prelude::*;

/// Any endpoint.
#[derive(FromPyObject)]
pub(super) enum AnyEndpoint {
    Server(Py<Server>),
    Client(Py<Client>),
    Peer(Py<Peer>),
}

/// Makes the thread of a server or client panic at its next turn.
#[pyfunction]
pub(super) fn _break_thread(endpoint: AnyEndpoint) -> PyResult<()> {
    match &endpoint {
        AnyEndpoint::Server(server) => server.get().endpoint.break_thread(),
        AnyEndpoint::Client(client) => client.get().endpoint.break_thread(),
        AnyEndpoint::Peer(peer) => peer.get().endpoint.break_thread(),
    }
}
