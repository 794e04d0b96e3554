//! How an endpoint runs: its socket, its thread, its hooks.

use crate::python::prelude::*;

use crate::limits::{DEFAULT_MTU, MIN_MTU};
use crate::transport::ConnectionConfig;
use crate::transport::ack_endpoint::AckEndpointConfig;

#[record(checked, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Tuning {
    #[either("polled", "thread")]
    driver: String,
    pub(in crate::python) bind: Option<Address>,
    #[within(1, i32::MAX.unsigned_abs())]
    pub(in crate::python) timeout: Option<u32>,
    #[within(MIN_MTU, DEFAULT_MTU)]
    mtu: usize,
    // No game waits longer for one player.
    #[span(0.1, 3600.0)]
    stalled_timeout: Option<f64>,
    #[callable(1)]
    pub(in crate::python) priority: Option<Py<PyAny>>,
    pub(in crate::python) factory: Option<Py<PyAny>>,
    #[classes]
    columns: Vec<Py<PyAny>>,
}

impl Tuning {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let Some(factory) = self.factory.as_ref().map(|factory| factory.bind(py)) else { return Ok(()) };
        if factory.hasattr(intern!(py, "create"))? {
            return Ok(());
        }
        let class = class_name(factory);
        refuse!(PyTypeError, "factory must be a MessageFactory, with a method create, or None, not {class}")
    }

    pub(in crate::python) fn is_threaded(&self) -> bool {
        self.driver == "thread"
    }

    pub(in crate::python) fn columns<'py>(&self, py: Python<'py>) -> Vec<Object<'py>> {
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
