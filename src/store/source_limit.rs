//! Rate limits by source: a token bucket for each, in constant memory.
//!
//! Promises: a source gets its burst, then its rate, however many ports it uses; the table's size is fixed. Sources
//! share buckets by a secret hash, so a flood from invented addresses drains every bucket a little, and nobody can
//! choose an address that shares another's bucket.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

use super::bucket::Bucket;
use super::keyed_hash::KeyedHash;
use crate::time::{Duration, Instant};

/// Buckets of a table: 32 KiB.
const BUCKETS: usize = 4096;

/// A source, for limits and bounds: an IPv4 host, or the /64 that one IPv6 host commands.
pub(crate) fn source(address: SocketAddr) -> u64 {
    // Canonical, or all IPv4 sources of a dual-stack socket would be one.
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

pub(crate) struct SourceLimit {
    hash: KeyedHash,
    /// The time that refills one charge.
    cost: Duration,
    /// The time that refills a bucket.
    whole: Duration,
    buckets: Box<[Bucket]>,
}

impl SourceLimit {
    /// A table that gives each source `burst` charges at once and then one per `cost`.
    pub(crate) fn new(hash: KeyedHash, cost: Duration, burst: u32) -> Self {
        SourceLimit { hash, cost, whole: cost * burst, buckets: vec![Bucket::default(); BUCKETS].into() }
    }

    /// Takes a charge; false if the bucket is empty.
    pub(crate) fn charge(&mut self, now: Instant, from: SocketAddr) -> bool {
        let (cost, whole) = (self.cost, self.whole);
        self.bucket(from).take(now, cost, whole)
    }

    /// Whether a charge would be allowed.
    pub(crate) fn has_room(&mut self, now: Instant, from: SocketAddr) -> bool {
        let (cost, whole) = (self.cost, self.whole);
        self.bucket(from).has(now, cost, whole)
    }

    /// Refunds a charge, which must have been taken before.
    pub(crate) fn refund(&mut self, from: SocketAddr) {
        let cost = self.cost;
        self.bucket(from).refund(cost);
    }

    fn bucket(&mut self, from: SocketAddr) -> &mut Bucket {
        &mut self.buckets[self.hash.hash_one(source(from)) as usize % BUCKETS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn limit() -> SourceLimit {
        SourceLimit::new(KeyedHash::new(&mut Rng::seeded(1)), Duration::from_millis(100), 5)
    }

    fn from(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_gets_its_burst_and_then_its_rate() {
        let mut limit = limit();
        let at = |millis: u64| Instant::from_millis(10_000 + millis);
        let one_host = (0..100).filter(|port| limit.charge(at(0), SocketAddr::from(([1, 2, 3, 4], *port))));
        assert_eq!(one_host.count(), 5);
        assert!(!limit.has_room(at(0), from("1.2.3.4:5")) && limit.has_room(at(100), from("1.2.3.4:5")));
        assert_eq!((1..=1000).filter(|&ms| limit.charge(at(ms), from("1.2.3.4:9"))).count(), 10);
        assert!(limit.charge(at(1000), from("1.2.3.5:5")));
        let one_network = (0..100u16).filter(|i| limit.charge(at(0), from(&format!("[2001:db8::{i:x}]:1"))));
        assert_eq!(one_network.count(), 5);
    }

    #[test]
    fn refunded_charges_cost_nothing() {
        let mut limit = limit();
        for _ in 0..10_000 {
            assert!(limit.charge(Instant::ZERO, from("[::1]:5")));
            limit.refund(from("[::1]:5"));
        }
    }

    #[test]
    fn mapped_ipv4_sources_are_told_apart() {
        let mut limit = limit();
        let mapped = (0..1000).filter(|_| limit.charge(Instant::ZERO, from("[::ffff:1.2.3.4]:5")));
        assert_eq!(mapped.count(), 5);
        assert!(limit.charge(Instant::ZERO, from("[::ffff:1.2.3.5]:5")));
        assert!(!limit.charge(Instant::ZERO, from("1.2.3.4:5")));
    }
}
