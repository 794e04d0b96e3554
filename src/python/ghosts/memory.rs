//! The memory of a column, one cell a row, which Python views share.
//!
//! Promises: a column never moves, so views stay valid while rows come and go; untouched pages take no
//! memory. What views may have changed is known: [`Memory::take_exported`].
//!
//! Views are written to without Tickwire's knowledge, by NumPy even while other threads run. So cells are
//! copied before they are read, as bytes of any value, and never referenced. Where no lock of the interpreter's keeps
//! threads apart, one may set a field while another sends: what we copy ourselves is copied by atomic words, so that the
//! other has the old number or the new one.

use core::alloc::Layout;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::CStr;
use std::sync::Arc;

use crate::python::prelude::*;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;

/// Enough alignment for every number in a cell.
const ALIGNMENT: usize = 64;

/// A cell for every row there can be.
pub(super) struct Memory {
    cells: NonNull<u8>,
    layout: Layout,
    /// Bytes of a cell.
    size: usize,
    /// How many writable views exist.
    exports: AtomicUsize,
    /// Whether any existed since the last [`Memory::take_exported`].
    exported: AtomicBool,
}

// SAFETY: the memory is this value's own, and only numbers of any value are copied from it and to it.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}
#[allow(unsafe_code)]
unsafe impl Sync for Memory {}

#[allow(unsafe_code)] // Views share the memory, so it can't be a slice.
impl Memory {
    /// Allocates zeroed cells.
    pub(super) fn new(size: usize, capacity: usize) -> Self {
        let bytes = size.saturating_mul(capacity).clamp(1, isize::MAX as usize - ALIGNMENT);
        let layout = Layout::from_size_align(bytes, ALIGNMENT).unwrap_or(Layout::new::<u64>());
        // SAFETY: the layout has a size above 0.
        let cells = unsafe { alloc_zeroed(layout) };
        let Some(cells) = NonNull::new(cells) else { handle_alloc_error(layout) };
        Memory { cells, layout, size, exports: AtomicUsize::new(0), exported: AtomicBool::new(false) }
    }

    /// Bytes of a cell.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    fn start(&self, row: usize, bytes: usize) -> *mut u8 {
        let at = row * self.size;
        assert!(at + bytes <= self.layout.size(), "row {row} is below the capacity");
        self.cells.as_ptr().wrapping_add(at)
    }

    /// Copies the cells that begin at `row` into `to`.
    pub(super) fn read(&self, row: usize, to: &mut [u8]) {
        let mut from = self.start(row, to.len());
        let (words, bytes) = if self.has_words() { to.as_chunks_mut() } else { (&mut [][..], to) };
        for word in words {
            // SAFETY: this many bytes are within the memory, which is this value's while it lives, and aligned. We never
            // copy any of them otherwise.
            let cell = unsafe { AtomicU32::from_ptr(from.cast()) };
            *word = cell.load(Ordering::Relaxed).to_ne_bytes();
            from = from.wrapping_add(word.len());
        }
        for byte in bytes {
            // SAFETY: as above.
            *byte = unsafe { AtomicU8::from_ptr(from) }.load(Ordering::Relaxed);
            from = from.wrapping_add(1);
        }
    }

    /// Overwrites the cells that begin at `row`.
    pub(super) fn write(&self, row: usize, from: &[u8]) {
        let mut to = self.start(row, from.len());
        let (words, bytes) = if self.has_words() { from.as_chunks() } else { (&[][..], from) };
        for word in words {
            // SAFETY: as for reading.
            let cell = unsafe { AtomicU32::from_ptr(to.cast()) };
            cell.store(u32::from_ne_bytes(*word), Ordering::Relaxed);
            to = to.wrapping_add(word.len());
        }
        for byte in bytes {
            // SAFETY: as for reading.
            unsafe { AtomicU8::from_ptr(to) }.store(*byte, Ordering::Relaxed);
            to = to.wrapping_add(1);
        }
    }

    /// Whether cells are whole words, which are copied as such.
    fn has_words(&self) -> bool {
        self.size.is_multiple_of(size_of::<u32>())
    }

    /// Makes `to` a copy of the first `rows` cells.
    pub(super) fn copy_to(&self, to: &mut Vec<u8>, rows: usize) {
        to.resize(rows * self.size, 0);
        self.read(0, to);
    }

    /// Whether views may have written to the cells since the last call.
    pub(super) fn take_exported(&self) -> bool {
        let exported = self.exported.swap(false, Ordering::Relaxed);
        exported || self.exports.load(Ordering::Relaxed) > 0
    }

    /// The address of the cells.
    pub(super) fn address(&self) -> usize {
        self.cells.as_ptr() as usize
    }
}

