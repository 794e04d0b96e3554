//! A tick as a context manager: it receives at its begin and sends at its end.

use crate::python::prelude::*;
use pyo3::PyClass;
use pyo3::pyclass::boolean_struct::True;

/// A server, a client or a peer as an object of Python.
pub(super) trait Ticked: Traverse + Send + Sync {
    fn facade(&self) -> &dyn Facade;
}

impl<T: Facade + PyClass<Frozen = True>> Ticked for Py<T> {
    fn facade(&self) -> &dyn Facade {
        self.get()
    }
}

#[pyclass(frozen, generic, module = "tickwire.connections")]
pub(crate) struct Tick(pub(super) Box<dyn Ticked>);

#[pymethods]
impl Tick {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Inbox> {
        let received = self.0.facade().receive_tick(py);
        if received.is_err()
            && let Err(error) = self.send(py)
        {
            // There will be no exit, but the connections need their packets; only the first error is raised.
            error.write_unraisable(py, None);
        }
        received
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Object<'_>,
        value: &Object<'_>,
        traceback: &Object<'_>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        // The next tick runs the calls that a raising body left.
        if kind.is_none() { self.send(py) } else { self.0.facade().transmit(py) }
    }

    traverses!(self.0);
}

impl Tick {
    /// Runs the calls that are left, and sends everything queued, unless the body closed the endpoint.
    fn send(&self, py: Python<'_>) -> PyResult<()> {
        let calls = self.0.facade().endpoint().run_calls(py);
        calls.and(self.0.facade().transmit(py))
    }
}
