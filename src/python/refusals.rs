//! Handles exceptions of the game's code that reads a peer's messages.
//!
//! Promises: an `Exception` ends the connection of the peer that sent the bytes, never the tick: the peer chooses the
//! bytes, and so what `serialize` raises on them. An exception other than `StreamError` may be the game's mistake too:
//! it is counted, and its traceback logged, at most once a second. Exceptions that end programs, such as
//! `KeyboardInterrupt`, are raised.

use crate::python::prelude::*;
use pyo3::exceptions::PyException;

use super::errors::StreamError;
use super::log::{LogPace, log_traceback};

/// Messages that the game's code refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefusalCounters {
    refused: u64,
    raised: u64,
}

impl RefusalCounters {
    /// Each count under its name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("refused", self.refused), ("raised", self.raised)].into_iter()
    }
}

/// Counts refused messages, and limits logging by the computer's clock: a simulated network's doesn't advance.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    pub(super) counters: RefusalCounters,
    pace: LogPace,
}

impl Refusals {
    /// Whether this exception should be logged.
    fn count(&mut self, is_refusal: bool) -> bool {
        if is_refusal {
            self.counters.refused += 1;
            return false;
        }
        self.counters.raised += 1;
        self.pace.is_due(std::time::Instant::now())
    }
}

impl Endpoint {
    /// The reason for refusing a peer's message that class `name` was reading when this was raised.
    ///
    /// # Errors
    /// The exception, if it ends the program.
    pub(super) fn judge(&self, py: Python<'_>, name: &str, error: PyErr) -> PyResult<String> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let class = error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
        let is_refusal = error.is_instance_of::<StreamError>(py);
        let said = error.value(py).str().map_or_else(|_| String::new(), |said| said.to_string());
        if self.state.lock()?.refusals.count(is_refusal) {
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
