//! The memory of a column, one cell a row, which views outside share.
//!
//! Promises: a column never moves, so views stay valid while rows come and go; untouched pages take no
//! memory. What views may have changed is known: [`Cells::take_exported`].
//!
//! Views are written to without Tickwire's knowledge, by NumPy even while other threads run. So cells are
//! copied before they are read, as bytes of any value, and never referenced. Where no lock of the interpreter's keeps
//! threads apart, one may set a field while another sends: what we copy ourselves is copied by atomic words, so that the
//! other has the old number or the new one.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use super::zeroed::Zeroed;

/// A cell for every row there can be.
#[derive(Debug)]
pub struct Cells {
    cells: Zeroed,
    /// Bytes of a cell.
    size: usize,
    /// How many writable views exist.
    exports: AtomicUsize,
    /// Whether any existed since the last [`Cells::take_exported`].
    exported: AtomicBool,
}

#[allow(unsafe_code)] // Views share the memory, so it can't be a slice.
impl Cells {
    /// Allocates a zeroed cell for each row.
    pub fn new(size: usize, capacity: usize) -> Self {
        let cells = Zeroed::new(size, capacity);
        Cells { cells, size, exports: AtomicUsize::new(0), exported: AtomicBool::new(false) }
    }

    /// Bytes of a cell.
    pub fn size(&self) -> usize {
        self.size
    }

    fn start(&self, row: usize, bytes: usize) -> *mut u8 {
        let at = row * self.size;
        assert!(at + bytes <= self.cells.size(), "row {row} is below the capacity");
        self.cells.as_ptr().wrapping_add(at)
    }

    /// Copies the cells that begin at `row` into `to`.
    pub fn read(&self, row: usize, to: &mut [u8]) {
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
    pub fn write(&self, row: usize, from: &[u8]) {
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
    pub fn copy_to(&self, to: &mut Vec<u8>, rows: usize) {
        to.resize(rows * self.size, 0);
        self.read(0, to);
    }

    /// Whether views may have written to the cells since the last call.
    pub fn take_exported(&self) -> bool {
        let exported = self.exported.swap(false, Ordering::Relaxed);
        exported || self.exports.load(Ordering::Relaxed) > 0
    }

    /// The address of the cells.
    pub fn address(&self) -> usize {
        self.cells.as_ptr() as usize
    }

    /// Notes that a writable view begins or ends.
    pub fn note_writer(&self, begins: bool) {
        if begins {
            self.exports.fetch_add(1, Ordering::Relaxed);
            self.exported.store(true, Ordering::Relaxed);
        } else {
            self.exports.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
