//! When a client dials again after its connection was lost, sans-IO: decisions only, which a driver carries out.
//!
//! Promises: delays double up to a bound and are the same for the same seed; an end that somebody meant, such as a kick,
//! is final; nothing follows the final end.

use super::reason::DisconnectReason;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Beyond this many doublings, each delay is the longest one.
const MAX_DOUBLINGS: u32 = 30;

/// How a client dials again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReconnectConfig {
    /// The delay before the first attempt; each later one waits twice as long.
    pub first_delay: Duration,
    /// The longest delay. A connection that lasts this long resets the delay.
    pub max_delay: Duration,
    /// The share of a delay, 0 to 1, of which a random part is subtracted.
    pub jitter: f64,
    /// How long it tries without a connection.
    pub give_up_after: Option<Duration>,
}

/// The next attempt to dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Counts from 1 after each lasting connection.
    pub number: u32,
    /// How long from now.
    pub delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A connection is up, or is being dialled.
    Linked,
    /// The next attempt is due then.
    Waiting {
        until: Instant,
    },
    /// An attempt has begun, and waits for its connect token.
    Preparing,
    Over,
}

/// Decides when a client dials again.
#[derive(Debug)]
pub struct Reconnector {
    config: ReconnectConfig,
    rng: Rng,
    phase: Phase,
    /// Attempts since the last lasting connection.
    attempts: u32,
    connected_at: Option<Instant>,
    lost_at: Instant,
}

/// Whether another attempt may do better. The other ends are meant, or would repeat.
fn is_passing(reason: DisconnectReason) -> bool {
    use DisconnectReason as Reason;
    matches!(
        reason,
        Reason::ServerClosed
            | Reason::PeerDisconnected
            | Reason::TimedOut
            | Reason::Stalled
            | Reason::ServerFull
            | Reason::RequestTimedOut
            | Reason::Unreachable
            | Reason::ResponseTimedOut
            | Reason::TokenExpired
    )
}

impl Reconnector {
    /// For a client that begins to dial now.
    pub fn new(config: ReconnectConfig, seed: u64, now: Instant) -> Self {
        let rng = Rng::seeded(seed);
        Reconnector { config, rng, phase: Phase::Linked, attempts: 0, connected_at: None, lost_at: now }
    }

    /// For a client that dials as soon as it has its first token.
    pub fn waiting(config: ReconnectConfig, seed: u64, now: Instant) -> Self {
        Reconnector { phase: Phase::Waiting { until: now }, ..Self::new(config, seed, now) }
    }

    /// The connection is up.
    pub fn note_connected(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// The connection ended, or the dial failed; returns the next attempt, or None if that end is final.
    pub fn note_end(&mut self, now: Instant, reason: DisconnectReason) -> Option<Attempt> {
        if self.phase == Phase::Over || !is_passing(reason) {
            self.stop();
            return None;
        }
        if let Some(connected_at) = self.connected_at.take() {
            self.lost_at = now;
            if now - connected_at >= self.config.max_delay {
                self.attempts = 0;
            }
        }
        self.plan(now)
    }

    /// An attempt failed before it could dial; returns the next one, or None if it gives up.
    pub fn note_failure(&mut self, now: Instant) -> Option<Attempt> {
        if self.phase == Phase::Over { None } else { self.plan(now) }
    }

    fn plan(&mut self, now: Instant) -> Option<Attempt> {
        let ReconnectConfig { first_delay, max_delay, jitter, .. } = self.config;
        let doublings = 1 << self.attempts.min(MAX_DOUBLINGS);
        let delay = first_delay.saturating_mul(doublings).min(max_delay);
        let delay = delay.mul_f64(1.0 - jitter * self.rng.unit());
        if self.is_too_late(now + delay) {
            self.stop();
            return None;
        }
        self.attempts += 1;
        self.phase = Phase::Waiting { until: now + delay };
        Some(Attempt { number: self.attempts, delay })
    }

    /// Whether it has tried for too long at that time.
    pub fn is_too_late(&self, now: Instant) -> bool {
        self.config.give_up_after.is_some_and(|patience| now > self.lost_at + patience)
    }

    /// Begins the attempt that is due; true until [`Reconnector::note_dialled`] or the attempt's failure.
    pub fn poll(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Waiting { until } if until <= now) {
            self.phase = Phase::Preparing;
        }
        self.phase == Phase::Preparing
    }

