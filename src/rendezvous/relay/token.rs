//! Relay tokens: the rendezvous server's permission to carry for a peer, with rate and expiry.
//!
//! Promises: only holders of the key that server and relay share can make one. A token is for one channel and one of
//! its two sides. It isn't secret: an attacker who reads a peer's datagrams can take its side, and gets sealed
//! datagrams.

use crate::rendezvous::secrets::{hmac, same};
use crate::time::UnixSeconds;
use crate::wire::packet::{from_bytes, packet, to_bytes};

/// The key that a rendezvous server and its relays share.
pub type RelayKey = [u8; 32];

const BODY_BYTES: usize = 8 + 1 + 8 + 4;
const MAC_BYTES: usize = 16;

/// Bytes of a relay token.
pub const TOKEN_BYTES: usize = BODY_BYTES + MAC_BYTES;

packet! {
    /// A relay token, opaque to a peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RelayToken { bytes: [u8; TOKEN_BYTES] }
}

/// Its terms in bytes, with expiry in seconds.
type Terms = (u64, bool, u64, u32);

/// The contents of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayTerms {
    pub channel: u64,
    /// Which of the two sides.
    pub side: bool,
    pub expires: UnixSeconds,
    /// The channel's rate in bytes a second, both directions together.
    pub bytes_per_second: u32,
}

impl RelayToken {
    /// Signs a token with these terms.
    pub fn new(key: &RelayKey, terms: RelayTerms) -> Self {
        let mut bytes = [0; TOKEN_BYTES];
        let (body, mac) = bytes.split_at_mut(BODY_BYTES);
        let RelayTerms { channel, side, expires, bytes_per_second } = terms;
        body.copy_from_slice(&to_bytes::<Terms>(&(channel, side, expires.0, bytes_per_second)));
        mac.copy_from_slice(&hmac(key, &[b"relay", body])[..MAC_BYTES]);
        RelayToken { bytes }
    }

    /// The token's bytes, as shown to a relay.
    pub fn to_bytes(&self) -> [u8; TOKEN_BYTES] {
        self.bytes
    }

    /// The channel of the token, unverified.
    pub(in crate::rendezvous) fn channel(&self) -> u64 {
        let mut channel = [0; 8];
        channel.copy_from_slice(&self.bytes[..8]);
        u64::from_le_bytes(channel)
    }

    /// The token's terms; None unless it was signed with the key.
    pub(in crate::rendezvous) fn open(&self, key: &RelayKey) -> Option<RelayTerms> {
        let (body, mac) = self.bytes.split_at(BODY_BYTES);
        if !same(mac, &hmac(key, &[b"relay", body])[..MAC_BYTES]) {
            return None;
        }
        let (channel, side, expires, bytes_per_second) = from_bytes::<Terms>(body).ok()?;
        Some(RelayTerms { channel, side, expires: UnixSeconds(expires), bytes_per_second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_with_its_key_alone_and_every_bit_counts() {
        let terms = RelayTerms { channel: 7, side: true, expires: UnixSeconds(9), bytes_per_second: 5 };
        let token = RelayToken::new(&[1; 32], terms);
        assert_eq!((token.open(&[1; 32]), token.open(&[2; 32])), (Some(terms), None));
        for bit in 0..8 * TOKEN_BYTES {
            let mut bytes = token.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RelayToken { bytes }.open(&[1; 32]), None, "bit {bit}");
        }
    }
}
