//! Ghosts as numbers in messages: the receiver's number, or on the way to a server the sender's own.
//!
//! Promises: a number means the same ghost forever; when that is gone it means none. A number from a peer is
//! looked up, and at worst there is no such ghost.

use pyo3::prelude::*;

use super::core;
use super::ghost::{Ghost, Live};
use super::population::Population;
use crate::endpoint::PeerHandle;
use crate::python::state::State;
use crate::replication::{GhostName, Named};

/// What a number names, on a client.
pub(in crate::python) enum Found<'py> {
    Here(Bound<'py, Ghost>),
    Gone,
    Awaited,
}

/// The number by which a server names a ghost to a client; none if the client isn't sent it.
pub(in crate::python) fn for_client(state: &mut State, client: PeerHandle, live: &Live) -> Option<u32> {
    core::name(state, client, live.rows.index, live.row).map(GhostName::number)
}

/// The row that a client names by this number.
pub(in crate::python) fn from_client(
    state: &mut State,
    client: PeerHandle,
    class: usize,
    number: u32,
) -> Option<u32> {
    core::publisher(state)?.named(client, class, GhostName::from_number(number))
}

/// The number by which a client names a ghost to its server.
pub(in crate::python) fn for_server(state: &mut State, live: &Live) -> Option<u32> {
    core::mirror(state).map(|mirror| mirror.name(live.row).number())
}

impl Population {
    /// The ghost that the server names by this number.
    pub(in crate::python) fn named_by_server<'py>(
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
