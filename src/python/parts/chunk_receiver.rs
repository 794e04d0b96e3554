//! The receiving half of chunks.

use std::sync::Mutex;

use crate::python::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::chunk_sender::{ChunkProgress, MAX_SECONDS};
use super::{counts, instant};
use crate::articles::slices::{self, ChunkReceiverConfig, MAX_SLICES, packet};
use crate::python::errors::value_error;
use crate::python::fields::bounded;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::store::Datagrams;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkReceiver {
    core: Mutex<slices::ChunkReceiver>,
}

#[pymethods]
impl ChunkReceiver {
    #[new]
    fn new(
        max_slices: Option<&Bound<'_, PyAny>>,
        ack_interval: f64,
        overhead: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut config = ChunkReceiverConfig {
            ack_interval: seconds("ack_interval", ack_interval, MAX_SECONDS)?,
            ..ChunkReceiverConfig::default()
        };
        if let Some(slices) = max_slices {
            config.max_slices = bounded("max_slices", slices, 1, MAX_SLICES)?;
        }
        if let Some(bytes) = overhead {
            config.overhead = bounded("overhead", bytes, 0, 65_535)?;
        }
        let core = slices::ChunkReceiver::new(config).map_err(value_error)?;
        Ok(ChunkReceiver { core: Mutex::new(core) })
    }

    fn receive(&self, now: f64, datagram: &Bound<'_, PyBytes>) -> PyResult<()> {
        let now = instant(now)?;
        // A drop is counted.
        let _ = lock(&self.core).handle_slice(now, datagram.as_bytes());
        Ok(())
    }

    fn update<'py>(&self, py: Python<'py>, now: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let now = instant(now)?;
        let mut out = Datagrams::<()>::new();
        lock(&self.core).tick(now, &mut out);
        Ok(out.iter().next().map(|(_, packet)| PyBytes::new(py, packet)))
    }

    fn read<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let chunk = lock(&self.core).read();
        chunk.map(|chunk| PyBytes::new(py, &chunk))
    }

    #[staticmethod]
    fn is_slice(datagram: &Bound<'_, PyBytes>) -> bool {
        packet::is_slice(datagram.as_bytes())
    }

    properties! {
        ready: bool = lock(&self.core).is_ready();
        progress: Option<ChunkProgress> = lock(&self.core).progress().map(ChunkProgress::from);
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = lock(&self.core).counters();
        counts(py, counters.iter())
    }

    fn __repr__(&self) -> String {
        match lock(&self.core).progress() {
            Some(progress) => {
                format!("<ChunkReceiver: {} of {} slices>", progress.slices, progress.total_slices)
            }
            None => "<ChunkReceiver: nothing yet>".into(),
        }
    }
}
