//! The tokens that have been used: one token makes one connection, ever.
//!
//! A token is *pending* from its first request and admits that address only, and one of the other family of IP, as a client
//! has when it goes on from one of our addresses to the next; it is *consumed* when it becomes a connection and admits
//! nobody. Both sides start their sequences at 0, so a token used twice would use nonces twice under the same keys.
//!
//! Promises: an entry lives until its token has expired and nobody is half open with it. Refuses: new tokens while the history is full of
//! unexpired ones, rather than forgetting one that could then come back.
//!
//! Trusted: only tokens that have been opened are remembered, so filling the history takes as many valid tokens as it
//! has places. Unproven claims are only looked up, and leave nothing in memory. Bounded: 100 bytes a place; a full
//! history is searched for expired entries at most once a second.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

use super::crypto::Tag;
use super::drops::DropReason;
use super::half_open::MAX_SILENCE;
use crate::store::keyed_hash::{KeyedHash, KeyedMap};
use crate::time::UnixSeconds;

struct Entry {
    /// Hashes of the addresses that it admits, of IPv4 and of IPv6; 0 where there is none yet.
    addresses: [u64; 2],
    /// The first second in which the token is refused without this entry, and its last response too.
    expires: UnixSeconds,
    consumed: bool,
}

pub(crate) struct TokenHistory {
    entries: KeyedMap<Tag, Entry>,
    capacity: usize,
    /// No entry expires before this.
    earliest: UnixSeconds,
    /// Entries expiring up to here have been forgotten; their tokens stay refused even if the wall clock is
    /// set back.
    forgotten: UnixSeconds,
}

impl TokenHistory {
    pub(crate) fn new(capacity: usize, hash: KeyedHash) -> Self {
        TokenHistory {
            entries: KeyedMap::with_hasher(hash),
            capacity,
            earliest: UnixSeconds(u64::MAX),
            forgotten: UnixSeconds(0),
        }
    }

    /// Whether a request with this token may go on, judged by the remembered tokens. Cheap: done before anything is
    /// decrypted.
    pub(crate) fn check(&self, tag: &Tag, from: SocketAddr, expires: UnixSeconds) -> Result<(), DropReason> {
        match self.entries.get(tag) {
            Some(entry) if entry.consumed => Err(DropReason::TokenConsumed),
            Some(entry) => {
                let (family, hash) = self.place(from);
                let admits = [0, hash].contains(&entry.addresses[family]);
                if admits { Ok(()) } else { Err(DropReason::TokenElsewhere) }
            }
            None if expires <= self.forgotten => Err(DropReason::TokenExpired),
            None => Ok(()),
        }
    }

    /// Remembers an authentic token that [`TokenHistory::check`] let pass. `unix` is the server's clock.
    pub(crate) fn remember(
        &mut self,
        tag: Tag,
        from: SocketAddr,
        expires: UnixSeconds,
        unix: UnixSeconds,
    ) -> Result<(), DropReason> {
        let (family, hash) = self.place(from);
        if let Some(entry) = self.entries.get_mut(&tag) {
            entry.addresses[family] = hash;
            return Ok(());
        }
        if self.entries.len() >= self.capacity && self.earliest <= unix {
            self.forget_expired(unix);
        }
        if self.entries.len() >= self.capacity {
            return Err(DropReason::TokenHistoryFull);
        }
        let expires = UnixSeconds(expires.0.saturating_add(MAX_SILENCE.as_secs()));
        self.earliest = self.earliest.min(expires);
        let mut addresses = [0; 2];
        addresses[family] = hash;
        self.entries.insert(tag, Entry { addresses, expires, consumed: false });
        Ok(())
    }

    /// Where an entry keeps an address, and as what.
    fn place(&self, from: SocketAddr) -> (usize, u64) {
        let ip = from.ip().to_canonical();
        let family = usize::from(matches!(ip, IpAddr::V6(_)));
        (family, self.entries.hasher().hash_one((ip, from.port())).max(1))
    }

    /// Whether the token has become a connection.
    pub(crate) fn is_consumed(&self, tag: &Tag) -> bool {
        self.entries.get(tag).is_some_and(|entry| entry.consumed)
    }

    /// The token has become a connection. One that is no longer remembered has expired: it can't come back.
    pub(crate) fn consume(&mut self, tag: &Tag) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.consumed = true;
        }
    }

    fn forget_expired(&mut self, unix: UnixSeconds) {
        self.entries.retain(|_, entry| entry.expires > unix);
        self.earliest = self.entries.values().map(|e| e.expires).min().unwrap_or(UnixSeconds(u64::MAX));
        self.forgotten = self.forgotten.max(unix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn history(capacity: usize) -> TokenHistory {
        TokenHistory::new(capacity, KeyedHash::new(&mut Rng::seeded(1)))
    }

    fn from(port: u16) -> SocketAddr {
        let mut address = SocketAddr::from(([10, 0, 0, 1], 0));
        address.set_port(port);
        address
    }

    const EXPIRES: UnixSeconds = UnixSeconds(100);

    #[test]
    fn an_entry_is_small() {
        // The map is at worst half full, and keeps a byte a place.
        let place = size_of::<(Tag, Entry)>() + 1;
        assert!(2 * place <= 100, "2 * {place}");
    }

    #[test]
    fn pending_admits_one_address_and_consumed_nobody() {
        let mut history = history(4);
        let tag = [1; 16];
        history.remember(tag, from(1), EXPIRES, UnixSeconds(0)).unwrap();
        assert_eq!(history.check(&tag, from(1), EXPIRES), Ok(()));
        assert_eq!(history.check(&tag, from(2), EXPIRES), Err(DropReason::TokenElsewhere));
        history.consume(&tag);
        assert_eq!(history.check(&tag, from(1), EXPIRES), Err(DropReason::TokenConsumed));
    }

    #[test]
    fn full_of_unexpired_tokens_it_refuses_and_never_evicts() {
        let mut history = history(2);
        history.remember([1; 16], from(1), EXPIRES, UnixSeconds(0)).unwrap();
        history.remember([2; 16], from(2), UnixSeconds(200), UnixSeconds(0)).unwrap();
        history.consume(&[2; 16]);
        let new =
            |h: &mut TokenHistory, n, unix| h.remember([n; 16], from(3), UnixSeconds(300), UnixSeconds(unix));
        assert_eq!(new(&mut history, 3, 109), Err(DropReason::TokenHistoryFull));
        assert_eq!(history.remember([1; 16], from(1), EXPIRES, UnixSeconds(109)), Ok(()), "known already");
        assert_eq!(new(&mut history, 3, 110), Ok(()), "the first has expired");
        assert_eq!(history.check(&[2; 16], from(2), UnixSeconds(200)), Err(DropReason::TokenConsumed));
        assert_eq!(new(&mut history, 4, 150), Err(DropReason::TokenHistoryFull));
    }

    #[test]
    fn a_forgotten_token_stays_refused_when_the_clock_is_set_back() {
        let mut history = history(1);
        history.remember([1; 16], from(1), EXPIRES, UnixSeconds(0)).unwrap();
        history.consume(&[1; 16]);
        history.remember([2; 16], from(1), UnixSeconds(300), UnixSeconds(120)).unwrap();
        assert_eq!(history.check(&[1; 16], from(1), EXPIRES), Err(DropReason::TokenExpired));
    }
}
