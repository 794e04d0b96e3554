//! The fields of a schema by mask, and against a baseline: what of many objects is sent, over and over.
//!
//! A **mask** has a bit for each field, the first one's lowest; on the wire it is as many bits as there are fields. What
//! is in it is written in the order of the fields. That is the message when all are in it, whole.
//!
//! Promises: reading appends one body, a row and its tail, in which the fields of the mask have their values and all
//! others are zero. Nothing is appended when bytes are refused, and nothing is in it that reading the message would
//! refuse. Refuses schemas of more than [`MAX_PROPERTIES`] fields: a mask is one integer, and an object of more is
//! better two, or has a message among its fields.

use core::ops::Range;

use super::property::Property;
use super::{BitReader, BitSink, MAX_PROPERTIES, ReadError, Schema, SchemaError, ValueError};
use crate::store::ones;

/// A schema whose fields are sent one by one.
#[derive(Clone, Debug)]
pub struct Properties {
    schema: Schema,
    each: Box<[Property]>,
    /// Where the words of each begin among those of a row, and how many there are in all.
    starts: Box<[usize]>,
    word_count: usize,
}

impl Properties {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it has more than [`MAX_PROPERTIES`] fields.
    pub fn new(schema: Schema) -> Result<Self, SchemaError> {
        let count = schema.fields().len();
        if count > MAX_PROPERTIES {
            return Err(SchemaError::TooManyProperties { count });
        }
        let each: Box<[Property]> = schema.fields().iter().map(Property::new).collect();
        let mut word_count = 0;
        let starts = each.iter().map(|property| {
            let start = word_count;
            word_count += property.words().len();
            start
        });
        let starts = starts.collect();
        Ok(Properties { schema, each, starts, word_count })
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The properties, in the order of the fields.
    pub fn each(&self) -> &[Property] {
        &self.each
    }

    /// The mask of all.
    pub fn all(&self) -> u64 {
        u64::MAX.unbounded_shr(u64::BITS - self.each.len() as u32)
    }

    /// The mask of the fields that have words.
    pub fn with_words(&self) -> u64 {
        let with = self.each.iter().enumerate().filter(|(_, property)| property.has_words());
        with.fold(0, |mask, (i, _)| mask | 1 << i)
    }

    /// Words of a row.
    pub fn word_count(&self) -> usize {
        self.word_count
    }

    /// Where the words of a property begin among those of a row.
    pub fn word_start(&self, property: usize) -> usize {
        self.starts[property]
    }

    /// Which of a row's words are those of a property.
    #[inline]
    pub fn word_range(&self, property: usize) -> Range<usize> {
        let start = self.starts[property];
        start..start + self.each[property].words().len()
    }

    /// The properties of a mask with their indices.
    #[inline]
    pub fn of(&self, mask: u64) -> impl Iterator<Item = (usize, &Property)> {
        ones(mask & self.all()).map(|i| (i, &self.each[i]))
    }

    // --- bodies ------------------------------------------------------------------------------------------

    /// Writes the fields of a mask, of a body as [`Schema::write_row`] takes.
    ///
    /// # Errors
    /// The index of the field and why its value can't be written; fields before it have been.
    pub fn write_fields<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        mask: u64,
        sink: &mut S,
    ) -> Result<(), (usize, ValueError)> {
        self.of(mask).try_for_each(|(i, property)| {
            property.field().write_cell(body, 0, sink).map_err(|error| (i, error))
        })
    }

    /// Reads the fields of a mask and appends a body to `out`.
    ///
    /// # Errors
    /// Everything that reading the message refuses. `out` is as before then.
    pub fn read_fields(
        &self,
        reader: &mut BitReader<'_>,
        mask: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        // So that a packet that can't hold them doesn't cost a row.
        reader.require(self.of(mask).map(|(_, property)| property.field().bit_range().0).sum())?;
        self.append(out, |out, start| {
            self.of(mask).try_for_each(|(_, property)| property.field().read_cell(reader, out, start, 0))
        })
    }

