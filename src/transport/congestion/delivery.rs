//! How much arrives.

use crate::time::Instant;

/// A rate of arrival is never believed above this many times the rate of sending: a queue may be draining, or a
/// peer's clock may lie.
const MAX_COMPRESSION: f64 = 2.0;

/// When a packet was sent, by our clock, and came, by the peer's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Passage {
    pub(super) sent_at: Instant,
    pub(super) received_at: Instant,
}

impl Passage {
    /// Over how many seconds the data acked between the two arrived.
    pub(super) fn span(self, earlier: Passage) -> f64 {
        let sent = (self.sent_at - earlier.sent_at).as_secs_f64();
        (self.received_at - earlier.received_at).as_secs_f64().max(sent / MAX_COMPRESSION)
    }
}

/// The outcome of packets over about one round trip. Amounts are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) began: Instant,
    /// From the newest packet acked when it began.
    pub(super) since: Option<Passage>,
    pub(super) delivered: f64,
    /// Of those, bytes that the application sent more slowly than it might have.
    pub(super) app_limited: f64,
    pub(super) lost: f64,
    /// The shortest wait in the queue, in seconds.
    pub(super) least_queue: f64,
}

impl Epoch {
    pub(super) fn new(now: Instant, since: Option<Passage>) -> Self {
        let (delivered, app_limited, lost) = (0.0, 0.0, 0.0);
        Epoch { began: now, since, delivered, app_limited, lost, least_queue: f64::INFINITY }
    }

    /// Bytes a second that arrived: by the peer's clock if that is known, so that acks which wait and come in groups change
    /// nothing.
    pub(super) fn rate(&self, now: Instant, until: Option<Passage>) -> f64 {
        let theirs = self.since.zip(until).map_or(0.0, |(since, until)| until.span(since));
        self.delivered / if theirs > 0.0 { theirs } else { (now - self.began).as_secs_f64() }
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0.5 * self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(delivered: f64, lost: f64) -> Epoch {
        Epoch { delivered, lost, ..Epoch::new(Instant::ZERO, None) }
    }

    #[test]
    fn a_rate_is_bytes_over_time() {
        assert_eq!(epoch(500.0, 0.0).rate(Instant::from_millis(250), None), 2_000.0);
    }
}
