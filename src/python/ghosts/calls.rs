//! Ghosts as arguments of calls.

use pyo3::prelude::*;

use super::ghost::Ghost;
use super::names::{self, Found};
use super::population::Population;
use crate::endpoint::PeerHandle;
use crate::python::shared::Shared;
use crate::python::state::State;

/// A ghost that a peer named.
pub(in crate::python) enum GhostArgument<'py> {
    /// The ghost, and whether the peer owns it.
    Here(Bound<'py, Ghost>, bool),
    Gone,
    Awaited,
}

impl Population {
    /// The number by which a peer knows a ghost; the inner None: the peer isn't sent it. The outer None: it
    /// is of another class.
    ///
    /// # Errors
    /// The ghost is not in this world.
    pub(in crate::python) fn number_for(
        &self,
        shared: &Shared<State>,
        is_server: bool,
        peer: PeerHandle,
        class: usize,
        ghost: &Bound<'_, Ghost>,
    ) -> PyResult<Option<Option<u32>>> {
        let live = self.live(ghost)?;
        if live.rows.index != class {
            return Ok(None);
        }
        let mut state = shared.lock()?;
        Ok(Some(if is_server {
            names::for_client(&mut state, peer, &live)
        } else {
            names::for_server(&mut state, &live)
        }))
    }

    /// The ghost that a peer knows by this number.
    pub(in crate::python) fn named_by<'py>(
        &self,
        py: Python<'py>,
        shared: &Shared<State>,
        is_server: bool,
        peer: PeerHandle,
        class: usize,
        number: u32,
    ) -> PyResult<GhostArgument<'py>> {
        if !is_server {
            return Ok(match self.named_by_server(py, shared, class, number)? {
                Found::Here(ghost) => GhostArgument::Here(ghost, false),
                Found::Gone => GhostArgument::Gone,
                Found::Awaited => GhostArgument::Awaited,
            });
        }
        let row = names::from_client(&mut *shared.lock()?, peer, class, number);
        let rows = &self.classes[class];
        let Some(row) = row else { return Ok(GhostArgument::Gone) };
        Ok(GhostArgument::Here(rows.object(py, row)?, rows.owner(row) == peer.number()))
    }
}
