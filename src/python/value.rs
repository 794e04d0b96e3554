//! Converts Python objects to wire values and back.
//!
//! Promises: an object is converted as its field asks, or refused with a reason; exact builtin types take a
//! fast path. Integers are objects with `__index__`, floats objects with `__float__`. Fixed-point numbers with more bits
//! than a float are integers inside, `Fraction` outside.

use std::borrow::Cow;

use crate::python::prelude::*;

use crate::wire::{FixedPoint, Kind, Value};

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
    pub(super) fn value<'a>(self, object: &'a Object<'_>) -> Result<Value<'a>, Refusal> {
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
            Takes::Bool => object.extract().map(Value::Bool).map_err(|_| Refusal::of_type("True or False")),
            Takes::Text => match object.cast::<PyString>() {
                Ok(text) => text
                    .to_str()
                    .map(Value::Text)
                    .map_err(|_| Refusal::of_bound("text without lone surrogates")),
                Err(_) => Err(Refusal::of_type("a str")),
            },
            Takes::Data => match object.cast::<PyBytes>() {
                Ok(data) => Ok(Value::Data(data.as_bytes())),
                Err(_) => Err(Refusal::of_type("bytes")),
            },
        }
    }
}

#[inline]
pub(super) fn float(object: &Object<'_>) -> Result<f64, Refusal> {
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Ok(float.value());
    }
    object.extract().map_err(|error: PyErr| match () {
        () if error.is_instance_of::<PyTypeError>(object.py()) => Refusal::of_type("a float"),
        () if error.is_instance_of::<PyOverflowError>(object.py()) => Refusal::beyond(),
        () => Refusal::Raised(error),
    })
}

/// The object as an integer.
#[inline]
pub(super) fn integer(object: &Object<'_>) -> Result<i128, Refusal> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value.into());
    }
    match wide_int(object)? {
        Value::Int128(value) => Ok(value),
        _ => Err(Refusal::beyond()),
    }
}

/// Integers that the fast path doesn't take.
#[cold]
fn wide_int<'a>(object: &Object<'_>) -> Result<Value<'a>, Refusal> {
    let py = object.py();
    match object.extract::<i128>() {
        Ok(value) => return Ok(Value::Int128(value)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(Refusal::of_type("an int")),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {}
        Err(error) => return Err(Refusal::Raised(error)),
    }
    match object.extract::<u128>() {
        Ok(value) => Ok(Value::Uint128(value)),
        // Without the stable ABI, a negative number is a ValueError.
        Err(error)
            if error.is_instance_of::<PyOverflowError>(py) || error.is_instance_of::<PyValueError>(py) =>
        {
            Err(Refusal::beyond())
        }
        Err(error) => Err(Refusal::Raised(error)),
    }
}

/// Why an object can't be written.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The type that it must have.
    Type(Cow<'static, str>),
    /// The bound that it must keep.
    Bound(Cow<'static, str>),
    /// One of the parts of the object is refused.
    Within {
        /// Where the part is, as in Python.
        path: String,
        part: Py<PyAny>,
        refusal: Box<Refusal>,
    },
    Value(ValueError),
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
    #[cold]
    pub(super) fn of_type(expected: impl Into<Cow<'static, str>>) -> Self {
        Refusal::Type(expected.into())
    }

    #[cold]
    pub(super) fn of_bound(bound: impl Into<Cow<'static, str>>) -> Self {
        Refusal::Bound(bound.into())
    }

    #[cold]
    fn beyond() -> Self {
        Self::of_bound("a number of at most 128 bits")
    }

    /// An exception of `to_wire`. One that ends programs, such as `KeyboardInterrupt`, is passed on instead.
    #[cold]
    pub(super) fn to_wire(py: Python<'_>, error: PyErr) -> Self {
        if error.is_instance_of::<PyException>(py) { Refusal::ToWire(error) } else { Refusal::Raised(error) }
    }

    /// The refusal of the whole value, which names the part by its path.
    #[cold]
    pub(super) fn within(self, step: &str, part: &Object<'_>) -> Self {
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
    pub(super) fn raise(self, class: &str, field: &str, object: &Object<'_>) -> PyErr {
        let args = |bound: String| (class.to_owned(), field.to_owned(), object.clone().unbind(), bound);
        match self {
            Refusal::Raised(error) => error,
            Refusal::Within { path, part, refusal } => {
                refusal.raise(class, &format!("{field}{path}"), part.bind(object.py()))
            }
            Refusal::Type(expected) => FieldTypeError::new_err(args(expected.into())),
            Refusal::Bound(bound) => FieldError::new_err(args(bound.into())),
            Refusal::ToWire(error) => {
                let py = object.py();
                let kind = class_name(error.value(py).as_any());
                let said = error.value(py).str().map_or_else(|_| String::new(), |said| said.to_string());
                let raised = FieldError::new_err(args(format!(
                    "an object that to_wire accepts, and it raised {kind}: {said}"
                )));
                raised.set_cause(py, Some(error));
                raised
            }
            // One of many numbers: say which.
            Refusal::Value(
                error @ (ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value }),
            ) if object.extract::<f64>().is_err() => {
                FieldError::new_err(args(format!("{}, and {value} is not", error.bound())))
            }
            Refusal::Value(error) => FieldError::new_err(args(error.bound())),
        }
    }
}

/// A value as a Python object.
#[inline]
pub(super) fn to_python<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Object<'py>> {
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

/// The raw integer nearest to an int, a float, a `Fraction` or a `Decimal`, ties away from zero.
pub(super) fn exact_raw(object: &Object<'_>, format: &FixedPoint) -> Result<i128, Refusal> {
    let py = object.py();
    let ratio = match object.call_method0(intern!(py, "as_integer_ratio")) {
        Ok(ratio) => ratio,
        // Another object with __float__, or no number at all: `float` gives the error.
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => {
            let number = float(object)?;
            return format.raw(number).ok_or_else(|| beyond(number, format));
        }
        // NaN and infinities have no ratio.
        Err(error)
            if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py) =>
        {
            return Err(ValueError::NotFinite { value: float(object)? }.into());
        }
        Err(error) => return Err(Refusal::Raised(error)),
    };
    match scaled(&ratio, format.fraction_bits()) {
        // A number too large for the integer is too large for the format.
        Ok(raw) => raw.extract().map_err(|_| beyond(float(object).unwrap_or(f64::INFINITY), format)),
        Err(error) => Err(Refusal::Raised(error)),
    }
}

/// A ratio of integers times two to the power of `fraction_bits`, rounded.
fn scaled<'py>(ratio: &Object<'py>, fraction_bits: u32) -> PyResult<Object<'py>> {
    let (numerator, denominator): (Object<'py>, Object<'py>) = ratio.extract()?;
    let twice = numerator.abs()?.lshift(fraction_bits + 1)?.add(&denominator)?;
    let rounded = twice.floor_div(denominator.lshift(1)?)?;
    if numerator.lt(0)? { rounded.neg() } else { Ok(rounded) }
}

fn beyond(value: f64, format: &FixedPoint) -> Refusal {
    let [lo, hi] = [format.raw_lo(), format.raw_hi()].map(|raw| format.value(raw));
    ValueError::FloatOutOfRange { value, lo, hi }.into()
}

/// The number that a raw integer represents.
pub(super) fn exact_number(py: Python<'_>, raw: i128, fraction_bits: u32) -> PyResult<Object<'_>> {
    static FRACTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    FRACTION.import(py, "fractions", "Fraction")?.call1((raw, 1u128 << fraction_bits))
}
