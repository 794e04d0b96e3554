//! The bytes in flight.

use super::SentStamp;
use crate::time::Instant;

/// The packets in flight, with bytes.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) bytes: f64,
    /// Bytes sent since the rate is known.
    pub(super) in_flight_since_startup: f64,
    /// Nothing was acked since, though packets were in flight.
    pub(super) waiting_since: Instant,
    pub(super) last_sent: Instant,
}

impl Flight {
    pub(super) fn add(&mut self, stamp: &SentStamp) {
        if self.bytes <= 0.0 {
            self.waiting_since = stamp.sent_at;
        }
        self.last_sent = stamp.sent_at;
        self.change(stamp, 1.0);
    }

    pub(super) fn remove(&mut self, stamp: &SentStamp) {
        self.change(stamp, -1.0);
    }

    pub(super) fn change(&mut self, stamp: &SentStamp, sign: f64) {
        self.bytes += sign * f64::from(stamp.bytes);
        if !stamp.sent_in_startup {
            self.in_flight_since_startup += sign * f64::from(stamp.bytes);
        }
    }

    /// Whether acks have been missing for so long that one more packet should ask for some.
    pub(super) fn is_stalled(&self, now: Instant, rtt: f64) -> bool {
        (now - self.waiting_since).as_secs_f64() > 2.0 * rtt + 0.05
            && (now - self.last_sent).as_secs_f64() > 0.5 * rtt
    }
}
