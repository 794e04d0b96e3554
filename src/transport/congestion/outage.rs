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
    /// An epoch ended since, or the startup: who is silent again and again isn't forgiven each time.
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
    /// they waited. One that comes without a round trip is an old one. Acks `usually` take so many seconds.
    pub(super) fn ends(&self, silence: Duration, usually: f64, round_trip: Option<RoundTrip>) -> bool {
        let waited = round_trip.is_some_and(|round_trip| round_trip.time >= silence / 2);
        self.judged && is_long(silence, usually) && !waited
    }

    /// An outage, or a pause of our own, is over.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = now;
    }

    /// The next one isn't forgiven before [`Outage::judge`].
    pub(super) fn forgive(&mut self) {
        self.judged = false;
    }

    /// An epoch ended, or the startup.
    pub(super) fn judge(&mut self) {
        self.judged = true;
    }
}

/// Whether nothing comes for so long only in an outage, where acks `usually` take so many seconds.
pub(super) fn is_long(time: Duration, usually: f64) -> bool {
    time.as_secs_f64() > OUTAGE_RTTS * usually + MIN_OUTAGE
}
