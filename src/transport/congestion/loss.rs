//! Losses: whether the link loses by itself, or because we send more than fits into its queue.
//!
//! A queue of a few milliseconds overflows before delay shows it, and a share of losses alone proves nothing: a radio
//! link loses as many at any rate. So a new share is tested: for some round trips we send somewhat less than arrived.
//! If as many are still lost, the link loses them, and we send more by that share. If few are, the queue overflowed:
//! the rate then stays below what overflowed it, and well below if others contend for it (as BBR version 3 bounds
//! what is in flight, draft-ietf-ccwg-bbr-02, 5.5.10), until it is tried again.

use super::delivery::Epoch;
use crate::time::{Duration, Instant};

/// Bytes of a packet, for how much chance adds.
const PACKET: f64 = 1_215.0;

/// An epoch that is this many epochs old counts a third in the share of recent losses: 1 / (1 - KEEP).
const KEEP: f64 = 0.75;

/// More than the known share by this is new.
const MIN_EXCESS: f64 = 0.002;

/// Chance adds less than this many standard deviations: on a lossless link, and on a lossy one.
const DEVIATIONS: f64 = 1.0;
const DEVIATIONS_IF_LOSSY: f64 = 2.0;

/// An epoch that lost more than this share is an outage, from which nothing is learned.
const MAX_EPOCH_LOSS: f64 = 0.6;

/// The weight of former tests.
const KEEP_TESTS: f64 = 0.8;

/// The weight of an epoch before a test, after the next one: a test that began because many were lost by chance would
/// otherwise compare with too few.
const KEEP_BEFORE: f64 = 0.97;

/// The link itself loses no larger share than this.
const MAX_LOSS: f64 = 0.2;

/// The rate in a test, as a part of what arrived before it.
const TEST_RATE: f64 = 0.92;

/// Epochs until the test's effect shows in losses: a round trip, and the time to notice them.
const TEST_SKIPS: u32 = 2;
const MIN_TEST_EPOCHS: u32 = 2;
const MAX_TEST_EPOCHS: u32 = 16;
const MIN_TEST_BYTES: f64 = 30.0 * PACKET;
/// Fewer bytes than this determine no share.
const MIN_BYTES: f64 = 40.0 * PACKET;
const MIN_LOSSES: f64 = 2.5;
/// A test lasts until this many packets would be lost if the share were still the same.
const MIN_TEST_LOSSES: f64 = 3.0;
/// Fewer than this part of the share before are lost if the queue overflowed.
const FEWER: f64 = 0.34;

/// The interval between tests, doubled each time that the link was found to lose by itself.
const TEST_INTERVAL: Duration = Duration::from_millis(500);
const MAX_LOSSY_TESTS: u32 = 4;

/// The rate after an overflow, as a part of what arrived: alone, and beside others (Cubic's).
const ALONE: f64 = 0.97;
const CONTENDED: f64 = 0.7;

/// Others contend if less arrived when the queue overflowed than this part of what once did.
const CONTENDED_BELOW: f64 = 0.9;

/// How long that rate is held before more is tried, and how much more for each epoch then.
const HOLD: Duration = Duration::from_secs(2);
const RAISE: f64 = 1.02;

/// How much more for each second beside others: some seconds to be back, which leaves Cubic time to take its share
/// (like BBR version 3's time between probes).
const RAISE_A_SECOND: f64 = 0.08;

/// The losses of recent epochs, and the conclusions. Rates are bytes a second.
#[derive(Debug, Default)]
pub(super) struct Loss {
    lost: f64,
    judged: f64,
    seconds: f64,
    /// The share that the link loses by itself.
    share: f64,
    /// Bytes lost, and all, before tests and in them.
    before: [f64; 2],
    within: [f64; 2],
    test: Option<Box<Test>>,
    /// Tests in a row that found that the link loses by itself.
    lossy_tests: u32,
    tested_at: Instant,
    ceiling: Option<Ceiling>,
    /// The most that ever arrived, forgotten in a minute or so.
    max_rate: f64,
}

