//! An endpoint's lines to the logger "tickwire" of Python's `logging`.
//!
//! Promises: no line is logged while a lock is held. What is worth a line is decided in [`crate::driver::reports`].

use crate::python::prelude::*;
use pyo3::exceptions::PyKeyboardInterrupt;

use crate::driver::reports::Dropped;
use crate::transport::Violation;

/// `logging`'s levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
    Error = 40,
}

/// Logs a line. An error in the logger doesn't lose what was received; an interrupt comes again.
pub(super) fn log(py: Python<'_>, level: Level, line: impl FnOnce() -> String) {
    log_with(py, level, line, None);
}

/// Logs an error with its traceback.
pub(super) fn log_traceback(py: Python<'_>, error: &PyErr, line: impl FnOnce() -> String) {
    log_with(py, Level::Error, line, Some(error));
}

fn log_with(py: Python<'_>, level: Level, line: impl FnOnce() -> String, error: Option<&PyErr>) {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let told = || -> PyResult<()> {
        let logger = LOGGER.get_or_try_init(py, || -> PyResult<_> {
            Ok(py.import("logging")?.call_method1("getLogger", ("tickwire",))?.unbind())
        })?;
        let (logger, level) = (logger.bind(py), level as u8);
        if logger.call_method1(intern!(py, "isEnabledFor"), (level,))?.is_truthy()? {
            let options = PyDict::new(py);
            if let Some(error) = error {
                // The exception doesn't hold its traceback until Python raises it.
                let exc_info = (error.get_type(py), error.value(py), error.traceback(py));
                options.set_item(intern!(py, "exc_info"), exc_info)?;
            }
            logger.call_method(intern!(py, "log"), (level, line()), Some(&options))?;
        }
        Ok(())
    };
    let Err(error) = told() else { return };
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main")).is_ok()
    {
        return;
    }
    error.write_unraisable(py, None);
}

/// Logs that a connection ended, why, how its peer broke the protocol if it did, and the reason's text.
pub(super) fn log_end(
    py: Python<'_>,
    reason: DisconnectReason,
    violation: Option<&Violation>,
    detail: Option<&str>,
    who: impl FnOnce() -> String,
) {
    // The game expects the other reasons; this one is the library's decision, by a setting.
    let level = if reason == DisconnectReason::Stalled { Level::Warning } else { Level::Info };
    log(py, level, || {
        let reason = reason.into_pyobject(py).and_then(|reason| reason.str()?.extract::<String>());
        let reason = reason.unwrap_or_default();
        let how = violation.map(|violation| format!(" ({violation})")).unwrap_or_default();
        // Escaped, as it may come from the peer.
        let detail = detail.map(|detail| format!(", {detail:?}")).unwrap_or_default();
        format!("{} disconnected: {reason}{how}{detail}", who())
    });
}

/// Logs what was dropped.
pub(super) fn log_drops(py: Python<'_>, dropped: &Dropped, endpoint: &str) {
    for (is_warning, line) in dropped.lines(endpoint) {
        log(py, if is_warning { Level::Warning } else { Level::Debug }, || line);
    }
}
