//! Any schema by mask and against a baseline, over any bytes: what is written is read, by fields, by words and by
//! deltas, and what a peer sends stays within the schema's bounds.

use tickwire::wire::{BitReader, BitWriter, Measure, Properties};

use super::input::Input;
use super::schema::schema;

/// Says whether there was a schema and two messages of it in the bytes.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let Some((schema, exact)) = schema(&mut input) else { return false };
    let properties = Properties::new(schema).expect("at most five fields");
    let mask = u64::from(input.u8()) & properties.all();
    let bytes = input.rest();
    // Anything, against a baseline that is always one.
    let zeros = vec![0; properties.word_count()];
    for baseline in [None, Some(&zeros[..])] {
        hostile(&properties, mask, baseline, bytes);
    }

    let mut reader = BitReader::new(bytes);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let schema = properties.schema();
    if schema.read(&mut reader, &mut a).is_err() || schema.read(&mut reader, &mut b).is_err() {
        return false;
    }
    round_trips(&properties, mask, exact, [&a, &b]);
    round_trips(&properties, mask, exact, [&b, &b]);
    columns(&properties, [&a, &b]);
    let rest = reader.position() / 8;
    hostile(&properties, mask, Some(&words(&properties, &b)), &bytes[rest..]);
    true
}

fn words(properties: &Properties, body: &[u8]) -> Vec<u64> {
    let mut words = vec![u64::MAX; properties.word_count()];
    properties.quantize(body, &mut words).expect("what was read is in its bounds");
    check_ranges(properties, properties.all(), &words);
    words
}

fn check_ranges(properties: &Properties, mask: u64, words: &[u64]) {
    for (i, property) in properties.each().iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1) {
        let words = &words[properties.word_start(i)..];
        assert!(property.words().iter().zip(words).all(|(range, word)| *word <= range.last()));
    }
}

/// The written value, and its size in bits.
fn written(write: impl FnOnce(&mut BitWriter)) -> (Vec<u8>, usize) {
    let mut writer = BitWriter::new();
    write(&mut writer);
    let bits = writer.bit_len();
    (writer.into_bytes(), bits)
}

pub fn round_trips(properties: &Properties, mask: u64, exact: bool, [body, base]: [&[u8]; 2]) {
    let (schema, all) = (properties.schema(), properties.all());
    let (now, before) = (words(properties, body), words(properties, base));
    let message = written(|w| schema.write_row(body, w).unwrap());
    assert_eq!(written(|w| properties.write_fields(body, all, w).unwrap()), message);

    // By mask, from the body and from words.
    let whole = written(|w| properties.write_fields(body, mask, w).unwrap());
    assert_eq!(written(|w| properties.write_words(&now, None, body, mask, w).unwrap()), whole);
    let mut fields = vec![7];
    properties.read_fields(&mut BitReader::new(&whole.0), mask, &mut fields).unwrap();
    for (i, property) in properties.each().iter().enumerate().filter(|(i, _)| mask >> i & 1 == 0) {
        let at = 1 + property.field().offset();
        let cell = &fields[at..at + property.field().node().size()];
        assert!(cell.iter().all(|byte| *byte == 0), "field {i} isn't in the mask");
    }
    let expected = |i: usize, now: &[u64], before: &[u64]| {
        let range = properties.word_start(i)..properties.word_start(i) + properties.each()[i].words().len();
        if mask >> i & 1 == 1 { now[range].to_vec() } else { before[range].to_vec() }
    };
    let expected: Vec<u64> = (0..properties.each().len()).flat_map(|i| expected(i, &now, &before)).collect();
    for baseline in [None, Some(&before[..])] {
        let (bytes, bits) = written(|w| properties.write_words(&now, baseline, body, mask, w).unwrap());
        let mut measure = Measure::new();
        properties.write_words(&now, baseline, body, mask, &mut measure).unwrap();
        assert!(measure.bits_bound() >= bits);
        let (mut reader, mut read, mut out) = (BitReader::new(&bytes), before.clone(), vec![7]);
        properties.read_words(&mut reader, mask, baseline, &mut read, &mut out).unwrap();
        assert_eq!((reader.position(), &read, &out), (bits, &expected, &fields));
        let mut reader = BitReader::new(&bytes);
        properties.skip(&mut reader, mask, baseline.is_some()).unwrap();
        assert_eq!(reader.position(), bits);
        // A bit less is too few.
        if let Some(bits) = bits.checked_sub(1) {
            let mut out = vec![7];
            let mut reader = BitReader::with_range(&bytes, 0, bits);
            let read = properties.read_words(&mut reader, mask, baseline, &mut read, &mut out);
            assert_eq!((read.is_err(), &out[..]), (true, &[7][..]));
        }
    }
    // Words are what the wire makes of values: once more they are the same.
    let mut row = vec![0xFF; schema.row_size()];
    properties.restore(&now, &mut row);
    for (i, property) in properties.each().iter().enumerate().filter(|(_, property)| property.has_words()) {
        let words = &now[properties.word_start(i)..][..property.words().len()];
        let mut again = vec![0; words.len()];
        property.quantize(&row, 0, &mut again).unwrap();
        assert!(!exact || again == words);
        for (past, ahead) in [(0, 1), (1, 0), (1, 1), (3, 7), (u16::MAX, 1), (1, u16::MAX)] {
            let older = &before[properties.word_start(i)..];
            property.extrapolate(older, words, past, ahead, &mut again);
            assert!(property.words().iter().zip(&again).all(|(range, word)| *word <= range.last()));
        }
    }
}

