//! The queueing delay of packets: the time that they take beyond the minimum.
//!
//! A round trip has two ways, and queues in both. If the peer's clock shows when a packet arrived, only the wait
//! before that counts, so that a queue in front of its ack isn't taken for ours. Round trips bound it, because clocks
//! drift.

use super::constants::{BASE_BUCKET, BLUR, MIN_JITTER};
use crate::time::{Duration, Instant};
use crate::transport::windowed_min::WindowedMin;

/// Taken for the round trip before one was measured, in seconds.
const UNKNOWN_RTT: f64 = 0.1;

/// Longer than this, in seconds, is no tick: a little more than one a second.
pub(super) const MAX_TICK: f64 = 1.1;

/// A round trip counts as only as short as the longest of this many in a row that were acked at different times: a
/// clock that was read before the host was busy makes a single one too short, down to zero.
const AGREEING: usize = 3;

/// Epochs over which waits and their deviation are smoothed. Over a longer time they are learned in four times as many, and
/// forgotten in eight times: about as slowly as the least round trip, and not because somebody else began.
const SMOOTHED: f64 = 8.0;

/// Our own steering makes waits differ by this part of the wait that it aims for, or by these seconds if that is more. With
/// less, two flows of our own take each other for jitter.
const STEERED: f64 = 0.65;
const MIN_STEERED: f64 = 0.003;

/// How quickly the estimate of an ack's wait falls: acks in a queue come in groups.
const ACK_WAIT_FALLS: f64 = 1.0 / 16.0;

/// No longer wait of acks is reckoned with.
const MAX_ACK_WAIT: f64 = 2.0;

/// Round trips, and how the ends' ticks blur them. All values are in seconds.
#[derive(Debug, Default)]
pub(super) struct Delay {
    round_trip: Least,
    /// The way there, but for a constant.
    way: Least,
    /// Waits in the queue.
    recent: WindowedMin<f64>,
    ack_wait: f64,
    /// The smoothed wait of epochs, and its mean deviation.
    smoothed: f64,
    deviation: f64,
    /// The same over a longer time, which counts while the rate is low.
    usual: f64,
    usual_deviation: f64,
    slowed: bool,
    /// The deviation that our own steering may cause.
    steered: f64,
    /// Our own sends, and the peer's.
    pub(super) sends: TickInterval,
    pub(super) acks: TickInterval,
}

impl Delay {
    /// Takes a round trip, and the one-way time by clocks that differ by a constant; returns the wait in the queue.
    /// `spacing` is the time between packets; `counts` says whether the packet's wait predicts the wait of packets
    /// sent now.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        rtt: f64,
        way: Option<f64>,
        spacing: f64,
        counts: bool,
    ) -> f64 {
        self.round_trip.push(now, rtt);
        let mut wait = rtt - self.base();
        if let Some(way) = way {
            self.way.push(now, way);
            let there = way - self.way.value().unwrap_or(way);
            let back = (wait - there).clamp(0.0, MAX_ACK_WAIT);
            let falls = if back < self.ack_wait { ACK_WAIT_FALLS } else { 1.0 };
            self.ack_wait += (back - self.ack_wait) * falls;
            wait = wait.min(there);
        }
        // An even shorter one isn't true, unless the next ones agree.
        if counts && wait >= -BLUR {
            // Long enough for its minimum to be free of jitter and of the wait for other packets of a tick.
            let bucket = (self.base() / 8.0).max(self.ticks()).max(2.0 * spacing);
            self.recent.push(now, Duration::from_secs_f64(bucket), wait);
        }
        wait
    }

    /// Takes the minimum wait of an epoch, and the wait that we aim for. `slowed`: less arrives than not long ago.
    pub(super) fn end_epoch(&mut self, queue: f64, aim: f64, slowed: bool) {
        self.slowed = slowed;
        self.steered = (STEERED * aim).max(MIN_STEERED);
        if queue.is_finite() {
            self.deviation += ((queue - self.smoothed).abs() - self.deviation) / SMOOTHED;
            self.smoothed += (queue - self.smoothed) / SMOOTHED;
            // From the mean of a longer time: a path that changes slowly carries the other one along.
            let more = (queue - self.usual).abs() - self.usual_deviation;
            self.usual += (queue - self.usual) / (4.0 * SMOOTHED);
            self.usual_deviation += more / if more > 0.0 { 4.0 * SMOOTHED } else { 8.0 * SMOOTHED };
        }
    }

    /// How much the waits of epochs differ, beside what our own steering makes of them.
    ///
    /// A path that was shorter for a moment looks like a queue that no rate is slow enough for: once that slowed us down, the jitter
    /// known from before counts, and in full.
    pub(super) fn jitter(&self) -> f64 {
        if self.slowed {
            // What is independent adds up in squares.
            let (usual, steered) = (self.usual_deviation, self.steered);
            return (usual * usual - steered * steered).max(0.0).sqrt();
        }
        (self.deviation - MIN_JITTER).max(0.0)
    }

    /// The path has become longer: drops what was known about it.
    pub(super) fn rebase(&mut self, now: Instant, longer: f64) {
        self.round_trip.rebase(now, longer);
        self.way.rebase(now, longer);
        self.recent = WindowedMin::default();
        // The change was no jitter.
        (self.smoothed, self.deviation, self.usual_deviation) = (0.0, 0.0, 0.0);
        self.usual = 0.0;
    }

    /// When packets were last asked for; ZERO before the first time.
    pub(super) fn asked_at(&self) -> Instant {
        self.sends.last.unwrap_or(Instant::ZERO)
    }

    /// The round trip without queues.
    pub(super) fn base(&self) -> f64 {
        self.round_trip.value().unwrap_or(UNKNOWN_RTT)
    }

    /// The recent wait in the queue.
    pub(super) fn queue(&self) -> f64 {
        self.recent.value().map_or(0.0, |recent| recent.max(0.0))
    }

    /// After this time the effect of an action shows, apart from the queue.
    pub(super) fn feedback(&self) -> f64 {
        self.base() + self.ack_wait
    }

    /// How much ticks may add to a round trip: the time between our sends, and between the peer's.
    pub(super) fn ticks(&self) -> f64 {
        self.sends.interval + self.acks.interval
    }
}

