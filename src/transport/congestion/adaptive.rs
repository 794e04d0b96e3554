//! The adaptive controller.

use super::delay::{Floor, Rhythm};
use super::delivery::{Epoch, LossShare, Train};
use super::{AdaptiveConfig, Controller, SentStamp};
use crate::time::{Duration, Instant};

const PACKET: f64 = 1215.0;
const BASE_BUCKET: Duration = Duration::from_secs(5);
const BASE_UNSEEN: Duration = Duration::from_secs(4);
const UNKNOWN_RTT: f64 = 0.1;
const LONGEST_TICK: f64 = 0.035;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Startup,
    Steady,
}

#[derive(Debug)]
pub(super) struct Adaptive {
    config: AdaptiveConfig,
    phase: Phase,
    base: Floor,
    recent: Floor,
    sends: Rhythm,
    acks: Rhythm,
    train: Train,
    granted: bool,
    epoch: Epoch,
    loss: LossShare,
    /// Bytes a second that arrive when as many go out as the link carries.
    capacity: f64,
    calm: u32,
    in_flight: f64,
    app_limited: bool,
    last_sent: Instant,
    credit: f64,
    pulse_due: bool,
    /// The bytes to send at once in startup to learn more.
    pulse: f64,
    outstanding: f64,
    waiting_since: Instant,
    base_seen: Instant,
    dip_until: Instant,
    judge_at: Option<Instant>,
    last_dip: Instant,
    before_dip: f64,
    least_in_dip: f64,
    crowded: u32,
    contested: bool,
    /// Capacity before others came.
    before_others: f64,
    claim: f64,
    cut_at: Instant,
    calm_judges: u32,
    credit_at: Option<Instant>,
    burst_left: f64,
    burst: f64,
    burst_rate: f64,
    pub(super) trace: bool,
}

impl Adaptive {
    pub(super) fn new(config: AdaptiveConfig) -> Self {
        Adaptive {
            config,
            phase: Phase::Startup,
            base: Floor::default(),
            recent: Floor::default(),
            sends: Rhythm::default(),
            acks: Rhythm::default(),
            train: Train::default(),
            granted: false,
            epoch: Epoch::new(Instant::ZERO),
            loss: LossShare::default(),
            capacity: 0.0,
            calm: 0,
            in_flight: 0.0,
            app_limited: true,
            last_sent: Instant::ZERO,
            credit: 0.0,
            pulse_due: true,
            pulse: f64::from(config.initial_bytes.min(config.max_burst_bytes)),
            outstanding: 0.0,
            waiting_since: Instant::ZERO,
            base_seen: Instant::ZERO,
            dip_until: Instant::ZERO,
            judge_at: None,
            last_dip: Instant::ZERO,
            before_dip: 0.0,
            least_in_dip: 0.0,
            crowded: 0,
            contested: false,
            before_others: 0.0,
            claim: 0.0,
            cut_at: Instant::ZERO,
            calm_judges: 0,
            credit_at: None,
            burst_left: 0.0,
            burst: 0.0,
            burst_rate: 0.0,
            trace: false,
        }
    }

    fn base_rtt(&self) -> f64 {
        self.base.value().unwrap_or(UNKNOWN_RTT)
    }

    fn queue(&self) -> f64 {
        (self.recent.value().unwrap_or(0.0) - self.base_rtt()).max(0.0)
    }

    fn ticks(&self) -> f64 {
        self.sends.interval() + self.acks.interval()
    }

    /// The wait in the queue to aim for, in seconds: less for the fast, so that flows which share a queue converge.
    fn target(&self) -> f64 {
        (8.0 / self.capacity.max(1.0).sqrt()).clamp(0.002, 0.015) + 0.3 * self.ticks()
    }

    fn sending_capacity(&self) -> f64 {
        self.capacity / (1.0 - self.loss.value())
    }

