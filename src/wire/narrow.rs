//! Updates of classes whose words have 32 bits at most: first the residuals of a packet are read, then words are made of them.
//!
//! What depends on the class alone is found out once, and what depends on the mask for all records in a row that have the same.
//!
//! Promises: the words, and the refusals, are those of [`Property::read_delta`] and [`Property::read_ahead`] one by one.

use core::ops::Range;

use super::lanes::{Lanes, is_laned};
use super::narrow_cells::{NarrowCells, restore_other};
use super::properties::Properties;
use super::property::Property;
use super::residuals::{LOOK_BITS, Step, read_run};
use super::words::WordRange;
use super::{BitReader, Node, ReadError};
use crate::store::ones;

/// The state before a base, how many ticks it was before that, and for how many it goes on.
type Older<'w> = (&'w [u32], u16, u16);

impl Property {
    /// Whether it is one value of words of up to 32 bits, each of which it may have beside any other.
    fn is_narrow(&self) -> bool {
        let Node::Leaf(leaf) = self.field().node() else { return false };
        let narrow = self.words().iter().all(|range| range.bits() <= u32::BITS);
        self.has_words() && narrow && leaf.codec().has_all_values()
    }
}

/// A property's words, and of a rotation the one that says which component is the largest; and how its cells are made.
#[derive(Clone, Debug)]
struct Part {
    words: Range<usize>,
    largest: Option<usize>,
    cells: NarrowCells,
}

/// What updates of a mask have, found out once for all in a row that have the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaskWords {
    mask: u64,
    /// Words in a row that they have, and that they don't have.
    read: Vec<Range<usize>>,
    kept: Vec<Range<usize>>,
    /// Words that they have which aren't computed at once.
    alone: Vec<usize>,
    /// Words that say which component of a rotation is the largest.
    largest: Vec<usize>,
}

impl MaskWords {
    /// Makes these the words of updates that have a mask.
    #[inline]
    pub(crate) fn set(&mut self, mask: u64, narrow: &Narrow) {
        if self.mask != mask {
            self.find(mask, narrow);
        }
    }

    #[inline(never)]
    fn find(&mut self, mask: u64, narrow: &Narrow) {
        self.mask = mask;
        for (runs, mask) in [(&mut self.read, mask), (&mut self.kept, !mask & narrow.all)] {
            runs.clear();
            runs.extend(narrow.runs(mask));
        }
        for (words, all) in [(&mut self.alone, &narrow.alone), (&mut self.largest, &narrow.turning)] {
            words.clear();
            words.extend(all.iter().filter(|(_, part)| mask >> part & 1 == 1).map(|(at, _)| at));
        }
    }
}

/// How the updates of a class are read.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    steps: Box<[Step]>,
    parts: Box<[Part]>,
    /// The words that are computed at once, and the others with their properties.
    lanes: Lanes,
    alone: Box<[(usize, usize)]>,
    /// By word, the mask of its property.
    masks: Box<[u32]>,
    /// The words that say which component of a rotation is the largest, with their properties.
    turning: Box<[(usize, usize)]>,
    /// The mask of all.
    all: u64,
}

impl Narrow {
    /// None if there are more than 32 properties, or one has no words, or wider ones, or some that may not stand beside others.
    pub(crate) fn of(properties: &Properties) -> Option<Self> {
        let each = properties.each();
        if each.len() > u32::BITS as usize || !each.iter().all(Property::is_narrow) {
            return None;
        }
        let part = |(i, property): (usize, &Property)| {
            let words = properties.word_range(i);
            let largest = property.largest_at().map(|at| words.start + at);
            Part { largest, words, cells: NarrowCells::of(property) }
        };
        let parts: Box<[Part]> = each.iter().enumerate().map(part).collect();
        let ranges: Vec<WordRange> = each.iter().flat_map(Property::words).copied().collect();
        let of_part =
            parts.iter().enumerate().flat_map(|(i, part)| part.words.clone().map(move |at| (at, i)));
        let masks = of_part.clone().map(|(_, part)| 1 << part).collect();
        let alone = of_part.filter(|(at, _)| !is_laned(&ranges[*at])).collect();
        let turning = parts.iter().enumerate().filter_map(|(i, part)| Some((part.largest?, i))).collect();
        Some(Narrow {
            steps: ranges.iter().map(Step::new).collect(),
            lanes: Lanes::new(&ranges),
            alone,
            masks,
            turning,
            parts,
            all: properties.all(),
        })
    }

