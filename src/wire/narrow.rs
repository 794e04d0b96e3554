//! Updates of classes whose words have 32 bits at most: first the residuals of a packet are read, then words are made of them.
//!
//! Promises: the words, and the refusals, are those of [`Property::read_delta`] and [`Property::read_ahead`] one by one.

use super::codec::Codec;
use super::properties::Properties;
use super::property::{MAX_LEAF_WORDS, Property};
use super::words::WordRange;
use super::{BitReader, Node, ReadError};
use crate::store::ones;

/// The state before a base, how many ticks it was before that, and for how many it goes on.
type Older<'w> = (&'w [u32], u16, u16);

/// A reader with the next of its bits at hand.
struct Window<'s, 'a> {
    reader: &'s mut BitReader<'a>,
    bits: u64,
    /// How many of them there are.
    left: u32,
}

impl Window<'_, '_> {
    #[inline]
    fn residual(&mut self, range: &WordRange) -> Result<u64, ReadError> {
        if self.left < range.max_bits()
            && let Some(bits) = self.reader.peek()
        {
            (self.bits, self.left) = (bits, u64::BITS);
        }
        if self.left >= range.max_bits()
            && let Some((residual, taken)) = range.residual_of(self.bits)
        {
            self.bits = self.bits.unbounded_shr(taken);
            self.left -= taken;
            self.reader.skip_peeked(taken);
            return Ok(residual);
        }
        // Near the end, or it is refused.
        self.left = 0;
        range.read_residual(self.reader)
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

impl Properties {
    /// Whether [`Properties::read_residuals`] reads all of them.
    pub(crate) fn are_narrow(&self) -> bool {
        self.each().iter().all(Property::is_narrow)
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
        let mut window = Window { reader, bits: 0, left: 0 };
        for i in ones(mask) {
            let property = &self.each()[i];
            let places = &mut residuals[self.word_start(i)..][..property.words().len()];
            for (range, place) in property.words().iter().zip(places) {
                // Of 32 bits.
                *place = window.residual(range)? as u32;
            }
        }
        Ok(())
    }

    /// Makes words of [`Properties::read_residuals`], against those of a base or what goes on from it and an older state. What isn't
    /// in the mask has the words of the base.
    #[inline]
    #[allow(clippy::needless_range_loop)] // Of one length all: a zip of four costs more than the words.
    pub(crate) fn resolve(&self, mask: u64, base: &[u32], older: Option<Older<'_>>, words: &mut [u32]) {
        for (i, property) in self.each().iter().enumerate() {
            let (ranges, range) = (property.words(), self.word_range(i));
            let (base, words) = (&base[range.clone()], &mut words[range.clone()]);
            if mask >> i & 1 == 0 {
                words.copy_from_slice(base);
                continue;
            }
            let Some((older, past, ahead)) = older else {
                for at in 0..ranges.len().min(base.len()).min(words.len()) {
                    words[at] = ranges[at].word(words[at].into(), base[at].into()) as u32;
                }
                continue;
            };
            let older = &older[range];
            // Another component is the largest: the three that follow stay.
            let turned = property.largest_at().filter(|at| older.get(*at) != base.get(*at));
            let still = turned.map_or(0..0, |at| at + 1..at + 4);
            for at in 0..ranges.len().min(base.len()).min(words.len()).min(older.len()) {
                let (range, newer) = (&ranges[at], u64::from(base[at]));
                let stands = still.contains(&at);
                let from =
                    if stands { newer } else { range.extrapolate(older[at].into(), newer, past, ahead) };
                words[at] = range.word(words[at].into(), from) as u32;
            }
        }
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
        assert!(properties.are_narrow());
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
            assert_eq!(properties.read_residuals(mask, &mut at_once, &mut found), result);
            assert_eq!(at_once.position(), one_by_one.position());
            if result.is_ok() {
                properties.resolve(mask, &base, older, &mut found);
                assert_eq!(found, narrow(&expected));
            }
        }
    }
}
