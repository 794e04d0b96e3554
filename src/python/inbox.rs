//! What a tick hands up, and the two halves of a tick.
//!
//! Promises: what was received is handed over once. When the game's own code raises on one message, that message
//! is dropped, and all others wait for the next receive.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::client::Client;
use super::codec::Failure;
use super::protocol::Protocol;
use super::server::Server;
use crate::endpoint;

/// What arrived since the last tick.
#[pyclass(frozen, generic, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Inbox {
    #[pyo3(get)]
    events: Py<PyList>,
    /// ``(client, message)`` pairs on a server, messages on a client; in order within a channel.
    #[pyo3(get)]
    messages: Py<PyList>,
}

#[pymethods]
impl Inbox {
    fn __repr__(&self, py: Python<'_>) -> String {
        let (events, messages) = (self.events.bind(py).len(), self.messages.bind(py).len());
        format!("<Inbox of {events} events and {messages} messages>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.events)?;
        visit.call(&self.messages)
    }
}

/// What was received and not handed over yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) events: Vec<Py<PyAny>>,
    messages: Vec<Py<PyAny>>,
    pub(super) records: endpoint::Inbox,
    /// The first record that no object was made of.
    next: usize,
}

impl Pending {
    /// Makes objects of all records. `wrap` gives them the form in which they are handed over. Clients whose
    /// messages are refused are added to `refused`; what else they sent is dropped.
    ///
    /// # Errors
    /// What the game's own code raised. Call again to go on behind the message at fault.
    pub(super) fn make_messages<'py>(
        &mut self,
        py: Python<'py>,
        protocol: &Protocol,
        factory: Option<&Py<PyAny>>,
        refused: &mut Vec<endpoint::ClientHandle>,
        mut wrap: impl FnMut(endpoint::ClientHandle, Bound<'py, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<()> {
        let Pending { messages, records, next, .. } = self;
        while let Some(record) = records.records().get(*next) {
            *next += 1;
            if refused.contains(&record.client) {
                continue;
            }
            match protocol.decode_message(py, record.message_type, records.body(record), factory) {
                Ok(message) => messages.push(wrap(record.client, message)?),
                Err(Failure::Refused(_)) => refused.push(record.client),
                Err(Failure::Raised(error)) => return Err(error),
            }
        }
        records.clear();
        *next = 0;
        Ok(())
    }

    /// Hands everything over.
    pub(super) fn take(&mut self, py: Python<'_>) -> PyResult<Inbox> {
        Ok(Inbox {
            events: PyList::new(py, self.events.drain(..))?.unbind(),
            messages: PyList::new(py, self.messages.drain(..))?.unbind(),
        })
    }

    pub(super) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.events.iter().chain(&self.messages).try_for_each(|object| visit.call(object))
    }
}

/// Receives on entry, sends on exit (also when the body or the entry raises, so that connections stay alive).
#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Tick(pub(super) Endpoint);

pub(super) enum Endpoint {
    Server(Py<Server>),
    Client(Py<Client>),
}

#[pymethods]
impl Tick {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Inbox> {
        let received = match &self.0 {
            Endpoint::Server(server) => server.get().receive(py),
            Endpoint::Client(client) => client.get().receive(py),
        };
        if received.is_err() {
            // There will be no exit, and the connections need their packets all the same.
            self.flush();
        }
        received
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(&self, kind: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, traceback: &Bound<'_, PyAny>) {
        let _ = (kind, value, traceback);
        self.flush();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.0 {
            Endpoint::Server(server) => visit.call(server),
            Endpoint::Client(client) => visit.call(client),
        }
    }
}

impl Tick {
    /// Sends what is queued, unless the body closed the endpoint.
    fn flush(&self) {
        let _closed = match &self.0 {
            Endpoint::Server(server) => server.get().flush(),
            Endpoint::Client(client) => client.get().flush(),
        };
    }
}
