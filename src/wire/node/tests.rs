use super::super::{BitWriter, Kind};
use super::super::{MAX_TAIL_BYTES, SchemaError};
use super::*;

fn optional(item: Kind) -> Kind {
    Kind::Optional(Box::new(item))
}

fn list(max: u32, item: Kind) -> Kind {
    Kind::List { max, item: Box::new(item) }
}

fn sparse(slots: u32, item: Kind) -> Kind {
    Kind::Sparse { slots, item: Box::new(item) }
}

fn bits(bits: u32) -> Kind {
    Kind::Bits { bits }
}

fn schema(kind: Kind) -> Schema {
    Schema::new([("f", kind)]).unwrap()
}

fn written(write: impl FnOnce(&mut BitWriter)) -> (Vec<u8>, usize) {
    let mut writer = BitWriter::new();
    write(&mut writer);
    let bits = writer.bit_len();
    (writer.into_bytes(), bits)
}

/// The body of these bits, which must be written again just so.
fn body(schema: &Schema, write: impl FnOnce(&mut BitWriter)) -> Result<Vec<u8>, ReadError> {
    let (bytes, bits) = written(write);
    let (mut body, mut reader) = (Vec::new(), BitReader::with_range(&bytes, 0, bits));
    schema.read(&mut reader, &mut body)?;
    assert_eq!(reader.remaining_bits(), 0);
    assert!((schema.min_bits()..=schema.max_bits()).contains(&bits));
    assert_eq!(written(|w| schema.write_row(&body, w).unwrap()), (bytes, bits));
    Ok(body)
}

