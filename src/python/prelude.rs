//! What most bindings use: PyO3's prelude and types, with attributes that take docstrings and signatures from
//! `python/tickwire/_core.pyi`, and what the bindings of endpoints share.

pub(super) use core::net::SocketAddr;
pub(super) use std::collections::HashMap;
pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Arc, Mutex, OnceLock, Weak};

pub(super) use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
pub(super) use pyo3::gc::{PyTraverseError, PyVisit};
pub(super) use pyo3::prelude::*;
pub(super) use pyo3::sync::PyOnceLock;
pub(super) use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType,
};
pub(super) use pyo3::{ffi, intern};
pub(super) use tickwire_macros::{pyclass, pyfunction, pymethods, record};

pub(super) use super::address::Address;
pub(super) use super::arguments::{argument, class_name};
pub(super) use super::buffers::Raw;
pub(super) use super::checks::bounded;
pub(super) use super::endpoint::Endpoint;
pub(super) use super::errors::{os_error, refuse, value_error};
pub(super) use super::events::ClientHandle;
pub(super) use super::garbage::{ObjectCell, Traverse, holds};
pub(super) use super::lock;
pub(super) use super::protocol::Protocol;
pub(super) use super::shared::Shared;
pub(super) use super::state::State;
pub(super) use crate::driver::{Driver, VirtualNetwork};
pub(super) use crate::endpoint::{Host, PeerHandle};
pub(super) use crate::time::{Duration, Instant};

/// Compiles the bindings again after an edit of the stub.
const _: &str = include_str!("../../python/tickwire/_core.pyi");
