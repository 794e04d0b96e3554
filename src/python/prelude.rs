//! PyO3's prelude, with attributes that take docstrings and signatures from `python/tickwire/_core.pyi`, and times.

pub(super) use super::errors::refuse;
pub(super) use crate::time::{Duration, Instant};
pub(super) use pyo3::prelude::*;
pub(super) use tickwire_macros::{pyclass, pyfunction, pymethods};

/// Compiles the bindings again after an edit of the stub.
const _: &str = include_str!("../../python/tickwire/_core.pyi");
