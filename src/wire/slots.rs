//! The indices of a sparse array's entries.

use super::{BitReader, BitSink, ReadError, ValueError, bit_len};

/// The indices of a sparse array's entries, rising: each in the bits that tell the places apart where it can be.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// The lowest index that the next entry can have.
    pub(super) next: u64,
    pub(super) left: u64,
    pub(super) slots: u64,
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
