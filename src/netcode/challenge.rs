//! The challenge token: what the server asks a client to send back, to prove that it receives at the address it
//! sends from. It carries all the server needs to know, so that the server remembers no user data before.
//!
//! Trusted once it opens: this server wrote it since its start, for this client id. It says neither for which
//! token nor for which address; that is the admission's to check.

use super::USER_DATA_BYTES;
use super::crypto::{self, Key, TAG_BYTES};
use super::cursor::Cursor;

/// Bytes of a sealed challenge token.
pub const CHALLENGE_TOKEN_BYTES: usize = 300;

/// A challenge token. Its key is drawn at each start of a server, so challenges of an earlier start don't open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeToken {
    /// The client id of the connect token.
    pub client_id: u64,
    /// The user data of the connect token.
    pub user_data: [u8; USER_DATA_BYTES],
}

impl ChallengeToken {
    /// The bytes before sealing, padded with zeros.
    pub fn to_bytes(&self) -> [u8; CHALLENGE_TOKEN_BYTES] {
        let mut bytes = [0; CHALLENGE_TOKEN_BYTES];
        bytes[..8].copy_from_slice(&self.client_id.to_le_bytes());
        bytes[8..8 + USER_DATA_BYTES].copy_from_slice(&self.user_data);
        bytes
    }

    /// Seals it. A sequence must never be used twice under one key.
    pub fn seal(&self, key: &Key, sequence: u64) -> [u8; CHALLENGE_TOKEN_BYTES] {
        let mut bytes = self.to_bytes();
        let (text, tag) = bytes.split_at_mut(CHALLENGE_TOKEN_BYTES - TAG_BYTES);
        tag.copy_from_slice(&crypto::seal(key, sequence, &[], text));
        bytes
    }

    /// Opens a sealed challenge token in place; `None` when it was sealed otherwise.
    pub fn open(
        sealed: &mut [u8; CHALLENGE_TOKEN_BYTES],
        key: &Key,
        sequence: u64,
    ) -> Option<ChallengeToken> {
        let mut cursor = Cursor(crypto::open(key, sequence, &[], sealed)?);
        Some(ChallengeToken { client_id: cursor.u64()?, user_data: cursor.array()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_with_its_key_and_sequence() {
        let token = ChallengeToken { client_id: 9, user_data: [1; 256] };
        let sealed = token.seal(&[2; 32], 3);
        let open = |key: &Key, sequence| ChallengeToken::open(&mut sealed.clone(), key, sequence);
        assert_eq!(open(&[2; 32], 3), Some(token));
        assert_eq!(open(&[2; 32], 4), None);
        assert_eq!(open(&[3; 32], 3), None);
    }
}
