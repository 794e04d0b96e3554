//! What the files of a directory take together.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kept::{Key, KnownFiles, Print};

/// The totals of a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) files: usize,
    pub(super) bytes: u64,
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

    pub(super) fn take(&self) {
        let mut tally = lock(&self.tally);
        tally.files += 1;
        tally.bytes = tally.bytes.saturating_add(self.bytes);
    }

    pub(super) fn free(&self) {
        lock(&self.tally).without(self.bytes);
    }
}

impl Tally {
    /// Saturates, because another process may have removed files.
    pub(super) fn without(&mut self, bytes: u64) {
        self.files = self.files.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

pub(super) fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
