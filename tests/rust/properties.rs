//! Fields by mask and against a baseline: every kind of field there and back, at seeded random. `TICKWIRE_FUZZ` multiplies
//! the rounds.

use tickwire::rng::{Entropy, Rng};
use tickwire::wire::{
    BitReader, BitSink, BitWriter, Kind, MAX_PROPERTIES, Metric, Properties, ReadError, Schema, SchemaError,
    ValueError,
};

use crate::fuzz::rounds;
use crate::fuzz_targets::words;

#[test]
fn any_schema_is_read_as_it_was_written_by_mask_and_against_a_baseline() {
    let mut rng = Rng::seeded(20);
    let mut reached = 0;
    for _ in 0..rounds(60_000) {
        let mut bytes = vec![0; 100 + rng.below(500) as usize];
        rng.fill(&mut bytes);
        // Bytes that are mostly low: small numbers of parts, and text.
        let low = rng.below(60) as usize;
        bytes.iter_mut().skip(low).for_each(|byte| *byte &= 0x37);
        reached += u32::from(words::run(&bytes));
    }
    assert!(reached > 6_000, "{reached} had a schema and two messages");
}

/// Every kind of field, and how many words it has.
fn every_kind() -> Vec<(Kind, usize)> {
    let byte = || Box::new(Kind::Bits { bits: 8 });
    let text = || Kind::Text { max_bytes: 9 };
    let fields = |kind: Kind| vec![("a".to_owned(), Kind::Bits { bits: 5 }), ("b".to_owned(), kind)];
    vec![
        (Kind::Bool, 1),
        (Kind::Bits { bits: 13 }, 1),
        (Kind::Ranged { lo: -5, hi: 90 }, 1),
        (Kind::Ranged { lo: i64::MIN.into(), hi: i64::MAX.into() }, 1),
        (Kind::Ranged { lo: 0, hi: 1 << 80 }, 0),
        (Kind::Uint128, 0),
        (Kind::Float, 1),
        (Kind::Double, 1),
        (Kind::Quantized { lo: -3.15, hi: 3.15, resolution: 0.001 }, 1),
        (Kind::Fixed { fraction_bits: 8, lo: -100, hi: 100 }, 1),
        (text(), 0),
        (Kind::Data { max_bytes: 9 }, 0),
        (Kind::Raw { bytes: 3 }, 0),
        (Kind::WideText { max_units: 4 }, 0),
        (Kind::Enum { members: vec![("A".into(), -1), ("B".into(), 7)] }, 1),
        (Kind::Flags { names: ["a", "b", "c"].map(String::from).into() }, 1),
        (Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.5 }, 1),
        (Kind::Vector { axes: 2, lo: -9.0, hi: 9.0, resolution: 0.01 }, 2),
        (Kind::Vector { axes: 3, lo: -9.0, hi: 9.0, resolution: 0.01 }, 3),
        (Kind::Direction { bits: 12 }, 2),
        (Kind::Rotation { bits: 9 }, 4),
        (Kind::SignedRotation, 4),
        (Kind::Transform { lo: -9.0, hi: 9.0, resolution: 0.5, bits: 9 }, 10),
        (Kind::Common { item: byte(), words: vec![0, 255] }, 1),
        (Kind::Optional(byte()), 2),
        (Kind::Optional(Box::new(text())), 0),
        (Kind::List { max: 3, item: byte() }, 0),
        (Kind::Sparse { slots: 3, item: byte() }, 0),
        (Kind::Nested { fields: fields(Kind::Float) }, 2),
        (Kind::Nested { fields: fields(text()) }, 0),
    ]
}

#[test]
fn every_kind_of_field_goes_there_and_back_by_mask_and_by_words() {
    let mut rng = Rng::seeded(3);
    let kinds = every_kind();
    let schema =
        Schema::new((0..).map(|n: u32| n.to_string()).zip(kinds.iter().map(|(kind, _)| kind.clone())));
    let properties = Properties::new(schema.unwrap()).unwrap();
    for (property, (kind, count)) in properties.each().iter().zip(&kinds) {
        assert_eq!(property.words().len(), *count, "{kind}");
    }
    let some: u64 = (0..).zip(&kinds).map(|(i, (_, count))| u64::from(*count > 0) << i).sum();
    assert_eq!((properties.with_words(), properties.all()), (some, (1 << kinds.len()) - 1));
    let of_each: Vec<Properties> = kinds
        .iter()
        .map(|(kind, _)| Properties::new(Schema::new([("f", kind.clone())]).unwrap()).unwrap())
        .collect();
    for properties in of_each {
        let mut bodies = Vec::new();
        for _ in 0..4000 {
            let mut bytes = [0; 48];
            rng.fill(&mut bytes);
            let low = if rng.chance(0.5) { 0x3F } else { 0xFF };
            bytes.iter_mut().for_each(|byte| *byte &= low);
            let mut body = Vec::new();
            if bodies.len() < 40 && properties.schema().read(&mut BitReader::new(&bytes), &mut body).is_ok() {
                bodies.push(body);
            }
        }
        let kind = properties.schema().fields()[0].kind();
        assert!(bodies.len() >= 8, "{kind}: {}", bodies.len());
        for pair in bodies.windows(2) {
            words::round_trips(&properties, 1, false, [&pair[0], &pair[1]]);
            words::round_trips(&properties, 0, false, [&pair[0], &pair[1]]);
            words::columns(&properties, [&pair[0], &pair[1]]);
        }
    }
}

