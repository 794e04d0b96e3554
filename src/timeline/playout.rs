//! The interpolation clock: at which tick of the server, and what fraction of the next, a client shows the world.
//!
//! What arrives is shown later, so that the next state is there when it is needed: by how much is found from what arrives. The
//! lateness of a tick is when it, or a later one that replaces it, arrived, beside the others; the delay is that
//! which all but a few stay below, plus the tick that is being drawn. A playout buffer as in voice (Ramjee, Kurose, Towsley
//! and Schulzrinne, Adaptive Playout Mechanisms, 1994), by a quantile instead of mean and deviation, and with its speed
//! changed instead of its silences.
//!
//! A stall, in which nothing arrives for a moment, isn't lateness: it says little about the ticks to come, and a buffer that
//! counted it would show all of them late for as long as it remembers. Either the stalled ticks then arrive together, or the server stood
//! still itself, and its ticks have another schedule from then on. Only stalls that come again within [`STALLS_APART`] are
//! buffered against.
//!
//! Promises: time never runs back, and never beyond what is known: the newest tick, later ones in which nothing changed, and the
//! extrapolation. So the tick is the one of the picture, but for states that come later than the delay. Its speed is within [`PlayoutConfig::max_speed`] of the server's,
//! except where it stands because the next tick has not arrived, after a stall, in which it catches up at up to twice the speed or jumps
//! if the stall was longer than [`JUMP_AFTER`], and in rests, in which nothing that is shown changes. It is never nearer to what
//! arrives than a tick. A tick without a packet counts as late only if packets were lost. Refuses nothing: ticks in any order and
//! at any time are taken, or too old to matter.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// How many arrivals count: about four seconds at 60 ticks a second, so that 1 in 50 is several.
const KEPT: usize = 256;

/// For how many seconds they count, in a world that is mostly at rest.
const KEPT_SECONDS: f64 = 10.0;

/// How many arrivals, and over which time, determine the length of a tick.
const MIN_ARRIVALS: usize = 8;
const MIN_SPAN: f64 = 0.25;

/// The largest standard error of a tick's length, as a fraction: with few arrivals and much jitter, the last length is kept.
const MAX_PERIOD_ERROR: f64 = 0.03;

/// Bounds of a tick's length, in seconds.
const MIN_PERIOD: f64 = 0.000_5;
const MAX_PERIOD: f64 = 2.0;

/// A larger error than this is corrected by a jump instead of speed.
const JUMP_AFTER: f64 = 1.0;

/// A program that did nothing for longer than this, the server's or this one, stood still.
const PAUSE: f64 = 0.5;

/// A tick that is this many times later than nearly all others isn't late by jitter.
const BEYOND_JITTER: f64 = 4.0;

/// Over how many seconds an error is corrected, if the speed allows it.
const CATCH_UP: f64 = 0.5;

/// More lost ticks in a row than this don't count as late: there was no connection.
const MAX_LOST: u32 = 6;

/// A longer silence than this, in seconds and beside what ticks explain, is a stall.
const STALL: f64 = 0.08;

/// So is a longer one of which all ticks were lost. Jitter and usual losses together are shorter.
const LOST_STALL: f64 = 0.16;

/// A silence of fewer ticks is no stall.
const MIN_STALL_TICKS: f64 = 2.5;

/// Seconds after a stall until its ticks have arrived, however they were jumbled.
const STALL_SETTLES: f64 = 0.1;

/// Stalls that are fewer seconds apart count as lateness.
const STALLS_APART: f64 = 5.0;

/// An error in seconds that needs no hurry any more.
const CAUGHT_UP: f64 = 0.02;

/// Ticks by which the view stays above the oldest one that can be shown.
const MARGIN: u32 = 2;