    fn pacing_rate(&self) -> f64 {
        let rate = match self.phase {
            Phase::Startup => {
                let known = self.train.rate().unwrap_or(self.train.least_rate().max(self.capacity));
                if self.burst_left > 0.0 { self.burst_rate.max(known) } else { known }
            }
            Phase::Steady => {
                let correction = 0.35 * (self.target() - self.queue()) / (self.base_rtt() + self.ticks());
                let growth = if self.calm > 0 { 0.025 * f64::from(1 << self.calm.min(5)) } else { 0.0 };
                if self.credit_at.is_some_and(|now| now < self.dip_until) {
                    let drain = (self.queue() / self.base_rtt() + 0.05).min(0.7);
                    return self.sending_capacity() * (1.0 - drain);
                }
                if self.contested {
                    return 1.1 * self.claim / (self.base_rtt() + self.queue());
                }
                self.sending_capacity()
                    * (1.0
                        + if self.calm > 0 { growth.max(correction) } else { correction.clamp(-0.5, 0.15) })
            }
        };
        rate.clamp(self.config.min_bytes_per_second, self.config.max_bytes_per_second)
    }

    fn window(&self) -> f64 {
        if self.phase == Phase::Startup {
            return f64::INFINITY;
        }
        if self.contested {
            return self.claim;
        }
        let slack = 0.25 * self.base_rtt() + 0.01 + self.ticks() + self.target();
        self.sending_capacity() * (self.base_rtt() + slack) + 4.0 * PACKET
    }

    fn startup_window(&self) -> f64 {
        if self.phase == Phase::Startup {
            2.0 * self.pulse + self.burst + self.pacing_rate() * (2.0 * self.base_rtt() + 0.05)
        } else {
            f64::INFINITY
        }
    }

    fn refill(&mut self, now: Instant) {
        let rate = self.pacing_rate();
        let elapsed = self.credit_at.replace(now).map_or(0.0, |at| (now - at).as_secs_f64());
        let horizon = (2.0 * self.sends.interval()).clamp(0.004, LONGEST_TICK);
        let most = (rate * horizon).clamp(2.0 * PACKET, f64::from(self.config.max_burst_bytes));
        // What there is from the start may be more.
        if self.credit < most {
            self.credit = (self.credit + rate * elapsed).min(most);
        }
    }

    fn begin_train(&mut self) {
        self.train = Train::default();
        self.credit = self.pulse;
        self.pulse_due = false;
    }

    fn grow_train(&mut self, now: Instant, acked: &[(SentStamp, bool)]) {
        for (stamp, late) in acked {
            if !*late && stamp.bulk && self.train.on_acked(now, stamp.sent_at, f64::from(stamp.bytes)) {
                self.end_train(now);
                return;
            }
        }
        if self.train.is_settled() {
            self.end_train(now);
        }
    }

    fn end_train(&mut self, now: Instant) {
        if self.trace {
            println!(
                "{:.4} round: rate {:?} least {:.0} queue {:.4} {:?}",
                now.as_secs_f64(),
                self.train.rate(),
                self.train.least_rate(),
                self.queue(),
                self.train,
            );
        }
        let most = f64::from(self.config.max_burst_bytes);
        if let Some(rate) = self.train.rate() {
            self.capacity = rate;
            self.phase = Phase::Steady;
        } else {
            self.capacity = self.capacity.max(self.train.least_rate());
            if self.train.sent_bytes() > 0.75 * self.pulse {
                if self.pulse >= most {
                    self.phase = Phase::Steady;
                }
                self.pulse = (2.0 * self.pulse).min(most);
            }
        }
        self.epoch = Epoch::new(now);
        self.train = Train::default();
        self.pulse_due = true;
    }

    fn begin_dip(&mut self, now: Instant) {
        let base = self.base_rtt();
        self.base_seen = now;
        self.last_dip = now;
        self.dip_until = now + Duration::from_secs_f64(base);
        self.before_dip = self.queue();
        self.least_in_dip = f64::INFINITY;
        self.judge_at = Some(now + Duration::from_secs_f64(2.0 * base + self.queue() + self.ticks()));
    }

