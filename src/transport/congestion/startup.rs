//! The rate of a link of which nothing is known: from how far apart the acks of a burst come.
//!
//! What goes out at one instant (a train) leaves the narrowest place at the rate of that place, so that one round trip tells the
//! rate (the packet trains of Jain and Routhier, 1986). A peer that looks for packets once a tick hides that when a train
//! passes within a tick or two; then a train three times as long goes out, and in between what the link carries at the least.

use super::SentStamp;
use crate::time::{Duration, Instant};

/// Seconds between the times at which a slow peer looks for packets.
const TICK: f64 = 1.0 / 60.0;

/// Bytes of a train that must have come between its first and last acks to tell a rate: five packets.
const ENOUGH: f64 = 6_000.0;

/// A burst beyond the first train is spread over this part of a round trip: slowly enough that a link which can't hold it
/// drops only some of each part, so that losses show as soon as the rest is acked.
const BURST_SPREAD: f64 = 0.72;

/// What is known before the rate is.
#[derive(Debug)]
pub(super) struct Startup {
    /// From its first packet on: most connections send none.
    train: Option<Box<Train>>,
    /// Bytes of the next train.
    length: f64,
    longest: f64,
    /// The link carries this at least, in bytes a second.
    least_rate: f64,
    /// A train is to begin.
    due: bool,
    burst: Option<Box<Burst>>,
}

#[derive(Debug)]
struct Burst {
    bytes: f64,
    left: f64,
    rate: f64,
}

impl Startup {
    /// Trains begin with `initial_bytes` and have at most `max_burst_bytes`.
    pub(super) fn new(initial_bytes: u32, max_burst_bytes: u32) -> Self {
        let longest = f64::from(max_burst_bytes);
        Startup {
            train: None,
            length: f64::from(initial_bytes).min(longest),
            longest,
            least_rate: 0.0,
            due: true,
            burst: None,
        }
    }

    /// Lets `bytes` go out within one round trip.
    pub(super) fn begin_burst(&mut self, bytes: f64, rtt: f64) {
        let rate = (bytes - self.length).max(0.0) / (BURST_SPREAD * rtt);
        self.burst = Some(Box::new(Burst { bytes, left: bytes, rate }));
    }

    /// The bytes to let go at once if a train is to begin now: until its first packet is sent.
    pub(super) fn due_train(&self) -> Option<f64> {
        self.due.then_some(self.length)
    }

    /// Bytes a second to send at besides trains.
    pub(super) fn rate(&self) -> f64 {
        let known = self
            .train
            .as_ref()
            .map_or(self.least_rate, |train| train.rate().unwrap_or(train.least_rate().max(self.least_rate)));
        let burst = self.burst.as_ref().filter(|burst| burst.left > 0.0);
        burst.map_or(known, |burst| known.max(burst.rate))
    }

    /// Bytes that may be on their way.
    pub(super) fn window(&self, rtt: f64) -> f64 {
        let burst = self.burst.as_ref().map_or(0.0, |burst| burst.bytes);
        // Of a train that tells a rate soon all is known. Until then a packet goes for each that is acked, since it is the peer's clock
        // that tells, and may tell any.
        let told = self.train.as_ref().is_some_and(|train| train.rate().is_some());
        let more = if told && burst == 0.0 { 0.0 } else { self.rate() * (2.0 * rtt + 0.05) };
        2.0 * self.length + burst + more
    }

    pub(super) fn on_sent(&mut self, stamp: &SentStamp) {
        self.due = false;
        self.train.get_or_insert_default().on_sent(stamp);
        if let Some(burst) = &mut self.burst {
            burst.left -= f64::from(stamp.bytes);
        }
    }

    pub(super) fn on_lost(&mut self, stamp: &SentStamp) {
        if let Some(train) = &mut self.train {
            train.on_lost(stamp);
        }
    }

    /// Takes an ack; true when no more is to be learned from this train.
    pub(super) fn on_acked(&mut self, now: Instant, stamp: &SentStamp) -> bool {
        self.train.as_mut().is_some_and(|train| train.on_acked(now, stamp) || train.is_settled())
    }

    /// Whether the fate of the whole train is known.
    pub(super) fn is_settled(&self) -> bool {
        self.train.as_ref().is_some_and(|train| train.is_settled())
    }

    /// Bytes of the train that arrived.
    pub(super) fn acked(&self) -> f64 {
        self.train.as_ref().map_or(0.0, |train| train.acked())
    }

    /// Whether the application asked for a burst.
    pub(super) fn is_burst(&self) -> bool {
        self.burst.is_some()
    }

    /// Draws the conclusions from a train: the rate of the link, or none yet.
    pub(super) fn conclude(&mut self) -> Option<f64> {
        let train = self.train.take().unwrap_or_default();
        self.due = true;
        if let Some(rate) = train.rate() {
            return Some(rate);
        }
        self.least_rate = self.least_rate.max(train.least_rate());
        // A train that the application cut short tells nothing of a longer one.
        if train.sent < 0.75 * self.length {
            return None;
        }
        let was_longest = self.length >= self.longest;
        self.length = (3.0 * self.length).min(self.longest);
        was_longest.then_some(self.least_rate).filter(|rate| *rate > 0.0)
    }
}

