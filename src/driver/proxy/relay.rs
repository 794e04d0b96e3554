//! The clients of a proxy and their links, without sockets and clocks.
//!
//! Promises: each client has its own link in each direction, seeded by the proxy's seed and the order in which
//! clients appear; datagrams come out at their time; clients and memory are bounded, and drops are counted. Refuses
//! to look into datagrams.

use core::net::SocketAddr;
use std::collections::{BTreeSet, HashMap};

use super::counters::{ClientCounters, UnderWay};
use super::datagram::{Budget, Datagram};
use super::direction::{Both, Direction};
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::netsim::link::{Link, LinkCounters};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Bounds of a [`Relay`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) clients: usize,
    pub(super) bytes: usize,
    pub(super) idle: Duration,
}

/// A datagram that is due.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) slot: usize,
    pub(super) client: SocketAddr,
    pub(super) direction: Direction,
    /// When it should have been delivered.
    pub(super) due: Instant,
    pub(super) datagram: Datagram,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    links: Both<Link<Datagram>>,
    /// When the last datagram came from the client or for it.
    heard: Instant,
}

/// Clients, their links, and when the next datagram comes out of any of them.
#[derive(Debug)]
pub(super) struct Relay {
    conditions: Both<Conditions>,
    bounds: Bounds,
    seeds: Rng,
    budget: Budget,
    slots: Vec<Option<Client>>,
    free: Vec<usize>,
    by_address: HashMap<SocketAddr, usize>,
    /// The next delivery of each link that has one.
    schedule: BTreeSet<(Instant, usize, Direction)>,
    counted: ClientCounters,
    /// The counters of forgotten clients' links.
    past: Both<LinkCounters>,
}

impl Relay {
    /// # Errors
    /// When the conditions can't be met.
    pub(super) fn new(
        conditions: Both<Conditions>,
        bounds: Bounds,
        seed: u64,
    ) -> Result<Self, ConditionsError> {
        conditions.up.check()?;
        conditions.down.check()?;
        Ok(Relay {
            conditions,
            bounds,
            seeds: Rng::seeded(seed),
            budget: Budget::new(bounds.bytes),
            slots: Vec::new(),
            free: Vec::new(),
            by_address: HashMap::new(),
            schedule: BTreeSet::new(),
            counted: ClientCounters::default(),
            past: Both::default(),
        })
    }

    /// Changes the conditions of all clients from now on.
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub(super) fn set_conditions(
        &mut self,
        now: Instant,
        conditions: Both<Conditions>,
    ) -> Result<(), ConditionsError> {
        conditions.up.check()?;
        conditions.down.check()?;
        self.conditions = conditions;
        for slot in 0..self.slots.len() {
            for direction in [Direction::Up, Direction::Down] {
                let schedule = |link: &mut Link<_>| link.schedule(now, *conditions.of(direction));
                self.with_link(slot, direction, schedule).transpose()?;
            }
        }
        Ok(())
    }

    /// The slot of the client at `address`.
    pub(super) fn slot(&self, address: SocketAddr) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// Whether there is room for another client.
    pub(super) fn has_room(&self) -> bool {
        self.by_address.len() < self.bounds.clients
    }

    /// The slot that the next client gets.
    pub(super) fn vacant_slot(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    /// Gives a new client at `address` the vacant slot. The caller has checked that there is room.
    ///
    /// # Errors
    ///
    /// None: the conditions have been checked.
    pub(super) fn admit(&mut self, now: Instant, address: SocketAddr) -> Result<usize, ConditionsError> {
        let links = Both {
            up: Link::new(self.conditions.up, self.seeds.next_u64())?,
            down: Link::new(self.conditions.down, self.seeds.next_u64())?,
        };
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(Client { address, links, heard: now });
        self.by_address.insert(address, slot);
        self.counted.admitted += 1;
        Ok(slot)
    }

    /// Sends a datagram of the client in `slot` on; false when there is no memory for it.
    pub(super) fn put(&mut self, now: Instant, slot: usize, direction: Direction, bytes: &[u8]) -> bool {
        let Some(client) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return false };
        client.heard = now;
        let Some(datagram) = self.budget.datagram(bytes) else { return false };
        self.with_link(slot, direction, |link| link.send(now, datagram, bytes.len()));
        true
    }

