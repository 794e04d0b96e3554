//! Common values with a short form: a single one costs one bit, each of two costs two. All other values cost one bit
//! more.
//!
//! Promises: values are compared as on the wire, after quantizing. There is one form for each: a reader refuses a
//! common value written out.

use super::codec::{Codec, Common};
use super::transform::Word;
use super::{BitReader, BitSink, Column, ParameterError, ReadError, Value, ValueError};

impl Common {
    pub(super) fn new(item: Codec, words: &[u128]) -> Result<Self, ParameterError> {
        let bits = match item.bit_range() {
            (least, most @ 1..=128) if least == most => least as u32,
            _ => return Err(ParameterError::NoFixedWidth),
        };
        let distinct = match words {
            [_] => true,
            [first, second] => first != second,
            _ => false,
        };
        let common = Common { item, bits, words: words.into() };
        if distinct && words.iter().all(|word| common.is_value(*word)) {
            Ok(common)
        } else {
            Err(ParameterError::Common)
        }
    }

    pub(super) fn item(&self) -> &Codec {
        &self.item
    }

    pub(super) fn bit_range(&self) -> (usize, usize) {
        (self.words.len(), 1 + self.bits as usize)
    }

    pub(super) fn write<S: BitSink + ?Sized>(
        &self,
        value: Value<'_>,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        let mut written = Word::default();
        self.item.write(value, &mut written)?;
        self.write_encoded(written.bits, sink);
        Ok(())
    }

    /// Writes the value of this encoding.
    pub(super) fn write_encoded<S: BitSink + ?Sized>(&self, encoded: u128, sink: &mut S) {
        let found = self.words.iter().position(|word| *word == encoded);
        sink.bool(found.is_some());
        match found {
            None => sink.bits128(encoded, self.bits),
            Some(which) if self.words.len() == 2 => sink.bool(which == 1),
            Some(_) => {}
        }
    }

    /// Reads the encoding of a common value; none when another value follows.
    pub(super) fn read_common(&self, reader: &mut BitReader<'_>) -> Result<Option<u128>, ReadError> {
        if !reader.bool()? {
            return Ok(None);
        }
        let which = usize::from(self.words.len() == 2 && reader.bool()?);
        Ok(Some(self.words.get(which).copied().unwrap_or_default()))
    }

    pub(super) fn is_common(&self, encoded: u128) -> bool {
        self.words.contains(&encoded)
    }

    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        at: usize,
        column: Column,
    ) -> Result<(), ReadError> {
        if let Some(word) = self.read_common(reader)? {
            return self.item.read_cell(&mut self.reader(&word.to_le_bytes()), out, start, at, column);
        }
        let word = reader.clone().bits128(self.bits);
        if word.is_ok_and(|word| self.is_common(word)) {
            return reader.refuse(ReadError::NotShortest);
        }
        self.item.read_cell(reader, out, start, at, column)
    }

    fn reader<'a>(&self, word: &'a [u8; 16]) -> BitReader<'a> {
        BitReader::with_range(word, 0, self.bits as usize)
    }

    /// Whether these bits are ones that the item reads.
    fn is_value(&self, word: u128) -> bool {
        let column = self.item.column();
        let mut cell = vec![0; column.size()];
        self.item.read_cell(&mut self.reader(&word.to_le_bytes()), &mut cell, 0, 0, column).is_ok()
            && super::bit_len128(word) <= self.bits
    }
}
