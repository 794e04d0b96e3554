//! Fixed-point numbers with more bits than a float: integers inside, `Fraction` outside.

use crate::python::prelude::*;

use super::value::float;
use crate::wire::FixedPoint;

/// The raw integer nearest to an int, a float, a `Fraction` or a `Decimal`, ties away from zero.
pub(super) fn raw(object: &Object<'_>, format: &FixedPoint) -> Result<i128, Refusal> {
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
pub(super) fn number(py: Python<'_>, raw: i128, fraction_bits: u32) -> PyResult<Object<'_>> {
    static FRACTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    FRACTION.import(py, "fractions", "Fraction")?.call1((raw, 1u128 << fraction_bits))
}
