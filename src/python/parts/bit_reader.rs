//! The bit reader.

use crate::python::prelude::*;

use crate::python::stream::Stream;
use crate::wire::{self, MAX_LENGTH, MAX_RELATIVE};

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
        __repr__: PyResult<String> =
            Ok(format!("<BitReader with {} of {} bits left>", self.bits_left()?, self.bits));
    }

    fn flag(&self, py: Python<'_>) -> PyResult<bool> {
        self.stream.flag(&none(py))
    }

    fn bits(&self, py: Python<'_>, #[within(1, 64)] count: u32) -> PyResult<u64> {
        self.stream.bits(&none(py), count)
    }

    fn ranged(
        &self,
        py: Python<'_>,
        #[within(i128::MIN, i128::MAX)] low: i128,
        #[within(i128::MIN, i128::MAX)] high: i128,
    ) -> PyResult<i128> {
        self.stream.ranged(&none(py), low, high)
    }

    fn uint128(&self, py: Python<'_>) -> PyResult<u128> {
        self.stream.uint128(&none(py))
    }

    fn relative(&self, py: Python<'_>, #[within(0, MAX_RELATIVE)] previous: u32) -> PyResult<u32> {
        self.stream.relative(&none(py), previous)
    }

    fn sequence_relative(&self, py: Python<'_>, #[within(0, u16::MAX)] previous: u16) -> PyResult<u16> {
        self.stream.sequence_relative(&none(py), previous)
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
        py: Python<'py>,
        #[within(i64::MIN, i64::MAX)] low: i64,
        #[within(i64::MIN, i64::MAX)] high: i64,
        #[within(0, 64)] fraction_bits: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.stream.fixed(&none(py), low, high, fraction_bits)
    }

    fn text<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_LENGTH)] max_bytes: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        self.stream.text(&none(py), max_bytes)
    }

    fn wide_text<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_LENGTH)] max_units: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        self.stream.wide_text(&none(py), max_units)
    }

    fn data<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_LENGTH)] max_bytes: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.data(&none(py), max_bytes)
    }

    fn bytes<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_LENGTH)] count: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.bytes(&none(py), count)
    }

    fn align(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("align", &none(py), wire::Stream::align)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("finish", &none(py), wire::Stream::finish)
    }
}
