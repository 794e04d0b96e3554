//! The timer of reliable messages and their fragments, which are sent again.

use core::time::Duration;

use crate::time::Instant;
use crate::transport::protocol::Resend;

/// Doublings of the timeout: 64 times the first one is long enough for any link that still lives.
const MAX_BACKOFF: u32 = 6;

/// When to send again on suspicion what nothing was heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResendTimer {
    /// How long an ack may take: RTT and its variance.
    pub(crate) timeout: Duration,
    /// Timeouts begin no earlier than this: while packets wait in a queue, when the peer last acked anything, as only silence
    /// is suspicious then (RFC 6298 restarts its timer too).
    pub(crate) not_before: Instant,
}

impl ResendTimer {
    /// When it is time for what was sent then, after this many doublings of the timeout.
    pub(crate) fn due_at(&self, last_sent: Instant, doublings: u32) -> Instant {
        // In one number: durations are multiplied as seconds and nanoseconds apart.
        let nanos = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1 << doublings);
        Instant::from_nanos(last_sent.max(self.not_before).as_nanos().saturating_add(nanos))
    }
}

/// The packets that carried one thing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    last_sent: Option<Instant>,
    /// How many packets carried it.
    pub(super) sent: u32,
    /// Of those, the ones neither acked nor lost.
    in_flight: u32,
}

impl Copies {
    /// Whether a packet carries it that may still be acked.
    pub(super) fn are_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether a packet carried it before this moment.
    pub(super) fn were_sent_before(&self, now: Instant) -> bool {
        self.last_sent.is_some_and(|sent| sent < now)
    }

    /// When it may be sent; [`Instant::ZERO`] for at once.
    pub(super) fn due_at(&self, timer: ResendTimer, resend: Resend) -> Instant {
        let Some(last_sent) = self.last_sent else { return Instant::ZERO };
        match resend {
            Resend::After(time) => last_sent + time,
            Resend::Adaptive { .. } if self.in_flight == 0 => Instant::ZERO,
            Resend::Adaptive { .. } => {
                let backoff = self.sent.saturating_sub(1).min(MAX_BACKOFF);
                timer.due_at(last_sent, backoff)
            }
        }
    }

    /// Notes that a packet carries it.
    pub(super) fn track_sent(&mut self, now: Instant) {
        self.last_sent = Some(now);
        self.sent += 1;
        self.in_flight += 1;
    }

    /// A packet that carried it is lost.
    pub(super) fn handle_lost(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}
