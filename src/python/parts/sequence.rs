//! Comparing sequence numbers.

use crate::python::prelude::*;

use crate::store::sequence;

#[pyfunction]
pub(crate) fn sequence_greater(#[within(0, u16::MAX)] a: u16, #[within(0, u16::MAX)] b: u16) -> bool {
    sequence::greater(a, b)
}

#[pyfunction]
pub(crate) fn sequence_less(#[within(0, u16::MAX)] a: u16, #[within(0, u16::MAX)] b: u16) -> bool {
    sequence::less(a, b)
}

#[pyfunction]
pub(crate) fn sequence_distance(#[within(0, u16::MAX)] a: u16, #[within(0, u16::MAX)] b: u16) -> i32 {
    sequence::distance(a, b)
}
