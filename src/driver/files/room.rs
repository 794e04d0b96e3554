//! What the files of a directory take together.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kept::{Key, KnownFiles, Print};

/// Files in a directory, partial files included: scanning all of them takes some 20 ms.
pub(super) const MAX_FILES: usize = 16_384;

/// Whether a file takes no more of the disk than what was written to it.
pub(super) const HAS_HOLES: bool = cfg!(unix);

/// The totals of a directory, and the limit of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) max_bytes: u64,
}

/// The place in a directory for one file.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) tally: Arc<Mutex<Tally>>,
    pub(super) bytes: u64,
    pub(super) known: KnownFiles,
    pub(super) key: Key,
}

impl Room {
    /// The file is whole, under this name.
    pub(super) fn note_whole(&self, path: &Path) {
        self.known.note(self.key, Print::of(path, self.bytes), true);
    }

    /// Whether there is room for this many bytes that arrived, in a file that is new or not.
    pub(super) fn has_room(&self, is_new: bool, bytes: usize) -> bool {
        let bytes = match (HAS_HOLES, is_new) {
            (true, _) => bytes as u64,
            (false, true) => self.bytes,
            (false, false) => 0,
        };
        lock(&self.tally).fits(usize::from(is_new), bytes)
    }

    /// Takes the place of a partial file.
    pub(super) fn take_file(&self) -> io::Result<()> {
        lock(&self.tally).take(1, if HAS_HOLES { 0 } else { self.bytes })
    }

    /// Takes the room of bytes that arrived.
    pub(super) fn take(&self, bytes: u64) -> io::Result<()> {
        if HAS_HOLES { lock(&self.tally).take(0, bytes) } else { Ok(()) }
    }

    /// Frees the place of a partial file of which this many bytes arrived.
    pub(super) fn free(&self, taken: u64) {
        lock(&self.tally).without(if HAS_HOLES { taken } else { self.bytes });
    }
}

impl Tally {
    pub(super) fn fits(&self, files: usize, bytes: u64) -> bool {
        self.files + files <= MAX_FILES && self.bytes.saturating_add(bytes) <= self.max_bytes
    }

    pub(super) fn take(&mut self, files: usize, bytes: u64) -> io::Result<()> {
        if !self.fits(files, bytes) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the directory for chunks is full"));
        }
        self.files += files;
        self.bytes += bytes;
        Ok(())
    }

    /// Saturates, because another process may have removed files.
    pub(super) fn without(&mut self, bytes: u64) {
        self.files = self.files.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

pub(super) fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