#[derive(Debug)]
struct Test {
    rate: f64,
    share_before: f64,
    arrived_before: f64,
    /// Nothing else than the queue's state was changed when the losses began: we sent as before.
    unprovoked: bool,
    epochs: u32,
    lost: f64,
    judged: f64,
}

#[derive(Debug)]
struct Ceiling {
    rate: f64,
    since: Instant,
    contended: bool,
}

impl Loss {
    /// The share that the link loses by itself.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Whether the rate is held for a test.
    pub(super) fn is_testing(&self) -> bool {
        self.test.is_some()
    }

    /// No faster than this.
    pub(super) fn max_rate(&self) -> f64 {
        let ceiling = self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.rate);
        self.test.as_ref().map_or(ceiling, |test| test.rate)
    }

    /// Takes the outcome of an epoch's packets, which arrived in this many seconds. `queue`: delay shows a queue.
    /// `unhindered`: the rate keeps rising, with fewer losses than an overflowing queue would cause.
    pub(super) fn end_epoch(
        &mut self,
        now: Instant,
        epoch: &Epoch,
        seconds: f64,
        queue: bool,
        unhindered: bool,
    ) {
        if epoch.lost > MAX_EPOCH_LOSS * (epoch.lost + epoch.delivered) {
            return;
        }
        if self.test.is_some() {
            self.advance_test(now, epoch);
            return;
        }
        self.lost = self.lost * KEEP + epoch.lost;
        self.judged = self.judged * KEEP + epoch.lost + epoch.delivered;
        self.seconds = self.seconds * KEEP + seconds;
        self.before = [
            self.before[0] * KEEP_BEFORE + epoch.lost,
            self.before[1] * KEEP_BEFORE + epoch.lost + epoch.delivered,
        ];
        let arrived = (self.judged - self.lost) / self.seconds;
        self.max_rate = arrived.max(self.max_rate * (1.0 - seconds / 30.0));
        let share = self.recent();
        if share < self.share {
            self.share += (share - self.share) * 0.1;
        }
        let deviations = if self.share > MIN_EXCESS { DEVIATIONS_IF_LOSSY } else { DEVIATIONS };
        let chance = deviations * (share * (1.0 - share) * PACKET / self.judged.max(PACKET)).sqrt();
        let rested = now - self.tested_at > TEST_INTERVAL * (1 << self.lossy_tests);
        // After an earlier overflow, any loss may be caused by others.
        let bounded = self.ceiling.is_some() && self.share < MIN_EXCESS && epoch.lost > 0.0;
        let known = self.judged > MIN_BYTES && self.before[0] > MIN_LOSSES * PACKET;
        let excess = share - self.share;
        if rested && !unhindered && (bounded || known && excess > MIN_EXCESS.max(chance).max(self.share)) {
            let before = (self.before[0] / self.before[1].max(1.0)).clamp(1e-4, 1.0);
            self.begin_test(now, if bounded { share.max(before) } else { before }, arrived);
        } else if let Some(ceiling) = &mut self.ceiling {
            if ceiling.contended {
                ceiling.rate *= 1.0 + RAISE_A_SECOND * seconds;
            } else if now - ceiling.since > HOLD {
                ceiling.rate *= RAISE;
            }
            if queue && ceiling.rate > 1.1 * arrived {
                self.ceiling = None;
            }
        }
    }

    fn recent(&self) -> f64 {
        if self.judged > 0.0 { (self.lost / self.judged).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn begin_test(&mut self, now: Instant, share: f64, arrived: f64) {
        let unprovoked =
            self.ceiling.as_ref().is_some_and(|ceiling| !ceiling.contended && now - ceiling.since < HOLD);
        self.test = Some(Box::new(Test {
            rate: TEST_RATE * arrived / (1.0 - self.share),
            share_before: share,
            arrived_before: arrived,
            unprovoked,
            epochs: 0,
            lost: 0.0,
            judged: 0.0,
        }));
    }

    fn advance_test(&mut self, now: Instant, epoch: &Epoch) {
        let Some(test) = &mut self.test else { return };
        test.epochs += 1;
        if test.epochs <= TEST_SKIPS {
            return;
        }
        test.lost += epoch.lost;
        test.judged += epoch.lost + epoch.delivered;
        let epochs = test.epochs - TEST_SKIPS;
        let enough = MIN_TEST_BYTES.max(MIN_TEST_LOSSES * PACKET / test.share_before);
        if epochs < MIN_TEST_EPOCHS || (test.judged < enough && epochs < MAX_TEST_EPOCHS) {
            return;
        }
        let share_of = |[lost, all]: [f64; 2]| (lost / all.max(1.0)).clamp(0.0, 1.0);
        self.within = [self.within[0] * KEEP_TESTS + test.lost, self.within[1] * KEEP_TESTS + test.judged];
        let (before, share) = (test.share_before, share_of(self.within));
        if share < FEWER * before {
            let contended = test.unprovoked || test.arrived_before < CONTENDED_BELOW * self.max_rate;
            let part = if contended { CONTENDED } else { ALONE };
            let rate = part * test.arrived_before / (1.0 - self.share);
            self.ceiling = Some(Ceiling { rate, since: now, contended });
            self.lossy_tests = 0;
        } else {
            self.share = (0.5 * (share + before)).min(MAX_LOSS);
            self.ceiling = None;
            self.lossy_tests = (self.lossy_tests + 1).min(MAX_LOSSY_TESTS);
        }
        (self.lost, self.judged, self.seconds) = (test.lost, test.judged, 1e-9);
        self.seconds = test.judged / test.rate.max(1.0);
        self.tested_at = now;
        self.test = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epochs of 50 ms on a link that passes `capacity` bytes of each and loses a share by itself.
    fn play(loss: &mut Loss, epochs: u64, capacity: f64, share: f64) -> f64 {
        let mut rate = f64::INFINITY;
        for n in 0..epochs {
            let now = Instant::from_millis(50 + n * 50);
            rate = loss.max_rate().min(1.1 * capacity / 0.05 / (1.0 - loss.share()));
            let passed = (rate * 0.05).min(capacity / (1.0 - share));
            let delivered = passed * (1.0 - share);
            let epoch = Epoch {
                delivered,
                lost: rate * 0.05 - delivered,
                ..Epoch::new(Instant::from_millis(n * 50), None)
            };
            loss.end_epoch(now, &epoch, 0.05, false, false);
        }
        rate
    }

    #[test]
    fn what_a_link_loses_at_any_rate_is_its_own() {
        let mut loss = Loss::default();
        play(&mut loss, 100, 1e9, 0.1);
        assert!((loss.share() - 0.1).abs() < 0.02, "{loss:?}");
        assert_eq!(loss.max_rate(), f64::INFINITY);
    }

    #[test]
    fn a_queue_that_overflows_bounds_the_rate() {
        let mut loss = Loss::default();
        let rate = play(&mut loss, 40, 60_000.0, 0.0) * 0.05;
        assert!(loss.share() < 0.01 && (0.85 * 60_000.0..1.01 * 60_000.0).contains(&rate), "{rate} {loss:?}");
    }

    #[test]
    fn an_outage_teaches_nothing() {
        let mut loss = Loss::default();
        let epoch = Epoch { delivered: 1_000.0, lost: 60_000.0, ..Epoch::new(Instant::ZERO, None) };
        (1..9).for_each(|n| loss.end_epoch(Instant::from_millis(n * 50), &epoch, 0.05, false, false));
        assert_eq!((loss.share(), loss.max_rate()), (0.0, f64::INFINITY));
    }
}
