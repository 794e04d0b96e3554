//! The bit reader.

use crate::python::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::python::stream::Stream;
use crate::wire;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct BitReader {
    stream: Stream,
    bits: usize,
}

impl BitReader {
    fn position(&self) -> PyResult<usize> {
        self.stream.ask(|core| core.position())
    }
}

/// The value given to a reading stream where a writing one takes one.
fn none(py: Python<'_>) -> Bound<'_, PyAny> {
    py.None().into_bound(py)
}

#[pymethods]
impl BitReader {
    #[new]
    fn new(data: &[u8]) -> Self {
        let bits = data.len() * 8;
        BitReader { stream: Stream::alone("BitReader", wire::Stream::reading(data, 0, bits)), bits }
    }

    properties! {
        bits_read: PyResult<usize> = Ok(self.position()?.min(self.bits));
        bits_left: PyResult<usize> = Ok(self.bits.saturating_sub(self.position()?));
    }

    fn flag(&self, py: Python<'_>) -> PyResult<bool> {
        self.stream.flag(&none(py))
    }

    fn bits(&self, count: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.stream.bits(&none(count.py()), count)
    }

    fn ranged(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<i128> {
        self.stream.ranged(&none(low.py()), low, high)
    }

    fn uint128(&self, py: Python<'_>) -> PyResult<u128> {
        self.stream.uint128(&none(py))
    }

    fn relative(&self, previous: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.stream.relative(&none(previous.py()), previous)
    }

    fn sequence_relative(&self, previous: &Bound<'_, PyAny>) -> PyResult<u16> {
        self.stream.sequence_relative(&none(previous.py()), previous)
    }

    fn float32(&self, py: Python<'_>) -> PyResult<f64> {
        self.stream.float32(&none(py))
    }

    fn float64(&self, py: Python<'_>) -> PyResult<f64> {
        self.stream.float64(&none(py))
    }

    fn quantized(&self, py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<f64> {
        self.stream.quantized(&none(py), low, high, resolution)
    }

    fn fixed<'py>(
        &self,
        low: &Bound<'py, PyAny>,
        high: &Bound<'_, PyAny>,
        fraction_bits: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.stream.fixed(&none(low.py()), low, high, fraction_bits)
    }

    fn text<'py>(&self, max_bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.text(&none(max_bytes.py()), max_bytes)
    }

    fn wide_text<'py>(&self, max_units: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.wide_text(&none(max_units.py()), max_units)
    }

    fn data<'py>(&self, max_bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.data(&none(max_bytes.py()), max_bytes)
    }

    fn bytes<'py>(&self, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.bytes(&none(count.py()), count)
    }

    fn align(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("align", &none(py), wire::Stream::align)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("finish", &none(py), wire::Stream::finish)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<BitReader with {} of {} bits left>", self.bits_left()?, self.bits))
    }
}
