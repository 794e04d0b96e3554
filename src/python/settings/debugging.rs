//! What finds mistakes in a game and in its network.

use crate::python::prelude::*;

use crate::python::capture::{self, Capture, CaptureLike};
use crate::python::conditions::{Conditions, one_conditions};
use crate::python::hooks::HookClock;

#[pyclass(frozen, get_all, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Debugging {
    pub(in crate::python) strict: bool,
    pub(in crate::python) conditions: Option<Py<Conditions>>,
    pub(in crate::python) seed: Option<u64>,
    capture: Option<Py<PyAny>>,
    pub(super) slow_hook: f64,
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
        HookClock::new(slow_hook)?;
        Ok(Debugging { strict, conditions, seed, capture: capture.map(|it| it.clone().unbind()), slow_hook })
    }

    replaces!();

    traverses!(self.conditions, self.capture);
}

impl Debugging {
    /// The capture, opened if a path was given, or the process's by the environment.
    pub(in crate::python) fn capture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Capture>>> {
        let given = self.capture.as_ref().map(|given| given.bind(py).extract()).transpose()?;
        capture::chosen(py, given)
    }
}
