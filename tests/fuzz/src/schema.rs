//! Any schema over any bytes: a message that is read is written again, and never larger than its schema says.

use tickwire::wire::{BitReader, BitWriter, Kind, Measure, Schema};

use super::input::Input;

/// Says whether there was a schema and a message of it in the bytes.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let Some((schema, exact)) = schema(&mut input) else { return false };
    assert!(!schema.describe().contains('\0'));
    let bytes = input.rest();
    let mut reader = BitReader::new(bytes);
    let mut body = vec![9];
    if schema.read(&mut reader, &mut body).is_err() {
        assert_eq!(body, [9]);
        return false;
    }
    assert!(body.len() <= 1 + schema.row_size() + bytes.len() + schema.max_tail_bytes());
    assert!((schema.min_bits()..=schema.max_bits()).contains(&reader.position()));
    let mut writer = BitWriter::new();
    schema.write_row(&body[1..], &mut writer).unwrap();
    assert!((schema.min_bits()..=schema.max_bits()).contains(&writer.bit_len()));
    let mut measure = Measure::new();
    schema.write_row(&body[1..], &mut measure).unwrap();
    assert!((writer.bit_len()..=schema.max_bits()).contains(&measure.bits_bound()));
    let (bits, written) = (writer.bit_len(), writer.into_bytes());
    let mut again = Vec::new();
    schema.read(&mut BitReader::new(&written), &mut again).unwrap();
    if exact {
        assert_eq!((bits, &again[..]), (reader.position(), &body[1..]));
    }
    true
}

/// A schema, and whether its fields are read and written to the bit: near a tie, what is read of a rotation may be written by
/// other components; a float that is no number may become another one.
pub(super) fn schema(input: &mut Input<'_>) -> Option<(Schema, bool)> {
    let exact = input.below(4) > 0;
    let depth = input.below(4);
    let fields: Vec<_> = (0..input.below(6)).map(|n| (n.to_string(), field(input, depth, exact))).collect();
    // Not every kind can have items or common values.
    Some((Schema::new(fields).ok()?, exact))
}

/// A field that may be made of parts, `depth` deep at most; `exact` ones are read and written to the bit.
fn field(input: &mut Input<'_>, depth: u32, exact: bool) -> Kind {
    if depth == 0 || input.below(5) < 2 {
        return value(input, exact);
    }
    let item = |input: &mut Input<'_>| Box::new(field(input, depth - 1, exact));
    match input.below(8) {
        0 => Kind::Optional(item(input)),
        1 => Kind::List { max: input.below(9), item: item(input) },
        2 => Kind::Sparse { slots: 1 + input.below(200), item: item(input) },
        3 => {
            let count = input.below(4);
            let fields = (0..count).map(|n| (n.to_string(), field(input, depth - 1, exact)));
            Kind::Nested { fields: fields.collect() }
        }
        4 => Kind::Set { max: input.below(9), item: item(input) },
        5 => Kind::Map { max: input.below(9), key: item(input), item: item(input) },
        6 => {
            let count = 2 + input.below(3);
            let variants = (0..count).map(|n| (n.to_string(), field(input, depth - 1, exact)));
            Kind::Union { variants: variants.collect() }
        }
        _ => {
            let words = vec![input.below(4).into(), 4 + u128::from(input.below(4))];
            Kind::Common { item: Box::new(value(input, exact)), words }
        }
    }
}

fn value(input: &mut Input<'_>, exact: bool) -> Kind {
    let resolution = [0.5, 0.1, 0.001][input.below(3) as usize];
    let bits = 4 + input.below(13);
    match input.below(if exact { 6 } else { 11 }) {
        0 => {
            let mut value = i64::from(input.below(9)) - 5;
            let members = (0..1 + input.below(9)).map(|n| {
                value += 1 + i64::from(input.below(3));
                (n.to_string(), value)
            });
            Kind::Enum { members: members.collect() }
        }
        1 => Kind::Flags { names: (0..1 + input.below(64)).map(|n| n.to_string()).collect() },
        2 => Kind::Angle { lo: -180.0, hi: 180.0, resolution },
        3 => Kind::Vector { axes: 2 + input.below(2), lo: -3.3, hi: 7.0, resolution },
        4 | 5 => simple(input),
        6 => Kind::Direction { bits },
        7 => Kind::Rotation { bits },
        8 => Kind::SignedRotation,
        9 => Kind::Float,
        _ => Kind::Transform { lo: -100.0, hi: 100.0, resolution, bits },
    }
}

fn simple(input: &mut Input<'_>) -> Kind {
    let kind = input.below(11);
    let mut bound = || input.u64() as i64 >> input.below(64);
    let (a, b) = (bound(), bound());
    let length = (u32::from(input.u16()) % 1024) >> input.below(10);
    match kind {
        0 => Kind::Bool,
        1 => Kind::Bits { bits: 1 + input.below(64) },
        2 => Kind::Ranged { lo: a.min(b).into(), hi: a.max(b).into() },
        3 => {
            let (a, b) = (i128::from(a) << input.below(64), i128::from(b) << input.below(64));
            Kind::Ranged { lo: a.min(b), hi: a.max(b) }
        }
        4 => Kind::Uint128,
        5 => Kind::Double,
        6 => Kind::Quantized { lo: -10.0, hi: 10.0, resolution: 0.01 },
        7 => Kind::Fixed { fraction_bits: input.below(16), lo: -1000, hi: 1000 },
        8 => Kind::Text { max_bytes: length },
        9 => Kind::Data { max_bytes: length },
        _ => Kind::WideText { max_units: length },
    }
}
