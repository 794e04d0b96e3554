//! Columns handed to Python without copying: each is a read-only memoryview that ``numpy.asarray`` takes as
//! it is. A view keeps its columns alive, and nothing changes them.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::sync::Arc;

use crate::python::prelude::*;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::types::PyMemoryView;

/// Columns of equal length, by index.
pub(super) trait Columns: Send + Sync {
    /// The column of this index, at the same memory each time.
    fn column(&self, index: usize) -> Slice<'_>;

    /// The index of the column that the cells of this one point into, if they do.
    fn arena(&self) -> Option<usize> {
        None
    }
}

/// The entries of one column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slice<'a> {
    Bool(&'a [bool]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    /// Rows of several fields.
    Rows {
        rows: &'a [u8],
        /// Bytes of a row.
        size: usize,
        count: usize,
        format: &'a CStr,
    },
}

impl<'a> Slice<'a> {
    /// Address, count, bytes of an entry, and format in the terms of Python's `struct`.
    fn parts(self) -> (*const c_void, usize, usize, &'a CStr) {
        match self {
            Slice::Bool(entries) => (entries.as_ptr().cast(), entries.len(), 1, c"?"),
            Slice::U8(entries) => (entries.as_ptr().cast(), entries.len(), 1, c"B"),
            Slice::U16(entries) => (entries.as_ptr().cast(), entries.len(), 2, c"H"),
            Slice::U32(entries) => (entries.as_ptr().cast(), entries.len(), 4, c"I"),
            Slice::U64(entries) => (entries.as_ptr().cast(), entries.len(), 8, c"Q"),
            Slice::F32(entries) => (entries.as_ptr().cast(), entries.len(), 4, c"f"),
            Slice::Rows { rows, size, count, format } => (rows.as_ptr().cast(), count, size, format),
        }
    }
}

/// One column, for the buffer protocol.
#[pyclass(frozen, name = "Column", module = "tickwire._core")]
pub(super) struct ColumnView {
    owner: Arc<dyn Columns>,
    index: usize,
    /// How many entries; the buffer protocol needs it at an address.
    shape: [ffi::Py_ssize_t; 1],
    strides: [ffi::Py_ssize_t; 1],
}

/// A view of a column.
pub(super) fn view<'py>(
    py: Python<'py>,
    owner: Arc<dyn Columns>,
    index: usize,
) -> PyResult<Bound<'py, PyMemoryView>> {
    let (_, entries, size, _) = owner.column(index).parts();
    let column = ColumnView { shape: [entries as isize], strides: [size as isize], owner, index };
    PyMemoryView::from(Bound::new(py, column)?.as_any())
}

impl ColumnView {
    /// The bytes that the cells of these rows point into.
    pub(super) fn arena<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let index =
            self.owner.arena().ok_or_else(|| PyValueError::new_err("this column points to nothing"))?;
        view(py, self.owner.clone(), index)
    }
}

#[pymethods]
impl ColumnView {
    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let column = slf.get();
        let (buf, entries, size, format) = column.owner.column(column.index).parts();
        let parts = Parts {
            buf,
            len: entries * size,
            size,
            format,
            shape: &raw const column.shape[0],
            strides: &raw const column.strides[0],
        };
        let owner = slf.clone().into_any();
        // SAFETY: the interpreter gives a Py_buffer or null. What the parts point to is the column's, which nothing changes
        // or moves while it is alive.
        unsafe { parts.fill(owner, view, flags) }
    }
}

/// What describes a buffer of one dimension.
pub(super) struct Parts<'a> {
    pub(super) buf: *const c_void,
    /// Bytes of all entries.
    pub(super) len: usize,
    /// Bytes of an entry.
    pub(super) size: usize,
    pub(super) format: &'a CStr,
    pub(super) shape: *const ffi::Py_ssize_t,
    pub(super) strides: *const ffi::Py_ssize_t,
}

impl Parts<'_> {
    /// Fills in the parts of the view that the interpreter asked for.
    ///
    /// # Safety
    /// `view` is null or the interpreter's. All that the parts point to stays unchanged while `owner` is
    /// alive; if the stride isn't `size`, every entry lies in memory that `owner` keeps.
    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    pub(super) unsafe fn fill(
        self,
        owner: Bound<'_, PyAny>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() || flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the columns are read-only"));
        }
        let Parts { buf, len, size, format, shape, strides } = self;
        let wanted = |flag: c_int| flags & flag == flag;
        // SAFETY: the interpreter gives a Py_buffer to fill. All addresses in it are of memory that nothing
        // changes or moves while the column is alive, and `obj` keeps it alive until the buffer is released. What
        // is const here is only read: the buffer is read-only, and format, shape and strides are by convention.
        unsafe {
            (*view).buf = buf.cast_mut();
            (*view).len = len as isize;
            (*view).itemsize = size as isize;
            (*view).readonly = 1;
            (*view).ndim = 1;
            (*view).format = if wanted(ffi::PyBUF_FORMAT) {
                format.as_ptr().cast_mut()
            } else {
                core::ptr::null_mut::<c_char>()
            };
            (*view).shape = if wanted(ffi::PyBUF_ND) { shape.cast_mut() } else { core::ptr::null_mut() };
            (*view).strides =
                if wanted(ffi::PyBUF_STRIDES) { strides.cast_mut() } else { core::ptr::null_mut() };
            (*view).suboffsets = core::ptr::null_mut();
            (*view).internal = core::ptr::null_mut();
            (*view).obj = owner.into_ptr();
        }
        Ok(())
    }
}

/// Defines a class whose attributes are the columns of `$Core`, in this order.
macro_rules! columns_class {
    ($Class:ident of $Core:ty { $($name:ident: $kind:ident,)* }) => {
        #[pyclass(frozen, module = "tickwire.columns")]
        pub(crate) struct $Class(pub(super) std::sync::Arc<$Core>);

        impl $crate::python::columns::Columns for $Core {
            fn column(&self, index: usize) -> $crate::python::columns::Slice<'_> {
                [$($crate::python::columns::Slice::$kind(&self.$name),)*][index]
            }
        }

        impl $Class {
            const NAMES: &[&str] = &[$(stringify!($name),)*];

            fn view<'py>(
                &self,
                py: Python<'py>,
                name: &str,
            ) -> PyResult<Bound<'py, pyo3::types::PyMemoryView>> {
                let index = Self::NAMES.iter().position(|column| *column == name).unwrap_or_default();
                $crate::python::columns::view(py, self.0.clone(), index)
            }
        }

        #[pymethods]
        impl $Class {
            $(
                #[getter]
                fn $name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyMemoryView>> {
                    self.view(py, stringify!($name))
                }
            )*

            fn __len__(&self) -> usize {
                self.0.slot.len()
            }

            fn __repr__(&self) -> String {
                format!("<{} of {}>", stringify!($Class), self.__len__())
            }
        }
    };
}

pub(super) use columns_class;
