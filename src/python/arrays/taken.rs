//! Rows of the game, on their way down.

use core::ffi::c_int;
use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use super::MOST_BYTES;
use crate::python::errors::FieldError;
use crate::python::schema::Schema;
use crate::python::value::{bound, to_python};
use crate::wire::rows::{RowError, Rows};
use crate::wire::{Value, ValueError};

/// A buffer of any format and shape, for copying out of it.
struct Raw(Box<ffi::Py_buffer>);

#[allow(unsafe_code)] // The buffer protocol hands over addresses.
impl Raw {
    /// # Errors
    /// When the object has no buffer of this kind.
    fn get(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut raw = Raw(Box::new(ffi::Py_buffer::new()));
        // SAFETY: the interpreter fills in the Py_buffer, which stays where it is until it is released on drop; when
        // it fails, it leaves `obj` null, and releasing does nothing.
        match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *raw.0, flags) } {
            0 => Ok(raw),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Its bytes.
    fn len(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    fn dimensions(&self) -> c_int {
        self.0.ndim
    }

    /// Items along its one dimension.
    fn items(&self) -> usize {
        // SAFETY: asked for with its shape, a buffer of a dimension has one extent at this address.
        let extent = unsafe { self.0.shape.as_ref() }.copied();
        extent.and_then(|extent| usize::try_from(extent).ok()).unwrap_or(0)
    }

    fn format(&self) -> &CStr {
        if self.0.format.is_null() {
            return c"B";
        }
        // SAFETY: a NUL-terminated text that lives as long as the buffer.
        unsafe { CStr::from_ptr(self.0.format) }
    }

    /// Appends a copy of its bytes, item by item where they have gaps. The copy is made by the interpreter: when other
    /// threads write to the memory meanwhile, it has some of the old bytes and some of the new.
    fn append_to(&self, py: Python<'_>, out: &mut Vec<u8>) -> PyResult<()> {
        let (start, len) = (out.len(), self.len());
        out.resize(start + len, 0);
        if len == 0 {
            return Ok(());
        }
        let to = out[start..].as_mut_ptr();
        // SAFETY: `to` has room for `len` bytes, and the buffer is held.
        match unsafe { ffi::PyBuffer_ToContiguous(to.cast(), &raw const *self.0, self.0.len, b'C' as _) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

#[allow(unsafe_code)]
impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: it was filled in by the interpreter, to which this thread is attached: a `Raw` never leaves a call.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
    }
}

/// Copies rows of a class and their arena.
pub(super) fn take(
    schema: &Bound<'_, Schema>,
    rows: &Bound<'_, PyAny>,
    arena: Option<&Bound<'_, PyAny>>,
) -> PyResult<Rows> {
    let py = rows.py();
    let (name, core) = (schema.get().name(), &schema.get().core);
    let (raw, count) = if let Ok(dtype) = rows.getattr(intern!(py, "dtype")) {
        let expected = schema.get().rows.dtype(py, core)?;
        if !dtype.is(&expected) && !dtype.eq(&expected)? {
            return Err(PyTypeError::new_err(format!(
                "rows must be of tickwire.dtype({name}), which is {expected}, not of {dtype}"
            )));
        }
        let raw = Raw::get(rows, ffi::PyBUF_STRIDED_RO)?;
        let count = raw.items();
        (raw, count)
    } else {
        let Ok(raw) = Raw::get(rows, ffi::PyBUF_FULL_RO) else {
            let class = rows.get_type().name()?;
            return Err(PyTypeError::new_err(format!("rows must be an array or a buffer, not {class}")));
        };
        let count = count_of(&raw, name, core)?;
        (raw, count)
    };
    if raw.dimensions() != 1 {
        return Err(PyValueError::new_err(format!(
            "rows must have 1 dimension, a row for each message, not {}",
            raw.dimensions()
        )));
    }
    let behind = arena.map(|arena| Raw::get(arena, ffi::PyBUF_STRIDED_RO)).transpose()?;
    let arena_bytes = behind.as_ref().map_or(0, Raw::len);
    for (what, bytes) in [("rows", raw.len()), ("arena", arena_bytes)] {
        if bytes > MOST_BYTES {
            return Err(PyValueError::new_err(format!(
                "{what} must be at most {MOST_BYTES} bytes, not {bytes}"
            )));
        }
    }
    let mut bytes = Vec::with_capacity(arena_bytes + raw.len());
    if let Some(behind) = behind {
        behind.append_to(py, &mut bytes)?;
    }
    raw.append_to(py, &mut bytes)?;
    Ok(Rows::new(bytes, arena_bytes, count))
}

/// How many rows a buffer holds that is no array: it has the format of rows, or is bytes.
fn count_of(raw: &Raw, name: &str, core: &crate::wire::Schema) -> PyResult<usize> {
    let size = core.row_size();
    let format = raw.format().to_string_lossy();
    if format == core.row_format() {
        return Ok(raw.items());
    }
    if !matches!(&*format, "B" | "b" | "c") {
        return Err(PyTypeError::new_err(format!(
            "rows of {name} must be bytes or of format {:?}, not {format:?}",
            core.row_format()
        )));
    }
    if !raw.len().is_multiple_of(size) {
        return Err(PyValueError::new_err(format!(
            "rows of {name} take {size} bytes each, and {} bytes are no whole number of them",
            raw.len()
        )));
    }
    Ok(raw.len() / size)
}

/// The exception for a row that can't be written, naming class, field, row, value and bound.
#[cold]
pub(super) fn raise(py: Python<'_>, schema: &Schema, rows: &Rows, refused: &RowError) -> PyErr {
    let field = format!("{} of row {}", schema.field_name(refused.field), refused.row);
    let value = match refused.error {
        ValueError::OutOfRange { value, .. } | ValueError::NotAMember { value } => Some(Value::Int128(value)),
        ValueError::AboveRange { value, .. } => Some(Value::Uint128(value)),
        ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value } => {
            Some(Value::Float(value))
        }
        ValueError::OutsideArena { .. } => None,
        _ => schema.core.load_one(rows, refused.row, refused.field),
    };
    let value = match (&refused.error, value) {
        (ValueError::OutsideArena { offset, bytes, .. }, _) => {
            (*offset, *bytes).into_pyobject(py).map(|pair| pair.into_any().unbind())
        }
        (_, Some(value)) => to_python(py, value).map(Bound::unbind),
        (_, None) => Ok(py.None()),
    };
    match value {
        Ok(value) => FieldError::new_err((schema.name().to_owned(), field, value, bound(&refused.error))),
        Err(error) => error,
    }
}
