//! A virtual network: many hosts by address, a link for each direction of each pair, one virtual clock.
//! Hundreds of endpoints and hours of play run in one process in seconds, the same way each time.

use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::conditions::{Conditions, ConditionsError};
use super::link::{Link, LinkCounters};
use super::nat::{NatKind, NatRefusal};
use super::topology::{Arrival, NatError, Route, Topology};
use super::transcript::Transcript;
use crate::rng::Rng;
use crate::store::counters::counters;
use crate::time::{Duration, Instant};

/// Datagrams under way at a time, in the whole network: 1,000 hosts that each send 60 a second, seconds late.
pub const MAX_IN_FLIGHT: usize = 1 << 18;

/// Datagrams a host's mailbox holds until they are received, as a socket's receive buffer does.
pub const MAILBOX_CAPACITY: usize = 4096;

counters! {
    /// Datagrams that did not reach a host, besides those that links lose.
    pub struct UndeliveredCounters {
        /// Datagrams that arrived where no host is.
        unknown_destination,
        /// Datagrams that arrived at a full mailbox.
        mailbox_full,
        /// Datagrams that a partition stopped; no link counts them.
        partitioned,
        /// Datagrams that found no free port at their sender's box; no link counts them.
        nat_exhausted,
        /// Datagrams to a port of a NAT without a mapping.
        nat_unmapped,
        /// Datagrams that a NAT did not let in, because nothing had been sent there.
        nat_filtered,
    }
}

/// Counts of all datagrams of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// The links' counts; `delivered` counts datagrams that reached a mailbox.
    pub links: LinkCounters,
    pub undelivered: UndeliveredCounters,
}

impl NetworkCounters {
    /// Every count under its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.links.iter().chain(self.undelivered.iter())
    }
}

/// A datagram under way, with the addresses that are written on it.
#[derive(Clone, Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// From a host to a host.
type Pair = (SocketAddr, SocketAddr);

/// A choice of links: those from a host, those to a host, the one between both, or all.
type Choice = (Option<SocketAddr>, Option<SocketAddr>);

/// One direction of a pair.
#[derive(Clone, Debug)]
struct Direction {
    link: Link<Datagram>,
    /// Directions have their turn in the order they were first used.
    number: u64,
    /// Its next time in the event queue.
    due: Instant,
}

/// When a link has something to do. It is void when the link is gone or due at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Delivery {
    at: Instant,
    number: u64,
    pair: Pair,
}

/// A virtual network. It never looks at the datagrams it carries.
#[derive(Clone, Debug)]
pub struct Network {
    now: Instant,
    rng: Rng,
    default_conditions: Conditions,
    conditions: HashMap<Choice, Conditions>,
    /// Conditions to come, by time.
    changes: VecDeque<(Instant, Choice, Conditions)>,
    mailboxes: HashMap<SocketAddr, VecDeque<(SocketAddr, Vec<u8>)>>,
    // Directions are independent, so the order of this map has no effect.
    directions: HashMap<Pair, Direction>,
    next_number: u64,
    event_queue: BinaryHeap<Reverse<Delivery>>,
    in_flight: usize,
    topology: Topology,
    transcript: Transcript,
    /// Counts without those of existing links; `delivered` counts what came out of links.
    counters: NetworkCounters,
}

