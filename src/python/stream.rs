//! The stream given to a message's own `serialize`.
//!
//! Promises: the game's values are checked and named; a peer's bad bytes raise `StreamError`. A stream ends with its
//! call of `serialize`; used later, it raises.

use std::sync::{Arc, Mutex};

use crate::python::prelude::*;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::types::{PyBytes, PyFloat, PyString};

use super::codec::while_reading;
use super::errors::StreamError;
use super::exact;
use super::fields::bounded;
use super::lock;
use super::value::{Refusal, Takes, float, integer};
use crate::wire::{self, FixedPoint, MAX_LENGTH, MAX_RELATIVE, Value, ValueError};

#[pyclass(frozen, module = "tickwire.messages")]
#[derive(Debug)]
pub(crate) struct Stream {
    /// The class's name, for errors.
    class: Arc<str>,
    /// The prefix of methods in errors: "stream.", or empty if the stream is the class itself.
    prefix: &'static str,
    mode: Mode,
    /// None once `serialize` has returned.
    core: Mutex<Option<wire::Stream>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Write,
    Read,
    Measure,
}

impl Stream {
    /// A stream for one call of `serialize` of `class`.
    pub(super) fn new(class: Arc<str>, core: wire::Stream) -> Self {
        let mode = match core {
            wire::Stream::Write(_) => Mode::Write,
            wire::Stream::Read(_) => Mode::Read,
            wire::Stream::Measure(_) => Mode::Measure,
        };
        Stream { class, prefix: "stream.", mode, core: Mutex::new(Some(core)) }
    }

    /// A stream in a class of its own, which its owner may keep.
    pub(super) fn alone(class: &str, core: wire::Stream) -> Self {
        Stream { prefix: "", ..Self::new(class.into(), core) }
    }

