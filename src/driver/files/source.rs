//! Files that chunks are read from.
//!
//! Promises: a file is opened once for all it goes to, and never in memory as a whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::failed;
use crate::transport::chunks::{ContentHash, Source, StorageError};

/// Bytes per read: slices are requested in order.
const READ_AHEAD: usize = 64 * 1024;

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
    /// Opens a file and reads all of it once, for its hash.
    ///
    /// # Errors
    ///
    /// The system's, with errno.
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

    /// The path with which it was opened.
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

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::driver::files::tests::TestDirectory;

    #[test]
    fn a_file_is_read_in_any_order_and_missed_when_it_shrank() {
        let directory = TestDirectory::new("source");
        let path = directory.0.join("world");
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
    }
}
