//! A rate limit with a drop-tail queue: packets wait for those before them.

use core::num::NonZeroU64;
use std::collections::VecDeque;

use super::conditions::{ConditionsError, within};
use crate::time::{Duration, Instant};

/// The fastest link that can be set: 100 Gbit/s.
pub const MAX_RATE: u64 = 100_000_000_000 / 8;

/// The largest queue that can be set: 1 GiB.
pub const MAX_QUEUE: u64 = 1 << 30;

/// The queue of a rate-limited link unless set otherwise, in bytes.
pub const DEFAULT_QUEUE: u64 = 65_536;

/// The slowest part of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The rate in bytes a second.
    pub rate: u64,
    /// Bytes that may wait, the packet in transmission included; a packet beyond them is dropped.
    pub queue: u64,
}

impl Bottleneck {
    pub(super) fn check(&self) -> Result<(), ConditionsError> {
        within("rate", self.rate, 1, MAX_RATE)?;
        within("queue", self.queue, 1, MAX_QUEUE)
    }
}

/// The waiting packets, and the one in transmission.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    packets: VecDeque<(T, u64)>,
    bytes: u64,
    /// Bytes a second; None: unlimited.
    rate: Option<NonZeroU64>,
    /// When the first packet will have left.
    first_leaves: Instant,
}

impl<T> Queue<T> {
    pub(super) fn new(rate: Option<u64>) -> Self {
        Queue {
            packets: VecDeque::new(),
            bytes: 0,
            rate: rate.and_then(NonZeroU64::new),
            first_leaves: Instant::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.packets.iter().map(|(item, _)| item)
    }

    /// The time of the next departure.
    pub(super) fn next_departure(&self) -> Option<Instant> {
        (!self.packets.is_empty()).then_some(self.first_leaves)
    }

    pub(super) fn push(&mut self, now: Instant, item: T, bytes: u64) {
        if self.packets.is_empty() {
            self.first_leaves = now + self.transmission(bytes);
        }
        self.bytes += bytes;
        self.packets.push_back((item, bytes));
    }

    /// The first packet, if it has left by `now`, with the time it left.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let left = self.next_departure().filter(|at| *at <= now)?;
        let (item, bytes) = self.packets.pop_front()?;
        self.bytes -= bytes;
        if let Some((_, next)) = self.packets.front() {
            self.first_leaves = left + self.transmission(*next);
        }
        Some((left, item))
    }

    /// Changes the rate from `now` on; the packet in transmission keeps its progress.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<u64>) {
        let rate = rate.and_then(NonZeroU64::new);
        let left = self.first_leaves.since(now);
        let left = match (self.rate, rate) {
            (Some(old), Some(new)) => scale(left, old.get(), new),
            _ => Duration::ZERO,
        };
        self.rate = rate;
        self.first_leaves = now + left;
    }

    fn transmission(&self, bytes: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| scale(Duration::from_secs(1), bytes, rate))
    }
}

/// time * by / per, rounded up, so that rounding never lets more bytes pass than the rate.
fn scale(time: Duration, by: u64, per: NonZeroU64) -> Duration {
    let nanos = time.as_nanos().saturating_mul(by.into()).div_ceil(per.get().into());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn packets_wait_for_those_before_them() {
        let mut queue = Queue::new(Some(100_000));
        queue.push(at(0), 'a', 1000);
        queue.push(at(5), 'b', 500);
        assert_eq!((queue.len(), queue.bytes(), queue.next_departure()), (2, 1500, Some(at(10))));
        assert_eq!(queue.pop_due(at(9)), None);
        assert_eq!(queue.pop_due(at(50)), Some((at(10), 'a')));
        assert_eq!(queue.pop_due(at(50)), Some((at(15), 'b')));
        assert_eq!((queue.bytes(), queue.next_departure()), (0, None));
        queue.push(at(60), 'c', 100);
        assert_eq!(queue.next_departure(), Some(at(61)));
    }

    #[test]
    fn what_waits_leaves_at_the_new_rate() {
        let mut queue = Queue::new(Some(100_000));
        ['a', 'b'].into_iter().for_each(|item| queue.push(at(0), item, 1000));
        queue.set_rate(at(5), Some(10_000));
        assert_eq!(queue.bytes(), 2000);
        assert_eq!(queue.pop_due(at(1000)), Some((at(55), 'a')), "half of it was through");
        assert_eq!(queue.next_departure(), Some(at(155)));
        queue.set_rate(at(100), None);
        assert_eq!(queue.pop_due(at(100)), Some((at(100), 'b')));
    }

    #[test]
    fn rounding_never_makes_a_link_faster() {
        assert_eq!(scale(Duration::from_secs(1), 1, NonZeroU64::new(3).unwrap()).as_nanos(), 333_333_334);
        assert_eq!(scale(Duration::MAX, u64::MAX, NonZeroU64::MIN), Duration::from_nanos(u64::MAX));
    }
}
