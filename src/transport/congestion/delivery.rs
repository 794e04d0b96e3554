//! How fast packets arrive, and what share of them doesn't.

use crate::time::Instant;

/// What was acked in one epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Epoch {
    pub(super) started: Instant,
    pub(super) delivered: f64,
    pub(super) limited: f64,
    pub(super) lost: f64,
    pub(super) least_queue: f64,
}

impl Epoch {
    pub(super) fn new(now: Instant) -> Self {
        Epoch { started: now, least_queue: f64::INFINITY, ..Epoch::default() }
    }
}

/// The share of packets lost of late while there was no queue to overflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossShare {
    lost: f64,
    judged: f64,
}

impl LossShare {
    pub(super) fn add(&mut self, lost: f64, delivered: f64) {
        const KEEP: f64 = 0.9;
        self.lost = self.lost * KEEP + lost;
        self.judged = self.judged * KEEP + lost + delivered;
    }

    pub(super) fn value(&self) -> f64 {
        if self.judged > 0.0 { (self.lost / self.judged).clamp(0.0, 0.12) } else { 0.0 }
    }
}

/// Acks of packets that went out in one round, and how they are spaced: after a burst, by the narrowest place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    first_ack: Instant,
    last_ack: Instant,
    first_sent: Instant,
    last_sent: Instant,
    /// Bytes behind those of the first ack.
    behind: f64,
    bytes: f64,
    acks: u32,
}

impl Train {
    pub(super) fn push(&mut self, now: Instant, sent_at: Instant, bytes: f64) {
        if self.acks == 0 {
            (self.first_ack, self.first_sent) = (now, sent_at);
        } else if now > self.first_ack {
            self.behind += bytes;
        }
        if now > self.last_ack || self.acks == 0 {
            self.acks += 1;
        }
        if now == self.first_ack {
            self.first_sent = sent_at;
        }
        self.bytes += bytes;
        (self.last_ack, self.last_sent) = (now, self.last_sent.max(sent_at));
    }

    /// Whether a packet sent then belongs to the next round: it went when acks of this one had come.
    pub(super) fn is_before(&self, sent_at: Instant) -> bool {
        self.acks > 0 && sent_at >= self.first_ack
    }

    pub(super) fn is_empty(&self) -> bool {
        self.acks == 0
    }

    fn span(&self) -> f64 {
        (self.last_ack - self.first_ack).as_secs_f64()
    }

    /// Bytes a second of the spacing of acks.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.acks >= 4 && self.behind >= 7_000.0).then(|| self.behind / self.span())
    }

    /// Whether the packets came farther apart than they went.
    pub(super) fn spread(&self) -> bool {
        self.span() > 1.25 * (self.last_sent - self.first_sent).as_secs_f64()
    }

    /// What the link carries at the very least.
    pub(super) fn least_rate(&self) -> f64 {
        self.bytes / (self.span() + 0.017)
    }
}
