//! Servers, clients and peers as Python sees them: what each adds to an [`Endpoint`]. Their common methods are made by
//! `endpoint!()`. A tick is a context manager: it receives at its begin and sends at its end.

use crate::python::prelude::*;
use pyo3::PyClass;
use pyo3::pyclass::boolean_struct::True;

/// An endpoint with its own kind of work around a tick.
pub(super) trait Facade: Send + Sync {
    fn endpoint(&self) -> &Endpoint;

    /// Decides about newcomers, before a tick's data is taken.
    fn admit(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Makes Python objects of a tick's arrivals. Locks are held briefly, never while Python runs.
    fn make_objects(&self, py: Python<'_>, pending: &mut Pending, events: Vec<Event>) -> PyResult<()>;

    /// Receives a tick.
    fn receive_tick(&self, py: Python<'_>) -> PyResult<Inbox> {
        self.prepare(py)?;
        self.endpoint().receive(py, self)
    }

    /// Does what is due before the endpoint works.
    fn prepare(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Seconds until [`Facade::prepare`] has work, at most.
    fn next_work(&self) -> PyResult<f64> {
        Ok(f64::INFINITY)
    }

    /// Asks the hooks that decide what is sent.
    fn ask(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Whether the next tick has something beside what the endpoint received.
    fn has_own_news(&self) -> PyResult<bool> {
        Ok(false)
    }

    /// Ends the calls of a closed endpoint, and what else goes on.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.endpoint().end_calls(py)
    }

    /// Does what must be done before the endpoint closes.
    ///
    /// # Errors
    /// It may not be closed.
    fn prepare_close(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Closes the endpoint, and what belongs to it: see [`Endpoint::close`].
    fn close_all(
        &self,
        py: Python<'_>,
        linger: f64,
        reason: Option<&Object<'_>>,
        wait: bool,
    ) -> PyResult<()> {
        self.prepare_close(py)?;
        self.endpoint().close(py, linger, reason, wait)?;
        self.stop(py)
    }

    /// Sends what is queued.
    fn flush_tick(&self, py: Python<'_>) -> PyResult<()> {
        let asked = self.ask(py);
        self.endpoint().flush(py).and(asked)
    }

    /// Sends what is queued, unless the endpoint is closed.
    fn transmit(&self, py: Python<'_>) -> PyResult<()> {
        let asked = self.ask(py);
        self.endpoint().transmit(py).and(asked)
    }

    /// Works between ticks; returns the seconds until the next turn.
    fn step(&self, py: Python<'_>) -> PyResult<f64> {
        self.prepare(py)?;
        let wait = self.endpoint().step(py)?;
        Ok(wait.min(self.next_work()?))
    }
}

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