    /// The words of a mask's properties: a range for properties in a row.
    #[inline]
    fn runs(&self, mut mask: u64) -> impl Iterator<Item = Range<usize>> {
        core::iter::from_fn(move || {
            let first = mask.trailing_zeros();
            let count = mask.unbounded_shr(first).trailing_ones();
            mask &= u64::MAX.unbounded_shl(first + count);
            let begin = self.parts.get(first as usize)?;
            let end = self.parts.get((first + count) as usize - 1)?;
            Some(begin.words.start..end.words.end)
        })
    }

    /// Reads the residuals of a mask's properties into the places of their words.
    ///
    /// # Errors
    /// As [`Property::read_delta`].
    #[inline]
    pub(crate) fn read_residuals(
        &self,
        of: &MaskWords,
        reader: &mut BitReader<'_>,
        residuals: &mut [u32],
    ) -> Result<(), ReadError> {
        let at = reader.position();
        match reader.look(at).and_then(|bits| self.look_residuals(of, reader, (bits, 0, at), residuals)) {
            Some(end) => reader.skip_to(end),
            None => self.read_each(of, reader, residuals)?,
        }
        Ok(())
    }

    /// As [`Narrow::read_residuals`], from the bits of a look, of which a head has taken as many, and from the position after that:
    /// gives the position after them. None near the end of the data, and where one is refused.
    #[inline(always)]
    pub(crate) fn look_residuals(
        &self,
        of: &MaskWords,
        reader: &BitReader<'_>,
        (mut bits, head, mut position): (u64, u32, usize),
        residuals: &mut [u32],
    ) -> Option<usize> {
        let mut left = LOOK_BITS - head;
        for words in &of.read {
            let (steps, residuals) = (&self.steps[words.clone()], &mut residuals[words.clone()]);
            position = read_run(steps, (&mut bits, position), &mut left, |at| reader.look(at), residuals)?;
        }
        reader.has(position).then_some(position)
    }

    /// As [`Narrow::read_residuals`], one by one.
    #[cold]
    #[inline(never)]
    fn read_each(
        &self,
        of: &MaskWords,
        reader: &mut BitReader<'_>,
        residuals: &mut [u32],
    ) -> Result<(), ReadError> {
        for at in of.read.iter().cloned().flatten() {
            // Of 32 bits.
            residuals[at] = self.steps[at].range.read_residual(reader)? as u32;
        }
        Ok(())
    }

    /// Makes words of [`Narrow::read_residuals`], against those of a base or what goes on from it and an older state. What isn't
    /// in the mask has the words of the base.
    #[inline(always)]
    pub(crate) fn resolve(&self, of: &MaskWords, base: &[u32], older: Option<Older<'_>>, words: &mut [u32]) {
        let count = self.steps.len();
        // All of one length, so that it is checked once.
        let (base, words) = (&base[..count], &mut words[..count]);
        match older {
            None => self.lanes.resolve(base, words),
            Some((older, past, ahead)) => {
                let older = &older[..count];
                // Most go on by one step, and no other component is the largest.
                if (past, ahead) != (1, 1) || of.largest.iter().any(|at| older[*at] != base[*at]) {
                    return self.resolve_each(of.mask, base, (older, past, ahead), words);
                }
                self.lanes.resolve_ahead(older, base, words);
            }
        }
        for at in of.alone.iter().copied() {
            let (range, newer) = (&self.steps[at].range, u64::from(base[at]));
            let from = older.map_or(newer, |(older, ..)| range.extrapolate(older[at].into(), newer, 1, 1));
            words[at] = range.word(words[at].into(), from) as u32;
        }
        for run in &of.kept {
            words[run.clone()].copy_from_slice(&base[run.clone()]);
        }
    }

    /// As [`Narrow::resolve`], word by word.
    #[inline(never)]
    fn resolve_each(&self, mask: u64, base: &[u32], (older, past, ahead): Older<'_>, words: &mut [u32]) {
        for run in self.runs(!mask & self.all) {
            words[run.clone()].copy_from_slice(&base[run]);
        }
        for part in ones(mask).filter_map(|i| self.parts.get(i)) {
            // Another component is the largest: the three that follow stay.
            let turned = part.largest.filter(|at| older[*at] != base[*at]);
            let still = turned.map_or(0..0, |at| at + 1..at + 4);
            for at in part.words.clone() {
                let (range, newer) = (&self.steps[at].range, u64::from(base[at]));
                let stands = still.contains(&at);
                let from =
                    if stands { newer } else { range.extrapolate(older[at].into(), newer, past, ahead) };
                words[at] = range.word(words[at].into(), from) as u32;
            }
        }
    }

