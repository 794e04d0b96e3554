//! How many packets may go out to a peer whose acks are all in the headers of the packets that it sends.
//!
//! Promises: no more at once than a header acks with room to spare, and no more for each of its packets than are
//! acked by four of them; half as many when more are lost than chance explains, or a queue builds up. A peer that
//! sends nothing gets nothing beyond its earlier allowance.

use crate::time::{Duration, Instant};

/// How many packets may go out beyond one a tick. The peer acks 32 packets at a time, in the packets that it sends, so
/// each of these allows some more; fewer when many are lost or a queue builds up.
#[derive(Debug)]
pub(super) struct PeerPace {
    per_packet: f64,
    left: f64,
    /// The share of recent packets that were lost.
    loss: f64,
    least_round_trip: Duration,
    slowed_at: Instant,
}

/// Packets for each of the peer's: each is acked by four headers.
const MAX_PER_PACKET: f64 = 8.0;
const FIRST_PER_PACKET: f64 = 4.0;
/// Packets at once: a header that acks them all has room for some more.
const MAX_AT_ONCE: f64 = 24.0;
/// More than this share lost is more than chance.
const MAX_LOSS: f64 = 0.3;
/// The number of packets over which the share is averaged.
const LOSS_MEMORY: f64 = 32.0;
/// A round trip longer than the least one by this is a queue.
const QUEUE: Duration = Duration::from_millis(250);

impl Default for PeerPace {
    fn default() -> Self {
        PeerPace {
            per_packet: FIRST_PER_PACKET,
            left: FIRST_PER_PACKET,
            loss: 0.0,
            least_round_trip: Duration::MAX,
            slowed_at: Instant::ZERO,
        }
    }
}

impl PeerPace {
    pub(super) fn handle_packet(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.left = (self.left + self.per_packet).min(MAX_AT_ONCE);
        if let Some(round_trip) = round_trip {
            self.least_round_trip = self.least_round_trip.min(round_trip);
            if round_trip > self.least_round_trip + QUEUE && now > self.slowed_at + round_trip {
                self.slow_down(now);
            }
        }
    }

    pub(super) fn handle_ack(&mut self) {
        self.loss -= self.loss / LOSS_MEMORY;
        self.per_packet = (self.per_packet + 0.25).min(MAX_PER_PACKET);
    }

    pub(super) fn handle_lost(&mut self, now: Instant) {
        self.loss += (1.0 - self.loss) / LOSS_MEMORY;
        if self.loss > MAX_LOSS {
            self.slow_down(now);
        }
    }

    /// Whether another packet may go.
    pub(super) fn allows(&self) -> bool {
        self.left >= 1.0
    }

    pub(super) fn spend(&mut self) {
        self.left -= 1.0;
    }

    fn slow_down(&mut self, now: Instant) {
        self.per_packet = (self.per_packet / 2.0).max(1.0);
        self.left = self.left.min(self.per_packet);
        self.loss = MAX_LOSS / 2.0;
        self.slowed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(pace: &mut PeerPace) -> usize {
        core::iter::from_fn(|| pace.allows().then(|| pace.spend())).count()
    }

    #[test]
    fn each_packet_of_the_peer_allows_some_and_a_silent_peer_none() {
        let mut pace = PeerPace::default();
        assert_eq!((burst(&mut pace), burst(&mut pace)), (4, 0));
        (0..100).for_each(|_| pace.handle_ack());
        pace.handle_packet(Instant::ZERO, None);
        assert_eq!(burst(&mut pace), 8);
        (0..100).for_each(|_| pace.handle_packet(Instant::ZERO, None));
        assert_eq!(burst(&mut pace), 24, "never more than one header acks");
    }

    #[test]
    fn chance_does_not_slow_it_and_a_flood_or_a_queue_does() {
        let now = Instant::from_millis(10_000);
        let mut pace = PeerPace::default();
        for n in 0..1_000 {
            if n % 10 == 0 { pace.handle_lost(now) } else { pace.handle_ack() }
        }
        assert!(pace.per_packet > 7.0, "{pace:?}");
        (0..100).for_each(|_| pace.handle_lost(now));
        assert!(pace.per_packet < 1.5, "{pace:?}");
        (0..100).for_each(|_| pace.handle_ack());
        pace.handle_packet(now, Some(Duration::from_millis(40)));
        pace.handle_packet(now + Duration::from_secs(1), Some(Duration::from_millis(300)));
        assert_eq!(pace.per_packet, 4.0);
    }
}
