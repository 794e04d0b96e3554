//! The events of a client's ghosts, for the tick's inbox.

use super::*;
use crate::python::events::shown;
use crate::replication::Before;

#[record(module = "tickwire")]
pub(crate) struct GhostSpawned {
    pub(super) ghost: Py<Ghost>,
}

#[record(module = "tickwire.world")]
pub(crate) struct GhostOwned {
    pub(super) ghost: Py<Ghost>,
    pub(super) owned: bool,
}

#[record(module = "tickwire.world")]
pub(crate) struct GhostLinked {
    pub(super) ghost: Py<Ghost>,
    pub(super) name: Py<PyString>,
    pub(super) target: Option<Py<Ghost>>,
}

#[record(module = "tickwire")]
pub(crate) struct GhostDespawned {
    pub(super) ghost: Py<Ghost>,
}

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct GhostChanged {
    #[pyo3(get)]
    pub(super) ghost: Py<Ghost>,
    #[pyo3(get)]
    pub(super) names: Py<PyTuple>,
    pub(super) rows: Arc<GhostRows>,
    pub(super) row: u32,
    pub(super) mask: u64,
    pub(super) before: Arc<Before>,
}

#[pymethods]
impl GhostChanged {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("ghost", "names")
    }

    properties! {
        old: PyResult<Bound<'py, PyDict>> = self.old_values(py);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["ghost", "names"], 0)
    }
}

impl GhostChanged {
    /// The values before the tick, by name. Objects are made only here.
    fn old_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let GhostChanged { rows, row, mask, before, .. } = self;
        let (values, properties) = (PyDict::new(py), rows.properties.get());
        let Some(mut cells) = before.cells(rows.index, *row) else { return Ok(values) };
        for property in (0..64).filter(|property| mask >> property & 1 == 1) {
            let (cell, rest) = cells.split_at(rows.cells.column(property).size());
            cells = rest;
            let core = properties.core(property);
            let value = if properties.is_reference(property) {
                let number = cell.first_chunk().map_or(NO_GHOST, |cell| u32::from_le_bytes(*cell));
                rows.referred(py, property, number)?
            } else if core.has_words() {
                properties.load::<true>(py, property, cell, 0)?
            } else {
                match before.body(rows.index, *row, property) {
                    Some(body) => properties.load::<true>(py, property, body, core.field().offset())?,
                    None => py.None().into_bound(py),
                }
            };
            values.set_item(properties.attribute_name(py, property), value)?;
        }
        Ok(values)
    }
}
