//! Words of properties, whole and against a baseline, and objects by mask: `tests/vectors/words.json`, written and read.

use std::sync::LazyLock;

use serde_json::Value as Json;
use tickwire::wire::{
    BitReader, BitSink, BitWriter, Field, Kind, Metric, Properties, Property, Schema, Value,
};

static VECTORS: LazyLock<Json> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/words.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

fn position() -> Kind {
    Kind::Vector { axes: 3, lo: -2048.0, hi: 2047.0, resolution: 1.0 / 512.0 }
}

/// The kinds of the vectors' fields, in their order.
fn kinds() -> Vec<Kind> {
    let members = |names: &[(&str, i64)]| Kind::Enum {
        members: names.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
    };
    let hundred = Kind::Ranged { lo: 0, hi: 100 };
    vec![
        Kind::Bool,
        Kind::Bits { bits: 16 },
        Kind::Ranged { lo: -100, hi: 900 },
        Kind::Ranged { lo: 7, hi: 7 },
        Kind::Float,
        Kind::Double,
        Kind::Fixed { fraction_bits: 8, lo: -10, hi: 10 },
        members(&[("DOWN", -1), ("IDLE", 0), ("UP", 7)]),
        Kind::Flags { names: ["fire", "jump", "use"].map(String::from).into() },
        Kind::Angle { lo: -180.0, hi: 180.0, resolution: 0.25 },
        position(),
        Kind::Direction { bits: 12 },
        Kind::Rotation { bits: 9 },
        Kind::SignedRotation,
        Kind::Transform { lo: -100.0, hi: 100.0, resolution: 0.5, bits: 9 },
        Kind::Common { item: Box::new(hundred), words: vec![100] },
        Kind::Optional(Box::new(Kind::Ranged { lo: 0, hi: 1000 })),
        Kind::Nested {
            fields: vec![
                ("kind".into(), members(&[("a", 0), ("b", 1), ("c", 2)])),
                ("ammo".into(), Kind::Bits { bits: 8 }),
                ("on".into(), Kind::Bool),
            ],
        },
    ]
}

fn items(json: &Json) -> &[Json] {
    json.as_array().unwrap()
}

fn words(json: &Json) -> Vec<u64> {
    items(json).iter().map(|word| word.as_str().unwrap().parse().unwrap()).collect()
}

fn baseline(json: &Json) -> Option<Vec<u64>> {
    (!json.is_null()).then(|| words(json))
}

fn bytes(case: &Json) -> (Vec<u8>, usize) {
    (hex::decode(case["bytes"].as_str().unwrap()).unwrap(), case["bits"].as_u64().unwrap() as usize)
}

/// The one property of this name, among the vectors' fields.
fn property(name: &str) -> Properties {
    let at = items(&VECTORS["fields"]).iter().position(|field| field["name"] == name).unwrap();
    Properties::new(Schema::new([("value", kinds()[at].clone())]).unwrap()).unwrap()
}

fn written(write: impl FnOnce(&mut BitWriter)) -> (Vec<u8>, usize) {
    let mut writer = BitWriter::new();
    write(&mut writer);
    let bits = writer.bit_len();
    (writer.into_bytes(), bits)
}

#[test]
fn words_lie_in_the_ranges_that_the_vectors_say() {
    for (field, kind) in items(&VECTORS["fields"]).iter().zip(kinds()) {
        assert_eq!(kind.to_string(), field["kind"].as_str().unwrap());
        let properties = property(field["name"].as_str().unwrap());
        let found = properties.each()[0].words();
        assert_eq!(found.len(), items(&field["words"]).len(), "{}", field["name"]);
        for (range, told) in found.iter().zip(items(&field["words"])) {
            let metric = match range.metric() {
                Metric::Line => "line",
                Metric::Circle => "circle",
                Metric::Float => "float",
                Metric::Choice => "choice",
            };
            assert_eq!(
                (range.last().to_string().as_str(), metric),
                (told[0].as_str().unwrap(), told[1].as_str().unwrap())
            );
        }
    }
    assert_eq!(items(&VECTORS["fields"]).len(), kinds().len());
}

