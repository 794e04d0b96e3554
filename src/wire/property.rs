//! One field as a property: of many objects, sent when it changed.
//!
//! A property of fixed width has words (see [`super::words`]), so that what changed is found by comparing integers,
//! and the values sent are integers, made once for all receivers. Others (texts, bytes, lists, integers above 64
//! bits, and what has such parts) have none, and go whole.
//!
//! | part | its words | written whole | as a delta, against the same words of the baseline |
//! |---|---|---|---|
//! | one value | of its numbers | as in a message | each word |
//! | optional | 1 or 0, then the item's: all 0 without an item | as in a message | the flag, then the item's if there is one |
//! | message | of its fields | as in a message | each field |
//!
//! Promises: words written whole are bit for bit what the value takes in a message. Refuses, when reading, what no
//! value has. What is refused may have changed the words that were to be read: read into others than those in use.

use core::convert::Infallible;
use core::ops::Range;

use super::column::cell;
use super::node::Leaf;
use super::words::{Metric, WordRange};
use super::{BitReader, BitSink, Field, Kind, Measure, Node, ReadError, ValueError};

/// A field with the words of its values.
#[derive(Clone, Debug)]
pub struct Property {
    field: Field,
    ranges: Box<[WordRange]>,
    /// In the order of the wire; none of a property that goes whole.
    parts: Box<[ValuePart]>,
}

/// A part of a property's value.
#[derive(Clone, Debug)]
enum ValuePart {
    /// One value: where its cell begins among the property's bytes, and its words.
    Value { leaf: Leaf, at: usize, words: Range<usize> },
    /// Whether an optional has an item, whose parts follow.
    Presence(Presence),
}

#[derive(Clone, Debug)]
struct Presence {
    /// The item's bytes; the byte behind them says whether there is one.
    cell: Range<usize>,
    /// The word that holds the flag, and behind it the item's words.
    words: Range<usize>,
    /// How many parts are the item's.
    parts: usize,
}

impl Presence {
    fn is_in(&self, words: &[u64]) -> bool {
        words[self.words.start] != 0
    }

    /// The item's words, without the one that says whether there is an item.
    fn item(&self) -> Range<usize> {
        self.words.start + 1..self.words.end
    }

    /// Puts into words whether there is an item; without one, its words are 0.
    fn note(&self, is_present: bool, words: &mut [u64]) -> bool {
        words[self.words.start] = is_present.into();
        if !is_present {
            words[self.item()].fill(0);
        }
        is_present
    }
}

impl Property {
    pub(super) fn new(field: &Field) -> Self {
        let (mut parts, mut found) = (Vec::new(), Vec::new());
        if !add(field.node(), is_flags(field.kind()), 0, &mut parts, &mut found) {
            (parts, found) = (Vec::new(), Vec::new());
        }
        let several = found.iter().filter(|(last, _)| *last > 1).count() > 1;
        let ranges = found.iter().map(|(last, metric)| WordRange::new(*last, *metric, several));
        Property { field: field.clone(), ranges: ranges.collect(), parts: parts.into() }
    }

    pub fn field(&self) -> &Field {
        &self.field
    }

    /// What its words can be; none of a property that goes whole.
    pub fn words(&self) -> &[WordRange] {
        &self.ranges
    }

