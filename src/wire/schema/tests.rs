use super::super::{BitWriter, Column, MAX_LENGTH, Measure, Node, Value};
use super::*;
use crate::rng::Rng;

/// A value that owns its text, as the application would hold it.
#[derive(Clone, Debug)]
enum Owned {
    Plain(Value<'static>),
    Text(String),
    Data(Vec<u8>),
    Floats(Vec<f64>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Plain(value) => *value,
            Owned::Text(text) => Value::Text(text),
            Owned::Data(data) => Value::Data(data),
            Owned::Floats(floats) => Value::Floats(floats),
        }
    }
}

fn random_i128(rng: &mut Rng) -> i128 {
    let wide = i128::from(rng.next_u64().cast_signed()) << 64 | i128::from(rng.next_u64());
    wide >> rng.below(128)
}

fn random_kind(rng: &mut Rng) -> Kind {
    let max = rng.below(40) as u32;
    match rng.below(16) {
        0 => Kind::Bool,
        1 | 2 => Kind::Bits { bits: 1 + rng.below(64) as u32 },
        3 | 4 => {
            let (a, b) = (random_i128(rng), random_i128(rng));
            Kind::Ranged { lo: a.min(b), hi: a.max(b) }
        }
        5 => [Kind::Uint128, Kind::Float, Kind::Double][rng.below(3) as usize].clone(),
        6 => {
            let lo = rng.unit() * 200.0 - 100.0;
            Kind::Quantized { lo, hi: lo + 1.0 + rng.unit() * 100.0, resolution: 0.01 }
        }
        7 => {
            let lo = rng.below(1000) as i64 - 500;
            Kind::Fixed { fraction_bits: rng.below(40) as u32, lo, hi: lo + rng.below(1000) as i64 }
        }
        8 => Kind::Text { max_bytes: max },
        9 => Kind::Data { max_bytes: max },
        10 => Kind::Angle { lo: -180.0, hi: 180.0, resolution: 0.01 },
        11 => Kind::Vector { axes: 2 + rng.below(2) as u32, lo: -100.0, hi: 100.0, resolution: 0.01 },
        12 => Kind::Enum { members: (0..=i64::from(max)).map(|n| (n.to_string(), n * 3 - 7)).collect() },
        13 => Kind::Flags { names: (0..=max).map(|n| n.to_string()).collect() },
        14 => Kind::Raw { bytes: max },
        _ => Kind::WideText { max_units: max },
    }
}

fn random_text(rng: &mut Rng, mut room: usize, cost: fn(char) -> usize) -> String {
    let mut text = String::new();
    while let Some(c) = ['a', 'ß', '語', '🎲'].get(rng.below(6) as usize) {
        match room.checked_sub(cost(*c)) {
            Some(rest) => room = rest,
            None => break,
        }
        text.push(*c);
    }
    text
}

fn random_value(rng: &mut Rng, kind: &Kind) -> Owned {
    Owned::Plain(match *kind {
        Kind::Bool => Value::Bool(rng.chance(0.5)),
        Kind::Bits { bits } => Value::Uint(rng.next_u64() >> (64 - bits)),
        Kind::Ranged { lo, hi } => {
            let span = hi.wrapping_sub(lo).cast_unsigned();
            let random = random_i128(rng).cast_unsigned();
            let offset = span.checked_add(1).map_or(random, |count| random % count);
            Value::Int128(lo.wrapping_add(offset.cast_signed()))
        }
        Kind::Uint128 => Value::Uint128(random_i128(rng).cast_unsigned()),
        Kind::Float => Value::Float(f64::from(rng.unit() as f32)),
        Kind::Double => Value::Float(f64::from_bits(rng.next_u64())),
        Kind::Quantized { lo, hi, .. } => Value::Float(lo + rng.unit() * (hi - lo)),
        Kind::Fixed { lo, hi, .. } => Value::Float(lo as f64 + rng.unit() * (hi - lo) as f64),
        Kind::Text { max_bytes } => {
            return Owned::Text(random_text(rng, max_bytes as usize, char::len_utf8));
        }
        Kind::WideText { max_units } => {
            return Owned::Text(random_text(rng, max_units as usize, char::len_utf16));
        }
        Kind::Data { max_bytes } => {
            return Owned::Data(vec![rng.next_u64() as u8; rng.below(u64::from(max_bytes) + 1) as usize]);
        }
        Kind::Raw { bytes } => return Owned::Data(vec![rng.next_u64() as u8; bytes as usize]),
        Kind::Angle { lo, hi, .. } => Value::Float(lo + rng.unit() * (hi - lo - 0.01)),
        Kind::Vector { axes, lo, hi, .. } => {
            return Owned::Floats((0..axes).map(|_| lo + rng.unit() * (hi - lo)).collect());
        }
        Kind::Enum { ref members } => Value::Int(members[rng.below(members.len() as u64) as usize].1),
        Kind::Flags { ref names } => Value::Uint(rng.next_u64() >> (64 - names.len())),
        ref parts => unreachable!("{parts} is not among the random kinds"),
    })
}