    fn judge(&mut self, now: Instant) {
        if self.judge_at.is_some_and(|at| now >= at) {
            self.judge_at = None;
            let others = self.least_in_dip > (1.4 * self.target()).max(0.5 * self.before_dip);
            if others && !self.contested {
                let fair = 0.5 * self.before_others * (self.base_rtt() + self.queue());
                self.claim =
                    fair.clamp(self.in_flight.max(4.0 * PACKET), 4.0 * self.in_flight.max(4.0 * PACKET));
                self.contested = true;
            }
            self.calm_judges = if others { 0 } else { self.calm_judges + 1 };
            self.contested &= self.calm_judges < 2;
            if self.trace {
                println!(
                    "{:.4} epoch judge: before {:.4} least {:.4} contested {}",
                    now.as_secs_f64(),
                    self.before_dip,
                    self.least_in_dip,
                    self.contested
                );
            }
        }
    }

    fn watch_others(&mut self, now: Instant, queue: f64) {
        if queue > 2.0 * self.target() {
            self.crowded += 1;
        } else {
            self.crowded = 0;
            if !self.contested {
                self.before_others = self.capacity;
            }
        }
        if (self.crowded >= 6 || self.contested) && now - self.last_dip > Duration::from_secs(2) {
            self.begin_dip(now);
        }
    }

    fn end_epoch(&mut self, now: Instant) {
        let elapsed = (now - self.epoch.started).as_secs_f64();
        let sample = self.epoch.delivered / elapsed;
        let limited = self.epoch.limited > 0.5 * self.epoch.delivered;
        let queue = self.epoch.least_queue;
        let target = self.target();
        self.watch_others(now, queue);
        if self.contested
            && self.epoch.lost > 2.0 * self.loss.value() * self.epoch.delivered
            && now - self.cut_at > Duration::from_secs_f64(self.base_rtt() + queue.min(1.0))
        {
            self.cut_at = now;
            self.claim = (self.claim * 0.7).max(4.0 * PACKET);
        }
        if queue < 2.0 * target && !self.contested {
            self.loss.add(self.epoch.lost, self.epoch.delivered);
        }
        let fruitful = sample > 1.02 * self.capacity;
        if limited {
            self.capacity = self.capacity.max(sample);
            self.calm = 0;
        } else if queue > 0.5 * target {
            self.capacity += (sample - self.capacity) * 0.5;
            self.calm = 0;
        } else {
            let weight = if sample > self.capacity { 1.0 } else { 0.25 };
            self.capacity += (sample - self.capacity) * weight;
            // Faster for as long as more arrives.
            self.calm = if fruitful || self.calm == 0 { self.calm + 1 } else { 1 };
        }
        if self.trace {
            println!(
                "{:.4} epoch {:.4}: sample {:.0} capacity {:.0} limited {} queue {:.4} target {:.4} loss {:.3} calm {} rate {:.0} in flight {:.0} window {:.0} base {:.4} ticks {:.4}",
                now.as_secs_f64(),
                elapsed,
                sample,
                self.capacity,
                limited,
                queue,
                target,
                self.loss.value(),
                self.calm,
                self.pacing_rate(),
                self.in_flight,
                self.window(),
                self.base_rtt(),
                self.ticks()
            );
        }
        self.epoch = Epoch::new(now);
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.refill(now);
        let size = f64::from(bytes);
        self.credit -= size;
        self.burst_left = (self.burst_left - size).max(0.0);
        if self.outstanding <= 0.0 {
            self.waiting_since = now;
        }
        self.outstanding += size;
        let blind = self.phase == Phase::Startup;
        if !blind {
            self.in_flight += size;
        }
        self.last_sent = now;
        let bulk = core::mem::take(&mut self.granted);
        if bulk && blind {
            self.train.on_sent(now, size);
        }
        SentStamp { sent_at: now, bytes, bulk, blind, app_limited: self.app_limited || !bulk }
    }

