//! An endpoint's work for its calls around a tick.

use super::*;

impl Endpoint {
    /// Runs the calls that the game left unread in its last tick's inbox.
    pub(in crate::python) fn run_calls(&self, py: Python<'_>) -> PyResult<()> {
        self.desk.as_ref().map_or(Ok(()), |desk| desk.run(py, None, None).map(drop))
    }

    /// Takes over the calls of a tick; they run after this tick's messages are read.
    pub(in crate::python) fn take_calls(
        &self,
        py: Python<'_>,
        taken: &mut Taken,
    ) -> PyResult<Option<(Weak<Desk>, u64)>> {
        let Some(desk) = &self.desk else { return Ok(None) };
        let now = self.state.lock()?.carrier.driver().map_or(Instant::ZERO, Driver::now);
        let tick = desk.take(py, taken, now)?;
        Ok(Some((Arc::downgrade(desk), tick)))
    }

    /// Drops the calls of a peer whose connection the game ended.
    pub(in crate::python) fn discard_calls(&self, peer: PeerHandle) {
        if let Some(desk) = &self.desk {
            desk.discard_calls(peer);
        }
    }

    /// Ends the calls and requests of an endpoint that is closed.
    pub(in crate::python) fn end_calls(&self, py: Python<'_>) -> PyResult<()> {
        match &self.desk {
            Some(desk) if self.closed().unwrap_or(true) => desk.close(py),
            _ => Ok(()),
        }
    }
}
