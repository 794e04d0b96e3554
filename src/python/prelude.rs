//! PyO3's prelude, with attributes that take each docstring from `python/tickwire/_core.pyi`.

pub(super) use pyo3::prelude::*;
pub(super) use tickwire_macros::{pyclass, pyfunction, pymethods};

/// Compiles the bindings again after an edit of the stub.
const _: &str = include_str!("../../python/tickwire/_core.pyi");