    fn on_acked(&mut self, now: Instant, acked: &[(SentStamp, bool)], rtt: Option<Duration>) {
        self.waiting_since = now;
        if self.in_flight > 2.0 * PACKET {
            self.acks.beat(now, LONGEST_TICK);
        }
        if let Some(rtt) = rtt {
            let rtt = rtt.as_secs_f64();
            if rtt <= self.base_rtt() + 0.1 * self.target() {
                self.base_seen = now;
            }
            self.base.push(now, BASE_BUCKET, rtt);
            if (now - self.base_seen) > BASE_UNSEEN {
                self.begin_dip(now);
            }
            let bucket = (self.base_rtt() / 8.0)
                .max(self.ticks())
                .max(2.0 * PACKET / self.capacity.max(PACKET * 20.0));
            if !acked.last().is_some_and(|(stamp, _)| stamp.blind) {
                self.recent.push(now, Duration::from_secs_f64(bucket), rtt);
                self.epoch.least_queue = self.epoch.least_queue.min(self.queue());
                self.least_in_dip = self.least_in_dip.min(rtt - self.base_rtt());
            }
        }
        for (stamp, late) in acked {
            let bytes = f64::from(stamp.bytes);
            if *late {
                if !stamp.blind {
                    self.epoch.lost -= bytes;
                }
            } else {
                self.outstanding -= bytes;
                if !stamp.blind {
                    self.in_flight -= bytes;
                }
            }
            self.epoch.delivered += bytes;
            if self.contested {
                self.claim += PACKET * bytes / self.claim;
            }
            if stamp.app_limited {
                self.epoch.limited += bytes;
            }
        }
        if self.phase == Phase::Startup {
            self.grow_train(now, acked);
        }
        self.judge(now);
        let length = self.base_rtt().max(2.0 * self.ticks()).max(0.01);
        if self.phase == Phase::Steady && (now - self.epoch.started).as_secs_f64() >= length {
            self.end_epoch(now);
        }
    }

    fn on_lost(&mut self, _now: Instant, stamp: SentStamp) {
        let bytes = f64::from(stamp.bytes);
        self.outstanding -= bytes;
        if !stamp.blind {
            self.in_flight -= bytes;
            self.epoch.lost += bytes;
        } else if stamp.bulk {
            self.train.on_lost(stamp.sent_at, bytes);
        }
    }

    fn on_app_limited(&mut self, now: Instant) {
        self.sends.beat(now, LONGEST_TICK);
        self.app_limited = true;
    }

    fn can_send(&mut self, now: Instant) -> bool {
        self.sends.beat(now, LONGEST_TICK);
        if self.phase == Phase::Startup && self.train.is_settled() {
            self.end_train(now);
        }
        if self.phase == Phase::Startup && self.pulse_due {
            self.begin_train();
        }
        self.refill(now);
        let stalled = (now - self.waiting_since).as_secs_f64() > 2.0 * self.base_rtt() + 0.05
            && (now - self.last_sent).as_secs_f64() > 0.5 * self.base_rtt();
        let allowed = stalled
            || (self.credit > 0.0
                && self.in_flight < self.window()
                && self.outstanding < self.startup_window());
        self.app_limited &= allowed;
        self.granted = allowed;
        allowed
    }

    fn next_send(&self) -> Instant {
        let wait = (-self.credit).max(0.0) / self.pacing_rate();
        self.credit_at.map_or(Instant::ZERO, |at| at + Duration::from_secs_f64(wait))
    }

    fn begin_burst(&mut self, _now: Instant, bytes: u32) {
        if self.phase == Phase::Startup && self.capacity == 0.0 {
            self.burst_left = f64::from(bytes);
            self.burst = self.burst_left;
            let paced = (self.burst_left - f64::from(self.config.initial_bytes)).max(0.0);
            self.burst_rate = paced / (0.75 * self.base_rtt());
        }
    }

    fn rate(&self) -> f64 {
        self.pacing_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{LinkSetup, Loss, World};
    use super::*;

    const KIB: usize = 1024;

    fn adaptive(trace: bool) -> Box<dyn Controller> {
        Box::new(Adaptive { trace, ..Adaptive::new(AdaptiveConfig::default()) })
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
                let outcomes: Vec<_> = (seed0..seed0 + seeds)
                    .map(|seed| transfer(link, bytes, step, game, seed, trace))
                    .collect();
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
        use super::super::simulation::Reno;
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
}
