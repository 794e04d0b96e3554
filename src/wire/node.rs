//! What a field is made of: one value, or parts that are nodes themselves.
//!
//! Where each lies, seen from the start of the body:
//! - one value: its [`Column`];
//! - optional: the item, then a byte that is 1 when there is one; without one the item's bytes are zero;
//! - list: offset and count, 32 bits each, of consecutive items in the tail;
//! - sparse array: as a list, of entries that are a 32-bit index and the item;
//! - set: as a list; map: as a list of entries that are a key and the item;
//! - union: offset and number of the message, 32 bits each; its row lies in the tail;
//! - message: its row.
//!
//! Promises: every node of a kind has the same size in a row. What a packet makes of lists is bounded by the
//! declaration ([`Node::max_tail_bytes`]) as well as by the packet: an item takes at least one bit.

use super::codec::Codec;
use super::column::{cell, point, put, run};
use super::plain::Group;
use super::{
    BitReader, BitSink, Column, Kind, MAX_DEPTH, MAX_LENGTH, ParameterError, ReadError, Value, ValueError,
    bit_len,
};

#[derive(Clone, Debug)]
pub enum Node {
    Leaf(Leaf),
    /// A value or none.
    Optional(Box<Optional>),
    /// Up to this many values.
    List(Box<List>),
    /// Values of some of this many slots.
    Sparse(Box<Sparse>),
    /// One of several messages.
    Union(Box<Union>),
    /// The fields of a message.
    Nested(Box<Schema>),
}

#[derive(Clone, Debug)]
pub struct Leaf {
    codec: Codec,
    column: Column,
}

/// A value that may be missing.
#[derive(Clone, Debug)]
pub struct Optional {
    item: Node,
}

/// Up to `max` values.
#[derive(Clone, Debug)]
pub struct List {
    item: Node,
    max: u32,
    order: Order,
}

/// One of several messages.
#[derive(Clone, Debug)]
pub struct Union {
    variants: Box<[Node]>,
}

/// The key by which items rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Free,
    Rising,
    Keys,
}

/// Values of some of `slots` slots.
#[derive(Clone, Debug)]
pub struct Sparse {
    pub(super) item: Node,
    pub(super) slots: u32,
}

/// A named field with its place in the row. [`super::Schema::new`] makes these.
#[derive(Clone, Debug)]
pub struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) offset: usize,
    pub(super) node: Node,
}

/// The fields of a message class, ready to run.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(super) fields: Box<[Field]>,
    pub(super) groups: Box<[Group]>,
    pub(super) row_size: usize,
    pub(super) alignment: usize,
    pub(super) spread: usize,
    pub(super) points: bool,
    pub(super) min_bits: usize,
    pub(super) max_bits: usize,
}

