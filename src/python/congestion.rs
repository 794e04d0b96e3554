//! How fast chunks may be sent beside messages.

use crate::python::prelude::*;

use crate::transport::CongestionConfig;

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Congestion(pub(super) CongestionConfig);

#[pymethods]
impl Congestion {
    #[new]
    fn new(
        #[number] min_bytes_per_second: f64,
        #[number] max_bytes_per_second: f64,
        #[within(1, u32::MAX)] initial_bytes: u32,
        #[within(1, u32::MAX)] max_burst_bytes: u32,
    ) -> PyResult<Self> {
        let config =
            CongestionConfig { min_bytes_per_second, max_bytes_per_second, initial_bytes, max_burst_bytes };
        config.check().map_err(value_error)?;
        Ok(Congestion(config))
    }

    fn __repr__(&self) -> String {
        let CongestionConfig { min_bytes_per_second, max_bytes_per_second, .. } = &self.0;
        format!("<Congestion: {min_bytes_per_second} to {max_bytes_per_second} bytes/s>")
    }
}
