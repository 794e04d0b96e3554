//! Updates of classes whose words have 32 bits at most: first the residuals of a packet are read, then words are made of them.
//!
//! How each word is read is compiled once for a class, so that a record is one loop over them: the flags in front of a
//! residual say by a table how many bits are its own.
//!
//! Promises: the words, and the refusals, are those of [`Property::read_delta`] and [`Property::read_ahead`] one by one.

use core::ops::Range;

use super::codec::Codec;
use super::properties::Properties;
use super::property::{MAX_LEAF_WORDS, Property};
use super::words::WordRange;
use super::{BitReader, Node, ReadError};
use crate::store::ones;

/// The state before a base, how many ticks it was before that, and for how many it goes on.
type Older<'w> = (&'w [u32], u16, u16);

/// How many tiers a word of 32 bits may have, the rest included, rounded up to a power of two.
const TIERS: usize = 8;

/// What is read of a residual after a number of flags of 0.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    first: u32,
    mask: u32,
    flags: u8,
    /// Bits of flags and number.
    taken: u8,
}

/// How a word is read.
#[derive(Clone, Debug)]
struct Step {
    range: WordRange,
    last: u64,
    max_bits: u32,
    /// The flag that ends the search, whatever it is.
    end: u64,
    tiers: [Tier; TIERS],
}

impl Step {
    fn new(range: &WordRange) -> Self {
        let mut step = Step {
            range: *range,
            last: range.last(),
            max_bits: range.max_bits(),
            end: 1,
            tiers: [Tier::default(); TIERS],
        };
        for (i, (first, flags, bits)) in range.tiers().enumerate() {
            // All of words of 32 bits have at most 38.
            let (mask, taken) = (u32::MAX.unbounded_shr(u32::BITS - bits), (flags + bits) as u8);
            step.tiers[i] = Tier { first: first as u32, mask, flags: flags as u8, taken };
            step.end = 1 << i;
        }
        step
    }
}

/// A reader with the next of its bits at hand.
struct Window<'s, 'a> {
    reader: &'s mut BitReader<'a>,
    bits: u64,
    /// How many of them there are, and how many there were.
    left: u32,
    had: u32,
}

impl<'s, 'a> Window<'s, 'a> {
    fn new(reader: &'s mut BitReader<'a>) -> Self {
        Window { reader, bits: 0, left: 0, had: 0 }
    }

    /// Moves the reader past the bits that were used.
    #[inline]
    fn settle(&mut self) {
        self.reader.skip_peeked(self.had - self.left);
        (self.left, self.had) = (0, 0);
    }

    #[inline]
    fn residual(&mut self, step: &Step) -> Result<u32, ReadError> {
        if self.left < step.max_bits {
            self.settle();
            let Some(bits) = self.reader.peek() else { return self.slowly(step) };
            (self.bits, self.left, self.had) = (bits, u64::BITS, u64::BITS);
        }
        let tier = &step.tiers[(self.bits | step.end).trailing_zeros() as usize % TIERS];
        let residual = u64::from(tier.first) + (self.bits >> tier.flags & u64::from(tier.mask));
        if residual > step.last {
            return self.slowly(step);
        }
        self.bits >>= tier.taken;
        self.left -= u32::from(tier.taken);
        // Of 32 bits.
        Ok(residual as u32)
    }

    /// Near the end, or it is refused.
    #[cold]
    #[inline(never)]
    fn slowly(&mut self, step: &Step) -> Result<u32, ReadError> {
        self.settle();
        Ok(step.range.read_residual(self.reader)? as u32)
    }
}

impl Property {
    /// Whether it is one value of words of up to 32 bits, each of which it may have beside any other.
    fn is_narrow(&self) -> bool {
        let Node::Leaf(leaf) = self.field().node() else { return false };
        let narrow = self.words().iter().all(|range| range.bits() <= u32::BITS);
        self.has_words() && narrow && leaf.codec().has_all_values()
    }

