//! How an endpoint runs: its socket, its thread, its hooks.

use crate::python::prelude::*;

use crate::limits::{DEFAULT_MTU, MIN_MTU};
use crate::python::arguments::driver_name;
use crate::python::hooks;
use crate::transport::ConnectionConfig;
use crate::transport::ack_endpoint::AckEndpointConfig;

/// Bounds of the seconds that a reliable channel may stay full: no game waits longer for one player.
const STALLED_TIMEOUT: core::ops::RangeInclusive<f64> = 0.1..=3600.0;

#[pyclass(frozen, get_all, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Tuning {
    driver: String,
    pub(in crate::python) bind: Option<Address>,
    pub(in crate::python) timeout: Option<u32>,
    mtu: usize,
    stalled_timeout: Option<f64>,
    pub(in crate::python) packet_notifications: bool,
    pub(in crate::python) priority: Option<Py<PyAny>>,
    pub(in crate::python) factory: Option<Py<PyAny>>,
    columns: Vec<Py<PyAny>>,
}

#[pymethods]
impl Tuning {
    #[new]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = driver_name)] driver: String,
        bind: Option<AddressLike>,
        #[within(1, i32::MAX.unsigned_abs())] timeout: Option<u32>,
        #[within(MIN_MTU, DEFAULT_MTU)] mtu: usize,
        #[number] stalled_timeout: Option<f64>,
        #[truth] packet_notifications: bool,
        priority: Option<Py<PyAny>>,
        factory: Option<Py<PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if !matches!(&*driver, "polled" | "thread") {
            return Err(value_error(format!("driver must be 'polled' or 'thread', not '{driver}'")));
        }
        if let Some(seconds) = stalled_timeout.filter(|seconds| !STALLED_TIMEOUT.contains(seconds)) {
            let (low, high) = (STALLED_TIMEOUT.start(), STALLED_TIMEOUT.end());
            return Err(PyValueError::new_err(format!(
                "stalled_timeout must be {low} to {high} seconds, or None, not {seconds}"
            )));
        }
        hooks::check(py, "priority", priority.as_ref())?;
        if let Some(factory) = &factory
            && !factory.bind(py).hasattr(intern!(py, "create"))?
        {
            let class = factory.bind(py).get_type().name()?;
            let sentence =
                format!("factory must be a MessageFactory, with a method create, or None, not {class}");
            return Err(PyTypeError::new_err(sentence));
        }
        let columns = columns.map(|given| argument("columns", given, "a list of message classes or None"));
        Ok(Tuning {
            driver,
            bind: bind.map(|bind| Address(bind.0)),
            timeout,
            mtu,
            stalled_timeout,
            packet_notifications,
            priority,
            factory,
            columns: columns.transpose()?.unwrap_or_default(),
        })
    }

    replaces!();

    traverses!(self.priority, self.factory, self.columns);
}

impl Tuning {
    pub(in crate::python) fn is_threaded(&self) -> bool {
        self.driver == "thread"
    }

    pub(in crate::python) fn columns<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.columns.iter().map(|class| class.bind(py).clone()).collect()
    }

    pub(in crate::python) fn stalled_timeout(&self) -> Option<Duration> {
        self.stalled_timeout.map(Duration::from_secs_f64)
    }

    /// The packet sizes that fit the largest IP packets.
    pub(super) fn packets(&self) -> PyResult<AckEndpointConfig> {
        ConnectionConfig::default().packets.with_mtu(self.mtu).map_err(value_error)
    }
}
