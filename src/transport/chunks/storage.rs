//! Sources and sinks of chunks: memory here, files in the driver.
//!
//! Promises: the core asks for one slice at a time and keeps none. If a source or sink fails, only its chunk ends.

use core::fmt;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a chunk can't be read or stored: the system's message, and the attempted action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError(pub String);

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for StorageError {}

/// The source of a chunk's bytes.
pub trait Source: fmt::Debug + Send {
    fn size(&self) -> u64;

    /// Fills `out` from `offset`, within the size.
    ///
    /// # Errors
    ///
    /// When those bytes no longer exist.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError>;
}

/// The destination of a chunk's bytes.
pub trait Sink: fmt::Debug + Send {
    /// Whether this many bytes fit at `offset`, after making room if necessary: others may have filled it since the
    /// chunk was accepted. Asked before each slice is stored.
    fn make_room(&self, _offset: u64, _bytes: usize) -> bool {
        true
    }

    /// Stores `bytes` at `offset`, all within the size that was offered.
    ///
    /// # Errors
    /// When that is not possible.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// Reads back stored bytes.
    ///
    /// # Errors
    ///
    /// When that is not possible.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError>;

    /// The chunk is complete and verified.
    ///
    /// # Errors
    ///
    /// When it can't be kept.
    fn finish(self: Box<Self>) -> Result<Stored, StorageError>;

    /// The chunk won't be completed, and nobody will resume it. A sink that is merely dropped may be resumed.
    fn discard(self: Box<Self>) {}
}

/// A chunk that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    // In memory.
    Bytes(Vec<u8>),
    // In a file.
    File(PathBuf),
    /// In a file from before the offer, and not received again.
    Reused(PathBuf),
}

/// A chunk in memory that many connections may send at once.
pub struct BytesSource<B>(pub Arc<B>);

impl<B> fmt::Debug for BytesSource<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BytesSource")
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Source for BytesSource<B> {
    fn size(&self) -> u64 {
        self.0.as_ref().as_ref().len() as u64
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let start = offset as usize;
        out.copy_from_slice(&self.0.as_ref().as_ref()[start..start + out.len()]);
        Ok(())
    }
}

/// A chunk received into memory. Its room is reserved at once, and its pages are touched as slices arrive: zeroing them
/// for an offer would cost a hundred times what the offer costs its sender.
#[derive(Debug)]
pub struct MemorySink {
    /// The beginning of the chunk, without gaps.
    bytes: Vec<u8>,
    /// Slices that follow, by their offsets: behind a gap, or until they are read. A slice that closes a gap must not copy
    /// all of them at once.
    ahead: BTreeMap<u64, Box<[u8]>>,
}

impl MemorySink {
    /// Room for `size` bytes.
    ///
    /// # Errors
    /// When there is none.
    pub fn new(size: u64) -> Result<Self, StorageError> {
        let none = || StorageError(format!("there is no memory for a chunk of {size} bytes"));
        let size = usize::try_from(size).map_err(|_| none())?;
        let mut bytes = Vec::new();
        // Fails instead of ending the process.
        bytes.try_reserve_exact(size).map_err(|_| none())?;
        Ok(MemorySink { bytes, ahead: BTreeMap::new() })
    }

    /// Joins slices until there are this many bytes, as far as they have arrived.
    fn join(&mut self, bytes: usize) {
        while self.bytes.len() < bytes
            && let Some(next) = self.ahead.remove(&(self.bytes.len() as u64))
        {
            self.bytes.extend_from_slice(&next);
        }
    }
}

impl Sink for MemorySink {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        if offset == self.bytes.len() as u64 {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.ahead.insert(offset, bytes.into());
        }
        Ok(())
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let start = offset as usize;
        self.join(start + out.len());
        let there = self.bytes.get(start..start + out.len());
        out.copy_from_slice(there.ok_or_else(|| StorageError("these bytes have not arrived".into()))?);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Stored, StorageError> {
        self.join(usize::MAX);
        Ok(Stored::Bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_touched_for_slices_that_arrived() {
        let mut sink = Box::new(MemorySink::new(64 << 20).unwrap());
        let last = (64 << 20) - 100;
        sink.write_at(last, &[9; 100]).unwrap();
        sink.write_at(200, &[3; 100]).unwrap();
        sink.write_at(0, &[1; 100]).unwrap();
        assert_eq!((sink.bytes.len(), sink.ahead.len()), (100, 2));
        sink.write_at(100, &[2; 100]).unwrap();
        assert_eq!((sink.bytes.len(), sink.ahead.len()), (200, 2), "joined when they are read");
        let mut read = [0; 100];
        sink.read_at(150, &mut read).unwrap();
        assert_eq!(read, core::array::from_fn(|at| 2 + u8::from(at >= 50)));
        assert!(sink.read_at(250, &mut read).is_err());
    }
}