    /// Puts the value of these words into its cell, as [`Property::restore_column`] does.
    ///
    /// # Panics
    ///
    /// When the cell is shorter than the value.
    #[inline]
    pub(crate) fn restore_narrow(&self, words: &[u32], cell: &mut [u8]) {
        if let Node::Leaf(leaf) = self.field().node() {
            match leaf.codec() {
                Codec::Vector2(steps) | Codec::Vector3(steps) => {
                    let numbers = cell.as_chunks_mut::<8>().0.iter_mut();
                    return numbers
                        .zip(words)
                        .for_each(|(number, word)| *number = steps.value(*word).to_le_bytes());
                }
                Codec::Rotation(rotation) => {
                    if let (Some(words), Some(numbers)) = (words.first_chunk(), cell.first_chunk_mut::<16>())
                    {
                        let numbers = numbers.as_chunks_mut::<4>().0;
                        return rotation.each(words.map(|word| word as usize), &mut |i, component| {
                            numbers[i & 3] = (component as f32).to_le_bytes();
                        });
                    }
                }
                _ => {}
            }
        }
        let mut all = [0; MAX_LEAF_WORDS];
        let all = &mut all[..words.len()];
        all.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from(*word));
        self.restore_column(all, cell, cell.len());
    }
}

/// A property's words, and of a rotation the one that says which component is the largest.
#[derive(Clone, Debug)]
struct Part {
    words: Range<usize>,
    largest: Option<usize>,
}

/// How the updates of a class are read.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    steps: Box<[Step]>,
    parts: Box<[Part]>,
    /// The mask of all.
    all: u64,
}

impl Narrow {
    /// None if a property has no words or wider ones, or if some of its words may not stand beside others.
    pub(crate) fn of(properties: &Properties) -> Option<Self> {
        let each = properties.each();
        let part = |(i, property): (usize, &Property)| {
            let words = properties.word_range(i);
            Part { largest: property.largest_at().map(|at| words.start + at), words }
        };
        each.iter().all(Property::is_narrow).then(|| Narrow {
            steps: each.iter().flat_map(Property::words).map(Step::new).collect(),
            parts: each.iter().enumerate().map(part).collect(),
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
        mask: u64,
        reader: &mut BitReader<'_>,
        residuals: &mut [u32],
    ) -> Result<(), ReadError> {
        let mut window = Window::new(reader);
        for run in self.runs(mask) {
            for (step, place) in self.steps[run.clone()].iter().zip(&mut residuals[run]) {
                *place = window.residual(step)?;
            }
        }
        window.settle();
        Ok(())
    }

    /// Makes words of [`Narrow::read_residuals`], against those of a base or what goes on from it and an older state. What isn't
    /// in the mask has the words of the base.
    #[inline]
    pub(crate) fn resolve(&self, mask: u64, base: &[u32], older: Option<Older<'_>>, words: &mut [u32]) {
        let count = self.steps.len();
        // All of one length, so that it is checked once.
        let (base, words) = (&base[..count], &mut words[..count]);
        for run in self.runs(!mask & self.all) {
            words[run.clone()].copy_from_slice(&base[run]);
        }
        let Some((older, past, ahead)) = older else {
            for run in self.runs(mask) {
                let pairs = words[run.clone()].iter_mut().zip(&base[run.clone()]);
                for (step, (word, base)) in self.steps[run].iter().zip(pairs) {
                    *word = step.range.word((*word).into(), (*base).into()) as u32;
                }
            }
            return;
        };
        let older = &older[..count];
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
    #[inline]
    pub(crate) fn differing(&self, mask: u64, a: &[u32], b: &[u32]) -> u64 {
        let count = self.steps.len();
        let (a, b) = (&a[..count], &b[..count]);
        let mut changed = 0;
        for i in ones(mask) {
            let Some(part) = self.parts.get(i) else { break };
            let pairs = a[part.words.clone()].iter().zip(&b[part.words.clone()]);
            let differs = pairs.fold(0, |differs, (a, b)| differs | (a ^ b));
            changed |= u64::from(differs != 0) << i;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitWriter, Kind, Schema};
    use super::*;
    use crate::rng::Rng;

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
        let mut rng = Rng::seeded(6);
        for round in 0..4000 {
            let mut state = || -> Vec<u64> {
                let ranges = properties.each().iter().flat_map(|property| property.words());
                ranges.map(|range| rng.next_u64() % (range.last() + 1)).collect()
            };
            let (base, older, words) = (state(), state(), state());
            let mask = 1 + rng.below(127);
            let (past, ahead) = (1 + rng.below(3) as u16, 1 + rng.below(3) as u16);
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
            let (base, older, mut found) = (narrow(&base), narrow(&older), vec![0; base.len()]);
            let older = goes_on.then_some((&older[..], past, ahead));
            assert_eq!(compiled.read_residuals(mask, &mut at_once, &mut found), result);
            assert_eq!(at_once.position(), one_by_one.position());
            if result.is_ok() {
                compiled.resolve(mask, &base, older, &mut found);
                assert_eq!(found, narrow(&expected));
            }
        }
    }
}