fn random_schema(rng: &mut Rng) -> Schema {
    let count = rng.below(12);
    Schema::new((0..count).map(|i| (format!("f{i}"), random_kind(rng)))).unwrap()
}

/// Whether a loaded value is the written one, up to the kind's precision.
fn same(kind: &Kind, loaded: Value<'_>, written: Value<'_>) -> bool {
    match (kind, loaded, written) {
        (Kind::Quantized { .. } | Kind::Angle { .. }, Value::Float(a), Value::Float(b)) => {
            (a - b).abs() < 0.0051
        }
        (_, Value::Cells(cells), Value::Floats(floats)) => {
            let near = |(i, b): (usize, &f64)| cells.float(i).is_some_and(|a| (a - b).abs() < 0.0051);
            cells.count() == floats.len() && floats.iter().enumerate().all(near)
        }
        (Kind::Fixed { fraction_bits, .. }, Value::Float(a), Value::Float(b)) => {
            (a - b).abs() * 2f64.powi(*fraction_bits as i32) <= 0.5
        }
        (_, Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (_, Value::Bool(_) | Value::Text(_) | Value::Data(_), _) => loaded == written,
        (_, a, b) => a.as_i128() == b.as_i128() && a.as_u128() == b.as_u128(),
    }
}

#[test]
fn what_is_written_is_read_and_loaded_and_written_again() {
    for seed in 0..600 {
        let rng = &mut Rng::seeded(seed);
        let schema = random_schema(rng);
        let values: Vec<Owned> = schema.fields().iter().map(|f| random_value(rng, f.kind())).collect();
        let (mut writer, mut measure) = (BitWriter::new(), Measure::new());
        for (field, value) in schema.fields().iter().zip(&values) {
            field.write(value.value(), &mut writer).unwrap();
            field.write(value.value(), &mut measure).unwrap();
        }
        let message = writer.encoded();
        assert!(message.max_bits() <= measure.bits_bound() && measure.bits_bound() <= schema.max_bits());
        assert!(schema.min_bits() <= message.bits());

        // In the middle of a packet, after another body.
        let start = rng.below(8) as usize;
        let mut packet = BitWriter::new();
        (0..start).for_each(|_| packet.bool(true));
        packet.append(&message);
        let bits = packet.bit_len() - start;
        let bytes = packet.into_bytes();
        let mut reader = BitReader::with_range(&bytes, start, bits);
        let mut bodies = vec![0xEE; 3];
        schema.read(&mut reader, &mut bodies).unwrap();
        assert_eq!(reader.finish(), Ok(()));
        let body = &bodies[3..];
        assert!(body.len() >= schema.row_size());
        for (field, value) in schema.fields().iter().zip(&values) {
            let (loaded, written) = (field.load(body), value.value());
            assert!(same(field.kind(), loaded, written), "seed {seed}: {loaded:?} of {written:?}");
        }
        let mut again = BitWriter::new();
        schema.write_row(body, &mut again).unwrap();
        assert_eq!(again.encoded(), message, "seed {seed}");
    }
}

#[test]
fn hostile_bytes_never_panic_and_append_nothing_when_refused() {
    for seed in 0..600 {
        let rng = &mut Rng::seeded(seed);
        let schema = random_schema(rng);
        let mut writer = BitWriter::new();
        for field in schema.fields() {
            let value = random_value(rng, field.kind());
            field.write(value.value(), &mut writer).unwrap();
        }
        let (bits, bytes) = (writer.bit_len(), writer.into_bytes());
        for _ in 0..20 {
            let mut bytes = bytes.clone();
            let cut = rng.below(bits as u64 + 1) as usize;
            let flip = rng.chance(0.7);
            if let (true, Some(byte)) = (flip, bytes.get_mut(cut / 8)) {
                *byte ^= 1 << (cut % 8);
            }
            let length = if flip { bits } else { cut };
            let mut bodies = vec![7; 5];
            let read = schema.read(&mut BitReader::with_range(&bytes, 0, length), &mut bodies);
            assert!(bodies.len() <= 5 + schema.row_size() + bytes.len());
            match read {
                Ok(()) => {
                    // A writer can write everything that the reader accepted.
                    let mut again = BitWriter::new();
                    schema.write_row(&bodies[5..], &mut again).unwrap();
                }
                Err(_) => assert_eq!(bodies, [7; 5]),
            }
            assert!(read.is_err() || length == bits, "a cut message was taken");
        }
    }
}

#[test]
fn fields_in_groups_are_read_and_written_as_one_by_one() {
    let mut refused = [0; 2];
    for seed in 0..4000 {
        let rng = &mut Rng::seeded(seed);
        let schema = random_schema(rng);
        // Texts are of small bytes, and numbers of a small range are mostly too large.
        let mask = [0xFF, 0x0F, 0x41][rng.below(3) as usize];
        let bytes: Vec<u8> = (0..schema.max_bits().min(4000) / 8 + 2)
            .map(|_| rng.next_u64() as u8 & mask | 0x40 & mask)
            .collect();
        let (start, bits) = (rng.below(8) as usize, rng.below(bytes.len() as u64 * 8) as usize);
        let (mut grouped, mut single) =
            (BitReader::with_range(&bytes, start, bits), BitReader::with_range(&bytes, start, bits));
        let row = rng.below(3) as usize * 8;
        let mut bodies = [vec![0; row + schema.row_size()], vec![0; row + schema.row_size()]];
        let read = schema.read_at(&mut grouped, &mut bodies[0], 0, row);
        let each = |field: &Field| field.read_cell(&mut single, &mut bodies[1], 0, row);
        assert_eq!(schema.fields().iter().try_for_each(each), read, "seed {seed}");
        assert_eq!(grouped.position(), single.position(), "seed {seed}");
        if read.is_ok() {
            assert_eq!(bodies[0], bodies[1], "seed {seed}");
        }
        refused[0] += usize::from(read.is_err());

        // Rows of any bytes, some too short.
        let body: Vec<u8> = (0..schema.row_size() * 2).map(|_| rng.next_u64() as u8 & mask).collect();
        let body = if rng.chance(0.1) { &body[..rng.below(body.len() as u64 + 1) as usize] } else { &body };
        let (mut grouped, mut single) = (BitWriter::new(), BitWriter::new());
        let written = schema.write_at(body, 0, &mut grouped);
        let mut each =
            |(i, field): (usize, &Field)| field.write_cell(body, 0, &mut single).map_err(|error| (i, error));
        assert_eq!(
            format!("{written:?}"),
            format!("{:?}", schema.fields().iter().enumerate().try_for_each(&mut each))
        );
        assert_eq!(grouped.as_bytes(), single.as_bytes(), "seed {seed}");
        refused[1] += usize::from(written.is_err());
    }
    assert!(refused.iter().all(|refused| (400..3600).contains(refused)), "{refused:?}");
}

#[test]
fn rows_of_other_origin_are_doubted() {
    for seed in 0..300 {
        let rng = &mut Rng::seeded(seed);
        let schema = random_schema(rng);
        let body: Vec<u8> = (0..rng.below(200)).map(|_| rng.next_u64() as u8).collect();
        let written = schema.write_row(&body, &mut BitWriter::new());
        assert!(body.len() >= schema.row_size() || written.is_err() || schema.fields().is_empty());
    }
    let schema = Schema::new([("hp", Kind::Ranged { lo: 0, hi: 100 })]).unwrap();
    let refused = schema.write_row(&[101], &mut BitWriter::new());
    assert_eq!(refused, Err((0, ValueError::OutOfRange { value: 101, lo: 0, hi: 100 })));
    assert_eq!(schema.write_row(&[], &mut BitWriter::new()), Err((0, ValueError::Row)));
}

fn column(field: &Field) -> Column {
    match field.node() {
        Node::Leaf(leaf) => leaf.column(),
        node => panic!("{node:?} is made of parts"),
    }
}

#[test]
fn a_row_is_laid_out_like_a_c_struct() {
    let schema = Schema::new([
        ("alive", Kind::Bool),
        ("x", Kind::Quantized { lo: 0.0, hi: 1.0, resolution: 0.1 }),
        ("hp", Kind::Ranged { lo: -1, hi: 100 }),
        ("name", Kind::Text { max_bytes: 16 }),
        ("tick", Kind::Bits { bits: 33 }),
        ("id", Kind::Uint128),
        ("team", Kind::Bits { bits: 2 }),
    ])
    .unwrap();
    let layout: Vec<_> = schema.fields().iter().map(|f| (f.offset(), column(f).dtype())).collect();
    let expected = [(0, "?"), (4, "<f4"), (8, "i1"), (12, "(2,)<u4"), (24, "<u8"), (32, "V16"), (48, "u1")];
    assert_eq!(layout, expected.map(|(offset, dtype)| (offset, dtype.into())));
    assert_eq!((schema.row_size(), column(&schema.fields()[3])), (56, Column::Text));
    let fixed = 1 + 4 + 7 + 5 + 33 + 128 + 2;
    assert_eq!((schema.min_bits(), schema.max_bits()), (fixed, fixed + 7 + 16 * 8));
}

#[test]
fn values_outside_their_bounds_are_refused_with_the_bound() {
    let refusal = |kind: Kind, value: Value<'_>| {
        let schema = Schema::new([("f", kind)]).unwrap();
        let mut writer = BitWriter::new();
        let error = schema.fields()[0].write(value, &mut writer).unwrap_err();
        assert_eq!(writer.bit_len(), 0, "nothing is written");
        error.to_string()
    };
    let six = Kind::Bits { bits: 6 };
    assert_eq!(refusal(six.clone(), Value::Int(70)), "value must be 0 to 63, not 70");
    assert_eq!(refusal(six.clone(), Value::Int(-1)), "value must be 0 to 63, not -1");
    assert_eq!(refusal(six.clone(), Value::Bool(true)), "value must be an integer, not a boolean");
    assert_eq!(
        refusal(six, Value::Uint128(u128::MAX)),
        "value must be at most 63, not 340282366920938463463374607431768211455"
    );
    let all = Kind::Ranged { lo: i64::MIN.into(), hi: i64::MAX.into() };
    let above = Value::Uint(1 << 63);
    assert_eq!(
        refusal(all, above),
        "value must be -9223372036854775808 to 9223372036854775807, not 9223372036854775808"
    );
    assert_eq!(
        refusal(Kind::Bits { bits: 64 }, Value::Int(-1)),
        "value must be 0 to 18446744073709551615, not -1"
    );
    assert_eq!(
        refusal(Kind::Uint128, Value::Int(-1)),
        "value must be 0 to 340282366920938463463374607431768211455, not -1"
    );
    let steps = Kind::Quantized { lo: 0.0, hi: 1.0, resolution: 0.1 };
    assert_eq!(refusal(steps.clone(), Value::Float(f64::NAN)), "value must be a finite number, not NaN");
    assert_eq!(refusal(steps, Value::Float(f64::INFINITY)), "value must be a finite number, not inf");
    let fixed = Kind::Fixed { fraction_bits: 4, lo: -1, hi: 1 };
    assert_eq!(refusal(fixed, Value::Float(1.5)), "value must be -1 to 1, not 1.5");
    assert!(refusal(Kind::Float, Value::Float(1e39)).starts_with("value must be -3.4028"));
    assert_eq!(refusal(Kind::Float, Value::Text("1")), "value must be a number, not a text");
    let text = Kind::Text { max_bytes: 3 };
    assert_eq!(refusal(text.clone(), Value::Text("ß語")), "value must be at most 3 bytes, not 5");
    assert_eq!(refusal(text, Value::Text("a\0")), "value must be text without NUL, and byte 1 is NUL");
    let wide = Kind::WideText { max_units: 1 };
    assert_eq!(refusal(wide, Value::Text("🎲")), "value must be at most 1 UTF-16 units, not 2");
    let data = Kind::Data { max_bytes: 1 };
    assert_eq!(refusal(data, Value::Data(&[0; 2])), "value must be at most 1 bytes, not 2");
}

