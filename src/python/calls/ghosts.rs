//! Ghosts as arguments: numbers on the wire, objects in the game.
//!
//! Promises: a call that only owners may make never runs for a client that doesn't own the ghost. A server's
//! call that names a ghost the client doesn't have yet waits for it, for a bounded time and among a bounded
//! number, on reliable channels.

use super::*;

use crate::python::ghosts::{Found, number_for};

/// The ghosts among a call's arguments, where the call runs.
pub(super) enum Ghosts<'py> {
    /// All ghosts are here, in the order of the parameters.
    Here(Vec<Bound<'py, PyAny>>),
    /// A ghost isn't here, or isn't the caller's.
    Missing(Outcome),
    /// A ghost hasn't arrived yet.
    Awaited,
}

impl Endpoint {
    /// The ghosts that are among a call's arguments.
    pub(in crate::python) fn ghost_arguments<'py>(
        &self,
        declared: &Declared,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = object.py();
        declared.ghosts.iter().map(|parameter| object.getattr(parameter.name.bind(py))).collect()
    }

    /// Replaces ghosts by the numbers under which a peer knows them. False if the peer isn't sent one of
    /// them.
    ///
    /// # Errors
    /// An argument is no ghost of its class, or not in this world.
    pub(in crate::python) fn number_ghosts<'py>(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        object: &Bound<'py, PyAny>,
        ghosts: &[Bound<'py, PyAny>],
    ) -> PyResult<bool> {
        let py = object.py();
        for (parameter, given) in declared.ghosts.iter().zip(ghosts) {
            if given.is_none() && parameter.optional {
                continue;
            }
            let class = self.protocol.get().ghosts[parameter.class].0.bind(py);
            let wrong = || {
                let bound = class.name().map_or_else(|_| "a ghost".into(), |name| format!("a live {name}"));
                let name = parameter.name.bind(py).to_string();
                FieldTypeError::new_err((declared.name.clone(), name, given.clone().unbind(), bound))
            };
            let ghost = given.cast::<Ghost>().map_err(|_| wrong())?;
            let live = self.population.live(ghost)?;
            if live.class() != parameter.class {
                return Err(wrong());
            }
            let client = self.kind.is_server.then_some(peer);
            let Some(number) = number_for(&mut *self.state.lock()?, client, &live) else { return Ok(false) };
            object.setattr(parameter.name.bind(py), number)?;
        }
        Ok(true)
    }
}

impl Desk {
    /// The ghosts that a received call names.
    pub(super) fn find_ghosts<'py>(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        message: &Bound<'py, PyAny>,
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
                    let must_own = self.is_server && declared.owned && place == 0;
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