    // --- words -------------------------------------------------------------------------------------------

    /// Checks the values of a body that have words, and gives these: as many as [`Properties::word_count`].
    ///
    /// # Errors
    /// The index of the field and why its value can't be written.
    pub fn quantize(&self, body: &[u8], words: &mut [u64]) -> Result<(), (usize, ValueError)> {
        for (i, property) in self.each.iter().enumerate() {
            property.quantize(body, 0, self.words_of_mut(words, i)).map_err(|error| (i, error))?;
        }
        Ok(())
    }

    /// Puts the values of words into the row that `row` begins with. Properties without words stay as they are.
    pub fn restore(&self, words: &[u64], row: &mut [u8]) {
        for (i, property) in self.each.iter().enumerate().filter(|(_, property)| property.has_words()) {
            property.restore(self.words_of(words, i), row);
        }
    }

    /// Writes the properties of a mask: words of a row, against those of `baseline` if there is one, and what has no words
    /// out of `body`.
    ///
    /// # Errors
    /// The index of a field without words and why its value can't be written; those before it have been.
    pub fn write_words<S: BitSink + ?Sized>(
        &self,
        words: &[u64],
        baseline: Option<&[u64]>,
        body: &[u8],
        mask: u64,
        sink: &mut S,
    ) -> Result<(), (usize, ValueError)> {
        for (i, property) in self.of(mask) {
            match baseline {
                _ if !property.has_words() => {
                    property.field().write_cell(body, 0, sink).map_err(|error| (i, error))?;
                }
                Some(baseline) => {
                    property.write_delta(self.words_of(words, i), self.words_of(baseline, i), sink);
                }
                None => property.write(self.words_of(words, i), sink),
            }
        }
        Ok(())
    }

    /// Reads what [`Properties::write_words`] wrote with the same baseline: the words of the mask's properties into
    /// `words`, others stay. Appends a body of the mask's fields to `out`.
    ///
    /// # Errors
    /// Everything that reading the message refuses. `out` is as before then, and some words may be new.
    pub fn read_words(
        &self,
        reader: &mut BitReader<'_>,
        mask: u64,
        baseline: Option<&[u64]>,
        words: &mut [u64],
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        self.append(out, |out, start| {
            for (i, property) in self.of(mask) {
                if !property.has_words() {
                    property.field().read_cell(reader, out, start, 0)?;
                    continue;
                }
                let words = self.words_of_mut(words, i);
                match baseline {
                    Some(baseline) => property.read_delta(self.words_of(baseline, i), reader, words)?,
                    None => property.read(reader, words)?,
                }
                property.restore(words, &mut out[start..]);
            }
            Ok(())
        })
    }

    /// Passes over what [`Properties::write_words`] wrote, with a baseline or without: it need not be known.
    ///
    /// # Errors
    /// As for reading it, but for what depends on the baseline.
    pub fn skip(&self, reader: &mut BitReader<'_>, mask: u64, delta: bool) -> Result<(), ReadError> {
        // What has no words is read, and forgotten.
        let mut body = Vec::new();
        self.of(mask).try_for_each(|(_, property)| {
            if property.has_words() {
                return property.skip(delta, reader);
            }
            body.clear();
            body.resize(self.schema.row_size(), 0);
            property.field().read_cell(reader, &mut body, 0, 0)
        })
    }

    fn words_of<'a>(&self, words: &'a [u64], property: usize) -> &'a [u64] {
        &words[self.word_range(property)]
    }

    fn words_of_mut<'a>(&self, words: &'a mut [u64], property: usize) -> &'a mut [u64] {
        &mut words[self.word_range(property)]
    }

    /// Appends a row of zeros to `out` for `read` to fill from the offset that it is given; nothing when that fails.
    fn append(
        &self,
        out: &mut Vec<u8>,
        read: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let start = out.len();
        out.resize(start + self.schema.row_size(), 0);
        let done = read(out, start);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }
}
