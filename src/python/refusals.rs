//! Handles exceptions of the game's code that reads a peer's messages.
//!
//! Promises: an `Exception` ends the connection of the peer that sent the bytes, never the tick: the peer chooses the
//! bytes, and so what `serialize` raises on them. An exception other than `StreamError` may be the game's mistake too:
//! it is counted, and its traceback logged, at most once a second. Exceptions that end programs, such as
//! `KeyboardInterrupt`, are raised.

use crate::python::prelude::*;

use super::log::log_traceback;

impl Endpoint {
    /// The reason for refusing a peer's message that class `name` was reading when this was raised.
    ///
    /// # Errors
    /// The exception, if it ends the program.
    pub(super) fn judge(&self, py: Python<'_>, name: &str, error: PyErr) -> PyResult<String> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let class = class_name(error.value(py).as_any());
        let is_refusal = error.is_instance_of::<StreamError>(py);
        let said = error.value(py).str().map_or_else(|_| String::new(), |said| said.to_string());
        if self.state.lock()?.refusals.count(is_refusal, std::time::Instant::now()) {
            log_traceback(py, &error, || {
                format!(
                    "{} ends the connection of a peer: reading a message of it, a {name}, raised {class}: {said:?}",
                    self.described()
                )
            });
        }
        if is_refusal {
            return Ok(said);
        }
        Ok(format!("{name}: {class}: {said}"))
    }
}
