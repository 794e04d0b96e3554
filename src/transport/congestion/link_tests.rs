//! The adaptive controller on links of many kinds, in virtual time.

use super::simulation::{Controller, LinkSetup, Loss, Reno, World};
use super::*;

const KIB: usize = 1024;
const LARGE: usize = 8 * 1024 * KIB;
const AT_ONCE: Duration = Duration::from_millis(1);
const SIXTY_HERTZ: Duration = Duration::from_nanos(16_666_667);

fn adaptive() -> Box<dyn Controller> {
    Box::new(Adaptive::new(CongestionConfig::default()))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The tested links, with the maximum of a block's time with a burst and of a large one, as multiples of the ideal.
fn links() -> [(LinkSetup, f64, f64); 6] {
    let bursts = Loss::Bursts { mean: 5.0, share: 0.05 };
    let outages = Loss::Outages { mean: 0.005, share: 0.05 };
    [
        (LinkSetup::new(10.0, 50.0, Loss::None), 1.05, 1.09),
        (LinkSetup::new(10.0, 50.0, Loss::Each(0.02)), 1.25, 1.10),
        (LinkSetup::new(50.0, 100.0, Loss::Each(0.01)), 1.5, 1.31),
        (LinkSetup::new(100.0, 30.0, bursts), 2.5, 1.30),
        (LinkSetup::new(100.0, 30.0, outages), 1.5, 1.30),
        (LinkSetup::new(2.0, 150.0, Loss::Each(0.03)), 1.25, 1.12),
    ]
}

struct Outcome {
    ratio: f64,
    /// Bytes resent beyond 1.3 times the lost ones, as a share of the block.
    surplus: f64,
    /// The 99th percentile of game packets' lateness in seconds.
    game_delay: f64,
}

/// Transfers one block over a connection that is a second old.
fn transfer(link: LinkSetup, bytes: usize, tick: Duration, game: bool, seed: u64) -> Outcome {
    let mut world = World::new(link, tick, seed);
    world.add(adaptive(), adaptive());
    world.game = true;
    world.run_until(Instant::from_millis(1000 + seed));
    world.game = game;
    let lost_before = world.wires[0].lost_bytes;
    world.flows[0][1].game_latency.clear();
    world.begin(0, bytes, bytes <= 256 * KIB);
    let seconds = world.run_to_finish(0, 200.0);
    let needed = bytes as f64 * 1215.0 / 1152.0;
    let lost = (world.wires[0].lost_bytes - lost_before) as f64;
    let sent = world.flows[0][0].bulk_sent as f64;
    let mut game = world.flows[0][1].game_latency.clone();
    game.sort_by(f64::total_cmp);
    let game_delay = game.get(game.len() * 99 / 100).map_or(0.0, |latency| latency - link.rtt / 2.0);
    Outcome { ratio: seconds / link.ideal(bytes), surplus: (sent - needed - 1.3 * lost) / needed, game_delay }
}

/// The medians of this many seeds.
fn transfers(link: LinkSetup, bytes: usize, tick: Duration, game: bool, seeds: u64) -> Outcome {
    let outcomes: Vec<_> = (1..=seeds).map(|seed| transfer(link, bytes, tick, game, seed)).collect();
    let outcome = Outcome {
        ratio: median(outcomes.iter().map(|outcome| outcome.ratio)),
        surplus: median(outcomes.iter().map(|outcome| outcome.surplus)),
        game_delay: median(outcomes.iter().map(|outcome| outcome.game_delay)),
    };
    let mbits = link.rate * 8e-6;
    println!(
        "{mbits:>5} Mbit/s {:>5.0} ms {:<42} {bytes:>8} tick {:>4.0} ms: {:.3} x ideal, surplus {:>6.2} %, game +{:.1} ms",
        link.rtt * 1e3,
        format!("{:?}", link.loss),
        tick.as_secs_f64() * 1e3,
        outcome.ratio,
        outcome.surplus * 100.0,
        outcome.game_delay * 1e3
    );
    outcome
}

#[test]
fn blocks_take_little_more_than_the_ideal_time() {
    for (link, most, _) in links() {
        let outcome = transfers(link, 256 * KIB, AT_ONCE, false, 25);
        assert!(outcome.ratio <= most && outcome.surplus <= 0.02, "{link:?}");
    }
}

#[test]
fn large_blocks_take_little_more_than_the_ideal_time() {
    for (link, _, most) in links() {
        let outcome = transfers(link, LARGE, AT_ONCE, false, 9);
        assert!(outcome.ratio <= most && outcome.surplus <= 0.02, "{link:?}");
    }
}

#[test]
fn ends_that_act_sixty_times_a_second_fill_the_link_too() {
    for (link, _, most) in links() {
        let outcome = transfers(link, LARGE, SIXTY_HERTZ, false, 15);
        // With acks once a tick, rates are unknown until a round lasts many ticks: some more round trips.
        assert!(outcome.ratio <= 1.2 * most && outcome.surplus <= 0.02, "{link:?}");
    }
}

/// How many times the ideal a large transfer takes over a link without losses, to a receiver that reads so often.
fn times_ideal(mbit: f64, rtt: f64, sender: Duration, receiver: u64, seed: u64) -> f64 {
    let link = LinkSetup { queue: 1e6, ..LinkSetup::new(mbit, rtt, Loss::None) };
    let mut world = World::new(link, sender, seed);
    world.step[1] = Duration::from_micros(receiver);
    world.add(adaptive(), adaptive());
    world.begin(0, LARGE, false);
    world.run_to_finish(0, 10.0) / link.ideal(LARGE)
}

#[test]
fn a_path_shorter_than_the_time_between_packets_is_filled() {
    for receiver in [50, 300, 1_000] {
        let ratio = times_ideal(800.0, 0.1, AT_ONCE, receiver, 1);
        assert!(ratio < 1.6, "{ratio} x ideal with reads each {receiver} microseconds");
    }
}

#[test]
fn ticks_longer_than_the_path_do_not_hold_it_up() {
    for (receiver, seed) in [(1_000, 1), (16_667, 1), (16_667, 2), (16_667, 3), (16_667, 4)] {
        let ratio = times_ideal(100.0, 10.0, Duration::from_micros(16_667), receiver, seed);
        assert!(ratio < 1.5, "{ratio} x ideal with reads each {receiver} microseconds, seed {seed}");
    }
}

/// The seconds that a large transfer takes if nothing passes for some milliseconds of it, beside these.
fn seconds_without_outage(link: LinkSetup, tick: Duration, began: u64, lasted: u64) -> f64 {
    let mut world = World::new(link, tick, 1);
    world.add(adaptive(), adaptive());
    world.begin(0, LARGE, false);
    world.run_until(Instant::from_millis(began));
    world.wires.iter_mut().for_each(|wire| wire.setup.loss = Loss::Each(1.0));
    world.run_until(Instant::from_millis(began + lasted));
    world.wires.iter_mut().for_each(|wire| wire.setup.loss = link.loss);
    world.run_to_finish(0, 60.0) - 1e-3 * lasted as f64
}

#[test]
fn an_outage_costs_little_more_than_its_own_time() {
    let clear = |mbits, rtt| LinkSetup::new(mbits, rtt, Loss::None);
    for (link, tick) in [
        (clear(50.0, 50.0), AT_ONCE),
        (clear(50.0, 50.0), SIXTY_HERTZ),
        (clear(10.0, 100.0), SIXTY_HERTZ),
        (clear(100.0, 30.0), SIXTY_HERTZ),
    ] {
        let usual = seconds_without_outage(link, tick, 0, 0);
        for began in [50, 150, 300, 500, 700] {
            for lasted in [300, 1_000, 3_000] {
                let more = seconds_without_outage(link, tick, began, lasted) - usual;
                assert!(
                    more < 0.3,
                    "{link:?}, {tick:?}: {more:.2} s more if from {began} ms for {lasted} ms"
                );
            }
        }
    }
}

#[test]
fn a_sender_that_hangs_goes_on_as_before() {
    let link = LinkSetup { queue: 2e5, ..LinkSetup::new(24.0, 50.0, Loss::None) };
    for (at, seed) in (700..1500).step_by(50).zip(1..) {
        let mut world = World::new(link, SIXTY_HERTZ, seed);
        world.game = true;
        world.add(adaptive(), adaptive());
        world.begin(0, LARGE, false);
        world.run_until(Instant::from_millis(at));
        world.step[0] = Duration::from_secs(2);
        world.run_until(Instant::from_millis(at + 1_900));
        world.step[0] = SIXTY_HERTZ;
        let more = world.run_to_finish(0, 60.0) - 2.0 - link.ideal(LARGE);
        assert!(more < 1.5, "seed {seed}: {more:.2} s more if from {at} ms");
    }
}

#[test]
fn game_packets_hardly_wait() {
    for (link, ..) in links() {
        let outcome = transfers(link, LARGE, AT_ONCE, true, 9);
        // A bulk packet in transmission delays any other.
        assert!(outcome.game_delay <= 0.030 + 1215.0 / link.rate, "{link:?}");
    }
}

/// The first flow's share of two flows' bytes in the time that both blocks need, when `newcomer` begins later by
/// `head_start` times one block's time.
fn share(link: LinkSetup, reno: bool, newcomer: usize, head_start: f64, seed: u64) -> f64 {
    let mut world = World::new(link, AT_ONCE, seed);
    world.add(adaptive(), adaptive());
    world.add(if reno { Box::new(Reno::new()) } else { adaptive() }, adaptive());
    world.game = true;
    world.run_until(Instant::from_millis(1000 + seed * 7));
    world.game = false;
    let alone = link.ideal(LARGE);
    world.begin(1 - newcomer, LARGE * 12, false);
    world.run_until(world.now + Duration::from_secs_f64(alone * head_start));
    world.begin(newcomer, LARGE * 12, false);
    let slices = |world: &World| [0, 1].map(|flow: usize| world.flows[flow][1].delivered_slices as f64);
    let before = slices(&world);
    world.run_until(world.now + Duration::from_secs_f64(6.0 * alone));
    let after = slices(&world);
    (after[0] - before[0]) / (after[0] - before[0] + after[1] - before[1])
}

const SHARED: [(f64, f64); 5] = [(10.0, 50.0), (50.0, 100.0), (100.0, 30.0), (2.0, 150.0), (20.0, 20.0)];

#[test]
fn two_transfers_share_a_link() {
    for (mbits, rtt) in SHARED {
        for (head_start, least) in [(0.0, 0.85), (0.3, 0.68)] {
            let link = LinkSetup::new(mbits, rtt, Loss::None);
            let jain = |share: f64| 1.0 / (2.0 * (share * share + (1.0 - share) * (1.0 - share)));
            let index = median((1..=3).map(|seed| jain(share(link, false, 1, head_start, seed))));
            println!("{mbits} Mbit/s {rtt} ms, {head_start} apart: Jain's index {index:.3}");
            assert!(index >= least, "{link:?}");
        }
    }
}

#[test]
fn neither_reno_nor_we_starve_beside_each_other() {
    for (mbits, rtt) in SHARED {
        for (newcomer, head_start) in [(0, 0.3), (0, 0.0), (1, 0.3)] {
            let link = LinkSetup::new(mbits, rtt, Loss::None);
            let ours = median((1..=3).map(|seed| share(link, true, newcomer, head_start, seed)));
            println!("{mbits} Mbit/s {rtt} ms, newcomer {newcomer} after {head_start}: our share {ours:.3}");
            // A newcomer's window needs some seconds more to grow, as Cubic's does.
            let least = if (newcomer, head_start) == (0, 0.3) { 0.2 } else { 0.25 };
            assert!((least..=0.75).contains(&ours), "{link:?}");
        }
    }
}

/// Mbit/s delivered and the mean queueing delay in milliseconds, for each second, on a changing link.
fn each_second(link: LinkSetup, seconds: u64, mut change: impl FnMut(u64, &mut World)) -> Vec<(f64, f64)> {
    let mut world = World::new(link, AT_ONCE, 3);
    world.add(adaptive(), adaptive());
    world.game = true;
    world.run_until(Instant::from_millis(1000));
    world.begin(0, 1 << 28, false);
    let mut seen = 0;
    let each = (1..=seconds).map(|second| {
        change(second, &mut world);
        world.wires[0].reset_delay();
        world.run_until(Instant::from_millis(1000 + second * 1000));
        let slices = world.flows[0][1].delivered_slices;
        let mbits = (slices - core::mem::replace(&mut seen, slices)) as f64 * 1215.0 * 8e-6;
        (mbits, world.wires[0].mean_delay() * 1e3)
    });
    let each: Vec<_> = each.collect();
    let line: Vec<_> = each.iter().map(|(mbits, queue)| format!("{mbits:.1}/{queue:.0}")).collect();
    println!("Mbit/s and ms of queue, each second: {}", line.join(" "));
    each
}

fn ten_mbits() -> LinkSetup {
    LinkSetup::new(10.0, 50.0, Loss::None)
}

#[test]
fn a_rate_that_falls_to_a_tenth_and_rises_again_is_followed() {
    let seconds = each_second(ten_mbits(), 32, |second, world| match second {
        6 => world.wires[0].setup.rate /= 10.0,
        22 => world.wires[0].setup.rate *= 10.0,
        _ => {}
    });
    assert!(seconds[1..5].iter().all(|(mbits, queue)| *mbits > 9.5 && *queue < 15.0));
    // 127 kbit/s of game packets are added to these.
    assert!(seconds[6..21].iter().all(|(mbits, queue)| *mbits > 0.75 && *queue < 50.0));
    assert!(seconds[24..].iter().all(|(mbits, queue)| *mbits > 9.5 && *queue < 15.0));
}

#[test]
fn three_seconds_of_silence_are_over_when_they_are_over() {
    let seconds = each_second(ten_mbits(), 20, |second, world| match second {
        6 => world.wires[0].setup.loss = Loss::Each(1.0),
        9 => world.wires[0].setup.loss = Loss::None,
        _ => {}
    });
    assert!(seconds[8].0 > 8.0);
    assert!(seconds[9..].iter().all(|(mbits, queue)| *mbits > 8.5 && *queue < 35.0));
}

#[test]
fn a_longer_or_shorter_route_is_learned() {
    for (step, settled) in [(0.1, 22), (-0.03, 8)] {
        let seconds = each_second(ten_mbits(), 30, |second, world| {
            if second == 6 {
                world.wires[0].setup.rtt += step;
            }
        });
        assert!(seconds[settled..].iter().all(|(mbits, queue)| *mbits > 9.0 && *queue < 20.0));
    }
}

#[test]
fn jitter_and_a_queue_of_four_packets_are_no_hindrance() {
    let seconds = each_second(ten_mbits(), 12, |_, world| world.wires[0].jitter = 0.010);
    assert!(seconds[1..].iter().all(|(mbits, queue)| *mbits > 9.3 && *queue < 25.0));
    let seconds = each_second(LinkSetup { queue: 5_000.0, ..ten_mbits() }, 12, |_, _| {});
    // The queue is never filled beyond its capacity: this costs a tenth of the rate, but hardly any losses.
    assert!(seconds[4..].iter().all(|(mbits, _)| *mbits > 8.7));
}
