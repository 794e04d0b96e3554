//! Comparing sequence numbers.

use pyo3::prelude::*;

use crate::python::fields::bounded;
use crate::store::sequence;

/// True when ``a`` is more recent than ``b``: ahead by less than half of the numbers, counting across the
/// wrap. (At exactly half, 32,768, the larger number counts as more recent.) reliable 1.0.
///
/// Args:
///     a, b: sequence numbers, 0 to 65,535.
///
/// Example:
///     >>> sequence_greater(1, 65_535), sequence_greater(65_535, 1)
///     (True, False)
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub(crate) fn sequence_greater(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(sequence::greater(number("a", a)?, number("b", b)?))
}

/// True when ``a`` is older than ``b``.
///
/// Example:
///     >>> sequence_less(65_535, 1)
///     True
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub(crate) fn sequence_less(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(sequence::less(number("a", a)?, number("b", b)?))
}

/// How far ``a`` is ahead of ``b``, counting across the wrap: -32,768 to 32,767, negative if it is behind.
///
/// Example:
///     >>> sequence_distance(1, 65_535), sequence_distance(65_535, 1)
///     (2, -2)
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub(crate) fn sequence_distance(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<i32> {
    Ok(sequence::distance(number("a", a)?, number("b", b)?))
}

/// An argument that is a sequence number.
pub(super) fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u16> {
    bounded(name, value, 0, u16::MAX)
}
