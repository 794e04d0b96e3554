//! The bit writer, and the measure, which takes the same calls and writes nothing.

use crate::python::prelude::*;

use crate::python::stream::Stream;
use crate::python::value::Refusal;
use crate::wire::{self, MAX_LENGTH, MAX_RELATIVE, ValueError};

/// Defines a class that takes values: every primitive, and `$own` methods of its own.
macro_rules! taking_class {
    ($Class:ident over $new:expr; $($own:tt)*) => {
        #[pyclass(frozen, module = "tickwire.articles")]
        #[derive(Debug)]
        pub(crate) struct $Class(Stream);

        #[pymethods]
        impl $Class {
            #[new]
            fn new() -> Self {
                $Class(Stream::alone(stringify!($Class), $new))
            }

            #[pyo3(signature = (value, /))]
            fn flag(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                self.0.flag(value).map(drop)
            }

            #[pyo3(signature = (value, count, /))]
            fn bits(&self, value: &Bound<'_, PyAny>, #[within(1, 64)] count: u32) -> PyResult<()> {
                self.0.bits(value, count).map(drop)
            }

            #[pyo3(signature = (value, low, high, /))]
            fn ranged(
                &self,
                value: &Bound<'_, PyAny>,
                #[within(i128::MIN, i128::MAX)] low: i128,
                #[within(i128::MIN, i128::MAX)] high: i128,
            ) -> PyResult<()> {
                self.0.ranged(value, low, high).map(drop)
            }

            #[pyo3(signature = (value, /))]
            fn uint128(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                self.0.uint128(value).map(drop)
            }

            #[pyo3(signature = (value, previous, /))]
            fn relative(&self, value: &Bound<'_, PyAny>, #[within(0, MAX_RELATIVE)] previous: u32) -> PyResult<()> {
                self.0.relative(value, previous).map(drop)
            }

            #[pyo3(signature = (value, previous, /))]
            fn sequence_relative(
                &self,
                value: &Bound<'_, PyAny>,
                #[within(0, u16::MAX)] previous: u16,
            ) -> PyResult<()> {
                self.0.sequence_relative(value, previous).map(drop)
            }

            #[pyo3(signature = (value, /))]
            fn float32(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                self.0.float32(value).map(drop)
            }

            #[pyo3(signature = (value, /))]
            fn float64(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                self.0.float64(value).map(drop)
            }

            #[pyo3(signature = (value, low, high, resolution, /))]
            fn quantized(
                &self,
                value: &Bound<'_, PyAny>,
                low: f64,
                high: f64,
                resolution: f64,
            ) -> PyResult<()> {
                self.0.quantized(value, low, high, resolution).map(drop)
            }

            #[pyo3(signature = (value, low, high, fraction_bits, /))]
            fn fixed(
                &self,
                value: &Bound<'_, PyAny>,
                #[within(i64::MIN, i64::MAX)] low: i64,
                #[within(i64::MIN, i64::MAX)] high: i64,
                #[within(0, 64)] fraction_bits: u32,
            ) -> PyResult<()> {
                self.0.fixed(value, low, high, fraction_bits).map(drop)
            }

            #[pyo3(signature = (value, max_bytes, /))]
            fn text(&self, value: &Bound<'_, PyAny>, #[within(0, MAX_LENGTH)] max_bytes: u32) -> PyResult<()> {
                self.0.text(value, max_bytes).map(drop)
            }

            #[pyo3(signature = (value, max_units, /))]
            fn wide_text(&self, value: &Bound<'_, PyAny>, #[within(0, MAX_LENGTH)] max_units: u32) -> PyResult<()> {
                self.0.wide_text(value, max_units).map(drop)
            }

            #[pyo3(signature = (value, max_bytes, /))]
            fn data(&self, value: &Bound<'_, PyAny>, #[within(0, MAX_LENGTH)] max_bytes: u32) -> PyResult<()> {
                self.0.data(value, max_bytes).map(drop)
            }

            #[pyo3(signature = (value, /))]
            fn bytes(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
                bytes(&self.0, stringify!($Class), value)
            }

            fn align(slf: &Bound<'_, Self>) -> PyResult<()> {
                slf.get().0.run("align", slf.as_any(), wire::Stream::align)
            }

            $($own)*
        }
    };
}

fn bytes(stream: &Stream, class: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let raise = |refusal: Refusal| refusal.raise(class, "bytes", value);
    let Ok(data) = value.cast::<PyBytes>() else { return Err(raise(Refusal::Type("bytes"))) };
    let data = data.as_bytes();
    let count = u32::try_from(data.len()).ok().filter(|count| *count <= MAX_LENGTH).ok_or_else(|| {
        raise(ValueError::TooLong { length: data.len(), max: MAX_LENGTH, unit: "bytes" }.into())
    })?;
    stream.run("bytes", value, |core| core.bytes(data, count).map(drop))
}

taking_class! {
    BitWriter over wire::Stream::writing();

    #[getter]
    fn bits_written(&self) -> PyResult<usize> {
        self.0.ask(|core| core.position())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.ask(|core| match core {
            wire::Stream::Write(writer) => Some(writer.as_bytes().to_vec()),
            wire::Stream::Read(_) | wire::Stream::Measure(_) => None,
        })?;
        let bytes = bytes.ok_or_else(|| PyRuntimeError::new_err("a writer writes"))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<BitWriter of {} bits>", self.bits_written()?))
    }
}

taking_class! {
    BitMeasure over wire::Stream::measuring();

    #[getter]
    fn max_bits(&self) -> PyResult<usize> {
        self.0.ask(|core| core.position())
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<BitMeasure of at most {} bits>", self.max_bits()?))
    }
}
