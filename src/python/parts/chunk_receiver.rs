//! The receiving half of chunks.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::chunk_sender::{ChunkProgress, MAX_SECONDS};
use super::{counts, instant};
use crate::articles::slices::{self, ChunkReceiverConfig, MAX_SLICES, packet};
use crate::python::errors::value_error;
use crate::python::fields::bounded;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::store::Datagrams;

/// The receiving end of large blocks of data; see :class:`ChunkSender`.
///
/// It has no socket: pass received slices to :meth:`receive`, and transmit the acks that :meth:`update` returns.
/// Acks are few, and never more bytes than the slices they answer, so that nobody can use a receiver to amplify
/// an attack. It holds one chunk at most, in memory that grows as slices come; the next chunk comes once this one
/// was :meth:`read`.
///
/// Args:
///     max_slices: the most slices of a chunk, up to 8,192. Both ends need the same.
///     ack_interval: seconds between two acks, at least.
///     overhead: bytes that the layers below add to each packet, counted in slices and in acks.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
///
/// Example:
///     >>> sender, receiver = ChunkSender(), ChunkReceiver()
///     >>> number = sender.send(bytes(3000))
///     >>> slices = sender.update(0.0)
///     >>> receiver.receive(0.05, slices[0])
///     >>> receiver.progress
///     <ChunkProgress 1024 of 3072 bytes, 1 of 3 slices, 0 bytes/s>
///     >>> for packet in slices[1:]:
///     ...     receiver.receive(0.05, packet)
///     >>> receiver.read() == bytes(3000)
///     True
#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct ChunkReceiver {
    core: Mutex<slices::ChunkReceiver>,
}

#[pymethods]
impl ChunkReceiver {
    #[new]
    #[pyo3(signature = (*, max_slices = None, ack_interval = 0.05, overhead = None))]
    #[pyo3(text_signature = "(*, max_slices=256, ack_interval=0.05, overhead=28)")]
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

    /// Takes a slice packet of the sender. Invalid or unexpected ones are dropped and counted.
    #[pyo3(signature = (now, datagram, /))]
    fn receive(&self, now: f64, datagram: &Bound<'_, PyBytes>) -> PyResult<()> {
        let now = instant(now)?;
        // A drop is counted.
        let _ = lock(&self.core).handle_slice(now, datagram.as_bytes());
        Ok(())
    }

    /// Once a tick: the ack packet to transmit now; None when none is due.
    #[pyo3(signature = (now, /))]
    fn update<'py>(&self, py: Python<'py>, now: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let now = instant(now)?;
        let mut out = Datagrams::<()>::new();
        lock(&self.core).tick(now, &mut out);
        Ok(out.iter().next().map(|(_, packet)| PyBytes::new(py, packet)))
    }

    /// A chunk that is complete, once; None if there is none.
    fn read<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let chunk = lock(&self.core).read();
        chunk.map(|chunk| PyBytes::new(py, &chunk))
    }

    /// Whether a datagram is for a receiver, when a socket brings packets of chunks both ways.
    #[staticmethod]
    #[pyo3(signature = (datagram, /))]
    fn is_slice(datagram: &Bound<'_, PyBytes>) -> bool {
        packet::is_slice(datagram.as_bytes())
    }

    /// Whether a chunk waits to be read.
    #[getter]
    fn ready(&self) -> bool {
        lock(&self.core).is_ready()
    }

    /// The progress of the chunk that is arriving or waits to be taken; None without one.
    #[getter]
    fn progress(&self) -> Option<ChunkProgress> {
        lock(&self.core).progress().map(ChunkProgress::from)
    }

    /// All counters since the start, with every drop under a name.
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
