//! Field types: what `Annotated` carries.

use core::fmt::Display;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyType};

use crate::wire::{Kind, MAX_LENGTH, Schema, SchemaError};

/// How one field of a message is written. Made by :func:`bits`, :func:`ranged`, ..., used in ``Annotated``.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct FieldType {
    pub(super) kind: Kind,
    max_bits: usize,
    label: String,
}

impl FieldType {
    /// Checks the parameters once, here, where the caller stands.
    fn new(kind: Kind, label: String) -> PyResult<Self> {
        let schema = Schema::new([("", kind.clone())])
            .map_err(|error| PyValueError::new_err(format!("{label}: {}", without_field(&error))))?;
        Ok(FieldType { kind, max_bits: schema.max_bits(), label })
    }
}

fn without_field(error: &SchemaError) -> String {
    match error {
        SchemaError::Parameter { error, .. } => error.to_string(),
        error => error.to_string(),
    }
}

#[pymethods]
impl FieldType {
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.kind {
            Kind::Bool => PyBool::new(py, false).to_owned().into_any(),
            Kind::Bits { .. } | Kind::Uint128 => 0u8.into_pyobject(py)?.into_any(),
            Kind::Ranged { lo, hi } => {
                let nearest = if (lo..=hi).contains(&0) { 0 } else { lo };
                nearest.into_pyobject(py)?.into_any()
            }
            Kind::Float | Kind::Double => PyFloat::new(py, 0.0).into_any(),
            Kind::Quantized { lo, hi, .. } => {
                PyFloat::new(py, if (lo..=hi).contains(&0.0) { 0.0 } else { lo }).into_any()
            }
            Kind::Fixed { lo, hi, .. } => {
                PyFloat::new(py, if (lo..=hi).contains(&0) { 0.0 } else { lo as f64 }).into_any()
            }
            Kind::Text { .. } | Kind::WideText { .. } => PyString::new(py, "").into_any(),
            Kind::Data { .. } => PyBytes::new(py, b"").into_any(),
        })
    }

    /// An upper bound of what the field costs, alignment included.
    #[getter]
    fn max_bits(&self) -> usize {
        self.max_bits
    }

    #[getter]
    fn python_type<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        match self.kind {
            Kind::Bool => py.get_type::<PyBool>(),
            Kind::Bits { .. } | Kind::Ranged { .. } | Kind::Uint128 => py.get_type::<PyInt>(),
            Kind::Float | Kind::Double | Kind::Quantized { .. } | Kind::Fixed { .. } => {
                py.get_type::<PyFloat>()
            }
            Kind::Text { .. } | Kind::WideText { .. } => py.get_type::<PyString>(),
            Kind::Data { .. } => py.get_type::<PyBytes>(),
        }
    }

    fn __repr__(&self) -> &str {
        &self.label
    }
}

/// An argument that is an integer within bounds; what is out of them is named with the argument.
pub(super) fn bounded<T>(name: &str, value: &Bound<'_, PyAny>, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    if let Ok(number) = value.extract::<i64>() {
        return within(name, number.into(), low, high);
    }
    match value.extract::<i128>() {
        Ok(number) => within(name, number, low, high),
        // What an i128 can't hold is out of every bound here.
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Err(outside(name, value, low, high))
        }
        Err(error) => Err(error),
    }
}

/// As [`bounded`], for an argument already taken as an integer.
pub(super) fn within<T>(name: &str, value: i128, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    match T::try_from(value) {
        Ok(number) if (&low..=&high).contains(&&number) => Ok(number),
        _ => Err(outside(name, value, low, high)),
    }
}

fn outside(name: &str, value: impl Display, low: impl Display, high: impl Display) -> PyErr {
    PyValueError::new_err(format!("{name} must be {low} to {high}, not {value}"))
}

/// An unsigned integer of ``count`` bits, 1 to 64.
#[pyfunction]
#[pyo3(signature = (count, /))]
pub(crate) fn bits(count: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let bits = bounded("count", count, 1, 64)?;
    FieldType::new(Kind::Bits { bits }, format!("bits({bits})"))
}

/// An integer from ``low`` to ``high``, both included, in the bits that ``high - low`` takes.
#[pyfunction]
#[pyo3(signature = (low, high, /))]
pub(crate) fn ranged(low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let lo = bounded("low", low, i128::MIN, i128::MAX)?;
    let hi = bounded("high", high, i128::MIN, i128::MAX)?;
    FieldType::new(Kind::Ranged { lo, hi }, format!("ranged({lo}, {hi})"))
}

/// An unsigned integer of 128 bits.
#[pyfunction]
pub(crate) fn uint128() -> PyResult<FieldType> {
    FieldType::new(Kind::Uint128, "uint128()".into())
}

/// True or False, in one bit.
#[pyfunction]
pub(crate) fn boolean() -> PyResult<FieldType> {
    FieldType::new(Kind::Bool, "boolean()".into())
}

/// A float in 32 bits.
#[pyfunction]
pub(crate) fn float32() -> PyResult<FieldType> {
    FieldType::new(Kind::Float, "float32()".into())
}

/// A float in 64 bits.
#[pyfunction]
pub(crate) fn float64() -> PyResult<FieldType> {
    FieldType::new(Kind::Double, "float64()".into())
}

/// A float from ``low`` to ``high`` in steps of about ``resolution``.
#[pyfunction]
#[pyo3(signature = (low, high, resolution, /))]
pub(crate) fn quantized(low: f64, high: f64, resolution: f64) -> PyResult<FieldType> {
    let label = format!("quantized({low}, {high}, {resolution})");
    FieldType::new(Kind::Quantized { lo: low, hi: high, resolution }, label)
}

/// A number from ``low`` to ``high`` with ``fraction_bits`` binary places.
#[pyfunction]
#[pyo3(signature = (low, high, fraction_bits, /))]
pub(crate) fn fixed(
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
    fraction_bits: &Bound<'_, PyAny>,
) -> PyResult<FieldType> {
    let lo = bounded("low", low, i64::MIN, i64::MAX)?;
    let hi = bounded("high", high, i64::MIN, i64::MAX)?;
    let fraction_bits = bounded("fraction_bits", fraction_bits, 0, 64)?;
    let label = format!("fixed({lo}, {hi}, {fraction_bits})");
    FieldType::new(Kind::Fixed { fraction_bits, lo, hi }, label)
}

/// Text of at most ``max_bytes`` bytes of UTF-8, without NUL.
#[pyfunction]
#[pyo3(signature = (max_bytes, /))]
pub(crate) fn text(max_bytes: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let max_bytes = bounded("max_bytes", max_bytes, 0, MAX_LENGTH)?;
    FieldType::new(Kind::Text { max_bytes }, format!("text({max_bytes})"))
}

/// Text of at most ``max_units`` UTF-16 units, without NUL, in 32 bits each: serialize's wide string.
#[pyfunction]
#[pyo3(signature = (max_units, /))]
pub(crate) fn wide_text(max_units: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let max_units = bounded("max_units", max_units, 0, MAX_LENGTH)?;
    FieldType::new(Kind::WideText { max_units }, format!("wide_text({max_units})"))
}

/// At most ``max_bytes`` bytes.
#[pyfunction]
#[pyo3(signature = (max_bytes, /))]
pub(crate) fn data(max_bytes: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let max_bytes = bounded("max_bytes", max_bytes, 0, MAX_LENGTH)?;
    FieldType::new(Kind::Data { max_bytes }, format!("data({max_bytes})"))
}
