//! Converts Python objects to wire values and back.
//!
//! Promises: an object is converted as its field asks, or refused with a reason; exact builtin types take a
//! fast path. Integers are objects with `__index__`, floats objects with `__float__`.

use crate::python::prelude::*;

use crate::wire::{Kind, Value};

/// The Python objects that a field takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    Bool,
    /// Integers within an i64.
    Int,
    /// Integers that may exceed an i64.
    WideInt,
    Float,
    Text,
    Data,
}

impl Takes {
    /// The objects for fields of this kind; none if the kind is more than one builtin object.
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        Some(match *kind {
            Kind::Bool | Kind::Press => Takes::Bool,
            Kind::Bits { bits } if bits < 64 => Takes::Int,
            Kind::Ranged { lo, hi } if lo >= i64::MIN.into() && hi <= i64::MAX.into() => Takes::Int,
            Kind::Flags { ref names } if names.len() < 64 => Takes::Int,
            Kind::Bits { .. } | Kind::Ranged { .. } | Kind::Uint128 | Kind::Flags { .. } => Takes::WideInt,
            Kind::Float | Kind::Double | Kind::Quantized { .. } | Kind::Fixed { .. } | Kind::Angle { .. } => {
                Takes::Float
            }
            Kind::Text { .. } | Kind::WideText { .. } => Takes::Text,
            Kind::Data { .. } | Kind::Raw { .. } => Takes::Data,
            _ => return None,
        })
    }

    /// The object as a value that borrows from it.
    #[inline]
    pub(super) fn value<'a>(self, object: &'a Bound<'_, PyAny>) -> Result<Value<'a>, Refusal> {
        match self {
            Takes::Int => match object.extract::<i64>() {
                Ok(value) => Ok(Value::Int(value)),
                Err(_) => wide_int(object),
            },
            Takes::WideInt => match object.extract::<u64>() {
                Ok(value) => Ok(Value::Uint(value)),
                Err(_) => wide_int(object),
            },
            Takes::Float => Ok(Value::Float(float(object)?)),
            Takes::Bool => object.extract().map(Value::Bool).map_err(|_| Refusal::Type("True or False")),
            Takes::Text => match object.cast::<PyString>() {
                Ok(text) => text.to_str().map(Value::Text).map_err(|_| Refusal::Surrogates),
                Err(_) => Err(Refusal::Type("a str")),
            },
            Takes::Data => match object.cast::<PyBytes>() {
                Ok(data) => Ok(Value::Data(data.as_bytes())),
                Err(_) => Err(Refusal::Type("bytes")),
            },
        }
    }
}

#[inline]
pub(super) fn float(object: &Bound<'_, PyAny>) -> Result<f64, Refusal> {
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Ok(float.value());
    }
    object.extract().map_err(|error: PyErr| match () {
        () if error.is_instance_of::<PyTypeError>(object.py()) => Refusal::Type("a float"),
        () if error.is_instance_of::<PyOverflowError>(object.py()) => Refusal::Beyond,
        () => Refusal::Raised(error),
    })
}

/// The object as an integer.
#[inline]
pub(super) fn integer(object: &Bound<'_, PyAny>) -> Result<i128, Refusal> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value.into());
    }
    match wide_int(object)? {
        Value::Int128(value) => Ok(value),
        _ => Err(Refusal::Beyond),
    }
}

/// Integers that the fast path doesn't take.
#[cold]
fn wide_int<'a>(object: &Bound<'_, PyAny>) -> Result<Value<'a>, Refusal> {
    let py = object.py();
    match object.extract::<i128>() {
        Ok(value) => return Ok(Value::Int128(value)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(Refusal::Type("an int")),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {}
        Err(error) => return Err(Refusal::Raised(error)),
    }
    match object.extract::<u128>() {
        Ok(value) => Ok(Value::Uint128(value)),
        // Without the stable ABI, a negative number is a ValueError.
        Err(error)
            if error.is_instance_of::<PyOverflowError>(py) || error.is_instance_of::<PyValueError>(py) =>
        {
            Err(Refusal::Beyond)
        }
        Err(error) => Err(Refusal::Raised(error)),
    }
}

/// Why a field refuses an object.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The wrong type; holds the right one in words.
    Type(&'static str),
    /// Not an object of the class with this name.
    Instance(String),
    /// Not a vector of this many numbers.
    Components {
        /// The vector's length, where known.
        length: Option<usize>,
        count: usize,
    },
    /// A part of the value is refused, not the whole.
    Within {
        /// The part, as it is written after the field's name.
        path: String,
        part: Py<PyAny>,
        refusal: Box<Refusal>,
    },
    /// The right type, out of the field's bounds.
    Value(ValueError),
    /// A number beyond the range of every field.
    Beyond,
    /// Text with half of a surrogate pair, which has no encoding.
    Surrogates,
    /// None of these values, in words.
    OneOf(String),
    /// A tuple of another length.
    Length { length: usize, count: usize },
    /// Two items of a set, or two keys of a dict, that are equal on the wire.
    Same(String, String),
    /// The game's `to_wire` raised.
    ToWire(PyErr),
    /// The object's own code raised.
    Raised(PyErr),
}

impl From<ValueError> for Refusal {
    fn from(error: ValueError) -> Self {
        Refusal::Value(error)
    }
}

impl Refusal {
    /// An exception of `to_wire`. One that ends programs, such as `KeyboardInterrupt`, is passed on instead.
    #[cold]
    pub(super) fn to_wire(py: Python<'_>, error: PyErr) -> Self {
        if error.is_instance_of::<PyException>(py) { Refusal::ToWire(error) } else { Refusal::Raised(error) }
    }

