//! What finds mistakes in a game and in its network.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::replaced;
use crate::python::arguments::{argument, number, optional_int, truth};
use crate::python::capture::{self, Capture, CaptureLike};
use crate::python::conditions::{Conditions, one_conditions};
use crate::python::fields::within;
use crate::python::hooks::HookClock;

const FIELDS: [&str; 5] = ["strict", "conditions", "seed", "capture", "slow_hook"];

/// What finds mistakes in a game and in its network: errors, bad networks, captures.
///
/// Args:
///     strict (bool, default False): calls that name one client raise :class:`StaleClientError` if it has left,
///         those of a client :class:`NotConnectedError` without a connection, and both
///         :class:`ChannelFullError` if the other side doesn't ack, instead of returning a result that says so.
///     conditions (Conditions | None, default None): a bad network for everything sent. Give it to both sides.
///         All peers share its rate and its losses, as on one link.
///     seed (int | None, default None): makes these conditions repeatable; None: random.
///     capture (Capture | str | PathLike[str] | None, default None): a :class:`Capture` for all datagrams, or the
///         path of a new one, for one endpoint. If writing fails, it is logged and the game continues.
///     slow_hook (float, default 0.005): seconds. The tick waits for its hooks. One that takes longer is logged,
///         at most once a second; ``counters`` has the times of all hooks.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Debugging {
    /// Whether calls raise instead of returning a result.
    pub(in crate::python) strict: bool,
    /// The bad network for everything sent.
    pub(in crate::python) conditions: Option<Py<Conditions>>,
    /// The seed of the conditions, if one was given.
    pub(in crate::python) seed: Option<u64>,
    /// The capture, or the path of one.
    capture: Option<Py<PyAny>>,
    /// Seconds after which a hook is logged.
    pub(super) slow_hook: f64,
}

#[pymethods]
impl Debugging {
    #[new]
    #[pyo3(signature = (*, strict = false, conditions = None, seed = None, capture = None, slow_hook = 0.005))]
    fn new(
        #[pyo3(from_py_with = truth::strict)] strict: bool,
        conditions: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_int::seed)] seed: Option<i128>,
        capture: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number::slow_hook)] slow_hook: f64,
    ) -> PyResult<Self> {
        let conditions = conditions.map(one_conditions).transpose()?.map(Bound::unbind);
        let seed = seed.map(|seed| within("seed", seed, 0, u64::MAX)).transpose()?;
        if let Some(capture) = capture {
            argument::<CaptureLike<'_>>("capture", capture, "a Capture, a path or None")?;
        }
        HookClock::new(slow_hook)?;
        Ok(Debugging { strict, conditions, seed, capture: capture.map(|it| it.clone().unbind()), slow_hook })
    }

    /// A copy with other values for the named arguments.
    #[pyo3(signature = (**changes))]
    fn replace<'py>(
        slf: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        replaced(slf, &FIELDS, changes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.conditions)?;
        visit.call(&self.capture)
    }
}

impl Debugging {
    /// The capture, opened if a path was given, or the process's by the environment.
    pub(in crate::python) fn capture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Capture>>> {
        let given = self.capture.as_ref().map(|given| given.bind(py).extract()).transpose()?;
        capture::chosen(py, given)
    }
}
