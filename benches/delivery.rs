//! How soon messages arrive over a link that loses packets, and at what cost. In virtual time, so the figures are
//! the same on every machine. Prints a table and writes `benches/delivery/results.json`.

#[allow(dead_code)]
#[path = "../tests/rust/pair.rs"]
mod pair;

use std::fs;

use serde_json::{Value, json};
use tickwire::netsim::{Conditions, Link};
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Resend, SendOptions,
};

use pair::{Pair, blob, check, number, protocol_with};

/// IPv4 and UDP, and what sealing adds to a packet.
const WIRE_OVERHEAD: usize = 28 + 19;
const TICK: Duration = Duration::from_micros(16_667);
const SECONDS: usize = 60;
const SEEDS: u64 = 20;

/// The messages to send, the link, and how the ends act.
#[derive(Clone, Copy)]
struct Case {
    kind: ChannelKind,
    loss: f64,
    act: Act,
}

/// When the ends receive and send, besides that both tick at 60 Hz.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    /// At their ticks, which are at the same times.
    InStep,
    /// At their ticks, which come late by up to [`LATE`]; how far apart they are differs from link to link.
    OutOfStep,
    /// The sender has a thread, which wakes when something arrives or is due; the receiver ticks.
    Thread,
    /// Both have threads, and their games tick.
    Threads,
    /// Both wake so, and the receiver's game runs at each arrival: as with asyncio.
    ByArrival,
}

impl Act {
    /// Whether this end is awake between ticks.
    fn is_awake(self, end: usize) -> bool {
        matches!(self, Act::ByArrival | Act::Threads) || self == Act::Thread && end == 0
    }

    /// Whether this end has ticks of its own.
    fn ticks(self, end: usize) -> bool {
        self != Act::ByArrival || end == 0
    }
}

/// Ticks of a busy machine come late by up to this.
const LATE: Duration = Duration::from_millis(2);

/// Two ends and the links between them.
struct Line {
    now: Instant,
    ends: [Connection; 2],
    links: [Link<(u64, Vec<u8>)>; 2],
    packets: Packets,
    act: Act,
    /// When an end that is awake has something to do.
    due: [Instant; 2],
    /// Sent by each end.
    wire_bytes: [usize; 2],
}

impl Line {
    fn new(case: Case, seed: u64) -> Self {
        let protocol = protocol_with(vec![ChannelConfig::new(case.kind)]);
        let conditions =
            Conditions::perfect().latency(Duration::from_millis(50), Duration::ZERO).loss(case.loss);
        let end = || Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        Line {
            now: Instant::ZERO,
            ends: [end(), end()],
            links: [0, 1].map(|i| Link::new(conditions, seed * 2 + i).unwrap()),
            packets: Packets::new(),
            act: case.act,
            due: [Instant::ZERO; 2],
            wire_bytes: [0; 2],
        }
    }

    /// When an end that is awake has something to do.
    fn next_event(&self, end: usize) -> Instant {
        let arrival = self.links[1 - end].next_delivery().unwrap_or(Instant::NEVER);
        arrival.min(self.due[end]).max(self.now)
    }

    fn receive(&mut self, end: usize) {
        while let Some((number, packet)) = self.links[1 - end].poll(self.now) {
            self.ends[end].handle_datagram(self.now, number, &packet).unwrap();
        }
    }

    /// Sends what is due, with `tick` what a tick of the game sends.
    fn transmit(&mut self, end: usize, tick: bool) {
        self.ends[end].set_awake(self.act.is_awake(end));
        if tick {
            self.ends[end].transmit(self.now, &mut self.packets);
        }
        if self.act.is_awake(end) {
            self.due[end] = self.ends[end].transmit_between(self.now, &mut self.packets);
        }
        for (number, packet) in self.packets.iter() {
            self.wire_bytes[end] += packet.len() + WIRE_OVERHEAD;
            self.links[end].send(self.now, (number, packet.to_vec()), packet.len());
        }
        self.packets.clear();
    }
}

#[derive(Default)]
struct Figures {
    /// Milliseconds from sending to delivery.
    latencies: Vec<f64>,
    sent: usize,
    wire_bytes: [usize; 2],
}