    /// The attempt has its token and dials.
    pub fn note_dialled(&mut self) {
        self.phase = Phase::Linked;
    }

    /// Ends all attempts for good.
    pub fn stop(&mut self) {
        self.phase = Phase::Over;
    }

    /// Whether no attempt follows the end of the current connection.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether there is no connection, and none is being dialled.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. } | Phase::Preparing)
    }

    /// When the next attempt is due, if one waits for its time.
    pub fn next_attempt(&self) -> Option<Instant> {
        if let Phase::Waiting { until } = self.phase { Some(until) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: DisconnectReason = DisconnectReason::TimedOut;

    fn config() -> ReconnectConfig {
        ReconnectConfig {
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(8),
            jitter: 0.0,
            give_up_after: None,
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    fn delays(config: ReconnectConfig, seed: u64, count: usize) -> Vec<f64> {
        let mut client = Reconnector::new(config, seed, at(0));
        let mut delay = || client.note_end(at(1), LOST).map(|attempt| attempt.delay.as_secs_f64());
        (0..count).filter_map(|_| delay()).collect()
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        assert_eq!(delays(config(), 1, 40)[..6], [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(delays(config(), 1, 40).len(), 40);
    }

    #[test]
    fn jitter_subtracts_a_share_that_the_seed_decides() {
        let config = ReconnectConfig { jitter: 0.5, ..config() };
        let drawn = delays(config, 3, 4);
        assert_eq!(drawn, delays(config, 3, 4));
        assert_ne!(drawn, delays(config, 4, 4));
        for (delay, longest) in drawn.into_iter().zip([1.0, 2.0, 4.0, 8.0]) {
            assert!((longest / 2.0..=longest).contains(&delay), "{delay}");
        }
    }

    #[test]
    fn an_attempt_begins_when_it_is_due_and_lasts_until_it_dials() {
        let mut client = Reconnector::new(config(), 1, at(0));
        client.note_connected(at(1));
        assert!(!client.is_waiting() && !client.poll(at(2)));
        assert_eq!(client.note_end(at(5), LOST), Some(Attempt { number: 1, delay: Duration::from_secs(1) }));
        assert_eq!(client.next_attempt(), Some(at(6)));
        assert!(client.is_waiting() && !client.poll(Instant::from_millis(5_999)));
        assert!(client.poll(at(6)) && client.poll(at(7)));
        client.note_dialled();
        assert!(!client.is_waiting() && !client.poll(at(60)));
    }

    #[test]
    fn only_a_connection_that_lasts_resets_the_count() {
        let mut client = Reconnector::new(config(), 1, at(0));
        for (connected, lost, number) in [(1, 2, 1), (4, 11, 2), (20, 28, 1)] {
            client.note_connected(at(connected));
            assert_eq!(client.note_end(at(lost), LOST).map(|attempt| attempt.number), Some(number));
            client.poll(at(lost + 9));
            client.note_dialled();
        }
    }

    #[test]
    fn it_gives_up_once_the_next_attempt_would_be_too_late() {
        let config = ReconnectConfig { give_up_after: Some(Duration::from_secs(10)), ..config() };
        let mut client = Reconnector::new(config, 1, at(0));
        client.note_connected(at(100));
        assert!(client.note_end(at(200), LOST).is_some(), "counted from the loss");
        assert!(client.note_failure(at(203)).is_some());
        assert!(client.note_failure(at(206)).is_some() && !client.is_too_late(at(210)));
        assert_eq!(client.note_failure(at(207)), None);
        assert!(client.is_over() && client.is_too_late(at(211)));
        assert_eq!((client.note_failure(at(208)), client.note_end(at(208), LOST)), (None, None));
    }

    #[test]
    fn ends_that_are_meant_are_final() {
        use DisconnectReason as Reason;
        let meant = [
            Reason::Closed,
            Reason::Kicked,
            Reason::Replaced,
            Reason::Refused,
            Reason::ProtocolMismatch,
            Reason::ProtocolViolation,
        ];
        for reason in meant {
            let mut client = Reconnector::new(config(), 1, at(0));
            assert_eq!(client.note_end(at(1), reason), None);
            assert!(client.is_over() && !client.poll(at(100)));
        }
    }
}
