//! Sets and maps: their items are ordered, so that equal sets have equal bits.
//!
//! Promises: items rise, by their own value or by their key, without duplicates; anything else from a peer or the
//! application is refused. Refuses items without an order: floats, vectors, and values without fixed parts.

use core::cmp::Ordering;

use super::node::{List, Order};
use super::{BitReader, BitSink, Column, Node, Value, ValueError};

/// Why items can't be written.
#[derive(Debug)]
pub enum ItemsError {
    /// These two, by their places, are the same on the wire.
    Same(usize, usize),
    /// As for any value.
    Value(ValueError),
}

impl Node {
    pub(super) fn has_order(&self) -> bool {
        match self {
            Node::Leaf(leaf) => !matches!(
                leaf.column(),
                Column::Float32 | Column::Float64 | Column::Singles(_) | Column::Doubles(_)
            ),
            Node::Optional(optional) => optional.item().has_order(),
            Node::Nested(schema) => schema.fields().iter().all(|field| field.node().has_order()),
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => false,
        }
    }

    /// Whether the first field of an entry is in an order.
    pub(super) fn has_keys(&self) -> bool {
        self.key().is_some_and(Node::has_order)
    }

    fn key(&self) -> Option<&Node> {
        match self {
            // The first field of a row lies where the row does.
            Node::Nested(schema) => schema.fields().first().map(super::Field::node),
            _ => None,
        }
    }
}

fn compare_items(list: &List, body: &[u8], a: usize, b: usize) -> Option<Ordering> {
    match list.order() {
        Order::Free => Some(Ordering::Less),
        Order::Rising => compare(list.item(), body, a, b),
        Order::Keys => compare(list.item().key()?, body, a, b),
    }
}

/// How two values of a body compare; nothing when the body holds no such values.
fn compare(node: &Node, body: &[u8], a: usize, b: usize) -> Option<Ordering> {
    match node {
        Node::Leaf(leaf) => Some(match (leaf.load(body, a)?, leaf.load(body, b)?) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
            (Value::Int(a), Value::Int(b)) => a.cmp(&b),
            (Value::Uint(a), Value::Uint(b)) => a.cmp(&b),
            (Value::Int128(a), Value::Int128(b)) => a.cmp(&b),
            (Value::Uint128(a), Value::Uint128(b)) => a.cmp(&b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Data(a), Value::Data(b)) => a.cmp(b),
            _ => return None,
        }),
        Node::Optional(optional) => match (optional.is_present(body, a)?, optional.is_present(body, b)?) {
            (true, true) => compare(optional.item(), body, a, b),
            (a, b) => Some(a.cmp(&b)),
        },
        Node::Nested(schema) => {
            for field in schema.fields() {
                let at = |row: usize| row.checked_add(field.offset());
                match compare(field.node(), body, at(a)?, at(b)?)? {
                    Ordering::Equal => {}
                    other => return Some(other),
                }
            }
            Some(Ordering::Equal)
        }
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => None,
    }
}

impl List {
    /// Whether the items rise that start at `from`.
    pub(super) fn rises(&self, body: &[u8], from: usize, count: usize) -> bool {
        let at = |i: usize| from.saturating_add(i.saturating_mul(self.stride()));
        (1..count).all(|i| compare_items(self, body, at(i - 1), at(i)) == Some(Ordering::Less))
    }