impl Figures {
    /// Percent of messages that were delivered.
    fn received(&self) -> f64 {
        100.0 * self.latencies.len() as f64 / self.sent as f64
    }

    /// Of all messages sent; infinite where it falls among those that never came.
    fn percentile(&mut self, percent: f64) -> f64 {
        self.latencies.sort_by(f64::total_cmp);
        let last = self.sent - 1;
        let index = (last as f64 * percent / 100.0).round() as usize;
        self.latencies.get(index).copied().unwrap_or(f64::INFINITY)
    }

    /// Percent of messages that were not delivered within this many milliseconds.
    fn later_than(&self, bound: f64) -> f64 {
        let in_time = self.latencies.iter().filter(|latency| **latency <= bound).count();
        100.0 * (self.sent - in_time) as f64 / self.sent as f64
    }
}

/// Sends a message of 64 bytes each tick, one way, over many links of one kind.
fn measure(case: Case) -> Figures {
    let mut figures = Figures::default();
    for seed in 1..=SEEDS {
        let mut line = Line::new(case, seed);
        let protocol = protocol_with(vec![ChannelConfig::new(case.kind)]);
        let mut sent_at = Vec::new();
        let apart = if case.act == Act::InStep { Duration::ZERO } else { TICK * seed as u32 / SEEDS as u32 };
        let mut rng = Rng::seeded(seed);
        let mut late = || match case.act {
            Act::InStep => Duration::ZERO,
            _ => Duration::from_nanos(rng.below(LATE.as_nanos() as u64)),
        };
        let mut due_ticks = [line.now + TICK, line.now + TICK + apart];
        let mut next_ticks = due_ticks;
        while sent_at.len() < SECONDS * 60 || line.now < sent_at[sent_at.len() - 1] + Duration::from_secs(3) {
            let next = |end: usize| match case.act {
                act if act.is_awake(end) && act.ticks(end) => next_ticks[end].min(line.next_event(end)),
                act if act.is_awake(end) => line.next_event(end),
                _ => next_ticks[end],
            };
            let next = [next(0), next(1)];
            line.now = next[0].min(next[1]);
            for end in 0..2 {
                let ticked = case.act.ticks(end) && line.now == next_ticks[end];
                if next[end] > line.now {
                    continue;
                }
                line.receive(end);
                let mut arrived = false;
                let mut poll =
                    || if ticked || !case.act.ticks(end) { line.ends[end].poll_received(0) } else { None };
                while let Some(received) = poll() {
                    let sent: Instant = sent_at[check(&protocol, &received) as usize];
                    figures.latencies.push((line.now - sent).as_secs_f64() * 1000.0);
                    arrived = true;
                }
                if end == 0 && ticked && sent_at.len() < SECONDS * 60 {
                    let message = blob(sent_at.len() as u32, 59);
                    line.ends[0].send(line.now, 0, message, SendOptions::default()).unwrap();
                    sent_at.push(line.now);
                }
                line.transmit(end, ticked || arrived);
                if ticked {
                    due_ticks[end] += TICK;
                    next_ticks[end] = due_ticks[end] + late();
                }
            }
        }
        figures.sent += sent_at.len();
        (0..2).for_each(|end| figures.wire_bytes[end] += line.wire_bytes[end]);
    }
    figures
}

