//! Bulk beside others and on links that do more than lose packets: each scene in virtual time, with its figures.

use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::CongestionConfig;

use crate::bulk_line::{Act, BY_ARRIVAL, IN_LOOP, Line, ON_THREAD, median};
use crate::tcp::Kind;

/// Sends for as long as a scene lasts.
const ENDLESS: u64 = 1 << 34;
/// Before anything is sent in bulk, for the RTT to be known.
const WARM_UP: f64 = 1.5;

/// What one run of a scene gave.
pub(crate) struct Row {
    pub(crate) scene: &'static str,
    pub(crate) case: String,
    pub(crate) figures: Vec<(&'static str, f64)>,
}

/// Its name and its cases, each to be run with a seed.
pub(crate) type Scene = (&'static str, fn(u64) -> Vec<Row>);

pub(crate) const SCENES: [Scene; 16] = [
    ("by arrival", by_arrival),
    ("two together", two_together),
    ("ticks", ticks),
    ("shallow queue", shallow_queue),
    ("shallow queue beside cubic", shallow_beside_cubic),
    ("heavy loss", heavy_loss),
    ("little loss", little_loss),
    ("twenty at once", twenty),
    ("two of our own", two),
    ("longer path", longer_path),
    ("saturated ack path", saturated_ack_path),
    ("long path", long_path),
    ("in-order jitter", jitter),
    ("beside tcp", beside_tcp),
    ("stale clock", stale_clock),
    ("loads", loads),
];

/// A link with a queue of this many milliseconds.
fn link(mbit: f64, rtt_ms: f64, queue_ms: f64) -> Conditions {
    let rate = mbit * 1e6 / 8.0;
    let latency = Duration::from_secs_f64(rtt_ms / 2e3);
    Conditions::perfect()
        .latency(latency, Duration::ZERO)
        .rate(rate as u64, ((rate * queue_ms / 1e3) as u64).max(1_500))
}

/// What the flows do from now on.
struct Meter {
    began: f64,
    ours: Vec<(usize, usize)>,
    tcp: Vec<u64>,
    queue_from: usize,
}

impl Meter {
    fn start(line: &Line) -> Self {
        Meter {
            began: line.now.as_secs_f64(),
            ours: line.flows.iter().map(|flow| (flow.sent, flow.arrived)).collect(),
            tcp: line.company.iter().map(|company| company.tcp.arrived).collect(),
            queue_from: line.queue.len(),
        }
    }

    /// Mbit/s of each of our flows.
    fn ours(&self, line: &Line) -> Vec<f64> {
        let seconds = line.now.as_secs_f64() - self.began;
        let before = self.ours.iter().map(|(_, arrived)| *arrived).chain(core::iter::repeat(0));
        line.flows
            .iter()
            .zip(before)
            .map(|(flow, before)| (flow.arrived - before) as f64 * 8e-6 / seconds)
            .collect()
    }

    /// Mbit/s of each TCP flow.
    fn tcp(&self, line: &Line) -> Vec<f64> {
        let seconds = line.now.as_secs_f64() - self.began;
        let before = self.tcp.iter().copied().chain(core::iter::repeat(0));
        let flows = line.company.iter().zip(before);
        flows.map(|(company, before)| (company.tcp.arrived - before) as f64 * 8e-6 / seconds).collect()
    }

    /// The percentage of what we sent that didn't arrive; what is on its way counts as sent.
    fn dropped(&self, line: &Line) -> f64 {
        let (mut sent, mut arrived) = (0, 0);
        for (flow, before) in line.flows.iter().zip(&self.ours) {
            sent += flow.sent - before.0;
            arrived += flow.arrived - before.1;
        }
        100.0 * (1.0 - arrived as f64 / sent as f64)
    }

    /// The mean wait in the queue in ms.
    fn queue_ms(&self, line: &Line, mbit: f64) -> f64 {
        let waits = &line.queue[self.queue_from..];
        waits.iter().sum::<u64>() as f64 / waits.len().max(1) as f64 * 8e-3 / mbit
    }
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

fn with_flow(conditions: Conditions, act: Act, seed: u64) -> Line {
    let mut line = Line::new(conditions, act, 0, seed);
    line.add(CongestionConfig::default(), false);
    line.run(WARM_UP + 0.013 * (seed % 16) as f64);
    line
}

/// One flow of ours for this many seconds, measured after the first ones.
fn alone(conditions: Conditions, act: Act, seed: u64, settle: f64, seconds: f64) -> (Line, Meter) {
    let mut line = with_flow(conditions, act, seed);
    line.send_zeros(0, ENDLESS);
    line.run(settle);
    let meter = Meter::start(&line);
    line.run(seconds);
    (line, meter)
}

fn alone_figures(line: &Line, meter: &Meter, mbit: f64) -> Vec<(&'static str, f64)> {
    let (rate, dropped) = (meter.ours(line)[0], meter.dropped(line));
    vec![("Mbit/s", rate), ("dropped %", dropped), ("queue ms", meter.queue_ms(line, mbit))]
}

/// Blocks over a clean link with a queue of one round trip, between ends that wake as real ones do: at ticks that come
/// late now and then ("own ticks": a game calls `tick` itself; "ticks": it is in `tw.run`), or upon arrival.
pub(crate) fn by_arrival(seed: u64) -> Vec<Row> {
    const LINKS: [(f64, f64); 4] = [(10.0, 50.0), (20.0, 40.0), (50.0, 50.0), (100.0, 20.0)];
    let mut rows = Vec::new();
    for (ends, act) in [
        ("own ticks", [60, 60]),
        ("own ticks to arrival", [60, BY_ARRIVAL]),
        ("ticks", [IN_LOOP, IN_LOOP]),
        ("ticks to arrival", [IN_LOOP, BY_ARRIVAL]),
        ("thread to ticks", [ON_THREAD, IN_LOOP]),
        ("thread to arrival", [ON_THREAD, BY_ARRIVAL]),
        ("arrival", [BY_ARRIVAL, BY_ARRIVAL]),
    ] {
        for (mbit, rtt) in LINKS {
            for block in [256 << 10, 8 << 20] {
                let mut line = Line::new(link(mbit, rtt, rtt), Act(act), 0, seed);
                line.quantum = Duration::from_micros(100);
                line.tick_jitter = 2;
                line.add(CongestionConfig::default(), false);
                line.run(0.3 + 0.013 * (seed % 16) as f64);
                line.send_zeros(0, block);
                line.finish(60.0);
                let ideal = block as f64 * 8e-6 / mbit + rtt / 1e3;
                let counters = line.links[0].counters();
                let dropped = 100.0 * counters.queue_dropped as f64 / counters.sent as f64;
                let figures =
                    vec![("s", line.took(0)), ("x ideal", line.took(0) / ideal), ("dropped %", dropped)];
                let case = format!("{ends}: {mbit} Mbit/s, {rtt} ms, {} KiB", block >> 10);
                rows.push(Row { scene: "by arrival", case, figures });
            }
        }
    }
    rows
}

/// Two blocks of 8 MiB that start together over a link with a queue of one round trip.
pub(crate) fn two_together(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (ends, act) in [
        ("own ticks", [60, 60]),
        ("own ticks to arrival", [60, BY_ARRIVAL]),
        ("ticks", [IN_LOOP, IN_LOOP]),
        ("ticks to arrival", [IN_LOOP, BY_ARRIVAL]),
        ("arrival", [BY_ARRIVAL, BY_ARRIVAL]),
    ] {
        for (mbit, rtt) in [(20.0, 40.0), (50.0, 20.0)] {
            let mut line = Line::new(link(mbit, rtt, rtt), Act(act), 0, seed);
            line.quantum = Duration::from_micros(100);
            line.tick_jitter = 2;
            for flow in 0..2 {
                line.add(CongestionConfig::default(), false);
                line.flows[flow].phase = (seed * 5 + flow as u64 * 7) % 16;
            }
            line.run(0.3 + 0.013 * (seed % 16) as f64);
            (0..2).for_each(|flow| line.send_zeros(flow, 8 << 20));
            line.finish(60.0);
            let counters = line.links[0].counters();
            let dropped = 100.0 * counters.queue_dropped as f64 / counters.sent as f64;
            let took = [line.took(0), line.took(1)];
            let ideal = 2.0 * f64::from(8 << 20) * 8e-6 / mbit + rtt / 1e3;
            let last = took[0].max(took[1]);
            let figures = vec![
                ("first s", took[0].min(took[1])),
                ("last s", last),
                ("x ideal", last / ideal),
                ("dropped %", dropped),
            ];
            rows.push(Row {
                scene: "two together",
                case: format!("{ends}: {mbit} Mbit/s, {rtt} ms"),
                figures,
            });
        }
    }
    rows
}

pub(crate) fn ticks(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for hz in [1, 2, 5, 10, 20, 28, 30, 60] {
        for (ends, act) in [("sender", [hz, 0]), ("receiver", [0, hz]), ("both", [hz, hz])] {
            // A queue that takes a burst of a tick.
            let (line, meter) = alone(link(10.0, 50.0, 250.0), Act(act), seed, 10.0, 20.0);
            let figures = alone_figures(&line, &meter, 10.0);
            rows.push(Row { scene: "ticks", case: format!("{hz} Hz, {ends}"), figures });
        }
    }
    rows
}

const SHALLOW: [(f64, f64, f64); 6] = [
    (10.0, 50.0, 5.0),
    (10.0, 50.0, 10.0),
    (10.0, 50.0, 15.0),
    (100.0, 30.0, 1.0),
    (100.0, 30.0, 2.0),
    (100.0, 30.0, 3.0),
];

pub(crate) fn shallow_queue(seed: u64) -> Vec<Row> {
    let row = |(mbit, rtt, queue)| {
        let (line, meter) = alone(link(mbit, rtt, queue), Act::AT_ONCE, seed, 2.0, 20.0);
        let figures = alone_figures(&line, &meter, mbit);
        Row { scene: "shallow queue", case: format!("{mbit} Mbit/s, {rtt} ms, queue {queue} ms"), figures }
    };
    SHALLOW.into_iter().map(row).collect()
}

/// In steps of a tenth of a millisecond: longer ones let a flow send as much at once as the queue holds, and the flow
/// that sends first has all of it.
fn fine_steps((mbit, rtt, queue): (f64, f64, f64), seed: u64) -> Line {
    let mut line = with_flow(link(mbit, rtt, queue), Act::AT_ONCE, seed);
    line.quantum = Duration::from_micros(100);
    line
}

/// The percentage that a cubic gets that comes after a cubic.
fn second_cubic(case: (f64, f64, f64), seed: u64) -> f64 {
    let mut line = fine_steps(case, seed);
    line.add_tcp(Kind::Cubic, 0);
    line.run(3.0);
    line.add_tcp(Kind::Cubic, 0);
    line.run(10.0);
    let meter = Meter::start(&line);
    line.run(30.0);
    let rates = meter.tcp(&line);
    100.0 * rates[1] / (rates[0] + rates[1])
}

/// A link's Mbit/s, round trip and queue in ms: a cubic comes after us.
pub(crate) fn cubic_in_shallow(case: (f64, f64, f64), seed: u64) -> Row {
    let mut line = fine_steps(case, seed);
    line.send_zeros(0, ENDLESS);
    line.run(3.0);
    line.add_tcp(Kind::Cubic, 0);
    line.run(10.0);
    let meter = Meter::start(&line);
    line.run(30.0);
    let (mbit, rtt, queue) = case;
    let mut figures = alone_figures(&line, &meter, mbit);
    let theirs = meter.tcp(&line)[0];
    figures.extend([("cubic Mbit/s", theirs), ("its %", 100.0 * theirs / (theirs + figures[0].1))]);
    let case = format!("{mbit} Mbit/s, {rtt} ms, queue {queue} ms");
    Row { scene: "shallow queue beside cubic", case, figures }
}

fn shallow_beside_cubic(seed: u64) -> Vec<Row> {
    let row = |case| {
        let mut row = cubic_in_shallow(case, seed);
        row.figures.push(("its % beside a cubic", second_cubic(case, seed)));
        row
    };
    SHALLOW.into_iter().map(row).collect()
}

pub(crate) fn heavy_loss(seed: u64) -> Vec<Row> {
    let row = |(mbit, rtt, queue, loss)| {
        let (line, meter) = alone(link(mbit, rtt, queue).loss(loss), Act::AT_ONCE, seed, 3.0, 20.0);
        let figures = alone_figures(&line, &meter, mbit);
        let case = format!("{mbit} Mbit/s, {rtt} ms, queue {queue} ms, {:.0} % lost", loss * 100.0);
        Row { scene: "heavy loss", case, figures }
    };
    let cases = [
        (10.0, 50.0, 50.0, 0.1),
        (10.0, 50.0, 5.0, 0.1),
        (50.0, 100.0, 100.0, 0.1),
        (100.0, 30.0, 30.0, 0.05),
        (2.0, 150.0, 150.0, 0.1),
    ];
    cases.into_iter().map(row).collect()
}

/// Blocks over links that lose little by themselves, with packets that overtake others or none that do: few losses tell little, and
/// what is concluded from them must not hold the rate down for long. Of many seeds, as it happens to some.
pub(crate) fn little_loss(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (mbit, rtt, jitter_ms) in [(10.0, 40.0, 3), (10.0, 40.0, 0), (50.0, 30.0, 1)] {
        for loss in [0.001, 0.003, 0.01] {
            rows.push(little_loss_case((mbit, rtt, jitter_ms, loss), seed));
        }
    }
    rows
}

pub(crate) fn little_loss_case((mbit, rtt, jitter_ms, loss): (f64, f64, u64, f64), seed: u64) -> Row {
    const SEEDS: u64 = 16;
    let latency = Duration::from_secs_f64(rtt / 2e3);
    let back = link(mbit, rtt, rtt.max(50.0));
    let conditions = back.latency(latency, Duration::from_millis(jitter_ms)).loss(loss);
    // Eight seconds.
    let bytes = (mbit * 1e6) as u64;
    let ideal = bytes as f64 * 8e-6 / mbit + rtt / 1e3;
    let times = (0..SEEDS).map(|more| {
        let mut line =
            Line::with_links([conditions, back], Act([ON_THREAD, ON_THREAD]), 0, SEEDS * seed + more);
        line.add(CongestionConfig::default(), false);
        line.run(WARM_UP);
        line.send_zeros(0, bytes);
        line.finish(80.0);
        line.took(0) / ideal
    });
    let times: Vec<f64> = times.collect();
    let slow = times.iter().filter(|time| **time > 1.5).count();
    let worst = times.iter().copied().fold(0.0, f64::max);
    let figures = vec![("x ideal", median(times)), ("worst", worst), ("slow", slow as f64)];
    let case = format!("{mbit} Mbit/s, {rtt} +- {jitter_ms} ms, {} % lost", 100.0 * loss);
    Row { scene: "little loss", case, figures }
}

fn twenty(seed: u64) -> Vec<Row> {
    let row = |(rtt, act): (f64, Act)| {
        let mut line = Line::new(link(50.0, rtt, rtt), act, 0, seed);
        for _ in 0..20 {
            line.add(CongestionConfig::default(), false);
        }
        line.run(WARM_UP + 0.013 * (seed % 16) as f64);
        (0..20).for_each(|flow| line.send_zeros(flow, 4 << 20));
        let meter = Meter::start(&line);
        line.run(1.0);
        // What is on its way isn't dropped.
        let dropped = |line: &Line| {
            let sent: usize = line.flows.iter().map(|flow| flow.sent).sum();
            100.0 * line.links[0].counters().queue_dropped as f64 * 1_215.0 / sent as f64
        };
        let first = (dropped(&line), jain(&meter.ours(&line)));
        while line.flows.iter().all(|flow| flow.received_at.is_none()) && line.now.as_secs_f64() < 60.0 {
            line.step();
        }
        let rates = meter.ours(&line);
        let figures = vec![
            ("Jain", jain(&rates)),
            ("dropped % in 1 s", first.0),
            ("Jain in 1 s", first.1),
            ("dropped %", dropped(&line)),
            ("Mbit/s", rates.iter().sum()),
            ("queue ms", meter.queue_ms(&line, 50.0)),
            ("s to the first", line.now.as_secs_f64() - meter.began),
        ];
        let ticks = if act == Act::POLLED { ", ticks of 60 Hz at the same instants" } else { "" };
        Row { scene: "twenty at once", case: format!("50 Mbit/s, {rtt} ms{ticks}"), figures }
    };
    let at_once = [20.0, 40.0, 100.0].map(|rtt| (rtt, Act::AT_ONCE));
    at_once
        .into_iter()
        .chain([(20.0, Act::POLLED), (40.0, Act::POLLED), (100.0, Act::POLLED)])
        .map(row)
        .collect()
}

pub(crate) fn two(seed: u64) -> Vec<Row> {
    let at_once = Act::AT_ONCE;
    let cases = [
        (50.0, 20.0, 5.0, at_once),
        (50.0, 20.0, 0.5, at_once),
        (50.0, 20.0, 5.0, Act::POLLED),
        (10.0, 50.0, 5.0, at_once),
        (100.0, 30.0, 5.0, at_once),
    ];
    // Two hosts' ticks are seldom the same; if they are, the first one's packets are always ahead in the queue.
    let apart = [4, 8, 12].map(|phase| two_case((50.0, 20.0, 5.0, Act::POLLED), phase, seed));
    cases.into_iter().map(|case| two_case(case, 0, seed)).chain(apart).collect()
}

fn two_case((mbit, rtt, later, act): (f64, f64, f64, Act), phase: u64, seed: u64) -> Row {
    let mut line = Line::new(link(mbit, rtt, rtt), act, 0, seed);
    for _ in 0..2 {
        line.add(CongestionConfig::default(), false);
    }
    line.flows[1].phase = phase;
    line.run(WARM_UP + 0.013 * (seed % 16) as f64);
    line.send_zeros(0, ENDLESS);
    line.run(later);
    line.send_zeros(1, ENDLESS);
    let whole = Meter::start(&line);
    line.run(8.0);
    let meter = Meter::start(&line);
    line.run(2.0);
    let rates = meter.ours(&line);
    let figures = vec![
        ("Jain", jain(&rates)),
        ("first", rates[0]),
        ("second", rates[1]),
        ("all", whole.ours(&line).iter().sum()),
        ("dropped %", whole.dropped(&line)),
        ("queue ms", meter.queue_ms(&line, mbit)),
    ];
    let apart = if phase > 0 { format!(", {phase} ms apart") } else { String::new() };
    let case = format!("{mbit} Mbit/s, {rtt} ms, {later} s later, ticks {:?}{apart}", act.0);
    Row { scene: "two of our own", case, figures }
}

pub(crate) fn longer_path(seed: u64) -> Vec<Row> {
    let row = |(mbit, rtt, step): (f64, f64, f64)| {
        let (mut line, _) = alone(link(mbit, rtt, rtt), Act::AT_ONCE, seed, 5.0, 2.0);
        let longer = link(mbit, rtt + step, rtt);
        line.links.iter_mut().for_each(|link| link.set_conditions(longer).unwrap());
        let mut figures = Vec::new();
        for name in ["1st s", "2nd s", "3rd s", "4th s", "5th s", "6th s"] {
            let meter = Meter::start(&line);
            line.run(1.0);
            figures.push((name, meter.ours(&line)[0]));
        }
        let meter = Meter::start(&line);
        line.run(10.0);
        figures.push(("later", meter.ours(&line)[0]));
        figures.push(("queue ms", meter.queue_ms(&line, mbit)));
        Row { scene: "longer path", case: format!("{mbit} Mbit/s, {rtt} ms, + {step} ms"), figures }
    };
    [(20.0, 40.0, 60.0), (20.0, 20.0, 60.0), (100.0, 30.0, 60.0), (10.0, 100.0, 30.0)]
        .into_iter()
        .map(row)
        .collect()
}

pub(crate) fn saturated_ack_path(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, there) in [("ours", None), ("cubic", Some(Kind::Cubic)), ("bbr", Some(Kind::Bbr))] {
        for queue in [200.0, 1_000.0] {
            let ways = [link(10.0, 40.0, 40.0), link(0.2, 40.0, queue)];
            let mut line = Line::with_links(ways, Act::AT_ONCE, 0, seed);
            line.add(CongestionConfig::default(), false);
            line.run(WARM_UP);
            line.add_tcp(Kind::Cubic, 1);
            line.run(5.0 + 0.013 * (seed % 16) as f64);
            match there {
                None => line.send_zeros(0, ENDLESS),
                Some(kind) => {
                    line.add_tcp(kind, 0);
                }
            }
            line.run(10.0);
            let meter = Meter::start(&line);
            line.run(30.0);
            let rates = if there.is_some() { meter.tcp(&line)[1] } else { meter.ours(&line)[0] };
            let figures = vec![
                ("Mbit/s", rates),
                ("upload", meter.tcp(&line)[0]),
                ("dropped %", meter.dropped(&line)),
                ("queue ms", meter.queue_ms(&line, 10.0)),
            ];
            rows.push(Row {
                scene: "saturated ack path",
                case: format!("{name}, queue back {queue} ms"),
                figures,
            });
        }
    }
    rows
}

fn long_path(seed: u64) -> Vec<Row> {
    let conditions = link(20.0, 600.0, 600.0);
    let bytes = 8 << 20;
    let mut line = with_flow(conditions, Act::AT_ONCE, seed);
    line.run(3.0);
    line.send_zeros(0, bytes);
    let meter = Meter::start(&line);
    line.finish(60.0);
    let figures = vec![
        ("s", line.took(0)),
        ("Mbit/s", bytes as f64 * 8e-6 / line.took(0)),
        ("dropped %", meter.dropped(&line)),
    ];
    let ours = Row { scene: "long path", case: "ours".into(), figures };
    let mut line = Line::new(conditions, Act::AT_ONCE, 0, seed);
    line.add_tcp(Kind::Bbr, 0);
    while line.company[0].tcp.arrived < bytes {
        line.step();
    }
    let seconds = line.now.as_secs_f64();
    let figures = vec![("s", seconds), ("Mbit/s", bytes as f64 * 8e-6 / seconds)];
    vec![ours, Row { scene: "long path", case: "bbr".into(), figures }]
}

fn jitter(seed: u64) -> Vec<Row> {
    let rows =
        [20, 100, 500].map(|time| [(10.0, 50.0), (50.0, 40.0)].map(|link| jitter_case(link, time, seed)));
    rows.into_iter().flatten().collect()
}

pub(crate) fn jitter_case((mbit, rtt): (f64, f64), time: u64, seed: u64) -> Row {
    let base = link(mbit, rtt, 2.0 * rtt);
    let conditions = base.random_walk(Duration::from_millis(15), Duration::from_millis(time));
    let (line, meter) = alone(conditions, Act::AT_ONCE, seed, 3.0, 20.0);
    let figures = alone_figures(&line, &meter, mbit);
    let case = format!("{mbit} Mbit/s, {rtt} ms, +- 15 ms in runs of {time} ms");
    Row { scene: "in-order jitter", case, figures }
}

fn beside_tcp(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let cases = [
        (Kind::Bbr, 1, 5.0, 1.0),
        (Kind::Bbr, 1, -5.0, 1.0),
        (Kind::Bbr, 4, 5.0, 1.0),
        (Kind::Bbr, 4, -5.0, 1.0),
        (Kind::Cubic, 1, 5.0, 1.0),
        (Kind::Cubic, 1, -20.0, 1.0),
        (Kind::Cubic, 4, 5.0, 1.0),
        (Kind::Bbr, 1, 5.0, 4.0),
        (Kind::Cubic, 1, 5.0, 4.0),
    ];
    for (kind, flows, head_start, bdps) in cases.into_iter() {
        for (mbit, rtt) in [(20.0, 40.0), (50.0, 30.0)] {
            let mut line = with_flow(link(mbit, rtt, bdps * rtt), Act::AT_ONCE, seed);
            if head_start > 0.0 {
                line.send_zeros(0, ENDLESS);
                line.run(head_start);
            }
            for _ in 0..flows {
                line.add_tcp(kind, 0);
                line.run(0.1);
            }
            if head_start < 0.0 {
                line.run(-head_start);
                line.send_zeros(0, ENDLESS);
            }
            line.run(5.0);
            let meter = Meter::start(&line);
            line.run(55.0);
            let (ours, theirs) = (meter.ours(&line)[0], meter.tcp(&line).iter().sum::<f64>());
            let figures = vec![
                ("our %", 100.0 * ours / (ours + theirs)),
                ("all Mbit/s", ours + theirs),
                ("dropped %", meter.dropped(&line)),
                ("queue ms", meter.queue_ms(&line, mbit)),
            ];
            let first = if head_start > 0.0 { "we are first" } else { "they are first" };
            let case = format!("{flows} {kind:?}, {mbit} Mbit/s, {rtt} ms, {bdps} BDP, {first}");
            rows.push(Row { scene: "beside tcp", case, figures });
        }
    }
    rows
}

pub(crate) fn stale_clock(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (mbit, rtt, stale) in [(100.0, 10.0, (10, 20)), (100.0, 30.0, (30, 300)), (10.0, 50.0, (10, 50))] {
        let mut line = with_flow(link(mbit, rtt, 2.0 * rtt), Act::AT_ONCE, seed);
        line.stale = Some(stale);
        line.send_zeros(0, ENDLESS);
        line.run(2.0);
        let meter = Meter::start(&line);
        line.run(20.0);
        let figures = alone_figures(&line, &meter, mbit);
        let case = format!("{mbit} Mbit/s, {rtt} ms, 1 of {} reads up to {} ms early", stale.1, stale.0);
        rows.push(Row { scene: "stale clock", case, figures });
    }
    rows
}

/// A line with no rate of its own: what the demo plays over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) latency_ms: u64,
    pub(crate) jitter_ms: u64,
    pub(crate) loss: f64,
}

/// Seconds in which each of some newcomers loads a block of this many MiB at once, beside its game.
pub(crate) fn load(faults: Faults, act: Act, mib: usize, joiners: usize, seed: u64) -> Vec<f64> {
    let millis = Duration::from_millis;
    let conditions = Conditions::perfect()
        .latency(millis(faults.latency_ms), millis(faults.jitter_ms))
        .loss(faults.loss)
        .duplicate(0.01)
        .reorder(0.01, millis(50));
    let mut line = Line::new(conditions, act, mib << 20, seed);
    for flow in 0..joiners {
        line.add(CongestionConfig::default(), true);
        line.flows[flow].phase = (seed + flow as u64) * 7 % 16;
    }
    line.run(0.3 + 0.013 * (seed % 16) as f64);
    (0..joiners).for_each(|flow| line.send(flow, false));
    line.finish(60.0);
    (0..joiners).map(|flow| line.took(flow)).collect()
}

fn loads(seed: u64) -> Vec<Row> {
    let row = |(latency_ms, jitter_ms, loss, act, mib, joiners): (u64, u64, f64, Act, usize, usize)| {
        let times = load(Faults { latency_ms, jitter_ms, loss }, act, mib, joiners, seed);
        let all = if joiners > 1 { format!(", {joiners} together") } else { String::new() };
        let act = if act == Act::AT_ONCE { ", at once" } else { "" };
        let case = format!("{latency_ms} +- {jitter_ms} ms, {:.0} % lost, {mib} MiB{all}{act}", 100.0 * loss);
        Row { scene: "loads", case, figures: vec![("s", times.iter().copied().fold(0.0, f64::max))] }
    };
    let cases = [
        (50, 10, 0.02, Act::POLLED, 1, 1),
        (50, 10, 0.02, Act::POLLED, 4, 1),
        (50, 10, 0.02, Act::POLLED, 1, 4),
        (50, 10, 0.05, Act::POLLED, 1, 1),
        (50, 10, 0.1, Act::POLLED, 1, 1),
        (100, 30, 0.02, Act::POLLED, 1, 1),
        (100, 30, 0.1, Act::POLLED, 1, 1),
        (50, 10, 0.02, Act::AT_ONCE, 1, 1),
        (100, 30, 0.1, Act::AT_ONCE, 1, 1),
    ];
    cases.into_iter().map(row).collect()
}