#[test]
fn parameters_that_make_no_sense_are_refused_by_field() {
    let refusal = |kind| Schema::new([("f", kind)]).unwrap_err().to_string();
    assert_eq!(refusal(Kind::Bits { bits: 65 }), "field \"f\": the width must be 1 to 64 bits, not 65");
    assert_eq!(refusal(Kind::Bits { bits: 0 }), "field \"f\": the width must be 1 to 64 bits, not 0");
    let empty = Kind::Ranged { lo: 1, hi: 0 };
    assert_eq!(refusal(empty), "field \"f\": low must be at most high (0), not 1");
    let long = Kind::Text { max_bytes: MAX_LENGTH + 1 };
    assert_eq!(refusal(long), "field \"f\": the maximum length must be at most 65535, not 65536");
    let fine = Kind::Fixed { fraction_bits: 16, lo: 0, hi: 1 << 38 };
    assert!(refusal(fine).contains("at most 53 bits"));
    let twice = Schema::new([("f", Kind::Bool), ("f", Kind::Bool)]).unwrap_err();
    assert_eq!(twice, SchemaError::Duplicate { field: "f".to_owned() });
    let many = (0..=MAX_FIELDS).map(|i| (i.to_string(), Kind::Bool));
    assert_eq!(Schema::new(many).unwrap_err(), SchemaError::TooManyFields);
}

