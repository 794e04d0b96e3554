//! A client's world: what its server shows it.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrays::GhostArrays;
use super::ghost::Ghost;
use super::population::Population;

/// What a server shows a client: its ghosts, as objects and as columns. Only the server changes them.
/// :attr:`Client.world` has it.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct ClientWorld(pub(in crate::python) Arc<Population>);

#[pymethods]
impl ClientWorld {
    /// The ghosts of a class, as objects, by row.
    ///
    /// Raises:
    ///     GhostError: the class is not among the protocol's ghosts.
    #[pyo3(signature = (class_, /))]
    fn objects<'py>(&self, class_: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        objects(&self.0, class_)
    }

    /// The ghosts of a class, as columns that can only be read. They are of the newest tick when :meth:`Client.receive`
    /// returns, and change in place with the next.
    ///
    /// Raises:
    ///     GhostError: the class is not among the protocol's ghosts.
    #[pyo3(signature = (class_, /))]
    fn arrays(&self, class_: &Bound<'_, PyAny>) -> PyResult<GhostArrays> {
        self.0.rows_of(class_).cloned().map(GhostArrays)
    }

    /// Whether this client owns a ghost.
    ///
    /// Raises:
    ///     GhostError: it is gone, or another client's.
    #[pyo3(signature = (ghost, /))]
    fn owns(&self, ghost: &Bound<'_, Ghost>) -> PyResult<bool> {
        let live = self.0.live(ghost)?;
        Ok(live.rows.owner(live.row) == 1)
    }

    /// The row of a ghost in the columns of its class.
    ///
    /// Raises:
    ///     GhostError: it is gone, or another client's.
    #[pyo3(signature = (ghost, /))]
    fn row(&self, ghost: &Bound<'_, Ghost>) -> PyResult<u32> {
        self.0.live(ghost).map(|live| live.row)
    }

    fn __contains__(&self, ghost: &Bound<'_, PyAny>) -> bool {
        ghost.cast::<Ghost>().is_ok_and(|ghost| self.0.live(ghost).is_ok())
    }

    fn __repr__(&self) -> String {
        format!("<ClientWorld of {}>", counted(&self.0))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(visit)
    }

    fn __clear__(&self) {
        self.0.forget_objects();
    }
}

impl Drop for ClientWorld {
    fn drop(&mut self) {
        self.0.forget_objects();
    }
}

/// The objects of a class, by row.
pub(super) fn objects<'py>(
    population: &Population,
    class: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, rows) = (class.py(), population.rows_of(class)?);
    let objects = rows.alive_rows().into_iter().map(|row| rows.object(py, row));
    PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// How many there are of each class.
pub(super) fn counted(population: &Population) -> String {
    let each = population.classes.iter().map(|rows| format!("{} {}", rows.living(), rows.name()));
    let each: Vec<String> = each.collect();
    if each.is_empty() { "no classes".into() } else { each.join(", ") }
}
