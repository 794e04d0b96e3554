//! Chunks of random sizes over terrible links, in virtual time: nothing hangs, everything that arrives is right, and acks
//! stay within their bounds. A failure names its seed.

use std::collections::VecDeque;

use tickwire::articles::slices::{
    ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig, ReceiverCounters,
};
use tickwire::netsim::{Conditions, Link};
use tickwire::rng::Rng;
use tickwire::time::Instant;

use super::{OVERHEAD, ack_tick, at, content, ms, send_tick, slice_of};

/// A link that also loses everything now and then.
struct BadLink {
    link: Link<Vec<u8>>,
    outages: Rng,
    dead_until: u64,
}

impl BadLink {
    fn new(conditions: Conditions, seed: u64) -> Self {
        let link = Link::new(conditions, seed).unwrap();
        BadLink { link, outages: Rng::seeded(seed), dead_until: 0 }
    }

    fn send(&mut self, now: u64, packet: Vec<u8>) {
        if self.outages.chance(0.001) {
            self.dead_until = now + self.outages.below(500);
        }
        if now >= self.dead_until {
            let bytes = packet.len();
            self.link.send(at(now), packet, bytes);
        }
    }
}

/// Checks every ack against the slices that were handed in.
struct AckAccount {
    /// Chunk id and bytes of slices less bytes of acks, of the newest two chunks.
    balances: VecDeque<(u16, i64)>,
    last: Option<Instant>,
    max_slices: usize,
}

impl AckAccount {
    fn slice(&mut self, packet: &[u8]) {
        let (chunk, _) = slice_of(packet, self.max_slices);
        let bytes = (packet.len() + OVERHEAD) as i64;
        match self.balances.iter_mut().find(|(id, _)| *id == chunk) {
            Some((_, balance)) => *balance += bytes,
            None => self.balances.push_back((chunk, bytes)),
        }
        if self.balances.len() > 8 {
            self.balances.pop_front();
        }
    }

    fn ack(&mut self, now: Instant, packet: &[u8], interval: u64, seed: u64) {
        let chunk = (u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) >> 1) as u16;
        let (_, balance) = self.balances.iter_mut().find(|(id, _)| *id == chunk).expect("a chunk that came");
        *balance -= (packet.len() + OVERHEAD) as i64;
        assert!(*balance >= 0, "seed {seed}: acks of chunk {chunk} have more bytes than its slices");
        assert!(self.last.is_none_or(|last| now - last >= ms(interval)), "seed {seed}: acks too close");
        self.last = Some(now);
    }
}

struct Size {
    max_slices: usize,
    chunks: u64,
    bytes: u64,
}

fn conditions(rng: &mut Rng) -> Conditions {
    let latency = rng.below(150);
    Conditions::perfect()
        .latency(ms(latency), ms(rng.below(latency + 1)))
        .loss(0.01 + 0.49 * rng.unit())
        .duplicate(0.3 * rng.unit())
        .reorder(0.3 * rng.unit(), ms(rng.below(300)))
}

