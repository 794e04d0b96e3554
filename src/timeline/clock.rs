//! A client's estimate of the server's tick, from samples of packets in both directions.
//!
//! A packet down that says at which tick it left, and a packet up of which the server says at which tick it came, each bound
//! the server's time from one side: by their delays. The least delays of the last seconds are nearly without queues, so the
//! middle between both bounds is the estimate, as in NTP (Mills, RFC 5905); half of what one direction's least delay has
//! over the other's is an error that nobody can see. What drifts is corrected by the slope of the estimates (least squares).
//! A server that stood still, or a clock that was set, shifts both bounds at once while the round trip stays: older samples are
//! of another time then and are forgotten.
//!
//! Promises: what is shown begins with a jump and then runs between 0.97 and 1.03 of the server's rate (in its first second between
//! 0.75 and 1.25), never back. Where the server is more than a quarter of a second away from what is shown, the clock begins
//! again: it jumps ahead, or stands still until the server has caught up.

use crate::time::Instant;

/// Seconds of a bin, of which the best samples are kept, and how many bins: samples older than these are forgotten.
const BIN: f64 = 0.25;
const BINS: usize = 16;
/// The recent bins: a difference that shows in all of them is no outlier.
const RECENT: i64 = 3;
/// Samples needed in each direction before the clock starts.
const FIRST_SAMPLES: u32 = 4;
/// By which fraction the clock may run faster or slower, and by which in its first second.
const SLEW: f64 = 0.03;
const FIRST_SLEW: f64 = 0.25;
const FIRST_SECONDS: f64 = 1.0;
/// The time over which a difference is corrected, if the bound on speed allows it.
const SMOOTHING: f64 = 0.25;
/// Seconds of difference beyond which the clock begins again.
const RESTART: f64 = 0.25;
/// Seconds by which both bounds must have shifted to count as a jump of the server's time.
const MIN_SHIFT: f64 = 0.015;
/// By how many ticks a sample may be off.
const SAMPLE_ERROR: f64 = 1.0 / 8.0;
/// How many estimates the drift is computed from, and their distance in seconds.
const HISTORY: usize = 32;
const HISTORY_STEP: f64 = 0.5;
/// The largest drift that is believed, as a fraction: that of a server that can't hold its rate.
const MAX_DRIFT: f64 = 0.1;
/// The clock counts as settled below this error in seconds, or in ticks if that is more.
const SETTLED_SECONDS: f64 = 0.005;
const SETTLED_TICKS: f64 = 0.1;

/// The best samples of a bin: server time minus local time, in seconds, with their local times.
#[derive(Clone, Copy, Debug)]
struct Bin {
    number: i64,
    /// The highest lower bound, of packets down, and its local time.
    down: Option<(f64, f64)>,
    /// The lowest upper bound, of packets up.
    up: Option<(f64, f64)>,
}

/// Bounds of server time minus local time, at a given moment.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    down: f64,
    up: f64,
}

impl Bounds {
    fn middle(&self) -> f64 {
        (self.down + self.up) / 2.0
    }

    fn round_trip(&self) -> f64 {
        self.up - self.down
    }
}

/// By how much samples of a direction exceed the best ones, smoothed, and how many there were.
#[derive(Clone, Copy, Debug, Default)]
struct ExcessDelay {
    mean: f64,
    count: u32,
}

impl ExcessDelay {
    fn add(&mut self, behind: f64) {
        self.count = self.count.saturating_add(1);
        self.mean += (behind - self.mean) / f64::from(self.count.min(64));
    }

    /// How far the best of them may be from the minimum delay.
    fn error(&self) -> f64 {
        2.0 * self.mean / f64::from(self.count.clamp(1, 240))
    }
}

/// The clock as shown.
#[derive(Clone, Copy, Debug)]
struct ShownClock {
    /// Server time minus local time in seconds, as of a local time.
    offset: f64,
    at: f64,
    since: f64,
    speed: f64,
    /// It stands still, or is about to stand still again, because the server is behind.
    is_standing: bool,
    /// The tick at that time, so that rounding never shows an earlier one.
    tick: f64,
}

/// A client's estimate of the server's tick.
#[derive(Debug)]
pub struct ServerClock {
    rate: f64,
    bins: [Bin; BINS],
    down: ExcessDelay,
    up: ExcessDelay,
    drift: f64,
    /// Estimates of the past: local times and offsets.
    history: [(f64, f64); HISTORY],
    history_count: usize,
    shown: Option<ShownClock>,
    restarts: u64,
}

impl ServerClock {
    /// A new clock, for a server with this many ticks a second.
    pub fn new(rate: f64) -> Self {
        ServerClock {
            rate,
            bins: [Bin { number: i64::MIN, down: None, up: None }; BINS],
            down: ExcessDelay::default(),
            up: ExcessDelay::default(),
            drift: 0.0,
            history: [(0.0, 0.0); HISTORY],
            history_count: 0,
            shown: None,
            restarts: 0,
        }
    }

