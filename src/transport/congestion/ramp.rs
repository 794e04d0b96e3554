//! From the first train to the rate that it told.
//!
//! A train tells the rate of the narrowest place, not what others leave of it, and a peer may ack as it likes. So the bytes
//! on their way grow in steps, each acked before the next, until they fill what the train told; a queue ends that, as in HyStart
//! (RFC 9406): then what was acked of the last step in a round trip is the rate.
//!
//! Or the train told too much. What it told goes out evenly, so such a queue grows slowly, and most of what was told arrives all
//! the while: if the peer tells when packets come, that is the rate then.

use super::delivery::Passage;
use crate::time::Instant;

/// How much more may be on its way after the train: slow start's is 2. 32 KiB fill 10 Mbit/s and 50 ms with it, and 100
/// Mbit/s and 30 ms with the next step. Of many that begin together it is too much: twenty on 50 Mbit/s and 40 ms lose 69 %
/// of what they send in their first second (26 % with 3 after ten packets, and steps of 4).
const FIRST_STEP: f64 = 4.0;

/// And after each step that found the link empty: 50 Mbit/s and 100 ms are full with two. With 16 one does it, which is worth
/// 1 % of 8 MiB; but then of twenty that begin together there the first few take the link before they see the others
/// (Jain's index 0.20 instead of 0.32), two end with 0.80 instead of 1.00, and a peer that acks faster than it receives is
/// sent 15 times as much after one round trip.
const STEP: f64 = 4.0;

/// The part of a step that has to be acked: some of it may be lost by chance.
const ACKED: f64 = 0.8;

/// The queue that ends it: a part of the round trip within bounds, in seconds (RFC 9406).
const QUEUE: f64 = 1.0 / 8.0;
const MIN_QUEUE: f64 = 0.004;
const MAX_QUEUE: f64 = 0.016;

/// A queue is our own if more than this part of what the train told arrived during so many times as long as it is.
const OUR_OWN: f64 = 0.75;
const OUR_OWN_TIME: f64 = 2.5;

/// What to go on with beside others, as a part of what was acked: the others see their queues only now.
const SHARED: f64 = 0.7;

/// The share of losses that ends it.
const MAX_LOSS: f64 = 0.5;

/// Bytes that may be on their way, and what became of them.
#[derive(Debug)]
pub(super) struct Ramp {
    began: Instant,
    window: f64,
    acked: f64,
    lost: f64,
    /// The waits that were measured.
    queue: f64,
    samples: f64,
    /// Of the first packet acked and of the last one, with what was acked between the two.
    passages: Option<(Passage, Passage, f64)>,
}

/// What is known of the path. Times are seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Until an ack comes if there is no queue.
    pub(super) base: f64,
    pub(super) ticks: f64,
    /// Bytes a second that the train told.
    pub(super) told: f64,
}

/// What a step tells.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Wait,
    /// No more is needed.
    Filled,
    /// Others are there: bytes a second.
    Shared(f64),
}

impl Ramp {
    /// After a train of which so many bytes were acked.
    pub(super) fn new(now: Instant, acked: f64) -> Self {
        Ramp::step(now, FIRST_STEP * acked)
    }

    fn step(began: Instant, window: f64) -> Self {
        Ramp { began, window, acked: 0.0, lost: 0.0, queue: 0.0, samples: 0.0, passages: None }
    }

    pub(super) fn window(&self) -> f64 {
        self.window
    }

    pub(super) fn on_queue(&mut self, queue: f64) {
        self.queue += queue.max(0.0);
        self.samples += 1.0;
    }

    pub(super) fn on_lost(&mut self, bytes: f64) {
        self.lost += bytes;
    }

    /// The newest packet acked, with so many bytes, came at a time that the peer tells.
    pub(super) fn on_passage(&mut self, passage: Passage, bytes: f64) {
        if passage.sent_at >= self.began {
            let (first, _, before) = self.passages.unwrap_or((passage, passage, -bytes));
            self.passages = Some((first, passage, before + bytes));
        }
    }

    /// Takes what was acked of the packets that were sent since.
    pub(super) fn on_acked(&mut self, now: Instant, bytes: f64, path: Path) -> Verdict {
        let Path { base, ticks, told } = path;
        self.acked += bytes;
        if self.acked + self.lost < ACKED * self.window {
            return Verdict::Wait;
        }
        let queue = self.queue / self.samples.max(1.0);
        let long = queue > (QUEUE * base).clamp(MIN_QUEUE, MAX_QUEUE) + ticks;
        if long || self.lost > MAX_LOSS * (self.acked + self.lost) {
            let own = self.own_rate(told, OUR_OWN_TIME * (queue - ticks).max(0.0));
            return Verdict::Shared(own.unwrap_or(SHARED * self.acked / (base + queue)));
        }
        if self.window >= told * (base + ticks) {
            return Verdict::Filled;
        }
        *self = Ramp::step(now, STEP * self.window);
        Verdict::Wait
    }

    /// Bytes a second at which the step came, if that took longer than so many seconds and is most of what was told.
    fn own_rate(&self, told: f64, enough: f64) -> Option<f64> {
        let (first, last, bytes) = self.passages?;
        let span = last.span(first);
        (span > enough && bytes > OUR_OWN * told * span).then(|| bytes / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { base: 0.05, ticks: 0.0, told: 20e6 };

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn steps_grow_while_the_link_is_empty_and_end_with_a_queue() {
        let mut ramp = Ramp::new(ms(0), 10_000.0);
        assert_eq!(ramp.window(), FIRST_STEP * 10_000.0);
        let most = ACKED * FIRST_STEP * 10_000.0;
        assert_eq!(ramp.on_acked(ms(1), most - 1_000.0, PATH), Verdict::Wait);
        assert_eq!(ramp.window(), FIRST_STEP * 10_000.0, "the step isn't acked");
        assert_eq!(ramp.on_acked(ms(2), 1_000.0, PATH), Verdict::Wait);
        assert_eq!(ramp.window(), STEP * FIRST_STEP * 10_000.0);
        ramp.on_queue(0.05);
        let step = ramp.window();
        assert_eq!(ramp.on_acked(ms(3), step, PATH), Verdict::Shared(SHARED * step / 0.1));
    }

    #[test]
    fn steps_end_when_they_fill_the_link() {
        let mut ramp = Ramp::new(ms(0), 10_000.0);
        let step = ramp.window();
        let path = Path { told: step / 0.05, ..PATH };
        assert_eq!(ramp.on_acked(ms(1), step, path), Verdict::Filled);
    }

    #[test]
    fn a_queue_that_grows_while_most_of_what_was_told_arrives_is_our_own() {
        for (rate, own) in [(16e6, true), (12e6, false)] {
            let mut ramp = Ramp::new(ms(0), 10_000.0);
            for millis in 0..=60 {
                let received_at = ms(9_000 + millis);
                ramp.on_passage(Passage { sent_at: ms(millis), received_at }, rate / 1e3);
            }
            ramp.on_queue(0.02);
            let Verdict::Shared(share) = ramp.on_acked(ms(120), 40_000.0, PATH) else { panic!("{ramp:?}") };
            let expected = if own { rate } else { SHARED * 40_000.0 / 0.07 };
            assert!((share - expected).abs() < 1.0, "{share}");
        }
    }
}
