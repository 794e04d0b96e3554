//! One value as words and back: what the wire carries of each number in it.
//!
//! Promises: the words are those of the bits that writing the value takes, and the value made of them is the one that
//! reading these bits gives. Integers above 64 bits, texts and bytes have no words.

use super::codec::Codec;
use super::column::{doubles, put, put_doubles, put_singles};
use super::transform::{Coded, NUMBERS, Transform, Word};
use super::words::{Metric, WordRange};
use super::{BitReader, BitSink, Column, ReadError, SignedThree, SmallestThree, ValueError};

/// Bits of a single: the words of floats are their patterns.
const SINGLE: u64 = u32::MAX as u64;

/// Bits of the name of a rotation's largest component.
const COMPONENT_BITS: u32 = 2;

impl Codec {
    /// Gives the largest word and the metric of each word of a value, in the order of the wire. False when it has none.
    pub(super) fn each_range(&self, each: &mut dyn FnMut(u64, Metric)) -> bool {
        let rotation = |last: u64, each: &mut dyn FnMut(u64, Metric)| {
            each(3, Metric::Choice);
            (0..3).for_each(|_| each(last, Metric::Line));
        };
        match *self {
            Codec::Bool => each(1, Metric::Choice),
            Codec::Unsigned { span, .. } | Codec::Signed { span, .. } => each(span, Metric::Line),
            Codec::Float => each(SINGLE, Metric::Float),
            Codec::Double => each(u64::MAX, Metric::Float),
            Codec::Quantized(ref quantizer) => each(quantizer.last().into(), Metric::Line),
            // At most what a double carries exactly.
            Codec::Fixed(ref format) => each((format.raw_hi() - format.raw_lo()) as u64, Metric::Line),
            Codec::Member { ref values } => each(values.len() as u64 - 1, Metric::Choice),
            Codec::Angle(ref steps) => each(steps.last().into(), Metric::Circle),
            Codec::Vector2(ref steps) => (0..2).for_each(|_| each(steps.last().into(), Metric::Line)),
            Codec::Vector3(ref steps) => (0..3).for_each(|_| each(steps.last().into(), Metric::Line)),
            Codec::Direction(ref direction) => (0..2).for_each(|_| each(direction.last(), Metric::Line)),
            Codec::Rotation(ref codec) => rotation(codec.last(), each),
            Codec::SignedRotation => {
                (0..3).for_each(|_| each(SignedThree::last(), Metric::Line));
                each(1, Metric::Choice);
            }
            Codec::Transform(ref transform) => {
                let last = transform.translation().last();
                (0..3).for_each(|_| each(last.into(), Metric::Line));
                rotation(transform.rotation().last(), each);
                (0..3).for_each(|_| each(SINGLE, Metric::Float));
            }
            Codec::Common(ref common) => return common.item().each_range(each),
            Codec::Wide { .. }
            | Codec::Uint128
            | Codec::Text { .. }
            | Codec::Data { .. }
            | Codec::Raw { .. }
            | Codec::WideText { .. } => return false,
        }
        true
    }

    /// Checks the value at `at` of a body and gives its words.
    pub(super) fn quantize(
        &self,
        body: &[u8],
        at: usize,
        column: Column,
        ranges: &[WordRange],
        words: &mut [u64],
    ) -> Result<(), ValueError> {
        match self {
            Codec::Common(common) => return common.item().quantize(body, at, column, ranges, words),
            Codec::Transform(transform) => {
                let coded = transform.code(doubles::<NUMBERS>(body, at)?)?;
                words.copy_from_slice(&coded_words(transform, &coded));
            }
            _ => {
                let mut written = Word::default();
                self.write_cell(body, at, column, &mut written)?;
                split(written.bits, ranges, words);
            }
        }
        Ok(())
    }

    /// Puts the value of these words into its cell.
    pub(super) fn restore(&self, words: &[u64], cell: &mut [u8], column: Column) {
        let word = |i: usize| words.get(i).copied().unwrap_or_default();
        match *self {
            Codec::Bool => column.store(cell, 0, word(0)),
            Codec::Unsigned { lo, .. } => column.store(cell, 0, lo + word(0)),
            Codec::Signed { lo, .. } => {
                column.store(cell, 0, lo.wrapping_add(word(0).cast_signed()).cast_unsigned());
            }
            // A word of a single has 32 bits.
            Codec::Float => put(cell, 0, (word(0) as u32).to_le_bytes()),
            Codec::Double => put(cell, 0, word(0).to_le_bytes()),
            Codec::Quantized(ref quantizer) => {
                put(cell, 0, quantizer.value(word(0)).unwrap_or_default().to_le_bytes());
            }
            Codec::Fixed(ref format) => {
                put(cell, 0, format.value(format.raw_lo() + i128::from(word(0))).to_le_bytes());
            }
            Codec::Member { ref values } => {
                let value = values.get(word(0) as usize).copied().unwrap_or_default();
                column.store(cell, 0, value.cast_unsigned());
            }
            // Steps have 32 bits.
            Codec::Angle(ref steps) | Codec::Vector2(ref steps) | Codec::Vector3(ref steps) => {
                for (i, word) in words.iter().enumerate() {
                    put(cell, i * 8, steps.value(*word as u32).to_le_bytes());
                }
            }
            // Codes within their bounds can be read. At most 50 bits.
            Codec::Direction(ref direction) => {
                let bits = joined_levels(words, direction.bits() / 2).to_le_bytes();
                put_singles(cell, 0, &direction.read(&mut BitReader::new(&bits)).unwrap_or_default());
            }
            Codec::Rotation(ref rotation) => {
                let code = core::array::from_fn(|i| word(i) as usize);
                rotation.each(code, &mut |i, component| put(cell, i * 4, (component as f32).to_le_bytes()));
            }
            Codec::SignedRotation => {
                let bits = joined_levels(words, (SignedThree::BITS - 1) / 3).to_le_bytes();
                put_singles(cell, 0, &SignedThree::read(&mut BitReader::new(&bits)).unwrap_or_default());
            }
            Codec::Transform(ref transform) => {
                put_doubles(cell, 0, &transform.numbers(&coded_of(transform, words)));
            }
            Codec::Common(ref common) => common.item().restore(words, cell, column),
            Codec::Wide { .. }
            | Codec::Uint128
            | Codec::Text { .. }
            | Codec::Data { .. }
            | Codec::Raw { .. }
            | Codec::WideText { .. } => {}
        }
    }