/// A fraction of a tick that nobody sees, and that the measurements may be off by.
const ROUNDING: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayoutConfig {
    /// Seconds between arrival and display, within [`PlayoutConfig::delay_bounds`]; None: measured.
    pub delay: Option<f64>,
    /// Seconds by which time runs on beyond the newest tick, for properties with a velocity.
    pub extrapolation: f64,
    /// Seconds of a tick, until that is measured.
    pub period: f64,
    /// How many ticks before the newest one can be shown.
    pub history: u32,
    /// A stall of this many ticks or more may make the server wait for acks.
    pub long_stall: u32,
    /// The time after such a stall until the server has acks again.
    pub acked_after: Duration,
    /// The fraction of ticks that must arrive in time. Time stands for the others until they are there: at wifi-bad 2 %
    /// of the time instead of 1.5 % at 0.995, for a delay of 46 ms instead of 61.
    pub quantile: f64,
    /// The fraction by which the speed may differ from the server's.
    pub max_speed: f64,
}

impl Default for PlayoutConfig {
    fn default() -> Self {
        PlayoutConfig {
            delay: None,
            extrapolation: 0.0,
            period: 1.0 / 60.0,
            history: u32::MAX,
            long_stall: u32::MAX,
            acked_after: Duration::ZERO,
            quantile: 0.98,
            max_speed: 0.05,
        }
    }
}

impl PlayoutConfig {
    /// The shortest and the longest delay in seconds: a tick, and the history.
    pub fn delay_bounds(&self) -> (f64, f64) {
        (self.period, self.longest_delay(self.period))
    }

    /// The longest delay in seconds, if a tick has this length.
    fn longest_delay(&self, period: f64) -> f64 {
        f64::from(self.history.saturating_sub(MARGIN)) * period
    }
}

/// A moment in which nothing arrived.
#[derive(Clone, Copy, Debug)]
struct Stall {
    /// The last tick before it, and when it arrived.
    before: (u32, Instant),
    /// How many seconds later ticks usually arrived than that one, and by how many more all but a few.
    typical: f64,
    jitter: f64,
    /// When its first tick arrived.
    end: Instant,
    /// Seconds, beside what ticks explain.
    length: f64,
    /// Whether another one had ended shortly before.
    is_repeated: bool,
    /// Whether this program itself stood still.
    is_own: bool,
}

impl Stall {
    /// Whether a tick that arrived this many seconds later than the last one before the stall is later than by jitter.
    fn is_late(&self, late: f64) -> bool {
        late - self.typical > self.jitter.max(STALL)
    }
}

/// A client's interpolation clock.
#[derive(Clone, Debug)]
pub struct Playout {
    config: PlayoutConfig,
    /// Ticks by number, and when they or later ones arrived. The ticks that are left out were rests, except before `failed`.
    arrivals: VecDeque<(u32, Instant)>,
    /// The newest tick before which too many were lost to count as late.
    failed: u32,
    newest: u32,
    newest_at: Instant,
    /// Nothing had changed since the newest tick when a packet that arrived at this time was sent.
    quiet_at: Instant,
    period: f64,
    /// Seconds from the anchor, which is the newest tick and its time, to the arrival of ticks: on average, and for
    /// all but a few.
    typical: f64,
    late: f64,
    /// The stall whose ticks are arriving.
    stall: Option<Stall>,
    /// This program's own pause after which the newest tick was late: the next one says whether the server stood still too.
    unsure: Option<Stall>,
    stalled_at: Option<Instant>,
    /// The last tick before a long stall, and the first one after it.
    stalled: (u32, u32),
    /// The newest tick before which the server waited for acks, and when it arrived.
    awaited: (u32, Option<Instant>),
    /// Whether it catches up after a stall.
    hurries: bool,
    shown: Option<(f64, Instant)>,
    /// How many times it jumped, and for how many seconds it stood.
    jumps: u64,
    stood: f64,
    /// For how many seconds it has waited for the next tick.
    waited: f64,
}

