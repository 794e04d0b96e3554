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

use super::node::Leaf;
use super::words::{Metric, WordRange};
use super::{BitReader, BitSink, Field, Kind, Measure, Node, ReadError, ValueError};

/// A field with the words of its values.
#[derive(Clone, Debug)]
pub struct Property {
    field: Field,
    ranges: Box<[WordRange]>,
}

impl Property {
    pub(super) fn new(field: &Field) -> Self {
        let mut found = Vec::new();
        let has_words = each_range(field, &mut |last, metric| found.push((last, metric)));
        let several = found.iter().filter(|(last, _)| *last > 1).count() > 1;
        let ranges = found.iter().map(|(last, metric)| WordRange::new(*last, *metric, several));
        let ranges = if has_words { ranges.collect() } else { Box::default() };
        Property { field: field.clone(), ranges }
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

    /// Checks the value of the row at `row` of a body and gives its words, as many as [`Property::words`] has.
    ///
    /// # Errors
    /// Why the value can't be written.
    pub fn quantize(&self, body: &[u8], row: usize, words: &mut [u64]) -> Result<(), ValueError> {
        self.quantize_at(body, row.saturating_add(self.field.offset()), words)
    }

    /// As [`Property::quantize`], of the value at `at`.
    pub(super) fn quantize_at(&self, body: &[u8], at: usize, words: &mut [u64]) -> Result<(), ValueError> {
        match self.field.node() {
            // Most are, and need no recursion.
            Node::Leaf(leaf) if self.has_words() => {
                leaf.codec().quantize(body, at, leaf.column(), &self.ranges, words)
            }
            _ if !self.has_words() => Ok(()),
            node => Parts { ranges: &self.ranges, words }.quantize(node, body, at),
        }
    }

    /// Puts the value of these words into its place in the row that `row` begins with.
    pub fn restore(&self, words: &[u64], row: &mut [u8]) {
        self.restore_at(words, &mut row[self.field.offset()..]);
    }

    /// As [`Property::restore`], into its cell.
    pub(super) fn restore_at(&self, words: &[u64], cell: &mut [u8]) {
        match self.field.node() {
            _ if !self.has_words() => {}
            Node::Leaf(leaf) => leaf.codec().restore(words, cell, leaf.column()),
            node => Parts { ranges: &self.ranges, words }.restore(node, cell),
        }
    }

    pub fn write<S: BitSink + ?Sized>(&self, words: &[u64], sink: &mut S) {
        match self.field.node() {
            _ if !self.has_words() => {}
            Node::Leaf(leaf) => leaf.codec().write_words(&self.ranges, words, sink),
            node => Parts { ranges: &self.ranges, words }.write(node, sink),
        }
    }

    /// Reads words that were written whole.
    ///
    /// # Errors
    /// Everything that reading a message refuses.
    pub fn read(&self, reader: &mut BitReader<'_>, words: &mut [u64]) -> Result<(), ReadError> {
        match self.field.node() {
            _ if !self.has_words() => Ok(()),
            Node::Leaf(leaf) => leaf.codec().read_words(&self.ranges, reader, words),
            node => Parts { ranges: &self.ranges, words }.read(node, reader),
        }
    }

    /// Writes words against those of a baseline.
    pub fn write_delta<S: BitSink + ?Sized>(&self, words: &[u64], baseline: &[u64], sink: &mut S) {
        match self.field.node() {
            _ if !self.has_words() => {}
            Node::Leaf(_) => {
                for (range, (word, base)) in self.ranges.iter().zip(words.iter().zip(baseline)) {
                    range.write_delta(*word, *base, sink);
                }
            }
            node => {
                let mut base = Parts { ranges: &self.ranges, words: baseline };
                Parts { ranges: &self.ranges, words }.write_delta(node, &mut base, sink);
            }
        }
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
        match self.field.node() {
            _ if !self.has_words() => Ok(()),
            Node::Leaf(leaf) => read_leaf_delta(leaf, &self.ranges, baseline, reader, words),
            node => {
                let mut base = Parts { ranges: &self.ranges, words: baseline };
                Parts { ranges: &self.ranges, words }.read_delta(node, &mut base, reader)
            }
        }
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
        if self.has_words() { skip(self.field.node(), &mut &*self.ranges, delta, reader) } else { Ok(()) }
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
        in_range && Parts { ranges: &self.ranges, words }.has_value(self.field.node())
    }
}

/// Where the place of a rotation's largest component is among the words of one value.
fn largest_at(node: &Node) -> Option<usize> {
    if let Node::Leaf(leaf) = node { leaf.codec().largest_at() } else { None }
}

/// The most words of one value.
pub(super) const MAX_LEAF_WORDS: usize = super::transform::NUMBERS;

/// The words of a field: see [`super::codec::Codec::each_range`].
fn each_range(field: &Field, each: &mut dyn FnMut(u64, Metric)) -> bool {
    if is_flags(field.kind()) {
        // Each flag separately: the numbers that flags form have no distance.
        return each_part_range(field.node(), &mut |last, _| each(last, Metric::Choice));
    }
    each_part_range(field.node(), each)
}

fn each_part_range(node: &Node, each: &mut dyn FnMut(u64, Metric)) -> bool {
    match node {
        Node::Leaf(leaf) => leaf.codec().each_range(each),
        Node::Optional(optional) => {
            each(1, Metric::Choice);
            each_part_range(optional.item(), each)
        }
        Node::Nested(schema) => schema.fields().iter().all(|field| each_range(field, each)),
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

/// How many words a part has.
fn count(node: &Node) -> usize {
    let mut count = 0;
    each_part_range(node, &mut |_, _| count += 1);
    count
}

fn skip(
    node: &Node,
    ranges: &mut &[WordRange],
    delta: bool,
    reader: &mut BitReader<'_>,
) -> Result<(), ReadError> {
    match node {
        Node::Leaf(leaf) => {
            let (these, rest) = ranges.split_at(count(node));
            *ranges = rest;
            if delta {
                return these.iter().try_for_each(|range| range.read_residual(reader).map(drop));
            }
            let mut words = [0; MAX_LEAF_WORDS];
            leaf.codec().read_words(these, reader, &mut words[..these.len()])
        }
        Node::Optional(optional) => {
            *ranges = &ranges[1..];
            if reader.bool()? {
                return skip(optional.item(), ranges, delta, reader);
            }
            *ranges = &ranges[count(optional.item())..];
            Ok(())
        }
        Node::Nested(schema) => {
            schema.fields().iter().try_for_each(|field| skip(field.node(), ranges, delta, reader))
        }
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => Ok(()),
    }
}

fn read_leaf_delta(
    leaf: &Leaf,
    ranges: &[WordRange],
    baseline: &[u64],
    reader: &mut BitReader<'_>,
    words: &mut [u64],
) -> Result<(), ReadError> {
    for ((range, word), base) in ranges.iter().zip(&mut *words).zip(baseline) {
        *word = range.read_delta(*base, reader)?;
    }
    if leaf.codec().has_value(words) { Ok(()) } else { reader.refuse(ReadError::NotFinite) }
}

/// The words of a property's parts that are still to be visited.
struct Parts<'r, W> {
    ranges: &'r [WordRange],
    words: W,
}

/// Words and their ranges, of one part.
type Part<'r, 'w> = (&'r [WordRange], &'w [u64]);
type PartMut<'r, 'w> = (&'r [WordRange], &'w mut [u64]);

impl<'r> Parts<'r, &mut [u64]> {
    fn take(&mut self, count: usize) -> PartMut<'r, '_> {
        let (ranges, rest) = self.ranges.split_at(count);
        self.ranges = rest;
        let (words, rest) = core::mem::take(&mut self.words).split_at_mut(count);
        self.words = rest;
        (ranges, words)
    }

    fn one(&mut self) -> &mut u64 {
        &mut self.take(1).1[0]
    }

    fn quantize(&mut self, node: &Node, body: &[u8], at: usize) -> Result<(), ValueError> {
        match node {
            Node::Leaf(leaf) => {
                let (ranges, words) = self.take(count(node));
                leaf.codec().quantize(body, at, leaf.column(), ranges, words)
            }
            Node::Optional(optional) => {
                let present = optional.is_present(body, at).ok_or(ValueError::Row)?;
                *self.one() = present.into();
                if present {
                    return self.quantize(optional.item(), body, at);
                }
                self.take(count(optional.item())).1.fill(0);
                Ok(())
            }
            Node::Nested(schema) => schema
                .fields()
                .iter()
                .try_for_each(|field| self.quantize(field.node(), body, at.saturating_add(field.offset()))),
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => Ok(()),
        }
    }

    fn read(&mut self, node: &Node, reader: &mut BitReader<'_>) -> Result<(), ReadError> {
        match node {
            Node::Leaf(leaf) => {
                let (ranges, words) = self.take(count(node));
                leaf.codec().read_words(ranges, reader, words)
            }
            Node::Optional(optional) => {
                let present = reader.bool()?;
                *self.one() = present.into();
                if present {
                    return self.read(optional.item(), reader);
                }
                self.take(count(optional.item())).1.fill(0);
                Ok(())
            }
            Node::Nested(schema) => {
                schema.fields().iter().try_for_each(|field| self.read(field.node(), reader))
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => Ok(()),
        }
    }

    fn read_delta(
        &mut self,
        node: &Node,
        base: &mut Parts<'_, &[u64]>,
        reader: &mut BitReader<'_>,
    ) -> Result<(), ReadError> {
        match node {
            Node::Leaf(leaf) => {
                let (ranges, words) = self.take(count(node));
                read_leaf_delta(leaf, ranges, base.take(ranges.len()).1, reader, words)
            }
            Node::Optional(optional) => {
                base.take(1);
                let present = reader.bool()?;
                *self.one() = present.into();
                if present {
                    return self.read_delta(optional.item(), base, reader);
                }
                base.take(count(optional.item()));
                self.take(count(optional.item())).1.fill(0);
                Ok(())
            }
            Node::Nested(schema) => {
                schema.fields().iter().try_for_each(|field| self.read_delta(field.node(), base, reader))
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => Ok(()),
        }
    }
}

impl<'r, 'w> Parts<'r, &'w [u64]> {
    fn take(&mut self, count: usize) -> Part<'r, 'w> {
        let ((ranges, rest), (words, words_rest)) = (self.ranges.split_at(count), self.words.split_at(count));
        *self = Parts { ranges: rest, words: words_rest };
        (ranges, words)
    }

    fn restore(&mut self, node: &Node, cell: &mut [u8]) {
        match node {
            Node::Leaf(leaf) => {
                let words = self.take(count(node)).1;
                leaf.codec().restore(words, cell, leaf.column());
            }
            Node::Optional(optional) => {
                let present = self.take(1).1 != [0];
                cell[optional.item().size()] = present.into();
                if present {
                    return self.restore(optional.item(), cell);
                }
                self.take(count(optional.item()));
                cell[..optional.item().size()].fill(0);
            }
            Node::Nested(schema) => {
                for field in schema.fields() {
                    self.restore(field.node(), &mut cell[field.offset()..]);
                }
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => {}
        }
    }

    fn has_value(&mut self, node: &Node) -> bool {
        match node {
            Node::Leaf(leaf) => leaf.codec().has_value(self.take(count(node)).1),
            Node::Optional(optional) => {
                let present = self.take(1).1 != [0];
                if present {
                    return self.has_value(optional.item());
                }
                self.take(count(optional.item())).1.iter().all(|word| *word == 0)
            }
            Node::Nested(schema) => schema.fields().iter().all(|field| self.has_value(field.node())),
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => true,
        }
    }

    fn write<S: BitSink + ?Sized>(&mut self, node: &Node, sink: &mut S) {
        match node {
            Node::Leaf(leaf) => {
                let (ranges, words) = self.take(count(node));
                leaf.codec().write_words(ranges, words, sink);
            }
            Node::Optional(optional) => {
                let present = self.take(1).1 != [0];
                sink.bool(present);
                if present {
                    self.write(optional.item(), sink);
                } else {
                    self.take(count(optional.item()));
                }
            }
            Node::Nested(schema) => schema.fields().iter().for_each(|field| self.write(field.node(), sink)),
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => {}
        }
    }

    fn write_delta<S: BitSink + ?Sized>(&mut self, node: &Node, base: &mut Parts<'_, &[u64]>, sink: &mut S) {
        match node {
            Node::Leaf(_) => {
                let (ranges, words) = self.take(count(node));
                let base = base.take(ranges.len()).1;
                for (range, (word, base)) in ranges.iter().zip(words.iter().zip(base)) {
                    range.write_delta(*word, *base, sink);
                }
            }
            Node::Optional(optional) => {
                let present = self.take(1).1 != [0];
                base.take(1);
                sink.bool(present);
                if present {
                    return self.write_delta(optional.item(), base, sink);
                }
                self.take(count(optional.item()));
                base.take(count(optional.item()));
            }
            Node::Nested(schema) => {
                schema.fields().iter().for_each(|field| self.write_delta(field.node(), base, sink));
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => {}
        }
    }
}