impl Node {
    pub(super) fn new(kind: &Kind, depth: usize) -> Result<Self, ParameterError> {
        if depth > MAX_DEPTH {
            return Err(ParameterError::Depth);
        }
        Ok(match kind {
            Kind::Optional(item) => Node::Optional(Box::new(Optional { item: Node::new(item, depth + 1)? })),
            Kind::List { max, .. }
            | Kind::Sparse { slots: max, .. }
            | Kind::Set { max, .. }
            | Kind::Map { max, .. }
                if *max > MAX_LENGTH =>
            {
                return Err(ParameterError::Length { max: *max });
            }
            Kind::Sparse { slots: 0, .. } => return Err(ParameterError::NoSlots),
            Kind::List { max, item } => Node::List(Box::new(List {
                item: Node::of_many(item, depth + 1)?,
                max: *max,
                order: Order::Free,
            })),
            Kind::Set { max, item } => {
                let item = Node::of_many(item, depth + 1)?;
                if !item.has_order() {
                    return Err(ParameterError::NoOrder);
                }
                Node::List(Box::new(List { item, max: *max, order: Order::Rising }))
            }
            Kind::Map { max, key, item } => {
                let entry = [("key", key), ("value", item)];
                let fields = entry.map(|(name, kind)| (name.to_owned(), (**kind).clone())).to_vec();
                let item = Node::of_many(&Kind::Nested { fields }, depth + 1)?;
                if !item.has_keys() {
                    return Err(ParameterError::NoOrder);
                }
                Node::List(Box::new(List { item, max: *max, order: Order::Keys }))
            }
            Kind::Union { variants } if !(2..=MAX_LENGTH as usize).contains(&variants.len()) => {
                return Err(ParameterError::Variants);
            }
            Kind::Union { variants } => {
                let variants = variants.iter().map(|(_, kind)| Node::new(kind, depth + 1));
                Node::Union(Box::new(Union { variants: variants.collect::<Result<_, _>>()? }))
            }
            Kind::Sparse { slots, item } => {
                Node::Sparse(Box::new(Sparse { item: Node::of_many(item, depth + 1)?, slots: *slots }))
            }
            Kind::Nested { fields } => {
                let schema = Schema::within(fields.iter().cloned(), depth + 1);
                Node::Nested(Box::new(schema.map_err(|error| ParameterError::Nested(Box::new(error)))?))
            }
            kind => match Codec::new(kind)? {
                Some(codec) => Node::Leaf(Leaf { column: codec.column(), codec }),
                None => return Err(ParameterError::Depth),
            },
        })
    }

    /// An item of which there may be many: it must take bits.
    fn of_many(kind: &Kind, depth: usize) -> Result<Self, ParameterError> {
        let node = Node::new(kind, depth)?;
        if node.bit_range().0 == 0 { Err(ParameterError::NoBits) } else { Ok(node) }
    }

    /// Bytes in a row.
    pub fn size(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.column.size(),
            Node::Optional(optional) => {
                (optional.item.size() + 1).next_multiple_of(optional.item.alignment())
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => 8,
            Node::Nested(schema) => schema.row_size(),
        }
    }

