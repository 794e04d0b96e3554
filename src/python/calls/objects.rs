//! The Python classes of calls and replies, looked up when first needed.

use super::*;

use crate::python::events::members;

/// `tickwire._requests.Request`.
pub(super) fn request_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._requests", "Request")
}

/// Why a request has no value, under the names of `tickwire._requests.Outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Failed,
    Refused,
    Gone,
}

members!(Outcome => "tickwire._requests" "Outcome");
