//! The amount that arrives.

use super::constants::{BLUR, KEEP_WAITS, MIN_LOSSES};
use crate::time::Instant;

/// A rate of arrival is never believed above this many times the rate of sending: a queue may be draining, or a
/// peer's clock may lie.
const MAX_COMPRESSION: f64 = 2.0;

/// Waits before losses are longer than others if their mean is by this many standard deviations, and by this
/// many seconds.
const DEVIATIONS: f64 = 3.0;
const MIN_LONGER: f64 = 0.0003;

/// A queue stands if waits are longer than this part of the target, and than [`BLUR`].
const MIN_STAYING: f64 = 0.25;

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
    pub(super) waits: Waits,
}

/// How many seconds packets waited in the queue, and how many those did that were acked last before a loss was noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    count: f64,
    sum: f64,
    squares: f64,
    losses: f64,
    before_losses: f64,
    last: f64,
}

impl Waits {
    pub(super) fn on_acked(&mut self, wait: f64) {
        self.last = wait;
        self.count += 1.0;
        self.sum += wait;
        self.squares += wait * wait;
    }

    pub(super) fn on_lost(&mut self) {
        if self.count > 0.0 {
            self.losses += 1.0;
            self.before_losses += self.last;
        }
    }

    /// Adds those of an epoch; former ones count less then.
    pub(super) fn add(&mut self, epoch: &Waits) {
        let sum = |before: f64, more: f64| before * KEEP_WAITS + more;
        *self = Waits {
            count: sum(self.count, epoch.count),
            sum: sum(self.sum, epoch.sum),
            squares: sum(self.squares, epoch.squares),
            losses: sum(self.losses, epoch.losses),
            before_losses: sum(self.before_losses, epoch.before_losses),
            last: epoch.last,
        };
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// Whether waits before losses are longer than others, by more than chance makes of it: a queue overflows.
    pub(super) fn are_longer_before_losses(&self) -> bool {
        let mean = self.mean();
        let deviation = (self.squares / self.count.max(1.0) - mean * mean).max(0.0).sqrt();
        let longer = self.before_losses / self.losses.max(1.0) - mean;
        let chance = DEVIATIONS * deviation / self.losses.sqrt();
        self.losses > MIN_LOSSES && longer > MIN_LONGER && longer > chance
    }
}

/// What else shows at the end of an epoch, besides its losses. Times are seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    /// The wait in the queue that we aim for.
    pub(super) target: f64,
    /// The round trip without queues.
    pub(super) rtt: f64,
    /// By how much ticks and jitter blur waits.
    pub(super) blur: f64,
    /// Waits tell of a queue: few packets are overtaken, and ticks are short.
    pub(super) clear: bool,
    /// The rate keeps rising, with fewer losses than an overflowing queue would cause.
    pub(super) unhindered: bool,
}

impl Signs {
    /// A mean wait that is longer shows a queue that stands.
    pub(super) fn standing_wait(&self) -> f64 {
        MIN_STAYING * self.target + BLUR + self.blur
    }
}

impl Epoch {
    pub(super) fn new(now: Instant, since: Option<Passage>) -> Self {
        let (delivered, app_limited, lost) = (0.0, 0.0, 0.0);
        Epoch {
            began: now,
            since,
            delivered,
            app_limited,
            lost,
            least_queue: f64::INFINITY,
            waits: Waits::default(),
        }
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