    /// The next datagram that is due by `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Delivery> {
        loop {
            let &(due, slot, direction) = self.schedule.first().filter(|(due, ..)| *due <= now)?;
            let client = self.slots.get(slot)?.as_ref()?.address;
            // Nothing comes out if one only leaves the queue.
            if let Some(datagram) = self.with_link(slot, direction, |link| link.poll(due)).flatten() {
                return Some(Delivery { slot, client, direction, due, datagram });
            }
        }
    }

    /// When the next datagram comes out.
    pub(super) fn next_delivery(&self) -> Option<Instant> {
        self.schedule.first().map(|(due, ..)| *due)
    }

    /// Forgets the clients that nothing came from or for during the idle time, and that nothing is under way of.
    /// Their slots.
    pub(super) fn forget_idle(&mut self, now: Instant) -> Vec<usize> {
        let idle = |client: &Client| {
            let under_way = client.links.up.in_flight() + client.links.down.in_flight();
            under_way == 0 && now.since(client.heard) >= self.bounds.idle
        };
        let slots = self.slots.iter().enumerate();
        let idle: Vec<_> =
            slots.filter(|(_, client)| client.as_ref().is_some_and(idle)).map(|(slot, _)| slot).collect();
        idle.iter().for_each(|slot| self.forget(*slot));
        idle
    }

    /// Forgets a client with its datagrams in flight.
    fn forget(&mut self, slot: usize) {
        let Some(client) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.unschedule(slot, Direction::Up, client.links.up.next_delivery());
        self.unschedule(slot, Direction::Down, client.links.down.next_delivery());
        self.by_address.remove(&client.address);
        self.free.push(slot);
        self.counted.forgotten += 1;
        self.past.up = self.past.up + client.links.up.counters();
        self.past.down = self.past.down + client.links.down.counters();
    }

    /// The counters of all clients' links, forgotten ones included.
    pub(super) fn links(&self) -> Both<LinkCounters> {
        self.slots.iter().flatten().fold(self.past, |sum, client| Both {
            up: sum.up + client.links.up.counters(),
            down: sum.down + client.links.down.counters(),
        })
    }

    /// How many clients there are, were, and were forgotten.
    pub(super) fn clients(&self) -> ClientCounters {
        ClientCounters { present: self.by_address.len() as u64, ..self.counted }
    }

    /// The datagrams in flight.
    pub(super) fn under_way(&self) -> UnderWay {
        let datagrams = |client: &Client| client.links.up.in_flight() + client.links.down.in_flight();
        let datagrams: usize = self.slots.iter().flatten().map(datagrams).sum();
        UnderWay { datagrams: datagrams as u64, bytes: self.budget.used() as u64 }
    }

    /// Does something with the link of a client, which may change when its next datagram comes out.
    fn with_link<T>(
        &mut self,
        slot: usize,
        direction: Direction,
        operation: impl FnOnce(&mut Link<Datagram>) -> T,
    ) -> Option<T> {
        let link = self.slots.get_mut(slot)?.as_mut()?.links.of_mut(direction);
        let before = link.next_delivery();
        let result = operation(link);
        let after = link.next_delivery();
        if before != after {
            self.unschedule(slot, direction, before);
            self.schedule.extend(after.map(|at| (at, slot, direction)));
        }
        Some(result)
    }

    fn unschedule(&mut self, slot: usize, direction: Direction, at: Option<Instant>) {
        if let Some(at) = at {
            self.schedule.remove(&(at, slot, direction));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { clients: 3, bytes: 1 << 20, idle: Duration::from_secs(60) };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn relay(up: Conditions, down: Conditions, bounds: Bounds) -> Relay {
        Relay::new(Both { up, down }, bounds, 7).unwrap()
    }

    /// Everything that comes out by `now`: slot, direction, due time, bytes.
    fn drain(relay: &mut Relay, now: Instant) -> Vec<(usize, Direction, Instant, Vec<u8>)> {
        std::iter::from_fn(|| relay.poll(now))
            .map(|delivery| {
                (delivery.slot, delivery.direction, delivery.due, delivery.datagram.bytes().to_vec())
            })
            .collect()
    }

    #[test]
    fn datagrams_of_all_clients_and_directions_come_out_in_the_order_of_their_times() {
        let late = |millis| Conditions::perfect().latency(ms(millis), ms(0));
        let mut relay = relay(late(30), late(10), BOUNDS);
        let a = relay.admit(at(0), address(1)).unwrap();
        let b = relay.admit(at(0), address(2)).unwrap();
        assert_eq!((relay.slot(address(1)), relay.slot(address(2))), (Some(a), Some(b)));
        assert!(relay.put(at(0), a, Direction::Up, b"a up"));
        assert!(relay.put(at(5), b, Direction::Up, b"b up"));
        assert!(relay.put(at(10), b, Direction::Down, b"b down"));
        assert!(relay.put(at(23), a, Direction::Down, b"a down"));
        assert_eq!(relay.next_delivery(), Some(at(20)));
        assert_eq!(drain(&mut relay, at(19)), []);
        let out = drain(&mut relay, at(100));
        let expected = [
            (b, Direction::Down, at(20), b"b down".to_vec()),
            (a, Direction::Up, at(30), b"a up".to_vec()),
            (a, Direction::Down, at(33), b"a down".to_vec()),
            (b, Direction::Up, at(35), b"b up".to_vec()),
        ];
        assert_eq!(out, expected);
        assert_eq!((relay.next_delivery(), relay.under_way()), (None, UnderWay::default()));
        assert_eq!(relay.links().up.delivered, 2);
    }

    /// Which of 200 datagrams each way of two clients come through, by the order in which the clients come.
    fn history(seed: u64, order: [u16; 2]) -> Vec<Vec<u8>> {
        let lossy = Conditions::perfect().loss(0.5);
        let mut relay = Relay::new(Both { up: lossy, down: lossy }, BOUNDS, seed).unwrap();
        order.iter().for_each(|port| assert!(relay.admit(at(0), address(*port)).is_ok()));
        let mut histories = Vec::new();
        for port in order {
            for direction in [Direction::Up, Direction::Down] {
                let slot = relay.slot(address(port)).unwrap();
                (0..200).for_each(|n| assert!(relay.put(at(0), slot, direction, &[n])));
                histories.push(drain(&mut relay, at(0)).into_iter().map(|(.., bytes)| bytes[0]).collect());
            }
        }
        histories
    }

    #[test]
    fn luck_is_of_the_seed_the_order_of_arrival_and_the_direction() {
        let first = history(1, [1, 2]);
        assert_eq!(first, history(1, [9, 8]), "addresses make no difference");
        assert_ne!(first, history(2, [1, 2]));
        for (index, a) in first.iter().enumerate() {
            assert!(first[index + 1..].iter().all(|b| a != b), "each link has luck of its own");
        }
    }

    #[test]
    fn idle_clients_are_forgotten_and_their_counts_and_slots_kept() {
        let slow = Conditions::perfect().latency(Duration::from_secs(90), ms(0));
        let mut relay = relay(slow, Conditions::perfect(), BOUNDS);
        let a = relay.admit(at(0), address(1)).unwrap();
        let b = relay.admit(at(0), address(2)).unwrap();
        assert!(relay.put(at(1000), a, Direction::Up, b"still under way"));
        assert_eq!(relay.forget_idle(at(59_999)), [0; 0]);
        assert_eq!(relay.forget_idle(at(60_000)), [b]);
        assert_eq!(relay.forget_idle(at(90_999)), [0; 0], "a has a datagram under way");
        assert_eq!(drain(&mut relay, at(91_000)).len(), 1);
        assert_eq!(relay.forget_idle(at(91_000)), [a]);
        let clients = ClientCounters { admitted: 2, forgotten: 2, ..ClientCounters::default() };
        assert_eq!((relay.clients(), relay.links().up.delivered), (clients, 1));
        assert_eq!(relay.slot(address(1)), None);
        assert!(relay.admit(at(91_000), address(3)).unwrap() < 2, "slots are used again");
    }

    #[test]
    fn what_is_under_way_of_a_forgotten_client_goes_with_it() {
        let slow = Conditions::perfect().latency(ms(50), ms(0));
        let mut relay = relay(slow, slow, BOUNDS);
        let slot = relay.admit(at(0), address(1)).unwrap();
        assert!(relay.put(at(0), slot, Direction::Up, b"up"));
        assert!(relay.put(at(0), slot, Direction::Down, b"down"));
        relay.forget(slot);
        assert_eq!((relay.next_delivery(), relay.under_way()), (None, UnderWay::default()));
        assert!(!relay.put(at(0), slot, Direction::Up, b"to nobody"));
    }

    #[test]
    fn clients_and_memory_are_bounded() {
        let slow = Conditions::perfect().latency(ms(50), ms(0));
        let mut relay = relay(slow, slow, Bounds { bytes: 10_000, ..BOUNDS });
        for port in 0..3 {
            assert!(relay.has_room());
            relay.admit(at(0), address(port)).unwrap();
        }
        assert!(!relay.has_room());
        let taken = (0..100).filter(|n| relay.put(at(0), n % 3, Direction::Down, &[0; 1200])).count();
        assert!((1..=8).contains(&taken), "{taken} of at least 1,200 bytes");
        assert_eq!(relay.under_way().datagrams, taken as u64);
        assert!(relay.under_way().bytes <= 10_000);
        assert_eq!(drain(&mut relay, at(50)).len(), taken);
        assert!(relay.put(at(50), 0, Direction::Down, &[0; 1200]), "memory is given back");
    }

    #[test]
    fn datagrams_wait_their_turn_at_a_rate_and_a_changed_one_holds_at_once() {
        // A kilobyte a second: with 28 bytes of headers, half a second each.
        let narrow = Conditions::perfect().rate(1000, 10_000).latency(ms(30), ms(0));
        let mut relay = relay(narrow, narrow, BOUNDS);
        let slot = relay.admit(at(0), address(1)).unwrap();
        (0..4).for_each(|_| assert!(relay.put(at(0), slot, Direction::Up, &[0; 472])));
        let times: Vec<_> = drain(&mut relay, at(1100)).iter().map(|(_, _, due, _)| *due).collect();
        assert_eq!(times, [at(530), at(1030)]);
        let wide = Conditions::perfect().rate(1_000_000, 10_000);
        relay.set_conditions(at(1250), Both { up: wide, down: wide }).unwrap();
        let due = relay.next_delivery().unwrap();
        assert!(due <= at(1251), "{due:?}");
        assert_eq!(drain(&mut relay, at(1300)).len(), 2);
        assert_eq!(relay.under_way(), UnderWay::default());
    }

    #[test]
    fn changed_conditions_hold_for_old_clients_and_new_ones() {
        let mut relay = relay(Conditions::perfect(), Conditions::perfect(), BOUNDS);
        let a = relay.admit(at(0), address(1)).unwrap();
        let lost = Conditions::perfect().loss(1.0);
        relay.set_conditions(at(0), Both { up: lost, down: Conditions::perfect() }).unwrap();
        let b = relay.admit(at(0), address(2)).unwrap();
        for slot in [a, b] {
            assert!(relay.put(at(0), slot, Direction::Up, b"up"));
            assert!(relay.put(at(0), slot, Direction::Down, b"down"));
        }
        assert_eq!(relay.links().up.lost, 2);
        assert_eq!(drain(&mut relay, at(0)).len(), 2);
        assert!(
            relay.set_conditions(at(0), Both { up: Conditions::perfect().loss(2.0), down: lost }).is_err()
        );
    }
}