    /// What its offset in a row is a multiple of.
    pub fn alignment(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.column.alignment(),
            Node::Optional(optional) => optional.item.alignment(),
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => 4,
            Node::Nested(schema) => schema.alignment(),
        }
    }

    /// The least and the most bits it takes, 7 of them for an align.
    pub fn bit_range(&self) -> (usize, usize) {
        match self {
            Node::Leaf(leaf) => leaf.codec.bit_range(),
            Node::Optional(optional) => (1, 1 + optional.item.bit_range().1),
            Node::List(list) => {
                let count = count_bits(list.max);
                (count, list.item.bit_range().1.saturating_mul(list.max as usize).saturating_add(count))
            }
            Node::Sparse(sparse) => sparse.bit_range(),
            Node::Union(union) => union.bit_range(),
            Node::Nested(schema) => (schema.min_bits(), schema.max_bits()),
        }
    }

    /// Bytes of the tail that its lists take when they are full.
    pub fn max_tail_bytes(&self) -> usize {
        let full = |item: &Node, stride: usize, max: u32| {
            (stride + item.max_tail_bytes()).saturating_mul(max as usize)
        };
        match self {
            Node::Leaf(_) => 0,
            Node::Optional(optional) => optional.item.max_tail_bytes(),
            Node::List(list) => full(&list.item, list.stride(), list.max),
            Node::Sparse(sparse) => full(&sparse.item, sparse.stride(), sparse.slots),
            Node::Union(union) => union
                .variants
                .iter()
                .map(|variant| variant.size() + variant.max_tail_bytes())
                .max()
                .unwrap_or(0),
            Node::Nested(schema) => schema.max_tail_bytes(),
        }
    }

    /// Writes the value at `at` of a body.
    pub(super) fn write_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        match self {
            Node::Leaf(leaf) => leaf.write_cell(body, at, sink),
            Node::Optional(optional) => {
                let present = optional.is_present(body, at).ok_or(ValueError::Row)?;
                sink.bool(present);
                if present { optional.item.write_cell(body, at, sink) } else { Ok(()) }
            }
            Node::List(list) => {
                let (from, count) = run(body, at).ok_or(ValueError::Row)?;
                list.write_count(count, sink)?;
                if !list.is_rising(body, from, count) {
                    return Err(ValueError::NotRising);
                }
                (0..count).try_for_each(|i| {
                    list.item.write_cell(body, from.saturating_add(i.saturating_mul(list.stride())), sink)
                })
            }
            Node::Sparse(sparse) => {
                let mut entries = sparse.entries(body, at).ok_or(ValueError::Row)?;
                let mut slots = sparse.write_count(entries.len(), sink)?;
                entries.try_for_each(|entry| {
                    let (index, item) = entry.ok_or(ValueError::Row)?;
                    slots.write(index.into(), sink)?;
                    sparse.item.write_cell(body, item, sink)
                })
            }
            Node::Union(union) => {
                let (from, variant) = run(body, at).ok_or(ValueError::Row)?;
                union.write_variant(variant, sink)?.write_cell(body, from, sink)
            }
            Node::Nested(schema) => schema.write_at(body, at, sink).map_err(|(_, error)| error),
        }
    }

    /// Reads a value into its cell, `at` bytes into the body that starts at `start` of `out`.
    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        at: usize,
    ) -> Result<(), ReadError> {
        match self {
            Node::Leaf(leaf) => leaf.read_cell(reader, out, start, at),
            Node::Optional(optional) => {
                if reader.bool()? {
                    put(out, start + at + optional.item.size(), [1]);
                    optional.item.read_cell(reader, out, start, at)?;
                }
                Ok(())
            }
            Node::List(list) => {
                let (count, stride) = (reader.offset(list.max.into())? as usize, list.stride());
                // Before allocating rows, so that a count that the packet can't hold costs nothing.
                reader.require(count.saturating_mul(list.item.bit_range().0))?;
                let from = reserve(out, start, start + at, count, stride);
                (0..count).try_for_each(|i| list.item.read_cell(reader, out, start, from + i * stride))?;
                if list.is_rising(&out[start..], from, count) { Ok(()) } else { Err(ReadError::NotRising) }
            }
            Node::Sparse(sparse) => {
                let (count, stride) = (reader.offset(sparse.slots.into())? as usize, sparse.stride());
                reader.require(count.saturating_mul(sparse.item.bit_range().0))?;
                let from = reserve(out, start, start + at, count, stride);
                let mut indices = sparse.indices(count);
                (0..count).try_for_each(|i| {
                    let entry = from + i * stride;
                    let index = indices.read(reader)?;
                    put(out, start + entry, (index as u32).to_le_bytes());
                    sparse.item.read_cell(reader, out, start, entry + sparse.item_at())
                })
            }
            Node::Union(union) => {
                let number = reader.offset(union.variants.len() as u64 - 1)? as usize;
                let variant = &union.variants[number];
                reader.require(variant.bit_range().0)?;
                let from = out.len();
                point(out, start, start + at, from);
                put(out, start + at + 4, (number as u32).to_le_bytes());
                out.resize(from + variant.size(), 0);
                variant.read_cell(reader, out, start, from - start)
            }
            Node::Nested(schema) => schema.read_at(reader, out, start, at),
        }
    }
}

impl Leaf {
    #[inline]
    pub(super) fn write_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        at: usize,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        self.codec.write_cell(body, at, self.column, sink)
    }

    #[inline]
    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        at: usize,
    ) -> Result<(), ReadError> {
        self.codec.read_cell(reader, out, start, at, self.column)
    }

    /// Its layout in a row.
    pub fn column(&self) -> Column {
        self.column
    }

    pub(super) fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Checks `value` and writes it; nothing is written when it is refused.
    ///
    /// # Errors
    /// When the value is of another type or outside the bounds.
    #[inline]
    pub fn write<S: BitSink + ?Sized>(&self, value: Value<'_>, sink: &mut S) -> Result<(), ValueError> {
        self.codec.write(value, sink)
    }

    /// The value at `at` of a body; `None` when there is none.
    #[inline]
    pub fn load<'a>(&self, body: &'a [u8], at: usize) -> Option<Value<'a>> {
        self.column.load(body, at)
    }
}

