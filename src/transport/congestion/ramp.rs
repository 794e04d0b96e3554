//! From the first train to the rate that it told.
//!
//! A train tells the rate of the narrowest place, not what others leave of it, and a peer may ack as it likes. So the bytes
//! on their way grow in steps, each acked before the next, until they fill what the train told; a queue ends that, as in HyStart
//! (RFC 9406): then what was acked of the last step in a round trip is the rate.

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

/// What to go on with then, as a part of what was acked: the others see their queues only now.
const SHARED: f64 = 0.7;

/// The share of losses that ends it.
const MAX_LOSS: f64 = 0.5;

/// Bytes that may be on their way, and what became of them.
#[derive(Debug)]
pub(super) struct Ramp {
    window: f64,
    acked: f64,
    lost: f64,
    /// The waits that were measured.
    queue: f64,
    samples: f64,
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
    pub(super) fn new(acked: f64) -> Self {
        Ramp { window: FIRST_STEP * acked, acked: 0.0, lost: 0.0, queue: 0.0, samples: 0.0 }
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

    /// Takes what was acked of the packets that were sent since; `window` would fill the link.
    pub(super) fn on_acked(&mut self, bytes: f64, base: f64, ticks: f64, window: f64) -> Verdict {
        self.acked += bytes;
        if self.acked + self.lost < ACKED * self.window {
            return Verdict::Wait;
        }
        let queue = self.queue / self.samples.max(1.0);
        let long = queue > (QUEUE * base).clamp(MIN_QUEUE, MAX_QUEUE) + ticks;
        if long || self.lost > MAX_LOSS * (self.acked + self.lost) {
            return Verdict::Shared(SHARED * self.acked / (base + queue));
        }
        if self.window >= window {
            return Verdict::Filled;
        }
        *self = Ramp { window: STEP * self.window, acked: 0.0, lost: 0.0, queue: 0.0, samples: 0.0 };
        Verdict::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_while_the_link_is_empty_and_end_with_a_queue() {
        let mut ramp = Ramp::new(10_000.0);
        assert_eq!(ramp.window(), FIRST_STEP * 10_000.0);
        let most = ACKED * FIRST_STEP * 10_000.0;
        assert_eq!(ramp.on_acked(most - 1_000.0, 0.05, 0.0, 1e6), Verdict::Wait);
        assert_eq!(ramp.window(), FIRST_STEP * 10_000.0, "the step isn't acked");
        assert_eq!(ramp.on_acked(1_000.0, 0.05, 0.0, 1e6), Verdict::Wait);
        assert_eq!(ramp.window(), STEP * FIRST_STEP * 10_000.0);
        ramp.on_queue(0.05);
        let step = ramp.window();
        assert_eq!(ramp.on_acked(step, 0.05, 0.0, 1e6), Verdict::Shared(SHARED * step / 0.1));
    }

    #[test]
    fn steps_end_when_they_fill_the_link() {
        let mut ramp = Ramp::new(10_000.0);
        let step = ramp.window();
        assert_eq!(ramp.on_acked(step, 0.05, 0.0, step), Verdict::Filled);
    }
}
