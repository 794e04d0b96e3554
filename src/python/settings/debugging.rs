//! What finds mistakes in a game and in its network.

use crate::python::prelude::*;

use crate::driver::reports::HookClock;
use crate::python::capture::{self, Capture, CaptureLike};
use crate::python::conditions::{Conditions, one_conditions};

#[pyclass(frozen, get_all, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Debugging {
    pub(in crate::python) strict: bool,
    pub(in crate::python) conditions: Option<Py<Conditions>>,
    pub(in crate::python) seed: Option<u64>,
    capture: Option<Py<PyAny>>,
    slow_hook: f64,
}

#[pymethods]
impl Debugging {
    #[new]
    fn new(
        #[truth] strict: bool,
        conditions: Option<&Bound<'_, PyAny>>,
        #[within(0, u64::MAX)] seed: Option<u64>,
        capture: Option<&Bound<'_, PyAny>>,
        #[number] slow_hook: f64,
    ) -> PyResult<Self> {
        let conditions = conditions.map(one_conditions).transpose()?.map(Bound::unbind);
        if let Some(capture) = capture {
            argument::<CaptureLike<'_>>("capture", capture, "a Capture, a path or None")?;
        }
        let capture = capture.map(|it| it.clone().unbind());
        let settings = Debugging { strict, conditions, seed, capture, slow_hook };
        settings.hook_clock()?;
        Ok(settings)
    }

    replaces!();

    traverses!(self.conditions, self.capture);
}

impl Debugging {
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
