//! The bit reader.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::python::stream::Stream;
use crate::wire;

/// Reads the output of a :class:`BitWriter`: call the methods in the writer's order, with the same
/// bounds. Layout: the serialize 1.0 standard, with all its checks; the first refusal is final.
///
/// Args:
///     data: the writer's output.
///
/// Raises:
///     StreamError: the bytes are invalid by the standard: drop the packet.
///     ValueError: an invalid bound; it names the bound and its value.
///
/// Example:
///     >>> reader = BitReader(b"\x1d\x02hi")
///     >>> reader.bits(3), reader.ranged(-10, 10), reader.text(15), reader.bits_left
///     (5, -7, 'hi', 0)
///     >>> reader.finish()
///     >>> reader.bits(1)
///     Traceback (most recent call last):
///     tickwire.errors.StreamError: BitReader: bits: the read needs 1 bits and 0 are left
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
    #[pyo3(signature = (data, /))]
    fn new(data: &[u8]) -> Self {
        let bits = data.len() * 8;
        BitReader { stream: Stream::alone("BitReader", wire::Stream::reading(data, 0, bits)), bits }
    }

    /// Bits read so far: all of them after a refusal.
    #[getter]
    fn bits_read(&self) -> PyResult<usize> {
        Ok(self.position()?.min(self.bits))
    }

    /// Bits left to read: none after a refusal.
    #[getter]
    fn bits_left(&self) -> PyResult<usize> {
        Ok(self.bits.saturating_sub(self.position()?))
    }

    /// One bit.
    fn flag(&self, py: Python<'_>) -> PyResult<bool> {
        self.stream.flag(&none(py))
    }

    /// An unsigned integer of ``count`` bits, 1 to 64.
    #[pyo3(signature = (count, /))]
    fn bits(&self, count: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.stream.bits(&none(count.py()), count)
    }

    /// An integer from ``low`` to ``high``, both included.
    #[pyo3(signature = (low, high, /))]
    fn ranged(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<i128> {
        self.stream.ranged(&none(low.py()), low, high)
    }

    /// An unsigned integer of 128 bits.
    fn uint128(&self, py: Python<'_>) -> PyResult<u128> {
        self.stream.uint128(&none(py))
    }

    /// An integer above ``previous``.
    #[pyo3(signature = (previous, /))]
    fn relative(&self, previous: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.stream.relative(&none(previous.py()), previous)
    }

    /// A sequence number after ``previous``, across the wrap if need be.
    #[pyo3(signature = (previous, /))]
    fn sequence_relative(&self, previous: &Bound<'_, PyAny>) -> PyResult<u16> {
        self.stream.sequence_relative(&none(previous.py()), previous)
    }

    /// A float in 32 bits.
    fn float32(&self, py: Python<'_>) -> PyResult<f64> {
        self.stream.float32(&none(py))
    }

    /// A float in 64 bits.
    fn float64(&self, py: Python<'_>) -> PyResult<f64> {
        self.stream.float64(&none(py))
    }

    /// A float from ``low`` to ``high`` in steps of about ``resolution``.
    #[pyo3(signature = (low, high, resolution, /))]
    fn quantized(&self, py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<f64> {
        self.stream.quantized(&none(py), low, high, resolution)
    }

    /// A number from ``low`` to ``high`` with ``fraction_bits`` binary places: a float, or a ``Fraction`` where a float
    /// has too few bits (more than 53) to be exact.
    #[pyo3(signature = (low, high, fraction_bits, /))]
    fn fixed<'py>(
        &self,
        low: &Bound<'py, PyAny>,
        high: &Bound<'_, PyAny>,
        fraction_bits: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.stream.fixed(&none(low.py()), low, high, fraction_bits)
    }

    /// Text of at most ``max_bytes`` bytes of UTF-8.
    #[pyo3(signature = (max_bytes, /))]
    fn text<'py>(&self, max_bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.text(&none(max_bytes.py()), max_bytes)
    }

    /// Text of at most ``max_units`` UTF-16 units.
    #[pyo3(signature = (max_units, /))]
    fn wide_text<'py>(&self, max_units: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.wide_text(&none(max_units.py()), max_units)
    }

    /// At most ``max_bytes`` bytes, after their length.
    #[pyo3(signature = (max_bytes, /))]
    fn data<'py>(&self, max_bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.data(&none(max_bytes.py()), max_bytes)
    }

    /// Exactly ``count`` bytes.
    #[pyo3(signature = (count, /))]
    fn bytes<'py>(&self, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.stream.bytes(&none(count.py()), count)
    }

    /// The zero bits up to the next byte boundary.
    fn align(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("align", &none(py), wire::Stream::align)
    }

    /// Ends a strict read: the bits left must be the zero padding of the last byte.
    ///
    /// Raises:
    ///     StreamError: there is more.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.stream.run("finish", &none(py), wire::Stream::finish)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<BitReader with {} of {} bits left>", self.bits_left()?, self.bits))
    }
}
