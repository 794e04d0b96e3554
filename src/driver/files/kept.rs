//! The complete files of a directory, and what is known about them.
//!
//! Promises: a file counts as a content only after it was hashed, here or while being received here, and as long as
//! its size, its times and, on Unix, its inode stay the same; a file with other content is not read again until one
//! of these changes. Memory is bounded: the oldest knowledge is dropped.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::failed;
use crate::transport::chunks::{ContentHash, Sink, StorageError, Stored};

/// Files that are remembered: as many as a directory may have.
const MAX_KNOWN: usize = 16_384;

/// The content of a file, and the client that sent it.
pub(super) type Key = (ContentHash, u64);

/// The properties by which a change of a file is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print {
    bytes: u64,
    changed: SystemTime,
    place: Place,
}

/// Which file it is, and when anything of it changed: unlike the time of its bytes' change, no program sets that.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    device: u64,
    inode: u64,
    touched: (i64, i64),
}

#[cfg(unix)]
impl Place {
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let touched = (metadata.ctime(), metadata.ctime_nsec());
        Place { device: metadata.dev(), inode: metadata.ino(), touched }
    }
}

/// Other systems have no inode.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place;

#[cfg(not(unix))]
impl Place {
    fn of(_metadata: &Metadata) -> Self {
        Place
    }
}

impl Print {
    /// Reads them from the file at this path, if it has this many bytes.
    pub(super) fn of(path: &Path, bytes: u64) -> Option<Self> {
        Self::read(&std::fs::metadata(path).ok().filter(Metadata::is_file)?)
            .filter(|print| print.bytes == bytes)
    }

    fn read(metadata: &Metadata) -> Option<Self> {
        Some(Print { bytes: metadata.len(), changed: metadata.modified().ok()?, place: Place::of(metadata) })
    }
}

/// What is known about complete files: whether their content is what their name says, and which client sent them.
/// Content that another client sends again still belongs to the first one; otherwise the second would find out that
/// somebody had sent it.
#[derive(Debug, Default)]
pub(super) struct FileRecords {
    files: HashMap<ContentHash, KnownFile>,
    /// In the order in which they came.
    order: VecDeque<Key>,
}

#[derive(Debug)]
struct KnownFile {
    print: Print,
    is_good: bool,
    senders: BTreeSet<u64>,
}

/// Shared with the files that are being received.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFiles(Arc<Mutex<FileRecords>>);

impl KnownFiles {
    /// Whether the file with these properties has the content; None if that isn't known.
    pub(super) fn get(&self, key: &Key, print: Print) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, sender) = key;
        let file = known.files.get(hash).filter(|file| file.print == print && file.senders.contains(sender));
        file.map(|file| file.is_good)
    }

    pub(super) fn note(&self, key: Key, print: Option<Print>, is_good: bool) {
        let Some(print) = print else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, sender) = key;
        let file = known.files.entry(hash).or_insert(KnownFile { print, is_good, senders: BTreeSet::new() });
        (file.print, file.is_good) = (print, is_good);
        if file.senders.insert(sender) {
            known.order.push_back(key);
        }
        if known.order.len() > MAX_KNOWN
            && let Some((hash, sender)) = known.order.pop_front()
            && let Some(file) = known.files.get_mut(&hash)
        {
            file.senders.remove(&sender);
            if file.senders.is_empty() {
                known.files.remove(&hash);
            }
        }
    }
}

/// A complete file that is only read.
#[derive(Debug)]
pub(super) struct KeptFile {
    file: File,
    path: PathBuf,
    print: Print,
    key: Key,
    known: KnownFiles,
}

impl KeptFile {
    /// None when it can't be read.
    pub(super) fn open(path: &Path, print: Print, key: Key, known: &KnownFiles) -> Option<Self> {
        let file = File::open(path).ok()?;
        // The file that is hashed must be the one that was examined.
        let opened = Print::read(&file.metadata().ok()?)?;
        (opened == print).then(|| KeptFile { file, path: path.to_owned(), print, key, known: known.clone() })
    }
}

impl Sink for KeptFile {
    fn write_at(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), StorageError> {
        Err(StorageError(format!("{} is whole", self.path.display())))
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(out));
        read.map_err(|error| failed("read", &self.path, &error))
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        if Print::of(&self.path, self.print.bytes) != Some(self.print) {
            return Err(StorageError(format!("{} was changed meanwhile", self.path.display())));
        }
        self.known.note(self.key, Some(self.print), true);
        Ok(Stored::Reused(self.path.clone()))
    }

    fn discard(self: Box<Self>) {
        self.known.note(self.key, Some(self.print), false);
    }
}
