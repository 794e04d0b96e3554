//! Ghosts as numbers that a message can carry: the receiver's, or the sender's own on the way to a server.
//!
//! Promises: a number means one ghost for ever; when that is gone it means none. What a peer sends as one is looked up, and at worst
//! there is no such ghost.

use pyo3::prelude::*;

use super::core;
use super::ghost::{Ghost, Live};
use super::population::Population;
use crate::endpoint::PeerHandle;
use crate::python::state::State;
use crate::replication::{GhostName, Named};

/// What a number is of, on a client.
pub(in crate::python) enum Found<'py> {
    Here(Bound<'py, Ghost>),
    Gone,
    Awaited,
}

/// The number by which a server tells a client of a ghost; none when the client isn't to have it.
pub(in crate::python) fn for_client(state: &mut State, client: PeerHandle, live: &Live) -> Option<u32> {
    core::name(state, client, live.rows.index, live.row).map(GhostName::number)
}

/// The row that a client calls so.
pub(in crate::python) fn from_client(
    state: &mut State,
    client: PeerHandle,
    class: usize,
    number: u32,
) -> Option<u32> {
    core::publisher(state)?.named(client, class, GhostName::from_number(number))
}

/// The number by which a client tells its server of a ghost.
pub(in crate::python) fn for_server(state: &mut State, live: &Live) -> Option<u32> {
    core::mirror(state).map(|mirror| mirror.name(live.row).number())
}

impl Population {
    /// The ghost that the server calls so.
    pub(in crate::python) fn from_server<'py>(
        &self,
        py: Python<'py>,
        state: &crate::python::shared::Shared<State>,
        class: usize,
        number: u32,
    ) -> PyResult<Found<'py>> {
        let found = {
            let mut state = state.lock()?;
            core::mirror(&mut state).map(|mirror| mirror.named(class, GhostName::from_number(number)))
        };
        let rows = &self.classes[class];
        Ok(match found {
            Some(Named::Here { id }) if rows.is_alive(id) => Found::Here(rows.object(py, id)?),
            Some(Named::Gone) => Found::Gone,
            _ => Found::Awaited,
        })
    }
}