impl Optional {
    /// Its value; it is in the optional's own cell.
    pub fn item(&self) -> &Node {
        &self.item
    }

    /// Whether there is an item, by the body.
    pub fn is_present(&self, body: &[u8], at: usize) -> Option<bool> {
        Some(cell::<1>(body, at.checked_add(self.item.size())?)? != [0])
    }
}

impl List {
    /// What each item is.
    pub fn item(&self) -> &Node {
        &self.item
    }

    /// Bytes from an item to the next.
    pub fn stride(&self) -> usize {
        self.item.size()
    }

    /// The place of the first item in the body, and the number of items.
    pub fn items(&self, body: &[u8], at: usize) -> Option<(usize, usize)> {
        run(body, at)
    }

    /// Whether items are in the order that they must have.
    fn is_rising(&self, body: &[u8], from: usize, count: usize) -> bool {
        self.order == Order::Free || self.rises(body, from, count)
    }

    /// The order of the items.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Writes how many items follow.
    ///
    /// # Errors
    /// When they are too many.
    pub fn write_count<S: BitSink + ?Sized>(&self, count: usize, sink: &mut S) -> Result<(), ValueError> {
        write_count(count, self.max, sink)
    }
}

impl Union {
    /// The node of the variant with this number.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn variant(&self, number: usize) -> Result<&Node, ValueError> {
        let hi = self.variants.len() as i128 - 1;
        self.variants.get(number).ok_or(ValueError::OutOfRange { value: number as i128, lo: 0, hi })
    }

    /// What it may be.
    pub fn variants(&self) -> &[Node] {
        &self.variants
    }

    /// Its number, and the place of its row in the body.
    pub fn load(&self, body: &[u8], at: usize) -> Option<(usize, &Node, usize)> {
        let (from, number) = run(body, at)?;
        Some((number, self.variants.get(number)?, from))
    }

    /// Writes which variant follows; returns the node that writes it.
    ///
    /// # Errors
    ///
    /// There is none of this number.
    pub fn write_variant<S: BitSink + ?Sized>(
        &self,
        number: usize,
        sink: &mut S,
    ) -> Result<&Node, ValueError> {
        let variant = self.variant(number)?;
        sink.int(number as i64, 0, self.variants.len() as i64 - 1);
        Ok(variant)
    }

    fn bit_range(&self) -> (usize, usize) {
        let tag = bit_len(self.variants.len() as u64 - 1) as usize;
        let ranges = || self.variants.iter().map(Node::bit_range);
        let least = ranges().map(|(least, _)| least).min().unwrap_or(0);
        let most = ranges().map(|(_, most)| most).max().unwrap_or(0);
        (tag + least, most.saturating_add(tag))
    }
}

pub(super) fn count_bits(max: u32) -> usize {
    bit_len(max.into()) as usize
}

pub(super) fn write_count<S: BitSink + ?Sized>(
    count: usize,
    max: u32,
    sink: &mut S,
) -> Result<(), ValueError> {
    if count > max as usize {
        return Err(ValueError::TooLong { length: count, max, unit: "items" });
    }
    sink.int(count as i64, 0, max.into());
    Ok(())
}

/// Makes room for `count` rows at the end of `out` and writes into `cell` their place relative to `start`, which it
/// returns.
fn reserve(out: &mut Vec<u8>, start: usize, cell: usize, count: usize, stride: usize) -> usize {
    let from = out.len();
    point(out, start, cell, from);
    put(out, cell + 4, (count as u32).to_le_bytes());
    out.resize(from + count * stride, 0);
    from - start
}

#[cfg(test)]
mod tests;
