//! What a packet says, before any of it counts.
//!
//! Promises: a packet is read to its end before its first record is applied, so one that is refused leaves nothing. Memory is
//! kept for the next packet, but for what only few packets need.

use core::ops::Range;

use super::super::form::Form;
use super::super::packet::{Audience, Violation};
use crate::wire::{BitReader, Properties};

/// What a record does, once its packet was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum StagedOp {
    /// The properties of a mask have these words.
    Update {
        mask: u64,
    },
    /// Updates in a row with the same mask: from and to which of [`Staged::alike`]. The words of each come after those of the one
    /// before.
    Alike {
        mask: u64,
        from: usize,
        to: usize,
    },
    Create(Audience),
    Destroy,
    /// It is passed over.
    Skip,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StagedRecord {
    pub(super) class: u32,
    pub(super) id: u32,
    pub(super) op: StagedOp,
    /// Where its state begins, and its properties without words.
    words: usize,
    bodies: (usize, usize),
}

/// One of updates in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    pub(super) id: u32,
    /// Whether the words go on; and whether the update is passed over.
    pub(super) goes_on: bool,
    pub(super) is_skipped: bool,
}

/// How much of each kind is kept for the next packet: more than a packet of small ghosts has.
const KEPT: usize = 1 << 12;

/// The records of a packet.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub(super) records: Vec<StagedRecord>,
    pub(super) alike: Vec<Alike>,
    /// States as they are stored: one after the other, and what is left of those of other packets.
    pub(super) words: Vec<u32>,
    /// How many numbers of them are this packet's.
    used: usize,
    /// Values without words: their place among those of the class, and their bytes.
    bodies: Vec<(usize, Range<usize>)>,
    bytes: Vec<u8>,
    /// Records that were passed over and aren't here.
    pub(super) skipped: u64,
}

impl Staged {
    /// Forgets a packet, and gives back its memory beyond [`KEPT`]: one of 1,200 bytes may say of 1,600 ghosts of thousands of words
    /// that a bit of each changed.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.records.shrink_to(KEPT);
        self.alike.clear();
        self.alike.shrink_to(KEPT);
        self.words.truncate(4 * KEPT);
        self.words.shrink_to(4 * KEPT);
        self.used = 0;
        self.bodies.clear();
        self.bodies.shrink_to(KEPT);
        self.bytes.clear();
        self.bytes.shrink_to(4 * KEPT);
        self.skipped = 0;
    }

    /// Adds a record without a state.
    #[inline]
    pub(super) fn push(&mut self, class: u32, id: usize, op: StagedOp) {
        let (words, bodies) = (self.used, (self.bodies.len(), self.bodies.len()));
        // Below the capacity.
        self.records.push(StagedRecord { class, id: id as u32, op, words, bodies });
    }

    /// Adds a record with room for a state of this many numbers, which may be any.
    #[inline]
    pub(super) fn push_room(&mut self, class: u32, id: usize, op: StagedOp, size: usize) -> &mut [u32] {
        self.push(class, id, op);
        let start = self.used;
        self.spare(size);
        self.used += size;
        &mut self.words[start..][..size]
    }

    /// Where the room after what is in use begins.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Room after what is in use, for a state of this many numbers, which may be any.
    #[inline]
    pub(super) fn spare(&mut self, size: usize) -> &mut [u32] {
        if self.words.len() < self.used + size {
            self.grow(size);
        }
        &mut self.words[self.used..][..size]
    }

    /// Makes room for as many numbers as are in use, and more.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) {
        self.words.resize(2 * (self.used + size), 0);
    }

    /// Adds an update to those in a row, whose state is in the room for it.
    #[inline]
    pub(super) fn push_alike(&mut self, id: u32, goes_on: bool, size: usize) {
        self.alike.push(Alike { id, goes_on, is_skipped: false });
        self.used += size;
    }

    /// How many records there are.
    pub(super) fn count(&self) -> usize {
        let rows = self.records.iter().filter(|record| matches!(record.op, StagedOp::Alike { .. })).count();
        self.records.len() - rows + self.alike.len()
    }

    /// Adds a record with these words.
    pub(super) fn push_words(&mut self, class: u32, id: usize, op: StagedOp, words: &[u64], form: Form) {
        form.store(words, self.push_room(class, id, op, form.size()));
    }

    /// Reads the properties of a mask that have no words, for the last record.
    ///
    /// # Errors
    /// Everything that reading a message refuses.
    pub(super) fn read_bodies(
        &mut self,
        properties: &Properties,
        without_words: &[usize],
        mask: u64,
        reader: &mut BitReader<'_>,
    ) -> Result<(), Violation> {
        for (place, property) in without_words.iter().enumerate() {
            if mask >> property & 1 == 1 {
                let start = self.bytes.len();
                properties.read_fields(reader, 1 << property, &mut self.bytes)?;
                self.bodies.push((place, start..self.bytes.len()));
            }
        }
        if let Some(last) = self.records.last_mut() {
            last.bodies.1 = self.bodies.len();
        }
        Ok(())
    }

    /// The state that begins at this place, of this many numbers, to be changed.
    #[inline]
    pub(super) fn state_mut(&mut self, start: usize, size: usize) -> &mut [u32] {
        &mut self.words[start..][..size]
    }

    /// Updates in a row with their states.
    #[inline]
    pub(super) fn alike(
        &self,
        record: &StagedRecord,
        range: Range<usize>,
        size: usize,
    ) -> impl Iterator<Item = (&Alike, &[u32])> {
        self.alike[range].iter().zip(self.words[record.words..].chunks_exact(size))
    }

    /// The state of a record, of this many numbers.
    #[inline]
    pub(super) fn state(&self, record: &StagedRecord, size: usize) -> &[u32] {
        &self.words[record.words..][..size]
    }

    /// Its values without words: their place among those of the class, and their bodies.
    #[inline]
    pub(super) fn bodies(&self, record: &StagedRecord) -> impl Iterator<Item = (usize, &[u8])> {
        let bodies = &self.bodies[record.bodies.0..record.bodies.1];
        bodies.iter().map(|(place, range)| (*place, &self.bytes[range.clone()]))
    }
}