#[allow(unsafe_code)]
impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and no view is left: each keeps the memory alive.
        unsafe { dealloc(self.cells.as_ptr(), self.layout) }
    }
}

/// The cells of a column from the first row on, for the buffer protocol.
#[pyclass(frozen, module = "tickwire._core")]
pub(super) struct Cells {
    memory: Arc<Memory>,
    writable: bool,
    format: &'static CStr,
    /// Bytes of a number.
    item: usize,
    dimensions: c_int,
    /// Rows, and numbers in a row; the buffer protocol needs them at an address.
    shape: [ffi::Py_ssize_t; 2],
    strides: [ffi::Py_ssize_t; 2],
}

impl Cells {
    /// Views this many rows. A cell is `count` numbers of this format, with a dimension of its own unless
    /// that is 1.
    pub(super) fn new(
        memory: &Arc<Memory>,
        rows: usize,
        writable: bool,
        (format, count): (&'static CStr, Option<usize>),
    ) -> Self {
        let item = memory.size / count.unwrap_or(1).max(1);
        Cells {
            memory: memory.clone(),
            writable,
            format,
            item,
            dimensions: if count.is_some() { 2 } else { 1 },
            shape: [rows as isize, count.unwrap_or(1) as isize],
            strides: [memory.size as isize, item as isize],
        }
    }
}

#[pymethods]
impl Cells {
    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let cells = slf.get();
        let wanted = |flag: c_int| flags & flag == flag;
        if view.is_null() || (wanted(ffi::PyBUF_WRITABLE) && !cells.writable) {
            return Err(PyBufferError::new_err("these cells are read-only"));
        }
        if cells.writable {
            cells.memory.exports.fetch_add(1, Ordering::Relaxed);
            cells.memory.exported.store(true, Ordering::Relaxed);
        }
        let bytes = cells.memory.size * cells.shape[0] as usize;
        // SAFETY: the interpreter gives a Py_buffer to fill. All addresses in it are of memory that stays where it is while
        // `obj` lives, and that keeps it alive until the buffer is released; this many rows are within it. What is const here is
        // only read, by convention.
        unsafe {
            (*view).buf = cells.memory.cells.as_ptr().cast::<c_void>();
            (*view).len = bytes as isize;
            (*view).itemsize = cells.item as isize;
            (*view).readonly = c_int::from(!cells.writable);
            (*view).ndim = cells.dimensions;
            (*view).format = if wanted(ffi::PyBUF_FORMAT) {
                cells.format.as_ptr().cast_mut()
            } else {
                core::ptr::null_mut::<c_char>()
            };
            (*view).shape =
                if wanted(ffi::PyBUF_ND) { cells.shape.as_ptr().cast_mut() } else { core::ptr::null_mut() };
            (*view).strides = if wanted(ffi::PyBUF_STRIDES) {
                cells.strides.as_ptr().cast_mut()
            } else {
                core::ptr::null_mut()
            };
            (*view).suboffsets = core::ptr::null_mut();
            (*view).internal = core::ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    #[allow(unsafe_code)] // As above.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        if self.writable {
            self.memory.exports.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