/// Three rows as contiguous columns, and as they are in their rows.
pub fn columns(properties: &Properties, [a, b]: [&[u8]; 2]) {
    let size = properties.schema().row_size();
    let rows = [a, b, a].map(|body| &body[..size]);
    let each = rows.map(|row| words(properties, row));
    for (i, property) in properties.each().iter().enumerate().filter(|(_, property)| property.has_words()) {
        let (offset, cell) = (property.field().offset(), property.field().node().size());
        let count = property.words().len();
        let expected: Vec<u64> =
            each.iter().flat_map(|words| &words[properties.word_start(i)..][..count]).copied().collect();
        let in_rows = (rows.concat()[offset..].to_vec(), size);
        let alone = (rows.map(|row| &row[offset..offset + cell]).concat(), cell);
        for (cells, stride) in [in_rows, alone] {
            let mut found = vec![0; 3 * count];
            property.quantize_column(&cells, stride, &mut found).unwrap();
            assert_eq!(found, expected);
            if stride > 0 && cell > 0 {
                let mut more = vec![0; 4 * count];
                assert_eq!(property.quantize_column(&cells, stride, &mut more).unwrap_err().0, 3);
            }
            let mut restored = vec![0xFF; cells.len()];
            property.restore_column(&expected, &mut restored, stride);
            for row in 0..3 {
                let mut one = vec![0xFF; size];
                property.restore(&expected[row * count..][..count], &mut one);
                assert_eq!(restored[row * stride..][..cell], one[offset..offset + cell]);
            }
        }
    }
}

/// Bytes that nobody wrote, against a baseline.
fn hostile(properties: &Properties, mask: u64, baseline: Option<&[u64]>, bytes: &[u8]) {
    let (mut reader, mut skipped) = (BitReader::new(bytes), BitReader::new(bytes));
    let (mut words, mut out) = (vec![0; properties.word_count()], vec![7]);
    let read = properties.read_words(&mut reader, mask, baseline, &mut words, &mut out);
    let passed = properties.skip(&mut skipped, mask, baseline.is_some());
    if read.is_err() {
        assert_eq!(out, [7]);
        return;
    }
    assert_eq!((passed, skipped.position()), (Ok(()), reader.position()));
    let schema = properties.schema();
    assert!(out.len() <= 1 + schema.row_size() + bytes.len() + schema.max_tail_bytes());
    check_ranges(properties, mask, &words);
    // There is one form of each.
    let (mask, mut reader) = (mask & properties.with_words(), BitReader::new(bytes));
    if properties.read_words(&mut reader, mask, baseline, &mut words, &mut out).is_ok() {
        let (again, bits) = written(|w| properties.write_words(&words, baseline, &[], mask, w).unwrap());
        assert_eq!(bits, reader.position());
        let (mut a, mut b) = (BitReader::new(bytes), BitReader::with_range(&again, 0, bits));
        assert!((0..bits).all(|_| a.bool() == b.bool()));
    }
}
