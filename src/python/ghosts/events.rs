//! The events of a client's ghosts, for the tick's inbox.

use crate::python::prelude::*;

use super::ghost::Ghost;
use super::old::Before;
use super::rows::GhostRows;

#[pyclass(frozen, module = "tickwire")]
pub(crate) struct GhostSpawned {
    #[pyo3(get)]
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

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct GhostOwned {
    #[pyo3(get)]
    pub(super) ghost: Py<Ghost>,
    #[pyo3(get)]
    pub(super) owned: bool,
}

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct GhostLinked {
    #[pyo3(get)]
    pub(super) ghost: Py<Ghost>,
    #[pyo3(get)]
    pub(super) name: Py<PyString>,
    #[pyo3(get)]
    pub(super) target: Option<Py<Ghost>>,
}

#[pyclass(frozen, module = "tickwire")]
pub(crate) struct GhostDespawned {
    #[pyo3(get)]
    pub(super) ghost: Py<Ghost>,
}

fn shown(py: Python<'_>, ghost: &Py<Ghost>) -> String {
    ghost.bind(py).repr().map_or_else(|_| "it".into(), |text| text.to_string())
}

#[pymethods]
impl GhostSpawned {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("ghost",)
    }

    properties! {
        __repr__: String = format!("GhostSpawned(ghost={})", shown(py, &self.ghost));
    }
}

#[pymethods]
impl GhostChanged {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("ghost", "names")
    }

    properties! {
        pub(super) old: PyResult<Bound<'py, PyDict>> =
            self.before.values(py, &self.rows, self.row, self.mask);
        __repr__: String =
            format!("GhostChanged(ghost={}, names={})", shown(py, &self.ghost), self.names.bind(py));
    }
}

#[pymethods]
impl GhostOwned {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("ghost", "owned")
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let owned = if self.owned { "True" } else { "False" };
        format!("GhostOwned(ghost={}, owned={owned})", shown(py, &self.ghost))
    }
}

#[pymethods]
impl GhostLinked {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("ghost", "name", "target")
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (ghost, name) = (shown(py, &self.ghost), self.name.bind(py));
        let target = self.target.as_ref().map_or_else(|| "None".into(), |target| shown(py, target));
        format!("GhostLinked(ghost={ghost}, name='{name}', target={target})")
    }
}

#[pymethods]
impl GhostDespawned {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("ghost",)
    }

    properties! {
        __repr__: String = format!("GhostDespawned(ghost={})", shown(py, &self.ghost));
    }
}
