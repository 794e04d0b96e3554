//! What a message class that declares its fields compiles to.
//!
//! A decoded message is a **body**: a row, then a tail. The row is a fixed-size little-endian record with
//! each field at its natural alignment, padding zero, as a C compiler lays out a struct; see
//! [`Column`](super::Column) for the types. Texts and data lie in the tail, where their row cell points.
//!
//! Promises: a row read and written again gives the same bits (rotations and directions the same within their
//! error); nothing is appended when bytes are refused; a body is never larger than the row, what the packet
//! held (a wide text's 4 bytes shrink to 3 at most) and [`Schema::max_tail_bytes`], the bound of its lists. Refuses,
//! when it is built, parameters that make no sense, by field.
//!
//! Of a peer's bytes nothing is trusted: every field checks its own. The row has a size of its own, though,
//! whatever the bits: a field of one value takes no bits and has a cell. Who bounds memory counts messages as
//! well as bytes.

use super::plain::{self, Group};
use super::{
    BitReader, BitSink, Field, Kind, MAX_FIELDS, MAX_TAIL_BYTES, Node, ParameterError, ReadError, Schema,
    SchemaError, ValueError, runs,
};

use core::fmt::Write;
use std::collections::HashSet;

impl Schema {
    /// Compiles fields, in their order on the wire. No fields is a schema too: a message that only happens.
    ///
    /// # Errors
    /// When parameters make no sense, a name comes twice, or there are more than [`MAX_FIELDS`].
    pub fn new<N: Into<String>>(declared: impl IntoIterator<Item = (N, Kind)>) -> Result<Self, SchemaError> {
        Self::within(declared, 0)
    }

    /// Like [`Schema::new`], nested `depth` parts deep.
    pub(super) fn within<N: Into<String>>(
        declared: impl IntoIterator<Item = (N, Kind)>,
        depth: usize,
    ) -> Result<Self, SchemaError> {
        let mut fields: Vec<Field> = Vec::new();
        let mut names = HashSet::new();
        let (mut end, mut alignment, mut spread) = (0, 1, 0usize);
        let (mut min_bits, mut max_bits) = (0usize, 0usize);
        for (name, kind) in declared {
            let name: String = name.into();
            if fields.len() == MAX_FIELDS {
                return Err(SchemaError::TooManyFields);
            }
            if !names.insert(name.clone()) {
                return Err(SchemaError::Duplicate { field: name });
            }
            let refuse = |error| SchemaError::Parameter { field: name.clone(), error };
            let field = Field::new(name.clone(), kind, end, depth).map_err(refuse)?;
            end = field.offset() + field.node().size();
            alignment = alignment.max(field.node().alignment());
            spread = spread.saturating_add(field.node().max_tail_bytes());
            if spread > MAX_TAIL_BYTES {
                return Err(refuse(ParameterError::Spread { bytes: spread }));
            }
            let (least, most) = field.bit_range();
            min_bits = min_bits.saturating_add(least);
            max_bits = max_bits.saturating_add(most);
            fields.push(field);
        }
        let row_size = end.next_multiple_of(alignment);
        let fields: Box<[Field]> = fields.into();
        let groups = Group::of(&fields.iter().map(Field::plain).collect::<Vec<_>>());
        let mut schema =
            Schema { fields, groups, row_size, alignment, spread, points: false, min_bits, max_bits };
        schema.points = runs::any(&schema);
        Ok(schema)
    }

    /// The fields, in their order on the wire.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Bytes of a row, a multiple of its widest alignment.
    pub fn row_size(&self) -> usize {
        self.row_size
    }

    /// The alignment of a row within another.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// Bytes of the tail that lists take when they are full.
    pub fn max_tail_bytes(&self) -> usize {
        self.spread
    }

    /// Whether rows have a tail: texts, data and lists.
    pub fn has_tail(&self) -> bool {
        self.points
    }

    /// The least bits a message takes.
    pub fn min_bits(&self) -> usize {
        self.min_bits
    }

