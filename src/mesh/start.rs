//! The start of the game: the master sets it and counts down, and each player works out when it is here.

use super::COUNT_INTERVAL;
use super::machine::Mesh;
use super::message::Message;
use super::roster::Start;
use crate::time::{Duration, Instant};

impl Mesh {
    /// Begins the game after a countdown. False if this isn't the master, or the game has begun.
    pub fn start(&mut self, now: Instant, start: Start) -> bool {
        if !self.is_master() || self.start.is_some() || self.stable.start.is_some() {
            return false;
        }
        self.start = Some(start);
        if !start.late {
            self.refuse_joiners(now);
        }
        self.decide(now);
        true
    }

    /// Sends the time left until the start.
    pub(super) fn count(&mut self, now: Instant) {
        let Some(at) = self.start_at.filter(|at| self.is_master() && now < *at) else { return };
        if self.count_at <= now {
            self.count_at = now + COUNT_INTERVAL;
            self.send_all(&Message::Count { left: left_until(at, now) });
        }
    }

    /// A peer says when the game begins. The earliest estimate is the best: delay only makes one later.
    pub(super) fn note_start(&mut self, now: Instant, left: i64, rtt: Duration) {
        let half = rtt.as_nanos() as u64 / 2;
        let then = i128::from(now.as_nanos()) + i128::from(left) * 1_000 - i128::from(half);
        let at = Instant::from_nanos(u64::try_from(then.max(0)).unwrap_or(u64::MAX / 2));
        self.start_at =
            Some(self.start_at.map_or(at, |known| if self.told_start { known } else { known.min(at) }));
    }
}

/// Microseconds from now until then, negative if it is past.
pub(super) fn left_until(at: Instant, now: Instant) -> i64 {
    // Times are 64 bits of nanoseconds, so their microseconds fit.
    (at.as_nanos() / 1_000) as i64 - (now.as_nanos() / 1_000) as i64
}
