//! Buffers from the game, copied: other threads that write to them meanwhile change nothing that was checked.
//!
//! Promises: only the interpreter reads addresses; numbers have the requested type and byte order. PyO3's own buffers
//! (0.30) accept numbers of the other byte order.

use crate::python::prelude::*;

/// A buffer of any format and shape, for copying out of it.
pub(super) struct Raw(Box<ffi::Py_buffer>);

#[allow(unsafe_code)] // The buffer protocol hands over addresses.
impl Raw {
    /// # Errors
    /// The object has no buffer of this kind.
    pub(super) fn get(object: &Object<'_>, flags: c_int) -> PyResult<Self> {
        let mut raw = Raw(Box::new(ffi::Py_buffer::new()));
        // SAFETY: the interpreter fills in the Py_buffer, which stays where it is until it is released on drop; when
        // it fails, it leaves `obj` null, and releasing does nothing.
        match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *raw.0, flags) } {
            0 => Ok(raw),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    /// Bytes of one item.
    pub(super) fn item_size(&self) -> usize {
        usize::try_from(self.0.itemsize).unwrap_or(0)
    }

    /// The address of its bytes.
    pub(super) fn address(&self) -> usize {
        self.0.buf as usize
    }

    /// The length of each dimension.
    #[allow(unsafe_code)] // The interpreter's array.
    pub(super) fn shape(&self) -> &[ffi::Py_ssize_t] {
        let count = usize::try_from(self.0.ndim).unwrap_or(0);
        if self.0.shape.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: requested with its shape, a buffer has this many extents while it is held.
        unsafe { core::slice::from_raw_parts(self.0.shape, count) }
    }

    pub(super) fn dimensions(&self) -> c_int {
        self.0.ndim
    }

    /// Items along its one dimension.
    pub(super) fn items(&self) -> usize {
        // SAFETY: requested with its shape, a buffer of one dimension has one extent at this address.
        let extent = unsafe { self.0.shape.as_ref() }.copied();
        extent.and_then(|extent| usize::try_from(extent).ok()).unwrap_or(0)
    }

    pub(super) fn format(&self) -> &CStr {
        if self.0.format.is_null() {
            return c"B";
        }
        // SAFETY: a NUL-terminated text that lives as long as the buffer.
        unsafe { CStr::from_ptr(self.0.format) }
    }

    /// Whether its bytes are addresses of Python objects. Names of fields stand between colons in the format.
    pub(super) fn has_objects(&self) -> bool {
        self.format().to_bytes().split(|byte| *byte == b':').step_by(2).any(|codes| codes.contains(&b'O'))
    }

    /// Appends a copy of its bytes, item by item if they have gaps. The interpreter copies: if other threads write
    /// meanwhile, the copy is a mixture of old and new bytes.
    pub(super) fn append_to(&self, py: Python<'_>, out: &mut Vec<u8>) -> PyResult<()> {
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

    /// The code of its numbers in Python's `struct`; None if they have another byte order, or the items aren't numbers.
    pub(super) fn code(&self) -> Option<u8> {
        match self.format().to_bytes() {
            [code] | [b'@' | b'=', code] => Some(*code),
            [b'<', code] if cfg!(target_endian = "little") => Some(*code),
            [b'>' | b'!', code] if cfg!(target_endian = "big") => Some(*code),
            _ => None,
        }
    }

    /// A copy of its numbers in any shape; None if they have another type or byte order.
    pub(super) fn numbers<T: Number>(&self, py: Python<'_>) -> PyResult<Option<Vec<T>>> {
        let is_it = self.code().is_some_and(|code| T::CODES.contains(&code));
        if !is_it || self.item_size() != size_of::<T>() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.append_to(py, &mut bytes)?;
        Ok(Some(bytes.chunks_exact(size_of::<T>()).filter_map(T::of).collect()))
    }
}

#[allow(unsafe_code)]
impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the interpreter filled it in, and this thread is attached: a `Raw` never leaves a call.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
    }
}

/// Copies the numbers of a buffer of one dimension. `what` says in errors what else `name` may be.
pub(super) fn column<T: Number>(name: &str, given: &Object<'_>, what: &str) -> PyResult<Vec<T>> {
    let other = match Raw::get(given, ffi::PyBUF_FULL_RO) {
        Err(_) => class_name(given),
        Ok(raw) => match raw.numbers(given.py())? {
            Some(numbers) if raw.dimensions() == 1 => return Ok(numbers),
            Some(_) => refuse!(PyValueError, "{name} must have 1 dimension, not {}", raw.dimensions()),
            None => format!("one of format '{}'", raw.format().to_string_lossy()),
        },
    };
    refuse!(PyTypeError, "{name} must be {what}, not {other}")
}

/// A type of numbers that buffers hold.
pub(super) trait Number: Sized {
    /// Its codes in Python's `struct`, whose meaning depends on the item size too.
    const CODES: &[u8];

    /// The number with these bytes in memory.
    fn of(bytes: &[u8]) -> Option<Self>;
}

macro_rules! number {
    ($Type:ty, $codes:expr) => {
        impl Number for $Type {
            const CODES: &[u8] = $codes;

            fn of(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().copied().map(Self::from_ne_bytes)
            }
        }
    };
}

number!(u8, b"?Bbc");
number!(i64, b"ql");
number!(u32, b"IL");
number!(u64, b"QL");
number!(f32, b"f");
