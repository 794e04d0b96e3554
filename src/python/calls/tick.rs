//! What a tick does with the calls and replies that arrived.

use super::*;

use super::desk::is_done;
use crate::calls::{Awaited, CallOutcome};

impl Desk {
    /// Takes over a tick's calls at its end: replies and timeouts are handled at once, calls wait for the game. Returns
    /// the number of the tick.
    ///
    /// # Errors
    /// The first exception of the game's code, after everything else is done; received calls stay where they are.
    pub(in crate::python) fn take(&self, py: Python<'_>, taken: &mut Taken, now: Instant) -> PyResult<u64> {
        let mut raised = FirstError::default();
        for (peer, role, reply) in core::mem::take(&mut taken.replies) {
            raised.keep(py, self.answer(peer, role, reply.bind(py)));
        }
        for (peer, reason) in core::mem::take(&mut taken.ended) {
            let (requests, calls) = lock(&self.core).end_peer(peer);
            drop(calls);
            for request in requests {
                raised.keep(py, self.fail_ended(request.bind(py), Some(reason)));
            }
        }
        let late = lock(&self.core).expire(now);
        for request in late.iter().map(|request| request.bind(py)).filter(|request| !is_done(request)) {
            self.counts.count(CallOutcome::TimedOut);
            raised.keep(py, request.call_method0(intern!(py, "_time_out")));
        }
        let ready = self.take_ready(py, now, &mut raised);
        let raised = raised.result();
        let count = if raised.is_ok() { taken.calls.len() } else { 0 };
        let tick = lock(&self.core).begin_tick(ready, taken.calls.drain(..count));
        raised.map(|()| tick)
    }

    /// The calls whose ghosts have arrived, in their order.
    fn take_ready(&self, py: Python<'_>, now: Instant, raised: &mut FirstError) -> Vec<Arrived> {
        let (waiting, mut ready) = (lock(&self.core).take_waiting(), Vec::new());
        for (until, arrived) in waiting {
            let message = arrived.item.bind(py);
            let found = match self.find_ghosts(self.declared(arrived.call), arrived.peer, message) {
                Ok(Ghosts::Awaited) => Awaited::Awaited,
                Ok(_) => Awaited::Here,
                Err(error) => {
                    raised.keep::<()>(py, Err(error));
                    Awaited::Failed
                }
            };
            let dropped = lock(&self.core).keep_waiting(now, (until, arrived), found, &mut ready);
            drop(dropped);
        }
        ready
    }
}
