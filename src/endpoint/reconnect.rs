//! Decides when a client dials again after its connection was lost, sans-IO: a driver carries the decisions out.
//!
//! Promises: delays double up to a bound and are the same for the same seed; an end that somebody meant, such as a kick,
//! is final; nothing follows the final end.

use super::reason::{ConnectionEnd, DisconnectReason};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// How long an event loop sleeps, at most, while a connect token is being made.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

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

impl ReconnectConfig {
    /// Dials at once, whenever there is a token.
    pub const AT_ONCE: ReconnectConfig = ReconnectConfig {
        first_delay: Duration::ZERO,
        max_delay: Duration::ZERO,
        jitter: 0.0,
        give_up_after: None,
    };
}

/// What came of asking for the connect token of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAnswer {
    /// The client dials with it.
    Dialled,
    /// It isn't there yet.
    Later,
    /// There is none, and there won't be one.
    Never,
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
    /// An attempt has begun, and waits for its connect token; whether that is being asked for now.
    Preparing {
        asking: bool,
    },
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
    /// The end of the last connection or dial.
    last: Option<ConnectionEnd>,
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
        Reconnector {
            config,
            rng,
            phase: Phase::Linked,
            attempts: 0,
            connected_at: None,
            lost_at: now,
            last: None,
        }
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
    pub fn note_end(&mut self, now: Instant, end: ConnectionEnd) -> Option<Attempt> {
        let reason = end.reason;
        self.last = Some(end);
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

    fn is_too_late(&self, now: Instant) -> bool {
        self.config.give_up_after.is_some_and(|patience| now > self.lost_at + patience)
    }

    /// Begins the attempt that is due. Returns whether to ask for its token now. Report the answer with
    /// [`Reconnector::note_answer`] or [`Reconnector::note_failure`]; until then, this returns false.
    pub fn poll(&mut self, now: Instant) -> bool {
        let is_due = match self.phase {
            Phase::Waiting { until } => until <= now,
            Phase::Preparing { asking } => !asking,
            Phase::Linked | Phase::Over => false,
        };
        if is_due {
            self.phase = Phase::Preparing { asking: true };
        }
        is_due
    }

    /// The answer to the question for a token. False if no attempt follows any more.
    pub fn note_answer(&mut self, now: Instant, answer: TokenAnswer) -> bool {
        if self.phase == (Phase::Preparing { asking: true }) {
            match answer {
                TokenAnswer::Dialled => self.phase = Phase::Linked,
                TokenAnswer::Later if !self.is_too_late(now) => {
                    self.phase = Phase::Preparing { asking: false }
                }
                TokenAnswer::Later | TokenAnswer::Never => self.stop(),
            }
        }
        !self.is_over()
    }

    /// No server follows the present one. True if there is none at present, so that the end for this reason is the last.
    pub fn end(&mut self, reason: DisconnectReason) -> bool {
        let is_last = self.is_waiting();
        if is_last {
            self.last = Some(ConnectionEnd { reason, detail: None });
        }
        self.stop();
        is_last
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
        matches!(self.phase, Phase::Waiting { .. } | Phase::Preparing { .. })
    }

    /// The end of the last connection or dial.
    pub fn last_end(&self) -> Option<&ConnectionEnd> {
        self.last.as_ref()
    }

    /// When [`Reconnector::poll`] is due, if it is.
    pub fn next_poll(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Preparing { .. } => Some(now + POLL_INTERVAL),
            Phase::Linked | Phase::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: ConnectionEnd = ConnectionEnd { reason: DisconnectReason::TimedOut, detail: None };

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
        assert_eq!(client.next_poll(at(5)), Some(at(6)));
        assert!(client.is_waiting() && !client.poll(Instant::from_millis(5_999)));
        assert!(client.poll(at(6)) && !client.poll(at(7)), "the token is asked for once at a time");
        assert!(client.note_answer(at(7), TokenAnswer::Later));
        assert_eq!(client.next_poll(at(7)), Some(at(7) + POLL_INTERVAL));
        assert!(client.poll(at(7)) && client.note_answer(at(8), TokenAnswer::Dialled));
        assert!(!client.is_waiting() && !client.poll(at(60)) && client.next_poll(at(60)).is_none());
    }

    #[test]
    fn only_a_connection_that_lasts_resets_the_count() {
        let mut client = Reconnector::new(config(), 1, at(0));
        for (connected, lost, number) in [(1, 2, 1), (4, 11, 2), (20, 28, 1)] {
            client.note_connected(at(connected));
            assert_eq!(client.note_end(at(lost), LOST).map(|attempt| attempt.number), Some(number));
            assert!(client.poll(at(lost + 9)) && client.note_answer(at(lost + 9), TokenAnswer::Dialled));
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
        assert_eq!(client.last_end(), Some(&LOST));
    }

    #[test]
    fn a_token_that_never_comes_ends_it() {
        let config = ReconnectConfig { give_up_after: Some(Duration::from_secs(10)), ..config() };
        for (answer, after) in [(TokenAnswer::Never, 0), (TokenAnswer::Later, 11)] {
            let mut client = Reconnector::new(config, 1, at(0));
            assert!(client.note_end(at(0), LOST).is_some() && client.poll(at(2)));
            assert!(!client.note_answer(at(after), answer) && client.is_over() && !client.poll(at(20)));
            // Whatever else is answered afterwards.
            assert!(!client.note_answer(at(after), TokenAnswer::Dialled) && client.is_over());
        }
    }

    #[test]
    fn an_end_without_another_server_is_the_last_one() {
        let mut linked = Reconnector::new(config(), 1, at(0));
        assert!(!linked.end(DisconnectReason::Kicked) && linked.last_end().is_none());
        let mut waiting = Reconnector::waiting(config(), 1, at(0));
        assert!(waiting.end(DisconnectReason::Kicked) && waiting.is_over());
        assert_eq!(
            waiting.last_end(),
            Some(&ConnectionEnd { reason: DisconnectReason::Kicked, detail: None })
        );
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
            assert_eq!(client.note_end(at(1), ConnectionEnd { reason, detail: None }), None);
            assert!(client.is_over() && !client.poll(at(100)));
        }
    }
}
