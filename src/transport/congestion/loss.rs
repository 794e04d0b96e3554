//! Losses: whether the link loses by itself, or because we send more than fits into its queue.
//!
//! A queue of a few milliseconds overflows before delay shows it, and a share of losses alone proves nothing: a radio
//! link loses as many at any rate. So a new share is tested: for some round trips we send somewhat less than arrived.
//! If as many are still lost, the link loses them, and we send more by that share. If few are, the queue overflowed:
//! the rate then stays below what overflowed it, and well below if others contend for it (as BBR version 3 bounds
//! what is in flight, draft-ietf-ccwg-bbr-02, 5.5.10), until it is tried again.
//!
//! Others that overflow the queue at any rate of ours look like a link that loses by itself. But then a queue stays in
//! the test, which goes on with much less, and losses come where the queue is long. Where packets are overtaken, or
//! ticks are long, waits show no queue, and nothing is concluded about others from them.

use super::ceiling::Ceiling;
use super::constants::{KEEP_WAITS, LESS, LONG, MAX_DOUBLINGS, MIN_BYTES, MIN_LOSSES, PACKET};
use super::delivery::{Epoch, Signs, Waits};
use super::share_test::{MIN_OTHERS_LOSSES, ShareTest};
use crate::time::{Duration, Instant};

/// An epoch that is this many epochs old counts a third in the share of recent losses: 1 / (1 - KEEP).
const KEEP: f64 = 0.75;

/// More than the known share by this is new.
const MIN_EXCESS: f64 = 0.002;

/// Chance adds less than this many standard deviations on a lossless link, and twice as many on a lossy one.
const DEVIATIONS: f64 = 1.0;

/// An epoch that lost more than this share is an outage, from which nothing is learned.
const MAX_EPOCH_LOSS: f64 = 0.6;

/// The weight of former tests.
const KEEP_TESTS: f64 = 0.8;

/// The link itself loses no larger share than this.
const MAX_LOSS: f64 = 0.2;

/// Fewer than this part of the share before are lost if the queue overflowed.
const FEWER: f64 = 0.34;

/// The interval between tests, doubled each time that the link was found to lose by itself.
const TEST_INTERVAL: Duration = Duration::from_millis(500);

/// What once arrived is forgotten in [`LONG`] seconds, and where waits are blurred, and with them what arrived in an epoch, in
/// these.
const MAX_RATE_SECONDS_IF_BLURRED: f64 = 30.0;

/// While we lose no more than this share beside others, at least this part of what once arrived stays ours.
const MAX_FLOOR_LOSS: f64 = 0.03;
const FLOOR: f64 = 0.4;

/// The losses of recent epochs, and the conclusions. Rates are bytes a second.
#[derive(Debug, Default)]
pub(super) struct Loss {
    lost: f64,
    judged: f64,
    seconds: f64,
    /// The share that the link loses by itself.
    pub(super) share: f64,
    /// Bytes lost, and all, before tests and in them.
    before: [f64; 2],
    within: [f64; 2],
    test: Option<Box<ShareTest>>,
    /// Tests in a row that found that the link loses by itself.
    lossy_tests: u32,
    tested_at: Instant,
    ceiling: Option<Ceiling>,
    /// The most that ever arrived, forgotten in some minutes.
    max_rate: f64,
    /// The rate of each of the last epochs: an outage takes from one or two.
    rates: [f64; 6],
    /// How long recent packets waited.
    waits: Waits,
}

impl Loss {
    /// Whether the rate is held for a test.
    pub(super) fn is_testing(&self) -> bool {
        self.test.is_some()
    }

