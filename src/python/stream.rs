//! The stream given to a message's own `serialize`.
//!
//! Promises: the game's values are checked and named; a peer's bad bytes raise `StreamError`. A stream ends with its
//! call of `serialize`; used later, it raises.

use crate::python::prelude::*;

use super::codec::while_reading;
use super::errors::StreamError;
use super::exact;
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

/// Hands a macro what it is given, and then the primitives with their parameters beside the value, and what reading gives.
macro_rules! primitives {
    ($make:ident! $($given:tt)*) => {
        $make! {
            $($given)*
            flag() -> bool;
            bits(#[within(1, 64)] count: u32) -> u64;
            ranged(
                #[within(i128::MIN, i128::MAX)] low: i128,
                #[within(i128::MIN, i128::MAX)] high: i128
            ) -> i128;
            uint128() -> u128;
            relative(#[within(0, MAX_RELATIVE)] previous: u32) -> u32;
            sequence_relative(#[within(0, u16::MAX)] previous: u16) -> u16;
            float32() -> f64;
            float64() -> f64;
            quantized(low: f64, high: f64, resolution: f64) -> f64;
            fixed(
                #[within(i64::MIN, i64::MAX)] low: i64,
                #[within(i64::MIN, i64::MAX)] high: i64,
                #[within(0, 64)] fraction_bits: u32
            ) -> Bound<'py, PyAny>;
            text(#[within(0, MAX_LENGTH)] max_bytes: u32) -> Bound<'py, PyString>;
            wide_text(#[within(0, MAX_LENGTH)] max_units: u32) -> Bound<'py, PyString>;
            data(#[within(0, MAX_LENGTH)] max_bytes: u32) -> Bound<'py, PyBytes>;
        }
    };
}

pub(super) use primitives;

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

    pub(super) fn bits(&self, value: &Bound<'_, PyAny>, #[within(1, 64)] count: u32) -> PyResult<u64> {
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
        #[within(i128::MIN, i128::MAX)] low: i128,
        #[within(i128::MIN, i128::MAX)] high: i128,
    ) -> PyResult<i128> {
        let input = self.input("ranged", value, integer)?;
        self.run("ranged", value, |core| core.int128(input, low, high))
    }

    pub(super) fn uint128(&self, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        let input = self.input("uint128", value, |object| match object.extract() {
            Ok(number) => Ok(number),
            Err(_) => Err(ValueError::Negative { value: integer(object)? }.into()),
        })?;
        self.run("uint128", value, |core| core.uint128(input))
    }

    pub(super) fn relative(
        &self,
        value: &Bound<'_, PyAny>,
        #[within(0, MAX_RELATIVE)] previous: u32,
    ) -> PyResult<u32> {
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
        #[within(0, u16::MAX)] previous: u16,
    ) -> PyResult<u16> {
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
        #[within(i64::MIN, i64::MAX)] low: i64,
        #[within(i64::MIN, i64::MAX)] high: i64,
        #[within(0, 64)] fraction_bits: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        match FixedPoint::new(fraction_bits, low, high) {
            Ok(format) if !format.fits_f64() => {
                let raw = self.input("fixed", value, |object| exact::raw(object, &format))?;
                let raw = self.run("fixed", value, |core| core.fixed_raw(raw, &format))?;
                exact::number(value.py(), raw, fraction_bits)
            }
            _ => {
                let input = self.input("fixed", value, float)?;
                let number = self.run("fixed", value, |core| core.fixed(input, fraction_bits, low, high))?;
                Ok(PyFloat::new(value.py(), number).into_any())
            }
        }
    }

    pub(super) fn text<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        #[within(0, MAX_LENGTH)] max_bytes: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        let input = self.input("text", value, text)?;
        let text = self.run("text", value, |core| core.text(&input, max_bytes).map(str::to_owned))?;
        Ok(PyString::new(value.py(), &text))
    }

    pub(super) fn wide_text<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        #[within(0, MAX_LENGTH)] max_units: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        let input = self.input("wide_text", value, text)?;
        let text =
            self.run("wide_text", value, |core| Ok(core.wide_text(&input, max_units)?.into_owned()))?;
        Ok(PyString::new(value.py(), &text))
    }

    pub(super) fn data<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        #[within(0, MAX_LENGTH)] max_bytes: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let input = self.input("data", value, data)?;
        let data = self.run("data", value, |core| core.data(&input, max_bytes).map(<[u8]>::to_vec))?;
        Ok(PyBytes::new(value.py(), &data))
    }

    pub(super) fn bytes<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        #[within(0, MAX_LENGTH)] count: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let input = self.input("bytes", value, data)?;
        let bytes = self.run("bytes", value, |core| core.bytes(&input, count).map(<[u8]>::to_vec))?;
        Ok(PyBytes::new(value.py(), &bytes))
    }

    fn align(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().run("align", slf.as_any(), wire::Stream::align)
    }

    // --- the names of serialize's macros in C++ ------------------------------------------------------------

    aliases! {
        serialize_bits = bits;
        serialize_uint8 = bits(8);
        serialize_uint16 = bits(16);
        serialize_uint32 = bits(32);
        serialize_uint64 = bits(64);
        serialize_bool = flag;
        serialize_int = ranged;
        serialize_int64 = ranged;
        serialize_int128 = ranged;
        serialize_uint128 = uint128;
        serialize_float = float32;
        serialize_double = float64;
        serialize_compressed_float = quantized;
        serialize_bytes = bytes;
    }

    fn serialize_fixed<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        #[within(1, 128)] integer_bits: u8,
        #[within(0, 64)] fraction_bits: u32,
        #[within(i64::MIN, i64::MAX)] min: i64,
        #[within(i64::MIN, i64::MAX)] max: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = integer_bits;
        self.fixed(value, min, max, fraction_bits)
    }

    fn serialize_string<'py>(
        &self,
        string: &Bound<'py, PyAny>,
        #[within(1, MAX_LENGTH + 1)] buffer_size: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        self.text(string, buffer_size - 1)
    }

    fn serialize_wstring<'py>(
        &self,
        string: &Bound<'py, PyAny>,
        #[within(1, MAX_LENGTH + 1)] buffer_size: u32,
    ) -> PyResult<Bound<'py, PyString>> {
        self.wide_text(string, buffer_size - 1)
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
        #[within(0, MAX_RELATIVE)] previous: u32,
        current: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        self.relative(current, previous)
    }

    fn serialize_sequence_relative(
        &self,
        #[within(0, u16::MAX)] sequence1: u16,
        sequence2: &Bound<'_, PyAny>,
    ) -> PyResult<u16> {
        self.sequence_relative(sequence2, sequence1)
    }
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
