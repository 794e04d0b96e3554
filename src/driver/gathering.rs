//! How long a driver's thread lets datagrams gather before it reads them.
//!
//! A turn for each of a thousand clients' datagrams costs more than their contents: the thread would be awake all the
//! time, the game would wait for its lock, and the socket's buffer would overflow. Nothing waits beyond its deadline,
//! and a peer that waits for an ack is told how long it was held.

use crate::time::{Duration, Instant};

/// The pause if nothing urgent arrived. The smallest of the usual receive buffers has room for that long, at 100,000
/// datagrams a second.
const GATHER: Duration = Duration::from_millis(4);

/// The pause while chunks move, and how long consecutive turns may go on before due datagrams are sent: deadlines are
/// exact to a millisecond.
const GATHER_BULK: Duration = Duration::from_millis(1);

/// A datagram of this many bytes is taken for part of a chunk, which more will follow for a while.
const BULK_BYTES: usize = 500;
const BULK_LASTS: Duration = Duration::from_millis(50);

/// Recent arrivals and deadlines.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// When the socket was last emptied, by the thread or the game.
    emptied_at: Instant,
    /// The next deadline between ticks, as of the last turn.
    due: Instant,
    /// When a chunk seems to move no more.
    bulk_until: Instant,
    /// When that deadline was last computed.
    asked_at: Instant,
}

impl Gathering {
    /// All that waited in the socket was read.
    pub(super) fn note_emptied(&mut self, now: Instant) {
        self.emptied_at = now;
    }

    /// The largest datagram that was received or sent had this many bytes.
    pub(super) fn note_largest(&mut self, now: Instant, bytes: usize) {
        if bytes >= BULK_BYTES {
            self.bulk_until = now + BULK_LASTS;
        }
    }

    /// Whether to compute deadlines although more datagrams wait: that visits each connection.
    pub(super) fn asks(&mut self, now: Instant, more_waits: bool) -> bool {
        let asks = !more_waits || self.asked_at + GATHER_BULK <= now;
        if asks {
            self.asked_at = now;
        }
        asks
    }

    /// There is something to do at this moment, and not before unless something arrives.
    pub(super) fn note_due(&mut self, due: Instant) {
        self.due = due;
    }

    /// How long to let datagrams gather, if nothing is due and the socket was just empty.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let gather = if now < self.bulk_until { GATHER_BULK } else { GATHER };
        // A game that reads all the time empties the socket, but computes no deadlines.
        let since = self.emptied_at.min(self.asked_at);
        let until = (since + gather).min(self.due);
        (now < until && since > Instant::ZERO).then(|| until - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn datagrams_gather_after_the_socket_was_emptied_and_no_longer_than_what_is_due() {
        let mut gathering = Gathering::default();
        gathering.note_due(ms(1_000));
        assert_eq!(gathering.pause(ms(100)), None, "nothing was read yet");
        gathering.note_emptied(ms(100));
        assert!(gathering.asks(ms(100), false));
        assert_eq!(gathering.pause(ms(101)), Some(Duration::from_millis(3)));
        assert_eq!(gathering.pause(ms(104)), None);
        gathering.note_due(ms(102));
        assert_eq!(gathering.pause(ms(101)), Some(Duration::from_millis(1)));
        assert_eq!(gathering.pause(ms(102)), None);
        gathering.note_due(Instant::NEVER);
        gathering.note_largest(ms(100), 1_200);
        assert_eq!(gathering.pause(ms(101)), None, "while chunks move");
        assert_eq!(gathering.pause(ms(100)), Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_game_that_reads_all_the_time_does_not_put_off_what_is_due() {
        let mut gathering = Gathering::default();
        gathering.note_due(Instant::NEVER);
        assert!(gathering.asks(ms(100), false));
        (100..110).for_each(|now| gathering.note_emptied(ms(now)));
        assert_eq!(gathering.pause(ms(103)), Some(Duration::from_millis(1)));
        assert_eq!(gathering.pause(ms(104)), None);
    }

    #[test]
    fn while_more_waits_what_is_due_is_asked_for_once_a_millisecond() {
        let mut gathering = Gathering::default();
        assert!(gathering.asks(ms(10), true));
        assert!(!gathering.asks(ms(10), true));
        assert!(gathering.asks(ms(10), false) && gathering.asks(ms(11), true));
    }
}
