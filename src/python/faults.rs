//! Ways to break things on purpose, for tests of what comes then. Only in modules built for development, by the Cargo
//! feature `faults`.

use pyo3::prelude::*;

use super::client::Client;
use super::server::Server;

#[derive(FromPyObject)]
pub(super) enum Threaded<'py> {
    Server(Bound<'py, Server>),
    Client(Bound<'py, Client>),
}

/// Has the thread of a server or a client panic in its next turn.
#[pyfunction]
pub(super) fn _break_thread(endpoint: Threaded<'_>) -> PyResult<()> {
    match endpoint {
        Threaded::Server(server) => server.get().break_thread(),
        Threaded::Client(client) => client.get().break_thread(),
    }
}