#[test]
fn a_packet_too_short_for_the_message_costs_no_row() {
    let schema = Schema::new((0..1000).map(|i| (i.to_string(), Kind::Uint128))).unwrap();
    let mut out = Vec::new();
    let refused = schema.read(&mut BitReader::new(&[0; 100]), &mut out);
    assert_eq!(refused, Err(ReadError::PastEnd { needed: 128_000, remaining: 800 }));
    assert_eq!(out.capacity(), 0);
}

#[test]
fn a_signalling_nan_survives_the_row() {
    let schema = Schema::new([("f", Kind::Float)]).unwrap();
    let mut body = Vec::new();
    let bytes = 0x7F80_0001u32.to_le_bytes();
    schema.read(&mut BitReader::new(&bytes), &mut body).unwrap();
    let mut writer = BitWriter::new();
    schema.write_row(&body, &mut writer).unwrap();
    assert_eq!(writer.as_bytes(), bytes);
}

#[test]
fn the_bytes_of_our_own_kinds_are_pinned() {
    let bytes = |kind: Kind, value: Value<'_>| {
        let schema = Schema::new([("f", kind)]).unwrap();
        let mut writer = BitWriter::new();
        schema.fields()[0].write(value, &mut writer).unwrap();
        let message = writer.encoded();
        assert!(message.bits() <= schema.max_bits());
        let mut body = Vec::new();
        schema.read(&mut BitReader::with_range(message.bytes(), 0, message.bits()), &mut body).unwrap();
        hex::encode(message.bytes())
    };
    let (lo, hi, resolution) = (-2048.0, 2047.0, 1.0 / 512.0);
    let angle = Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.1 };
    assert_eq!(bytes(angle, Value::Float(-90.0)), "8c0a");
    let vector = Kind::Vector { axes: 3, lo, hi, resolution };
    assert_eq!(bytes(vector, Value::Floats(&[0.0, 10.5, -3.25])), "000010a00202e63f");
    let direction = Kind::Direction { bits: 12 };
    assert_eq!(bytes(direction.clone(), Value::Floats(&[1.0, 2.0, 2.0])), "9829b3");
    assert_eq!(bytes(direction, Value::Floats(&[1.0, -2.0, -2.0])), "cb9c19");
    let turned = Value::Floats(&[0.1, -0.9, 0.3, 0.2]);
    assert_eq!(bytes(Kind::Rotation { bits: 9 }, turned), "6983540b");
    assert_eq!(bytes(Kind::SignedRotation, turned), "218dcf0964a700");
    let transform = Kind::Transform { lo, hi, resolution, bits: 9 };
    let moved = [1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8, 2.0, 2.0, 2.0];
    assert_eq!(bytes(transform, Value::Floats(&moved)), "0004200001043080ff77fddf00000040");
}

