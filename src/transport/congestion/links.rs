//! The adaptive controller on links of many kinds.

use super::simulation::{LinkSetup, Loss, Reno, World};
use super::*;

const KIB: usize = 1024;

fn adaptive(_trace: bool) -> Box<dyn Controller> {
    CongestionConfig::Adaptive(AdaptiveConfig::default()).controller()
}

struct Outcome {
    seconds: f64,
    retransmit: f64,
    game_p99: f64,
    queue: f64,
}

fn transfer(link: LinkSetup, bytes: usize, step: f64, game: bool, seed: u64, trace: bool) -> Outcome {
    let mut world = World::new(link, Duration::from_secs_f64(step), seed);
    world.add(adaptive(trace), adaptive(false));
    world.game = true;
    world.run_until(Instant::from_millis(1000 + seed));
    world.game = game;
    world.flows[0][0].game_latency.clear();
    world.flows[0][1].game_latency.clear();
    let lost_before = world.wires[0].lost_bytes;
    world.begin(0, bytes, bytes <= 256 * KIB);
    let seconds = world.run_to_finish(0, 200.0);
    let sent = world.flows[0][0].bulk_sent as f64;
    let needed = bytes as f64 * 1215.0 / 1152.0;
    let lost = (world.wires[0].lost_bytes - lost_before) as f64;
    let mut game = world.flows[0][1].game_latency.clone();
    game.sort_by(f64::total_cmp);
    let game_p99 = game.get(game.len() * 99 / 100).map_or(0.0, |latency| latency - link.rtt / 2.0);
    Outcome { seconds, retransmit: (sent - needed - 1.3 * lost) / needed, game_p99, queue: lost / needed }
}

fn rows() -> Vec<(LinkSetup, f64, f64)> {
    let bursts = Loss::Bursts { mean: 5.0, share: 0.05 };
    let outages = Loss::Outages { mean: 0.005, share: 0.05 };
    vec![
        (LinkSetup::new(10.0, 50.0, Loss::None), 1.05, 1.09),
        (LinkSetup::new(10.0, 50.0, Loss::Each(0.02)), 1.25, 1.10),
        (LinkSetup::new(50.0, 100.0, Loss::Each(0.01)), 1.5, 1.20),
        (LinkSetup::new(100.0, 30.0, bursts), 2.5, 1.30),
        (LinkSetup::new(100.0, 30.0, outages), 1.5, 1.25),
        (LinkSetup::new(2.0, 150.0, Loss::Each(0.03)), 1.25, 1.12),
    ]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore]
fn table() {
    let only: Option<usize> = std::env::var("ROW").ok().and_then(|row| row.parse().ok());
    let seeds: u64 = std::env::var("SEEDS").ok().map_or(9, |seeds| seeds.parse().unwrap());
    let seed0: u64 = std::env::var("SEED0").ok().map_or(1, |seed| seed.parse().unwrap());
    let trace = std::env::var("TRACE").is_ok();
    let hz60 = std::env::var("HZ60").is_ok();
    let game = std::env::var("GAME").is_ok();
    let small = std::env::var("SMALL").is_ok();
    let step = if hz60 { 1.0 / 60.0 } else { 0.001 };
    for (index, (link, small_bound, large_bound)) in rows().into_iter().enumerate() {
        if only.is_some_and(|row| row != index) {
            continue;
        }
        for (bytes, bound) in [(256 * KIB, small_bound), (8192 * KIB, large_bound)] {
            if trace && small != (bytes == 256 * KIB) {
                continue;
            }
            let outcomes: Vec<_> =
                (seed0..seed0 + seeds).map(|seed| transfer(link, bytes, step, game, seed, trace)).collect();
            let ideal = link.ideal(bytes);
            let ratio = median(outcomes.iter().map(|o| o.seconds / ideal).collect());
            let worst = outcomes.iter().map(|o| o.seconds / ideal).fold(0.0, f64::max);
            let retransmit = median(outcomes.iter().map(|o| o.retransmit * 100.0).collect());
            let game_p99 = median(outcomes.iter().map(|o| o.game_p99 * 1e3).collect());
            let lost = median(outcomes.iter().map(|o| o.queue * 100.0).collect());
            let bound = if hz60 { bound * 1.15 } else { bound };
            let verdict = if ratio <= bound { "" } else { "  <---" };
            println!(
                "{index} {bytes:>8} ratio {ratio:.3} (worst {worst:.3}) bound {bound:.3} surplus {retransmit:.2} % lost {lost:.1} % game p99 +{game_p99:.1} ms{verdict}"
            );
        }
    }
}

