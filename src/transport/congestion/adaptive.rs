//! The adaptive controller.

use super::delay::{Floor, Rhythm};
use super::delivery::{Epoch, LossShare, Train};
use super::{AdaptiveConfig, Controller, SentStamp};
use crate::time::{Duration, Instant};

const PACKET: f64 = 1215.0;
const BASE_BUCKET: Duration = Duration::from_secs(5);
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
    last_ack: Instant,
    last_sent: Instant,
    credit: f64,
    credit_at: Option<Instant>,
    burst_left: f64,
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
            last_ack: Instant::ZERO,
            last_sent: Instant::ZERO,
            credit: f64::from(config.initial_bytes),
            credit_at: None,
            burst_left: 0.0,
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
        (8.0 / self.capacity.max(1.0).sqrt()).clamp(0.002, 0.015) + 0.5 * self.ticks()
    }

    fn sending_capacity(&self) -> f64 {
        self.capacity / (1.0 - self.loss.value())
    }

    fn pacing_rate(&self) -> f64 {
        let rate = match self.phase {
            Phase::Startup if self.capacity == 0.0 => {
                if self.burst_left > 0.0 {
                    self.burst_rate
                } else {
                    2.0 * PACKET / self.base_rtt()
                }
            }
            Phase::Startup => self.capacity,
            Phase::Steady => {
                let correction = 0.35 * (self.target() - self.queue()) / (self.base_rtt() + self.ticks());
                let growth = if self.calm > 1 { 0.025 * f64::from(1 << self.calm.min(5)) } else { 0.0 };
                self.sending_capacity() * (1.0 + correction.clamp(-0.5, 0.15) + growth)
            }
        };
        rate.clamp(self.config.min_bytes_per_second, self.config.max_bytes_per_second)
    }

    fn window(&self) -> f64 {
        if self.capacity == 0.0 {
            return f64::INFINITY;
        }
        let slack = 0.25 * self.base_rtt() + 0.01 + self.ticks() + self.target();
        self.sending_capacity() * (self.base_rtt() + slack) + 4.0 * PACKET
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

    fn grow_train(&mut self, now: Instant, acked: &[(SentStamp, bool)]) {
        for (stamp, late) in acked {
            if *late || !stamp.bulk {
                continue;
            }
            if self.train.is_before(stamp.sent_at) {
                self.end_round(now);
                if self.phase != Phase::Startup {
                    return;
                }
            }
            self.train.push(now, stamp.sent_at, f64::from(stamp.bytes));
        }
        if self.train.is_empty() {
            return;
        }
        let least = self.train.least_rate();
        match self.train.rate() {
            Some(rate) if self.train.spread() => self.capacity = rate,
            Some(rate) => self.capacity = self.capacity.max(2.0 * rate.max(least)),
            None => self.capacity = self.capacity.max(2.0 * least),
        }
    }

    fn end_round(&mut self, now: Instant) {
        if self.trace {
            println!(
                "{:.4} round: rate {:?} spread {} least {:.0} queue {:.4} {:?}",
                now.as_secs_f64(),
                self.train.rate(),
                self.train.spread(),
                self.train.least_rate(),
                self.queue(),
                self.train,
            );
        }
        if self.train.spread() {
            if let Some(rate) = self.train.rate() {
                self.capacity = rate;
                self.phase = Phase::Steady;
                self.epoch = Epoch::new(now);
            }
        }
        self.train = Train::default();
    }

    fn end_epoch(&mut self, now: Instant) {
        let elapsed = (now - self.epoch.started).as_secs_f64();
        let sample = self.epoch.delivered / elapsed;
        let limited = self.epoch.limited > 0.5 * self.epoch.delivered;
        let queue = self.epoch.least_queue;
        let target = self.target();
        if queue < 2.0 * target {
            self.loss.add(self.epoch.lost, self.epoch.delivered);
        }
        if limited {
            self.capacity = self.capacity.max(sample);
            self.calm = 0;
        } else if queue > 0.5 * target {
            self.capacity += (sample - self.capacity) * 0.5;
            self.calm = 0;
        } else {
            let weight = if sample > self.capacity { 1.0 } else { 0.25 };
            self.capacity += (sample - self.capacity) * weight;
            self.calm = (self.calm + 1).min(10);
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
        let blind = self.capacity == 0.0;
        if !blind {
            self.in_flight += size;
        }
        self.last_sent = now;
        let bulk = core::mem::take(&mut self.granted);
        SentStamp { sent_at: now, bytes, bulk, blind, app_limited: self.app_limited || !bulk }
    }

    fn on_acked(&mut self, now: Instant, acked: &[(SentStamp, bool)], rtt: Option<Duration>) {
        self.last_ack = now;
        if self.in_flight > 2.0 * PACKET {
            self.acks.beat(now, LONGEST_TICK);
        }
        if let Some(rtt) = rtt {
            let rtt = rtt.as_secs_f64();
            self.base.push(now, BASE_BUCKET, rtt);
            let bucket = (self.base_rtt() / 8.0)
                .max(self.ticks())
                .max(2.0 * PACKET / self.capacity.max(PACKET * 20.0));
            self.recent.push(now, Duration::from_secs_f64(bucket), rtt);
            self.epoch.least_queue = self.epoch.least_queue.min(self.queue());
        }
        for (stamp, late) in acked {
            let bytes = f64::from(stamp.bytes);
            if *late {
                self.epoch.lost -= bytes;
            } else if !stamp.blind {
                self.in_flight -= bytes;
            }
            self.epoch.delivered += bytes;
            if stamp.app_limited {
                self.epoch.limited += bytes;
            }
        }
        if self.phase == Phase::Startup {
            self.grow_train(now, acked);
        }
        let length = self.base_rtt().max(3.0 * self.ticks()).max(0.01);
        if self.phase == Phase::Steady && (now - self.epoch.started).as_secs_f64() >= length {
            self.end_epoch(now);
        }
    }

    fn on_lost(&mut self, _now: Instant, stamp: SentStamp) {
        let bytes = f64::from(stamp.bytes);
        if !stamp.blind {
            self.in_flight -= bytes;
        }
        self.epoch.lost += bytes;
    }

    fn on_app_limited(&mut self, now: Instant) {
        self.sends.beat(now, LONGEST_TICK);
        self.app_limited = true;
    }

    fn can_send(&mut self, now: Instant) -> bool {
        self.sends.beat(now, LONGEST_TICK);
        self.refill(now);
        let stalled = (now - self.last_ack).as_secs_f64() > 2.0 * self.base_rtt() + 0.05
            && (now - self.last_sent).as_secs_f64() > 0.5 * self.base_rtt();
        let room = self.in_flight < self.window() || stalled;
        let allowed = self.credit > 0.0 && room;
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
            let paced = (self.burst_left - self.credit).max(0.0);
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
                    (1..=seeds).map(|seed| transfer(link, bytes, step, game, seed, trace)).collect();
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
}
