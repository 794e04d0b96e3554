//! Fields that are one number in a fixed count of bits, side by side: most messages consist of them, and one loop
//! over a list of constants reads and writes them, without a branch and a call for each.
//!
//! Promises: the same cells, bits and refusals as one by one. The reason for a refusal isn't reported here: the
//! caller repeats field by field to find it.

use super::column::cell;
use super::{BitReader, BitSink};

/// A number of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    /// The place of its cell in the row.
    pub(super) at: usize,
    /// Bytes of the cell: 1, 2, 4 or 8.
    pub(super) size: u8,
    /// On the wire, at most 64.
    pub(super) bits: u8,
    /// The cell's highest bit is its sign.
    pub(super) signed: bool,
    /// Any byte but 0 is 1.
    pub(super) flag: bool,
    pub(super) lo: u64,
    /// The maximum of the number on the wire.
    pub(super) span: u64,
    /// The bits of the wire, and those of the cell.
    pub(super) wire_mask: u64,
    pub(super) cell_mask: u64,
}

/// Fields of a schema: some that are plain, or one that isn't.
#[derive(Clone, Debug)]
pub(super) enum Group {
    Plain {
        first: usize,
        numbers: Box<[Plain]>,
        bits: usize,
    },
    /// Plain ones that are on the wire as they are in the row, and side by side in both: they are copied.
    Copied {
        first: usize,
        fields: usize,
        /// The place of their cells in the row.
        at: usize,
        bytes: usize,
    },
    Other(usize),
}

/// Bytes from which to copy fields is less work than to read them one by one.
const MIN_COPIED: usize = 12;

impl Group {
    /// Groups fields, given by what they are where they are plain, each group as large as possible.
    pub(super) fn of(fields: &[Option<Plain>]) -> Box<[Group]> {
        let mut groups: Vec<Group> = Vec::new();
        let mut copied = 0;
        for (index, field) in fields.iter().enumerate() {
            if index < copied {
                continue;
            }
            let Some(plain) = *field else {
                groups.push(Group::Other(index));
                continue;
            };
            let (count, bytes) = run_of_copies(&fields[index..]);
            if bytes >= MIN_COPIED {
                groups.push(Group::Copied { first: index, fields: count, at: plain.at, bytes });
                copied = index + count;
                continue;
            }
            let more = usize::from(plain.bits);
            if let Some(Group::Plain { numbers, bits, .. }) = groups.last_mut() {
                *numbers = numbers.iter().copied().chain([plain]).collect();
                *bits += more;
            } else {
                groups.push(Group::Plain { first: index, numbers: Box::new([plain]), bits: more });
            }
        }
        groups.into()
    }
}

/// How many fields from the first on can be copied as one, and their bytes.
fn run_of_copies(fields: &[Option<Plain>]) -> (usize, usize) {
    let mut run = (0, 0);
    let mut next = None;
    for plain in fields.iter().map_while(Option::as_ref) {
        if !plain.is_copy() || next.is_some_and(|next| plain.at != next) {
            break;
        }
        let size = usize::from(plain.size);
        run = (run.0 + 1, run.1 + size);
        next = Some(plain.at + size);
    }
    run
}

impl Plain {
    /// Whether the wire has the bits of the cell, and all of them are valid.
    fn is_copy(&self) -> bool {
        self.bits == 8 * self.size && self.lo == 0 && self.span == self.cell_mask && !self.flag
    }

    /// Writes a number into its cell of a row, possibly overwriting later cells; false if there is no such cell.
    #[inline]
    fn store(&self, row: &mut [u8], offset: u64) -> bool {
        let bytes = (self.lo.wrapping_add(offset) & self.cell_mask).to_le_bytes();
        let Some(rest) = row.get_mut(self.at..) else { return false };
        // Most rows are that long.
        if let Some(cell) = rest.first_chunk_mut() {
            *cell = bytes;
            return true;
        }
        let size = usize::from(self.size);
        rest.get_mut(..size).is_some_and(|cell| {
            cell.copy_from_slice(&bytes[..size]);
            true
        })
    }

    /// The wire's number for the number in its cell of the row at `row` of a body; None if it is out of range.
    #[inline]
    fn load(&self, body: &[u8], row: usize) -> Option<u64> {
        let at = row.saturating_add(self.at);
        let number = match self.size {
            8 => u64::from_le_bytes(cell(body, at)?),
            4 => u32::from_le_bytes(cell(body, at)?).into(),
            2 => u16::from_le_bytes(cell(body, at)?).into(),
            _ => u8::from_le_bytes(cell(body, at)?).into(),
        };
        if self.flag {
            return Some(u64::from(number != 0));
        }
        let unused = 64 - 8 * u32::from(self.size);
        let number =
            if self.signed { ((number << unused).cast_signed() >> unused).cast_unsigned() } else { number };
        // In signed arithmetic below `lo` wraps to above `span`, and unsigned too: a range has at most 64 bits.
        Some(number.wrapping_sub(self.lo)).filter(|offset| *offset <= self.span)
    }
}

/// Reads numbers with this total of bits into a row, whose later cells are still zero and stay so; false if one is
/// refused, or they aren't all there. The reader hasn't moved then.
#[inline]
pub(super) fn read(reader: &mut BitReader<'_>, numbers: &[Plain], bits: usize, row: &mut [u8]) -> bool {
    let Some(mut ahead) = reader.ahead(bits) else { return false };
    for number in numbers {
        let offset = ahead.word(number.bits.into(), number.wire_mask);
        if offset > number.span || !number.store(row, offset) {
            return false;
        }
    }
    *reader = ahead;
    true
}

/// Writes numbers of the row at `row` of a body; returns how many were written before an invalid one, if there is
/// one.
#[inline]
pub(super) fn write<S: BitSink + ?Sized>(
    numbers: &[Plain],
    body: &[u8],
    row: usize,
    sink: &mut S,
) -> Result<(), usize> {
    for (index, number) in numbers.iter().enumerate() {
        let offset = number.load(body, row).ok_or(index)?;
        if number.bits > 0 {
            sink.bits(offset, number.bits.into());
        }
    }
    Ok(())
}
