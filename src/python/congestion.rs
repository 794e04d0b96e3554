//! How fast chunks may be sent beside messages.

use crate::python::prelude::*;

use super::parts::{MAX_SECONDS, of_good_bad};
use crate::transport::good_bad::GoodBadConfig;
use crate::transport::{AdaptiveConfig, CongestionConfig, RateConfig};

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Congestion(pub(super) CongestionConfig);

#[pymethods]
impl Congestion {
    #[staticmethod]
    fn adaptive(
        #[number] min_bytes_per_second: f64,
        #[number] max_bytes_per_second: f64,
        #[within(1, u32::MAX)] initial_bytes: u32,
        #[within(1, u32::MAX)] max_burst_bytes: u32,
    ) -> PyResult<Self> {
        Self::checked(CongestionConfig::Adaptive(AdaptiveConfig {
            min_bytes_per_second,
            max_bytes_per_second,
            initial_bytes,
            max_burst_bytes,
        }))
    }

    #[staticmethod]
    fn fixed(#[number] bytes_per_second: f64, #[number] burst_bytes: f64) -> PyResult<Self> {
        Self::checked(CongestionConfig::Fixed(RateConfig { bytes_per_second, burst_bytes }))
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

of_good_bad!(
    Congestion,
    #[staticmethod]
    good_bad,
    |config| Self::checked(CongestionConfig::GoodBad(config))
);

impl Congestion {
    fn checked(config: CongestionConfig) -> PyResult<Self> {
        config.check().map_err(value_error)?;
        Ok(Congestion(config))
    }
}
