//! What ghosts are called between a server and its clients: numbers that the game may send.

use super::*;
use crate::replication::{GhostName, Named};

/// What a number refers to.
pub(in crate::python) enum Found<'py> {
    Here(Bound<'py, Ghost>),
    Gone,
    /// It may still arrive.
    Awaited,
}

/// Returns the number that a client, or the server if there is none, knows a ghost by. None if the client isn't to have
/// it.
pub(in crate::python) fn number_for(
    state: &mut State,
    client: Option<PeerHandle>,
    live: &Live,
) -> Option<u32> {
    let Some(client) = client else {
        return core::mirror(state).map(|mirror| mirror.name(live.row).number());
    };
    core::world(state)?.name(client, live.rows.index, live.row).map(GhostName::number)
}

impl Population {
    /// Finds what a client, or the server if there is none, calls by a number.
    pub(in crate::python) fn named_by<'py>(
        &self,
        py: Python<'py>,
        shared: &Shared<State>,
        client: Option<PeerHandle>,
        class: usize,
        number: u32,
    ) -> PyResult<Found<'py>> {
        let (rows, name) = (&self.classes[class], GhostName::from_number(number));
        let named = {
            let mut state = shared.lock()?;
            match client {
                Some(client) => {
                    let row = core::publisher(&mut state).and_then(|it| it.named(client, class, name));
                    row.map_or(Some(Named::Gone), |id| Some(Named::Here { id }))
                }
                None => core::mirror(&mut state).map(|mirror| mirror.named(class, name)),
            }
        };
        Ok(match named {
            Some(Named::Here { id }) if client.is_some() || rows.cells.is_alive(id) => {
                Found::Here(rows.object(py, id)?)
            }
            Some(Named::Gone) => Found::Gone,
            _ => Found::Awaited,
        })
    }
}