impl Playout {
    pub fn new(config: PlayoutConfig) -> Self {
        Playout {
            config,
            arrivals: VecDeque::new(),
            failed: 0,
            newest: 0,
            newest_at: Instant::ZERO,
            quiet_at: Instant::ZERO,
            period: config.period,
            typical: 0.0,
            late: 0.0,
            stall: None,
            unsure: None,
            stalled_at: None,
            stalled: (0, 0),
            awaited: (0, None),
            hurries: false,
            shown: None,
            jumps: 0,
            stood: 0.0,
            waited: 0.0,
        }
    }

    pub fn config(&self) -> &PlayoutConfig {
        &self.config
    }

    /// Sets a new delay, which is approached by speed.
    pub fn set_config(&mut self, config: PlayoutConfig) {
        self.config = config;
    }

    /// Starts again, with another server.
    pub fn reset(&mut self) {
        *self = Playout::new(self.config);
    }

    /// A packet arrived after the last [`Playout::advance`], and none that was sent between the newest tick and it is missing.
    pub fn handle_quiet(&mut self) {
        self.quiet_at = self.shown.map_or(self.quiet_at, |(_, at)| at);
    }

    /// The server waited for acks before this tick, which arrives next: ghosts may have moved since the newest one.
    pub fn note_wait(&mut self, tick: u32) {
        self.awaited.0 = tick;
        self.mark_stalled(tick);
    }

    /// A packet of a server tick arrived. `lost` packets before it were lost since the last arrival.
    pub fn handle_arrival(&mut self, tick: u32, now: Instant, lost: u32) {
        let first = match self.arrivals.back() {
            // A later tick has already replaced this one.
            Some((newest, _)) if tick <= *newest => return,
            // In a stall, and while it waits for acks, the server sends less than a packet a tick.
            Some((newest, _)) if lost >= MAX_LOST || tick == self.awaited.0 => newest + 1,
            // Lost ticks count as arriving with the next one.
            Some((newest, _)) => tick - lost.min(tick - newest - 1),
            None => tick,
        };
        self.judge_pause((tick, now));
        let silence = now.since(self.newest_at).as_secs_f64();
        let late = self.lateness((self.newest, self.newest_at), (tick, now));
        let stalled = self.note_stall((first, tick), now);
        let is_own = self.stall.is_some_and(|stall| stall.is_own);
        let jitter = BEYOND_JITTER * (self.late - self.typical);
        if silence > PAUSE && late > jitter.max(silence / 2.0) && !is_own {
            // The server stood still: its ticks have another schedule from now on.
            self.arrivals.clear();
        } else if self.counts_as_late((first, tick), now) {
            self.arrivals.extend((first..tick).map(|tick| (tick, now)));
        } else {
            self.failed = tick;
        }
        self.arrivals.push_back((tick, now));
        if self.stall.is_some_and(|stall| now.since(stall.end).as_secs_f64() >= STALL_SETTLES) {
            self.settle_stall();
        }
        let is_old = |front: &(u32, Instant)| now.since(front.1).as_secs_f64() > KEPT_SECONDS;
        while self.arrivals.len() > KEPT
            || self.arrivals.len() > MIN_ARRIVALS && self.arrivals.front().is_some_and(is_old)
        {
            self.arrivals.pop_front();
        }
        let waited = core::mem::take(&mut self.waited);
        // The server waited for acks after a stall, which is over only now.
        self.hurries |= waited > CAUGHT_UP && self.newest <= self.stalled_ticks().1;
        (self.newest, self.newest_at) = (tick, now);
        self.measure();
        // It would have waited for a rest until the tick before the one that was late.
        let late = (self.target(now) - f64::from(first) + 1.0) * self.period;
        self.stood += waited.min(late.max(stalled));
    }

    /// Whether the ticks that are missing before this one count as late: not those of a long loss, and of waits of the
    /// server only if they come again.
    fn counts_as_late(&mut self, (first, tick): (u32, u32), now: Instant) -> bool {
        if self.awaited.0 != tick {
            return tick - first < MAX_LOST;
        }
        let is_near = |other: Instant| now.since(other).as_secs_f64() < STALLS_APART;
        self.awaited.1.replace(now).is_some_and(is_near) && (tick - first) as usize <= KEPT
    }

