//! One property of all rows: finds cells that differ from their last values, and their words.
//!
//! Promises: unchanged cells cost a comparison of memory, by blocks of [`BLOCK`] rows; in the others the rows that
//! differ are found one by one, and only these are quantised, all of a block at once. Nothing is allocated in a tick.

use crate::store::ones;
use crate::wire::{Property, ValueError};

/// Rows of a block: a bit for each in an integer.
pub(super) const BLOCK: usize = u64::BITS as usize;

/// The cells of one property with words.
#[derive(Debug)]
pub(super) struct Scan {
    /// Bytes of a cell.
    size: usize,
    /// Words of a cell, and where they start among those of a row.
    pub(super) count: usize,
    pub(super) start: usize,
    /// The cells as of their last known difference.
    shadow: Vec<u8>,
    /// For the current block: which rows are quantised, and their words one after the other.
    dirty: u64,
    words: Box<[u64]>,
    gathered: Box<[u8]>,
}

impl Scan {
    pub(super) fn new(property: &Property, start: usize) -> Self {
        let (size, count) = (property.field().node().size(), property.words().len());
        let (words, gathered) = (vec![0; count * BLOCK].into(), vec![0; size * BLOCK].into());
        Scan { size, count, start, shadow: Vec::new(), dirty: 0, words, gathered }
    }

    /// Makes room for rows below `rows`.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.shadow.resize(rows * self.size, 0);
    }

    /// Rows that this many bytes hold.
    pub(super) fn rows_in(&self, cells: &[u8]) -> usize {
        cells.len().checked_div(self.size).unwrap_or(usize::MAX)
    }

    /// Which of the `rows` rows from `first` on, at most [`BLOCK`], differ from how they were.
    #[inline]
    pub(super) fn changed(&mut self, cells: &[u8], first: usize, rows: usize) -> u64 {
        let range = first * self.size..(first + rows) * self.size;
        let (cells, shadow) = (&cells[range.clone()], &mut self.shadow[range]);
        if cells == shadow {
            return 0;
        }
        let changed = differing(self.size, cells, shadow);
        shadow.copy_from_slice(cells);
        changed
    }

    /// Quantises the `dirty` rows from `first` on. Calls `wrong` with each, counted from 0, whose value is invalid.
    #[inline]
    pub(super) fn quantize(
        &mut self,
        property: &Property,
        cells: &[u8],
        first: usize,
        dirty: u64,
        mut wrong: impl FnMut(usize, ValueError),
    ) {
        self.dirty = dirty;
        let (size, rows) = (self.size, dirty.count_ones() as usize);
        if rows == 0 {
            return;
        }
        let cells = &cells[first * size..];
        // A run of ones from the lowest bit on.
        let cells = if dirty & dirty.wrapping_add(1) == 0 {
            &cells[..rows * size]
        } else {
            gather(size, cells, dirty, &mut self.gathered)
        };
        let words = &mut self.words[..rows * self.count];
        if property.quantize_column(cells, size, words).is_ok() {
            return;
        }
        let each = cells.chunks_exact(size).zip(words.chunks_exact_mut(self.count));
        for (row, (cell, words)) in ones(dirty).zip(each) {
            if let Err((_, error)) = property.quantize_column(cell, size, words) {
                wrong(row, error);
            }
        }
    }

    /// Sets `bit` in the mask of each dirty row of the block whose words differ from its newest ones: `newest` has
    /// `width` per row from the block's first on. Returns those rows.
    #[inline]
    pub(super) fn mark(&self, newest: &[u64], width: usize, bit: u64, masks: &mut [u64; BLOCK]) -> u64 {
        match self.count {
            1 => self.mark_of::<1>(newest, width, bit, masks),
            2 => self.mark_of::<2>(newest, width, bit, masks),
            3 => self.mark_of::<3>(newest, width, bit, masks),
            4 => self.mark_of::<4>(newest, width, bit, masks),
            count => {
                let mut marked = 0;
                for (row, words) in ones(self.dirty).zip(self.words.chunks_exact(count)) {
                    if newest[row * width + self.start..][..count] != *words {
                        masks[row] |= bit;
                        marked |= 1 << row;
                    }
                }
                marked
            }
        }
    }

    #[inline]
    fn mark_of<const N: usize>(
        &self,
        newest: &[u64],
        width: usize,
        bit: u64,
        masks: &mut [u64; BLOCK],
    ) -> u64 {
        let mut marked = 0;
        for (row, words) in ones(self.dirty).zip(self.words.as_chunks::<N>().0) {
            let before = &newest[row * width + self.start..][..N];
            let differs = before.iter().zip(words).fold(0, |found, (a, b)| found | (a ^ b)) != 0;
            masks[row % BLOCK] |= if differs { bit } else { 0 };
            marked |= u64::from(differs) << row;
        }
        marked
    }

    /// Copies the new words of the block's dirty rows in `rows` into their newest ones.
    #[inline]
    pub(super) fn copy(&self, newest: &mut [u64], width: usize, rows: u64) {
        match self.count {
            1 => self.copy_of::<1>(newest, width, rows),
            2 => self.copy_of::<2>(newest, width, rows),
            3 => self.copy_of::<3>(newest, width, rows),
            4 => self.copy_of::<4>(newest, width, rows),
            count => {
                for (row, words) in ones(self.dirty).zip(self.words.chunks_exact(count)) {
                    if rows >> row & 1 == 1 {
                        newest[row * width + self.start..][..count].copy_from_slice(words);
                    }
                }
            }
        }
    }

    #[inline]
    fn copy_of<const N: usize>(&self, newest: &mut [u64], width: usize, rows: u64) {
        for (row, words) in ones(self.dirty).zip(self.words.as_chunks::<N>().0) {
            if rows >> row & 1 == 1
                && let Some(to) = newest[row * width + self.start..].first_chunk_mut::<N>()
            {
                *to = *words;
            }
        }
    }
}

