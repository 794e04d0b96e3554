//! A tick as a context manager: it receives at its begin and sends at its end.

use super::client::Client;
use super::inbox::Inbox;
use super::peer::Peer;
use super::server::Server;
use crate::python::prelude::*;

#[pyclass(frozen, generic, module = "tickwire.connections")]
pub(crate) struct Tick(pub(super) Ticking);

/// The endpoint that ticks.
pub(super) enum Ticking {
    Server(Py<Server>),
    Client(Py<Client>),
    Peer(Py<Peer>),
}

#[pymethods]
impl Tick {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Inbox> {
        let received = match &self.0 {
            Ticking::Server(server) => server.get().receive(py),
            Ticking::Client(client) => client.get().receive(py),
            Ticking::Peer(peer) => peer.get().receive(py),
        };
        if received.is_err()
            && let Err(error) = self.flush(py)
        {
            // There will be no exit, but the connections need their packets; only the first error is raised.
            error.write_unraisable(py, None);
        }
        received
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        // The next tick runs the calls that a raising body left.
        if kind.is_none() { self.flush(py) } else { self.transmit(py) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.0 {
            Ticking::Server(server) => visit.call(server),
            Ticking::Client(client) => visit.call(client),
            Ticking::Peer(peer) => visit.call(peer),
        }
    }
}

impl Tick {
    /// Sends everything queued, unless the body closed the endpoint.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let calls = match &self.0 {
            Ticking::Server(server) => server.get().run_calls(py),
            Ticking::Client(client) => client.get().run_calls(py),
            Ticking::Peer(peer) => peer.get().run_calls(py),
        };
        calls.and(self.transmit(py))
    }

    fn transmit(&self, py: Python<'_>) -> PyResult<()> {
        let open = match &self.0 {
            Ticking::Server(server) => server.get().transmit(py),
            Ticking::Client(client) => client.get().transmit(py),
            Ticking::Peer(peer) => peer.get().transmit(py),
        };
        open.map(drop)
    }
}
