//! Turns refusals of the core into Python exceptions, all in one place.
//!
//! The classes are declared in `tickwire/errors.py` and imported with the module: while the interpreter exits, nothing
//! can be imported any more.

use core::fmt::Display;
use std::ffi::CString;
use std::io;
use std::path::Path;

use crate::python::prelude::*;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyOSError;

use crate::transport::SendError;
use crate::transport::chunks::ChunkError;

/// Returns an exception of a class with a formatted sentence.
macro_rules! refuse {
    ($Class:ident, $($sentence:tt)*) => {
        return Err($Class::new_err(format!($($sentence)*)))
    };
}

pub(super) use refuse;

macro_rules! imported {
    ($($class:ident)*) => {
        mod classes {
            $(pyo3::import_exception!(tickwire.errors, $class);)*
        }

        $(pub(crate) use classes::$class;)*

        /// Imports all classes.
        pub(super) fn import_all(py: Python<'_>) {
            $($class::type_object(py);)*
        }
    };
}

imported! {
    BadWorldError ChannelError ChannelFullError ClosedError FieldError FieldTypeError GhostError MessageTooLargeError
    NotConnectedError StaleClientError StreamError SyncTestError UnregisteredMessageError
}

/// Collects the first exception of a loop that must go on; later ones go to `sys.unraisablehook`.
#[derive(Default)]
pub(crate) struct FirstError(Option<PyErr>);

impl FirstError {
    /// `object` is what the hook names beside a later exception, such as the function that raised it.
    pub(crate) fn keep<T>(&mut self, object: &Bound<'_, PyAny>, result: PyResult<T>) {
        let Err(error) = result else { return };
        if self.0.is_none() {
            self.0 = Some(error);
        } else {
            error.write_unraisable(object.py(), Some(object));
        }
    }

    pub(crate) fn result(self) -> PyResult<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A warning at the caller's line.
pub(crate) fn warn<W: PyTypeInfo>(py: Python<'_>, sentence: String) -> PyResult<()> {
    let sentence = CString::new(sentence).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<W>(), &sentence, 1)
}

/// A ValueError with a core error's sentence.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception for a client that is gone.
pub(crate) fn stale_client() -> PyErr {
    StaleClientError::new_err("the client has left: drop its handle when its Disconnected event arrives")
}

/// The exception for a connection that isn't up.
pub(crate) fn not_connected() -> PyErr {
    NotConnectedError::new_err(
        "the client is not connected: wait for its Connected event, or check disconnect_reason",
    )
}

/// The exception for an endpoint that was closed.
pub(crate) fn closed_error(kind: &str) -> PyErr {
    ClosedError::new_err(format!("the {kind} is closed: make a new one to continue"))
}

/// The exception for a message that a channel refuses.
pub(crate) fn channel_error(class: &str, channel: usize, error: &SendError) -> PyErr {
    let sentence = format!("{class} on channel {channel}: {error}");
    match error {
        SendError::Full { .. } | SendError::TickFull { .. } => ChannelFullError::new_err(sentence),
        SendError::TooLarge { .. } | SendError::Packet { .. } | SendError::Block { .. } => {
            MessageTooLargeError::new_err(sentence)
        }
        SendError::NoChannel { .. } => ChannelError::new_err(error.to_string()),
        SendError::NoKey { .. }
        | SendError::WrongKind
        | SendError::WrongType { .. }
        | SendError::BlocksDisabled => ChannelError::new_err(sentence),
    }
}

/// The exception for a chunk that a connection refuses.
pub(crate) fn chunk_error(label: &str, error: &ChunkError) -> PyErr {
    let sentence = format!("chunk {label:?}: {error}");
    match error {
        ChunkError::Full => ChannelFullError::new_err(sentence),
        ChunkError::TooLarge { .. } | ChunkError::Burst { .. } => MessageTooLargeError::new_err(sentence),
        ChunkError::Label { .. } => value_error(sentence),
        ChunkError::NoChannel => ChannelError::new_err(error.to_string()),
    }
}

/// An OSError of the fitting class, with errno and file.
pub(crate) fn file_error(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    let described = || -> PyResult<PyErr> {
        let Some(number) = error.raw_os_error() else {
            return Ok(PyOSError::new_err(format!("{error}: {}", path.display())));
        };
        Ok(PyOSError::new_err((number, error_text(py, number)?, path.as_os_str().to_owned())))
    };
    described().unwrap_or_else(|error| error)
}

fn error_text(py: Python<'_>, number: i32) -> PyResult<String> {
    py.import("os")?.call_method1("strerror", (number,))?.extract()
}

/// An OSError with errno and the address.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, address: SocketAddr) -> PyErr {
    let described = || -> PyResult<PyErr> {
        let number = match error.raw_os_error() {
            Some(number) => number,
            // A virtual network has no errno of its own.
            None if error.kind() == io::ErrorKind::AddrInUse => {
                py.import("errno")?.getattr("EADDRINUSE")?.extract()?
            }
            None => return Ok(PyOSError::new_err(format!("{error}: {address}"))),
        };
        let text = error_text(py, number)?;
        Ok(PyOSError::new_err((number, format!("{text}: {address}"))))
    };
    described().unwrap_or_else(|error| error)
}