impl Network {
    /// A network without hosts, at [`Instant::ZERO`], whose links all have these conditions.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        conditions.check()?;
        Ok(Network {
            now: Instant::ZERO,
            rng: Rng::seeded(seed),
            default_conditions: conditions,
            conditions: HashMap::new(),
            changes: VecDeque::new(),
            mailboxes: HashMap::new(),
            directions: HashMap::new(),
            next_number: 0,
            event_queue: BinaryHeap::new(),
            in_flight: 0,
            topology: Topology::default(),
            transcript: Transcript::new(),
            counters: NetworkCounters::default(),
        })
    }

    /// Puts a host at `address`, with an empty mailbox. False when there was one, which stays as it is, or a box.
    pub fn add_host(&mut self, address: SocketAddr) -> bool {
        let new = !self.mailboxes.contains_key(&address) && !self.topology.is_box(address.ip());
        if new {
            self.mailboxes.insert(address, VecDeque::new());
        }
        new
    }

    /// Moves a host with its mailbox to another address. False when there is no host at `from`, or `to` is taken.
    /// Datagrams in flight to it will find nobody.
    pub fn move_host(&mut self, from: SocketAddr, to: SocketAddr) -> bool {
        if !self.mailboxes.contains_key(&from) || !self.add_host(to) {
            return false;
        }
        if let Some(mailbox) = self.mailboxes.remove(&from) {
            self.mailboxes.insert(to, mailbox);
        }
        self.topology.move_host(from, to);
        self.remove_host(from);
        true
    }

    /// Puts a box that translates addresses between the hosts with the addresses `inside` and all others. They
    /// reach each other as before, and are seen from outside as ports of `public`.
    ///
    /// # Errors
    /// When one of the addresses is in use by a host (`public`) or a box, or there can be no such lifetime.
    pub fn add_nat(
        &mut self,
        public: IpAddr,
        inside: &[IpAddr],
        kind: NatKind,
        lifetime: Duration,
    ) -> Result<(), NatError> {
        if self.mailboxes.keys().any(|host| host.ip() == public) {
            return Err(NatError::AddressInUse(public));
        }
        self.topology.add_nat(public, inside, kind, lifetime)
    }

    /// A box forgets its mappings, as when it loses power; the next ones are others. False when there is no box.
    pub fn restart_nat(&mut self, public: IpAddr) -> bool {
        self.topology.restart_nat(public)
    }

    /// Whether hosts behind a box reach each other by its public address, as they do unless this says otherwise. False when
    /// there is no box.
    pub fn set_hairpin(&mut self, public: IpAddr, on: bool) -> bool {
        self.topology.set_hairpin(public, on)
    }

    /// From now on hosts of different parts don't reach each other; those in no part reach all. What is under way
    /// arrives. The last partition holds, and one without parts ends it.
    pub fn partition(&mut self, parts: &[Vec<SocketAddr>]) {
        self.topology.partition(parts);
    }

    /// Takes the host at `address` away with its mailbox. Datagrams in flight from it arrive, those in flight to it
    /// will find nobody; then its links are forgotten.
    pub fn remove_host(&mut self, address: SocketAddr) {
        self.mailboxes.remove(&address);
        let its = self.directions.keys().filter(|(from, to)| *from == address || *to == address);
        its.copied().collect::<Vec<_>>().into_iter().for_each(|pair| self.forget_if_idle(pair));
    }

    /// Gives links their conditions from now on: those from `from`, those to `to`, or with both the one
    /// direction between them. The most precise choice holds, `from` before `to`. With neither, these are the
    /// conditions of all links, and what single links were given is forgotten.
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(
        &mut self,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        conditions: Conditions,
    ) -> Result<(), ConditionsError> {
        conditions.check()?;
        self.change((from, to), conditions);
        Ok(())
    }

    /// As [`set_conditions`](Self::set_conditions) when `at` comes; of changes at one time, the one scheduled
    /// last holds.
    ///
    /// # Errors
    /// When the conditions can't be met. Nothing is scheduled then.
    pub fn schedule(
        &mut self,
        at: Instant,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        conditions: Conditions,
    ) -> Result<(), ConditionsError> {
        conditions.check()?;
        let place = self.changes.partition_point(|(earlier, ..)| *earlier <= at);
        self.changes.insert(place, (at, (from, to), conditions));
        Ok(())
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// Sends a datagram. Whether there is a host is seen when it arrives.
    pub fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.transcript.record(self.now, from, to, bytes);
        if self.in_flight >= MAX_IN_FLIGHT {
            self.counters.links.sent += 1;
            self.counters.links.overflowed += 1;
            return;
        }
        let (seen, host) = match self.topology.route(self.now, from, to) {
            Route::Link { from, host } => (from, host),
            Route::Cut => return self.counters.undelivered.partitioned += 1,
            Route::Exhausted => return self.counters.undelivered.nat_exhausted += 1,
        };
        let pair = (from, host);
        if !self.directions.contains_key(&pair) {
            self.open(pair);
        }
        let datagram = Datagram { from: seen, to, bytes: bytes.to_vec() };
        self.work(pair, |link, now| link.send(now, datagram, bytes.len()));
        self.forget_if_idle(pair);
    }

    /// Moves the clock, never back, and puts what arrives until then into the mailboxes.
    pub fn advance(&mut self, to: Instant) {
        loop {
            let change = self.changes.front().map_or(Instant::NEVER, |(at, ..)| *at);
            let arrival = self.event_queue.peek().map_or(Instant::NEVER, |Reverse(next)| next.at);
            if change.min(arrival) > to {
                break;
            }
            self.now = self.now.max(change.min(arrival));
            if change <= arrival {
                let Some((_, choice, conditions)) = self.changes.pop_front() else { break };
                self.change(choice, conditions);
            } else {
                let Some(Reverse(delivery)) = self.event_queue.pop() else { break };
                self.keep(delivery);
            }
        }
        self.now = self.now.max(to);
    }

    /// When the next datagram arrives anywhere, or moves on within a link: where the clock may jump to when
    /// nobody has anything to do.
    pub fn next_delivery(&self) -> Option<Instant> {
        let next = self.event_queue.peek().map(|Reverse(next)| next.at)?;
        Some(self.changes.front().map_or(next, |(at, ..)| next.min(*at)))
    }

    /// Takes the next datagram out of the mailbox at `at`, with the address it came from.
    pub fn receive(&mut self, at: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        self.mailboxes.get_mut(&at)?.pop_front()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Links with a state: those used between hosts, and those where something is under way.
    pub fn links(&self) -> usize {
        self.directions.len()
    }

    /// Counts of all datagrams.
    pub fn counters(&self) -> NetworkCounters {
        let mut sum = self.counters;
        self.directions.values().for_each(|direction| sum.links = sum.links + direction.link.counters());
        let at_the_end = &sum.undelivered;
        sum.links.delivered -= at_the_end.unknown_destination
            + at_the_end.mailbox_full
            + at_the_end.nat_unmapped
            + at_the_end.nat_filtered;
        sum
    }

    /// SHA-256 over every datagram sent until now, with its time and addresses.
    pub fn transcript(&self) -> [u8; 32] {
        self.transcript.hash()
    }

    fn open(&mut self, pair: Pair) {
        let link = Link::checked(self.conditions_of(pair), self.rng.next_u64());
        self.directions.insert(pair, Direction { link, number: self.next_number, due: Instant::NEVER });
        self.next_number += 1;
    }

    fn conditions_of(&self, (from, to): Pair) -> Conditions {
        let choices = [(Some(from), Some(to)), (Some(from), None), (None, Some(to))];
        let chosen = choices.iter().find_map(|choice| self.conditions.get(choice));
        *chosen.unwrap_or(&self.default_conditions)
    }

    fn change(&mut self, choice: Choice, conditions: Conditions) {
        match choice {
            (None, None) => {
                self.default_conditions = conditions;
                self.conditions.clear();
            }
            choice => {
                self.conditions.insert(choice, conditions);
            }
        }
        let meant = |wanted: Option<SocketAddr>, host: SocketAddr| wanted.is_none_or(|it| it == host);
        let pairs = self.directions.keys().filter(|pair| meant(choice.0, pair.0) && meant(choice.1, pair.1));
        for pair in pairs.copied().collect::<Vec<_>>() {
            let conditions = self.conditions_of(pair);
            self.work(pair, |link, now| link.change_at(now, conditions));
        }
    }

    /// Acts on a link, and schedules the consequences.
    fn work(&mut self, pair: Pair, act: impl FnOnce(&mut Link<Datagram>, Instant)) {
        let Some(Direction { link, number, due }) = self.directions.get_mut(&pair) else { return };
        let before = link.in_flight();
        act(link, self.now);
        self.in_flight = self.in_flight + link.in_flight() - before;
        if let Some(at) = link.next_delivery().filter(|at| at < due) {
            *due = at;
            self.event_queue.push(Reverse(Delivery { at, number: *number, pair }));
        }
    }

    fn keep(&mut self, Delivery { at, number, pair }: Delivery) {
        match self.directions.get_mut(&pair) {
            Some(direction) if direction.number == number && direction.due == at => {
                direction.due = Instant::NEVER;
            }
            _ => return,
        }
        let mut arrived = Vec::new();
        self.work(pair, |link, now| arrived.extend(core::iter::from_fn(|| link.poll(now))));
        arrived.into_iter().for_each(|datagram| self.deliver(datagram));
        self.forget_if_idle(pair);
    }

    fn deliver(&mut self, Datagram { from, to, bytes }: Datagram) {
        let host = match self.topology.arrive(self.now, from, to) {
            Arrival::Host(host) => host,
            Arrival::Nowhere => return self.counters.undelivered.unknown_destination += 1,
            Arrival::Refused(NatRefusal::Unmapped) => return self.counters.undelivered.nat_unmapped += 1,
            Arrival::Refused(NatRefusal::Filtered) => return self.counters.undelivered.nat_filtered += 1,
        };
        match self.mailboxes.get_mut(&host) {
            None => self.counters.undelivered.unknown_destination += 1,
            Some(mailbox) if mailbox.len() >= MAILBOX_CAPACITY => self.counters.undelivered.mailbox_full += 1,
            Some(mailbox) => mailbox.push_back((from, bytes)),
        }
    }

    /// Forgets a link that is not between hosts, unless something is under way.
    fn forget_if_idle(&mut self, pair: Pair) {
        let hosts = self.mailboxes.contains_key(&pair.0) && self.mailboxes.contains_key(&pair.1);
        let idle = self.directions.get(&pair).is_some_and(|direction| direction.link.in_flight() == 0);
        if let Some(direction) = (idle && !hosts).then(|| self.directions.remove(&pair)).flatten() {
            self.counters.links = self.counters.links + direction.link.counters();
        }
    }
}

#[cfg(test)]
mod tests;
