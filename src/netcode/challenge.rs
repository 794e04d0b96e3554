//! The challenge token: the server asks a client to send it back, to prove that it receives at its source address. It
//! carries everything the server needs, so that the server stores no user data before.
//!
//! Trusted once it opens: this server wrote it since its start, for the request that its binding names. The standard
//! leaves 20 bytes after the user data zero, and only the server reads them: they hold the binding.

use core::net::{IpAddr, SocketAddr};

use sha2::{Digest, Sha256};

use super::USER_DATA_BYTES;
use super::crypto::{self, Key, TAG_BYTES, Tag};
use super::cursor::Cursor;

/// Bytes of a sealed challenge token.
pub const CHALLENGE_TOKEN_BYTES: usize = 300;

/// Bytes of a [`Binding`]: all that the standard's fields leave of the token.
pub const BINDING_BYTES: usize = CHALLENGE_TOKEN_BYTES - TAG_BYTES - 8 - USER_DATA_BYTES;

/// Identifies the one request that a challenge answers: its token and its source address.
pub type Binding = [u8; BINDING_BYTES];

/// The binding of a request. It needs no key, because nobody outside can read or choose it in a challenge.
pub(crate) fn binding(tag: &Tag, from: SocketAddr) -> Binding {
    let ip = match from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let hash = Sha256::new().chain_update(tag).chain_update(ip.octets());
    let hash = hash.chain_update(from.port().to_le_bytes()).finalize();
    core::array::from_fn(|at| hash[at])
}

/// A challenge token. Its key is drawn at each start of a server, so challenges of an earlier start don't open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeToken {
    /// The client id of the connect token.
    pub client_id: u64,
    /// The user data of the connect token.
    pub user_data: [u8; USER_DATA_BYTES],
    /// The request that this answers; zeros in the standard's own.
    pub binding: Binding,
}

impl ChallengeToken {
    /// The bytes before sealing, padded with zeros.
    pub fn to_bytes(&self) -> [u8; CHALLENGE_TOKEN_BYTES] {
        let mut bytes = [0; CHALLENGE_TOKEN_BYTES];
        bytes[..8].copy_from_slice(&self.client_id.to_le_bytes());
        bytes[8..8 + USER_DATA_BYTES].copy_from_slice(&self.user_data);
        bytes[8 + USER_DATA_BYTES..][..BINDING_BYTES].copy_from_slice(&self.binding);
        bytes
    }

    /// Seals it. A sequence must never be used twice under one key.
    pub fn seal(&self, key: &Key, sequence: u64) -> [u8; CHALLENGE_TOKEN_BYTES] {
        let mut bytes = self.to_bytes();
        let (text, tag) = bytes.split_at_mut(CHALLENGE_TOKEN_BYTES - TAG_BYTES);
        tag.copy_from_slice(&crypto::seal(key, sequence, &[], text));
        bytes
    }

    /// Opens a sealed challenge token in place; `None` if it isn't authentic.
    pub fn open(
        sealed: &mut [u8; CHALLENGE_TOKEN_BYTES],
        key: &Key,
        sequence: u64,
    ) -> Option<ChallengeToken> {
        let mut cursor = Cursor(crypto::open(key, sequence, &[], sealed)?);
        Some(ChallengeToken {
            client_id: cursor.u64()?,
            user_data: cursor.array()?,
            binding: cursor.array()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_with_its_key_and_sequence() {
        let token = ChallengeToken { client_id: 9, user_data: [1; 256], binding: [5; BINDING_BYTES] };
        let sealed = token.seal(&[2; 32], 3);
        let open = |key: &Key, sequence| ChallengeToken::open(&mut sealed.clone(), key, sequence);
        assert_eq!(open(&[2; 32], 3), Some(token));
        assert_eq!(open(&[2; 32], 4), None);
        assert_eq!(open(&[3; 32], 3), None);
    }

    #[test]
    fn each_token_and_address_has_its_own_binding() {
        let from = |text: &str| text.parse::<SocketAddr>().unwrap();
        let all = [
            binding(&[1; 16], from("1.2.3.4:5")),
            binding(&[2; 16], from("1.2.3.4:5")),
            binding(&[1; 16], from("1.2.3.4:6")),
            binding(&[1; 16], from("1.2.3.5:5")),
            binding(&[1; 16], from("[2001:db8::1]:5")),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one));
        }
    }
}