#[test]
fn a_mask_has_at_most_64_fields() {
    let of = |count: usize| {
        let fields = (0..count).map(|n| (n.to_string(), Kind::Bits { bits: 1 }));
        Properties::new(Schema::new(fields).unwrap())
    };
    let most = of(MAX_PROPERTIES).unwrap();
    assert_eq!(most.all(), u64::MAX);
    let error = of(MAX_PROPERTIES + 1).unwrap_err();
    assert_eq!(error, SchemaError::TooManyProperties { count: 65 });
    assert_eq!(error.to_string(), "there must be at most 64 properties, not 65: combine some into a message");
    let none = of(0).unwrap();
    assert_eq!(none.all(), 0);
}

#[test]
fn a_value_out_of_its_bounds_is_named_by_field_and_row() {
    let kind = Kind::Vector { axes: 3, lo: -9.0, hi: 9.0, resolution: 0.5 };
    let fields = [("health", Kind::Ranged { lo: 0, hi: 100 }), ("position", kind)];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let (size, offset) = (properties.schema().row_size(), properties.each()[1].field().offset());
    let mut rows = vec![0; 5 * size];
    rows[3 * size + offset + 8..][..8].copy_from_slice(&9.5f64.to_le_bytes());
    rows[4 * size] = 101;
    let far = ValueError::FloatOutOfRange { value: 9.5, lo: -9.0, hi: 9.0 };
    let mut words = vec![0; 15];
    assert_eq!(
        properties.each()[1].quantize_column(&rows[offset..], size, &mut words),
        Err((3, far.clone()))
    );
    let health = properties.each()[0].quantize_column(&rows, size, &mut words[..5]);
    assert_eq!(health, Err((4, ValueError::OutOfRange { value: 101, lo: 0, hi: 100 })));
    assert_eq!(properties.quantize(&rows[3 * size..], &mut words[..4]), Err((1, far)));
    // Not a number, and the infinities, wherever they are in a row.
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for axis in 0..3 {
            let mut cells = vec![0; 3 * 24];
            cells[24 + axis * 8..][..8].copy_from_slice(&value.to_le_bytes());
            let refused = properties.each()[1].quantize_column(&cells, 24, &mut words[..9]);
            assert!(matches!(refused, Err((1, ValueError::NotFinite { .. }))), "{refused:?}");
        }
    }
}

#[test]
fn a_column_on_a_circle_takes_every_number() {
    let angle = Kind::Angle { lo: -180.0, hi: 180.0, resolution: 0.25 };
    let properties = Properties::new(Schema::new([("heading", angle)]).unwrap()).unwrap();
    let cells = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let heading = &properties.each()[0];
    assert_eq!(heading.words()[0].metric(), Metric::Circle);
    let mut words = [0; 3];
    heading.quantize_column(&cells(&[-180.0, 0.0, 180.0]), 8, &mut words).unwrap();
    assert_eq!(words, [0, 720, 0]);
    heading.quantize_column(&cells(&[-180.0, 725.5, 540.0]), 8, &mut words).unwrap();
    assert_eq!(words, [0, 742, 0]);
    let refused = heading.quantize_column(&cells(&[0.0, f64::NAN, 0.0]), 8, &mut words);
    assert!(matches!(refused, Err((1, ValueError::NotFinite { .. }))));
}

#[test]
fn a_rotation_whose_largest_component_changed_does_not_go_on() {
    let properties = Properties::new(Schema::new([("r", Kind::Rotation { bits: 9 })]).unwrap()).unwrap();
    let mut words = [0; 4];
    properties.each()[0].extrapolate(&[3, 10, 20, 30], &[3, 12, 19, 30], 1, 2, &mut words);
    assert_eq!(words, [3, 16, 17, 30]);
    properties.each()[0].extrapolate(&[2, 10, 20, 30], &[3, 12, 19, 30], 1, 2, &mut words);
    assert_eq!(words, [3, 12, 19, 30]);
}

#[test]
fn a_mask_that_the_packet_has_no_room_for_costs_nothing() {
    let fields = (0..40).map(|n| (n.to_string(), Kind::Double));
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let mut out = Vec::new();
    let read = properties.read_fields(&mut BitReader::new(&[0; 100]), properties.all(), &mut out);
    assert!(matches!(read, Err(ReadError::PastEnd { .. })));
    assert_eq!(out.capacity(), 0);
    let mut writer = BitWriter::new();
    writer.bits(5, 64);
    properties.read_fields(&mut BitReader::new(writer.as_bytes()), 1 << 39, &mut out).unwrap();
    assert_eq!(out[39 * 8..], 5u64.to_le_bytes());
}