/// The greatest age, in milliseconds, that any of 1,000 keys reaches when all change each tick and the budget
/// carries a tenth of that.
fn oldest_key() -> f64 {
    let keys = 1_000;
    let budget = BudgetConfig::new(33_000.0, 1_200.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let protocol = protocol_with(vec![ChannelConfig::new(ChannelKind::Latest { keys })]);
    let conditions = Conditions::perfect().latency(Duration::from_millis(50), Duration::ZERO).loss(0.05);
    let mut pair = Pair::with_config(&config, protocol, conditions, 1);
    let mut newest = vec![0u32; keys];
    let mut oldest = 0;
    for tick in 0..3_600u32 {
        for key in 0..keys as u32 {
            let options = SendOptions { key, ..Default::default() };
            pair.ends[0].send(pair.now, 0, number(tick), options).unwrap();
        }
        pair.tick();
        while let Some(received) = pair.ends[1].poll_received(0) {
            let value = check(&pair.protocol, &received);
            assert!(value >= newest[received.key as usize], "a stale value came after a newer one");
            newest[received.key as usize] = value;
        }
        if tick > 300 {
            oldest = oldest.max(tick - newest.iter().min().unwrap());
        }
    }
    f64::from(oldest) * TICK.as_secs_f64() * 1000.0
}

fn reliable(early_copies: u8) -> ChannelKind {
    ChannelKind::Reliable {
        ordered: true,
        receive_window: 1024,
        receive_bytes: 1 << 20,
        resend: Resend::Adaptive { early_copies },
    }
}

fn main() {
    let mut rows = Vec::<Value>::new();
    let mut row = |case: &str, metric: &str, value: f64, unit: &str| {
        let value = (value * 1000.0).round() / 1000.0;
        println!("{case:<44} {metric:<28} {value:>10} {unit}");
        rows.push(json!({ "case": case, "metric": metric, "value": value, "unit": unit }));
    };
    let lossless = |act| measure(Case { kind: reliable(1), loss: 0.0, act }).wire_bytes.iter().sum::<usize>();
    let lossless = [Act::InStep, Act::OutOfStep, Act::Thread, Act::Threads, Act::ByArrival]
        .map(|act| lossless(act) as f64);
    let cases = [
        ("reliable-ordered, ticks in step", 1, Act::InStep),
        ("reliable-ordered, ticks out of step", 1, Act::OutOfStep),
        ("reliable-ordered, sender on a thread", 1, Act::Thread),
        ("reliable-ordered, both on threads", 1, Act::Threads),
        ("reliable-ordered, woken by arrival", 1, Act::ByArrival),
        ("reliable-ordered, 2 copies, ticks in step", 2, Act::InStep),
        ("reliable-ordered, 3 copies, ticks in step", 3, Act::InStep),
    ];
    for (name, copies, act) in cases {
        let mut figures = measure(Case { kind: reliable(copies), loss: 0.05, act });
        assert_eq!(figures.latencies.len(), figures.sent, "every message arrives");
        row(name, "arrived", figures.received(), "%");
        row(name, "p50", figures.percentile(50.0), "ms");
        row(name, "p99", figures.percentile(99.0), "ms");
        row(name, "p99.9", figures.percentile(99.9), "ms");
        let bytes = figures.wire_bytes.iter().sum::<usize>() as f64;
        row(name, "bytes over lossless", bytes / lossless[act as usize], "ratio");
        let payload = (figures.sent * 64) as f64;
        row(name, "sent a payload byte", figures.wire_bytes[0] as f64 / payload, "ratio");
        row(name, "answered a payload byte", figures.wire_bytes[1] as f64 / payload, "ratio");
    }
    let article = ChannelKind::Reliable {
        ordered: true,
        receive_window: 1024,
        receive_bytes: 1 << 20,
        resend: Resend::default(),
    };
    let mut figures = measure(Case { kind: article, loss: 0.05, act: Act::InStep });
    row("reliable-ordered, fixed 0.1 s, ticks in step", "arrived", figures.received(), "%");
    row("reliable-ordered, fixed 0.1 s, ticks in step", "p99", figures.percentile(99.0), "ms");
    let bytes = figures.wire_bytes.iter().sum::<usize>() as f64 / lossless[Act::InStep as usize];
    row("reliable-ordered, fixed 0.1 s, ticks in step", "bytes over lossless", bytes, "ratio");

    let inputs = ChannelKind::Redundant { copies: 3, receive_queue: 1024 };
    let figures = measure(Case { kind: inputs, loss: 0.1, act: Act::InStep });
    // Sent at a tick, on time three ticks later for the latency; late is later than two ticks after that.
    let bound = 50.1 + 2.0 * TICK.as_secs_f64() * 1000.0;
    row("inputs, last 3, 10 % loss", "arrived", figures.received(), "%");
    row("inputs, last 3, 10 % loss", "later than tick after next", figures.later_than(bound), "%");
    row("latest, 1,000 keys, a tenth of the link", "greatest age", oldest_key(), "ms");

    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/delivery");
    fs::create_dir_all(folder).unwrap();
    let text = serde_json::to_string_pretty(&rows).unwrap();
    fs::write(format!("{folder}/results.json"), text + "\n").unwrap();
}
