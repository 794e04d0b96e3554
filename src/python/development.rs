//! The development mode: no login backend, no key to hand out, and the same code path as with them. Not for
//! production: anyone with the key can be any player, and this key is public.

use std::ffi::CString;

use crate::python::prelude::*;
use pyo3::exceptions::PyUserWarning;

/// A UserWarning at the caller's line.
pub(super) fn warn(py: Python<'_>, sentence: String) -> PyResult<()> {
    let sentence = CString::new(sentence).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &sentence, 1)
}
