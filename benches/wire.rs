//! The bitstream and schemas: the cost of a value, a message and a placement.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tickwire::rng::Rng;
use tickwire::wire::{BitReader, BitSink, BitWriter, Field, Kind, Properties, Schema, Value};

/// Values an iteration writes or reads; the figures are per value.
const VALUES: u64 = 1000;

fn bits(c: &mut Criterion) {
    for n in [1, 8, 13, 32, 64] {
        let values: Vec<u64> =
            (0..VALUES).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - n)).collect();
        let mut writer = BitWriter::new();
        values.iter().for_each(|v| writer.bits(*v, n));
        let bytes = writer.as_bytes().to_vec();

        let mut group = c.benchmark_group("wire");
        group.throughput(Throughput::Elements(VALUES));
        group.bench_function(format!("bits_write/{n}"), |b| {
            b.iter(|| {
                writer.clear();
                // A width the compiler does not know, as in a schema.
                let n = black_box(n);
                values.iter().for_each(|v| writer.bits(*v, n));
                black_box(writer.bit_len())
            });
        });
        group.bench_function(format!("bits_read/{n}"), |b| {
            b.iter(|| {
                let mut reader = BitReader::new(black_box(&bytes));
                let n = black_box(n);
                (0..VALUES).fold(0, |sum: u64, _| sum.wrapping_add(reader.bits(n).unwrap_or(0)))
            });
        });
    }
}

/// Player input: 5 fields, 49 bits.
fn small() -> (Schema, Vec<Value<'static>>) {
    let schema = Schema::new([
        ("tick", Kind::Bits { bits: 16 }),
        ("buttons", Kind::Bits { bits: 8 }),
        ("aim", Kind::Quantized { lo: -3.15, hi: 3.15, resolution: 0.001 }),
        ("weapon", Kind::Ranged { lo: 0, hi: 9 }),
        ("move", Kind::Ranged { lo: -100, hi: 100 }),
    ]);
    let values = [Value::Uint(51_234), Value::Uint(5), Value::Float(1.25), Value::Int(7), Value::Int(-42)];
    (schema.expect("the fields are sound"), values.into())
}

/// A full state: 60 fields, six of them texts.
fn large() -> (Schema, Vec<Value<'static>>) {
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    for i in 0..6 {
        for (name, kind, value) in [
            ("alive", Kind::Bool, Value::Bool(true)),
            ("id", Kind::Bits { bits: 32 }, Value::Uint(123_456)),
            ("score", Kind::Ranged { lo: -1000, hi: 100_000 }, Value::Int(-7)),
            ("x", Kind::Quantized { lo: -500.0, hi: 500.0, resolution: 0.01 }, Value::Float(12.5)),
            ("y", Kind::Quantized { lo: -500.0, hi: 500.0, resolution: 0.01 }, Value::Float(-99.75)),
            ("speed", Kind::Float, Value::Float(3.5)),
            ("heat", Kind::Fixed { fraction_bits: 8, lo: 0, hi: 100 }, Value::Float(36.6)),
            ("team", Kind::Bits { bits: 3 }, Value::Int(5)),
            ("time", Kind::Double, Value::Float(1234.5678)),
            ("name", Kind::Text { max_bytes: 31 }, Value::Text("A name of ordinary size")),
        ] {
            fields.push((format!("{name}{i}"), kind));
            values.push(value);
        }
    }
    (Schema::new(fields).expect("the fields are sound"), values)
}

