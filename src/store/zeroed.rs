//! Zeroed bytes at one address, which take memory only once they are written.
//!
//! Promises: pages that nobody writes stay with the system, however long the process runs. The allocator promises that
//! only at first: glibc serves large blocks from its heap once a program has freed one of their size, and then it clears
//! every page. A client took 585 KB instead of 258 KB in a process that had closed others.

use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error};

/// Enough alignment for every number in a cell, and no more than every allocation has: for more, the standard library
/// clears all pages itself instead of leaving zeroed ones to the system, and then each takes memory.
const ALIGNMENT: usize = 16;

/// Blocks from this size on get pages of their own, where the system is asked for them.
const PAGES_FROM: usize = 64 * 1024;

#[derive(Debug)]
pub struct Zeroed {
    bytes: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is this value's own, and holds bytes of any value.
#[allow(unsafe_code)]
unsafe impl Send for Zeroed {}
#[allow(unsafe_code)]
unsafe impl Sync for Zeroed {}

#[allow(unsafe_code)] // Vectors can't leave zeroed pages to the system.
impl Zeroed {
    /// Allocates `count` times `size` bytes, at least one.
    pub fn new(size: usize, count: usize) -> Self {
        let bytes = size.saturating_mul(count).clamp(1, isize::MAX as usize - ALIGNMENT);
        let layout = Layout::from_size_align(bytes, ALIGNMENT).unwrap_or(Layout::new::<u64>());
        let bytes = if has_pages(layout) {
            map(layout.size())
        } else {
            // SAFETY: the layout has a size above 0.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let Some(bytes) = bytes else { handle_alloc_error(layout) };
        Zeroed { bytes, layout }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.bytes.as_ptr()
    }

    /// How many bytes there are: without a reference to them, unlike `len`.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

#[allow(unsafe_code)]
impl Deref for Zeroed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: this many bytes are this value's, and initialized.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr(), self.layout.size()) }
    }
}

#[allow(unsafe_code)]
impl DerefMut for Zeroed {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed once.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.layout.size()) }
    }
}

#[allow(unsafe_code)]
impl Drop for Zeroed {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if has_pages(self.layout) {
            // SAFETY: it was mapped with this size.
            unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.layout.size()) };
            return;
        }
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) }
    }
}

fn has_pages(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.size() >= PAGES_FROM
}

/// Maps zeroed pages. None if the system has none left.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the system picks an address where nothing is.
    let pages = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if pages == libc::MAP_FAILED { None } else { NonNull::new(pages.cast()) }
}

/// Other systems' allocators map large blocks.
#[cfg(not(target_os = "linux"))]
fn map(_bytes: usize) -> Option<NonNull<u8>> {
    None
}