    /// A packet arrived that left the server at this tick.
    pub fn handle_down(&mut self, now: Instant, tick: f64) {
        let local = now.as_secs_f64();
        let offset = tick / self.rate - local;
        self.forget_standing(local, offset);
        let bin = self.bin(local);
        if bin.down.is_none_or(|(best, _)| best < offset) {
            bin.down = Some((offset, local));
        }
        if let Some(bounds) = self.bounds(local, BINS as i64) {
            self.down.add(bounds.down - offset);
        } else {
            self.down.add(0.0);
        }
        self.update(local);
    }

    /// A packet that left at this local time reached the server at this tick.
    pub fn handle_up(&mut self, now: Instant, sent: Instant, tick: f64) {
        let (local, sent) = (now.as_secs_f64(), sent.as_secs_f64());
        let offset = tick / self.rate - sent;
        // The sample belongs to the bin of its sending time, if that bin still exists.
        let bin = self.bin(local);
        if bin.up.is_none_or(|(best, _)| offset < best) {
            bin.up = Some((offset, sent));
        }
        if let Some(bounds) = self.bounds(local, BINS as i64) {
            self.up.add(offset - bounds.up);
        } else {
            self.up.add(0.0);
        }
        self.update(local);
    }

    /// Advances the shown clock to this time.
    pub fn advance(&mut self, now: Instant) {
        let local = now.as_secs_f64();
        let (drift, rate) = (self.drift, self.rate);
        let Some(target) = self.bounds(local, BINS as i64).map(|bounds| bounds.middle()) else {
            // Nothing arrived for seconds: keep the last rate.
            if let Some(shown) = &mut self.shown
                && local > shown.at
            {
                shown.offset += drift * (local - shown.at);
                (shown.at, shown.speed) = (local, 1.0 + drift);
                shown.tick = shown.tick.max((local + shown.offset) * rate);
            }
            return;
        };
        let enough = self.down.count >= FIRST_SAMPLES && self.up.count >= FIRST_SAMPLES;
        let Some(shown) = &mut self.shown else {
            if enough {
                let tick = ((local + target) * rate).max(0.0);
                self.shown = Some(ShownClock {
                    offset: target,
                    at: local,
                    since: local,
                    speed: 1.0,
                    is_standing: false,
                    tick,
                });
            }
            return;
        };
        let passed = local - shown.at;
        if passed <= 0.0 {
            return;
        }
        let off = target - (shown.offset + drift * passed);
        let slew = if local - shown.since < FIRST_SECONDS { FIRST_SLEW } else { SLEW };
        shown.is_standing &= off < -RESTART / 2.0;
        let step = if off > RESTART {
            shown.since = local;
            self.restarts += 1;
            off
        } else if off < -RESTART {
            // Stand still until the server has caught up.
            self.restarts += u64::from(!shown.is_standing);
            shown.is_standing = true;
            shown.since = local;
            -passed * (1.0 + drift)
        } else {
            let wish = off * (passed / SMOOTHING).min(1.0);
            wish.clamp(-slew * passed, slew * passed)
        };
        shown.offset += drift * passed + step;
        shown.at = local;
        shown.speed = 1.0 + drift + step / passed;
        shown.tick = shown.tick.max((local + shown.offset) * rate);
    }

    /// The server's tick at this time, never earlier than at the last [`ServerClock::advance`]; None before there are
    /// samples.
    pub fn tick(&self, now: Instant) -> Option<f64> {
        let shown = self.shown.as_ref()?;
        let local = now.as_secs_f64().max(shown.at);
        Some(((local + shown.offset) * self.rate).max(shown.tick))
    }

    /// Ticks a second, as configured.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How fast it runs now, in server seconds per second; 1 if nothing is being corrected.
    pub fn speed(&self) -> f64 {
        self.shown.as_ref().map_or(1.0, |shown| shown.speed)
    }

    /// The estimated drift of the server's time against the local one, as a fraction.
    pub fn drift(&self) -> f64 {
        self.drift
    }

    /// About how far off the clock may be, in seconds. The asymmetry of the minimum delays is not included, because
    /// it can't be measured.
    pub fn error(&self, now: Instant) -> Option<f64> {
        let shown = self.shown.as_ref()?;
        let local = now.as_secs_f64();
        let off = self.bounds(local, BINS as i64).map_or(RESTART, |bounds| {
            (bounds.middle() - shown.offset - self.drift * (local - shown.at)).abs()
        });
        Some(off + (self.down.error() + self.up.error()) / 2.0 + 1.0 / 64.0 / self.rate)
    }

    /// The minimum round trip of the last seconds, in seconds.
    pub fn round_trip(&self, now: Instant) -> Option<f64> {
        self.bounds(now.as_secs_f64(), BINS as i64).map(|bounds| bounds.round_trip().max(0.0))
    }