    /// Runs a read-only operation of the core, unless the stream has ended.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut wire::Stream) -> T) -> PyResult<T> {
        lock(&self.core).as_mut().map(question).ok_or_else(over)
    }

    /// Ends the stream.
    pub(super) fn take(&self) -> Option<wire::Stream> {
        lock(&self.core).take()
    }

    /// The value to write, or a default for a reading stream.
    fn input<T: Default>(
        &self,
        method: &str,
        object: &Bound<'_, PyAny>,
        convert: impl FnOnce(&Bound<'_, PyAny>) -> Result<T, Refusal>,
    ) -> PyResult<T> {
        if self.mode == Mode::Read {
            return Ok(T::default());
        }
        convert(object).map_err(|refusal| refusal.raise(&self.class, &self.field(method), object))
    }

    /// The name of a method in errors.
    fn field(&self, method: &str) -> String {
        format!("{}{method}", self.prefix)
    }

    /// Runs one operation of the core. No Python code runs meanwhile.
    pub(super) fn run<T>(
        &self,
        method: &str,
        object: &Bound<'_, PyAny>,
        operation: impl FnOnce(&mut wire::Stream) -> Result<T, wire::StreamError>,
    ) -> PyResult<T> {
        self.ask(operation)?.map_err(|error| match error {
            wire::StreamError::Read(error) => {
                StreamError::new_err(format!("{}: {}: {error}", self.class, self.field(method)))
            }
            wire::StreamError::Value(error) => {
                Refusal::from(error).raise(&self.class, &self.field(method), object)
            }
            wire::StreamError::Parameter(error) => {
                PyValueError::new_err(format!("{}: {}: {error}", self.class, self.field(method)))
            }
        })
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("this stream is over: it lives only while serialize() runs")
}

#[pymethods]
impl Stream {
    properties! {
        writing: bool = self.mode == Mode::Write;
        reading: bool = self.mode == Mode::Read;
        measuring: bool = self.mode == Mode::Measure;
        bits_processed: PyResult<usize> = self.ask(|core| core.position());
    }

    pub(super) fn flag(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let flag = self.mode != Mode::Read && value.is_truthy()?;
        self.run("flag", value, |core| core.flag(flag))
    }

    pub(super) fn bits(&self, value: &Bound<'_, PyAny>, count: &Bound<'_, PyAny>) -> PyResult<u64> {
        let count = bounded("count", count, 1, 64)?;
        let input = self.input("bits", value, |object| match object.extract() {
            Ok(number) => Ok(number),
            Err(_) => {
                let hi = i128::from(u64::MAX >> (64 - count));
                Err(ValueError::OutOfRange { value: integer(object)?, lo: 0, hi }.into())
            }
        })?;
        self.run("bits", value, |core| core.bits(input, count))
    }

    pub(super) fn ranged(
        &self,
        value: &Bound<'_, PyAny>,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
    ) -> PyResult<i128> {
        let input = self.input("ranged", value, integer)?;
        let lo = bounded("low", low, i128::MIN, i128::MAX)?;
        let hi = bounded("high", high, i128::MIN, i128::MAX)?;
        self.run("ranged", value, |core| core.int128(input, lo, hi))
    }

    pub(super) fn uint128(&self, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        let input = self.input("uint128", value, |object| match object.extract() {
            Ok(number) => Ok(number),
            Err(_) => Err(ValueError::Negative { value: integer(object)? }.into()),
        })?;
        self.run("uint128", value, |core| core.uint128(input))
    }

    pub(super) fn relative(&self, value: &Bound<'_, PyAny>, previous: &Bound<'_, PyAny>) -> PyResult<u32> {
        let previous = bounded("previous", previous, 0, MAX_RELATIVE)?;
        let input = self.input("relative", value, |object| {
            let value = integer(object)?;
            let out_of_range = ValueError::OutOfRange { value, lo: 0, hi: MAX_RELATIVE.into() };
            u32::try_from(value).map_err(|_| out_of_range.into())
        })?;
        self.run("relative", value, |core| core.relative(previous, input))
    }

    pub(super) fn sequence_relative(
        &self,
        value: &Bound<'_, PyAny>,
        previous: &Bound<'_, PyAny>,
    ) -> PyResult<u16> {
        let previous = bounded("previous", previous, 0, u16::MAX)?;
        let input = self.input("sequence_relative", value, |object| {
            let value = integer(object)?;
            let out_of_range = ValueError::OutOfRange { value, lo: 0, hi: u16::MAX.into() };
            u16::try_from(value).map_err(|_| out_of_range.into())
        })?;
        self.run("sequence_relative", value, |core| core.sequence_relative(previous, input))
    }

    pub(super) fn float32(&self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        let input = self.input("float32", value, float)?;
        self.run("float32", value, |core| core.float(input))
    }

    pub(super) fn float64(&self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        let input = self.input("float64", value, float)?;
        self.run("float64", value, |core| core.double(input))
    }

    pub(super) fn quantized(
        &self,
        value: &Bound<'_, PyAny>,
        low: f64,
        high: f64,
        resolution: f64,
    ) -> PyResult<f64> {
        let input = self.input("quantized", value, float)?;
        self.run("quantized", value, |core| core.quantized(input, low, high, resolution))
    }

    pub(super) fn fixed<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
        fraction_bits: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lo = bounded("low", low, i64::MIN, i64::MAX)?;
        let hi = bounded("high", high, i64::MIN, i64::MAX)?;
        let fraction_bits = bounded("fraction_bits", fraction_bits, 0, 64)?;
        match FixedPoint::new(fraction_bits, lo, hi) {
            Ok(format) if !format.fits_f64() => {
                let raw = self.input("fixed", value, |object| exact::raw(object, &format))?;
                let raw = self.run("fixed", value, |core| core.fixed_raw(raw, &format))?;
                exact::number(value.py(), raw, fraction_bits)
            }
            _ => {
                let input = self.input("fixed", value, float)?;
                let number = self.run("fixed", value, |core| core.fixed(input, fraction_bits, lo, hi))?;
                Ok(PyFloat::new(value.py(), number).into_any())
            }
        }
    }

    pub(super) fn text<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        max_bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        let max = bounded("max_bytes", max_bytes, 0, MAX_LENGTH)?;
        let input = self.input("text", value, text)?;
        let text = self.run("text", value, |core| core.text(&input, max).map(str::to_owned))?;
        Ok(PyString::new(value.py(), &text))
    }

    pub(super) fn wide_text<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        max_units: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        let max = bounded("max_units", max_units, 0, MAX_LENGTH)?;
        let input = self.input("wide_text", value, text)?;
        let text = self.run("wide_text", value, |core| Ok(core.wide_text(&input, max)?.into_owned()))?;
        Ok(PyString::new(value.py(), &text))
    }

    pub(super) fn data<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        max_bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let max = bounded("max_bytes", max_bytes, 0, MAX_LENGTH)?;
        let input = self.input("data", value, data)?;
        let data = self.run("data", value, |core| core.data(&input, max).map(<[u8]>::to_vec))?;
        Ok(PyBytes::new(value.py(), &data))
    }

    pub(super) fn bytes<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let count = bounded("count", count, 0, MAX_LENGTH)?;
        let input = self.input("bytes", value, data)?;
        let bytes = self.run("bytes", value, |core| core.bytes(&input, count).map(<[u8]>::to_vec))?;
        Ok(PyBytes::new(value.py(), &bytes))
    }

    fn align(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().run("align", slf.as_any(), wire::Stream::align)
    }

    // --- the names of serialize's macros in C++ ------------------------------------------------------------

    fn serialize_bits(&self, value: &Bound<'_, PyAny>, bits: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.bits(value, bits)
    }

    fn serialize_bool(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.flag(value)
    }

    fn serialize_int(
        &self,
        value: &Bound<'_, PyAny>,
        min: &Bound<'_, PyAny>,
        max: &Bound<'_, PyAny>,
    ) -> PyResult<i128> {
        self.ranged(value, min, max)
    }

    fn serialize_int64(
        &self,
        value: &Bound<'_, PyAny>,
        min: &Bound<'_, PyAny>,
        max: &Bound<'_, PyAny>,
    ) -> PyResult<i128> {
        self.ranged(value, min, max)
    }

    fn serialize_int128(
        &self,
        value: &Bound<'_, PyAny>,
        min: &Bound<'_, PyAny>,
        max: &Bound<'_, PyAny>,
    ) -> PyResult<i128> {
        self.ranged(value, min, max)
    }

    fn serialize_uint8(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.unsigned(value, 8)
    }

    fn serialize_uint16(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.unsigned(value, 16)
    }

    fn serialize_uint32(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.unsigned(value, 32)
    }

    fn serialize_uint64(&self, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.unsigned(value, 64)
    }

    fn serialize_uint128(&self, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        self.uint128(value)
    }

    fn serialize_float(&self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.float32(value)
    }

    fn serialize_double(&self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.float64(value)
    }

    fn serialize_compressed_float(
        &self,
        value: &Bound<'_, PyAny>,
        min: f64,
        max: f64,
        res: f64,
    ) -> PyResult<f64> {
        self.quantized(value, min, max, res)
    }

    fn serialize_fixed<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        integer_bits: &Bound<'_, PyAny>,
        fraction_bits: &Bound<'_, PyAny>,
        min: &Bound<'_, PyAny>,
        max: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        bounded("integer_bits", integer_bits, 1, 128)?;
        self.fixed(value, min, max, fraction_bits)
    }

    fn serialize_bytes<'py>(
        &self,
        data: &Bound<'py, PyAny>,
        bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(data, bytes)
    }

    fn serialize_string<'py>(
        &self,
        string: &Bound<'py, PyAny>,
        buffer_size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        self.text(string, &most(buffer_size)?)
    }

    fn serialize_wstring<'py>(
        &self,
        string: &Bound<'py, PyAny>,
        buffer_size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        self.wide_text(string, &most(buffer_size)?)
    }

    fn serialize_align(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::align(slf)
    }

    fn serialize_object<'py>(
        slf: &Bound<'py, Self>,
        object: Bound<'py, PyAny>,
        class_: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = match class_ {
            Some(class) if slf.get().mode == Mode::Read => class.call0()?,
            _ => object,
        };
        if object.is_none() {
            let sentence = if slf.get().mode == Mode::Read {
                "serialize_object reads into an object: give the class as well, as in serialize_object(self.part, Part)"
            } else {
                "serialize_object must be given an object with serialize(stream), not None"
            };
            return Err(PyTypeError::new_err(sentence));
        }
        let serialize = || object.call_method1("serialize", (slf,)).map(drop);
        if slf.get().mode == Mode::Read {
            while_reading(&object, serialize)?;
        } else {
            serialize()?;
        }
        Ok(object)
    }

    fn serialize_int_relative(
        &self,
        previous: &Bound<'_, PyAny>,
        current: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        self.relative(current, previous)
    }

    fn serialize_sequence_relative(
        &self,
        sequence1: &Bound<'_, PyAny>,
        sequence2: &Bound<'_, PyAny>,
    ) -> PyResult<u16> {
        self.sequence_relative(sequence2, sequence1)
    }
}

impl Stream {
    /// An unsigned integer of this many bits.
    fn unsigned(&self, value: &Bound<'_, PyAny>, count: u32) -> PyResult<u64> {
        self.bits(value, count.into_pyobject(value.py())?.as_any())
    }
}

/// The capacity of a C++ buffer without its NUL.
fn most<'py>(buffer_size: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let most = bounded("buffer_size", buffer_size, 1, MAX_LENGTH + 1)? - 1;
    Ok(most.into_pyobject(buffer_size.py())?.into_any())
}

fn data(object: &Bound<'_, PyAny>) -> Result<Vec<u8>, Refusal> {
    match Takes::Data.value(object)? {
        Value::Data(data) => Ok(data.to_vec()),
        _ => Err(Refusal::Type("bytes")),
    }
}

fn text(object: &Bound<'_, PyAny>) -> Result<String, Refusal> {
    match Takes::Text.value(object)? {
        Value::Text(text) => Ok(text.to_owned()),
        _ => Err(Refusal::Type("a str")),
    }
}
