//! The interpolation clock: at which tick of the server, and what fraction of the next, a client shows the world.
//!
//! What arrives is shown later, so that the next state is there when it is needed: by how much is found from what arrives. The
//! lateness of a tick is when it, or a later one that replaces it, arrived, beside the others; the delay is that
//! which all but a few stay below, plus the tick that is being drawn. A playout buffer as in voice (Ramjee, Kurose, Towsley
//! and Schulzrinne, Adaptive Playout Mechanisms, 1994), by a quantile instead of mean and deviation, and with its speed
//! changed instead of its silences.
//!
//! Promises: time never runs back. Its speed is within [`PlayoutConfig::max_speed`] of the server's, but where it stands because
//! what comes next has not arrived, and where it goes on after a silence. It is never nearer to what arrives than a tick. Refuses
//! nothing: ticks in any order and at any time are taken, or too old to matter.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// How many arrivals decide: about four seconds at 60 ticks a second, so that 1 in 100 is more than one.
const KEPT: usize = 256;

/// How many, in which time, tell the length of a tick.
const MIN_ARRIVALS: usize = 8;
const MIN_SPAN: f64 = 0.25;

/// What a tick can take, in seconds.
const MIN_PERIOD: f64 = 0.000_5;
const MAX_PERIOD: f64 = 2.0;

/// What is further off than this many seconds is not made up for by speed.
const JUMP_AFTER: f64 = 0.5;

/// In how many seconds an error is made up for, where the speed allows it.
const CATCH_UP: f64 = 0.5;

/// So many ticks that are missing were not lost: there was nothing to say, or there was no line.
const MAX_MISSED: u32 = 6;

/// After this many seconds in which nothing came nothing is late: the server has nothing to say.
const SILENT_AFTER: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayoutConfig {
    /// Seconds between what would arrive now and what is shown; None: what arrives decides. Never below a tick.
    pub delay: Option<f64>,
    /// Seconds beyond the newest tick that time runs on for; what is shown then goes on, if it has a velocity.
    pub extrapolation: f64,
    /// Seconds of a tick, until what arrives says it better.
    pub period: f64,
    /// The part of ticks that must not be too late.
    pub quantile: f64,
    /// By which part of it the speed may differ from the server's.
    pub max_speed: f64,
}

impl Default for PlayoutConfig {
    fn default() -> Self {
        PlayoutConfig {
            delay: None,
            extrapolation: 0.0,
            period: 1.0 / 60.0,
            quantile: 0.995,
            max_speed: 0.05,
        }
    }
}

/// An interpolation clock.
#[derive(Clone, Debug)]
pub struct Playout {
    config: PlayoutConfig,
    /// Ticks by number, and when they or later ones came.
    arrivals: VecDeque<(u32, Instant)>,
    newest: u32,
    newest_at: Instant,
    period: f64,
    /// Seconds from the anchor, which is the newest tick and its time, to when ticks come: in the mean, and all but few.
    typical: f64,
    late: f64,
    shown: Option<(f64, Instant)>,
    /// How many times it jumped, and the seconds in which it stood.
    jumps: u64,
    stood: f64,
}

impl Playout {
    pub fn new(config: PlayoutConfig) -> Self {
        Playout {
            config,
            arrivals: VecDeque::new(),
            newest: 0,
            newest_at: Instant::ZERO,
            period: config.period,
            typical: 0.0,
            late: 0.0,
            shown: None,
            jumps: 0,
            stood: 0.0,
        }
    }

    pub fn config(&self) -> &PlayoutConfig {
        &self.config
    }

    /// Has the delay be this from now on; it is come to by speed.
    pub fn set_config(&mut self, config: PlayoutConfig) {
        self.config = config;
    }

    /// Begins anew, with another server.
    pub fn reset(&mut self) {
        *self = Playout::new(self.config);
    }