    /// Whether it is as exact as it gets.
    pub fn is_settled(&self, now: Instant) -> bool {
        let old_enough = |shown: &ShownClock| now.as_secs_f64() - shown.since >= 2.0 * BIN;
        let limit = (SETTLED_TICKS / self.rate).max(SETTLED_SECONDS);
        self.shown.as_ref().is_some_and(old_enough) && self.error(now).is_some_and(|error| error <= limit)
    }

    /// How often it started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    fn bin(&mut self, local: f64) -> &mut Bin {
        let number = (local / BIN) as i64;
        let bin = &mut self.bins[number.rem_euclid(BINS as i64) as usize];
        if bin.number != number {
            *bin = Bin { number, down: None, up: None };
        }
        bin
    }

    /// The bounds from the newest bins, as of this time.
    fn bounds(&self, local: f64, count: i64) -> Option<Bounds> {
        let newest = (local / BIN) as i64;
        let at = |(offset, when): (f64, f64)| offset + self.drift * (local - when);
        let (mut down, mut up): (Option<f64>, Option<f64>) = (None, None);
        for bin in &self.bins {
            if bin.number > newest || bin.number <= newest - count {
                continue;
            }
            if let Some(bound) = bin.down.map(at) {
                down = Some(down.map_or(bound, |best| best.max(bound)));
            }
            if let Some(bound) = bin.up.map(at) {
                up = Some(up.map_or(bound, |best| best.min(bound)));
            }
        }
        Some(Bounds { down: down?, up: up? })
    }

    /// After a sample: drops samples from before a jump, and updates the drift.
    fn update(&mut self, local: f64) {
        let (Some(recent), Some(all)) = (self.bounds(local, RECENT), self.bounds(local, BINS as i64)) else {
            return;
        };
        let shift = (all.down - recent.down).max(recent.up - all.up);
        if shift > MIN_SHIFT && self.is_as_far(local, shift) {
            let newest = (local / BIN) as i64;
            for bin in &mut self.bins {
                if bin.number <= newest - RECENT {
                    (bin.down, bin.up) = (None, None);
                }
            }
            if shift > RESTART {
                (self.history_count, self.drift) = (0, 0.0);
            }
        }
        self.note_drift(local);
    }

    /// Forgets upper bounds that the server's time has passed. It stood still when these packets came, and has caught up since.
    fn forget_standing(&mut self, local: f64, offset: f64) {
        let (drift, passed) = (self.drift, offset - MIN_SHIFT - SAMPLE_ERROR / self.rate);
        for bin in &mut self.bins {
            bin.up = bin.up.filter(|(up, when)| up + drift * (local - when) > passed);
        }
    }

    /// Whether the server is at the same distance as before, judged by round trips within each bin: a queue would
    /// have made them longer by about as much as the bounds shifted. The bin in which the jump happened is one of
    /// many.
    fn is_as_far(&self, local: f64, shift: f64) -> bool {
        let newest = (local / BIN) as i64;
        let (mut recent, mut before) = (f64::MAX, [0.0; BINS]);
        let mut count = 0;
        for bin in &self.bins {
            let (Some((down, _)), Some((up, _))) = (bin.down, bin.up) else { continue };
            if bin.number > newest - RECENT {
                recent = recent.min(up - down);
            } else if bin.number > newest - BINS as i64 {
                before[count] = up - down;
                count += 1;
            }
        }
        let before = &mut before[..count];
        before.sort_unstable_by(f64::total_cmp);
        before.get(count / 2).is_some_and(|usual| recent <= usual + 0.3 * shift)
    }

    fn note_drift(&mut self, local: f64) {
        let newest = self.history_count.checked_sub(1).map(|count| self.history[count % HISTORY].0);
        if newest.is_some_and(|newest| local < newest + HISTORY_STEP) {
            return;
        }
        let Some(bounds) = self.bounds(local, BINS as i64) else { return };
        self.history[self.history_count % HISTORY] = (local, bounds.middle());
        self.history_count += 1;
        let count = self.history_count.min(HISTORY);
        if count < 6 {
            return;
        }
        let entries = &self.history[..count];
        let n = count as f64;
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| entries.iter().map(f).sum::<f64>() / n;
        // Relative to the newest, so that large numbers lose no precision.
        let (x0, y0) = (local, bounds.middle());
        let (x, y) = (mean(&|entry| entry.0 - x0), mean(&|entry| entry.1 - y0));
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for entry in entries {
            let (dx, dy) = (entry.0 - x0 - x, entry.1 - y0 - y);
            xx += dx * dx;
            xy += dx * dy;
            yy += dy * dy;
        }
        let slope = xy / xx;
        let residual = (yy - slope * xy).max(0.0) / (n - 2.0);
        // Neighbouring estimates share samples, so they count for less than independent ones.
        let variance = 9.0 * residual / xx + 1e-12;
        let believed = slope * slope * slope / (slope * slope + 4.0 * variance);
        self.drift = believed.clamp(-MAX_DRIFT, MAX_DRIFT);
    }
}

#[cfg(test)]
mod tests;
