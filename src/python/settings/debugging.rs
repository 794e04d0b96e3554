//! What finds mistakes in a game and in its network.

use crate::python::prelude::*;

use super::replaced;
use crate::python::arguments::argument;
use crate::python::capture::{self, Capture, CaptureLike};
use crate::python::conditions::{Conditions, one_conditions};
use crate::python::fields::within;
use crate::python::hooks::HookClock;

const FIELDS: [&str; 5] = ["strict", "conditions", "seed", "capture", "slow_hook"];

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
        #[int] seed: Option<i128>,
        capture: Option<&Bound<'_, PyAny>>,
        #[number] slow_hook: f64,
    ) -> PyResult<Self> {
        let conditions = conditions.map(one_conditions).transpose()?.map(Bound::unbind);
        let seed = seed.map(|seed| within("seed", seed, 0, u64::MAX)).transpose()?;
        if let Some(capture) = capture {
            argument::<CaptureLike<'_>>("capture", capture, "a Capture, a path or None")?;
        }
        HookClock::new(slow_hook)?;
        Ok(Debugging { strict, conditions, seed, capture: capture.map(|it| it.clone().unbind()), slow_hook })
    }

    fn replace<'py>(
        slf: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        replaced(slf, &FIELDS, changes)
    }

    traverses!(self.conditions, self.capture);
}

impl Debugging {
    /// The capture, opened if a path was given, or the process's by the environment.
    pub(in crate::python) fn capture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Capture>>> {
        let given = self.capture.as_ref().map(|given| given.bind(py).extract()).transpose()?;
        capture::chosen(py, given)
    }
}
