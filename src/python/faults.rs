//! Breaks things on purpose, to test the recovery. Only in development builds, by the Cargo feature `faults`.

use crate::python::prelude::*;

use super::client::Client;
use super::server::Server;

#[derive(FromPyObject)]
pub(super) enum Threaded<'py> {
    Server(Bound<'py, Server>),
    Client(Bound<'py, Client>),
}

/// Makes the thread of a server or client panic at its next turn.
#[pyfunction]
pub(super) fn _break_thread(endpoint: Threaded<'_>) -> PyResult<()> {
    match endpoint {
        Threaded::Server(server) => server.get().break_thread(),
        Threaded::Client(client) => client.get().break_thread(),
    }
}
