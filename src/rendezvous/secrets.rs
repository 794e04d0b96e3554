//! Proofs without stored state: HMAC-SHA256 (RFC 2104), and cookies and random numbers made of it.
//!
//! Promises: comparisons with bytes from outside take constant time.

use core::net::SocketAddr;

use ring::hmac::{Context, HMAC_SHA256, Key};

use super::bytes::Sendable;
use crate::rng::Entropy;
use crate::time::{Duration, Instant};
use crate::wire::packet::to_bytes;

/// Bytes of a cookie, and of a probe's tag.
pub(super) const TAG_BYTES: usize = 8;

/// Proves a source address, or the knowledge of a key.
pub(super) type ShortTag = [u8; TAG_BYTES];

/// How long a cookie is issued; it stays valid as long again.
const COOKIE_EPOCH: Duration = Duration::from_secs(60);

/// HMAC-SHA256 of the concatenated parts.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    let mut tag = [0; 32];
    tag.copy_from_slice(context.sign().as_ref());
    tag
}

/// The first bytes of an HMAC.
pub(super) fn short_tag(key: &[u8], parts: &[&[u8]]) -> ShortTag {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&hmac(key, parts)[..TAG_BYTES]);
    tag
}

/// Whether two tags are equal, in constant time.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// A secret, and the random numbers drawn from it.
pub(super) struct Secrets {
    key: [u8; 32],
    drawn: u64,
}

impl Secrets {
    pub(super) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut key = [0; 32];
        entropy.fill(&mut key);
        Secrets { key, drawn: 0 }
    }

    /// The next random bytes.
    pub(super) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        hmac(&self.key, &[b"draw", &self.drawn.to_le_bytes()])
    }

    /// The first 16 bytes of [`Secrets::draw`].
    pub(super) fn draw_key(&mut self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&self.draw()[..16]);
        key
    }

    /// The first 8 bytes of [`Secrets::draw`], as a number.
    pub(super) fn draw_u64(&mut self) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.draw()[..8]);
        u64::from_le_bytes(word)
    }

    /// The same bytes for the same parts, unpredictable for everybody else.
    pub(super) fn derive(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut all = vec![&b"derive"[..]];
        all.extend_from_slice(parts);
        hmac(&self.key, &all)
    }

    /// A cookie that only the receiver at `address` can know at this time.
    pub(super) fn cookie(&self, now: Instant, address: SocketAddr) -> ShortTag {
        self.cookie_of(epoch(now), address)
    }

    /// Whether `cookie` was sent to `address` recently.
    pub(super) fn proves(&self, now: Instant, address: SocketAddr, cookie: &ShortTag) -> bool {
        let epoch = epoch(now);
        same(cookie, &self.cookie_of(epoch, address))
            || epoch > 0 && same(cookie, &self.cookie_of(epoch - 1, address))
    }

    fn cookie_of(&self, epoch: u64, address: SocketAddr) -> ShortTag {
        short_tag(&self.key, &[b"cookie", &epoch.to_le_bytes(), &to_bytes::<Sendable>(&address)])
    }
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / COOKIE_EPOCH.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn hmac_is_that_of_its_standard() {
        // RFC 4231, test cases 1 and 2.
        let first = hmac(&[0x0B; 20], &[b"Hi ", b"There"]);
        assert_eq!(hex::encode(first), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        let second = hmac(b"Jefe", &[b"what do ya want for nothing?"]);
        assert_eq!(hex::encode(second), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_cookie_is_of_its_address_and_holds_for_a_while() {
        let secrets = Secrets::new(&mut Rng::seeded(1));
        let (one, other): (SocketAddr, SocketAddr) =
            ("1.2.3.4:5".parse().unwrap(), "1.2.3.4:6".parse().unwrap());
        let at = |seconds: u64| Instant::from_millis(1000 * seconds);
        let cookie = secrets.cookie(at(59), one);
        assert!(secrets.proves(at(59), one, &cookie) && secrets.proves(at(119), one, &cookie));
        assert!(!secrets.proves(at(120), one, &cookie) && !secrets.proves(at(59), other, &cookie));
        assert!(!Secrets::new(&mut Rng::seeded(2)).proves(at(59), one, &cookie));
        assert!(!secrets.proves(at(59), one, &[0; TAG_BYTES]));
    }

    #[test]
    fn draws_differ() {
        let mut secrets = Secrets::new(&mut Rng::seeded(1));
        assert_ne!(secrets.draw(), secrets.draw());
        assert_eq!(secrets.derive(&[b"a", b"b"]), secrets.derive(&[b"a", b"b"]));
    }
}
