//! A game beside a chunk: what the chunk leaves of the line must be all that the game needs. Counts what should have
//! arrived, not only how soon the rest did.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::netsim::Conditions;
use tickwire::time::{Duration, Instant};
use tickwire::transport::chunks::{Assembly, BytesSource, ChunkEvent, MemorySink};
use tickwire::transport::{ChannelConfig, ChannelKind, SendOptions};

use crate::bulk_line::percentile;
use crate::pair::{Pair, blob, protocol_with};

const SEQUENCED: usize = 0;
const RELIABLE: usize = 1;
const CHUNK: usize = 32 << 20;

/// What became of a message of each kind a tick, in several games.
#[derive(Default)]
struct Played {
    sent: usize,
    sequenced: usize,
    /// Milliseconds; infinite for a message that never arrived.
    reliable: Vec<f64>,
}

fn line(mbit: u64, loss: f64) -> Conditions {
    let (rate, latency) = (mbit * 125_000, Duration::from_millis(25));
    Conditions::perfect().latency(latency, Duration::ZERO).rate(rate, rate / 20).loss(loss)
}

/// Plays until the chunk has arrived, `ticks` at most, and then on for a second in which nothing is sent.
fn play(conditions: Conditions, chunk: Option<usize>, ticks: usize, seed: u64, played: &mut Played) {
    let protocol = protocol_with(vec![
        ChannelConfig::new(ChannelKind::Sequenced { receive_queue: 1024 }),
        ChannelConfig::reliable_ordered(),
        ChannelConfig::new(ChannelKind::Chunks),
    ]);
    let mut pair = Pair::new(protocol, conditions, seed);
    if let Some(bytes) = chunk {
        let content = vec![seed as u8; bytes];
        let hash: [u8; 32] = Sha256::digest(&content).into();
        let source = Box::new(BytesSource(Arc::new(content)));
        pair.ends[0].send_chunk(pair.now, source, hash, "world", false).unwrap();
    }
    let (mut sent_at, mut latencies, mut sequenced) = (Vec::<Instant>::new(), Vec::new(), 0);
    let mut done = false;
    for tick in 0..ticks + 60 {
        if tick < ticks && !done {
            let number = sent_at.len() as u32;
            for (channel, bytes) in [(SEQUENCED, 195), (RELIABLE, 60)] {
                pair.ends[0].send(pair.now, channel, blob(number, bytes), SendOptions::default()).unwrap();
            }
            sent_at.push(pair.now);
        }
        pair.tick();
        while let Some(event) = pair.ends[1].chunks_mut().poll_event() {
            match event {
                ChunkEvent::Offered(offer) => {
                    let sink = Box::new(MemorySink::new(offer.size).unwrap());
                    assert!(pair.ends[1].chunks_mut().accept(offer.id, Assembly::new(&offer, sink)));
                }
                ChunkEvent::Received { .. } => done = true,
                other => panic!("{other:?}"),
            }
        }
        sequenced += pair.take(1, SEQUENCED).len();
        for number in pair.take(1, RELIABLE) {
            latencies.push((pair.now - sent_at[number as usize]).as_secs_f64() * 1e3);
        }
    }
    assert!(sent_at.len() > 60, "the chunk took {} ticks: too few to count", sent_at.len());
    latencies.resize(sent_at.len(), f64::INFINITY);
    played.sent += sent_at.len();
    played.sequenced += sequenced;
    played.reliable.append(&mut latencies);
}

#[test]
fn messages_never_pay_for_chunks() {
    for mbit in [8, 24, 100, 1_000] {
        for loss in [0.0, 0.02] {
            let (mut idle, mut beside) = (Played::default(), Played::default());
            for seed in 1..=4 {
                play(line(mbit, loss), None, 300, seed, &mut idle);
                play(line(mbit, loss), Some(CHUNK), 600, seed, &mut beside);
            }
            let share = beside.sequenced as f64 / beside.sent as f64;
            let [alone, p99] = [&idle, &beside].map(|played| percentile(&played.reliable, 99));
            let figures = format!(
                "{mbit} Mbit/s, {:.0} % loss: {:.1} % arrive; reliable p99 {p99:.0} ms, {alone:.0} alone",
                loss * 100.0,
                share * 100.0
            );
            println!("{figures}");
            assert!(share >= 0.97 * (1.0 - loss), "{figures}");
            // One queue: 50 ms of the line's rate.
            assert!(p99 <= alone + 20.0 + 50.0, "{figures}");
            assert!(beside.reliable.iter().all(|latency| latency.is_finite()), "{figures}");
        }
    }
}