    /// What has no state between the newest tick and a later one may have moved.
    fn mark_stalled(&mut self, last: u32) {
        let is_within = self.newest <= self.stalled_ticks().1;
        self.stalled.0 = if is_within { self.stalled.0 } else { self.newest };
        self.stalled.1 = self.stalled.1.max(last);
    }

    /// Notes a stall if this tick ends one. `first` is the first one that is missing before it. Returns the stall's length in
    /// seconds, 0 for none.
    fn note_stall(&mut self, (first, tick): (u32, u32), now: Instant) -> f64 {
        if self.arrivals.is_empty() {
            return 0.0;
        }
        let before = (self.newest, self.newest_at);
        let length = self.lateness(before, (first, now));
        let is_long = |seconds: f64, least: f64| seconds > least.max(MIN_STALL_TICKS * self.period);
        if !is_long(self.lateness(before, (tick, now)), STALL) && !is_long(length, LOST_STALL) {
            return 0.0;
        }
        // A buffer helps in no stall in which this program itself stood still.
        let is_own = self.shown.is_some_and(|(_, at)| now.since(at).as_secs_f64() > length / 2.0);
        let is_near = |other: Instant| now.since(other).as_secs_f64() < STALLS_APART;
        let is_repeated = !is_own && self.stalled_at.replace(now).is_some_and(is_near);
        let (typical, jitter) = (self.typical, BEYOND_JITTER * (self.late - self.typical));
        self.stall = Some(Stall { before, typical, jitter, end: now, length, is_repeated, is_own });
        let ticks = (now.since(self.newest_at).as_secs_f64() / self.period) as u32;
        if ticks >= self.config.long_stall {
            self.mark_stalled(self.newest.saturating_add(ticks));
        }
        length
    }

    /// Once the ticks of a stall have arrived, puts arrivals where they would be without it.
    fn settle_stall(&mut self) {
        let Some(stall) = self.stall.take() else { return };
        self.hurries = true;
        if stall.is_repeated {
            return;
        }
        let (before, at) = stall.before;
        let first = self.arrivals.partition_point(|(tick, _)| *tick <= before);
        let mean = |arrivals: &mut dyn ExactSizeIterator<Item = &(u32, Instant)>| {
            let count = arrivals.len().max(1) as f64;
            arrivals.map(|arrival| self.lateness(stall.before, *arrival)).sum::<f64>() / count
        };
        // All that this program held back arrived at once: only the newest tick may be in time.
        let settled = if stall.is_own { 1 } else { MIN_ARRIVALS };
        let after = mean(&mut self.arrivals.iter().skip(first).rev().take(settled));
        let is_late = if stall.is_own { stall.is_late(after) } else { after > stall.length / 2.0 };
        if is_late && !stall.is_own {
            let shift = after - mean(&mut self.arrivals.iter().take(first).rev().take(4 * MIN_ARRIVALS));
            let shift = Duration::from_secs_f64(shift.max(0.0));
            self.arrivals.iter_mut().take(first).for_each(|(_, at)| *at += shift);
        } else {
            let last = before.saturating_add((stall.length / self.period).ceil() as u32);
            for (tick, arrived) in self.arrivals.iter_mut().skip(first).take_while(|(tick, _)| *tick <= last)
            {
                let usual = f64::from(*tick - before) * self.period + stall.typical;
                let expected = at + Duration::from_secs_f64(usual.max(0.0));
                *arrived = (*arrived).min(expected);
            }
            if stall.is_own && stall.length > PAUSE {
                // So many ticks that arrived together would replace all that is known of the jitter.
                let held = self.arrivals.partition_point(|(tick, _)| *tick <= last);
                self.arrivals.drain(first..held.saturating_sub(1).max(first));
                self.failed =
                    self.arrivals.get(first).map_or(self.failed, |(tick, _)| self.failed.max(*tick));
            }
        }
        // Without acks, the server may have sent nothing newer.
        self.unsure = Some(stall).filter(|_| stall.is_own && is_late);
    }

