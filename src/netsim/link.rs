//! One direction of a link: packets go in, and come out late, twice, out of order, or not at all.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::conditions::{Conditions, ConditionsError};
use crate::rng::Rng;
use crate::store::counters::counters;
use crate::time::Instant;

/// Packets under way at a time, unless set otherwise: seconds of a fast game's traffic.
pub const DEFAULT_CAPACITY: usize = 65_536;

counters! {
    /// What became of the packets of a link.
    pub struct LinkCounters {
        /// Packets put in.
        sent,
        /// Packets lost by the conditions.
        lost,
        /// Packets of which a second copy was made.
        duplicated,
        /// Copies held back.
        reordered,
        /// Copies dropped because too many were under way.
        overflowed,
        /// Copies that came out.
        delivered,
    }
}

/// Packets of any kind under way, in the order they will arrive: by time, then by the order they were sent.
#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    heap: BinaryHeap<Reverse<Flight<T>>>,
    /// Orders packets of the same time, and so makes the order total.
    next_number: u64,
    capacity: usize,
}

#[derive(Clone, Debug)]
struct Flight<T> {
    arrival: Instant,
    number: u64,
    item: T,
}

impl<T> InFlight<T> {
    pub(super) fn new(capacity: usize) -> Self {
        InFlight { heap: BinaryHeap::new(), next_number: 0, capacity }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    fn items(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|Reverse(flight)| &flight.item)
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(flight)| flight.arrival)
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<T> {
        self.next_arrival().filter(|arrival| *arrival <= now)?;
        self.heap.pop().map(|Reverse(flight)| flight.item)
    }

    /// Sends `item` on its way under `conditions`.
    pub(super) fn launch(
        &mut self,
        now: Instant,
        item: T,
        conditions: &Conditions,
        rng: &mut Rng,
        counters: &mut LinkCounters,
    ) where
        T: Clone,
    {
        counters.sent += 1;
        let fate = conditions.fate(now, rng);
        counters.reordered += fate.reordered;
        let Some(first) = fate.first else {
            counters.lost += 1;
            return;
        };
        if let Some(second) = fate.second {
            counters.duplicated += 1;
            self.push(second, item.clone(), counters);
        }
        self.push(first, item, counters);
    }

    fn push(&mut self, arrival: Instant, item: T, counters: &mut LinkCounters) {
        if self.heap.len() >= self.capacity {
            counters.overflowed += 1;
            return;
        }
        self.heap.push(Reverse(Flight { arrival, number: self.next_number, item }));
        self.next_number += 1;
    }
}

impl<T> Flight<T> {
    fn key(&self) -> (Instant, u64) {
        (self.arrival, self.number)
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Flight<T> {}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link<T> {
    conditions: Conditions,
    rng: Rng,
    in_flight: InFlight<T>,
    counters: LinkCounters,
}

impl<T: Clone> Link<T> {
    /// A link whose every turn of luck is given by `seed`.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        conditions.check()?;
        Ok(Link {
            conditions,
            rng: Rng::seeded(seed),
            in_flight: InFlight::new(DEFAULT_CAPACITY),
            counters: LinkCounters::default(),
        })
    }

    /// With at most this many packets under way at a time.
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.in_flight.capacity = capacity;
        self
    }

    /// Changes the conditions, for packets sent from now on.
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(&mut self, conditions: Conditions) -> Result<(), ConditionsError> {
        conditions.check()?;
        self.conditions = conditions;
        Ok(())
    }

    /// Puts a packet in.
    pub fn send(&mut self, now: Instant, item: T) {
        self.in_flight.launch(now, item, &self.conditions, &mut self.rng, &mut self.counters);
    }

    /// The next packet that has come out by `now`, in order of arrival.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        let item = self.in_flight.pop_due(now)?;
        self.counters.delivered += 1;
        Some(item)
    }

    /// When the next packet comes out.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.in_flight.next_arrival()
    }

    /// Packets under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The packets under way, each copy by itself, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.in_flight.items()
    }

    /// What became of the packets.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }
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
            link.send(Instant::from_millis(number), number);
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
        ['a', 'b', 'c'].into_iter().for_each(|item| link.send(Instant::ZERO, item));
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
    fn measured_conditions_match_the_set_ones_within_three_sigma() {
        const N: u64 = 100_000;
        let n = N as f64;
        let conditions = Conditions::perfect().latency(ms(50), ms(10)).loss(0.1).duplicate(0.05);
        let (out, counters) = run(conditions, 17, N);

        let near = |measured: u64, trials: f64, p: f64| {
            let sigma = (trials * p * (1.0 - p)).sqrt();
            assert!((measured as f64 - trials * p).abs() < 3.0 * sigma, "{measured} of {trials} at {p}");
        };
        near(counters.lost, n, 0.1);
        near(counters.duplicated, n - counters.lost as f64, 0.05);
        assert_eq!(counters.delivered, N - counters.lost + counters.duplicated);

        let delay = |&(number, at): &(u64, Instant)| (at - Instant::from_millis(number)).as_secs_f64() * 1e3;
        let mean = out.iter().map(delay).sum::<f64>() / out.len() as f64;
        // A uniform width of 20 ms has a standard deviation of 20 / sqrt(12).
        let sigma = 20.0 / 12f64.sqrt() / (out.len() as f64).sqrt();
        assert!((mean - 50.0).abs() < 3.0 * sigma, "{mean}");
        assert!(out.windows(2).any(|pair| pair[0].0 > pair[1].0), "jitter alone reorders");
    }

    #[test]
    fn reordering_holds_packets_back() {
        let (out, counters) =
            run(Conditions::perfect().latency(ms(5), ms(0)).reorder(0.2, ms(30)), 2, 10_000);
        let held = out.iter().filter(|(n, at)| *at == Instant::from_millis(n + 35)).count() as u64;
        assert_eq!(held, counters.reordered);
        assert!((1880..2120).contains(&held), "{held}: a fifth, within 3 sigma");
        let prompt = out.iter().filter(|(n, at)| *at == Instant::from_millis(n + 5)).count() as u64;
        assert_eq!(prompt + held, 10_000);
    }

    #[test]
    fn memory_is_bounded_and_what_is_dropped_for_it_counted() {
        let mut link = Link::new(Conditions::perfect().latency(ms(50), ms(0)), 1).unwrap().with_capacity(10);
        (0..25).for_each(|n| link.send(Instant::ZERO, n));
        assert_eq!((link.in_flight(), link.counters().overflowed), (10, 15));
    }
}
