//! The development mode: no login backend, no key to hand out, and the same code path as with them. Not for
//! production: who holds the key can be anyone, and this one is public.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::netcode::Key;

/// The well-known key of servers and clients made without one.
pub(super) const KEY: Key = *b"tickwire development: no secret!";

/// The server that tokens made by [`super::client::Client::connect`] name inside: any. A server can't know by
/// which address a client dials it, so every server answers to this name too. Only who holds the key can use it.
pub(super) const ANY_SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A UserWarning at the caller's line.
pub(super) fn warn(py: Python<'_>, sentence: String) -> PyResult<()> {
    let sentence = CString::new(sentence).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &sentence, 1)
}
