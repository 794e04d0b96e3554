//! The memory of a column, one cell a row, which views outside share.
//!
//! Promises: a column never moves, so views stay valid while rows come and go; untouched pages take no
//! memory. What views may have changed is known: [`Cells::take_exported`].
//!
//! Views are written to without Tickwire's knowledge, by NumPy even while other threads run. So cells are
//! copied before they are read, as bytes of any value, and never referenced. Where threads run at the same time, one may set
//! a field while another sends: what we copy ourselves is copied by atomic words of up to 8 bytes, so that the other has the
//! old number or the new one.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::zeroed::Zeroed;

/// Copies words of cells out of the memory, from a pointer on.
macro_rules! load {
    ($word:ty, $from:expr, $to:expr) => {
        for (i, word) in $to.as_chunks_mut().0.iter_mut().enumerate() {
            let from = $from.wrapping_add(i * size_of::<$word>()).cast();
            // SAFETY: the words are within the memory, which lives as long as its `Cells`, and aligned, as the memory and
            // each row are. We copy a column by words of one size only.
            *word = unsafe { <$word>::from_ptr(from) }.load(Ordering::Relaxed).to_ne_bytes();
        }
    };
}

/// Copies words of cells into the memory, from a pointer on.
macro_rules! store {
    ($atomic:ty, $word:ty, $to:expr, $from:expr) => {
        for (i, word) in $from.as_chunks().0.iter().enumerate() {
            let to = $to.wrapping_add(i * size_of::<$word>()).cast();
            // SAFETY: as for loading.
            unsafe { <$atomic>::from_ptr(to) }.store(<$word>::from_ne_bytes(*word), Ordering::Relaxed);
        }
    };
}

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
        let from = self.start(row, to.len());
        match self.word() {
            8 => load!(AtomicU64, from, to),
            4 => load!(AtomicU32, from, to),
            _ => load!(AtomicU8, from, to),
        }
    }

    /// Overwrites the cells that begin at `row`.
    pub fn write(&self, row: usize, from: &[u8]) {
        let to = self.start(row, from.len());
        match self.word() {
            8 => store!(AtomicU64, u64, to, from),
            4 => store!(AtomicU32, u32, to, from),
            _ => store!(AtomicU8, u8, to, from),
        }
    }

    /// Bytes of the words that cells are copied by.
    fn word(&self) -> usize {
        [8, 4].into_iter().find(|word| self.size.is_multiple_of(*word)).unwrap_or(1)
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
