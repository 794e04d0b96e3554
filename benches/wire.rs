//! The bitstream and schemas: what a value, a message and a placement cost.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tickwire::wire::{BitReader, BitSink, BitWriter, Field, Kind, Schema, Value};

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

criterion_group!(benches, bits, messages);
criterion_main!(benches);
