//! The cost of a packet's bookkeeping: sequence buffers, headers, fragments.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tickwire::store::SequenceBuffer;
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::acks::RttSampling;
use tickwire::transport::header::Header;

fn sequence_buffer(c: &mut Criterion) {
    let mut buffer = SequenceBuffer::new(1024);
    let mut sequence = 0u64;
    c.bench_function("store/sequence_buffer_insert", |b| {
        b.iter(|| {
            sequence = sequence.wrapping_add(1);
            let _ = black_box(buffer.insert(sequence, sequence));
        });
    });
    (0..1024).for_each(|s| drop(buffer.insert(sequence + s, s)));
    let newest = buffer.next().wrapping_sub(1);
    let mut back = 0u64;
    c.bench_function("store/sequence_buffer_find", |b| {
        b.iter(|| {
            back = (back + 7) % 1024;
            black_box(buffer.get(black_box(newest.wrapping_sub(back)))).expect("within the window");
        });
    });
}

fn header(c: &mut Criterion) {
    let steady = Header { sequence: 200, ack: 100, ack_bits: u32::MAX };
    let worst = Header { sequence: 10_000, ack: 100, ack_bits: 0 };
    let mut out = Vec::with_capacity(Header::MAX_SIZE);
    for (name, header) in [("", steady), ("_worst", worst)] {
        c.bench_function(&format!("transport/header_write{name}"), |b| {
            b.iter(|| {
                out.clear();
                black_box(&header).write(&mut out);
                black_box(&out);
            });
        });
        c.bench_function(&format!("transport/header_read{name}"), |b| {
            b.iter(|| Header::read(black_box(&out)));
        });
    }
}

/// A packet that is sent, received, accepted, and answered by one with its ack.
fn round_trip(c: &mut Criterion) {
    for (name, bytes) in
        [("transport/round_trip_100_bytes", 100), ("transport/round_trip_256_fragments", 256 << 10)]
    {
        let mut ends = [(); 2].map(|()| AckEndpoint::new(AckEndpointConfig::large()).unwrap());
        let payloads = [vec![7; bytes], vec![7; 100]];
        let (mut datagram, mut acked) = (Vec::new(), Vec::new());
        c.bench_function(name, |b| {
            b.iter(|| {
                for (payload, [from, to]) in payloads.iter().zip([[0, 1], [1, 0]]) {
                    for piece in ends[from].send(Instant::ZERO, payload).unwrap().pieces() {
                        datagram.clear();
                        piece.write(&mut datagram);
                        if let Some(incoming) = ends[to].open(&datagram).unwrap() {
                            ends[to].accept(Instant::ZERO, incoming, RttSampling::EveryAck, &mut acked);
                        }
                    }
                }
                acked.clear();
            });
        });
    }
}

/// The cost of each tick per connection, and of reading the statistics.
fn estimates(c: &mut Criterion) {
    let mut ends = [(); 2].map(|()| AckEndpoint::new(AckEndpointConfig::large()).unwrap());
    let (mut datagram, mut acked) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    for tick in 0..2048 {
        now = Instant::from_millis(tick * 16);
        for [from, to] in [[0, 1], [1, 0]] {
            datagram.clear();
            ends[from].send(now, &[7; 100]).unwrap().pieces().for_each(|piece| piece.write(&mut datagram));
            let incoming = ends[to].open(&datagram).unwrap().unwrap();
            ends[to].accept(now, incoming, RttSampling::EveryAck, &mut acked);
        }
    }
    c.bench_function("transport/estimates_update", |b| {
        b.iter(|| {
            now += Duration::from_millis(16);
            ends[0].acks.update(black_box(now));
        });
    });
    c.bench_function("transport/statistics", |b| b.iter(|| ends[0].acks.stats()));
}

criterion_group!(benches, sequence_buffer, header, round_trip, estimates);
criterion_main!(benches);
