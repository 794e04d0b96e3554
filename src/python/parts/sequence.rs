//! Comparing sequence numbers.

use crate::python::prelude::*;

use crate::store::sequence;

#[pyfunction]
pub(crate) fn sequence_greater(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(sequence::greater(number("a", a)?, number("b", b)?))
}

#[pyfunction]
pub(crate) fn sequence_less(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(sequence::less(number("a", a)?, number("b", b)?))
}

#[pyfunction]
pub(crate) fn sequence_distance(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<i32> {
    Ok(sequence::distance(number("a", a)?, number("b", b)?))
}

/// An argument that is a sequence number.
pub(super) fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u16> {
    bounded(name, value, 0, u16::MAX)
}