    /// An upper bound of a message's bits at any position: 7 for each align, as in the measure.
    pub fn max_bits(&self) -> usize {
        self.max_bits
    }

    /// The offsets of presses in a row, those of nested messages too.
    pub fn presses(&self) -> Vec<usize> {
        let of = |field: &Field| match (field.kind(), field.node()) {
            (Kind::Press, _) => vec![field.offset()],
            (_, Node::Nested(schema)) => schema.presses().into_iter().map(|at| field.offset() + at).collect(),
            _ => Vec::new(),
        };
        self.fields.iter().flat_map(of).collect()
    }

    /// The path of a press that [`Schema::presses`] can't have: in a part that may be missing, or come several times.
    pub fn misplaced_press(&self) -> Option<String> {
        let of = |field: &Field| Some(format!("{}{}", field.name(), field.kind().misplaced_press()?));
        self.fields.iter().find_map(of)
    }

    /// Reads a message and appends its body to `out`.
    ///
    /// # Errors
    /// Everything the standard refuses. `out` is as before then.
    pub fn read(&self, reader: &mut BitReader<'_>, out: &mut Vec<u8>) -> Result<(), ReadError> {
        // So that a packet that can't hold the message doesn't cost a row.
        reader.require(self.min_bits)?;
        let start = out.len();
        out.resize(start + self.row_size, 0);
        let read = self.read_at(reader, out, start, 0);
        if read.is_err() {
            out.truncate(start);
        }
        read
    }

    /// Reads a message into its row, `row` bytes into the body that starts at `start` of `out`.
    pub(super) fn read_at(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        row: usize,
    ) -> Result<(), ReadError> {
        self.groups.iter().try_for_each(|group| {
            let fields = match group {
                Group::Other(field) => *field..field + 1,
                Group::Plain { first, numbers, bits } => {
                    let cells = out.get_mut(start + row..).and_then(|row| row.get_mut(..self.row_size));
                    let cells = cells.unwrap_or_default();
                    if plain::read(reader, numbers, *bits, cells) {
                        return Ok(());
                    }
                    *first..first + numbers.len()
                }
                Group::Copied { first, fields, at, bytes } => {
                    let cells = out.get_mut(start + row + at..).and_then(|cells| cells.get_mut(..*bytes));
                    if cells.is_some_and(|cells| reader.copy(cells)) {
                        return Ok(());
                    }
                    *first..first + fields
                }
            };
            self.fields[fields].iter().try_for_each(|field| field.read_cell(reader, out, start, row))
        })
    }

    /// Writes the message of a body, from [`Schema::read`] or from the application.
    ///
    /// # Errors
    /// The index of the field and why its value can't be written; fields before it have been.
    pub fn write_row<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), (usize, ValueError)> {
        self.write_at(body, 0, sink)
    }

    /// Writes the message of the row at `row` of a body.
    pub(super) fn write_at<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        row: usize,
        sink: &mut S,
    ) -> Result<(), (usize, ValueError)> {
        self.groups.iter().try_for_each(|group| {
            let mut fields = match group {
                Group::Other(field) => *field..field + 1,
                Group::Plain { first, numbers, .. } => match plain::write(numbers, body, row, sink) {
                    Ok(()) => return Ok(()),
                    Err(written) => first + written..first + numbers.len(),
                },
                Group::Copied { first, fields, at, bytes } => {
                    let cells = body.get(row.saturating_add(*at)..).and_then(|cells| cells.get(..*bytes));
                    if let Some(cells) = cells {
                        sink.packed(cells);
                        return Ok(());
                    }
                    *first..first + fields
                }
            };
            fields.try_for_each(|i| self.fields[i].write_cell(body, row, sink).map_err(|error| (i, error)))
        })
    }

    /// The canonical text of names, kinds and parameters: equal texts are equal wires. A line a field:
    /// the name's length in bytes, a colon, the name, a space, the kind.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for field in &self.fields {
            let name = field.name();
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}:{name} {}", name.len(), field.kind());
        }
        text
    }
}

#[cfg(test)]
mod tests;
