//! The Python classes of calls and replies, looked up when first needed.

use super::*;

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

impl Outcome {
    pub(super) fn to_python(self, py: Python<'_>) -> PyResult<Object<'_>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        CLASS.import(py, "tickwire._requests", "Outcome")?.getattr(match self {
            Outcome::Failed => "FAILED",
            Outcome::Refused => "REFUSED",
            Outcome::Gone => "GONE",
        })
    }
}
