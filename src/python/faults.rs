//! Breaks things on purpose, to test the recovery. Only in development builds, by the Cargo feature `faults`.

use crate::python::prelude::*;

use super::tick::AnyEndpoint;

/// Makes the thread of a server or client panic at its next turn.
#[pyfunction]
pub(super) fn _break_thread(endpoint: AnyEndpoint) -> PyResult<()> {
    endpoint.get().endpoint().break_thread()
}
