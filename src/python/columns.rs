//! Memory handed to Python without copying, by the buffer protocol: memoryviews that ``numpy.asarray`` takes as
//! they are. A view keeps its memory alive. Only views of ghosts' columns on servers are writable; nothing
//! changes what others show.

use core::ffi::c_char;
use std::borrow::Cow;

use crate::python::prelude::*;
use pyo3::exceptions::PyBufferError;

/// The owner of memory that views show. It stays where it is while its owner lives.
pub(super) trait Keeper: Send + Sync {
    /// Notes that a writable view begins or ends.
    fn note_writer(&self, _begins: bool) {}

    /// The bytes that the shown cells point into, if they do.
    fn arena(&self) -> Option<Layout> {
        None
    }
}

/// A type whose values are the entries of a column.
pub(super) trait ColumnEntry {
    /// In the terms of Python's `struct`.
    const FORMAT: &CStr;
}

macro_rules! entries {
    ($($Type:ty = $format:literal),*) => {
        $(impl ColumnEntry for $Type {
            const FORMAT: &CStr = $format;
        })*
    };
}

entries!(bool = c"?", u8 = c"B", u16 = c"H", u32 = c"I", u64 = c"Q", f32 = c"f");

/// Where the entries of a view lie, and how to read them.
pub(super) struct Layout {
    pub(super) address: usize,
    /// Bytes of an entry.
    pub(super) item: usize,
    pub(super) format: Cow<'static, CStr>,
    pub(super) dimensions: c_int,
    /// The buffer protocol needs both at an address.
    pub(super) shape: [ffi::Py_ssize_t; 2],
    pub(super) strides: [ffi::Py_ssize_t; 2],
}

impl Layout {
    pub(super) fn of<T: ColumnEntry>(entries: &[T]) -> Self {
        let (address, item) = (entries.as_ptr() as usize, size_of::<T>());
        Layout::rows(address, entries.len(), item, item, Cow::Borrowed(T::FORMAT))
    }

    /// One entry in each of `count` rows.
    pub(super) fn rows(
        address: usize,
        count: usize,
        stride: usize,
        item: usize,
        format: Cow<'static, CStr>,
    ) -> Self {
        let (shape, strides) = ([count as isize, 1], [stride as isize, item as isize]);
        Layout { address, item, format, dimensions: 1, shape, strides }
    }

    /// Fills in the parts of the view that the interpreter asked for.
    ///
    /// # Safety
    /// `view` is null or the interpreter's. All entries lie in memory that `owner` keeps where it is, and this layout is
    /// `owner`'s.
    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    pub(super) unsafe fn fill(
        &self,
        owner: Object<'_>,
        writable: bool,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let wanted = |flag: c_int| flags & flag == flag;
        if view.is_null() || (wanted(ffi::PyBUF_WRITABLE) && !writable) {
            return Err(PyBufferError::new_err("the columns are read-only"));
        }
        // The flags that require contiguous entries, without the strides flag that each of them includes.
        let without_gaps = (ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_F_CONTIGUOUS | ffi::PyBUF_ANY_CONTIGUOUS)
            & !ffi::PyBUF_STRIDES;
        let has_gaps = self.dimensions == 1 && self.strides[0] != self.item as isize;
        if has_gaps && (!wanted(ffi::PyBUF_STRIDES) || flags & without_gaps != 0) {
            return Err(PyBufferError::new_err("a column of rows has gaps: use its tolist()"));
        }
        let entries: isize = self.shape[..self.dimensions as usize].iter().product();
        let format = self.format.as_ptr().cast_mut();
        let (shape, strides) = (self.shape.as_ptr().cast_mut(), self.strides.as_ptr().cast_mut());
        // SAFETY: the interpreter gives a Py_buffer to fill. All addresses in it are of memory that stays where it is while
        // `obj` lives, and that keeps it alive until the buffer is released. What is const here is only read, by convention.
        unsafe {
            (*view).buf = self.address as *mut _;
            (*view).len = entries * self.item as isize;
            (*view).itemsize = self.item as isize;
            (*view).readonly = c_int::from(!writable);
            (*view).ndim = self.dimensions;
            (*view).format = if wanted(ffi::PyBUF_FORMAT) { format } else { core::ptr::null_mut::<c_char>() };
            (*view).shape = if wanted(ffi::PyBUF_ND) { shape } else { core::ptr::null_mut() };
            (*view).strides = if wanted(ffi::PyBUF_STRIDES) { strides } else { core::ptr::null_mut() };
            (*view).suboffsets = core::ptr::null_mut();
            (*view).internal = core::ptr::null_mut();
            (*view).obj = owner.into_ptr();
        }
        Ok(())
    }
}

/// A column, for the buffer protocol.
#[pyclass(frozen, name = "Column", module = "tickwire._core")]
pub(super) struct ColumnView {
    keeper: Arc<dyn Keeper>,
    layout: Layout,
    writable: bool,
}

/// A read-only view of memory that `keeper` owns.
pub(super) fn view<'py>(
    py: Python<'py>,
    keeper: Arc<dyn Keeper>,
    layout: Layout,
) -> PyResult<Bound<'py, PyMemoryView>> {
    view_with(py, keeper, layout, false)
}

/// A view of memory that `keeper` owns.
pub(super) fn view_with<'py>(
    py: Python<'py>,
    keeper: Arc<dyn Keeper>,
    layout: Layout,
    writable: bool,
) -> PyResult<Bound<'py, PyMemoryView>> {
    PyMemoryView::from(Bound::new(py, ColumnView { keeper, layout, writable })?.as_any())
}

impl ColumnView {
    /// The bytes that the cells of these rows point into.
    pub(super) fn arena<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let arena = self.keeper.arena();
        let layout = arena.ok_or_else(|| PyValueError::new_err("this column points to nothing"))?;
        view(py, self.keeper.clone(), layout)
    }
}

#[pymethods]
impl ColumnView {
    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (column, owner) = (slf.get(), slf.clone().into_any());
        // SAFETY: the interpreter gives a Py_buffer or null. The entries are the keeper's, which the column keeps alive.
        unsafe { column.layout.fill(owner, column.writable, view, flags) }?;
        if column.writable {
            column.keeper.note_writer(true);
        }
        Ok(())
    }

    #[allow(unsafe_code)] // As above.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        if self.writable {
            self.keeper.note_writer(false);
        }
    }
}

/// Defines a table, and the class whose attributes are its columns, in this order.
macro_rules! columns_class {
    ($Class:ident of $Table:ident { $($name:ident: $Entry:ty,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $Table {
            $($name: Vec<$Entry>,)*
        }

        impl $crate::python::columns::Keeper for $Table {}

        impl $Table {
            #[allow(clippy::too_many_arguments)] // A row.
            fn push_row(&mut self, $($name: $Entry),*) {
                $(self.$name.push($name);)*
            }
        }

        impl FromIterator<($($Entry,)*)> for $Table {
            fn from_iter<I: IntoIterator<Item = ($($Entry,)*)>>(rows: I) -> Self {
                let mut table = Self::default();
                rows.into_iter().for_each(|($($name,)*)| table.push_row($($name),*));
                table
            }
        }

        #[pyclass(frozen, module = "tickwire.columns")]
        pub(crate) struct $Class(pub(super) std::sync::Arc<$Table>);

        #[pymethods]
        impl $Class {
            $(
                #[getter]
                fn $name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyMemoryView>> {
                    let layout = $crate::python::columns::Layout::of(&self.0.$name);
                    $crate::python::columns::view(py, self.0.clone(), layout)
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
