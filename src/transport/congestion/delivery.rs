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

/// The acks of packets that went out at one instant: the narrowest place on the way sets how far apart they come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    sent_at: Option<Instant>,
    sent_bytes: f64,
    settled_bytes: f64,
    first_ack: Instant,
    previous_ack: Instant,
    last_ack: Instant,
    /// Times at which some were acked.
    acks: u32,
    /// Acked after `first_ack` and up to `previous_ack`.
    inner: f64,
    /// Acked at `last_ack`.
    group: f64,
    largest_group: f64,
}

impl Train {
    pub(super) fn on_sent(&mut self, now: Instant, bytes: f64) {
        if *self.sent_at.get_or_insert(now) == now {
            self.sent_bytes += bytes;
        }
    }

    /// Takes an ack; true if it is of a packet that went later: the train is complete.
    pub(super) fn on_acked(&mut self, now: Instant, sent_at: Instant, bytes: f64) -> bool {
        let Some(began) = self.sent_at else { return false };
        if sent_at != began {
            return sent_at > began && self.acks > 0;
        }
        if self.acks == 0 {
            (self.first_ack, self.last_ack, self.acks) = (now, now, 1);
        } else if now > self.last_ack {
            if self.acks > 1 {
                self.inner += self.group;
            }
            (self.previous_ack, self.last_ack, self.group) = (self.last_ack, now, 0.0);
            self.acks += 1;
        }
        self.settled_bytes += bytes;
        self.group += bytes;
        self.largest_group = self.largest_group.max(self.group);
        false
    }

    pub(super) fn on_lost(&mut self, sent_at: Instant, bytes: f64) {
        if self.sent_at == Some(sent_at) {
            self.settled_bytes += bytes;
        }
    }

    /// Whether the fate of each packet is known.
    pub(super) fn is_settled(&self) -> bool {
        self.sent_bytes > 0.0 && self.settled_bytes >= self.sent_bytes
    }

    pub(super) fn sent_bytes(&self) -> f64 {
        self.sent_bytes
    }

    /// Bytes a second that the narrowest place lets through; none if the train passed as quickly as it is possible
    /// to tell. The first and last groups may have been cut short, so they don't count.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.acks >= 3 && self.inner >= 6_000.0)
            .then(|| self.inner / (self.previous_ack - self.first_ack).as_secs_f64())
    }

    /// Bytes a second that it lets through at the very least.
    pub(super) fn least_rate(&self) -> f64 {
        self.largest_group / TICK
    }
}

/// Seconds between the times at which a slow peer looks for packets.
pub(super) const TICK: f64 = 1.0 / 60.0;