fn refusal(kind: Kind) -> ParameterError {
    match Schema::new([("f", kind)]) {
        Err(SchemaError::Parameter { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_optional_lies_before_its_flag() {
    let schema = schema(optional(bits(16)));
    assert_eq!((schema.row_size(), schema.min_bits(), schema.max_bits()), (4, 1, 17));
    assert_eq!(body(&schema, |w| w.bool(false)).unwrap(), [0, 0, 0, 0]);
    let there = body(&schema, |w| {
        w.bool(true);
        w.bits(0x1234, 16);
    });
    assert_eq!(there.unwrap(), [0x34, 0x12, 1, 0]);
}

#[test]
fn items_of_a_list_lie_one_behind_the_other_in_the_tail() {
    let schema = schema(list(5, bits(9)));
    assert_eq!((schema.row_size(), schema.min_bits(), schema.max_bits()), (8, 3, 3 + 45));
    let three = body(&schema, |w| {
        w.bits(3, 3);
        [1, 300, 2].into_iter().for_each(|item| w.bits(item, 9));
    });
    assert_eq!(three.unwrap(), [8, 0, 0, 0, 3, 0, 0, 0, 1, 0, 44, 1, 2, 0]);
    let six = body(&schema, |w| w.bits(6, 3));
    assert_eq!(six, Err(ReadError::OutOfRange { offset: 6, span: 5 }));
}

#[test]
fn a_list_that_the_packet_cannot_hold_costs_no_rows() {
    let schema = schema(list(8000, bits(1)));
    let (bytes, bits) = written(|w| {
        w.bits(8000, 13);
        w.bits(0, 64);
    });
    let mut out = Vec::new();
    let read = schema.read(&mut BitReader::with_range(&bytes, 0, bits), &mut out);
    assert_eq!(read, Err(ReadError::PastEnd { needed: 8000, remaining: 64 }));
    assert!(out.is_empty() && out.capacity() < 100);
}

#[test]
fn a_sparse_array_names_slots_in_the_bits_that_are_open() {
    let schema = schema(sparse(8, bits(4)));
    assert_eq!(schema.row_size(), 8);
    // Two of eight: the first is in 0..=6, the second in 4..=7.
    let two = body(&schema, |w| {
        w.bits(2, 4);
        w.bits(3, 3);
        w.bits(9, 4);
        w.bits(3, 2);
        w.bits(5, 4);
    });
    let two = two.unwrap();
    assert_eq!(two[..8], [8, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(two[8..], [3, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0]);
    let full = body(&schema, |w| {
        w.bits(8, 4);
        (0..8).for_each(|i| w.bits(i, 4));
    });
    assert_eq!(full.unwrap().len(), 8 + 8 * 8, "whose slots need no bits");
    let beyond = body(&schema, |w| {
        w.bits(2, 4);
        w.bits(7, 3);
        w.bits(0, 4);
    });
    assert_eq!(beyond, Err(ReadError::PastEnd { needed: 8, remaining: 7 }));
    let beyond = body(&schema, |w| {
        w.bits(2, 4);
        w.bits(7, 3);
        w.bits(0, 8);
    });
    assert_eq!(beyond, Err(ReadError::OutOfRange { offset: 7, span: 6 }));
}

#[test]
fn rows_of_the_application_are_doubted() {
    let refused = |kind: Kind, body: &[u8]| schema(kind).write_row(body, &mut BitWriter::new());
    let row = Err((0, ValueError::Row));
    assert_eq!(refused(list(5, bits(9)), &[8, 0, 0, 0, 1, 0, 0, 0]), row);
    assert_eq!(refused(list(5, bits(9)), &[255, 255, 255, 255, 1, 0, 0, 0]), row);
    let many = ValueError::TooLong { length: 6, max: 5, unit: "items" };
    assert_eq!(refused(list(5, bits(9)), &[8, 0, 0, 0, 6, 0, 0, 0]), Err((0, many)));
    assert_eq!(refused(optional(bits(9)), &[0, 0]), row);
    let entries = |slots: [u8; 2]| {
        let entry = |slot| [slot, 0, 0, 0, 7, 0, 0, 0];
        refused(sparse(8, bits(4)), &[[8, 0, 0, 0, 2, 0, 0, 0], entry(slots[0]), entry(slots[1])].concat())
    };
    assert_eq!(entries([3, 7]), Ok(()));
    for slots in [[3, 3], [3, 2], [7, 7], [3, 8]] {
        assert!(matches!(entries(slots), Err((0, ValueError::OutOfRange { .. }))), "{slots:?}");
    }
}

#[test]
fn messages_lie_in_messages_as_structs_in_structs() {
    let fields = |kinds: &[(&str, Kind)]| Kind::Nested {
        fields: kinds.iter().map(|(name, kind)| ((*name).into(), kind.clone())).collect(),
    };
    let inner = fields(&[("hp", bits(7)), ("at", bits(20)), ("name", Kind::Text { max_bytes: 9 })]);
    let schema = Schema::new([("on", Kind::Bool), ("team", list(3, inner)), ("end", bits(3))]).unwrap();
    assert_eq!((schema.row_size(), schema.fields()[1].offset(), schema.max_tail_bytes()), (16, 4, 3 * 16));
    let read = body(&schema, |w| {
        w.bool(true);
        w.bits(2, 2);
        for (hp, name) in [(100, "ab"), (0, "c")] {
            w.bits(hp, 7);
            w.bits(500_000, 20);
            w.string(name, 9);
        }
        w.bits(5, 3);
    });
    let read = read.unwrap();
    assert_eq!(read[..16], [1, 0, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(read[16..24], [100, 0, 0, 0, 0x20, 0xA1, 7, 0]);
    assert_eq!(read[24..32], [48, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(read[48..], *b"abc");
}

#[test]
fn a_common_value_costs_a_bit_and_one_of_two_costs_two() {
    let common = |words: &[u128]| Kind::Common { item: Box::new(bits(10)), words: words.to_vec() };
    let one = schema(common(&[1000]));
    assert_eq!((one.min_bits(), one.max_bits(), one.row_size()), (1, 11, 2));
    assert_eq!(body(&one, |w| w.bool(true)).unwrap(), 1000u16.to_le_bytes());
    assert_eq!(body(&one, |w| w.bits(7 << 1, 11)).unwrap(), [7, 0]);
    assert_eq!(body(&one, |w| w.bits(1000 << 1, 11)), Err(ReadError::NotShortest));
    let two = schema(common(&[1000, 0]));
    assert_eq!(body(&two, |w| w.bits(0b01, 2)).unwrap(), 1000u16.to_le_bytes());
    assert_eq!(body(&two, |w| w.bits(0b11, 2)).unwrap(), [0, 0]);
    assert_eq!(body(&two, |w| w.bits(0, 11)), Err(ReadError::NotShortest));

    assert_eq!(refusal(common(&[])), ParameterError::Common);
    assert_eq!(refusal(common(&[1, 1])), ParameterError::Common);
    assert_eq!(refusal(common(&[1024])), ParameterError::Common, "no value of the field");
    let wide = Kind::Common { item: Box::new(Kind::Text { max_bytes: 3 }), words: vec![0] };
    assert_eq!(refusal(wide), ParameterError::NoFixedWidth);
    let parts = Kind::Common { item: Box::new(optional(bits(3))), words: vec![0] };
    assert_eq!(refusal(parts), ParameterError::NoFixedWidth);
}

#[test]
fn a_member_is_its_integer_in_the_row_and_its_place_on_the_wire() {
    let members = |values: &[i64]| Kind::Enum {
        members: values.iter().map(|value| (format!("V{value}"), *value)).collect(),
    };
    let schema = schema(members(&[-5, 0, 700]));
    assert_eq!((schema.max_bits(), schema.row_size()), (2, 2));
    assert_eq!(body(&schema, |w| w.bits(2, 2)).unwrap(), 700i16.to_le_bytes());
    assert_eq!(body(&schema, |w| w.bits(3, 2)), Err(ReadError::OutOfRange { offset: 3, span: 2 }));
    let stray = schema.fields()[0].write(Value::Int(1), &mut BitWriter::new());
    assert_eq!(stray, Err(ValueError::NotAMember { value: 1 }));
    assert_eq!(refusal(members(&[])), ParameterError::Members);
    assert_eq!(refusal(members(&[1, 1])), ParameterError::Members);
    assert_eq!(refusal(members(&[2, 1])), ParameterError::Members);
}

#[test]
fn declarations_that_could_take_much_memory_are_refused() {
    assert_eq!(refusal(list(5, Kind::Ranged { lo: 1, hi: 1 })), ParameterError::NoBits);
    assert_eq!(refusal(sparse(5, Kind::Ranged { lo: 1, hi: 1 })), ParameterError::NoBits);
    assert_eq!(refusal(sparse(0, bits(1))), ParameterError::NoSlots);
    assert_eq!(refusal(list(MAX_LENGTH + 1, bits(1))), ParameterError::Length { max: MAX_LENGTH + 1 });
    let vector = Kind::Vector { axes: 3, lo: 0.0, hi: 1.0, resolution: 0.1 };
    assert_eq!(refusal(list(30_000, vector)), ParameterError::Spread { bytes: 720_000 });
    let within = list(1000, Kind::Nested { fields: vec![("f".into(), list(100, bits(32)))] });
    assert_eq!(refusal(within), ParameterError::Spread { bytes: 408_000 });
    let two = ["a", "b"].map(|name| (name, list(MAX_LENGTH, bits(32))));
    let error = Schema::new(two.clone()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("field \"b\": a message's full lists must be at most 262144 bytes, not 524280"),
        "{error}"
    );
    assert_eq!(Schema::new([two[0].clone()]).unwrap().max_tail_bytes(), MAX_TAIL_BYTES - 4);
    let deep = (0..=MAX_DEPTH).fold(bits(1), |kind, _| optional(kind));
    assert_eq!(refusal(deep), ParameterError::Depth);
    let deep = (0..MAX_DEPTH).fold(bits(1), |kind, _| optional(kind));
    assert!(Schema::new([("f", deep)]).is_ok());
}
