//! When the inputs of a rollback game apply.

use pyo3::prelude::*;

use crate::python::arguments::int;
use crate::python::fields::within;
use crate::rollback::{MAX_DELAY, MAX_WINDOW};

/// The delay, window and rate of a rollback game.
///
/// Args:
///     delay (int, default 2): frames by which this player's own input is delayed, 0 to 32; others guess that
///         many fewer.
///     window (int, default 8): frames that may be guessed, 1 to 32. When it is full, the game waits.
///     rate (int, default 60): frames a second, 1 to 1000; the same for all players.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, eq, get_all, module = "tickwire.rollback")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Frames by which this player's own input is delayed.
    pub(super) delay: u32,
    /// Frames that may be guessed.
    pub(super) window: u32,
    /// Frames a second.
    pub(super) rate: u32,
}

#[pymethods]
impl Timing {
    #[new]
    #[pyo3(signature = (*, delay = 2, window = 8, rate = 60))]
    fn new(
        #[pyo3(from_py_with = int::delay)] delay: i128,
        #[pyo3(from_py_with = int::window)] window: i128,
        #[pyo3(from_py_with = int::rate)] rate: i128,
    ) -> PyResult<Self> {
        Ok(Timing {
            delay: within("delay", delay, 0, MAX_DELAY)?,
            window: within("window", window, 1, MAX_WINDOW)?,
            rate: within("rate", rate, 1, 1_000)?,
        })
    }

    fn __repr__(&self) -> String {
        format!("Timing(delay={}, window={}, rate={})", self.delay, self.window, self.rate)
    }
}

impl Timing {
    /// The timing that was given, or the default one.
    pub(super) fn or_default(given: Option<&Bound<'_, Self>>) -> Self {
        given.map_or(Timing { delay: 2, window: 8, rate: 60 }, |given| *given.get())
    }
}