    /// Writes the value of these words without a baseline.
    pub(super) fn write_words<S: BitSink + ?Sized>(&self, ranges: &[WordRange], words: &[u64], sink: &mut S) {
        match self {
            Codec::Common(common) => common.write_encoded(joined(ranges, words), sink),
            Codec::Transform(transform) => transform.write_coded(&coded_of(transform, words), sink),
            _ => ranges.iter().zip(words).for_each(|(range, word)| range.write(*word, sink)),
        }
    }

    /// Reads the words of a value that was written without a baseline.
    pub(super) fn read_words(
        &self,
        ranges: &[WordRange],
        reader: &mut BitReader<'_>,
        words: &mut [u64],
    ) -> Result<(), ReadError> {
        let plain = |reader: &mut BitReader<'_>, words: &mut [u64]| {
            ranges.iter().zip(words).try_for_each(|(range, word)| {
                *word = range.read(reader)?;
                Ok(())
            })
        };
        match self {
            Codec::Common(common) => {
                if let Some(common) = common.read_common(reader)? {
                    split(common, ranges, words);
                    return Ok(());
                }
                plain(reader, words)?;
                if common.is_common(joined(ranges, words)) {
                    return reader.refuse(ReadError::NotShortest);
                }
                Ok(())
            }
            Codec::Transform(transform) => {
                words.copy_from_slice(&coded_words(transform, &transform.read_coded(reader)?));
                Ok(())
            }
            _ => plain(reader, words),
        }
    }

    /// Whether words, each in its range, form a valid value: floats of a transform may be NaN.
    pub(super) fn has_value(&self, words: &[u64]) -> bool {
        match self {
            Codec::Transform(transform) => {
                coded_of(transform, words).scale.iter().all(|scale| scale.is_finite())
            }
            _ => true,
        }
    }

    /// Whether [`Codec::has_value`] is true of all words.
    pub(super) fn has_all_values(&self) -> bool {
        !matches!(self, Codec::Transform(_))
    }

    /// The index of the rotation's largest component among the words, if there is one: if another component is the
    /// largest, the other words mean other numbers.
    pub(super) fn largest_at(&self) -> Option<usize> {
        match self {
            Codec::Rotation(_) => Some(0),
            Codec::Transform(_) => Some(3),
            Codec::Common(common) => common.item().largest_at(),
            _ => None,
        }
    }
}

/// The words of bits that were written one after the other.
fn split(mut bits: u128, ranges: &[WordRange], words: &mut [u64]) {
    for (range, word) in ranges.iter().zip(words) {
        // The low ones: those above are the next words'.
        *word = bits as u64 & u64::MAX.checked_shr(64 - range.bits()).unwrap_or(0);
        bits = bits.unbounded_shr(range.bits());
    }
}

/// The bits of words, at most 128 of them, one after the other.
fn joined(ranges: &[WordRange], words: &[u64]) -> u128 {
    let mut written = Word::default();
    ranges.iter().zip(words).for_each(|(range, word)| range.write(*word, &mut written));
    written.bits
}

/// As [`joined`], of words that have this many bits each, the last one fewer perhaps.
#[inline]
fn joined_levels(words: &[u64], bits: u32) -> u64 {
    words.iter().rev().fold(0, |joined, word| joined << bits | word)
}

#[inline]
fn rotation_bits(rotation: &SmallestThree, words: &[u64]) -> u64 {
    let bits = (rotation.bits() - COMPONENT_BITS) / 3;
    words.split_first().map_or(0, |(largest, others)| joined_levels(others, bits) << COMPONENT_BITS | largest)
}

/// The words of a rotation's bits.
#[inline]
fn rotation_words(rotation: &SmallestThree, word: u64) -> [u64; 4] {
    let bits = (rotation.bits() - COMPONENT_BITS) / 3;
    let code = |place: u32| word >> (COMPONENT_BITS + place * bits) & (u64::MAX >> (64 - bits));
    [word & 3, code(0), code(1), code(2)]
}

fn coded_words(transform: &Transform, coded: &Coded) -> [u64; NUMBERS] {
    let [x, y, z] = coded.steps.map(u64::from);
    let [largest, a, b, c] = rotation_words(transform.rotation(), coded.rotation);
    let [i, j, k] = coded.scale.map(|scale| u64::from(scale.to_bits()));
    [x, y, z, largest, a, b, c, i, j, k]
}

fn coded_of(transform: &Transform, words: &[u64]) -> Coded {
    // Steps and patterns of singles have 32 bits.
    let word = |i: usize| words.get(i).copied().unwrap_or_default() as u32;
    Coded {
        steps: [word(0), word(1), word(2)],
        rotation: rotation_bits(transform.rotation(), words.get(3..7).unwrap_or_default()),
        scale: [word(7), word(8), word(9)].map(f32::from_bits),
    }
}
