//! Arrays of messages: rows one after the other, and one arena with their texts, data and lists. Cells hold offsets
//! into the arena.
//!
//! Promises: the bits are those of the messages one by one. The application's rows are not trusted: each value is
//! checked against its field, and each cell against the arena. Reading appends nothing when bytes are refused, and
//! takes no memory out of proportion to them and to the number of rows asked for.

use super::column::run;
use super::{BitReader, BitSink, Column, Node, ReadError, Schema, Value, ValueError, runs};

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
    pub error: ValueError,
}

impl Rows {
    /// `count` rows, after the first `arena` bytes.
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
    ///
    /// Why it can't be written; fields before the faulty one have been.
    pub fn write_one<S: BitSink + ?Sized>(
        &self,
        rows: &Rows,
        row: usize,
        sink: &mut S,
    ) -> Result<(), RowError> {
        let refuse = |(field, error)| RowError { row, field, error };
        let at = rows.arena + row * self.row_size();
        if self.has_tail() {
            runs::check_row(self, &rows.bytes, at, rows.arena).map_err(refuse)?;
        }
        self.write_at(&rows.bytes, at, sink).map_err(refuse)
    }

    /// The value of a field of one row, if it has a single value and the bytes hold it. A text that isn't UTF-8 is its bytes.
    pub fn load_one<'a>(&self, rows: &'a Rows, row: usize, field: usize) -> Option<Value<'a>> {
        let field = self.fields().get(field)?;
        match field.node() {
            Node::Leaf(leaf) => {
                let (body, at) = (&rows.bytes, rows.arena + row * self.row_size() + field.offset());
                let is_text = leaf.column() == Column::Text;
                leaf.load(body, at).or_else(|| Column::Data.load(body, at).filter(|_| is_text))
            }
            _ => None,
        }
    }

    /// The cell of a field of one row that points into the arena: an offset, and a count or the number of a variant.
    pub fn load_run(&self, rows: &Rows, row: usize, field: usize) -> Option<(usize, usize)> {
        let field = self.fields().get(field)?;
        match field.node() {
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => {
                run(&rows.bytes, rows.arena + row * self.row_size() + field.offset())
            }
            _ => None,
        }
    }

    /// Writes the messages of all rows, one after the other.
    ///
    /// # Errors
    /// The first row and field that can't be written, and why; what comes before has been.
    pub fn write_all<S: BitSink + ?Sized>(&self, rows: &Rows, sink: &mut S) -> Result<(), RowError> {
        (0..rows.count).try_for_each(|row| self.write_one(rows, row, sink))
    }

    /// Reads `count` messages; returns their rows and their arena. The caller bounds `count` if messages may take no
    /// bits.
    ///
    /// # Errors
    ///
    /// Everything the standard refuses, with the index of the row.
    pub fn read_all(
        &self,
        reader: &mut BitReader<'_>,
        count: usize,
    ) -> Result<(Vec<u8>, Vec<u8>), (usize, ReadError)> {
        // Before allocating rows, so that a count that the bytes can't hold costs nothing.
        reader.require(count.saturating_mul(self.min_bits())).map_err(|error| (0, error))?;
        let size = self.row_size();
        let mut out = vec![0; count.saturating_mul(size)];
        for row in 0..count {
            self.read_at(reader, &mut out, 0, row * size).map_err(|error| (row, error))?;
        }
        let rows = count * size;
        if self.has_tail() {
            let by = (rows as u32).wrapping_neg();
            (0..count).for_each(|row| runs::shift_row(self, &mut out, row * size, by));
        }
        let arena = out.split_off(rows);
        Ok((out, arena))
    }

    /// Appends the row of a body that [`Schema::read`] made to `rows`; when it has a tail, the body goes to `arena`.
    pub fn split_body(&self, body: &[u8], rows: &mut Vec<u8>, arena: &mut Vec<u8>) {
        if !self.has_tail() {
            rows.extend_from_slice(body);
            return;
        }
        let start = arena.len();
        arena.extend_from_slice(body);
        let body = &mut arena[start..];
        // The caller keeps the arena below 4 GiB, the maximum of a cell.
        runs::shift_row(self, body, 0, start as u32);
        rows.extend_from_slice(&body[..self.row_size().min(body.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitWriter, Kind};
    use super::*;
    use crate::rng::Rng;

    /// Texts in a list in a message, sparse data, an optional text, and numbers.
    fn schema() -> Schema {
        let text = Kind::Text { max_bytes: 9 };
        let named = Kind::Nested {
            fields: vec![("n".into(), Kind::Bits { bits: 5 }), ("text".into(), text.clone())],
        };
        Schema::new([
            ("flag", Kind::Bool),
            ("named", Kind::List { max: 4, item: Box::new(named) }),
            ("maybe", Kind::Optional(Box::new(text))),
            ("slots", Kind::Sparse { slots: 8, item: Box::new(Kind::Data { max_bytes: 3 }) }),
            ("place", Kind::Vector { axes: 3, lo: -4.0, hi: 4.0, resolution: 0.5 }),
        ])
        .unwrap()
    }

    /// Random bits that the schema reads, `count` messages of them, one after the other and one by one.
    fn messages(schema: &Schema, count: usize, seed: u64) -> (BitWriter, Vec<Vec<u8>>) {
        let (mut rng, mut all, mut bodies) = (Rng::seeded(seed), BitWriter::new(), Vec::new());
        while bodies.len() < count {
            // Bytes that are mostly low are text.
            let bytes: Vec<u8> =
                (0..60).map(|_| rng.next_u64() as u8 & rng.next_u64() as u8 & 0x7F).collect();
            let mut body = Vec::new();
            if schema.read(&mut BitReader::new(&bytes), &mut body).is_ok() {
                schema.write_row(&body, &mut all).unwrap();
                bodies.push(body);
            }
        }
        (all, bodies)
    }

    #[test]
    fn rows_are_read_and_written_as_their_messages_one_by_one() {
        let schema = schema();
        assert!(schema.has_tail());
        for seed in 0..40 {
            let (mut all, bodies) = messages(&schema, 7, seed);
            let mut reader = BitReader::with_range(all.as_bytes(), 0, usize::MAX);
            let (rows, arena) = schema.read_all(&mut reader, bodies.len()).unwrap();
            let rows = Rows::new([&arena[..], &rows].concat(), arena.len(), bodies.len());
            let mut again = BitWriter::new();
            schema.write_all(&rows, &mut again).unwrap();
            assert_eq!(again.as_bytes(), all.as_bytes(), "seed {seed}");

            let (mut split, mut arena) = (Vec::new(), Vec::new());
            bodies.iter().for_each(|body| schema.split_body(body, &mut split, &mut arena));
            let rows = Rows::new([&arena[..], &split].concat(), arena.len(), bodies.len());
            again.clear();
            schema.write_all(&rows, &mut again).unwrap();
            assert_eq!(again.as_bytes(), all.as_bytes(), "seed {seed}");
        }
    }

    #[test]
    fn any_bytes_are_rows_that_are_written_or_refused() {
        let schema = schema();
        let mut rng = Rng::seeded(9);
        let (mut written, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let (arena, count) = (rng.below(64) as usize, rng.below(3) as usize);
            // Cells near the arena, flags that are bits, numbers that are small.
            let byte = |rng: &mut Rng| if rng.chance(0.7) { 0 } else { rng.next_u64() as u8 & 3 };
            let bytes = (0..arena + count * schema.row_size()).map(|_| byte(&mut rng)).collect();
            match schema.write_all(&Rows::new(bytes, arena, count), &mut BitWriter::new()) {
                Ok(()) => written += count,
                Err(error) => {
                    assert!(error.row < count && error.field < 5);
                    refused += 1;
                }
            }
        }
        assert!(written > 100 && refused > 100, "{written} written, {refused} refused");
    }

    #[test]
    fn a_cell_may_point_to_the_end_of_the_arena_and_no_further() {
        let schema = Schema::new([("data", Kind::Data { max_bytes: 9 })]).unwrap();
        let write = |offset: u32, length: u32| {
            let cell = [offset.to_le_bytes(), length.to_le_bytes()].concat();
            let rows = Rows::new([&b"arena"[..], &cell].concat(), 5, 1);
            schema.write_all(&rows, &mut BitWriter::new())
        };
        assert_eq!(write(2, 3), Ok(()));
        assert_eq!(write(5, 0), Ok(()));
        for (offset, length) in [(6, 0), (2, 4), (5, 1), (u32::MAX, 1), (1, u32::MAX)] {
            let (from, count) = (offset as usize, length as usize);
            let error = ValueError::OutsideArena { offset: from, count, bytes: count, arena: 5 };
            assert_eq!(write(offset, length), Err(RowError { row: 0, field: 0, error }));
        }
    }

    #[test]
    fn what_the_bits_cannot_hold_costs_no_rows() {
        let schema = schema();
        assert!(matches!(schema.read_all(&mut BitReader::new(&[0; 9]), usize::MAX), Err((0, _))));
    }

    #[test]
    fn the_format_of_a_row_has_its_padding() {
        assert_eq!(schema().row_format(), "<?3x2I2I?3x2I3d");
        let nothing: [(&str, Kind); 0] = [];
        assert_eq!(Schema::new(nothing).unwrap().row_format(), "<");
    }
}
