//! When a client dials again: whatever ends, and whenever the game answers. It gives up once and for good, asks for one token
//! at a time, and keeps to its delays.

use tickwire::endpoint::{ConnectionEnd, DisconnectReason, ReconnectConfig, Reconnector, TokenAnswer};
use tickwire::time::{Duration, Instant};

use super::input::Input;

/// Ends that are meant, and ends after which another attempt may do better.
const REASONS: [(DisconnectReason, bool); 6] = [
    (DisconnectReason::TimedOut, true),
    (DisconnectReason::ServerClosed, true),
    (DisconnectReason::TokenExpired, true),
    (DisconnectReason::Kicked, false),
    (DisconnectReason::Replaced, false),
    (DisconnectReason::ProtocolViolation, false),
];

const ANSWERS: [TokenAnswer; 3] = [TokenAnswer::Dialled, TokenAnswer::Later, TokenAnswer::Never];

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.u8();
    let millis = |number: u16| Duration::from_millis(u64::from(number));
    let config = ReconnectConfig {
        first_delay: millis(input.u16()),
        max_delay: millis(input.u16()),
        jitter: f64::from(setup >> 4) / 15.0,
        give_up_after: (setup & 1 == 1).then(|| millis(input.u16())),
    };
    let mut now = Instant::ZERO;
    let make = if setup & 2 == 0 { Reconnector::new } else { Reconnector::waiting };
    let mut client = make(config, 7, now);
    let (mut is_asking, mut last) = (false, None);
    while !input.is_empty() {
        let op = input.u8();
        let was_over = client.is_over();
        match op & 7 {
            0 => client.note_connected(now),
            1 | 2 => {
                let (reason, is_passing) = REASONS[usize::from(op >> 3) % REASONS.len()];
                let end = ConnectionEnd { reason, detail: None };
                last = Some(end.clone());
                let attempt = client.note_end(now, end);
                assert!(attempt.is_none() || is_passing && !was_over, "{reason:?} is meant");
                is_asking = false;
                check(&config, attempt);
            }
            3 => {
                let attempt = client.note_failure(now);
                assert!(attempt.is_none() || !was_over);
                is_asking = false;
                check(&config, attempt);
            }
            4 => {
                let asks = client.poll(now);
                assert!(!asks || !is_asking && !was_over, "one token is asked for at a time");
                is_asking |= asks;
            }
            5 if is_asking => {
                let goes_on = client.note_answer(now, ANSWERS[usize::from(op >> 3) % 3]);
                assert!(!goes_on || !was_over);
                is_asking = false;
            }
            6 => now += millis(input.u16()),
            7 if op >> 3 == 31 => client.stop(),
            7 if op >> 3 == 30 => {
                let reason = DisconnectReason::ServerClosed;
                if client.end(reason) {
                    last = Some(ConnectionEnd { reason, detail: None });
                }
                assert!(client.is_over());
            }
            _ => {}
        }
        assert!(!was_over || client.is_over(), "nothing follows the final end");
        assert_eq!(client.next_poll(now).is_some(), client.is_waiting());
        assert_eq!(client.last_end(), last.as_ref());
    }
}

fn check(config: &ReconnectConfig, attempt: Option<tickwire::endpoint::Attempt>) {
    if let Some(attempt) = attempt {
        assert!(attempt.number > 0 && attempt.delay <= config.max_delay, "{attempt:?}");
    }
}
