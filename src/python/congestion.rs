//! How fast chunks may be sent beside messages.

use crate::python::prelude::*;

use super::arguments::{int, number};
use super::errors::value_error;
use super::fields::within;
use super::parts::good_bad_config;
use crate::transport::{AdaptiveConfig, CongestionConfig, RateConfig};

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Congestion(pub(super) CongestionConfig);

#[pymethods]
impl Congestion {
    #[staticmethod]
    fn adaptive(
        #[pyo3(from_py_with = number::min_bytes_per_second)] min_bytes_per_second: f64,
        #[pyo3(from_py_with = number::max_bytes_per_second)] max_bytes_per_second: f64,
        #[pyo3(from_py_with = int::initial_bytes)] initial_bytes: i128,
        #[pyo3(from_py_with = int::max_burst_bytes)] max_burst_bytes: i128,
    ) -> PyResult<Self> {
        Self::checked(CongestionConfig::Adaptive(AdaptiveConfig {
            min_bytes_per_second,
            max_bytes_per_second,
            initial_bytes: within("initial_bytes", initial_bytes, 1, u32::MAX)?,
            max_burst_bytes: within("max_burst_bytes", max_burst_bytes, 1, u32::MAX)?,
        }))
    }

    #[staticmethod]
    fn fixed(
        #[pyo3(from_py_with = number::bytes_per_second)] bytes_per_second: f64,
        #[pyo3(from_py_with = number::burst_bytes)] burst_bytes: f64,
    ) -> PyResult<Self> {
        Self::checked(CongestionConfig::Fixed(RateConfig { bytes_per_second, burst_bytes }))
    }

    #[staticmethod]
    fn good_bad(
        #[pyo3(from_py_with = number::bad_rtt)] bad_rtt: f64,
        #[pyo3(from_py_with = number::good_packets_per_second)] good_packets_per_second: f64,
        #[pyo3(from_py_with = number::bad_packets_per_second)] bad_packets_per_second: f64,
        #[pyo3(from_py_with = number::recovery_time)] recovery_time: f64,
        #[pyo3(from_py_with = number::min_recovery_time)] min_recovery_time: f64,
        #[pyo3(from_py_with = number::max_recovery_time)] max_recovery_time: f64,
        #[pyo3(from_py_with = number::double_below)] double_below: f64,
        #[pyo3(from_py_with = number::halve_every)] halve_every: f64,
    ) -> PyResult<Self> {
        Self::checked(CongestionConfig::GoodBad(good_bad_config(
            bad_rtt,
            good_packets_per_second,
            bad_packets_per_second,
            recovery_time,
            min_recovery_time,
            max_recovery_time,
            double_below,
            halve_every,
        )?))
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            CongestionConfig::Adaptive(AdaptiveConfig {
                min_bytes_per_second, max_bytes_per_second, ..
            }) => {
                format!("<Congestion adaptive, {min_bytes_per_second} to {max_bytes_per_second} bytes/s>")
            }
            CongestionConfig::Fixed(budget) => {
                format!("<Congestion fixed, {} bytes/s>", budget.bytes_per_second)
            }
            CongestionConfig::GoodBad(modes) => {
                let (good, bad) = (modes.good_packets_per_second, modes.bad_packets_per_second);
                format!("<Congestion good_bad, {good} or {bad} packets/s>")
            }
        }
    }
}

impl Congestion {
    fn checked(config: CongestionConfig) -> PyResult<Self> {
        config.check().map_err(value_error)?;
        Ok(Congestion(config))
    }

    /// The given controller, or the default.
    pub(super) fn or_default(given: Option<&Bound<'_, Self>>) -> CongestionConfig {
        given.map(|given| given.get().0).unwrap_or_default()
    }
}
