//! The sending half of chunks.

use std::sync::Mutex;

use crate::python::prelude::*;
use pyo3::exceptions::PyValueError;
use pyo3::types::{PyBytes, PyDict};

use super::{counts, instant};
use crate::articles::slices::{self, ChunkSendError, ChunkSenderConfig, MAX_SLICES, packet};
use crate::python::errors::{ChannelFullError, MessageTooLargeError, value_error};
use crate::python::fields::bounded;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::store::Datagrams;

/// The maximum of all times here: a longer one is a mistake (milliseconds).
pub(super) const MAX_SECONDS: f64 = 60.0;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkSender {
    core: Mutex<slices::ChunkSender>,
}

#[pymethods]
impl ChunkSender {
    #[new]
    fn new(
        max_slices: Option<&Bound<'_, PyAny>>,
        bytes_per_second: f64,
        accumulator_bytes: Option<&Bound<'_, PyAny>>,
        overhead: Option<&Bound<'_, PyAny>>,
        resend_delay: f64,
        max_queued: Option<&Bound<'_, PyAny>>,
        initial_burst_bytes: Option<&Bound<'_, PyAny>>,
        initial_burst_wait: f64,
    ) -> PyResult<Self> {
        let mut config = ChunkSenderConfig {
            bytes_per_second,
            resend_delay: seconds("resend_delay", resend_delay, MAX_SECONDS)?,
            initial_burst_wait: seconds("initial_burst_wait", initial_burst_wait, MAX_SECONDS)?,
            ..ChunkSenderConfig::default()
        };
        for (name, given, least, most, setting) in [
            ("max_slices", max_slices, 1, MAX_SLICES, &mut config.max_slices),
            ("overhead", overhead, 0, 65_535, &mut config.overhead),
            ("max_queued", max_queued, 1, 65_535, &mut config.max_queued),
            ("initial_burst_bytes", initial_burst_bytes, 0, 1 << 23, &mut config.initial_burst_bytes),
        ] {
            if let Some(given) = given {
                *setting = bounded(name, given, least, most)?;
            }
        }
        if let Some(bytes) = accumulator_bytes {
            config.accumulator_bytes = Some(bounded("accumulator_bytes", bytes, 0, usize::MAX)?);
        }
        let core = slices::ChunkSender::new(config).map_err(value_error)?;
        Ok(ChunkSender { core: Mutex::new(core) })
    }

    fn send(&self, chunk: &Bound<'_, PyBytes>, burst: bool) -> PyResult<u64> {
        let chunk = chunk.as_bytes().to_vec();
        let mut core = lock(&self.core);
        let sent = if burst { core.send_burst(chunk) } else { core.send(chunk) };
        sent.map_err(|error| match error {
            ChunkSendError::Empty => PyValueError::new_err(error.to_string()),
            ChunkSendError::Full { .. } => ChannelFullError::new_err(error.to_string()),
            ChunkSendError::TooLarge { .. } | ChunkSendError::TooLargeForBurst { .. } => {
                MessageTooLargeError::new_err(error.to_string())
            }
        })
    }

    fn cancel(&self, number: u64) -> bool {
        lock(&self.core).cancel(number)
    }

    fn update<'py>(&self, py: Python<'py>, now: f64, rtt: Option<f64>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let now = instant(now)?;
        let rtt = rtt.map(|rtt| seconds("rtt", rtt, MAX_SECONDS)).transpose()?;
        let mut out = Datagrams::<()>::new();
        let mut core = lock(&self.core);
        core.set_rtt(rtt);
        core.tick(now, &mut out);
        drop(core);
        Ok(out.iter().map(|(_, packet)| PyBytes::new(py, packet)).collect())
    }

    fn receive(&self, now: f64, datagram: &Bound<'_, PyBytes>) -> PyResult<Option<u64>> {
        let now = instant(now)?;
        // A drop is counted.
        Ok(lock(&self.core).handle_ack(now, datagram.as_bytes()).unwrap_or(None))
    }

    #[staticmethod]
    fn is_ack(datagram: &Bound<'_, PyBytes>) -> bool {
        packet::is_ack(datagram.as_bytes())
    }

    fn set_bytes_per_second(&self, bytes_per_second: f64) -> PyResult<()> {
        lock(&self.core).set_bytes_per_second(bytes_per_second).map_err(value_error)
    }

    properties! {
        bytes_per_second: f64 = lock(&self.core).bytes_per_second();
        in_flight: Option<u64> = lock(&self.core).in_flight();
        progress: Option<ChunkProgress> = lock(&self.core).progress().map(ChunkProgress::from);
        queued: usize = lock(&self.core).queued();
        idle: bool = lock(&self.core).is_idle();
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = lock(&self.core).counters();
        counts(py, counters.iter())
    }

    fn __repr__(&self) -> String {
        let core = lock(&self.core);
        match (core.in_flight(), core.progress()) {
            (Some(number), Some(progress)) => format!(
                "<ChunkSender: chunk {number}, {} of {} slices acked, {} queued>",
                progress.slices,
                progress.total_slices,
                core.queued()
            ),
            _ => format!("<ChunkSender: {} queued>", core.queued()),
        }
    }
}

#[pyclass(frozen, get_all, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkProgress {
    bytes: usize,
    total_bytes: usize,
    slices: usize,
    total_slices: usize,
    bytes_per_second: f64,
    time_left: Option<f64>,
}

#[pymethods]
impl ChunkProgress {
    fn __repr__(&self) -> String {
        let left = self.time_left.map(|left| format!(", {left:.1} s left")).unwrap_or_default();
        format!(
            "<ChunkProgress {} of {} bytes, {} of {} slices, {:.0} bytes/s{left}>",
            self.bytes, self.total_bytes, self.slices, self.total_slices, self.bytes_per_second
        )
    }
}

impl From<slices::ChunkProgress> for ChunkProgress {
    fn from(progress: slices::ChunkProgress) -> Self {
        ChunkProgress {
            bytes: progress.bytes,
            total_bytes: progress.total_bytes,
            slices: progress.slices,
            total_slices: progress.total_slices,
            bytes_per_second: progress.bytes_per_second,
            time_left: progress.time_left.map(|left| left.as_secs_f64()),
        }
    }
}