    /// Something of a tick of the server arrived.
    pub fn handle_arrival(&mut self, tick: u32, now: Instant) {
        match self.arrivals.back() {
            // What was there for a later one was there for this one.
            Some((newest, _)) if tick <= *newest => return,
            Some((newest, at))
                if now.since(*at).as_secs_f64() > JUMP_AFTER
                    && f64::from(tick - newest) * self.period < now.since(*at).as_secs_f64() / 2.0 =>
            {
                // The server stood still: its ticks come at another time from now on.
                self.arrivals.clear();
            }
            // Ticks that were lost were there when the next one came.
            Some((newest, _)) => {
                let missed = (tick - newest - 1).min(MAX_MISSED);
                if missed < MAX_MISSED {
                    self.arrivals.extend((tick - missed..tick).map(|tick| (tick, now)));
                }
            }
            None => {}
        }
        self.arrivals.push_back((tick, now));
        while self.arrivals.len() > KEPT {
            self.arrivals.pop_front();
        }
        (self.newest, self.newest_at) = (tick, now);
        self.measure();
    }

    /// Finds the length of a tick, and how late ticks come.
    fn measure(&mut self) {
        let (count, anchor) = (self.arrivals.len() as f64, (self.newest, self.newest_at));
        let place =
            |(tick, at): &(u32, Instant)| (-f64::from(anchor.0 - tick), -anchor.1.since(*at).as_secs_f64());
        let (mut ticks, mut times) = (0.0, 0.0);
        for (tick, time) in self.arrivals.iter().map(place) {
            (ticks, times) = (ticks + tick, times + time);
        }
        let (tick_mean, time_mean) = (ticks / count, times / count);
        let (mut square, mut product) = (0.0, 0.0);
        for (tick, time) in self.arrivals.iter().map(place) {
            square += (tick - tick_mean) * (tick - tick_mean);
            product += (tick - tick_mean) * (time - time_mean);
        }
        let span = self.arrivals.front().map_or(0.0, |(_, at)| anchor.1.since(*at).as_secs_f64());
        if self.arrivals.len() >= MIN_ARRIVALS && span >= MIN_SPAN && square > 0.0 {
            self.period = (product / square).clamp(MIN_PERIOD, MAX_PERIOD);
        }
        let mut lateness: Vec<f64> =
            self.arrivals.iter().map(place).map(|(tick, time)| time - tick * self.period).collect();
        self.typical = lateness.iter().sum::<f64>() / count;
        // Of few the latest decides.
        let at =
            ((lateness.len() as f64 * self.config.quantile).ceil() as usize).clamp(1, lateness.len()) - 1;
        self.late = *lateness.select_nth_unstable_by(at, f64::total_cmp).1;
    }

    /// The tick to show now, with its fraction; None before anything arrived.
    pub fn advance(&mut self, now: Instant) -> Option<f64> {
        if self.arrivals.is_empty() {
            return self.shown.map(|(tick, _)| tick);
        }
        let target = self.target(now);
        let Some((before, at)) = self.shown else {
            let tick = target.min(f64::from(self.newest)).max(0.0);
            self.shown = Some((tick, now));
            return Some(tick);
        };
        let passed = now.since(at).as_secs_f64();
        let error = (target - before) * self.period - passed;
        let tick = if error > JUMP_AFTER && passed < JUMP_AFTER {
            self.jumps += 1;
            target
        } else if passed >= JUMP_AFTER {
            // Nobody looked meanwhile.
            target.max(before)
        } else {
            let max = self.config.max_speed;
            let speed =
                if error < -2.0 * JUMP_AFTER { 0.0 } else { 1.0 + (error / CATCH_UP).clamp(-max, max) };
            before + passed / self.period * speed
        };
        // What has not arrived is waited for, unless the server is silent.
        let bound = f64::from(self.newest) + self.config.extrapolation.max(0.0) / self.period;
        let is_silent = now.since(self.newest_at).as_secs_f64() > SILENT_AFTER + self.period;
        let bounded = if is_silent { tick } else { tick.min(bound) }.max(before);
        if bounded == before && tick > before {
            self.stood += passed;
        }
        self.shown = Some((bounded, now));
        Some(bounded)
    }