    /// The refusal of the whole value, which names the part by its path.
    #[cold]
    pub(super) fn within(self, step: &str, part: &Bound<'_, PyAny>) -> Self {
        match self {
            Refusal::Within { path, part, refusal } => {
                Refusal::Within { path: format!("{step}{path}"), part, refusal }
            }
            Refusal::Raised(error) => Refusal::Raised(error),
            refusal => {
                Refusal::Within { path: step.into(), part: part.clone().unbind(), refusal: Box::new(refusal) }
            }
        }
    }

    /// The exception, naming class, field and value.
    #[cold]
    pub(super) fn raise(self, class: &str, field: &str, object: &Bound<'_, PyAny>) -> PyErr {
        let args = |bound: String| (class.to_owned(), field.to_owned(), object.clone().unbind(), bound);
        match self {
            Refusal::Raised(error) => error,
            Refusal::Within { path, part, refusal } => {
                refusal.raise(class, &format!("{field}{path}"), part.bind(object.py()))
            }
            Refusal::Type(expected) => FieldTypeError::new_err(args(expected.into())),
            Refusal::Instance(class) => FieldTypeError::new_err(args(format!("a {class}"))),
            Refusal::OneOf(these) => FieldError::new_err(args(format!("one of {these}"))),
            Refusal::Length { length, count } => {
                FieldError::new_err(args(format!("a tuple of {count}, not {length}")))
            }
            Refusal::Same(a, b) => FieldError::new_err(args(format!(
                "items that differ on the wire, and {a} and {b} have the same bits"
            ))),
            Refusal::ToWire(error) => {
                let py = object.py();
                let kind = error.get_type(py).name().map_or_else(|_| "error".into(), |name| name.to_string());
                let said = error.value(py).str().map_or_else(|_| String::new(), |said| said.to_string());
                let raised = FieldError::new_err(args(format!(
                    "an object that to_wire accepts, and it raised {kind}: {said}"
                )));
                raised.set_cause(py, Some(error));
                raised
            }
            Refusal::Components { length: None, count } => {
                FieldTypeError::new_err(args(format!("a tuple of {count} numbers")))
            }
            Refusal::Components { length: Some(length), count } => {
                FieldError::new_err(args(format!("{count} numbers, not {length}")))
            }
            // One of many numbers: say which.
            Refusal::Value(
                error @ (ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value }),
            ) if object.extract::<f64>().is_err() => {
                FieldError::new_err(args(format!("{}, and {value} is not", bound(&error))))
            }
            Refusal::Value(error) => FieldError::new_err(args(bound(&error))),
            Refusal::Beyond => FieldError::new_err(args("a number of at most 128 bits".into())),
            Refusal::Surrogates => FieldError::new_err(args("text without lone surrogates".into())),
        }
    }
}

/// A field's bound in words.
pub(super) fn bound(error: &ValueError) -> String {
    match error {
        ValueError::Type { expected, .. } => (*expected).into(),
        ValueError::OutOfRange { lo, hi, .. } => format!("{lo} to {hi}"),
        ValueError::AboveRange { hi, .. } => format!("at most {hi}"),
        ValueError::Negative { .. } => format!("0 to {}", u128::MAX),
        ValueError::FloatOutOfRange { lo, hi, .. } => format!("{} to {}", short(*lo), short(*hi)),
        ValueError::NotFinite { .. } => "a finite number".into(),
        ValueError::TooLong { length, max, unit } => format!("at most {max} {unit}, not {length}"),
        ValueError::Length { length, count } => format!("exactly {count} bytes, not {length}"),
        ValueError::InteriorNul { at } => format!("text without NUL, and byte {at} is NUL"),
        ValueError::NotIncreasing { previous, .. } => format!("above {previous}"),
        ValueError::NotAMember { .. } => "a member of the enumeration".into(),
        ValueError::NoDirection => "a direction with a length above 0".into(),
        ValueError::Components { length, count } => format!("{count} numbers, not {length}"),
        ValueError::OutsideArena { count, bytes, arena, .. } if *count as usize != *bytes => {
            format!(
                "an offset and a count within the arena of {arena} bytes, and {count} of these are {bytes} bytes"
            )
        }
        ValueError::OutsideArena { arena, .. } => format!("an offset and bytes within the arena of {arena}"),
        ValueError::NotRising => "items in rising order without duplicates".into(),
        ValueError::NotUtf8 => "text in UTF-8".into(),
        ValueError::Row => "a row of the schema".into(),
    }
}

/// A float in the fewest digits that identify it; a single's digits if it is one.
fn short(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { single.to_string() } else { value.to_string() }
}

/// A value as a Python object.
#[inline]
pub(super) fn to_python<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::Int(value) => value.into_pyobject(py)?.into_any(),
        Value::Uint(value) => value.into_pyobject(py)?.into_any(),
        Value::Int128(value) => value.into_pyobject(py)?.into_any(),
        Value::Uint128(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => PyFloat::new(py, value).into_any(),
        Value::Text(value) => PyString::new(py, value).into_any(),
        Value::Data(value) => PyBytes::new(py, value).into_any(),
        Value::Floats(floats) => PyTuple::new(py, floats)?.into_any(),
        Value::Cells(cells) => {
            let floats = (0..cells.count()).map(|i| cells.float(i).unwrap_or(f64::NAN));
            PyTuple::new(py, floats)?.into_any()
        }
    })
}
