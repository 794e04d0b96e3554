//! Sparse arrays: their entries and the indices of these.

use super::column::{cell, run};
use super::node::{Node, Sparse, count_bits, write_count};
use super::{BitReader, BitSink, ReadError, ValueError, bit_len};

/// The indices of a sparse array's entries, rising: each in the bits that tell the places apart where it can be.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// The lowest index that the next entry can have.
    next: u64,
    left: u64,
    slots: u64,
}

impl Slots {
    /// How far the next index can be above the lowest: each entry after it needs a slot too.
    fn span(&self) -> u64 {
        self.slots.saturating_sub(self.next).saturating_sub(self.left)
    }

    /// Writes the next index.
    ///
    /// # Errors
    /// When it is not above the one before, or leaves too few slots for those to come.
    pub fn write<S: BitSink + ?Sized>(&mut self, index: i128, sink: &mut S) -> Result<(), ValueError> {
        let (lo, span) = (i128::from(self.next), self.span());
        let gap = index.checked_sub(lo).and_then(|gap| u64::try_from(gap).ok()).filter(|gap| *gap <= span);
        let Some(gap) = gap.filter(|_| self.left > 0) else {
            return Err(ValueError::OutOfRange { value: index, lo, hi: lo + i128::from(span) });
        };
        if let n @ 1.. = bit_len(span) {
            sink.bits(gap, n);
        }
        self.advance(gap);
        Ok(())
    }

    pub(super) fn read(&mut self, reader: &mut BitReader<'_>) -> Result<u64, ReadError> {
        let gap = reader.offset(self.span())?;
        let index = self.next + gap;
        self.advance(gap);
        Ok(index)
    }

    fn advance(&mut self, gap: u64) {
        self.next += gap + 1;
        self.left = self.left.saturating_sub(1);
    }
}

impl Sparse {
    /// What each slot holds.
    pub fn item(&self) -> &Node {
        &self.item
    }

    /// Bytes from an entry to the next.
    pub fn stride(&self) -> usize {
        (self.item_at() + self.item.size()).next_multiple_of(self.item.alignment().max(4))
    }

    /// The place of the item in an entry.
    pub fn item_at(&self) -> usize {
        4usize.next_multiple_of(self.item.alignment())
    }

    /// The index of each entry and the place of its item in the body; `None` for entries that the body lacks.
    pub fn entries(
        &self,
        body: &[u8],
        at: usize,
    ) -> Option<impl ExactSizeIterator<Item = Option<(u32, usize)>>> {
        let (from, count) = run(body, at)?;
        Some((0..count).map(move |i| {
            let entry = from.checked_add(i.checked_mul(self.stride())?)?;
            Some((u32::from_le_bytes(cell(body, entry)?), entry.checked_add(self.item_at())?))
        }))
    }

    /// Writes how many entries follow; returns the writer of their indices.
    ///
    /// # Errors
    ///
    /// When they are too many.
    pub fn write_count<S: BitSink + ?Sized>(&self, count: usize, sink: &mut S) -> Result<Slots, ValueError> {
        write_count(count, self.slots, sink)?;
        Ok(self.indices(count))
    }

    /// The indices of `count` entries.
    pub(super) fn indices(&self, count: usize) -> Slots {
        Slots { next: 0, left: count as u64, slots: self.slots.into() }
    }

    /// An entry's index takes the fewest bits when many others follow.
    pub(super) fn bit_range(&self) -> (usize, usize) {
        let count_bits = count_bits(self.slots);
        let most_item = self.item.bit_range().1;
        let most = |count: u32| {
            let gap = bit_len(u64::from(self.slots - count)) as usize;
            most_item.saturating_add(gap).saturating_mul(count as usize)
        };
        let most = (0..=self.slots).map(most).max().unwrap_or(0);
        (count_bits, most.saturating_add(count_bits))
    }
}
