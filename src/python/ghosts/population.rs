//! The classes of a world, by type.

use std::sync::{Arc, Weak};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::ghost::{Ghost, Live};
use super::properties::Properties;
use super::rows::GhostRows;
use crate::python::errors::GhostError;
use crate::python::shared::Shared;
use crate::python::state::State;

/// The ghosts of all classes of a protocol, on one side.
pub(in crate::python) struct Population {
    pub(super) classes: Vec<Arc<GhostRows>>,
    /// What has it, for sentences.
    side: &'static str,
}

impl Population {
    /// With nobody in it; `server` is where a server's goes.
    pub(in crate::python) fn new(
        py: Python<'_>,
        classes: &[(Py<PyType>, Py<Properties>)],
        server: Option<Weak<Shared<State>>>,
    ) -> PyResult<Self> {
        Population::as_seen(py, classes.iter().map(|(class, properties)| (class, properties)), server)
    }

    /// The same classes with nobody in them, to show another time in.
    pub(super) fn empty_copy(&self, py: Python<'_>) -> PyResult<Self> {
        Population::as_seen(py, self.classes.iter().map(|rows| (&rows.class, &rows.properties)), None)
    }

    fn as_seen<'a>(
        py: Python<'_>,
        classes: impl Iterator<Item = (&'a Py<PyType>, &'a Py<Properties>)>,
        server: Option<Weak<Shared<State>>>,
    ) -> PyResult<Self> {
        let side = if server.is_some() { "server" } else { "client" };
        let each = classes.enumerate().map(|(index, (class, properties))| {
            GhostRows::new(index, class.bind(py), properties.bind(py), server.clone())
        });
        Ok(Population { classes: each.collect::<PyResult<_>>()?, side })
    }

    /// Whether the protocol has no ghosts.
    pub(in crate::python) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The rows of a ghost class.
    ///
    /// # Errors
    /// Saying that it is none of these.
    pub(super) fn rows_of(&self, class: &Bound<'_, PyAny>) -> PyResult<&Arc<GhostRows>> {
        if let Some(rows) = self.classes.iter().find(|rows| rows.class.is(class)) {
            return Ok(rows);
        }
        let shown = match class.cast::<PyType>() {
            Ok(class) => class.name()?.to_string(),
            Err(_) => class.repr()?.to_string(),
        };
        let names: Vec<&str> = self.classes.iter().map(|rows| rows.name()).collect();
        let (names, class) = (names.join(", "), class.clone());
        Err(GhostError::new_err(match Properties::of(&class) {
            Some(_) => {
                format!("{shown} is not among the protocol's ghosts ({names}): add it there, on both sides")
            }
            None => format!("{shown} is no class made by @tickwire.ghost, of which the protocol has {names}"),
        }))
    }

    /// Where a ghost lives in this world.
    ///
    /// # Errors
    /// Saying that it doesn't: it was never spawned, was despawned, or is another world's.
    pub(super) fn live(&self, ghost: &Bound<'_, Ghost>) -> PyResult<Live> {
        let name = ghost.get_type().name()?;
        let Some(live) = ghost.get().live() else {
            return Err(GhostError::new_err(match ghost.get().was() {
                Some(row) => format!("the {name} of row {row} was despawned already"),
                None => format!("this {name} is in no world yet: spawn() it first"),
            }));
        };
        if self.classes.iter().any(|rows| Arc::ptr_eq(rows, &live.rows)) {
            return Ok(live);
        }
        Err(GhostError::new_err(format!(
            "the {name} of row {} lives in another world than this {}'s",
            live.row, self.side
        )))
    }

    pub(super) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.classes.iter().try_for_each(|rows| rows.traverse(visit))
    }

    pub(super) fn forget_objects(&self) {
        self.classes.iter().for_each(|rows| rows.forget_objects());
    }
}
