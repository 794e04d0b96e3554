//! The room of a directory, and the place of each file in it.
//!
//! Promises: unused partial files make room for what doesn't fit, the oldest first; a file in use is never removed. A
//! full directory is scanned rarely.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::kept::{Key, KnownFiles, Print};

/// Files in a directory, partial files included: scanning all of them takes some 20 ms.
const MAX_FILES: usize = 16_384;

/// Places among them that clearing up leaves free.
const SPARE_FILES: usize = 1024;

/// Files that are removed at once, which takes some 50 ms: the game waits for it.
const MAX_REMOVED: usize = SPARE_FILES;

/// The minimum interval between scans of a full directory: an offer that doesn't fit may be repeated a thousand times
/// a second.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An endpoint spends at most one part in this many of its time on scanning a full directory.
const LOOK_SHARE: u32 = 50;

/// A partial file: its modification time, path and size.
type Leftover = (SystemTime, PathBuf, u64);

/// The totals of a directory at the last scan, with all changes since, and its limits.
#[derive(Debug)]
pub(super) struct Space {
    directory: PathBuf,
    /// Bytes of the largest allowed file.
    max_file_bytes: u64,
    max_bytes: u64,
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// When the next scan is allowed.
    pub(super) look_after: Option<Instant>,
    /// Whether a file takes only the blocks of the disk that were written.
    pub(super) has_holes: bool,
}

/// The place in a directory for one file.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) space: Arc<Mutex<Space>>,
    pub(super) bytes: u64,
    pub(super) known: KnownFiles,
    pub(super) key: Key,
}

impl Room {
    /// The file is whole, under this name.
    pub(super) fn note_whole(&self, path: &Path) {
        self.known.note(self.key, Print::of(path, self.bytes), true);
    }

    /// Whether this many more bytes of the disk fit, in a file that is new or not, after making room if necessary.
    pub(super) fn make_room(&self, is_new: bool, bytes: u64) -> bool {
        let mut space = lock(&self.space);
        let bytes = match (space.has_holes, is_new) {
            (true, _) => bytes,
            (false, true) => self.bytes,
            (false, false) => 0,
        };
        space.make_room(usize::from(is_new), bytes)
    }

    /// Takes the place of a partial file with this many bytes.
    pub(super) fn take_file(&self, bytes: u64) {
        let mut space = lock(&self.space);
        space.files += 1;
        space.bytes += if space.has_holes { bytes } else { self.bytes };
    }

    /// Takes this many bytes of the disk.
    pub(super) fn take(&self, bytes: u64) {
        let mut space = lock(&self.space);
        space.bytes += if space.has_holes { bytes } else { 0 };
    }

    /// Frees the place of a partial file that took this many bytes of the disk.
    pub(super) fn free(&self, taken: u64) {
        let mut space = lock(&self.space);
        let bytes = if space.has_holes { taken } else { self.bytes };
        space.without(bytes);
    }

    /// Frees the place of a whole file that another one replaced.
    pub(super) fn free_whole(&self, bytes: u64) {
        lock(&self.space).without(bytes);
    }
}

impl Space {
    /// The space of a directory, scanned.
    pub(super) fn new(directory: PathBuf, max_file_bytes: u64, max_bytes: u64) -> io::Result<Self> {
        let (look_after, has_holes) = (None, cfg!(unix));
        let mut space =
            Space { directory, max_file_bytes, max_bytes, files: 0, bytes: 0, look_after, has_holes };
        space.count()?;
        Ok(space)
    }

    /// Whether so much more fits. Nothing more always fits, even if other processes made the directory too large.
    fn fits(&self, files: usize, bytes: u64) -> bool {
        (files == 0 || self.files + files <= MAX_FILES)
            && (bytes == 0 || self.bytes.saturating_add(bytes) <= self.max_bytes)
    }

    /// Whether so much fits, after removing unused partial files if necessary.
    pub(super) fn make_room(&mut self, files: usize, bytes: u64) -> bool {
        if self.fits(files, bytes) {
            return true;
        }
        let began = Instant::now();
        if self.look_after.is_some_and(|after| began < after) {
            return false;
        }
        let looked = self.clear();
        let took = began.elapsed();
        self.look_after = Some(began + LOOK_EVERY.max(took * LOOK_SHARE));
        looked.is_ok() && self.fits(files, bytes)
    }

    /// Removes unused partial files, the oldest first, until the largest allowed file fits, and a few more, so that
    /// one peer's leftovers don't make all others wait for the next scan.
    fn clear(&mut self) -> io::Result<()> {
        let mut parts = self.count()?;
        parts.sort();
        let mut removed = 0;
        for (_, path, length) in parts {
            if removed == MAX_REMOVED {
                break;
            }
            if self.files < MAX_FILES - SPARE_FILES && self.fits(1, self.max_file_bytes) {
                break;
            }
            if remove_unused(&path) {
                removed += 1;
                self.without(length);
            }
        }
        Ok(())
    }

    /// Scans the directory: its totals, notes of partial files included, and its partial files.
    fn count(&mut self) -> io::Result<Vec<Leftover>> {
        let (mut files, mut total, mut parts) = (0, 0_u64, Vec::new());
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(kind) = name.to_str().and_then(kind_of) else { continue };
            // One that vanishes meanwhile doesn't count.
            let Some(file) = entry.metadata().ok().filter(Metadata::is_file) else { continue };
            let bytes = if kind == FileKind::Part { written_bytes(&file) } else { file.len() };
            files += 1;
            total = total.saturating_add(bytes);
            if kind == FileKind::Part {
                let changed = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                parts.push((changed, entry.path(), bytes));
            }
        }
        (self.files, self.bytes) = (files, total);
        Ok(parts)
    }

    /// Saturates, because another process may have removed files.
    fn without(&mut self, bytes: u64) {
        self.files = self.files.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The role of a file in a directory of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Whole,
    Part,
}

/// The role of a file with this name; None for other files.
fn kind_of(name: &str) -> Option<FileKind> {
    let (hash, rest) = name.split_at_checked(64)?;
    let digits = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match rest {
        _ if !digits => None,
        "" => Some(FileKind::Whole),
        _ => (rest.starts_with('.') && rest.ends_with(".part")).then_some(FileKind::Part),
    }
}

/// Bytes of a partial file without its holes.
fn written_bytes(file: &Metadata) -> u64 {
    #[cfg(unix)]
    return file.len().min(512 * std::os::unix::fs::MetadataExt::blocks(file));
    #[cfg(not(unix))]
    file.len()
}

/// Removes an unused partial file; false if it is in use or can't be removed.
fn remove_unused(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    file.try_lock().is_ok() && remove(&file, path)
}

/// Removes a locked partial file, its note first, so that a process that has it open finds none.
pub(super) fn remove(file: &File, path: &Path) -> bool {
    let _emptied = file.set_len(0);
    std::fs::remove_file(path).is_ok()
}

pub(super) fn lock(space: &Mutex<Space>) -> MutexGuard<'_, Space> {
    space.lock().unwrap_or_else(PoisonError::into_inner)
}
