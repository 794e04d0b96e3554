//! What most bindings use: PyO3's prelude and types, with attributes that take docstrings and signatures from
//! `python/tickwire/_core.pyi`, and errors, locks, peers and times.

pub(super) use std::sync::{Arc, Mutex, Weak};

pub(super) use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
pub(super) use pyo3::gc::{PyTraverseError, PyVisit};
pub(super) use pyo3::intern;
pub(super) use pyo3::prelude::*;
pub(super) use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};
pub(super) use tickwire_macros::{pyclass, pyfunction, pymethods};

pub(super) use super::errors::{refuse, value_error};
pub(super) use super::garbage::{Traverse, holds};
pub(super) use super::lock;
pub(super) use crate::endpoint::PeerHandle;
pub(super) use crate::time::{Duration, Instant};

/// Compiles the bindings again after an edit of the stub.
const _: &str = include_str!("../../python/tickwire/_core.pyi");