    /// Whether it has words.
    pub fn has_words(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Visits the parts in order; those of an item only if `each` returns true of its presence.
    #[inline]
    fn visit<E>(&self, mut each: impl FnMut(&ValuePart) -> Result<bool, E>) -> Result<(), E> {
        let mut next = 0;
        while let Some(part) = self.parts.get(next) {
            next = match (part, each(part)?) {
                (ValuePart::Presence(presence), false) => next + 1 + presence.parts,
                _ => next + 1,
            };
        }
        Ok(())
    }

    /// Checks the value of the row at `row` of a body and gives its words, as many as [`Property::words`] has.
    ///
    /// # Errors
    /// Why the value can't be written.
    pub fn quantize(&self, body: &[u8], row: usize, words: &mut [u64]) -> Result<(), ValueError> {
        self.quantize_at(body, row.saturating_add(self.field.offset()), words)
    }

    /// As [`Property::quantize`], of the value at `at`.
    pub(super) fn quantize_at(&self, body: &[u8], at: usize, words: &mut [u64]) -> Result<(), ValueError> {
        self.visit(|part| match part {
            ValuePart::Value { leaf, at: within, words: range } => {
                let (at, ranges) = (at.saturating_add(*within), &self.ranges[range.clone()]);
                let quantized = &mut words[range.clone()];
                leaf.codec().quantize(body, at, leaf.column(), ranges, quantized).map(|()| true)
            }
            ValuePart::Presence(presence) => {
                let flag = cell::<1>(body, at.saturating_add(presence.cell.end)).ok_or(ValueError::Row)?;
                Ok(presence.note(flag != [0], words))
            }
        })
    }

    /// Puts the value of these words into its place in the row that `row` begins with.
    pub fn restore(&self, words: &[u64], row: &mut [u8]) {
        self.restore_at(words, &mut row[self.field.offset()..]);
    }

    /// As [`Property::restore`], into its cell.
    pub(super) fn restore_at(&self, words: &[u64], cell: &mut [u8]) {
        let Ok(()) = self.visit::<Infallible>(|part| match part {
            ValuePart::Value { leaf, at, words: range } => {
                leaf.codec().restore(&words[range.clone()], &mut cell[*at..], leaf.column());
                Ok(true)
            }
            ValuePart::Presence(presence) => {
                let is_present = presence.is_in(words);
                cell[presence.cell.end] = is_present.into();
                if !is_present {
                    cell[presence.cell.clone()].fill(0);
                }
                Ok(is_present)
            }
        });
    }

    pub fn write<S: BitSink + ?Sized>(&self, words: &[u64], sink: &mut S) {
        let Ok(()) = self.visit::<Infallible>(|part| match part {
            ValuePart::Value { leaf, words: range, .. } => {
                leaf.codec().write_words(&self.ranges[range.clone()], &words[range.clone()], sink);
                Ok(true)
            }
            ValuePart::Presence(presence) => {
                sink.bool(presence.is_in(words));
                Ok(presence.is_in(words))
            }
        });
    }

    /// Reads words that were written whole.
    ///
    /// # Errors
    /// Everything that reading a message refuses.
    pub fn read(&self, reader: &mut BitReader<'_>, words: &mut [u64]) -> Result<(), ReadError> {
        self.visit(|part| match part {
            ValuePart::Value { leaf, words: range, .. } => {
                let (ranges, words) = (&self.ranges[range.clone()], &mut words[range.clone()]);
                leaf.codec().read_words(ranges, reader, words).map(|()| true)
            }
            ValuePart::Presence(presence) => Ok(presence.note(reader.bool()?, words)),
        })
    }

    /// Writes words against those of a baseline.
    pub fn write_delta<S: BitSink + ?Sized>(&self, words: &[u64], baseline: &[u64], sink: &mut S) {
        let Ok(()) = self.visit::<Infallible>(|part| match part {
            ValuePart::Value { words: range, .. } => {
                for i in range.clone() {
                    self.ranges[i].write_delta(words[i], baseline[i], sink);
                }
                Ok(true)
            }
            ValuePart::Presence(presence) => {
                sink.bool(presence.is_in(words));
                Ok(presence.is_in(words))
            }
        });
    }

    /// Bits that [`Property::write_delta`] takes.
    #[inline]
    pub fn delta_bits(&self, words: &[u64], baseline: &[u64]) -> u32 {
        if matches!(self.field.node(), Node::Leaf(_)) {
            let words = words.iter().zip(baseline);
            return self
                .ranges
                .iter()
                .zip(words)
                .map(|(range, (word, base))| range.delta_bits(*word, *base))
                .sum();
        }
        let mut measure = Measure::new();
        self.write_delta(words, baseline, &mut measure);
        // What has words has no align: the bound is exact, and below 2^16.
        measure.bits_bound() as u32
    }

    /// The residuals of words against a base, and against what goes on from it and an older state, where these are all that
    /// [`Property::write_delta`] writes of them, and the bits that each take; None of a property of several parts.
    #[inline]
    #[allow(clippy::needless_range_loop)] // Of one length all: a zip of six costs more than the words.
    pub(crate) fn residuals(
        &self,
        words: &[u64],
        [base, older]: [&[u64]; 2],
        (past, ahead): (u16, u16),
        [stays, goes]: [&mut [u64]; 2],
    ) -> Option<[u32; 2]> {
        let Node::Leaf(leaf) = self.field.node() else { return None };
        let (ranges, count) = (&*self.ranges, self.ranges.len());
        // All of one length, so that it is checked once.
        let (words, base, older) = (&words[..count], &base[..count], &older[..count]);
        let (stays, goes) = (&mut stays[..count], &mut goes[..count]);
        let mut bits = [0; 2];
        // A loop each: both at once need more registers than there are.
        for at in 0..count {
            stays[at] = ranges[at].residual(words[at], base[at]);
            bits[0] += ranges[at].residual_bits(stays[at]);
        }
        for at in 0..count {
            let ahead = ranges[at].extrapolate(older[at], base[at], past, ahead);
            goes[at] = ranges[at].residual(words[at], ahead);
        }
        // Another component of a rotation is the largest: the three that follow stay.
        if let Some(at) = leaf.codec().largest_at().filter(|at| older.get(*at) != base.get(*at)) {
            goes[at + 1..at + 4].copy_from_slice(&stays[at + 1..at + 4]);
        }
        for at in 0..count {
            bits[1] += ranges[at].residual_bits(goes[at]);
        }
        Some(bits)
    }

    /// Writes what [`Property::residuals`] gave, as [`Property::write_delta`] does.
    #[inline]
    pub(crate) fn write_residuals<S: BitSink + ?Sized>(&self, residuals: &[u64], sink: &mut S) {
        let each = self.ranges.iter().zip(residuals);
        each.for_each(|(range, residual)| range.write_residual(*residual, sink));
    }

    /// Reads words that were written against this baseline.
    ///
    /// # Errors
    /// At the end of the bits, and a word outside of its range.
    pub fn read_delta(
        &self,
        baseline: &[u64],
        reader: &mut BitReader<'_>,
        words: &mut [u64],
    ) -> Result<(), ReadError> {
        self.visit(|part| match part {
            ValuePart::Value { leaf, words: range, .. } => {
                for i in range.clone() {
                    words[i] = self.ranges[i].read_delta(baseline[i], reader)?;
                }
                let has_value = leaf.codec().has_value(&words[range.clone()]);
                if has_value { Ok(true) } else { reader.refuse(ReadError::NotFinite) }
            }
            ValuePart::Presence(presence) => Ok(presence.note(reader.bool()?, words)),
        })
    }

    /// Reads words that were written against what [`Property::extrapolate`] makes of `older` and `words`, the newer ones, in whose
    /// place they come. `lent` has room for as many.
    ///
    /// # Errors
    /// As [`Property::read_delta`].
    pub(crate) fn read_ahead(
        &self,
        older: &[u64],
        (past, ahead): (u16, u16),
        reader: &mut BitReader<'_>,
        words: &mut [u64],
        lent: &mut [u64],
    ) -> Result<(), ReadError> {
        let Node::Leaf(leaf) = self.field.node() else {
            self.extrapolate(older, words, past, ahead, lent);
            return self.read_delta(lent, reader, words);
        };
        let turned = |at: &usize| older.get(*at) != words.get(*at);
        let still = leaf.codec().largest_at().filter(turned).map_or(0..0, |at| at + 1..at + 4);
        for (i, (range, (word, older))) in self.ranges.iter().zip(words.iter_mut().zip(older)).enumerate() {
            let ahead =
                if still.contains(&i) { *word } else { range.extrapolate(*older, *word, past, ahead) };
            *word = range.read_delta(ahead, reader)?;
        }
        if leaf.codec().has_value(words) { Ok(()) } else { reader.refuse(ReadError::NotFinite) }
    }

    /// Skips a property with words, written whole or as a delta.
    ///
    /// # Errors
    ///
    /// Those of reading it, except for those that depend on the baseline.
    pub fn skip(&self, delta: bool, reader: &mut BitReader<'_>) -> Result<(), ReadError> {
        self.visit(|part| match part {
            ValuePart::Value { words, .. } if delta => {
                let mut ranges = self.ranges[words.clone()].iter();
                ranges.try_for_each(|range| range.read_residual(reader).map(drop)).map(|()| true)
            }
            ValuePart::Value { leaf, words, .. } => {
                let mut skipped = [0; MAX_LEAF_WORDS];
                let ranges = &self.ranges[words.clone()];
                leaf.codec().read_words(ranges, reader, &mut skipped[..words.len()]).map(|()| true)
            }
            ValuePart::Presence(_) => reader.bool(),
        })
    }

    /// Extrapolates words by `ahead` ticks after `newer`, from their change in the `past` ticks since `older`. See
    /// [`WordRange::extrapolate`].
    pub fn extrapolate(&self, older: &[u64], newer: &[u64], past: u16, ahead: u16, words: &mut [u64]) {
        let turned = |at: usize| older.get(at) != newer.get(at);
        let each = self.ranges.iter().zip(&mut *words).zip(older.iter().zip(newer));
        each.for_each(|((range, word), (older, newer))| {
            *word = range.extrapolate(*older, *newer, past, ahead);
        });
        if let Some(at) = largest_at(self.field.node()).filter(|at| turned(*at)) {
            words[at + 1..at + 4].copy_from_slice(&newer[at + 1..at + 4]);
        }
    }

    /// Where the word is which says what the words of a rotation mean, and the first of these three.
    #[inline]
    pub fn largest_at(&self) -> Option<usize> {
        largest_at(self.field.node())
    }

    /// Whether a value has these words: each in its range, all of what isn't there 0.
    pub fn has_value(&self, words: &[u64]) -> bool {
        let in_range = self.ranges.iter().zip(words).all(|(range, word)| *word <= range.last());
        let visited = self.visit(|part| match part {
            ValuePart::Value { leaf, words: range, .. } => {
                leaf.codec().has_value(&words[range.clone()]).then_some(true).ok_or(())
            }
            ValuePart::Presence(presence) => {
                let is_present = presence.is_in(words);
                let is_empty = || words[presence.item()].iter().all(|word| *word == 0);
                (is_present || is_empty()).then_some(is_present).ok_or(())
            }
        });
        in_range && visited.is_ok()
    }
}

/// Where the place of a rotation's largest component is among the words of one value.
fn largest_at(node: &Node) -> Option<usize> {
    if let Node::Leaf(leaf) = node { leaf.codec().largest_at() } else { None }
}

/// The most words of one value.
pub(super) const MAX_LEAF_WORDS: usize = super::transform::NUMBERS;

/// Adds the parts of a node whose cell begins at `at`, and the largest word and the metric of each of its words. False when
/// it has a part without words.
fn add(
    node: &Node,
    are_flags: bool,
    at: usize,
    parts: &mut Vec<ValuePart>,
    found: &mut Vec<(u64, Metric)>,
) -> bool {
    let start = found.len();
    match node {
        Node::Leaf(leaf) => {
            // Each flag separately: the numbers that flags form have no distance.
            let metric_of = |metric| if are_flags { Metric::Choice } else { metric };
            let has_words =
                leaf.codec().each_range(&mut |last, metric| found.push((last, metric_of(metric))));
            parts.push(ValuePart::Value { leaf: leaf.clone(), at, words: start..found.len() });
            has_words
        }
        Node::Optional(optional) => {
            let (place, cell) = (parts.len(), at..at + optional.item().size());
            found.push((1, Metric::Choice));
            let has_words = add(optional.item(), are_flags, at, parts, found);
            let (words, count) = (start..found.len(), parts.len() - place);
            parts.insert(place, ValuePart::Presence(Presence { cell, words, parts: count }));
            has_words
        }
        Node::Nested(schema) => schema
            .fields()
            .iter()
            .all(|field| add(field.node(), is_flags(field.kind()), at + field.offset(), parts, found)),
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => false,
    }
}

fn is_flags(kind: &Kind) -> bool {
    match kind {
        Kind::Flags { .. } => true,
        Kind::Optional(item) | Kind::Common { item, .. } => is_flags(item),
        _ => false,
    }
}
