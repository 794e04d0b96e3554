//! The private part of a connect token: from the backend to the servers; the client can't read or change it.
//!
//! Trusted once it opens: the backend wrote it. Even so its list of addresses is read with all checks, and holds at
//! most 32. After the standard's fields come zeros, or the time of its creation, which other servers don't read.
//! Bytes after that are not read here either.

use core::fmt;
use core::net::SocketAddr;

use super::crypto::{self, Key, TAG_BYTES, TOKEN_NONCE_BYTES, Tag};
use super::cursor::Cursor;
use super::token_error::TokenError;
use super::{USER_DATA_BYTES, VERSION, address};
use crate::time::{Duration, UnixSeconds};

/// Bytes of a private part, sealed or not: sealing encrypts all but the last 16 and puts the tag there.
pub const PRIVATE_TOKEN_BYTES: usize = 1024;

/// The private part of a connect token.
pub struct PrivateToken {
    /// The client's id in the backend.
    pub client_id: u64,
    /// Seconds of silence that end the connection; none when negative.
    pub timeout_seconds: i32,
    /// The internal addresses of the token's servers.
    pub addresses: Vec<SocketAddr>,
    /// Seals what the client sends.
    pub client_to_server: Key,
    /// Seals what the server sends.
    pub server_to_client: Key,
    /// Anything the backend wants the server to know about the client.
    pub user_data: [u8; USER_DATA_BYTES],
    /// When the backend made the token, if it is dated. The standard has this in the public part only, where nothing
    /// proves it.
    pub created: Option<UnixSeconds>,
}

impl PrivateToken {
    /// The bytes before sealing, padded with zeros.
    pub fn to_bytes(&self) -> [u8; PRIVATE_TOKEN_BYTES] {
        let mut out = Vec::with_capacity(PRIVATE_TOKEN_BYTES);
        out.extend_from_slice(&self.client_id.to_le_bytes());
        out.extend_from_slice(&self.timeout_seconds.to_le_bytes());
        address::write_list(&self.addresses, &mut out);
        out.extend_from_slice(&self.client_to_server);
        out.extend_from_slice(&self.server_to_client);
        out.extend_from_slice(&self.user_data);
        out.extend_from_slice(&self.created.map_or(0, |created| created.0).to_le_bytes());
        let mut bytes = [0; PRIVATE_TOKEN_BYTES];
        bytes[..out.len()].copy_from_slice(&out);
        bytes
    }

    /// Reads what [`PrivateToken::to_bytes`] writes.
    ///
    /// # Errors
    /// [`TokenError::Addresses`] when the list of addresses is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Result<PrivateToken, TokenError> {
        Self::read(&mut Cursor(bytes)).ok_or(TokenError::Addresses)
    }

    fn read(cursor: &mut Cursor<'_>) -> Option<PrivateToken> {
        Some(PrivateToken {
            client_id: cursor.u64()?,
            timeout_seconds: cursor.i32()?,
            addresses: address::read_list(cursor)?,
            client_to_server: cursor.array()?,
            server_to_client: cursor.array()?,
            user_data: cursor.array()?,
            created: Some(UnixSeconds(cursor.u64()?)).filter(|created| created.0 != 0),
        })
    }

    /// Seals it for the holders of `key`, bound to the token's protocol id, expiry and nonce.
    pub fn seal(
        &self,
        key: &Key,
        protocol_id: u64,
        expires: UnixSeconds,
        nonce: &[u8; TOKEN_NONCE_BYTES],
    ) -> [u8; PRIVATE_TOKEN_BYTES] {
        let mut bytes = self.to_bytes();
        let (text, tag) = bytes.split_at_mut(PRIVATE_TOKEN_BYTES - TAG_BYTES);
        tag.copy_from_slice(&crypto::seal_token(key, nonce, &associated_data(protocol_id, expires), text));
        bytes
    }

    /// Opens a sealed private part in place and reads it.
    ///
    /// # Errors
    ///
    /// [`TokenError::NotAuthentic`] for another key, protocol id, expiry or nonce and for altered bytes;
    /// [`TokenError::Addresses`] when its list is malformed.
    pub fn open(
        sealed: &mut [u8; PRIVATE_TOKEN_BYTES],
        key: &Key,
        protocol_id: u64,
        expires: UnixSeconds,
        nonce: &[u8; TOKEN_NONCE_BYTES],
    ) -> Result<PrivateToken, TokenError> {
        let text = crypto::open_token(key, nonce, &associated_data(protocol_id, expires), sealed)
            .ok_or(TokenError::NotAuthentic)?;
        Self::from_bytes(text)
    }

    /// The silence that ends the connection; `None`: never.
    pub fn timeout(&self) -> Option<Duration> {
        timeout_from_seconds(self.timeout_seconds)
    }
}

impl fmt::Debug for PrivateToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateToken")
            .field("client_id", &self.client_id)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The tag of a sealed private part: unique to its token, so it names the token.
pub(crate) fn token_tag(sealed: &[u8; PRIVATE_TOKEN_BYTES]) -> Tag {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&sealed[PRIVATE_TOKEN_BYTES - TAG_BYTES..]);
    tag
}

fn associated_data(protocol_id: u64, expires: UnixSeconds) -> [u8; 13 + 8 + 8] {
    let mut data = [0; 13 + 8 + 8];
    data[..13].copy_from_slice(VERSION);
    data[13..21].copy_from_slice(&protocol_id.to_le_bytes());
    data[21..].copy_from_slice(&expires.0.to_le_bytes());
    data
}

/// A token's timeout field: negative means none, and so does zero, which would end a connection at once.
pub(crate) fn timeout_from_seconds(seconds: i32) -> Option<Duration> {
    u64::try_from(seconds).ok().filter(|&s| s > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_with_everything_it_was_sealed_with() {
        let private = PrivateToken {
            client_id: 1,
            timeout_seconds: 5,
            addresses: vec!["[1:2:3:4:5:6:7:8]:9".parse().unwrap(); 32],
            client_to_server: [1; 32],
            server_to_client: [2; 32],
            user_data: [3; 256],
            created: Some(UnixSeconds(70)),
        };
        let (key, nonce, expires) = ([4; 32], [5; 24], UnixSeconds(100));
        let sealed = private.seal(&key, 6, expires, &nonce);
        let open = |key: &Key, protocol: u64, expires, nonce: &[u8; 24]| {
            let mut bytes = sealed;
            PrivateToken::open(&mut bytes, key, protocol, expires, nonce).map(|p| p.to_bytes())
        };
        assert_eq!(open(&key, 6, expires, &nonce), Ok(private.to_bytes()), "the longest legal content");
        let refused = Err(TokenError::NotAuthentic);
        assert_eq!(open(&[0; 32], 6, expires, &nonce), refused);
        assert_eq!(open(&key, 7, expires, &nonce), refused);
        assert_eq!(open(&key, 6, UnixSeconds(101), &nonce), refused);
        assert_eq!(open(&key, 6, expires, &[6; 24]), refused);
        for at in 0..PRIVATE_TOKEN_BYTES {
            let mut altered = sealed;
            altered[at] ^= 1;
            let result = PrivateToken::open(&mut altered, &key, 6, expires, &nonce);
            assert_eq!(result.unwrap_err(), TokenError::NotAuthentic, "byte {at}");
        }
    }
}
