//! Arguments of a wrong type: the error sentence itself names them. PyO3 names them in a note, which only
//! tracebacks show.

use crate::python::prelude::*;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyUnicodeEncodeError;

/// Extracts an argument; `what` says in words what it must be.
pub(super) fn argument<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Object<'py>,
    what: &str,
) -> PyResult<T> {
    given.extract().map_err(|error: T::Error| wrong(name, given, what, error.into()))
}

/// [`argument`] for numbers, which refuses True and False.
pub(super) fn number<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Object<'py>,
    what: &str,
) -> PyResult<T> {
    if given.is_instance_of::<PyBool>() {
        refuse!(PyTypeError, "{name} must be {what}, not bool");
    }
    argument(name, given, what)
}

/// Replaces the error that an argument's conversion raised.
#[cold]
pub(super) fn wrong(name: &str, given: &Object<'_>, what: &str, error: PyErr) -> PyErr {
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
        () => PyTypeError::new_err(format!("{name} must be {what}, not {}", class_name(given))),
    }
}

/// The name of an object's class, for errors.
pub(super) fn class_name(object: &Object<'_>) -> String {
    name_of(&object.get_type())
}

/// The name of a class, for errors.
pub(super) fn name_of(class: &Bound<'_, PyType>) -> String {
    class.name().map_or_else(|_| "it".into(), |name| name.to_string())
}

/// The representation of an object, for errors.
pub(super) fn repr_of(object: &Object<'_>) -> String {
    object.repr().map_or_else(|_| "it".into(), |text| text.to_string())
}

/// The arguments of `send` and `broadcast`.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a, 'py> {
    /// A message or a batch.
    pub(super) message: &'a Object<'py>,
    pub(super) channel: Option<&'a Object<'py>>,
    pub(super) key: Option<&'a Object<'py>>,
    pub(super) tag: Option<&'a Object<'py>>,
    pub(super) notify: bool,
}
