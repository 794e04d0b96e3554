//! What most bindings use: PyO3's prelude and types, with attributes that take docstrings and signatures from
//! `python/tickwire/_core.pyi`, and what the bindings of endpoints share.

pub(super) use core::ffi::c_int;
pub(super) use core::fmt::Display;
pub(super) use core::net::SocketAddr;
pub(super) use pyo3::exceptions::{
    PyAttributeError, PyException, PyIndexError, PyKeyError, PyOverflowError, PyRuntimeError, PyTypeError,
    PyUserWarning, PyValueError,
};
pub(super) use pyo3::gc::{PyTraverseError, PyVisit};
pub(super) use pyo3::prelude::*;
pub(super) use pyo3::sync::PyOnceLock;
pub(super) use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyIterator, PyList, PyMapping, PyMemoryView, PyString, PyTuple,
    PyType,
};
pub(super) use pyo3::{IntoPyObjectExt, ffi, intern};
pub(super) use std::collections::{HashMap, HashSet, VecDeque};
pub(super) use std::ffi::{CStr, CString};
pub(super) use std::path::PathBuf;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
pub(super) use tickwire_macros::{pyclass, pyfunction, pymethods, record};

pub(super) use super::address::Address;
pub(super) use super::buffers::Raw;
pub(super) use super::checks::{argument, bounded, class_name, name_of, repr_of};
pub(super) use super::client::Client;
pub(super) use super::columns::columns_class;
pub(super) use super::conditions::Conditions;
pub(super) use super::endpoint::Endpoint;
pub(super) use super::errors::*;
pub(super) use super::events::{ClientHandle, Connected, Disconnected};
pub(super) use super::exit;
pub(super) use super::facade::Facade;
pub(super) use super::garbage::{ObjectCell, Traverse, holds};
pub(super) use super::ghosts::Ghost;
pub(super) use super::goodbye::goodbye;
pub(super) use super::inbox::{Inbox, Pending};
pub(super) use super::kind::Sending;
pub(super) use super::log::{Level, log};
pub(super) use super::network::SimulatedNetwork;
pub(super) use super::parts::counts;
pub(super) use super::peer::Peer;
pub(super) use super::protocol::Protocol;
pub(super) use super::randomness::random;
pub(super) use super::row_type::numpy;
pub(super) use super::schema::Schema;
pub(super) use super::server::Server;
pub(super) use super::settings::{Given, Settings};
pub(super) use super::shared::{Shared, lock};
pub(super) use super::state::State;
pub(super) use super::stats::ConnectionStats;
pub(super) use super::token::extract_key;
pub(super) use super::value::Refusal;
pub(super) use crate::driver::{Driver, VirtualNetwork, entropy};
pub(super) use crate::endpoint::{DisconnectReason, Event, Host, PeerHandle, SendError};
pub(super) use crate::exact::short;
pub(super) use crate::store::Datagrams;
pub(super) use crate::time::{Duration, Instant};
pub(super) use crate::transport::{ChannelKind, Message, SendOptions};
pub(super) use crate::wire::{BitReader, BitSink, BitWriter, ValueError};

/// A Python object of any class.
pub(super) type Object<'py> = Bound<'py, PyAny>;

/// Compiles the bindings again after an edit of the stub.
const _: &str = include_str!("../../python/tickwire/_core.pyi");