    /// If the first tick after this program's own pause is late too, the server stood still as well.
    fn judge_pause(&mut self, arrival: (u32, Instant)) {
        let Some(pause) = self.unsure.filter(|_| self.stall.is_none()) else { return };
        self.unsure = None;
        let late = self.lateness(pause.before, arrival);
        if pause.is_late(late) {
            let shift = Duration::from_secs_f64(late - pause.typical);
            self.arrivals.iter_mut().for_each(|(_, at)| *at += shift);
        }
    }

    /// How many seconds an arrival was later than another one would have it.
    fn lateness(&self, from: (u32, Instant), (tick, at): (u32, Instant)) -> f64 {
        let ticks = f64::from(tick) - f64::from(from.0);
        at.as_secs_f64() - from.1.as_secs_f64() - ticks * self.period
    }

    /// Measures the length of a tick, and how late ticks arrive.
    fn measure(&mut self) {
        let (count, anchor) = (self.arrivals.len() as f64, (self.newest, self.newest_at));
        let place =
            |(tick, at): &(u32, Instant)| (-f64::from(anchor.0 - tick), -anchor.1.since(*at).as_secs_f64());
        let (mut ticks, mut times) = (0.0, 0.0);
        for (tick, time) in self.arrivals.iter().map(place) {
            (ticks, times) = (ticks + tick, times + time);
        }
        let (tick_mean, time_mean) = (ticks / count, times / count);
        let (mut square, mut product, mut time_square) = (0.0, 0.0, 0.0);
        for (tick, time) in self.arrivals.iter().map(place) {
            square += (tick - tick_mean) * (tick - tick_mean);
            product += (tick - tick_mean) * (time - time_mean);
            time_square += (time - time_mean) * (time - time_mean);
        }
        let span = self.arrivals.front().map_or(0.0, |(_, at)| anchor.1.since(*at).as_secs_f64());
        let is_typical = self.stall.is_none() && self.arrivals.len() >= MIN_ARRIVALS;
        if is_typical && span >= MIN_SPAN && square > 0.0 {
            let slope = product / square;
            let residual = (time_square - slope * product).max(0.0) / (count - 2.0);
            if (residual / square).sqrt() <= MAX_PERIOD_ERROR * slope.abs() {
                self.period = slope.clamp(MIN_PERIOD, MAX_PERIOD);
            }
        }
        let mut lateness: Vec<f64> =
            self.arrivals.iter().map(place).map(|(tick, time)| time - tick * self.period).collect();
        self.typical = lateness.iter().sum::<f64>() / count;
        // With few samples, take the latest.
        let at =
            ((lateness.len() as f64 * self.config.quantile).ceil() as usize).clamp(1, lateness.len()) - 1;
        self.late = *lateness.select_nth_unstable_by(at, f64::total_cmp).1;
    }

