//! The events of a client's ghosts, for the tick's inbox.

use super::*;
use crate::python::events::shown;

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
        old: PyResult<Bound<'py, PyDict>> =
            self.before.values(py, &self.rows, self.row, self.mask);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["ghost", "names"], 0)
    }
}