fn write(fields: &[Field], values: &[Value<'_>], writer: &mut BitWriter) {
    for (field, value) in fields.iter().zip(values) {
        field.write(*value, writer).expect("the value fits");
    }
}

fn messages(c: &mut Criterion) {
    for (name, (schema, values)) in [("small", small()), ("large", large())] {
        let mut writer = BitWriter::new();
        write(schema.fields(), &values, &mut writer);
        let message = writer.encoded();
        let mut body = Vec::new();
        schema.read(&mut BitReader::new(message.bytes()), &mut body).expect("it was just written");

        let mut group = c.benchmark_group("wire");
        group.bench_function(format!("encode/{name}"), |b| {
            b.iter(|| {
                writer.clear();
                write(schema.fields(), black_box(&values), &mut writer);
                black_box(writer.bit_len())
            });
        });
        group.bench_function(format!("encode_row/{name}"), |b| {
            b.iter(|| {
                writer.clear();
                black_box(schema.write_row(black_box(&body), &mut writer))
            });
        });
        group.bench_function(format!("decode/{name}"), |b| {
            let mut out = Vec::new();
            b.iter(|| {
                out.clear();
                black_box(schema.read(&mut BitReader::new(black_box(message.bytes())), &mut out))
            });
        });
        for phase in [0, 3] {
            group.throughput(Throughput::Bytes(message.bytes().len() as u64));
            group.bench_function(format!("append_at_{phase}/{name}"), |b| {
                let start = || {
                    let mut writer = BitWriter::with_buffer(Vec::with_capacity(2048));
                    (0..phase).for_each(|_| writer.bool(true));
                    writer
                };
                b.iter_batched_ref(start, |writer| writer.append(black_box(&message)), BatchSize::SmallInput);
            });
        }
    }
}

/// Objects of a world.
const OBJECTS: usize = 10_000;

/// An object as `scenes` of replication have it: position to 1/512 m, rotation, health, flags.
fn object() -> Properties {
    let schema = Schema::new([
        ("position", Kind::Vector { axes: 3, lo: -2048.0, hi: 2047.0, resolution: 1.0 / 512.0 }),
        ("rotation", Kind::Rotation { bits: 9 }),
        ("health", Kind::Ranged { lo: 0, hi: 1000 }),
        ("flags", Kind::Flags { names: ["a", "b", "c", "d", "e", "f", "g", "h"].map(String::from).into() }),
    ]);
    Properties::new(schema.expect("the fields are sound")).expect("they are few")
}

/// The cells of a property of all objects, one behind the other, at a tick: each has moved a little since the one before.
fn cells(property: &str, tick: u64) -> Vec<u8> {
    let mut rng = Rng::seeded(1);
    let mut drift = |size: f64| (rng.unit() - 0.5) * 2.0 * size;
    (0..OBJECTS)
        .flat_map(|_| match property {
            "position" => (0..3)
                .map(|_| drift(1000.0) + tick as f64 * drift(0.3))
                .flat_map(f64::to_le_bytes)
                .collect::<Vec<u8>>(),
            "rotation" => {
                let q: [f64; 4] = core::array::from_fn(|_| drift(1.0) + tick as f64 * drift(0.02));
                let length = q.iter().map(|c| c * c).sum::<f64>().sqrt();
                q.into_iter().flat_map(|c| ((c / length) as f32).to_le_bytes()).collect()
            }
            "health" => ((drift(1.0) * 500.0 + 500.0) as u16).to_le_bytes().into(),
            _ => vec![(drift(1.0) * 128.0) as u8],
        })
        .collect()
}

/// What is done with a property of all objects in each tick: cells to words, and for
/// clients words as they are, and against a baseline.
fn words(c: &mut Criterion) {
    let properties = object();
    let mut group = c.benchmark_group("words");
    group.throughput(Throughput::Elements(OBJECTS as u64));
    for property in properties.each() {
        let (name, count) = (property.field().name(), property.words().len());
        let size = property.field().node().size();
        let [before, now] = [3, 4].map(|tick| {
            let (cells, mut words) = (cells(name, tick), vec![0; OBJECTS * count]);
            property.quantize_column(&cells, size, &mut words).expect("the values are in their bounds");
            (cells, words)
        });
        let mut words = vec![0; OBJECTS * count];
        group.bench_function(format!("quantize/{name}"), |b| {
            b.iter(|| property.quantize_column(black_box(&now.0), size, &mut words));
        });
        let mut restored = vec![0; OBJECTS * size];
        group.bench_function(format!("restore/{name}"), |b| {
            b.iter(|| property.restore_column(black_box(&now.1), &mut restored, size));
        });
        let mut writer = BitWriter::with_buffer(Vec::with_capacity(1 << 20));
        group.bench_function(format!("write/{name}"), |b| {
            b.iter(|| {
                writer.clear();
                now.1.chunks_exact(count).for_each(|words| property.write(black_box(words), &mut writer));
            });
        });
        let write_deltas = |writer: &mut BitWriter| {
            writer.clear();
            for (words, base) in now.1.chunks_exact(count).zip(before.1.chunks_exact(count)) {
                property.write_delta(black_box(words), base, writer);
            }
        };
        group.bench_function(format!("write_delta/{name}"), |b| b.iter(|| write_deltas(&mut writer)));
        write_deltas(&mut writer);
        let bytes = writer.as_bytes().to_vec();
        group.bench_function(format!("read_delta/{name}"), |b| {
            b.iter(|| {
                let mut reader = BitReader::new(black_box(&bytes));
                for (words, base) in words.chunks_exact_mut(count).zip(before.1.chunks_exact(count)) {
                    property.read_delta(base, &mut reader, words).expect("it was just written");
                }
            });
        });
    }
    // Rows as structs, each with all fields.
    let size = properties.schema().row_size();
    let mut rows = vec![0; OBJECTS * size];
    for property in properties.each() {
        let (cells, cell) = (cells(property.field().name(), 4), property.field().node().size());
        for (row, cells) in rows.chunks_exact_mut(size).zip(cells.chunks_exact(cell)) {
            row[property.field().offset()..][..cell].copy_from_slice(cells);
        }
    }
    let mut words = vec![0; OBJECTS * properties.word_count()];
    group.bench_function("quantize/all_in_rows", |b| {
        b.iter(|| {
            for (i, property) in properties.each().iter().enumerate() {
                let place =
                    &mut words[OBJECTS * properties.word_start(i)..][..OBJECTS * property.words().len()];
                let offset = property.field().offset();
                property
                    .quantize_column(black_box(&rows[offset..]), size, place)
                    .expect("they are in bounds");
            }
        });
    });
}

criterion_group!(benches, bits, messages, words);
criterion_main!(benches);