    /// The tick to show now, with its fraction; None before anything arrived.
    pub fn advance(&mut self, now: Instant) -> Option<f64> {
        if self.arrivals.is_empty() {
            return self.shown.map(|(tick, _)| tick);
        }
        if self.stall.is_some_and(|stall| stall.is_own) {
            // All that was held back is here.
            self.settle_stall();
            self.measure();
        }
        let target = self.target(now);
        let Some((before, at)) = self.shown else {
            let tick = target.min(f64::from(self.newest)).max(0.0);
            self.shown = Some((tick, now));
            return Some(tick);
        };
        let passed = now.since(at).as_secs_f64();
        let bound = self.known_tick() + self.config.extrapolation.max(0.0) / self.period;
        let behind = |tick: f64| (tick - before) * self.period - passed;
        let error = behind(target);
        let tick = if passed >= PAUSE {
            // Nothing was drawn meanwhile.
            target.max(before)
        } else if behind(target.min(bound)) > JUMP_AFTER {
            self.jumps += 1;
            target
        } else {
            self.hurries &= error > CAUGHT_UP;
            let max = self.config.max_speed;
            let fastest = if self.hurries { 1.0 } else { max };
            let speed =
                if error < -2.0 * PAUSE { 0.0 } else { 1.0 + (error / CATCH_UP).clamp(-max, fastest) };
            (before + passed / self.period * speed).max(target.min(self.rest_end(before)))
        };
        // If frames are locked to the ticks, the smallest error would show each change a frame later.
        // Only forward: a view that is drawn very often would never leave its tick.
        let tick = if tick.ceil() - tick < ROUNDING { tick.ceil() } else { tick };
        let oldest = f64::from(self.newest.saturating_sub(self.config.history));
        let bounded = tick.min(bound).max(before).max(oldest);
        if bounded > before {
            // What it waited for before was a rest.
            self.waited = 0.0;
        }
        self.waited += ((tick - bounded) * self.period).clamp(0.0, passed);
        self.shown = Some((bounded, now));
        Some(bounded)
    }

    /// The tick up to which the world is known: the newest one, or a later one if nothing changed since.
    fn known_tick(&self) -> f64 {
        let quiet = self.quiet_at.since(self.newest_at).as_secs_f64() - self.late.max(0.0);
        f64::from(self.newest) + (quiet / self.period).max(0.0).floor()
    }

    /// The tick until which nothing changes that is shown at this tick: nobody sees how fast time passes until then.
    fn rest_end(&self, tick: f64) -> f64 {
        let (before, after) = self.stalled_ticks();
        let is_stalled = (f64::from(before)..f64::from(after)).contains(&tick);
        // What has a velocity moves on.
        if self.config.extrapolation > 0.0 || is_stalled {
            return tick;
        }
        let next = self.arrivals.partition_point(|(other, _)| f64::from(*other) <= tick);
        match self.arrivals.get(next) {
            // Earlier ones may have failed too: only the newest is remembered.
            Some((next, _)) if *next <= self.failed => tick,
            Some((next, _)) => f64::from(*next) - 1.0,
            None => self.known_tick(),
        }
    }

    /// The tick that should be shown.
    fn target(&self, now: Instant) -> f64 {
        let since = now.since(self.newest_at).as_secs_f64();
        let arriving = f64::from(self.newest) + (since - self.typical) / self.period;
        arriving - self.wanted_delay() / self.period
    }

    fn wanted_delay(&self) -> f64 {
        let delay = self.config.delay.unwrap_or(self.late - self.typical + self.period);
        delay.min(self.config.longest_delay(self.period)).max(self.period)
    }

    /// Seconds from an arrival with typical lateness to its display. Before anything was shown, the configured delay.
    pub fn delay(&self) -> f64 {
        let Some((tick, at)) = self.shown.filter(|_| !self.arrivals.is_empty()) else {
            return self.wanted_delay();
        };
        self.wanted_delay() + (self.target(at) - tick) * self.period
    }

    /// The last tick before a long stall, and the tick until which the server may have waited for acks. What has no state
    /// between them may have moved.
    pub fn stalled_ticks(&self) -> (u32, u32) {
        let (before, after) = self.stalled;
        (before, after.saturating_add((self.config.acked_after.as_secs_f64() / self.period) as u32))
    }

    /// Seconds of a tick.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// The tick that was shown last.
    pub fn tick(&self) -> Option<f64> {
        self.shown.map(|(tick, _)| tick)
    }

    /// When a tick was shown last.
    pub fn shown_at(&self) -> Option<Instant> {
        self.shown.map(|(_, at)| at)
    }

    /// How many times it jumped after a silence or a pause of the server.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// How long it stood because the next tick was late. Counted when that tick arrives.
    pub fn stood(&self) -> Duration {
        Duration::from_secs_f64(self.stood)
    }
}

#[cfg(test)]
mod tests;
