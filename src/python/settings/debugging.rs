//! What finds mistakes in a game and in its network.

use crate::python::prelude::*;

use crate::driver::reports::HookClock;
use crate::python::capture::{self, Capture, CaptureLike};

#[record(checked, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Debugging {
    #[truth]
    pub(in crate::python) strict: bool,
    #[one_way]
    pub(in crate::python) conditions: Option<Conditions>,
    #[within(0, u64::MAX)]
    pub(in crate::python) seed: Option<u64>,
    capture: Option<Py<PyAny>>,
    #[number]
    slow_hook: f64,
}

impl Debugging {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(capture) = &self.capture {
            argument::<CaptureLike<'_>>("capture", capture.bind(py), "a Capture, a path or None")?;
        }
        self.hook_clock().map(drop)
    }

    pub(super) fn hook_clock(&self) -> PyResult<HookClock> {
        let slow = self.slow_hook;
        let refused = || value_error(format!("slow_hook must be 0 or more seconds, not {slow}"));
        HookClock::new(slow).ok_or_else(refused)
    }

    /// The capture, opened if a path was given, or the process's by the environment.
    pub(in crate::python) fn capture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Capture>>> {
        let given = self.capture.as_ref().map(|given| given.bind(py).extract()).transpose()?;
        capture::chosen(py, given)
    }
}
