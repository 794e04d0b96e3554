//! Outages: no ack comes for long though packets are in flight. What was lost in one says nothing of the rate.

use super::{RoundTrip, SentStamp};
use crate::time::{Duration, Instant};

/// Without an ack for as many round trips and ticks, and as many seconds more, there is an outage.
const OUTAGE_RTTS: f64 = 2.0;
const MIN_OUTAGE: f64 = 0.05;

/// The last outage.
#[derive(Debug)]
pub(super) struct Outage {
    /// What was sent before then, and lost, says nothing of the rate.
    pub(super) ended: Instant,
    /// An epoch ended since, or the startup: a peer that is silent again and again has no second outage before.
    judged: bool,
}

impl Default for Outage {
    fn default() -> Self {
        Outage { ended: Instant::ZERO, judged: true }
    }
}

impl Outage {
    /// Whether it counts if this packet is lost: none of the startup does here, nor one of an outage.
    pub(super) fn counts_if_lost(&self, stamp: &SentStamp) -> bool {
        !stamp.sent_in_startup && stamp.sent_at >= self.ended
    }

    /// Whether an ack after this silence ends an outage: there was none for long, though packets were in flight, and not because
    /// they waited. One that comes without a round trip is an old one. `usual` is the seconds that acks take.
    pub(super) fn ends(&mut self, silence: Duration, usual: f64, round_trip: Option<RoundTrip>) -> bool {
        let waited = round_trip.is_some_and(|round_trip| round_trip.time >= silence / 2);
        let ends = self.judged && is_long(silence, usual) && !waited;
        self.judged &= !ends;
        ends
    }

    /// An outage, or a pause of our own, is over.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = now;
    }

    /// An epoch ended, or the startup.
    pub(super) fn judge(&mut self) {
        self.judged = true;
    }
}

/// Whether nothing comes for this time only in an outage. `usual` is the seconds that acks take.
pub(super) fn is_long(time: Duration, usual: f64) -> bool {
    time.as_secs_f64() > OUTAGE_RTTS * usual + MIN_OUTAGE
}