    /// The properties of a mask whose words differ between two states.
    #[inline(always)]
    pub(crate) fn differing(&self, mask: u64, a: &[u32], b: &[u32]) -> u64 {
        let count = self.masks.len();
        let pairs = a[..count].iter().zip(&b[..count]);
        let all = pairs.zip(&self.masks);
        mask & u64::from(all.fold(0, |changed, ((a, b), mask)| changed | if a == b { 0 } else { *mask }))
    }

    /// Puts the values of a mask's properties into the cells of a row, as [`Property::restore_column`] does.
    ///
    /// # Panics
    ///
    /// When a column isn't there, or doesn't have the row.
    #[inline]
    pub(crate) fn restore(
        &self,
        properties: &Properties,
        mask: u64,
        state: &[u32],
        row: usize,
        columns: &mut [&mut [u8]],
    ) {
        for i in ones(mask) {
            let (part, column) = (&self.parts[i], &mut columns[i]);
            let size = part.cells.size();
            let (words, cell) = (&state[part.words.clone()], &mut column[row * size..][..size]);
            if !part.cells.restore(words, cell) {
                restore_other(&properties.each()[i], words, cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitWriter, Kind, Schema};
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn classes_of_up_to_32_properties_are_narrow() {
        let of = |count: usize| {
            let fields = (0..count).map(|i| (format!("p{i}"), Kind::Bool));
            Narrow::of(&Properties::new(Schema::new(fields).unwrap()).unwrap())
        };
        let (a, mut b) = ([0; 32], [0; 32]);
        b[31] = 1;
        assert_eq!(of(32).unwrap().differing(u64::MAX, &a, &b), 1 << 31);
        assert!(of(33).is_none());
    }

    /// Of hostile bits too: what is refused is the same, and where the reader is.
    #[test]
    fn narrow_words_are_those_of_reading_one_by_one() {
        let kinds = [
            ("at", Kind::Vector { axes: 3, lo: -2000.0, hi: 2000.0, resolution: 1.0 / 512.0 }),
            ("turned", Kind::Rotation { bits: 9 }),
            ("heading", Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.5 }),
            ("health", Kind::Ranged { lo: 0, hi: 1000 }),
            ("on", Kind::Bool),
            ("speed", Kind::Float),
            ("all", Kind::Bits { bits: 32 }),
        ];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let compiled = Narrow::of(&properties).unwrap();
        let (mut rng, mut of) = (Rng::seeded(6), MaskWords::default());
        for round in 0..8000 {
            let mut state = || -> Vec<u64> {
                let ranges = properties.each().iter().flat_map(|property| property.words());
                ranges.map(|range| rng.next_u64() % (range.last() + 1)).collect()
            };
            let (base, older, words) = (state(), state(), state());
            let mask = 1 + rng.below(127);
            let [past, ahead] = [0; 2].map(|_| 1 + rng.below(3) as u16 * rng.below(2) as u16);
            let goes_on = rng.chance(0.5);
            let mut bits = BitWriter::new();
            for (i, property) in properties.of(mask) {
                let range = properties.word_range(i);
                let mut from = base[range.clone()].to_vec();
                if goes_on {
                    property.extrapolate(&older[range.clone()], &base[range.clone()], past, ahead, &mut from);
                }
                property.write_delta(&words[range], &from, &mut bits);
            }
            let mut bytes = bits.into_bytes();
            if round % 2 == 1 {
                bytes.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8 & rng.next_u64() as u8);
            }
            bytes.resize(bytes.len() + rng.below(12) as usize, 0);
            let (mut one_by_one, mut at_once) = (BitReader::new(&bytes), BitReader::new(&bytes));
            let mut expected = base.clone();
            let result = properties.of(mask).try_for_each(|(i, property)| {
                let range = properties.word_range(i);
                let mut lent = base[range.clone()].to_vec();
                let words = &mut expected[range.clone()];
                if goes_on {
                    let past = (past, ahead);
                    property.read_ahead(&older[range], past, &mut one_by_one, words, &mut lent)
                } else {
                    property.read_delta(&lent, &mut one_by_one, words)
                }
            });
            let narrow = |words: &[u64]| words.iter().map(|word| *word as u32).collect::<Vec<_>>();
            let (base, older, mut found) = (narrow(&base), narrow(&older), vec![u32::MAX; base.len()]);
            let older = goes_on.then_some((&older[..], past, ahead));
            of.set(mask, &compiled);
            assert_eq!(compiled.read_residuals(&of, &mut at_once, &mut found), result);
            assert_eq!(at_once.position(), one_by_one.position());
            if result.is_ok() {
                compiled.resolve(&of, &base, older, &mut found);
                assert_eq!(found, narrow(&expected));
            }
        }
    }
}
