//! Reliable messages on lines slower than the budget: they share the line's rate instead of drowning it.

use tickwire::netsim::{Conditions, Link};
use tickwire::time::Duration;
use tickwire::transport::{ChannelConfig, ConnectionConfig};

use crate::pair::{Pair, RELIABLE, blob, protocol_with};

/// What sealing adds to a packet, and IP and UDP to a datagram.
const OVERHEAD: u64 = 19 + 28;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A home connection's way up: 1 Mbit/s and a queue of 64 KiB.
fn uplink(latency: u64) -> Conditions {
    Conditions::perfect().latency(ms(latency), Duration::ZERO).rate(125_000, 65_536).overhead(OVERHEAD)
}

/// What sending some messages at once took.
#[derive(Debug)]
struct Took {
    seconds: f64,
    /// Bytes on the wire over the bytes of the messages.
    bytes: f64,
    resent: u64,
}

/// Sends `count` messages of `bytes` bytes at once, over a line whose way back is fast.
fn deliver(up: Conditions, count: u32, bytes: usize, seed: u64) -> Took {
    let config = ConnectionConfig::default();
    let protocol = protocol_with(vec![ChannelConfig::reliable_ordered()]);
    let mut pair = Pair::with_config(&config, protocol, up, seed);
    let back = Conditions::perfect().latency(up.latency, Duration::ZERO).loss(up.loss);
    pair.links[1] = Link::new(back, seed + 1_000_003).unwrap();
    // The connection is up: hellos are through, a round trip was measured.
    pair.ticks(60);
    let (began, before) = (pair.now, pair.sent_bytes[0]);
    (0..count).for_each(|n| pair.send(0, RELIABLE, blob(n, bytes)).unwrap());
    let mut arrived = Vec::new();
    while arrived.len() < count as usize && pair.now < began + ms(120_000) {
        pair.tick();
        arrived.extend(pair.take(1, RELIABLE));
    }
    assert!(arrived.iter().copied().eq(0..count), "{} of {count} arrived", arrived.len());
    let seconds = (pair.now - began).as_secs_f64();
    // What is still resent after all is there counts too.
    pair.ticks(60);
    let wire = (pair.sent_bytes[0] - before) as f64;
    let resent = pair.ends[0].channel_stats(RELIABLE).resent;
    Took { seconds, bytes: wire / (f64::from(count) * bytes as f64), resent }
}

#[test]
fn a_slow_line_is_shared_not_drowned() {
    for (count, bytes) in [(300, 1_000), (10, 30_000)] {
        let ideal = f64::from(count) * bytes as f64 / 125_000.0;
        for latency in [5, 10, 20, 25, 40, 60, 100, 150] {
            let took = deliver(uplink(latency), count, bytes, latency);
            println!("{count} of {bytes} bytes, {latency} ms, {ideal:.1} s at best: {took:?}");
            assert!(took.seconds <= 1.3 * ideal, "{count} of {bytes} bytes: {took:?}");
            assert!(
                took.bytes <= 1.25 && took.resent <= u64::from(count) / 5,
                "{count} of {bytes} bytes: {took:?}"
            );
        }
    }
}

#[test]
fn a_large_message_over_a_lossy_line_is_not_sent_over_and_over() {
    let line = Conditions::perfect().latency(ms(25), Duration::ZERO).loss(0.1).overhead(OVERHEAD);
    for seed in 1..=8 {
        let took = deliver(line, 1, 60_000, seed);
        println!("{took:?}");
        assert!(took.bytes <= 1.5 && took.seconds < 1.0, "{took:?}");
    }
}

#[test]
fn on_a_clean_line_a_message_is_sent_once_however_long_the_round_trip() {
    for rtt in [20, 150, 300, 600, 900] {
        let line = Conditions::perfect().latency(ms(rtt / 2), Duration::ZERO);
        let protocol = protocol_with(vec![ChannelConfig::reliable_ordered()]);
        let mut pair = Pair::new(protocol, line, 1);
        // From the first moment on, when nothing is known of the round trip.
        for n in 0..300 {
            pair.send(0, RELIABLE, blob(n, 100)).unwrap();
            pair.tick();
        }
        let until = pair.now + ms(3_000);
        while pair.now < until {
            pair.tick();
        }
        assert_eq!(pair.take(1, RELIABLE).len(), 300);
        let stats = pair.ends[0].channel_stats(RELIABLE);
        assert_eq!((stats.sent, stats.resent), (300, 0), "{rtt} ms");
    }
}
