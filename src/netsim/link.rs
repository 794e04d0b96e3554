//! One direction of a link: packets go in, and come out late, twice, out of order, or not at all.

use std::collections::VecDeque;

use super::bottleneck::{Bottleneck, Queue};
use super::conditions::{Conditions, ConditionsError};
use super::in_flight::InFlight;
use super::path::{Fate, Path};
use crate::store::counters::counters;
use crate::time::Instant;

/// Packets under way at a time, unless set otherwise: seconds of a fast game's traffic.
pub const DEFAULT_CAPACITY: usize = 65_536;

counters! {
    /// Counts of a link's packets.
    pub struct LinkCounters {
        sent,
        /// Packets dropped because the link passes none so large.
        too_large,
        /// Packets dropped because they found the queue full.
        queue_dropped,
        /// Packets lost independently of others.
        lost,
        /// Packets lost in bursts.
        lost_in_bursts,
        /// Packets lost in outages.
        lost_in_outages,
        /// Packets of which a second copy was made.
        duplicated,
        reordered,
        /// Copies dropped because too many were under way.
        overflowed,
        /// Copies that came out.
        delivered,
    }
}

/// One direction of a link.
///
/// A queued packet is not decided yet: the conditions at the time it leaves the queue apply to it. Later changes
/// don't.
#[derive(Clone, Debug)]
pub struct Link<T> {
    conditions: Conditions,
    /// Conditions to come, by time.
    changes: VecDeque<(Instant, Conditions)>,
    path: Path,
    queue: Queue<T>,
    in_flight: InFlight<T>,
    capacity: usize,
    /// The latest time passed in.
    now: Instant,
    counters: LinkCounters,
}

impl<T: Clone> Link<T> {
    /// A link with all its randomness from `seed`.
    ///
    /// # Errors
    ///
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        conditions.check()?;
        Ok(Self::checked(conditions, seed))
    }

    /// As [`new`](Self::new), of conditions that are known to pass.
    pub(super) fn checked(conditions: Conditions, seed: u64) -> Self {
        Link {
            queue: Queue::new(rate(&conditions)),
            conditions,
            changes: VecDeque::new(),
            path: Path::new(seed),
            in_flight: InFlight::new(),
            capacity: DEFAULT_CAPACITY,
            now: Instant::ZERO,
            counters: LinkCounters::default(),
        }
    }

    /// With at most this many packets under way at a time.
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Changes the conditions from the link's latest time on. Scheduled deliveries stay.
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(&mut self, conditions: Conditions) -> Result<(), ConditionsError> {
        conditions.check()?;
        self.change(self.now, conditions);
        Ok(())
    }

    /// Changes the conditions at `now`, to some that are known to pass.
    pub(super) fn change_at(&mut self, now: Instant, conditions: Conditions) {
        self.run(now);
        self.change(now, conditions);
    }

    /// Changes the conditions when `at` comes; of changes at one time, the one scheduled last holds.
    ///
    /// # Errors
    /// When they can't be met. Nothing is scheduled then.
    pub fn schedule(&mut self, at: Instant, conditions: Conditions) -> Result<(), ConditionsError> {
        conditions.check()?;
        let place = self.changes.partition_point(|(earlier, _)| *earlier <= at);
        self.changes.insert(place, (at, conditions));
        Ok(())
    }

    /// Puts a packet of this many bytes in. The bytes matter only to a link with a rate or a largest datagram.
    pub fn send(&mut self, now: Instant, item: T, bytes: usize) {
        self.run(now);
        self.counters.sent += 1;
        if self.conditions.max_datagram.is_some_and(|largest| bytes as u64 > largest) {
            self.counters.too_large += 1;
            return;
        }
        let Some(Bottleneck { queue, .. }) = self.conditions.bottleneck else {
            return self.depart(now, item);
        };
        let bytes = (bytes as u64).saturating_add(self.conditions.overhead);
        if self.queue.bytes().saturating_add(bytes) > queue {
            self.counters.queue_dropped += 1;
        } else if self.in_flight() >= self.capacity {
            self.counters.overflowed += 1;
        } else {
            self.queue.push(now, item, bytes);
        }
    }

    /// The next packet that has come out by `now`, in order of arrival.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        self.run(now);
        let item = self.in_flight.pop_due(now)?;
        self.counters.delivered += 1;
        Some(item)
    }

    /// When to poll next: a packet comes out then, or leaves the queue of a link with a rate.
    pub fn next_delivery(&self) -> Option<Instant> {
        let leaves = self.queue.next_departure();
        // A change may let it leave sooner.
        let changes = leaves.and_then(|_| self.changes.front().map(|(at, _)| *at));
        [self.in_flight.next_arrival(), leaves, changes].into_iter().flatten().min()
    }

    /// Packets under way, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.queue.len() + self.in_flight.len()
    }

    /// The bytes in the queue, headers and the packet in transmission included.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The packets under way, each copy by itself, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.queue.items().chain(self.in_flight.items())
    }

    /// Counts of the link's packets.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Lets happen what happens until `now`, in its order.
    fn run(&mut self, now: Instant) {
        while let Some((at, conditions)) = self.changes.front().copied().filter(|(at, _)| *at <= now) {
            self.changes.pop_front();
            self.empty_queue(at);
            self.change(at.max(self.now), conditions);
        }
        self.empty_queue(now);
        self.now = self.now.max(now);
    }

    fn change(&mut self, at: Instant, conditions: Conditions) {
        self.queue.set_rate(at, rate(&conditions));
        self.conditions = conditions;
    }

    fn empty_queue(&mut self, until: Instant) {
        while let Some((at, item)) = self.queue.pop_due(until) {
            self.depart(at, item);
        }
    }

    fn depart(&mut self, at: Instant, item: T) {
        match self.path.fate(at, &self.conditions) {
            Fate::Lost => self.counters.lost += 1,
            Fate::LostInBurst => self.counters.lost_in_bursts += 1,
            Fate::LostInOutage => self.counters.lost_in_outages += 1,
            Fate::Arrives { first, second, held_back } => {
                self.counters.reordered += held_back;
                if let Some(second) = second {
                    self.counters.duplicated += 1;
                    self.launch(second, item.clone());
                }
                self.launch(first, item);
            }
        }
    }

    fn launch(&mut self, arrival: Instant, item: T) {
        if self.in_flight() >= self.capacity {
            self.counters.overflowed += 1;
        } else {
            self.in_flight.push(arrival, item);
        }
    }
}