#[test]
#[ignore]
fn contests() {
    let hz60 = std::env::var("HZ60").is_ok();
    let step = if hz60 { 1.0 / 60.0 } else { 0.001 };
    let trace = std::env::var("TRACE").ok();
    let seeds: u64 = std::env::var("SEEDS").ok().map_or(5, |seeds| seeds.parse().unwrap());
    let links = [(10.0, 50.0), (50.0, 100.0), (100.0, 30.0), (2.0, 150.0), (20.0, 20.0)];
    for (kind, stagger) in
        [("own", 0.0), ("own", 0.3), ("own+", 0.3), ("reno", -0.3), ("reno", 0.0), ("reno", 0.3)]
    {
        for (mbits, rtt) in links {
            let link = LinkSetup::new(mbits, rtt, Loss::None);
            let mut shares = Vec::new();
            let mut queues = Vec::new();
            let mut uses = Vec::new();
            let name = format!("{kind} {stagger} {mbits}x{rtt}");
            if trace.as_ref().is_some_and(|trace| *trace != name) {
                continue;
            }
            for seed in 1..=seeds {
                let mut world = World::new(link, Duration::from_secs_f64(step), seed);
                world.add(adaptive(trace.is_some()), adaptive(false));
                let other: Box<dyn Controller> =
                    if kind == "reno" { Box::new(Reno::new()) } else { adaptive(false) };
                world.add(other, adaptive(false));
                // The newcomer of "own+" has not known the link when it was empty.
                world.game = true;
                world.run_until(Instant::from_millis(1000 + seed * 7));
                world.game = std::env::var("GAME").is_ok();
                let size = 8192 * KIB;
                let alone = link.ideal(size);
                let (first, second) = if stagger < 0.0 { (1, 0) } else { (0, 1) };
                world.begin(first, size * 4, false);
                let wait = Duration::from_secs_f64(alone * f64::abs(stagger));
                world.run_until(world.now + wait);
                if kind == "own+" {
                    world.flows[second][0].controller = adaptive(false);
                }
                world.begin(second, size * 4, false);
                let began = world.now;
                let before: Vec<_> = world.flows.iter().map(|flow| flow[1].delivered_slices).collect();
                world.flows[0][1].game_latency.clear();
                world.run_until(began + Duration::from_secs_f64(2.0 * alone));
                let after: Vec<_> = world.flows.iter().map(|flow| flow[1].delivered_slices).collect();
                let mine = (after[0] - before[0]) as f64;
                let theirs = (after[1] - before[1]) as f64;
                shares.push(mine / (mine + theirs));
                uses.push((mine + theirs) * 1215.0 / link.rate / (2.0 * alone));
                queues.push(world.wires[0].mean_delay() * 1e3);
            }
            let jain: Vec<f64> =
                shares.iter().map(|x| 1.0 / (2.0 * (x * x + (1.0 - x) * (1.0 - x)))).collect();
            println!(
                "{name}: jain {:.3} (worst {:.3}) share {:.3?} use {:.3} mean queue {:.1} ms",
                median(jain.clone()),
                jain.iter().copied().fold(1.0, f64::min),
                shares,
                median(uses),
                median(queues)
            );
        }
    }
}

#[test]
#[ignore]
fn changes() {
    let trace = std::env::var("TRACE").ok();
    for name in ["drop", "rise", "rtt up", "rtt down", "silence", "jitter", "shallow", "idle"] {
        if trace.as_ref().is_some_and(|trace| *trace != name) {
            continue;
        }
        let mut link = LinkSetup::new(10.0, 50.0, Loss::None);
        if name == "shallow" {
            link.queue = 5_000.0;
        }
        let mut world = World::new(link, Duration::from_secs_f64(0.001), 3);
        world.add(adaptive(trace.is_some()), adaptive(false));
        world.game = true;
        world.run_until(Instant::from_millis(1000));
        if name == "jitter" {
            world.wires[0].jitter = 0.010;
        }
        world.begin(0, 200 << 20, false);
        let mut line = String::new();
        let mut seen = 0;
        for second in 1..=40u64 {
            match (name, second) {
                ("drop", 6) => world.wires[0].setup.rate /= 10.0,
                ("drop", 26) | ("rise", 6) => world.wires[0].setup.rate *= 10.0,
                ("rtt up", 6) => world.wires[0].setup.rtt += 0.1,
                ("rtt down", 6) => world.wires[0].setup.rtt -= 0.03,
                ("silence", 6) => world.wires[0].setup.loss = Loss::Each(1.0),
                ("silence", 9) => world.wires[0].setup.loss = Loss::None,
                _ => {}
            }
            world.wires[0].reset_delay();
            world.run_until(Instant::from_millis(1000 + second * 1000));
            let slices = world.flows[0][1].delivered_slices;
            let mbits = (slices - seen) as f64 * 1215.0 * 8.0 / 1e6;
            seen = slices;
            line += &format!("{mbits:.1}/{:.0} ", world.wires[0].mean_delay() * 1e3);
        }
        println!("{name}: jain Mbit/s / mean queue ms of each second: {line}");
    }
}

#[test]
#[ignore]
fn probe() {
    for seed in 1..4 {
        let link = LinkSetup::new(2.0, 150.0, Loss::Each(0.03));
        let mut world = World::new(link, Duration::from_secs_f64(0.001), seed);
        world.add(adaptive(false), adaptive(false));
        world.game = true;
        world.run_until(Instant::from_millis(1000 + seed));
        world.flows[0][1].game_latency.clear();
        world.begin(0, 8192 * KIB, false);
        world.run_to_finish(0, 200.0);
        let line: Vec<String> = world.flows[0][1].game_latency.chunks(30).map(|chunk| {
            let most = chunk.iter().copied().fold(0.0, f64::max) - link.rtt / 2.0;
            format!("{:.0}", most * 1e3)
        }).collect();
        println!("jain {}", line.join(" "));
    }
}