/// One transfer, given by its seed.
fn soak(seed: u64, size: &Size) -> ReceiverCounters {
    let mut rng = Rng::seeded(seed);
    let max_slices = size.max_slices;
    let interval = 50 + rng.below(51);
    let bytes_per_second = 32_000.0 + 0.5 * size.bytes as f64 * rng.unit();
    let config = ChunkSenderConfig { max_slices, bytes_per_second, ..Default::default() };
    let mut sender = ChunkSender::new(config).unwrap();
    let config = ChunkReceiverConfig { max_slices, ack_interval: ms(interval), ..Default::default() };
    let mut receiver = ChunkReceiver::new(config).unwrap();
    let mut there = BadLink::new(conditions(&mut rng), seed);
    let mut back = BadLink::new(conditions(&mut rng), seed + 1_000_003);
    let mut account = AckAccount { balances: VecDeque::new(), last: None, max_slices };

    if rng.chance(0.5) {
        sender.set_rtt(Some(ms(rng.below(500))));
    }
    // Cancelled ones may arrive, all others must, in order.
    let mut expected = VecDeque::new();
    for number in 0..1 + rng.below(size.chunks) {
        // More small ones than large ones.
        let most = 1 + rng.below(size.bytes);
        let bytes = 1 + rng.below(most) as usize;
        let chunk = content(number ^ seed, bytes);
        let burst = bytes <= 256 * 1024 && rng.chance(0.3);
        let sent = if burst { sender.send_burst(chunk.clone()) } else { sender.send(chunk.clone()) };
        assert_eq!(sent, Ok(number));
        let cancel_at = rng.chance(0.2).then(|| rng.below(2000 * (number + 1)));
        expected.push_back((number, chunk, cancel_at));
    }

    // A generous bound: the wire time of all at full loss, and a minute.
    let total: usize = expected.iter().map(|(_, chunk, _)| chunk.len() + 2000).sum();
    let deadline = 60_000 + (total as f64 / bytes_per_second * 1000.0 * 8.0) as u64;
    let tick = [10, 16, 33][rng.below(3) as usize];
    let mut now = 0;
    while !sender.is_idle() || receiver.is_ready() {
        assert!(now < deadline, "seed {seed}: a hang; {sender:?} {:?}", receiver.counters());
        for (number, ..) in expected.iter().filter(|(_, _, at)| at.is_some_and(|at| at < now)) {
            sender.cancel(*number);
        }
        send_tick(&mut sender, at(now)).into_iter().for_each(|packet| there.send(now, packet));
        while let Some(packet) = there.link.poll(at(now)) {
            account.slice(&packet);
            let _ = receiver.handle_slice(at(now), &packet);
        }
        // A game that doesn't look each tick.
        if let Some(chunk) = rng.chance(0.5).then(|| receiver.read()).flatten() {
            let next = expected.iter().position(|(_, wanted, _)| *wanted == chunk);
            let next =
                next.unwrap_or_else(|| panic!("seed {seed}: a chunk that was never sent, or out of turn"));
            for (number, _, cancelled) in expected.drain(..=next).take(next) {
                assert!(cancelled.is_some(), "seed {seed}: lost {number}");
            }
        }
        if let Some(ack) = ack_tick(&mut receiver, at(now)) {
            account.ack(at(now), &ack, interval, seed);
            back.send(now, ack);
        }
        while let Some(packet) = back.link.poll(at(now)) {
            let _ = sender.handle_ack(at(now), &packet);
        }
        now += tick;
    }
    for (number, _, cancelled) in expected {
        assert!(cancelled.is_some(), "seed {seed}: lost {number}");
    }
    let (sent, received) = (sender.counters(), receiver.counters());
    let impossible = [sent.slice_count, sent.never_sent, received.slice_count, received.far_ahead];
    assert_eq!(impossible, [0; 4], "seed {seed}: drops that honest ends don't cause");
    received
}

const SMALL: Size = Size { max_slices: 256, chunks: 8, bytes: 4 * 1024 };
const MEDIUM: Size = Size { max_slices: 256, chunks: 4, bytes: 256 * 1024 };
const LARGE: Size = Size { max_slices: 4096, chunks: 3, bytes: 4 * 1024 * 1024 };

fn size(seed: u64) -> &'static Size {
    match seed % 20 {
        0 => &LARGE,
        1..=12 => &MEDIUM,
        _ => &SMALL,
    }
}

#[test]
fn nothing_hangs_and_everything_is_right_over_a_thousand_terrible_links() {
    let total = (0..1000).map(|seed| soak(seed, size(seed))).fold(ReceiverCounters::default(), |a, b| a + b);
    // The soak has been where it hurts.
    let reached = [
        total.chunks_abandoned,
        total.duplicates,
        total.complete,
        total.already_read,
        total.unread,
        total.old,
    ];
    assert!(reached.iter().all(|count| *count > 50), "{total:?}");
}

/// `cargo test --release -- --ignored soak`
#[test]
#[ignore = "long"]
fn a_long_soak() {
    for seed in 1000..50_000 {
        soak(seed, size(seed));
    }
}