/// Which cells differ. By size, so that each comparison has a length the compiler knows.
fn differing(size: usize, cells: &[u8], before: &[u8]) -> u64 {
    match size {
        1 => differing_of::<1>(cells, before),
        2 => differing_of::<2>(cells, before),
        4 => differing_of::<4>(cells, before),
        8 => differing_of::<8>(cells, before),
        12 => differing_of::<12>(cells, before),
        16 => differing_of::<16>(cells, before),
        24 => differing_of::<24>(cells, before),
        32 => differing_of::<32>(cells, before),
        _ => {
            let rows = cells.chunks_exact(size).zip(before.chunks_exact(size)).enumerate();
            rows.fold(0, |found, (row, (cell, before))| found | u64::from(cell != before) << row)
        }
    }
}

#[inline]
fn differing_of<const N: usize>(cells: &[u8], before: &[u8]) -> u64 {
    let rows = cells.as_chunks::<N>().0.iter().zip(before.as_chunks::<N>().0).enumerate();
    rows.fold(0, |found, (row, (cell, before))| found | u64::from(differs(cell, before)) << row)
}

/// Whether bytes differ, without a branch on them: a comparison of arrays ends at the first that does.
#[inline]
fn differs<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let words =
        a.iter().zip(b).fold(0, |found, (a, b)| found | u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b));
    let rest = a_rest.iter().zip(b_rest).fold(0, |found, (a, b)| found | a ^ b);
    words | u64::from(rest) != 0
}

/// The cells of these rows one after the other.
fn gather<'a>(size: usize, cells: &[u8], rows: u64, out: &'a mut [u8]) -> &'a [u8] {
    match size {
        1 => gather_of::<1>(cells, rows, out),
        2 => gather_of::<2>(cells, rows, out),
        4 => gather_of::<4>(cells, rows, out),
        8 => gather_of::<8>(cells, rows, out),
        16 => gather_of::<16>(cells, rows, out),
        24 => gather_of::<24>(cells, rows, out),
        _ => {
            for (row, to) in ones(rows).zip(out.chunks_exact_mut(size)) {
                to.copy_from_slice(&cells[row * size..][..size]);
            }
        }
    }
    &out[..rows.count_ones() as usize * size]
}

#[inline]
fn gather_of<const N: usize>(cells: &[u8], rows: u64, out: &mut [u8]) {
    let cells = cells.as_chunks::<N>().0;
    for (row, to) in ones(rows).zip(out.as_chunks_mut::<N>().0) {
        *to = cells[row];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::{Kind, Properties, Schema};

    #[test]
    fn finds_and_gathers_cells_of_any_size() {
        let mut rng = Rng::seeded(8);
        for size in 1..=40 {
            let before: Vec<u8> = (0..size * BLOCK).map(|_| rng.next_u64() as u8).collect();
            let changed = rng.next_u64() & rng.next_u64();
            let mut cells = before.clone();
            for row in ones(changed) {
                cells[row * size + rng.below(size as u64) as usize] ^= 1;
            }
            assert_eq!(differing(size, &cells, &before), changed);
            let rows: Vec<u8> = ones(changed).flat_map(|row| cells[row * size..][..size].to_vec()).collect();
            assert_eq!(gather(size, &cells, changed, &mut vec![0; size * BLOCK]), rows);
        }
    }

    #[test]
    fn words_of_some_rows_are_those_of_these_rows() {
        let kinds = [
            Kind::Ranged { lo: 0, hi: 200 },
            Kind::Vector { axes: 3, lo: -10.0, hi: 10.0, resolution: 0.1 },
            Kind::Optional(Box::new(Kind::Ranged { lo: 3, hi: 900 })),
            Kind::Rotation { bits: 9 },
        ];
        let mut rng = Rng::seeded(9);
        for kind in kinds {
            let properties = Properties::new(Schema::new([("f", kind)]).unwrap()).unwrap();
            let property = &properties.each()[0];
            let (size, count) = (property.field().node().size(), property.words().len());
            let mut scan = Scan::new(property, 0);
            let mut words = vec![0; count * 2 * BLOCK];
            let mut cells = vec![0; size * 2 * BLOCK];
            let ranges: Vec<u64> = words
                .iter_mut()
                .enumerate()
                .map(|(i, word)| {
                    *word = rng.below(property.words()[i % count].last().min(120));
                    *word
                })
                .collect();
            property.restore_column(&ranges, &mut cells, size);
            property.quantize_column(&cells, size, &mut words).unwrap();
            for dirty in [0, 1, 7, 6, u64::MAX, rng.next_u64(), 1 << 63] {
                scan.quantize(property, &cells, BLOCK, dirty, |row, error| panic!("{row} {error}"));
                let (newest, mut masks) = (vec![u64::MAX; count * BLOCK], [0; BLOCK]);
                assert_eq!(scan.mark(&newest, count, 4, &mut masks), dirty);
                let mut copied = vec![0; count * BLOCK];
                scan.copy(&mut copied, count, dirty & 5);
                for row in ones(dirty) {
                    let expected = &words[(BLOCK + row) * count..][..count];
                    let none = vec![0; count];
                    assert_eq!(
                        copied[row * count..][..count],
                        *if row % 2 == 0 && row < 4 { expected } else { &none }
                    );
                    assert_eq!(masks[row], 4);
                }
                assert_eq!(scan.mark(&words[BLOCK * count..], count, 4, &mut [0; BLOCK]), 0, "as they were");
            }
        }
    }
}