/// The acks of packets that went out at one instant. Amounts are bytes.
#[derive(Debug, Default)]
struct Train {
    sent_at: Option<Instant>,
    sent: f64,
    /// Acked or lost.
    settled: f64,
    lost: f64,
    /// How many times some were acked.
    groups: u32,
    first_ack: Instant,
    previous_ack: Instant,
    last_ack: Instant,
    /// Acked at `last_ack`.
    group: f64,
    largest_group: f64,
    /// Acked after `first_ack` and before `last_ack`.
    inner: f64,
}

impl Train {
    fn on_sent(&mut self, stamp: &SentStamp) {
        if *self.sent_at.get_or_insert(stamp.sent_at) == stamp.sent_at {
            self.sent += f64::from(stamp.bytes);
        }
    }

    fn on_lost(&mut self, stamp: &SentStamp) {
        if self.sent_at == Some(stamp.sent_at) {
            self.settled += f64::from(stamp.bytes);
            self.lost += f64::from(stamp.bytes);
        }
    }

    /// Takes an ack; true if it is of a packet that went behind the train.
    fn on_acked(&mut self, now: Instant, stamp: &SentStamp) -> bool {
        let Some(sent_at) = self.sent_at else { return false };
        if stamp.sent_at != sent_at {
            return stamp.sent_at > sent_at && self.groups > 0;
        }
        if self.groups == 0 {
            (self.groups, self.first_ack, self.last_ack) = (1, now, now);
        } else if now > self.last_ack {
            if self.groups > 1 {
                self.inner += self.group;
            }
            self.groups += 1;
            (self.previous_ack, self.last_ack, self.group) = (self.last_ack, now, 0.0);
        }
        self.settled += f64::from(stamp.bytes);
        self.group += f64::from(stamp.bytes);
        self.largest_group = self.largest_group.max(self.group);
        false
    }

    fn acked(&self) -> f64 {
        self.settled - self.lost
    }

    fn is_settled(&self) -> bool {
        self.sent > 0.0 && self.settled >= self.sent
    }

    /// Bytes a second that the narrowest place lets through; none if the train passed too quickly to tell. The first and
    /// the last group don't count: they began before and go on after the times they were acked at.
    fn rate(&self) -> Option<f64> {
        let span: Duration = self.previous_ack - self.first_ack;
        (self.groups >= 3 && self.inner >= ENOUGH).then(|| self.inner / span.as_secs_f64())
    }

    /// Bytes a second that it lets through at the least.
    fn least_rate(&self) -> f64 {
        self.largest_group / TICK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(sent_at: u64) -> SentStamp {
        let sent_at = Instant::from_millis(sent_at);
        SentStamp { sent_at, bytes: 1_000, bulk: true, sent_in_startup: true, app_limited: false }
    }

    /// A train of `packets`, acked at these milliseconds.
    fn acked(startup: &mut Startup, packets: usize, acks: impl IntoIterator<Item = u64>) {
        assert!(startup.due_train().is_some());
        (0..packets).for_each(|_| startup.on_sent(&stamp(0)));
        acks.into_iter().for_each(|at| {
            startup.on_acked(Instant::from_millis(at), &stamp(0));
        });
    }

    #[test]
    fn the_spacing_of_acks_tells_the_rate() {
        let mut startup = Startup::new(40_000, 200_000);
        acked(&mut startup, 40, (0..40).map(|n| 50 + n / 4));
        assert!(startup.is_settled());
        let rate = startup.conclude().unwrap();
        assert!((rate - 4e6).abs() < 1.0, "4 packets a millisecond: {rate}");
    }

    #[test]
    fn a_train_that_passes_within_a_tick_is_followed_by_a_longer_one() {
        let mut startup = Startup::new(40_000, 200_000);
        acked(&mut startup, 40, (0..40).map(|n| if n < 30 { 50 } else { 66 }));
        assert_eq!(startup.conclude(), None);
        assert!((startup.rate() - 30_000.0 * 60.0).abs() < 1.0, "at least: {}", startup.rate());
        assert_eq!(startup.due_train(), Some(120_000.0));
        acked(&mut startup, 120, (0..120).map(|_| 100));
        assert_eq!(startup.conclude(), None);
        acked(&mut startup, 200, (0..200).map(|_| 150));
        assert!(startup.conclude().is_some(), "there is no longer one");
    }

    #[test]
    fn a_train_cut_short_or_lost_is_repeated() {
        let mut startup = Startup::new(40_000, 200_000);
        acked(&mut startup, 10, (0..10).map(|_| 50));
        assert_eq!(startup.conclude(), None);
        assert_eq!(startup.due_train(), Some(40_000.0));
        (0..40).for_each(|_| startup.on_sent(&stamp(100)));
        (0..40).for_each(|_| startup.on_lost(&stamp(100)));
        assert!(startup.is_settled());
        assert_eq!(startup.conclude(), None);
    }
}
