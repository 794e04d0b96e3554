//! A chunk being put together: its received slices, and how much of it is hashed.
//!
//! Promises: a slice is stored once; hashing follows the growing beginning, with as much reading back as [`ReadBack`]
//! allows. Refuses slices that don't fit the offer; `handle` says why.

use sha2::{Digest, Sha256};

use super::items::{ContentHash, Offer};
use super::storage::{Sink, StorageError, Stored};
use crate::store::BitSet;
use crate::time::Instant;

/// How many bytes one read takes.
const READ_BYTES: usize = 64 << 10;

/// How much may be read back to be hashed. A resumed part of a gigabyte is read once more while its peer may send
/// next to nothing, so that happens slowly. Slices that arrived before the ones in front of them are paid for.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    pub(super) bytes: u64,
    filled_at: Option<Instant>,
}

impl ReadBack {
    /// Bytes a second: some 3 % of a processor's time.
    const PER_SECOND: f64 = (32 << 20) as f64;
    /// Those for each byte of a slice: more than one, to catch up with what arrives meanwhile.
    const FOR_EACH: u64 = 2;
    /// Bytes at once: well below a millisecond.
    const AT_ONCE: u64 = 512 << 10;

    pub(super) fn refill(&mut self, now: Instant) {
        let past = now - self.filled_at.replace(now).unwrap_or(now);
        self.fill((Self::PER_SECOND * past.as_secs_f64()) as u64);
    }

    /// The peer has sent this many bytes of slices.
    pub(super) fn pay(&mut self, bytes: usize) {
        self.fill(Self::FOR_EACH * bytes as u64);
    }

    fn fill(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes).min(Self::AT_ONCE);
    }
}

/// A chunk being put together. It outlives its connection if the application wants it to.
#[derive(Debug)]
pub struct Assembly {
    hash: ContentHash,
    size: u64,
    slice_bytes: u16,
    sink: Box<dyn Sink>,
    received: BitSet,
    bytes: u64,
    hasher: Sha256,
    /// Slices that went through the hasher: the beginning of the chunk.
    hashed: u32,
    kept: StoredPart,
}

/// How much of a chunk was stored before its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredPart {
    /// Nothing, or some slices.
    Part,
    /// All of it, or so it seems.
    Whole,
    /// All of it, and its hash was right.
    Verified,
}

/// The outcome of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    New,
    Duplicate,
    Invalid,
    /// There is no room for it any more.
    NoRoom,
}

impl Assembly {
    /// An empty assembly of the offered chunk.
    pub fn new(offer: &Offer, sink: Box<dyn Sink>) -> Self {
        Self::resumed(offer, sink, BitSet::new(offer.slices() as usize))
    }

    /// An assembly whose sink seems to have these slices: the hash of the whole will tell.
    ///
    /// # Panics
    ///
    /// When `received` is not a set of the offer's slices.
    pub fn resumed(offer: &Offer, sink: Box<dyn Sink>, received: BitSet) -> Self {
        assert_eq!(received.bound(), offer.slices() as usize, "the set is of another chunk's slices");
        let bytes = received.runs().map(|run| {
            let (first, last) = (offer.slice(run.start as u32), offer.slice(run.end as u32 - 1));
            last.end - first.start
        });
        Assembly {
            hash: offer.hash,
            size: offer.size,
            slice_bytes: offer.slice_bytes,
            sink,
            bytes: bytes.sum(),
            received,
            hasher: Sha256::new(),
            hashed: 0,
            kept: StoredPart::Part,
        }
    }

    /// An assembly whose sink seems to have all of the chunk. Unless it was `verified` before, it is hashed first; if
    /// the content is different, the chunk is offered to the application again: nothing of it was sent by then.
    pub fn whole(offer: &Offer, sink: Box<dyn Sink>, verified: bool) -> Self {
        let mut assembly = Self::resumed(offer, sink, BitSet::full(offer.slices() as usize));
        if verified {
            (assembly.kept, assembly.hashed) = (StoredPart::Verified, offer.slices());
        } else {
            assembly.kept = StoredPart::Whole;
        }
        assembly
    }

    /// Whether all of it seemed to be here before it was offered.
    pub(super) fn is_kept(&self) -> bool {
        self.kept != StoredPart::Part
    }

    /// Whether this is a part of the offered chunk.
    pub fn is_of(&self, offer: &Offer) -> bool {
        (self.hash, self.size, self.slice_bytes) == (offer.hash, offer.size, offer.slice_bytes)
    }

    /// How many bytes were received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn slices(&self) -> u32 {
        self.received.len() as u32
    }

    pub(super) fn is_whole(&self) -> bool {
        self.received.is_full()
    }

    /// The first runs of received slices.
    pub(crate) fn runs(&self, most: usize) -> Vec<(u32, u32)> {
        self.received.runs().take(most).map(|run| (run.start as u32, run.len() as u32)).collect()
    }

    pub(crate) fn handle(&mut self, offer: &Offer, index: u32, bytes: &[u8]) -> Result<Slice, StorageError> {
        let place = offer.slice(index);
        if index as usize >= self.received.bound() || place.end - place.start != bytes.len() as u64 {
            return Ok(Slice::Invalid);
        }
        if self.received.contains(index as usize) {
            return Ok(Slice::Duplicate);
        }
        if !self.sink.make_room(place.start, bytes.len()) {
            return Ok(Slice::NoRoom);
        }
        self.sink.write_at(place.start, bytes)?;
        self.received.insert(index as usize);
        self.bytes += bytes.len() as u64;
        if index == self.hashed {
            self.hasher.update(bytes);
            self.hashed += 1;
        }
        Ok(Slice::New)
    }

    /// Hashes received bytes, as many as are allowed; true when everything is hashed.
    pub(crate) fn hash_on(&mut self, allowed: &mut u64) -> Result<bool, StorageError> {
        let mut buffer = Vec::new();
        let slice = usize::from(self.slice_bytes);
        while self.received.contains(self.hashed as usize) {
            let most = READ_BYTES.min(usize::try_from(*allowed).unwrap_or(usize::MAX)) / slice;
            if most == 0 {
                break;
            }
            let run = (self.hashed as usize..).take(most).take_while(|i| self.received.contains(*i)).count();
            let start = u64::from(self.hashed) * slice as u64;
            let end = (start + (run * slice) as u64).min(self.size);
            buffer.resize((end - start) as usize, 0);
            self.sink.read_at(start, &mut buffer)?;
            self.hasher.update(&buffer);
            self.hashed += run as u32;
            *allowed -= buffer.len() as u64;
        }
        Ok(self.hashed as usize == self.received.bound())
    }

    /// The stored chunk, if it is the one offered.
    pub(crate) fn finish(self) -> Result<Option<Stored>, StorageError> {
        if self.kept == StoredPart::Verified || self.hasher.finalize().as_slice() == self.hash {
            return self.sink.finish().map(Some);
        }
        self.sink.discard();
        Ok(None)
    }

    /// Discards it for good: nobody will resume it.
    pub fn discard(self) {
        self.sink.discard();
    }
}
