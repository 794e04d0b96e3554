//! Files as the sources and targets of chunks.
//!
//! Promises: a file is never in memory as a whole; a received one is complete and verified once it has its name, and
//! has another name before. Refuses files above the limits before anything is written.

mod directory;
mod kept;
mod part;
mod room;
mod source;

pub use directory::{DirectoryStore, hex};
pub use source::FileSource;

use std::io;
use std::path::Path;

use crate::transport::chunks::{StorageError, Stored};

/// Takes the bytes of a received chunk. The file is removed, unless it was there before. None if it can't be read.
pub fn take(stored: Stored) -> Option<Vec<u8>> {
    match stored {
        Stored::Bytes(bytes) => Some(bytes),
        Stored::File(path) => {
            let bytes = std::fs::read(&path).ok()?;
            let _removed = std::fs::remove_file(&path);
            Some(bytes)
        }
        Stored::Reused(path) => std::fs::read(&path).ok(),
    }
}

/// Removes the file of a received chunk, unless it was there before.
pub fn discard(stored: &Stored) {
    if let Stored::File(path) = stored {
        let _removed = std::fs::remove_file(path);
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> StorageError {
    StorageError(format!("can't {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    /// A directory for a test, deleted with it.
    pub(super) struct TestDirectory(pub(super) PathBuf);

    impl TestDirectory {
        pub(super) fn new(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("tickwire-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            TestDirectory(directory)
        }

        /// The sorted names of its files.
        pub(super) fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for TestDirectory {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }
}