#[test]
fn the_description_is_pinned() {
    let schema = Schema::new([
        ("a", Kind::Bool),
        ("größe", Kind::Bits { bits: 13 }),
        ("c", Kind::Ranged { lo: -5, hi: i128::MAX }),
        ("d", Kind::Uint128),
        ("e", Kind::Float),
        ("f", Kind::Double),
        ("g", Kind::Quantized { lo: -1.0, hi: 1.0, resolution: 0.01 }),
        ("h", Kind::Fixed { fraction_bits: 8, lo: -3, hi: 3 }),
        ("i", Kind::Text { max_bytes: 5 }),
        ("j", Kind::Data { max_bytes: 6 }),
        ("k", Kind::WideText { max_units: 7 }),
        ("l", Kind::Enum { members: vec![("IDLE".into(), -1), ("ON".into(), 3)] }),
        ("m", Kind::Flags { names: vec!["fire".into(), "up".into()] }),
        ("n", Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.1 }),
        ("o", Kind::Vector { axes: 2, lo: -1.0, hi: 1.0, resolution: 0.5 }),
        ("p", Kind::Direction { bits: 12 }),
        ("q", Kind::Rotation { bits: 9 }),
        ("r", Kind::SignedRotation),
        ("s", Kind::Transform { lo: -1.0, hi: 1.0, resolution: 0.5, bits: 9 }),
        ("t", Kind::Common { item: Box::new(Kind::Bits { bits: 8 }), words: vec![255, 0] }),
        ("u", Kind::Optional(Box::new(Kind::Float))),
        ("v", Kind::List { max: 9, item: Box::new(Kind::Bool) }),
        ("w", Kind::Sparse { slots: 64, item: Box::new(Kind::Bool) }),
        ("x", Kind::Nested { fields: vec![("y".into(), Kind::Bool), ("zz".into(), Kind::Float)] }),
        ("y", Kind::Set { max: 9, item: Box::new(Kind::Bool) }),
        ("z", Kind::Map { max: 9, key: Box::new(Kind::Bool), item: Box::new(Kind::Float) }),
        (
            "0",
            Kind::Union {
                variants: ["A", "Bb"].map(|name| (name.into(), Kind::Nested { fields: Vec::new() })).into(),
            },
        ),
    ])
    .unwrap();
    let expected = "1:a bool\n7:größe bits(13)\n\
         1:c ranged(-5,170141183460469231731687303715884105727)\n1:d uint128\n1:e float\n1:f double\n\
         1:g quantized(bf800000,3f800000,3c23d70a)\n1:h fixed(8,-3,3)\n1:i text(5)\n1:j data(6)\n\
         1:k wide(7)\n\
         1:l enum(4:IDLE=-1,2:ON=3)\n1:m flags(4:fire,2:up)\n\
         1:n angle(0000000000000000,4076800000000000,3599)\n\
         1:o vector(2,bff0000000000000,3ff0000000000000,4)\n1:p direction(12)\n1:q rotation(9)\n\
         1:r rotation\n1:s transform(bff0000000000000,3ff0000000000000,4,9)\n\
         1:t common(bits(8),ff,0)\n1:u optional(float)\n1:v list(9,bool)\n1:w sparse(64,bool)\n\
         1:x message(1:y bool,2:zz float)\n\
         1:y set(9,bool)\n1:z map(9,bool,float)\n1:0 union(1:A message(),2:Bb message())\n";
    assert_eq!(schema.describe(), expected);
}
