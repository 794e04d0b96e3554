//! Arrays of messages: the cost of writing and reading a row.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tickwire::rng::Rng;
use tickwire::wire::{BitReader, BitWriter, Kind, Rows, Schema};

const ROWS: usize = 100;

/// An entity of a snapshot: 112 bits.
fn entity() -> Schema {
    Schema::new([
        ("id", Kind::Bits { bits: 16 }),
        ("position", Kind::Vector { axes: 3, lo: -2048.0, hi: 2047.0, resolution: 1.0 / 512.0 }),
        ("rotation", Kind::Rotation { bits: 9 }),
        ("flags", Kind::Flags { names: ["a", "b", "c", "d"].map(String::from).into() }),
    ])
    .expect("the fields are sound")
}

/// Player input.
fn six() -> Schema {
    Schema::new([
        ("id", Kind::Bits { bits: 32 }),
        ("x", Kind::Float),
        ("y", Kind::Float),
        ("z", Kind::Float),
        ("health", Kind::Ranged { lo: 0, hi: 100 }),
        ("alive", Kind::Bool),
    ])
    .expect("the fields are sound")
}

/// Bits that the schema reads: random ones, drawn again until they are.
fn message_bits(schema: &Schema) -> Vec<u8> {
    let mut rng = Rng::seeded(1);
    let mut writer = BitWriter::new();
    let mut rows = 0;
    while rows < ROWS {
        let bytes: Vec<u8> = (0..schema.max_bits().div_ceil(8)).map(|_| rng.next_u64() as u8).collect();
        if let Ok((read, arena)) = schema.read_all(&mut BitReader::new(&bytes), 1) {
            let arena_bytes = arena.len();
            let one = Rows::new([arena, read].concat(), arena_bytes, 1);
            schema.write_all(&one, &mut writer).expect("what was read can be written");
            rows += 1;
        }
    }
    writer.into_bytes()
}

fn rows(c: &mut Criterion) {
    let mut group = c.benchmark_group("rows");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, schema) in [("entity", entity()), ("six_fields", six())] {
        let bytes = message_bits(&schema);
        let (read, _) = schema.read_all(&mut BitReader::new(&bytes), ROWS).expect("they were written");
        let rows = Rows::new(read, 0, ROWS);
        let mut writer = BitWriter::new();
        group.bench_function(format!("write/{name}"), |b| {
            b.iter(|| {
                writer.clear();
                schema.write_all(black_box(&rows), &mut writer)
            });
        });
        group.bench_function(format!("read/{name}"), |b| {
            b.iter(|| schema.read_all(&mut BitReader::new(black_box(&bytes)), ROWS));
        });
    }
}

criterion_group!(benches, rows);
criterion_main!(benches);