    /// Writes items, given in any order as each one's own bytes with their number of bits.
    ///
    /// # Errors
    ///
    /// When two are the same, or they are too many.
    pub fn write_items<S: BitSink + ?Sized>(
        &self,
        items: &[Vec<u8>],
        sink: &mut S,
    ) -> Result<(), ItemsError> {
        self.write_count(items.len(), sink).map_err(ItemsError::Value)?;
        let broken = || ItemsError::Value(ValueError::Row);
        let stride = self.stride();
        let mut body = vec![0; items.len() * stride];
        for (i, bytes) in items.iter().enumerate() {
            let read = self.item().read_cell(&mut BitReader::new(bytes), &mut body, 0, i * stride);
            read.map_err(|_| broken())?;
        }
        let mut places: Vec<usize> = (0..items.len()).collect();
        let compare = |a: &usize, b: &usize| compare_items(self, &body, a * stride, b * stride);
        if self.order() != Order::Free {
            places.sort_by(|a, b| compare(a, b).unwrap_or(Ordering::Equal));
        }
        for pair in places.windows(2) {
            if compare(&pair[0], &pair[1]) != Some(Ordering::Less) {
                return Err(ItemsError::Same(pair[0], pair[1]));
            }
        }
        let mut written = places.iter().map(|place| self.item().write_cell(&body, place * stride, sink));
        written.try_for_each(|written| written).map_err(ItemsError::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitWriter, Kind, ParameterError, ReadError, Rows, Schema, SchemaError};
    use super::*;
    use crate::rng::Rng;

    fn bits(bits: u32) -> Box<Kind> {
        Box::new(Kind::Bits { bits })
    }

    fn schema(kind: Kind) -> Schema {
        Schema::new([("f", kind)]).unwrap()
    }

    fn read(schema: &Schema, write: impl FnOnce(&mut BitWriter)) -> Result<Vec<u8>, ReadError> {
        let mut writer = BitWriter::new();
        write(&mut writer);
        let (bits, bytes) = (writer.bit_len(), writer.into_bytes());
        let (mut body, mut reader) = (Vec::new(), BitReader::with_range(&bytes, 0, bits));
        schema.read(&mut reader, &mut body)?;
        assert_eq!(reader.remaining_bits(), 0);
        assert!((schema.min_bits()..=schema.max_bits()).contains(&bits));
        let mut again = BitWriter::new();
        schema.write_row(&body, &mut again).unwrap();
        assert_eq!((again.bit_len(), again.into_bytes()), (bits, bytes));
        Ok(body)
    }

    #[test]
    fn a_set_rises_and_has_nothing_twice() {
        let schema = schema(Kind::Set { max: 5, item: bits(9) });
        let items = |items: &[u64]| {
            read(&schema, |w| {
                w.bits(items.len() as u64, 3);
                items.iter().for_each(|item| w.bits(*item, 9));
            })
        };
        assert_eq!(items(&[1, 2, 300]).unwrap()[8..], [1, 0, 2, 0, 44, 1]);
        assert!(items(&[]).is_ok());
        for wrong in [&[2, 1][..], &[1, 1], &[1, 2, 2], &[300, 44]] {
            assert_eq!(items(wrong), Err(ReadError::NotRising), "{wrong:?}");
        }
    }

    #[test]
    fn a_map_rises_by_its_keys_alone() {
        let schema = schema(Kind::Map { max: 3, key: Box::new(Kind::Text { max_bytes: 3 }), item: bits(4) });
        let entries = |entries: &[(&str, u64)]| {
            read(&schema, |w| {
                w.bits(entries.len() as u64, 2);
                for (key, value) in entries {
                    w.string(key, 3);
                    w.bits(*value, 4);
                }
            })
        };
        assert!(entries(&[("a", 9), ("ab", 3), ("b", 0)]).is_ok());
        assert_eq!(entries(&[("a", 3), ("a", 4)]), Err(ReadError::NotRising));
        assert_eq!(entries(&[("b", 3), ("a", 4)]), Err(ReadError::NotRising));
    }

    #[test]
    fn a_union_is_a_number_and_its_message() {
        let fields = |kind: Kind| Kind::Nested { fields: vec![("x".into(), kind)] };
        let nothing = Kind::Nested { fields: Vec::new() };
        let text = fields(Kind::Text { max_bytes: 3 });
        let kinds = [fields(*bits(12)), text, nothing];
        let variants = (0..).zip(kinds).map(|(n, kind): (u32, Kind)| (n.to_string(), kind)).collect();
        let schema = schema(Kind::Union { variants });
        assert_eq!((schema.row_size(), schema.min_bits(), schema.has_tail()), (8, 2, true));
        let first = read(&schema, |w| {
            w.bits(0, 2);
            w.bits(0x123, 12);
        });
        assert_eq!(first.unwrap(), [8, 0, 0, 0, 0, 0, 0, 0, 0x23, 1]);
        let second = read(&schema, |w| {
            w.bits(1, 2);
            w.string("ab", 3);
        });
        assert_eq!(second.unwrap()[16..], *b"ab");
        assert_eq!(read(&schema, |w| w.bits(2, 2)).unwrap(), [8, 0, 0, 0, 2, 0, 0, 0]);
        let none = read(&schema, |w| w.bits(3, 2));
        assert_eq!(none, Err(ReadError::OutOfRange { offset: 3, span: 2 }));
        let cut = read(&schema, |w| {
            w.bits(0, 2);
            w.bits(0, 11);
        });
        assert_eq!(cut, Err(ReadError::PastEnd { needed: 12, remaining: 11 }));
    }

    #[test]
    fn rows_of_the_application_are_in_order_too() {
        let set = schema(Kind::Set { max: 5, item: bits(8) });
        let write = |items: &[u8]| {
            let cell = [0u32.to_le_bytes(), (items.len() as u32).to_le_bytes()].concat();
            let rows = Rows::new([items, &cell].concat(), items.len(), 1);
            set.write_all(&rows, &mut BitWriter::new()).map_err(|error| error.error)
        };
        assert_eq!(write(&[1, 2, 9]), Ok(()));
        assert_eq!(write(&[1, 1]), Err(ValueError::NotRising));
        assert_eq!(write(&[2, 1]), Err(ValueError::NotRising));

        let one = Kind::Nested { fields: vec![("x".into(), *bits(8))] };
        let union = schema(Kind::Union { variants: vec![("a".into(), one.clone()), ("b".into(), one)] });
        let write = |offset: u32, variant: u32| {
            let cell = [offset.to_le_bytes(), variant.to_le_bytes()].concat();
            let rows = Rows::new([&[7][..], &cell].concat(), 1, 1);
            union.write_all(&rows, &mut BitWriter::new()).map_err(|error| error.error)
        };
        assert_eq!(write(0, 1), Ok(()));
        assert_eq!(write(0, 2), Err(ValueError::OutOfRange { value: 2, lo: 0, hi: 1 }));
        for offset in [1, u32::MAX] {
            assert_eq!(
                write(offset, 0),
                Err(ValueError::OutsideArena { offset: offset as usize, count: 1, bytes: 1, arena: 1 })
            );
        }
    }

    #[test]
    fn items_are_written_in_their_order_whatever_order_they_come_in() {
        let schema = schema(Kind::Map { max: 40, key: bits(12), item: bits(5) });
        let Node::List(list) = schema.fields()[0].node() else { panic!("a map is a list") };
        let mut rng = Rng::seeded(5);
        for _ in 0..200 {
            let mut keys: Vec<u64> = (0..rng.below(40)).map(|_| rng.below(4096)).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut items: Vec<(u64, u64)> = keys.iter().map(|key| (*key, key % 32)).collect();
            let encoded = |items: &[(u64, u64)]| -> Vec<Vec<u8>> {
                let one = |&(key, value): &(u64, u64)| {
                    let mut writer = BitWriter::new();
                    writer.bits(key, 12);
                    writer.bits(value, 5);
                    writer.into_bytes()
                };
                items.iter().map(one).collect()
            };
            let mut rising = BitWriter::new();
            rising.bits(items.len() as u64, 6);
            for (key, value) in &items {
                rising.bits(*key, 12);
                rising.bits(*value, 5);
            }
            for i in (1..items.len()).rev() {
                items.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let mut writer = BitWriter::new();
            list.write_items(&encoded(&items), &mut writer).unwrap();
            assert_eq!(writer.as_bytes(), rising.as_bytes());
            if let [first, ..] = items[..] {
                items.push((first.0, 31 - first.1));
                let twice = list.write_items(&encoded(&items), &mut BitWriter::new());
                assert!(matches!(
                    twice,
                    Err(ItemsError::Same(..) | ItemsError::Value(ValueError::TooLong { .. }))
                ));
            }
        }
    }

    #[test]
    fn what_is_in_no_order_is_refused_when_it_is_declared() {
        let refusal = |kind: Kind| match Schema::new([("f", kind)]) {
            Err(SchemaError::Parameter { error, .. }) => error,
            other => panic!("{other:?}"),
        };
        let list = || Box::new(Kind::List { max: 3, item: bits(3) });
        for item in [Box::new(Kind::Float), list(), Box::new(Kind::Direction { bits: 8 })] {
            assert_eq!(refusal(Kind::Set { max: 3, item: item.clone() }), ParameterError::NoOrder);
            assert_eq!(refusal(Kind::Map { max: 3, key: item, item: bits(1) }), ParameterError::NoOrder);
        }
        let one = vec![("a".to_owned(), Kind::Nested { fields: Vec::new() })];
        assert_eq!(refusal(Kind::Union { variants: one }), ParameterError::Variants);
        assert_eq!(
            refusal(Kind::Set { max: 3, item: Box::new(Kind::Ranged { lo: 1, hi: 1 }) }),
            ParameterError::NoBits
        );
    }

    #[test]
    fn any_bytes_are_a_message_that_is_written_again_or_refused() {
        let text = || Box::new(Kind::Text { max_bytes: 4 });
        let pair =
            Kind::Nested { fields: vec![("a".into(), *bits(2)), ("b".into(), Kind::Optional(bits(2)))] };
        let variants = vec![
            ("p".to_owned(), pair.clone()),
            ("t".to_owned(), Kind::Nested { fields: vec![("x".into(), *text())] }),
        ];
        let schema = Schema::new([
            ("set", Kind::Set { max: 3, item: Box::new(pair) }),
            ("map", Kind::Map { max: 3, key: text(), item: text() }),
            ("union", Kind::List { max: 3, item: Box::new(Kind::Union { variants }) }),
        ])
        .unwrap();
        let (mut rng, mut read) = (Rng::seeded(3), 0);
        for _ in 0..50_000 {
            let bytes: Vec<u8> =
                (0..24).map(|_| rng.next_u64() as u8 & rng.next_u64() as u8 & 0x7F).collect();
            let mut reader = BitReader::new(&bytes);
            let mut body = vec![9];
            if schema.read(&mut reader, &mut body).is_err() {
                assert_eq!(body, [9]);
                continue;
            }
            read += 1;
            assert!(body.len() <= 1 + schema.row_size() + bytes.len() + schema.max_tail_bytes());
            let mut writer = BitWriter::new();
            schema.write_row(&body[1..], &mut writer).unwrap();
            let mut first = BitReader::new(&bytes);
            let bits = writer.bit_len();
            let mut second = BitReader::new(writer.as_bytes());
            assert_eq!(bits, reader.position());
            for _ in 0..bits {
                assert_eq!(first.bits(1), second.bits(1));
            }
        }
        assert!(read > 1000, "{read}");
    }
}