    /// No faster than this.
    pub(super) fn max_rate(&self) -> f64 {
        let ceiling = self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.rate);
        self.test.as_ref().map_or(ceiling, |test| test.rate())
    }

    /// Takes the outcome of an epoch's packets, which arrived in this many seconds.
    pub(super) fn end_epoch(&mut self, now: Instant, epoch: &Epoch, seconds: f64, signs: Signs) {
        let queue = epoch.least_queue > 0.5 * signs.target;
        if epoch.lost > MAX_EPOCH_LOSS * (epoch.lost + epoch.delivered) {
            return;
        }
        self.waits.add(&epoch.waits);
        if self.test.is_some() {
            self.advance_test(now, epoch, signs);
            return;
        }
        self.lost = self.lost * KEEP + epoch.lost;
        self.judged = self.judged * KEEP + epoch.lost + epoch.delivered;
        self.seconds = self.seconds * KEEP + seconds;
        self.before = [
            self.before[0] * KEEP_WAITS + epoch.lost,
            self.before[1] * KEEP_WAITS + epoch.lost + epoch.delivered,
        ];
        let arrived = (self.judged - self.lost) / self.seconds;
        let forgotten_in = if signs.clear { LONG } else { MAX_RATE_SECONDS_IF_BLURRED };
        self.max_rate = arrived.max(self.max_rate * (1.0 - seconds / forgotten_in));
        self.rates.rotate_right(1);
        self.rates[0] = epoch.delivered / seconds;
        let share = self.recent();
        if share < self.share {
            self.share += (share - self.share) * 0.1;
        }
        let deviations = if self.share > MIN_EXCESS { 2.0 * DEVIATIONS } else { DEVIATIONS };
        let chance = deviations * (share * (1.0 - share) * PACKET / self.judged.max(PACKET)).sqrt();
        let rested = now - self.tested_at > TEST_INTERVAL * (1 << self.lossy_tests);
        // After an earlier overflow, any loss may be caused by others.
        let bounded = self.ceiling.is_some() && self.share < MIN_EXCESS && epoch.lost > 0.0;
        let known = self.judged > MIN_BYTES && self.before[0] > MIN_LOSSES * PACKET;
        let excess = share - self.share;
        let new = known && excess > MIN_EXCESS.max(chance).max(self.share);
        if rested && !signs.unhindered && (bounded || new) {
            let before = (self.before[0] / self.before[1].max(1.0)).clamp(1e-4, 1.0);
            // A loss that leads to a test proves nothing alone: of few packets, it is a large share.
            let surely = (self.lost - (self.lost * PACKET).sqrt()) / self.judged.max(1.0);
            self.begin_test(now, if bounded { surely.max(before) } else { before }, arrived);
        } else if let Some(ceiling) = &mut self.ceiling {
            ceiling.raise(now, seconds, self.max_rate, signs);
            if queue && ceiling.rate > 1.1 * arrived {
                self.ceiling = None;
            }
        }
    }

    /// Ends a test without an outcome.
    pub(super) fn abandon_test(&mut self) {
        self.test = None;
    }

    fn recent(&self) -> f64 {
        if self.judged > 0.0 { (self.lost / self.judged).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn begin_test(&mut self, now: Instant, share: f64, arrived: f64) {
        let mut test = ShareTest::new(arrived, self.share, share, self.waits.mean());
        test.most_before = self.rates.iter().copied().fold(arrived, f64::max);
        test.unprovoked = self.ceiling.as_ref().is_some_and(|ceiling| ceiling.is_held_alone(now));
        self.test = Some(Box::new(test));
    }

    fn advance_test(&mut self, now: Instant, epoch: &Epoch, signs: Signs) {
        let Some(test) = &mut self.test else { return };
        if !test.add(epoch) {
            return;
        }
        let before = test.share_before;
        let [mut lost, mut judged] = [test.lost, test.judged];
        if !test.is_deep() {
            [lost, judged] = [self.within[0] * KEEP_TESTS + lost, self.within[1] * KEEP_TESTS + judged];
            self.within = [lost, judged];
        }
        let share = (lost / judged.max(1.0)).clamp(0.0, 1.0);
        let fewer = share < FEWER * before;
        let stayed = signs.clear && test.has_queue_stayed(epoch, signs);
        let overflows = signs.clear && self.waits.are_longer_before_losses();
        if !fewer && !test.is_deep() && (stayed || overflows) {
            test.go_deep();
            return;
        }
        let others =
            test.is_deep() && (fewer && test.expected_losses() >= MIN_OTHERS_LOSSES || stayed && overflows);
        if others {
            // What they lost for us says nothing of the link.
            self.within = [test.lost, test.judged];
            self.share = self.share.min(share);
        }
        if fewer || others {
            let less = if signs.clear {
                test.most_before < LESS * self.max_rate
            } else {
                test.arrived_before < (1.0 - 2.0 * (1.0 - LESS)) * self.max_rate
            };
            let contended = others || test.unprovoked || less;
            let overflowed = test.arrived_before / (1.0 - self.share);
            let floor = if contended && before < MAX_FLOOR_LOSS { FLOOR * self.max_rate } else { 0.0 };
            self.ceiling = Some(Ceiling::new(now, overflowed, contended, floor));
            self.lossy_tests = 0;
        } else {
            self.share = (0.5 * (share + before)).min(MAX_LOSS);
            self.ceiling = None;
            self.lossy_tests = (self.lossy_tests + 1).min(MAX_DOUBLINGS);
        }
        (self.lost, self.judged) = (test.lost, test.judged);
        self.seconds = test.judged / test.rate().max(1.0);
        self.tested_at = now;
        self.test = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: Signs = Signs { target: 0.01, rtt: 0.05, blur: 0.0, clear: true, unhindered: false };

    /// Epochs of 50 ms on a link that passes `capacity` bytes of each and loses a share by itself.
    fn play(loss: &mut Loss, epochs: u64, capacity: f64, share: f64) -> f64 {
        let mut rate = f64::INFINITY;
        for n in 0..epochs {
            let now = Instant::from_millis(50 + n * 50);
            rate = loss.max_rate().min(1.1 * capacity / 0.05 / (1.0 - loss.share));
            let passed = (rate * 0.05).min(capacity / (1.0 - share));
            let delivered = passed * (1.0 - share);
            let epoch = Epoch {
                delivered,
                lost: rate * 0.05 - delivered,
                ..Epoch::new(Instant::from_millis(n * 50), None)
            };
            loss.end_epoch(now, &epoch, 0.05, SIGNS);
        }
        rate
    }

    #[test]
    fn what_a_link_loses_at_any_rate_is_its_own() {
        let mut loss = Loss::default();
        play(&mut loss, 100, 1e9, 0.1);
        assert!((loss.share - 0.1).abs() < 0.02, "{loss:?}");
        assert_eq!(loss.max_rate(), f64::INFINITY);
    }

    #[test]
    fn a_queue_that_overflows_bounds_the_rate() {
        let mut loss = Loss::default();
        let rate = play(&mut loss, 40, 60_000.0, 0.0) * 0.05;
        assert!(loss.share < 0.01 && (0.85 * 60_000.0..1.01 * 60_000.0).contains(&rate), "{rate} {loss:?}");
    }

    #[test]
    fn an_outage_teaches_nothing() {
        let mut loss = Loss::default();
        let mut epoch = Epoch { delivered: 1_000.0, lost: 60_000.0, ..Epoch::new(Instant::ZERO, None) };
        epoch.waits.on_acked(0.05);
        (0..50).for_each(|_| epoch.waits.on_lost());
        (1..9).for_each(|n| loss.end_epoch(Instant::from_millis(n * 50), &epoch, 0.05, SIGNS));
        assert_eq!((loss.share, loss.max_rate()), (0.0, f64::INFINITY));
        assert_eq!(loss.waits.mean(), 0.0, "nor how long packets wait");
    }
}
