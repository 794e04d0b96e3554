//! The stream given to a message's own `serialize`.
//!
//! Promises: the game's values are checked and named; a peer's bad bytes raise `StreamError`. A stream ends with its
//! call of `serialize`; used later, it raises.

use std::borrow::Cow;

use crate::python::prelude::*;

use super::value::{Takes, exact_number, exact_raw, float, integer};
use crate::wire::{self, FixedPoint, MAX_LENGTH, MAX_RELATIVE, Value};

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

/// Hands a macro what it is given, and then the primitives: their parameters beside the value, what reading gives, and how they are
/// done.
macro_rules! primitives {
    ($make:ident! $($given:tt)*) => {
        $make! {
            $($given)*
            flag() -> bool = |stream, value| stream.pass("flag", value, truth, |core, it| core.flag(it));
            bits(#[within(1, 64)] count: u32) -> u64 = |stream, value| {
                stream.pass("bits", value, up_to(u64::MAX >> (64 - count)), |core, it| core.bits(it, count))
            };
            ranged(
                #[within(i128::MIN, i128::MAX)] low: i128,
                #[within(i128::MIN, i128::MAX)] high: i128
            ) -> i128 = |stream, value| {
                stream.pass("ranged", value, integer, |core, it| core.int128(it, low, high))
            };
            uint128() -> u128 = |stream, value| {
                stream.pass("uint128", value, unsigned, |core, it| core.uint128(it))
            };
            relative(#[within(0, MAX_RELATIVE)] previous: u32) -> u32 = |stream, value| {
                stream.pass("relative", value, up_to(MAX_RELATIVE), |core, it| core.relative(previous, it))
            };
            sequence_relative(#[within(0, u16::MAX)] previous: u16) -> u16 = |stream, value| {
                let pass = |core: &mut wire::Stream, it| core.sequence_relative(previous, it);
                stream.pass("sequence_relative", value, up_to(u16::MAX), pass)
            };
            float32() -> f64 = |stream, value| stream.pass("float32", value, float, |core, it| core.float(it));
            float64() -> f64 = |stream, value| stream.pass("float64", value, float, |core, it| core.double(it));
            quantized(low: f64, high: f64, resolution: f64) -> f64 = |stream, value| {
                stream.pass("quantized", value, float, |core, it| core.quantized(it, low, high, resolution))
            };
            fixed(
                #[within(i64::MIN, i64::MAX)] low: i64,
                #[within(i64::MIN, i64::MAX)] high: i64,
                #[within(0, 64)] fraction_bits: u32
            ) -> Object<'py> = |stream, value| stream.pass_fixed(value, low, high, fraction_bits);
            text(#[within(0, MAX_LENGTH)] max_bytes: u32) -> String = |stream, value| {
                stream.pass("text", value, text, |core, it| core.text(&it, max_bytes).map(str::to_owned))
            };
            wide_text(#[within(0, MAX_LENGTH)] max_units: u32) -> String = |stream, value| {
                stream.pass("wide_text", value, text, |core, it| Ok(core.wide_text(&it, max_units)?.into_owned()))
            };
            data(#[within(0, MAX_LENGTH)] max_bytes: u32) -> Cow<'static, [u8]> = |stream, value| {
                stream.pass("data", value, data, |core, it| Ok(core.data(&it, max_bytes)?.to_vec().into()))
            };
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

    /// Passes a value through the core: what is written is converted first, and a reading stream takes a default.
    pub(super) fn pass<T: Default, U>(
        &self,
        method: &str,
        object: &Object<'_>,
        convert: impl FnOnce(&Object<'_>) -> Result<T, Refusal>,
        operation: impl FnOnce(&mut wire::Stream, T) -> Result<U, wire::StreamError>,
    ) -> PyResult<U> {
        let input = match self.mode {
            Mode::Read => T::default(),
            _ => {
                convert(object).map_err(|refusal| refusal.raise(&self.class, &self.field(method), object))?
            }
        };
        self.run(method, object, |core| operation(core, input))
    }

    fn pass_fixed<'py>(
        &self,
        value: &Object<'py>,
        low: i64,
        high: i64,
        fraction_bits: u32,
    ) -> PyResult<Object<'py>> {
        match FixedPoint::new(fraction_bits, low, high) {
            Ok(format) if !format.fits_f64() => {
                let convert = |object: &Object<'_>| exact_raw(object, &format);
                let raw = self.pass("fixed", value, convert, |core, raw| core.fixed_raw(raw, &format))?;
                exact_number(value.py(), raw, fraction_bits)
            }
            _ => {
                let pass = |core: &mut wire::Stream, it| core.fixed(it, fraction_bits, low, high);
                Ok(PyFloat::new(value.py(), self.pass("fixed", value, float, pass)?).into_any())
            }
        }
    }

    /// The name of a method in errors.
    fn field(&self, method: &str) -> String {
        format!("{}{method}", self.prefix)
    }

    /// Runs one operation of the core. No Python code runs meanwhile.
    pub(super) fn run<T>(
        &self,
        method: &str,
        object: &Object<'_>,
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
    PyRuntimeError::new_err("the stream can be used only while serialize() runs")
}

macro_rules! passing {
    ($($name:ident($($(#[$check:meta])* $parameter:ident: $Type:ty),*) -> $Read:ty = |$stream:ident, $value:ident| $pass:expr;)*) => {
        #[pymethods]
        impl Stream {
            $(pub(super) fn $name<'py>(
                &self,
                $value: &Object<'py>,
                $($(#[$check])* $parameter: $Type),*
            ) -> PyResult<$Read> {
                let $stream = self;
                $pass
            })*

            pub(super) fn bytes(
                &self,
                value: &Object<'_>,
                #[within(0, MAX_LENGTH)] count: u32,
            ) -> PyResult<Cow<'static, [u8]>> {
                self.pass("bytes", value, data, |core, it| Ok(core.bytes(&it, count)?.to_vec().into()))
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
        }
    };
}

primitives!(passing!);

#[pymethods]
impl Stream {
    properties! {
        writing: bool = self.mode == Mode::Write;
        reading: bool = self.mode == Mode::Read;
        measuring: bool = self.mode == Mode::Measure;
        bits_processed: PyResult<usize> = self.ask(|core| core.position());
    }

    fn align(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().run("align", slf.as_any(), wire::Stream::align)
    }

    fn serialize_fixed<'py>(
        &self,
        value: &Object<'py>,
        #[within(1, 128)] integer_bits: u8,
        #[within(0, 64)] fraction_bits: u32,
        #[within(i64::MIN, i64::MAX)] min: i64,
        #[within(i64::MIN, i64::MAX)] max: i64,
    ) -> PyResult<Object<'py>> {
        let _ = integer_bits;
        self.fixed(value, min, max, fraction_bits)
    }

    fn serialize_string(
        &self,
        string: &Object<'_>,
        #[within(1, MAX_LENGTH + 1)] buffer_size: u32,
    ) -> PyResult<String> {
        self.text(string, buffer_size - 1)
    }

    fn serialize_wstring<'py>(
        &self,
        string: &Object<'py>,
        #[within(1, MAX_LENGTH + 1)] buffer_size: u32,
    ) -> PyResult<String> {
        self.wide_text(string, buffer_size - 1)
    }

    fn serialize_align(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::align(slf)
    }

    fn serialize_object<'py>(
        slf: &Bound<'py, Self>,
        object: Object<'py>,
        class_: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
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
        current: &Object<'_>,
    ) -> PyResult<u32> {
        self.relative(current, previous)
    }

    fn serialize_sequence_relative(
        &self,
        #[within(0, u16::MAX)] sequence1: u16,
        sequence2: &Object<'_>,
    ) -> PyResult<u16> {
        self.sequence_relative(sequence2, sequence1)
    }
}

fn truth(object: &Object<'_>) -> Result<bool, Refusal> {
    object.is_truthy().map_err(Refusal::Raised)
}

/// Converts an int to one that is at most `most`, or to a larger one that its type has room for.
fn up_to<T: TryFrom<i128> + Into<i128>>(most: T) -> impl FnOnce(&Object<'_>) -> Result<T, Refusal> {
    move |object| {
        let value = integer(object)?;
        value.try_into().map_err(|_| ValueError::OutOfRange { value, lo: 0, hi: most.into() }.into())
    }
}

fn unsigned(object: &Object<'_>) -> Result<u128, Refusal> {
    match object.extract() {
        Ok(number) => Ok(number),
        Err(_) => Err(ValueError::Negative { value: integer(object)? }.into()),
    }
}

pub(super) fn data(object: &Object<'_>) -> Result<Vec<u8>, Refusal> {
    match Takes::Data.value(object)? {
        Value::Data(data) => Ok(data.to_vec()),
        _ => Err(Refusal::of_type("bytes")),
    }
}

fn text(object: &Object<'_>) -> Result<String, Refusal> {
    match Takes::Text.value(object)? {
        Value::Text(text) => Ok(text.to_owned()),
        _ => Err(Refusal::of_type("a str")),
    }
}

/// Runs `read` while attributes that the object doesn't have yet are None.
pub(super) fn while_reading<T>(object: &Object<'_>, read: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let py = object.py();
    // `READING` in `tickwire/_message.py`.
    let marker = intern!(py, "_tickwire_reading");
    // Objects of other classes, as serialize_object may be given, don't look for the marker.
    let Some(attributes) = object.getattr_opt(intern!(py, "__dict__"))? else { return read() };
    let attributes = attributes.cast_into::<PyDict>()?;
    attributes.set_item(marker, true)?;
    let result = read();
    attributes.del_item(marker)?;
    result
}
