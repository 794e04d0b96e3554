//! An estimate of how far packets overtake each other.

use super::estimate::Rtt;
use crate::time::{Duration, Instant};

/// After this many acks the measured jitter of round trips is trusted.
const SAMPLES_TO_TRUST: u32 = 50;

/// How far packets overtake each other on this link (after RACK, RFC 8985: a packet is lost when one sent
/// sufficiently later has arrived).
#[derive(Clone, Debug, Default)]
pub(super) struct Reordering {
    /// When the newest packet that was acked had been sent.
    newest_acked: Instant,
    /// Packets acked in time so far.
    acked: u32,
    /// By how much later packets were ahead of one that was wrongly taken for lost.
    seen: Duration,
}

impl Reordering {
    pub(super) fn learn(&mut self, sent_at: Instant, late: bool) {
        if late {
            self.seen = self.seen.max(self.newest_acked - sent_at);
        } else {
            // Old samples are forgotten over some hundred packets.
            self.seen -= self.seen / 256;
            self.acked = self.acked.saturating_add(1);
        }
        self.newest_acked = self.newest_acked.max(sent_at);
    }

    /// Packets sent before this are lost: those sent later have arrived.
    pub(super) fn overtaken(&self, rtt: &Rtt) -> Instant {
        let round_trip = rtt.smoothed().unwrap_or(Duration::ZERO);
        // Jitter means little before it was measured some times.
        let least = if self.acked < SAMPLES_TO_TRUST { round_trip / 4 } else { Duration::ZERO };
        let allowed = (rtt.jitter() * 3).max(self.seen).max(least).min(round_trip);
        Instant::ZERO + (self.newest_acked - Instant::ZERO).saturating_sub(allowed)
    }
}