#[test]
fn words_are_written_and_read_as_pinned() {
    for field in items(&VECTORS["fields"]) {
        let properties = property(field["name"].as_str().unwrap());
        let property = &properties.each()[0];
        for case in items(&field["cases"]) {
            let (told, base) = (words(&case["words"]), baseline(&case["baseline"]));
            let found = written(|w| match &base {
                Some(base) => property.write_delta(&told, base, w),
                None => property.write(&told, w),
            });
            assert_eq!(found, bytes(case), "{}: {case}", field["name"]);
            let mut reader = BitReader::with_range(&found.0, 0, found.1);
            let mut read = vec![0; told.len()];
            match &base {
                Some(base) => property.read_delta(base, &mut reader, &mut read).unwrap(),
                None => property.read(&mut reader, &mut read).unwrap(),
            }
            assert_eq!((read, reader.remaining_bits()), (told.clone(), 0), "{}: {case}", field["name"]);
            words_are_those_of_a_value(&properties, property, &told);
        }
    }
}

/// The value of words has these words, and written whole they are its bits in a message.
fn words_are_those_of_a_value(properties: &Properties, property: &Property, told: &[u64]) {
    let mut row = vec![0; properties.schema().row_size()];
    property.restore(told, &mut row);
    let mut again = vec![0; told.len()];
    property.quantize(&row, 0, &mut again).unwrap();
    let message = written(|w| properties.schema().write_row(&row, w).unwrap());
    assert_eq!(again, told);
    assert_eq!(message, written(|w| property.write(told, w)));
}

#[test]
fn residuals_of_no_word_are_refused() {
    for case in items(&VECTORS["refused"]) {
        let (properties, (bytes, bits)) = (property(case["name"].as_str().unwrap()), bytes(case));
        let base = words(&case["baseline"]);
        let mut read = vec![0; base.len()];
        let refused =
            properties.each()[0].read_delta(&base, &mut BitReader::with_range(&bytes, 0, bits), &mut read);
        assert!(refused.is_err(), "{}", case["why"]);
    }
}

#[test]
fn objects_are_written_and_read_by_mask_as_pinned() {
    let kinds = [position(), Kind::Text { max_bytes: 15 }, Kind::Ranged { lo: 0, hi: 1000 }, Kind::Bool];
    let schema = Schema::new(["position", "name", "health", "alive"].into_iter().zip(kinds)).unwrap();
    for (field, told) in schema.fields().iter().zip(items(&VECTORS["schema"])) {
        assert_eq!(
            (field.name(), field.kind().to_string().as_str()),
            (told[0].as_str().unwrap(), told[1].as_str().unwrap())
        );
    }
    let properties = Properties::new(schema).unwrap();
    let name: &Field = &properties.schema().fields()[1];
    for case in items(&VECTORS["masked"]) {
        let (told, base) = (words(&case["words"]), baseline(&case["baseline"]));
        let mask = case["mask"].as_u64().unwrap();
        // A body whose text is the object's name.
        let text = case["name"].as_str().unwrap();
        let mut body = vec![0; properties.schema().row_size()];
        let run = [body.len() as u32, text.len() as u32].map(u32::to_le_bytes);
        body[name.offset()..][..8].copy_from_slice(run.as_flattened());
        body.extend_from_slice(text.as_bytes());
        let found = written(|w| {
            w.bits(mask, properties.each().len() as u32);
            properties.write_words(&told, base.as_deref(), &body, mask, w).unwrap();
        });
        assert_eq!(found, bytes(case), "{case}");
        let mut reader = BitReader::with_range(&found.0, 0, found.1);
        assert_eq!(reader.bits(properties.each().len() as u32), Ok(mask));
        let mut skipped = reader.clone();
        let (mut read, mut out) = (vec![0; told.len()], Vec::new());
        properties.read_words(&mut reader, mask, base.as_deref(), &mut read, &mut out).unwrap();
        properties.skip(&mut skipped, mask, base.is_some()).unwrap();
        assert_eq!((reader.remaining_bits(), skipped.remaining_bits()), (0, 0));
        let field_of = [0, 0, 0, 2, 3];
        let expected = |(word, field): (&u64, usize)| if mask >> field & 1 == 1 { *word } else { 0 };
        assert!(told.iter().zip(field_of).map(expected).eq(read), "{case}");
        let text = if mask & 2 == 2 { text } else { "" };
        assert_eq!(name.load(&out), Value::Text(text));
    }
}
