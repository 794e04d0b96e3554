//! Servers, clients and peers as Python sees them: what each adds to an [`Endpoint`]. Their common methods are made by
//! `endpoint!()`.

use crate::python::prelude::*;

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
