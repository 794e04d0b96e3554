//! Files that chunks come from and go to.
//!
//! Promises: a file is never in memory as a whole; one that is received is whole and verified under its name, and
//! has another name before. Refuses: files above the limit, before anything is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::endpoint::ChunkStore;
use crate::transport::chunks::{ContentHash, Offer, Rejection, Sink, Source, StorageError, Stored};

/// Bytes read at a time: slices are asked for one after the other.
const READ_AHEAD: usize = 64 * 1024;

/// Tells apart files that receive the same content at the same time.
static NEXT_PART: AtomicU64 = AtomicU64::new(0);

fn failed(what: &str, path: &Path, error: &io::Error) -> StorageError {
    StorageError(format!("can't {what} {}: {error}", path.display()))
}

/// A file that is being sent. A clone reads the same open file, for another connection.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    file: Arc<Mutex<File>>,
    size: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl FileSource {
    /// Opens a file and reads it through once, for its hash.
    ///
    /// # Errors
    /// As the system says it, errno kept.
    pub fn open(path: &Path) -> io::Result<(Self, ContentHash)> {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; READ_AHEAD];
        let mut size = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => {
                    hasher.update(&buffer[..read]);
                    size += read as u64;
                }
            }
        }
        let (path, file) = (path.to_owned(), Arc::new(Mutex::new(file)));
        let source = FileSource { path, file, size, buffer: Vec::new(), buffer_at: 0 };
        Ok((source, hasher.finalize().into()))
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fill(&mut self, offset: u64, at_least: usize) -> io::Result<()> {
        let rest = usize::try_from(self.size - offset).unwrap_or(READ_AHEAD);
        self.buffer.resize(rest.min(READ_AHEAD).max(at_least), 0);
        self.buffer_at = offset;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut self.buffer));
        read.inspect_err(|_| self.buffer.clear())
    }
}

impl Clone for FileSource {
    fn clone(&self) -> Self {
        let (path, file) = (self.path.clone(), self.file.clone());
        FileSource { path, file, size: self.size, buffer: Vec::new(), buffer_at: 0 }
    }
}

impl Source for FileSource {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let buffered = self.buffer_at..self.buffer_at + self.buffer.len() as u64;
        if !buffered.contains(&offset) || offset + out.len() as u64 > buffered.end {
            self.fill(offset, out.len()).map_err(|error| failed("read", &self.path, &error))?;
        }
        let start = (offset - self.buffer_at) as usize;
        out.copy_from_slice(&self.buffer[start..start + out.len()]);
        Ok(())
    }
}

/// A directory that received chunks go to, each into a file named by its hash in hex digits.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    max_bytes: u64,
}

impl DirectoryStore {
    /// A store of chunks of at most `max_bytes` each; the directory is made if it isn't there.
    ///
    /// # Errors
    /// As the system says it, errno kept.
    pub fn new(directory: PathBuf, max_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        Ok(DirectoryStore { directory, max_bytes })
    }
}

impl ChunkStore for DirectoryStore {
    fn open(&mut self, _client_id: u64, offer: &Offer) -> Result<Box<dyn Sink>, Rejection> {
        if offer.size > self.max_bytes {
            return Err(Rejection::TooLarge);
        }
        let name: String = offer.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let number = NEXT_PART.fetch_add(1, Ordering::Relaxed);
        let part = self.directory.join(format!("{name}.{}.{number}.part", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&part);
        let file = file.map_err(|_| Rejection::Storage)?;
        Ok(Box::new(PartFile { file, part, whole: self.directory.join(name) }))
    }
}

/// A file that is being received. It is gone if it is dropped unfinished.
#[derive(Debug)]
struct PartFile {
    file: File,
    part: PathBuf,
    whole: PathBuf,
}

impl Sink for PartFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let write = |file: &mut File| {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        };
        write(&mut self.file).map_err(|error| failed("write", &self.part, &error))
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let mut read = |file: &mut File| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(out)
        };
        read(&mut self.file).map_err(|error| failed("read", &self.part, &error))
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        std::fs::rename(&self.part, &self.whole).map_err(|error| failed("rename", &self.part, &error))?;
        Ok(Stored::File(self.whole.clone()))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // Not there any more when it was finished; and if it can't be removed, nobody is there to be told.
        let _gone = std::fs::remove_file(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("tickwire-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn offer(content: &[u8]) -> Offer {
        let hash = Sha256::digest(content).into();
        Offer { id: 0, size: content.len() as u64, slice_bytes: 1152, hash, label: "".into() }
    }

    #[test]
    fn a_file_is_read_in_any_order_and_missed_when_it_shrank() {
        let directory = directory("source");
        let path = directory.join("world");
        let content: Vec<u8> = (0..200_000u64).map(|i| ((i * i) >> 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let (mut source, hash) = FileSource::open(&path).unwrap();
        assert_eq!((source.size(), hash), (200_000, Sha256::digest(&content).into()));
        let mut another = source.clone();
        for offset in [0, 1152, 199_000, 65_000, 64_384, 2304] {
            for source in [&mut source, &mut another] {
                let mut slice = [0; 1000];
                source.read_at(offset, &mut slice).unwrap();
                assert_eq!(slice, content[offset as usize..offset as usize + 1000]);
            }
        }
        OpenOptions::new().write(true).open(&path).unwrap().set_len(1000).unwrap();
        let error = source.read_at(150_000, &mut [0; 1000]).unwrap_err();
        assert!(error.to_string().starts_with("can't read "), "{error}");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_received_file_has_its_name_when_it_is_whole_and_none_when_it_is_dropped() {
        let directory = directory("sink");
        let mut store = DirectoryStore::new(directory.join("in"), 10).unwrap();
        assert_eq!(store.open(0, &offer(&[0; 11])).unwrap_err(), Rejection::TooLarge);
        let mut sinks: Vec<_> = (0..2).map(|_| store.open(0, &offer(b"0123456789")).unwrap()).collect();
        let mut sink = sinks.remove(0);
        sink.write_at(5, b"56789").unwrap();
        sink.write_at(0, b"01234").unwrap();
        let mut back = [0; 3];
        sink.read_at(4, &mut back).unwrap();
        assert_eq!(&back, b"456");
        let Stored::File(path) = sink.finish().unwrap() else { panic!("not a file") };
        drop(sinks);
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
        assert_eq!(std::fs::read_dir(directory.join("in")).unwrap().count(), 1);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