    /// The tick that should be shown.
    fn target(&self, now: Instant) -> f64 {
        let since = now.since(self.newest_at).as_secs_f64();
        let arriving = f64::from(self.newest) + (since - self.typical) / self.period;
        arriving - self.wanted_delay() / self.period
    }

    fn wanted_delay(&self) -> f64 {
        let delay = self.config.delay.unwrap_or(self.late - self.typical + self.period);
        delay.max(self.period)
    }

    /// Seconds from what arrives now, if it is as late as most, to what is shown. The wanted one, before anything was shown.
    pub fn delay(&self) -> f64 {
        let Some((tick, at)) = self.shown.filter(|_| !self.arrivals.is_empty()) else {
            return self.wanted_delay();
        };
        self.wanted_delay() + (self.target(at) - tick) * self.period
    }

    /// Seconds of a tick.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// The tick that was shown last.
    pub fn tick(&self) -> Option<f64> {
        self.shown.map(|(tick, _)| tick)
    }

    /// How many times it went on after a silence or a pause of the server by more than its speed allows.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// How long it stood, because what came next was late.
    pub fn stood(&self) -> Duration {
        Duration::from_secs_f64(self.stood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const STEP: u64 = 1_000_000_000 / 60;

    /// A line of 100 +- 30 ms with a loss, and a game of so many frames a second.
    struct Scene {
        rng: Rng,
        playout: Playout,
        on_its_way: Vec<(Instant, u32)>,
        now: u64,
        next_tick: u64,
        ticks: u32,
        shown: Vec<f64>,
    }

    impl Scene {
        fn new(seed: u64, config: PlayoutConfig) -> Self {
            Scene {
                rng: Rng::seeded(seed),
                playout: Playout::new(config),
                on_its_way: Vec::new(),
                now: 0,
                next_tick: 0,
                ticks: 70_000,
                shown: Vec::new(),
            }
        }

        fn run(&mut self, seconds: f64, tick: u64, frame: u64, loss: f64) {
            let until = self.now + (seconds * 1e9) as u64;
            while self.now < until {
                while self.next_tick <= self.now {
                    if !self.rng.chance(loss) {
                        let way = 70_000_000 + self.rng.below(60_000_000);
                        self.on_its_way.push((Instant::from_nanos(self.next_tick + way), self.ticks));
                    }
                    self.ticks += 1;
                    self.next_tick += tick;
                }
                let now = Instant::from_nanos(self.now);
                let mut come: Vec<_> = self.on_its_way.iter().copied().filter(|(at, _)| *at <= now).collect();
                self.on_its_way.retain(|(at, _)| *at > now);
                come.sort_unstable();
                for (at, tick) in come {
                    self.playout.handle_arrival(tick, at);
                }
                self.shown.extend(self.playout.advance(now));
                self.now += frame;
            }
        }

        fn steps(&self) -> impl Iterator<Item = f64> {
            self.shown.windows(2).map(|pair| pair[1] - pair[0])
        }
    }

    #[test]
    fn time_runs_as_the_servers_over_a_bad_line() {
        for (seed, tick, frame) in
            [(1, STEP, STEP), (2, STEP, STEP / 4), (3, 66_666_667, STEP), (4, STEP / 2, STEP)]
        {
            let mut scene = Scene::new(seed, PlayoutConfig::default());
            scene.run(10.0, tick, frame, 0.05);
            let settled = scene.shown.len();
            scene.run(60.0, tick, frame, 0.05);
            let true_step = frame as f64 / tick as f64;
            assert!(scene.steps().all(|step| step >= 0.0), "never back");
            let fastest = scene.steps().skip(settled).fold(0.0, f64::max);
            assert!(fastest <= true_step * 1.07, "seed {seed}: {fastest} of {true_step}");
            let stood = scene.steps().skip(settled).filter(|step| *step < true_step * 0.9).count();
            assert!(
                stood * 100 < scene.shown.len(),
                "seed {seed}: stood in {stood} of {} frames",
                scene.shown.len()
            );
            assert_eq!(scene.playout.jumps(), 0);
            let (delay, period) = (scene.playout.delay(), scene.playout.period());
            assert!((period / (tick as f64 / 1e9) - 1.0).abs() < 0.02, "{period}");
            assert!((period..0.06 + 2.5 * tick as f64 / 1e9).contains(&delay), "seed {seed}: {delay}");
        }
    }

    #[test]
    fn on_a_good_line_the_delay_is_one_tick_and_little_more() {
        let mut playout = Playout::new(PlayoutConfig::default());
        let mut delays = Vec::new();
        for tick in 0..600 {
            playout.handle_arrival(100 + tick, Instant::from_nanos(u64::from(tick) * STEP));
            playout.advance(Instant::from_nanos(u64::from(tick) * STEP));
            delays.push(playout.delay());
        }
        let delay = delays[599];
        assert!((1.0 / 60.0 - 1e-9..1.2 / 60.0).contains(&delay), "{delay}");
        assert_eq!(playout.stood(), Duration::ZERO);
    }

    #[test]
    fn a_given_delay_is_kept_and_never_below_a_tick() {
        for (given, expected) in [(0.2, 0.2), (0.0, 1.0 / 60.0)] {
            let mut scene = Scene::new(5, PlayoutConfig { delay: Some(given), ..PlayoutConfig::default() });
            scene.run(10.0, STEP, STEP, 0.0);
            let wanted = scene.playout.wanted_delay();
            assert!((wanted - expected).abs() < 1e-3, "{wanted}");
        }
    }

    #[test]
    fn it_waits_for_what_is_late_and_goes_on_after_a_silence() {
        let mut scene = Scene::new(6, PlayoutConfig::default());
        scene.run(5.0, STEP, STEP, 0.0);
        let newest = f64::from(scene.playout.newest);
        // 0.2 s without anything, then as before.
        scene.run(0.2, STEP, STEP, 1.0);
        assert!(scene.shown.last().is_some_and(|shown| *shown <= newest + 9.0));
        scene.run(2.0, STEP, STEP, 0.0);
        // 3 s of silence: ticks go on, and nothing needs to be said.
        scene.run(3.0, STEP, STEP, 1.0);
        scene.run(1.0, STEP, STEP, 0.0);
        assert!(scene.steps().all(|step| step >= 0.0));
        let behind = f64::from(scene.ticks) - scene.shown.last().unwrap();
        assert!(behind < 0.25 * 60.0, "{behind} ticks");
    }

    #[test]
    fn a_server_that_stood_still_is_followed() {
        let mut scene = Scene::new(7, PlayoutConfig::default());
        scene.run(5.0, STEP, STEP, 0.0);
        // Its process was stopped: no ticks for 2 s.
        let paused = scene.now + 2_000_000_000;
        scene.next_tick = paused;
        scene.run(2.0, STEP, STEP, 0.0);
        scene.run(6.0, STEP, STEP, 0.0);
        assert!(scene.steps().all(|step| step >= 0.0));
        let behind = f64::from(scene.ticks) - scene.shown.last().unwrap();
        assert!((1.0..0.25 * 60.0).contains(&behind), "{behind} ticks");
    }

    #[test]
    fn anything_is_taken() {
        let mut playout = Playout::new(PlayoutConfig::default());
        assert_eq!(playout.advance(Instant::ZERO), None);
        let mut rng = Rng::seeded(8);
        for _ in 0..5000 {
            let tick = if rng.chance(0.5) { rng.next_u64() as u32 } else { rng.below(100) as u32 };
            let now = Instant::from_nanos(rng.below(10_000_000_000));
            playout.handle_arrival(tick, now);
            let shown = playout.advance(now);
            assert!(shown.is_some_and(f64::is_finite));
        }
    }
}
