//! The directory that received chunks go to.
//!
//! Promises: all its chunk files together take no more than the limit, unfinished ones the blocks of the disk that
//! arrived slices touch; an unfinished file is resumed when the same peer offers the same content, even in another
//! process; a complete file is not received again. Refuses what doesn't fit even after unused partial files were removed,
//! the oldest first. If others fill the directory after a chunk was accepted, the chunk fails, and what arrived of it may be
//! resumed. Where files have no holes, an unfinished file takes its full size with its first slice.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::kept::{KeptFile, KnownFiles, Print};
use super::part::{Found, NewPart, PartFile, part_paths};
use super::room::{Room, Space, lock};
use crate::endpoint::ChunkStore;
use crate::transport::chunks::{Assembly, Offer, Rejection};

/// A directory that received chunks go to, each into a file named by its hash in hex digits.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    max_bytes: u64,
    space: Arc<Mutex<Space>>,
    known: KnownFiles,
    /// A client must not find out that another one sent a content.
    is_per_client: bool,
}

impl DirectoryStore {
    /// A store of chunks of at most `max_bytes` each and `max_total_bytes` together; the directory is created if
    /// necessary.
    ///
    /// # Errors
    ///
    /// The system's, with errno.
    pub fn new(directory: PathBuf, max_bytes: u64, max_total_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let max_bytes = max_bytes.min(max_total_bytes);
        let space = Space::new(directory.clone(), max_bytes, max_total_bytes)?;
        Ok(DirectoryStore {
            directory,
            max_bytes,
            space: Arc::new(Mutex::new(space)),
            known: KnownFiles::default(),
            is_per_client: false,
        })
    }

    /// For clients that must not learn of each other: a complete file is only reused for the clients that sent it,
    /// while this process runs.
    #[must_use]
    pub fn per_client(self) -> Self {
        DirectoryStore { is_per_client: true, ..self }
    }

    /// The offered chunk, if it is already here in full.
    fn kept(&self, client_id: u64, offer: &Offer) -> Option<Assembly> {
        let path = self.directory.join(hex(&offer.hash));
        let key = (offer.hash, client_id);
        let print = Print::of(&path, offer.size)?;
        let known = self.known.get(&key, print);
        if known == Some(false) || (known.is_none() && self.is_per_client) {
            return None;
        }
        let file = KeptFile::open(&path, print, key, &self.known)?;
        Some(Assembly::whole(offer, Box::new(file), known == Some(true)))
    }

    /// The partial file to resume, or a new one.
    fn part(&self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        let whole = self.directory.join(hex(&offer.hash));
        let key = (offer.hash, client_id);
        let room = Room { space: self.space.clone(), bytes: offer.size, known: self.known.clone(), key };
        for path in part_paths(&whole, client_id) {
            match PartFile::reopen(&path, &whole, offer, room.clone()) {
                Found::Part(part, there) => return Ok(Assembly::resumed(offer, part, there)),
                Found::Other => {}
                Found::Nothing => break,
            }
        }
        if !lock(&self.space).make_room(1, offer.size) {
            return Err(Rejection::NoRoom);
        }
        let part = NewPart { whole, client_id, offer: offer.clone(), room, file: None };
        Ok(Assembly::new(offer, Box::new(part)))
    }
}

impl ChunkStore for DirectoryStore {
    fn open(&mut self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        if offer.size > self.max_bytes {
            return Err(Rejection::TooLarge);
        }
        self.kept(client_id, offer).map_or_else(|| self.part(client_id, offer), Ok)
    }

    fn bytes_at_once(&self) -> u64 {
        self.max_bytes
    }
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
