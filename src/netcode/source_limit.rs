//! How many requests a source may make the server decrypt: a token bucket per source, in constant memory.
//!
//! Promises: a source that sends valid tokens is never slowed (the charge is refunded), however many clients share
//! its IP; all sources together can make the server decrypt at most [`BUCKETS`] x [`RATE`] requests a second. Sources
//! share buckets by a secret hash, so a flood from invented addresses drains every bucket a little, and an honest
//! client among them gets through within a few of its repeats.
//!
//! Not trusted: the source, which anybody can forge. So a sender of garbage in a client's name drains that client's
//! bucket, and then only [`RATE`] requests a second of either get through: a flood in its name delays a client, and
//! may keep it out while it lasts. Connected clients are not affected.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

use super::keyed_hash::KeyedHash;
use crate::time::{Duration, Instant};

/// Buckets in the table: 32 KiB.
const BUCKETS: usize = 4096;

/// Requests a bucket regains a second: three clients with bad tokens, sending ten a second each.
const RATE: u32 = 32;

/// Requests that may come at once.
const BURST: u32 = 64;

/// The price of one request: the time in which the bucket regains it.
const COST: Duration = Duration::from_nanos(1_000_000_000 / RATE as u64);

pub(crate) struct SourceLimit {
    hash: KeyedHash,
    /// When each bucket will be full again.
    full_at: Box<[Instant]>,
}

impl SourceLimit {
    pub(crate) fn new(hash: KeyedHash) -> Self {
        SourceLimit { hash, full_at: vec![Instant::ZERO; BUCKETS].into() }
    }

    /// Charges one request to a source; false, without a charge, when its bucket is empty.
    pub(crate) fn charge(&mut self, now: Instant, from: SocketAddr) -> bool {
        let full_at = self.bucket(from);
        let charged = (*full_at).max(now) + COST;
        let allowed = charged - now <= COST * BURST;
        if allowed {
            *full_at = charged;
        }
        allowed
    }

    /// Refunds the charge of one request.
    pub(crate) fn refund(&mut self, from: SocketAddr) {
        let full_at = self.bucket(from);
        *full_at = Instant::from_nanos(full_at.as_nanos().saturating_sub(COST.as_nanos() as u64));
    }

    fn bucket(&mut self, from: SocketAddr) -> &mut Instant {
        // Canonical: otherwise all IPv4 sources of a dual-stack socket would be one.
        let source = match from.ip().to_canonical() {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            // One host commands a whole /64.
            IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
        };
        &mut self.full_at[self.hash.hash_one(source) as usize % BUCKETS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcode::address::parse_address;
    use crate::rng::Rng;

    fn limit() -> SourceLimit {
        SourceLimit::new(KeyedHash::new(&mut Rng::seeded(1)))
    }

    #[test]
    fn a_source_gets_its_burst_and_then_its_rate() {
        let mut limit = limit();
        let from = parse_address("1.2.3.4:5").unwrap();
        let at = |ms: u64| Instant::from_millis(10_000 + ms);
        assert_eq!((0..1000).filter(|_| limit.charge(at(0), from)).count(), 64);
        assert_eq!((1..=1000).filter(|&ms| limit.charge(at(ms), from)).count(), 32);
        let same_source = parse_address("1.2.3.4:6").unwrap();
        assert!(!limit.charge(at(1000), same_source), "ports share their IP's bucket");
        assert!(limit.charge(at(1000), parse_address("1.2.3.5:5").unwrap()));
    }

    #[test]
    fn refunded_charges_cost_nothing() {
        let mut limit = limit();
        let from = parse_address("[::1]:5").unwrap();
        for _ in 0..10_000 {
            assert!(limit.charge(Instant::ZERO, from));
            limit.refund(from);
        }
    }

    #[test]
    fn mapped_ipv4_sources_are_told_apart() {
        let mut limit = limit();
        let sources = ["[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.5]:5"].map(|text| parse_address(text).unwrap());
        assert_eq!((0..1000).filter(|_| limit.charge(Instant::ZERO, sources[0])).count(), 64);
        assert!(limit.charge(Instant::ZERO, sources[1]));
        assert!(!limit.charge(Instant::ZERO, parse_address("1.2.3.4:5").unwrap()));
    }

    #[test]
    fn one_ipv6_network_is_one_source() {
        let mut limit = limit();
        let allowed = (0..1000u16)
            .filter(|i| limit.charge(Instant::ZERO, parse_address(&format!("[2001:db8::{i:x}]:1")).unwrap()))
            .count();
        assert_eq!(allowed, 64);
    }
}
