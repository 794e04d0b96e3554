//! The one place where what the core refuses becomes a Python exception.
//!
//! The classes are declared in `tickwire/errors.py`; they are imported when the first of them is raised.

use core::fmt::Display;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

mod classes {
    use pyo3::import_exception;

    import_exception!(tickwire.errors, ChannelError);
    import_exception!(tickwire.errors, ChannelFullError);
    import_exception!(tickwire.errors, ClosedError);
    import_exception!(tickwire.errors, FieldError);
    import_exception!(tickwire.errors, FieldTypeError);
    import_exception!(tickwire.errors, MessageTooLargeError);
    import_exception!(tickwire.errors, NotConnectedError);
    import_exception!(tickwire.errors, StaleClientError);
    import_exception!(tickwire.errors, StreamError);
    import_exception!(tickwire.errors, UnregisteredMessageError);
}

pub(crate) use classes::*;

/// ValueError with the sentence of a core error.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