fn rate(conditions: &Conditions) -> Option<u64> {
    conditions.bottleneck.map(|bottleneck| bottleneck.rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Sends `count` packets, one each millisecond, and gives (number, arrival) in order of arrival.
    fn run(conditions: Conditions, seed: u64, count: u64) -> (Vec<(u64, Instant)>, LinkCounters) {
        let mut link = Link::new(conditions, seed).unwrap();
        let mut out = Vec::new();
        for number in 0..count {
            link.send(Instant::from_millis(number), number, 0);
            let now = if number + 1 < count { Instant::from_millis(number) } else { Instant::NEVER };
            while let Some(at) = link.next_delivery().filter(|at| *at <= now) {
                out.push((link.poll(at).unwrap(), at));
            }
        }
        (out, link.counters())
    }

    #[test]
    fn a_perfect_link_delivers_everything_in_order_at_once() {
        let (out, counters) = run(Conditions::perfect(), 1, 100);
        let expected: Vec<_> = (0..100).map(|n| (n, Instant::from_millis(n))).collect();
        assert_eq!(out, expected);
        assert_eq!(counters, LinkCounters { sent: 100, delivered: 100, ..LinkCounters::default() });
    }

    #[test]
    fn nothing_comes_out_before_its_time_and_equal_times_keep_their_order() {
        let mut link = Link::new(Conditions::perfect().latency(ms(50), ms(0)), 1).unwrap();
        ['a', 'b', 'c'].into_iter().for_each(|item| link.send(Instant::ZERO, item, 0));
        assert_eq!(link.poll(Instant::from_millis(49)), None);
        assert_eq!(link.next_delivery(), Some(Instant::from_millis(50)));
        assert_eq!(link.items().count(), 3);
        let out: Vec<_> = std::iter::from_fn(|| link.poll(Instant::from_millis(50))).collect();
        assert_eq!(out, ['a', 'b', 'c']);
    }

    #[test]
    fn a_seed_gives_one_history() {
        let conditions =
            Conditions::perfect().latency(ms(50), ms(20)).loss(0.1).duplicate(0.1).reorder(0.1, ms(30));
        assert_eq!(run(conditions, 3, 1000), run(conditions, 3, 1000));
        assert_ne!(run(conditions, 3, 1000).0, run(conditions, 4, 1000).0);
    }

    #[test]
    fn datagrams_above_the_largest_vanish_and_are_counted() {
        let mut link = Link::new(Conditions::perfect().max_datagram(1000), 1).unwrap();
        [1000, 1001, 1, 65_535].into_iter().for_each(|bytes| link.send(Instant::ZERO, bytes, bytes));
        let out: Vec<_> = std::iter::from_fn(|| link.poll(Instant::ZERO)).collect();
        assert_eq!((out, link.counters().too_large), (vec![1000, 1], 2));
    }

    #[test]
    fn memory_is_bounded_and_what_is_dropped_for_it_counted() {
        let mut link = Link::new(Conditions::perfect().latency(ms(50), ms(0)), 1).unwrap().with_capacity(10);
        (0..25).for_each(|n| link.send(Instant::ZERO, n, 0));
        assert_eq!((link.in_flight(), link.counters().overflowed), (10, 15));
    }
}
