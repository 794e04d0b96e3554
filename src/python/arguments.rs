//! Arguments of a wrong type: the error sentence itself names them. PyO3 names them in a note, which only
//! tracebacks show.

use crate::python::prelude::*;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyUnicodeEncodeError};
use pyo3::types::PyBool;

/// Extracts an argument; `what` says in words what it must be.
pub(super) fn argument<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<T> {
    given.extract().map_err(|error: T::Error| wrong(name, given, what, error.into()))
}

/// [`argument`] for numbers, which refuses True and False.
pub(super) fn number<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<T> {
    if given.is_instance_of::<PyBool>() {
        refuse!(PyTypeError, "{name} must be {what}, not bool");
    }
    argument(name, given, what)
}

/// Replaces the error that an argument's conversion raised.
#[cold]
pub(super) fn wrong(name: &str, given: &Bound<'_, PyAny>, what: &str, error: PyErr) -> PyErr {
    let py = given.py();
    match () {
        () if error.is_instance_of::<PyUnicodeEncodeError>(py) => {
            PyValueError::new_err(format!("{name} must be text without lone surrogates"))
        }
        () if error.is_instance_of::<PyOverflowError>(py) => {
            PyValueError::new_err(format!("{name} must be a number of at most 128 bits"))
        }
        // The object's own code raised it.
        () if !error.is_instance_of::<PyTypeError>(py) => error,
        () if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() => {
            PyTypeError::new_err(format!("{name} must be {what}: {}", error.value(py)))
        }
        () => {
            let class = given.get_type().name().map_or_else(|_| "it".into(), |class| class.to_string());
            PyTypeError::new_err(format!("{name} must be {what}, not {class}"))
        }
    }
}

/// Defines a function per name for `from_py_with`, which isn't told the argument's name.
macro_rules! named {
    ($($kind:ident by $extract:ident: $type:ty = $what:literal { $($name:ident)* })*) => {$(
        pub(super) mod $kind {
            use pyo3::prelude::*;

            $(pub(in crate::python) fn $name(given: &Bound<'_, PyAny>) -> PyResult<$type> {
                super::$extract(stringify!($name), given, $what)
            })*
        }
    )*};
}

named! {
    int by number: i128 = "an int" { clock_skew delay key max_channels max_clients max_games mtu overhead players queue rate redundancy relay_bytes_per_second seed tag window }
    optional_int by number: Option<i128> = "an int or None" { second_port client_id key max_datagram max_token_lifetime seed timeout memory file_limit directory_limit }
    number by argument: f64 = "a number" { at bad_loss burst_bytes bytes_per_second countdown delay duplicate duration fraction good_loss jitter latency length lifetime linger loss max_bytes_per_second max_lead min_lead reorder seconds slow_hook tick time to_bad to_good }
    optional_number by argument: Option<f64> = "a number or None" { stalled_timeout }
    truth by argument: bool = "True or False" { adaptive ask_first burst late_joining notify packet_notifications replace_duplicates strict wait }
    text by argument: String = "'polled' or 'thread'" { driver }
    shared by argument: pyo3::Py<crate::python::protocol::Protocol> = "a Protocol" { protocol }
}