/// The minimum over some seconds, of values that several samples in a row confirm.
#[derive(Debug, Default)]
struct Least {
    base: WindowedMin<f64>,
    samples: [Option<f64>; AGREEING],
    sampled_at: Instant,
}

impl Least {
    fn push(&mut self, now: Instant, sample: f64) {
        if now > self.sampled_at || self.sampled_at == Instant::ZERO {
            self.samples.rotate_right(1);
            self.samples[0] = Some(sample);
            self.sampled_at = now;
        } else {
            self.samples[0] = self.samples[0].map(|least| least.min(sample));
        }
        let agreed = self.samples.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        self.base.push(now, BASE_BUCKET, agreed);
    }

    fn value(&self) -> Option<f64> {
        self.base.value()
    }

    fn rebase(&mut self, now: Instant, longer: f64) {
        let Some(value) = self.value() else { return };
        self.base = WindowedMin::default();
        self.base.push(now, BASE_BUCKET, value + longer);
    }
}

/// How far apart things happen that happen in groups: the median of the last gaps, which a pause doesn't change.
#[derive(Debug, Default)]
pub(super) struct TickInterval {
    last: Option<Instant>,
    gaps: [f64; 5],
    pub(super) interval: f64,
}

impl TickInterval {
    pub(super) fn push(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        let gap = (now - last).as_secs_f64();
        if gap > 0.0 && gap < MAX_TICK {
            self.gaps.rotate_right(1);
            self.gaps[0] = gap;
            let mut gaps = self.gaps;
            gaps.sort_unstable_by(f64::total_cmp);
            self.interval = gaps[gaps.len() / 2];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_queue_is_what_all_recent_packets_waited() {
        let mut delay = Delay::default();
        delay.sample(ms(0), 0.050, None, 0.001, true);
        for n in 1..=20 {
            let rtt = if n % 3 == 0 { 0.060 } else { 0.075 };
            delay.sample(ms(n * 5), rtt, None, 0.001, true);
        }
        assert!((delay.queue() - 0.010).abs() < 1e-9, "{delay:?}");
        delay.sample(ms(101), 0.050, None, 0.001, false);
        assert!(delay.queue() > 0.009, "it was sent under other circumstances");
    }

    #[test]
    fn a_clock_that_was_read_early_does_not_shorten_the_path() {
        let mut delay = Delay::default();
        for n in 0..200 {
            let rtt = if n % 10 == 3 { 0.0 } else { 0.050 };
            delay.sample(ms(n * 5), rtt, None, 0.001, true);
        }
        assert_eq!(delay.base(), 0.050);
        assert!(delay.queue() < 1e-9);
        for n in 200..204 {
            delay.sample(ms(n * 5), 0.030, None, 0.001, true);
        }
        assert_eq!(delay.base(), 0.030, "the path has become shorter");
    }

    #[test]
    fn ticks_are_told_from_pauses_and_groups() {
        let mut interval = TickInterval::default();
        for tick in 0..60 {
            let pause = if tick < 40 { 0 } else { 5_000 };
            (0..10).for_each(|_| interval.push(ms(tick * 16 + pause)));
        }
        assert!((interval.interval - 0.016).abs() < 0.001, "{interval:?}");
    }
}
