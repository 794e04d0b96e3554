//! Half-open connections: the keys of clients that sent a valid request and have not answered the challenge.
//!
//! Promises: constant memory; a newcomer never evicts an entry in use. Refuses newcomers while every place is taken.
//! Each entry needs a valid token, which has at most one entry for each IP family, and expires when its client has
//! been silent for the token's timeout or [`MAX_SILENCE`], whichever is shorter, so a token without a timeout can't
//! keep one.
//!
//! Trusted: the token, which has been opened. Not trusted: the address, which nothing has proven yet. So a peer with
//! a valid token that can send from another's address and port can replace that other's entry in the one round trip
//! in which it matters: the other's response then doesn't match the entry's token, and its next request starts again.
//! Bounded: under 300 bytes a place.

use core::net::SocketAddr;

use super::crypto::{Key, Tag};
use super::drops::DropReason;
use crate::store::keyed_hash::{KeyedHash, KeyedMap};
use crate::time::{Duration, Instant};

/// The standard's timeout of a client that waits for an answer, which most tokens have.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(10);

/// The memory of a request.
#[derive(Clone)]
pub(crate) struct HalfOpen {
    pub(crate) send_key: Key,
    pub(crate) receive_key: Key,
    pub(crate) timeout: Option<Duration>,
    /// The token's, to consume it, and to know its challenges by.
    pub(crate) tag: Tag,
    /// When the last challenge was sent.
    pub(crate) challenged: Instant,
}

impl HalfOpen {
    /// When the entry goes, unless its client is heard before.
    fn expires(&self) -> Instant {
        self.challenged + self.timeout.map_or(MAX_SILENCE, |t| t.min(MAX_SILENCE))
    }
}

pub(crate) struct HalfOpenTable {
    entries: KeyedMap<SocketAddr, HalfOpen>,
    capacity: usize,
    /// No entry expires before this.
    earliest: Instant,
}

impl HalfOpenTable {
    pub(crate) fn new(capacity: usize, hash: KeyedHash) -> Self {
        HalfOpenTable { entries: KeyedMap::with_hasher(hash), capacity, earliest: Instant::NEVER }
    }

    /// The entry of an address, unless it has expired.
    pub(crate) fn find(&self, now: Instant, from: SocketAddr) -> Option<&HalfOpen> {
        self.entries.get(&from).filter(|entry| entry.expires() > now)
    }

    /// Adds or replaces the entry of an address.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        from: SocketAddr,
        entry: HalfOpen,
    ) -> Result<(), DropReason> {
        let is_new = !self.entries.contains_key(&from);
        if is_new && self.entries.len() >= self.capacity && self.earliest <= now {
            self.entries.retain(|_, entry| entry.expires() > now);
            self.earliest = self.entries.values().map(HalfOpen::expires).min().unwrap_or(Instant::NEVER);
        }
        if is_new && self.entries.len() >= self.capacity {
            return Err(DropReason::HalfOpenFull);
        }
        self.earliest = self.earliest.min(entry.expires());
        self.entries.insert(from, entry);
        Ok(())
    }

    pub(crate) fn remove(&mut self, from: SocketAddr) {
        self.entries.remove(&from);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn entry(now: Instant, timeout: Option<Duration>) -> HalfOpen {
        HalfOpen { send_key: [0; 32], receive_key: [0; 32], timeout, tag: [0; 16], challenged: now }
    }

    #[test]
    fn an_entry_is_small() {
        // The map is at worst half full, and keeps a byte a place.
        let place = size_of::<(SocketAddr, HalfOpen)>() + 1;
        assert!(2 * place < 300, "2 * {place}");
    }

    #[test]
    fn a_full_table_refuses_newcomers_until_an_entry_expires() {
        let mut table = HalfOpenTable::new(2, KeyedHash::new(&mut Rng::seeded(1)));
        let address = |port: u16| format!("1.1.1.1:{port}").parse().unwrap();
        let at = Instant::from_millis;
        table.insert(at(0), address(1), entry(at(0), Some(Duration::from_secs(2)))).unwrap();
        table.insert(at(0), address(2), entry(at(0), None)).unwrap();
        let refused = table.insert(at(1999), address(3), entry(at(1999), None));
        assert_eq!(refused, Err(DropReason::HalfOpenFull));
        table.insert(at(1999), address(2), entry(at(1999), None)).unwrap();
        assert!(table.find(at(1999), address(1)).is_some() && table.find(at(2000), address(1)).is_none());
        table.insert(at(2000), address(3), entry(at(2000), None)).unwrap();
        assert!(table.find(at(11_998), address(2)).is_some() && table.find(at(11_999), address(2)).is_none());
        table.remove(address(3));
        assert_eq!(table.len(), 1);
    }
}
