//! The receiving half of chunks.

use crate::python::prelude::*;

use super::chunk_sender::{ChunkProgress, MAX_SECONDS};
use crate::articles::slices::{self, ChunkReceiverConfig, MAX_SLICES, packet};

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkReceiver {
    core: Mutex<slices::ChunkReceiver>,
}

#[pymethods]
impl ChunkReceiver {
    #[new]
    fn new(
        #[within(1, MAX_SLICES)] max_slices: usize,
        #[seconds(MAX_SECONDS)] ack_interval: Duration,
        #[within(0, 65_535)] overhead: usize,
    ) -> PyResult<Self> {
        let config = ChunkReceiverConfig { max_slices, ack_interval, overhead };
        let core = slices::ChunkReceiver::new(config).map_err(value_error)?;
        Ok(ChunkReceiver { core: Mutex::new(core) })
    }

    fn receive(&self, #[instant] now: Instant, datagram: &Bound<'_, PyBytes>) {
        // A drop is counted.
        let _ = lock(&self.core).handle_slice(now, datagram.as_bytes());
    }

    fn update(&self, #[instant] now: Instant) -> Option<Vec<u8>> {
        let mut out = Datagrams::<()>::new();
        lock(&self.core).tick(now, &mut out);
        out.iter().next().map(|(_, packet)| packet.to_vec())
    }

    methods! {
        read() -> Option<Vec<u8>> = lock(&self.core).read();
        #[staticmethod]
        is_slice(datagram: &Bound<'_, PyBytes>) -> bool = packet::is_slice(datagram.as_bytes());
    }

    properties! {
        counters: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.core).counters().iter());
        ready: bool = lock(&self.core).is_ready();
        progress: Option<ChunkProgress> = lock(&self.core).progress().map(ChunkProgress);
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
