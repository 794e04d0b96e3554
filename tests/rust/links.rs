//! Simulated links, measured over 100,000 packets and compared with their settings, within 3 sigma.

use tickwire::netsim::conditions::{Bursts, Conditions};
use tickwire::netsim::link::{Link, LinkCounters};
use tickwire::netsim::presets;
use tickwire::rng::Rng;
use tickwire::time::{Duration, Instant};

const N: u64 = 100_000;

/// One packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Arrival {
    number: u64,
    at: Instant,
    delay: Duration,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn secs(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[track_caller]
fn within_3_sigma(measured: f64, expected: f64, sigma: f64) {
    let off = (measured - expected).abs() / sigma;
    assert!(off < 3.0, "measured {measured}, set {expected}: {off:.1} sigma");
}

/// A number of successes among independent trials.
#[track_caller]
fn is_binomial(successes: u64, trials: u64, p: f64) {
    let trials = trials as f64;
    within_3_sigma(successes as f64, trials * p, (trials * p * (1.0 - p)).sqrt());
}

/// Takes out all that comes out by `until`.
fn drain(link: &mut Link<(u64, Instant)>, until: Instant, out: &mut Vec<Arrival>) {
    while let Some(at) = link.next_delivery().filter(|at| *at <= until) {
        while let Some((number, sent)) = link.poll(at) {
            out.push(Arrival { number, at, delay: at - sent });
        }
    }
}

/// Sends `N` packets of 972 bytes, with headers 1000, one each `spacing`.
fn run(link: &mut Link<(u64, Instant)>, spacing: Duration) -> Vec<Arrival> {
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    for number in 0..N {
        drain(link, now, &mut out);
        link.send(now, (number, now), 972);
        now += spacing;
    }
    drain(link, Instant::NEVER, &mut out);
    out
}

fn measure(conditions: Conditions, seed: u64, spacing: Duration) -> (Vec<Arrival>, LinkCounters) {
    let mut link = Link::new(conditions, seed).unwrap();
    let out = run(&mut link, spacing);
    (out, link.counters())
}

/// Whether each packet arrived.
fn fates(arrivals: &[Arrival]) -> Vec<bool> {
    let mut arrived = vec![false; N as usize];
    arrivals.iter().for_each(|arrival| arrived[arrival.number as usize] = true);
    arrived
}

/// The lengths of the runs of lost packets.
fn loss_runs(arrivals: &[Arrival]) -> Vec<u64> {
    let fates = fates(arrivals);
    fates.chunk_by(|a, b| a == b).filter(|run| !run[0]).map(|run| run.len() as u64).collect()
}

/// Runs that each go on with the same probability after each packet.
#[track_caller]
fn are_geometric(runs: &[u64], mean: f64) {
    let count = runs.len() as f64;
    let measured = runs.iter().sum::<u64>() as f64 / count;
    within_3_sigma(measured, mean, (mean * (mean - 1.0) / count).sqrt());
    let longer = runs.iter().filter(|run| **run as f64 > mean).count() as u64;
    is_binomial(longer, runs.len() as u64, (1.0 - 1.0 / mean).powf(mean.floor()));
}

/// Numbers that are uniform and independent: a tenth of them in each tenth of the range.
#[track_caller]
fn are_uniform(values: impl Iterator<Item = f64>, low: f64, high: f64) {
    let mut tenths = [0u64; 10];
    let mut count = 0;
    for value in values {
        let place = (value - low) / (high - low);
        assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{value} is outside {low}..{high}");
        tenths[((place * 10.0) as usize).min(9)] += 1;
        count += 1;
    }
    tenths.iter().for_each(|tenth| is_binomial(*tenth, count, 0.1));
}

fn in_order(arrivals: &[Arrival]) -> bool {
    arrivals.windows(2).all(|pair| pair[0].number < pair[1].number)
}

#[test]
fn a_saturated_link_passes_its_rate_and_fills_its_queue() {
    let conditions = Conditions::perfect().rate(1_000_000, 50_000).latency(ms(10), ms(0));
    // Offered twice what passes.
    let (out, counters) = measure(conditions, 1, Duration::from_micros(500));
    assert_eq!(counters.delivered + counters.queue_dropped, N);
    assert!(out.windows(2).all(|pair| pair[1].at - pair[0].at == ms(1)), "a packet each millisecond");
    assert!(in_order(&out));
    assert_eq!(out[0].delay, ms(11), "its own transmission and the latency");
    let longest = out.iter().map(|arrival| arrival.delay).max().unwrap();
    assert!(longest <= ms(60) && longest > ms(59), "{longest:?}: a full queue is 50 ms of the rate");
}

#[test]
fn a_link_below_its_rate_delays_by_the_transmission_only() {
    let (out, counters) =
        measure(Conditions::perfect().rate(1_000_000, 1000), 1, Duration::from_micros(1100));
    assert!(out.iter().all(|arrival| arrival.delay == ms(1)));
    assert_eq!((counters.delivered, counters.queue_dropped), (N, 0));
}

#[test]
fn a_lost_packet_takes_its_turn_and_a_copy_takes_none() {
    let conditions = Conditions::perfect().rate(1_000_000, 50_000).loss(0.3).duplicate(0.2);
    let (out, counters) = measure(conditions, 2, ms(1));
    assert!(out.iter().all(|arrival| arrival.delay == ms(1)));
    is_binomial(counters.lost, N, 0.3);
    is_binomial(counters.duplicated, N - counters.lost, 0.2);
    assert_eq!(counters.delivered, N - counters.lost + counters.duplicated);
}

/// Packets of all sizes at all times, against a model: bytes that drain at the rate.
#[test]
fn the_queue_never_holds_more_than_its_bytes_and_drops_only_for_them() {
    const QUEUE: u64 = 20_000;
    let mut link = Link::new(Conditions::perfect().rate(500_000, QUEUE).overhead(40), 3).unwrap();
    let mut rng = Rng::seeded(3);
    let (mut now, mut waiting, mut fullest) = (Instant::ZERO, std::collections::VecDeque::new(), 0);
    let mut free = Instant::ZERO;
    for _ in 0..N {
        now += Duration::from_micros(rng.below(3000));
        let bytes = rng.below(1461);
        while waiting.front().is_some_and(|(leaves, _)| *leaves <= now) {
            waiting.pop_front();
        }
        let before: u64 = waiting.iter().map(|(_, size)| size).sum();
        let dropped = link.counters().queue_dropped;
        link.send(now, (), bytes as usize);
        let fits = before + bytes + 40 <= QUEUE;
        assert_eq!(link.counters().queue_dropped - dropped, u64::from(!fits));
        if fits {
            free = free.max(now) + Duration::from_nanos((bytes + 40) * 2000);
            waiting.push_back((free, bytes + 40));
        }
        assert_eq!(link.queued_bytes(), waiting.iter().map(|(_, size)| size).sum::<u64>());
        assert!(link.queued_bytes() <= QUEUE);
        fullest = fullest.max(link.queued_bytes());
        while link.poll(now).is_some() {}
    }
    assert!(link.counters().queue_dropped > 1000 && fullest > QUEUE - 1500, "it was full now and then");
}

#[test]
fn bursts_lose_as_many_and_as_long_as_set() {
    for (loss, length) in [(0.02, 5.0), (0.2, 3.0), (0.05, 20.0), (0.5, 1.0)] {
        let bursts = Bursts::mean(loss, length).unwrap();
        let (out, counters) = measure(Conditions::perfect().bursts(bursts), 4, ms(1));
        assert_eq!((counters.lost, counters.lost_in_bursts), (0, N - out.len() as u64));
        // The losses of neighbours go together: the variance of their sum is that much larger.
        let memory = 1.0 - bursts.to_bad - bursts.to_good;
        let variance = N as f64 * loss * (1.0 - loss) * (1.0 + memory) / (1.0 - memory);
        within_3_sigma(counters.lost_in_bursts as f64, N as f64 * loss, variance.sqrt().max(1.0));
        if length > 1.0 {
            are_geometric(&loss_runs(&out), length);
        } else {
            assert!(loss_runs(&out).iter().all(|run| *run == 1), "every second packet");
        }
    }
}

#[test]
fn both_states_of_a_chain_lose_what_is_set() {
    let bursts = Bursts { to_bad: 0.05, to_good: 0.2, good_loss: 0.01, bad_loss: 0.4 };
    let (_, counters) = measure(Conditions::perfect().bursts(bursts), 5, ms(1));
    let (bad, memory) = (0.05 / 0.25, 1.0 - 0.25);
    let loss: f64 = (1.0 - bad) * 0.01 + bad * 0.4;
    let chain = bad * (1.0 - bad) * 0.39f64.powi(2);
    let variance = loss * (1.0 - loss) + 2.0 * chain * memory / (1.0 - memory);
    within_3_sigma(counters.lost_in_bursts as f64, N as f64 * loss, (N as f64 * variance).sqrt());
}

#[test]
fn outages_take_their_fraction_of_time_whatever_is_sent() {
    for (duration, fraction, spacing) in [(20, 0.1, 1), (100, 0.05, 10), (50, 0.5, 1)] {
        let conditions = Conditions::perfect().outages(ms(duration), fraction);
        let (out, counters) = measure(conditions, 6, ms(spacing));
        assert_eq!(counters.lost_in_outages, N - out.len() as u64);
        // Seen once each `spacing`, an outage goes on with this probability.
        let memory = (-(spacing as f64) / (duration as f64 * (1.0 - fraction))).exp();
        let mean = 1.0 / ((1.0 - fraction) * (1.0 - memory));
        are_geometric(&loss_runs(&out), mean);
        assert!((mean * spacing as f64 / duration as f64 - 1.0).abs() < 0.06, "{mean}: about the duration");
        let variance = N as f64 * fraction * (1.0 - fraction) * (1.0 + memory) / (1.0 - memory);
        within_3_sigma(counters.lost_in_outages as f64, N as f64 * fraction, variance.sqrt());
    }
}

#[test]
fn outages_depend_on_the_clock_and_bursts_on_the_packets() {
    let outages = Conditions::perfect().outages(ms(100), 0.2);
    let bursts = Conditions::perfect().bursts(Bursts::mean(0.2, 10.0).unwrap());
    let mean = |conditions, spacing| {
        let runs = loss_runs(&measure(conditions, 7, spacing).0);
        runs.iter().sum::<u64>() as f64 / runs.len() as f64
    };
    let (dense, sparse) = (Duration::from_millis(5), Duration::from_millis(20));
    assert!((mean(outages, dense) / mean(outages, sparse) - 4.0).abs() < 0.8);
    assert_eq!(mean(bursts, dense), mean(bursts, sparse));
}

#[test]
fn jitter_is_uniform_and_reorders() {
    let (out, counters) = measure(Conditions::perfect().latency(ms(50), ms(20)), 8, ms(1));
    are_uniform(out.iter().map(|arrival| secs(arrival.delay)), 0.03, 0.07);
    assert_eq!((counters.delivered, counters.reordered), (N, 0));
    assert!(!in_order(&out), "jitter alone reorders");
}

#[test]
fn duplicates_and_held_back_packets_are_as_many_as_set() {
    let conditions = Conditions::perfect().latency(ms(5), ms(0)).duplicate(0.05).reorder(0.1, ms(30));
    let (out, counters) = measure(conditions, 9, ms(1));
    is_binomial(counters.duplicated, N, 0.05);
    is_binomial(counters.reordered, N + counters.duplicated, 0.1);
    let held = out.iter().filter(|arrival| arrival.delay == ms(35)).count() as u64;
    let prompt = out.iter().filter(|arrival| arrival.delay == ms(5)).count() as u64;
    assert_eq!((held, prompt + held), (counters.reordered, N + counters.duplicated));
}

#[test]
fn a_wandering_delay_is_uniform_over_all_and_similar_for_neighbours() {
    let conditions = Conditions::perfect().latency(ms(50), ms(0)).random_walk(ms(20), ms(100));
    // So far apart, packets know nothing of each other.
    let (out, _) = measure(conditions, 10, ms(2000));
    are_uniform(out.iter().map(|arrival| secs(arrival.delay)), 0.03, 0.07);

    let (out, _) = measure(conditions.random_walk(ms(20), ms(500)), 10, ms(10));
    assert!(in_order(&out));
    let delays: Vec<f64> = out.iter().map(|arrival| secs(arrival.delay) - 0.05).collect();
    let product = |lag: usize| {
        let pairs = delays.iter().zip(&delays[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>() / (delays.len() - lag) as f64
    };
    for (lag, correlation) in [(1, 0.98), (25, (-0.5f64).exp()), (50, (-1f64).exp()), (250, 0.0)] {
        // 2,000 stretches of half a second know nothing of each other.
        within_3_sigma(product(lag) / product(0), correlation, 1.0 / 2000f64.sqrt());
    }
}

#[test]
fn a_wandering_delay_never_reorders_however_dense_the_packets() {
    for spacing in [10, 100, 1000] {
        let conditions = Conditions::perfect().latency(ms(50), ms(0)).random_walk(ms(50), ms(50));
        let (out, _) = measure(conditions, 11, Duration::from_micros(spacing));
        assert!(in_order(&out) && out.len() as u64 == N);
    }
}

#[test]
fn a_script_changes_rate_silence_and_latency_at_its_times() {
    let base = Conditions::perfect().rate(1_000_000, 100_000).latency(ms(20), ms(0));
    let mut link = Link::new(base, 12).unwrap();
    // Told in any order.
    link.schedule(at(60_000), base.latency(ms(80), ms(0))).unwrap();
    link.schedule(at(20_000), base.rate(400_000, 100_000)).unwrap();
    link.schedule(at(30_000), base).unwrap();
    link.schedule(at(40_000), base.loss(1.0)).unwrap();
    link.schedule(at(43_000), base).unwrap();
    // Half the rate: 2 ms each.
    let out = run(&mut link, ms(2));
    let sent = |from: u64, to: u64| {
        out.iter().filter(move |arrival| (from..to).contains(&(arrival.number * 2))).collect::<Vec<_>>()
    };
    assert!(sent(0, 20_000).iter().all(|arrival| arrival.delay == ms(21)));
    // 500 bytes a millisecond come, 400 go: the queue fills in a second, then a fifth is dropped.
    let slow = sent(22_000, 30_000);
    assert!((3150..3250).contains(&slow.len()), "{}", slow.len());
    assert!(slow.windows(2).all(|pair| pair[0].at < at(30_020) || pair[1].at - pair[0].at <= ms(2)));
    assert!(slow.iter().any(|arrival| arrival.delay > ms(265)), "a full queue is 250 ms at the slow rate");
    // Each leaves within 1 ms.
    assert!(sent(39_999, 43_000).iter().all(|arrival| arrival.number * 2 >= 42_999));
    assert_eq!(link.counters().lost, 1500);
    assert!(sent(44_000, 59_998).iter().all(|arrival| arrival.delay == ms(21)));
    assert!(sent(60_000, 2 * N).iter().all(|arrival| arrival.delay == ms(81)));
}

#[test]
fn a_change_of_rate_keeps_the_bytes_in_the_queue_and_what_is_beyond_keeps_its_fate() {
    let base = Conditions::perfect().rate(100_000, 10_000).latency(ms(50), ms(0));
    let mut link = Link::new(base, 13).unwrap();
    (0..10).for_each(|number| link.send(Instant::ZERO, (number, Instant::ZERO), 972));
    assert_eq!(link.poll(at(20)), None);
    // Two have left, after 10 ms each; the others leave after 100 ms each.
    link.set_conditions(base.rate(10_000, 1).latency(ms(500), ms(0))).unwrap();
    assert_eq!(link.queued_bytes(), 8000);
    let mut out = Vec::new();
    drain(&mut link, Instant::NEVER, &mut out);
    let times: Vec<_> = out.iter().map(|arrival| arrival.at).collect();
    let expected = [60, 70].into_iter().chain((1..=8).map(|n| 20 + n * 100 + 500));
    assert_eq!(times, expected.map(at).collect::<Vec<_>>());
}

#[test]
fn a_seed_is_one_history_of_everything_at_once() {
    let everything = Conditions::perfect()
        .rate(800_000, 30_000)
        .outages(ms(50), 0.02)
        .bursts(Bursts::mean(0.02, 3.0).unwrap())
        .loss(0.01)
        .duplicate(0.01)
        .latency(ms(60), ms(5))
        .random_walk(ms(30), ms(200))
        .reorder(0.01, ms(40));
    let (out, counters) = measure(everything, 14, ms(1));
    assert_eq!((out.clone(), counters), measure(everything, 14, ms(1)));
    assert_ne!(out, measure(everything, 15, ms(1)).0);
    for (name, count) in counters.iter().filter(|(name, _)| !["overflowed", "too_large"].contains(name)) {
        assert!(count > 100, "{name}: {count}");
    }
    let lost = counters.queue_dropped + counters.lost + counters.lost_in_bursts + counters.lost_in_outages;
    assert_eq!(counters.delivered, N - lost + counters.duplicated);
}

#[test]
fn presets_carry_their_rates_in_order() {
    for name in presets::NAMES {
        let preset = presets::named(name).unwrap();
        for conditions in [preset.up, preset.down] {
            let mut link = Link::new(conditions, 16).unwrap();
            let bottleneck = conditions.bottleneck.unwrap();
            let (mut now, mut out, mut sent) = (Instant::ZERO, Vec::new(), 0);
            // A fifth more than passes, for a minute.
            let spacing = Duration::from_secs_f64(1000.0 / bottleneck.rate as f64 / 1.2);
            while now < at(60_000) {
                drain(&mut link, now, &mut out);
                link.send(now, (sent, now), 972);
                sent += 1;
                now += spacing;
            }
            out.sort_by_key(|arrival| arrival.at);
            out.dedup_by_key(|arrival| arrival.number);
            assert!(in_order(&out), "{name}");
            let share = out.len() as f64 * 1000.0 / 60.0 / bottleneck.rate as f64;
            assert!((0.93..1.0).contains(&share), "{name}: {share}");
        }
    }
}
