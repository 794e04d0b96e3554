//! Arrays of messages: rows one behind the other, and one arena in which their texts, data and lists lie. Cells point
//! into the arena, from its start.
//!
//! Promises: the bits are those of the messages one by one. Rows of the application are doubted: each value is checked
//! against its field, and each cell against the arena. Reading appends nothing when bytes are refused, and takes no
//! memory that is not in proportion to them and to the number of rows asked for.

use super::{BitReader, BitSink, Node, ReadError, Schema, Value, ValueError, runs};

/// Rows of one schema, made by the application.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The arena, then the rows.
    bytes: Vec<u8>,
    arena: usize,
    count: usize,
}

/// Which row can't be written, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct RowError {
    /// Index of the row.
    pub row: usize,
    /// Index of the field.
    pub field: usize,
    /// Why.
    pub error: ValueError,
}

impl Rows {
    /// `count` rows that lie behind the first `arena` bytes.
    pub fn new(bytes: Vec<u8>, arena: usize, count: usize) -> Self {
        Rows { bytes, arena, count }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Schema {
    /// Writes the message of one row.
    ///
    /// # Errors
    /// Why it can't be written; fields before the one at fault have been.
    pub fn write_one<S: BitSink + ?Sized>(
        &self,
        rows: &Rows,
        row: usize,
        sink: &mut S,
    ) -> Result<(), RowError> {
        let refuse = |(field, error)| RowError { row, field, error };
        let at = rows.arena + row * self.row_size();
        if self.points() {
            runs::check_row(self, &rows.bytes, at, rows.arena).map_err(refuse)?;
        }
        self.write_at(&rows.bytes, at, sink).map_err(refuse)
    }

    /// The value of a field of one row, where it is one value and the bytes hold it.
    pub fn load_one<'a>(&self, rows: &'a Rows, row: usize, field: usize) -> Option<Value<'a>> {
        let field = self.fields().get(field)?;
        match field.node() {
            Node::Leaf(leaf) => leaf.load(&rows.bytes, rows.arena + row * self.row_size() + field.offset()),
            _ => None,
        }
    }

    /// Writes the messages of all rows, one behind the other.
    ///
    /// # Errors
    /// The first row and field that can't be written, and why; what comes before has been.
    pub fn write_all<S: BitSink + ?Sized>(&self, rows: &Rows, sink: &mut S) -> Result<(), RowError> {
        (0..rows.count).try_for_each(|row| self.write_one(rows, row, sink))
    }

    /// Reads `count` messages; gives their rows and the arena of these.
    ///
    /// # Errors
    /// Everything the standard refuses, with the index of the row.
    pub fn read_all(
        &self,
        reader: &mut BitReader<'_>,
        count: usize,
    ) -> Result<(Vec<u8>, Vec<u8>), (usize, ReadError)> {
        // So that what the bytes can't hold doesn't cost its rows.
        reader.require(count.saturating_mul(self.min_bits())).map_err(|error| (0, error))?;
        let size = self.row_size();
        let mut out = vec![0; count.saturating_mul(size)];
        for row in 0..count {
            self.read_at(reader, &mut out, 0, row * size).map_err(|error| (row, error))?;
        }
        let rows = count * size;
        if self.points() {
            let by = (rows as u32).wrapping_neg();
            (0..count).for_each(|row| runs::shift_row(self, &mut out, row * size, by));
        }
        let arena = out.split_off(rows);
        Ok((out, arena))
    }

    /// Appends the row of a body that [`Schema::read`] made to `rows`; when it points behind itself, the body goes to
    /// `arena`.
    pub fn split_body(&self, body: &[u8], rows: &mut Vec<u8>, arena: &mut Vec<u8>) {
        let start = if self.points() { arena.len() } else { 0 };
        let body = if self.points() {
            arena.extend_from_slice(body);
            let body = &mut arena[start..];
            // The caller keeps the arena below 4 GiB: no cell could say more.
            runs::shift_row(self, body, 0, start as u32);
            body
        } else {
            body
        };
        rows.extend_from_slice(&body[..self.row_size().min(body.len())]);
    }
}
