//! A field of a message class: its name, its kind, and its place in a row.

use super::plain::Plain;
use super::{BitReader, BitSink, Column, Field, Kind, Node, ParameterError, ReadError, Value, ValueError};

impl Field {
    /// A field in a row whose first `row_size` bytes are taken: at the next offset of its alignment.
    pub(super) fn new(
        name: String,
        kind: Kind,
        row_size: usize,
        depth: usize,
    ) -> Result<Self, ParameterError> {
        let node = Node::new(&kind, depth)?;
        let offset = row_size.next_multiple_of(node.alignment());
        Ok(Field { name, kind, offset, node })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its place in a row, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Its parts, and so its layout in a row.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The least and the most bits it takes, 7 of them for an align.
    pub fn bit_range(&self) -> (usize, usize) {
        self.node.bit_range()
    }

    /// Checks `value` and writes it. Numeric fields accept integers of any variant, float fields also integers; a
    /// boolean is no integer. Composite fields have no single value: see [`Field::node`].
    ///
    /// # Errors
    ///
    /// When the value is of another type or outside the field's bounds. Nothing is written then.
    #[inline]
    pub fn write<S: BitSink + ?Sized>(&self, value: Value<'_>, sink: &mut S) -> Result<(), ValueError> {
        match &self.node {
            Node::Leaf(leaf) => leaf.write(value, sink),
            _ => Err(ValueError::Type { expected: "made of parts", found: value.type_name() }),
        }
    }

    /// Its value in a body that [`super::Schema::read`] appended.
    ///
    /// # Panics
    /// When the body is not one of its schema's, or the field is made of parts. Rows of another origin go
    /// through [`super::Schema::write_row`], which doubts them.
    pub fn load<'a>(&self, body: &'a [u8]) -> Value<'a> {
        match &self.node {
            Node::Leaf(leaf) => leaf.load(body, self.offset).expect("the body is one of this schema's"),
            _ => panic!("field {:?} is made of parts", self.name),
        }
    }

    /// Its constants, if it is one number in a fixed count of bits.
    pub(super) fn plain(&self) -> Option<Plain> {
        let Node::Leaf(leaf) = &self.node else { return None };
        let size = leaf.column().size();
        let (lo, span, bits, signed) = leaf.codec().plain()?;
        // Both are at most 64.
        let (size, bits, flag) = (size as u8, bits as u8, leaf.column() == Column::Bool);
        let wire_mask = u64::MAX.unbounded_shr(64 - u32::from(bits));
        let cell_mask = u64::MAX >> (64 - 8 * u32::from(size));
        Some(Plain { at: self.offset, size, bits, signed, flag, lo, span, wire_mask, cell_mask })
    }

    pub(super) fn write_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        row: usize,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        let at = row.saturating_add(self.offset);
        match &self.node {
            // Most are, and need no recursion.
            Node::Leaf(leaf) => leaf.write_cell(body, at, sink),
            node => node.write_cell(body, at, sink),
        }
    }

    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        row: usize,
    ) -> Result<(), ReadError> {
        match &self.node {
            Node::Leaf(leaf) => leaf.read_cell(reader, out, start, row + self.offset),
            node => node.read_cell(reader, out, start, row + self.offset),
        }
    }
}
