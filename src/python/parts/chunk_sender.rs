//! The sending half of chunks.

use crate::python::prelude::*;

use crate::articles::slices::{self, ChunkSendError, ChunkSenderConfig, MAX_SLICES, packet};

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
        #[within(1, MAX_SLICES)] max_slices: usize,
        #[number] bytes_per_second: f64,
        #[within(0, usize::MAX)] accumulator_bytes: Option<usize>,
        #[within(0, 65_535)] overhead: usize,
        #[seconds(MAX_SECONDS)] resend_delay: Duration,
        #[within(1, 65_535)] max_queued: usize,
        #[within(0, 1 << 23)] initial_burst_bytes: usize,
        #[seconds(MAX_SECONDS)] initial_burst_wait: Duration,
    ) -> PyResult<Self> {
        let core = slices::ChunkSender::new(ChunkSenderConfig {
            max_slices,
            bytes_per_second,
            accumulator_bytes,
            overhead,
            resend_delay,
            max_queued,
            initial_burst_bytes,
            initial_burst_wait,
        });
        let core = core.map_err(value_error)?;
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

    methods! {
        cancel(number: u64) -> bool = lock(&self.core).cancel(number);
        #[staticmethod]
        is_ack(datagram: &Bound<'_, PyBytes>) -> bool = packet::is_ack(datagram.as_bytes());
        set_bytes_per_second(bytes_per_second: f64) -> PyResult<()> =
            lock(&self.core).set_bytes_per_second(bytes_per_second).map_err(value_error);
    }

    fn update(&self, #[instant] now: Instant, #[seconds(MAX_SECONDS)] rtt: Option<Duration>) -> Vec<Vec<u8>> {
        let mut out = Datagrams::<()>::new();
        let mut core = lock(&self.core);
        core.set_rtt(rtt);
        core.tick(now, &mut out);
        out.iter().map(|(_, packet)| packet.to_vec()).collect()
    }

    fn receive(&self, #[instant] now: Instant, datagram: &Bound<'_, PyBytes>) -> Option<u64> {
        // A drop is counted.
        lock(&self.core).handle_ack(now, datagram.as_bytes()).unwrap_or(None)
    }

    properties! {
        counters: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.core).counters().iter());
        bytes_per_second: f64 = lock(&self.core).bytes_per_second();
        in_flight: Option<u64> = lock(&self.core).in_flight();
        progress: Option<ChunkProgress> = lock(&self.core).progress().map(ChunkProgress);
        queued: usize = lock(&self.core).queued();
        idle: bool = lock(&self.core).is_idle();
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

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkProgress(pub(super) slices::ChunkProgress);

#[pymethods]
impl ChunkProgress {
    properties! {
        bytes, total_bytes, slices, total_slices: usize of self.0;
        bytes_per_second: f64 = self.0.bytes_per_second;
        time_left: Option<f64> = self.0.time_left.map(|left| left.as_secs_f64());
    }

    fn __repr__(&self) -> String {
        let slices::ChunkProgress { bytes, total_bytes, slices, total_slices, bytes_per_second, .. } = self.0;
        let left = self.time_left().map(|left| format!(", {left:.1} s left")).unwrap_or_default();
        format!(
            "<ChunkProgress {bytes} of {total_bytes} bytes, {slices} of {total_slices} slices, {bytes_per_second:.0} bytes/s{left}>"
        )
    }
}
