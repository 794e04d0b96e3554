//! Rate limits by source: a token bucket for each, in constant memory.
//!
//! Promises: a source gets its burst, then its rate, however many ports it uses; the table's size is fixed. Sources
//! share buckets by a secret hash. Only proven addresses are charged, so nobody drains another's bucket by forging its
//! address.

use core::net::{IpAddr, SocketAddr};

use super::secrets::Secrets;
use crate::time::{Duration, Instant};

/// Buckets of a table: 32 KiB.
const BUCKETS: usize = 4096;

/// A source, for limits and bounds: an IPv4 host, or the /64 that one IPv6 host commands.
pub(super) fn source(address: SocketAddr) -> u64 {
    // Canonical, or all IPv4 sources of a dual-stack socket would be one.
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

pub(super) struct AskLimit {
    key: u64,
    /// The time that refills one charge.
    cost: Duration,
    burst: u32,
    /// When each bucket will be full again.
    full_at: Box<[Instant]>,
}

impl AskLimit {
    /// A table that gives each source `burst` charges at once and then one per `cost`.
    pub(super) fn new(secrets: &mut Secrets, cost: Duration, burst: u32) -> Self {
        AskLimit { key: secrets.draw_u64(), cost, burst, full_at: vec![Instant::ZERO; BUCKETS].into() }
    }

    /// Takes a charge; false if the bucket is empty.
    pub(super) fn charge(&mut self, now: Instant, from: SocketAddr) -> bool {
        let (cost, burst, full_at) = (self.cost, self.burst, self.bucket(from));
        let charged = (*full_at).max(now) + cost;
        let allowed = charged - now <= cost * burst;
        if allowed {
            *full_at = charged;
        }
        allowed
    }

    /// Whether a charge would be allowed.
    pub(super) fn has_room(&mut self, now: Instant, from: SocketAddr) -> bool {
        let (cost, burst, full_at) = (self.cost, self.burst, self.bucket(from));
        (*full_at).max(now) + cost - now <= cost * burst
    }

    fn bucket(&mut self, from: SocketAddr) -> &mut Instant {
        // SplitMix64's finisher: without the key nobody can predict who shares a bucket.
        let mut x = source(from) ^ self.key;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        &mut self.full_at[((x ^ (x >> 31)) % BUCKETS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_source_gets_its_burst_and_then_its_rate() {
        let mut secrets = Secrets::new(&mut Rng::seeded(1));
        let mut limit = AskLimit::new(&mut secrets, Duration::from_millis(100), 5);
        let at = |millis: u64| Instant::from_millis(10_000 + millis);
        let from = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(
            (0..100).filter(|port| limit.charge(at(0), SocketAddr::from(([1, 2, 3, 4], *port)))).count(),
            5
        );
        assert!(!limit.has_room(at(0), from("1.2.3.4:5")) && limit.has_room(at(100), from("1.2.3.4:5")));
        assert_eq!((1..=1000).filter(|&ms| limit.charge(at(ms), from("[::ffff:1.2.3.4]:9"))).count(), 10);
        assert!(limit.charge(at(1000), from("1.2.3.5:5")));
        let one_network = (0..100u16).filter(|i| limit.charge(at(0), from(&format!("[2001:db8::{i:x}]:1"))));
        assert_eq!(one_network.count(), 5);
    }
}
