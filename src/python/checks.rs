//! The checks that parameters name, as in `#[within(1, 64)] count: u32`: see `macros`.
//!
//! Each takes the parameter's name, the argument, and what else the parameter may be (" or None").

use core::fmt::Display;

use super::arguments::{argument, number as not_bool};
use super::fields::within as check_bounds;
use super::protocol;
use crate::python::prelude::*;

/// The latest time that a caller may give: 200 years.
pub(super) const LATEST: f64 = 200.0 * 366.0 * 86_400.0;

/// An int from `low` to `high`.
pub(super) fn within<T>(name: &str, given: &Bound<'_, PyAny>, or: &str, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    match given.extract::<i64>() {
        Ok(number) if !given.is_instance_of::<pyo3::types::PyBool>() => {
            check_bounds(name, number.into(), low, high)
        }
        _ => check_bounds(name, not_bool(name, given, &format!("an int{or}"))?, low, high),
    }
}

/// Seconds from 0 to `high`.
pub(super) fn seconds(name: &str, given: &Bound<'_, PyAny>, or: &str, high: f64) -> PyResult<Duration> {
    protocol::seconds(name, number(name, given, or)?, high)
}

/// Seconds of a clock of the caller's.
pub(super) fn instant(name: &str, given: &Bound<'_, PyAny>, or: &str) -> PyResult<Instant> {
    seconds(name, given, or, LATEST).map(|since| Instant::ZERO + since)
}

/// An int; the caller checks its bounds.
pub(super) fn int(name: &str, given: &Bound<'_, PyAny>, or: &str) -> PyResult<i128> {
    not_bool(name, given, &format!("an int{or}"))
}

/// A number; the caller checks its bounds.
pub(super) fn number(name: &str, given: &Bound<'_, PyAny>, or: &str) -> PyResult<f64> {
    argument(name, given, &format!("a number{or}"))
}

/// A bool.
pub(super) fn truth(name: &str, given: &Bound<'_, PyAny>, or: &str) -> PyResult<bool> {
    argument(name, given, &format!("True or False{or}"))
}
