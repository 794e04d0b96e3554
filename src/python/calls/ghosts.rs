//! Ghosts as arguments: numbers on the wire, objects in the game.
//!
//! Promises: a call that only owners may make never runs for a client that doesn't own the ghost. A server's
//! call that names a ghost the client doesn't have yet waits for it, for a bounded time and among a bounded
//! number, on reliable channels.

use super::*;

use crate::python::ghosts::Found;

/// The ghosts among a call's arguments, where the call runs.
pub(super) enum Ghosts<'py> {
    /// All ghosts are here, in the order of the parameters.
    Here(Vec<Object<'py>>),
    /// A ghost isn't here, or isn't the caller's.
    Missing(Outcome),
    /// A ghost hasn't arrived yet.
    Awaited,
}

impl Desk {
    /// The ghosts that a received call names.
    pub(super) fn find_ghosts<'py>(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        message: &Object<'py>,
    ) -> PyResult<Ghosts<'py>> {
        let py = message.py();
        let mut found = Vec::new();
        for (place, parameter) in declared.ghosts.iter().enumerate() {
            let number: Option<u32> = message.getattr(parameter.name.bind(py))?.extract()?;
            let Some(number) = number else {
                found.push(py.None().into_bound(py));
                continue;
            };
            let shared = self.state.upgrade().ok_or_else(|| ClosedError::new_err("the endpoint is gone"))?;
            let client = self.is_server.then_some(peer);
            match self.population.named_by(py, &shared, client, parameter.class, number)? {
                Found::Here(ghost) => {
                    let must_own = self.is_server && declared.spec.owned && place == 0;
                    if must_own && self.population.live(&ghost)?.owner() != peer.number() {
                        return Ok(Ghosts::Missing(Outcome::Refused));
                    }
                    found.push(ghost.into_any());
                }
                Found::Gone => return Ok(Ghosts::Missing(Outcome::Gone)),
                Found::Awaited => return Ok(Ghosts::Awaited),
            }
        }
        Ok(Ghosts::Here(found))
    }

    /// Lets a call wait for its ghosts; gives it back if it can't.
    pub(super) fn await_ghosts(&self, arrived: Arrived) -> PyResult<Option<Arrived>> {
        let now = self.now()?;
        Ok(lock(&self.core).wait(now, arrived))
    }

    fn now(&self) -> PyResult<Instant> {
        let Some(shared) = self.state.upgrade() else { return Ok(Instant::ZERO) };
        let now = shared.lock()?.carrier.driver().map_or(Instant::ZERO, crate::driver::Driver::now);
        Ok(now)
    }
}
