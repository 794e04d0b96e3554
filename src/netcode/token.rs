//! The connect token: a backend gives it to a client over a secure channel (HTTPS), so that the client may connect.
//! Its public part has the servers to dial and the keys to use; its private part is sealed for the servers.
//!
//! Promises: a token that was read writes the same bytes again. Refuses: lists of addresses the standard doesn't
//! allow, another version, a token that expires before it was created.
//!
//! A token holds keys: it is deliberately neither `Clone` nor printed in full, because one token makes one
//! connection.

use core::fmt;
use core::net::SocketAddr;

use sha2::{Digest, Sha256};

use super::address::{self, MAX_SERVERS_PER_TOKEN};
use super::crypto::{Key, TOKEN_NONCE_BYTES};
use super::cursor::Cursor;
use super::private_token::{PRIVATE_TOKEN_BYTES, PrivateToken, timeout_from_seconds};
use super::token_error::TokenError;
use super::{TOKEN_BYTES, USER_DATA_BYTES, VERSION};
use crate::rng::Entropy;
use crate::time::{Duration, UnixSeconds};

/// Identifies a token by the keys in it, without revealing them.
pub type TokenIdentity = [u8; 16];

/// The backend's choices for a connect token.
#[derive(Clone, Copy)]
pub struct TokenParams<'a> {
    /// Names the game and its version; both sides must agree.
    pub protocol_id: u64,
    /// The key that backend and servers share.
    pub private_key: &'a Key,
    /// The client's id in the backend.
    pub client_id: u64,
    pub created: UnixSeconds,
    /// Seconds after which the token can't start a connection any more; `None`: never.
    pub lifetime: Option<u32>,
    /// Seconds of silence after which either side gives the connection up; `None`: never. Zero means never too.
    pub timeout: Option<u32>,
    /// The servers as clients dial them, in order: 1..=32.
    pub public_addresses: &'a [SocketAddr],
    /// The same servers as they know themselves, and more names of theirs, or marks
    /// ([`hash_address`](super::hash_address)); `None` when the addresses are the same.
    pub internal_addresses: Option<&'a [SocketAddr]>,
    /// Anything the backend wants the server to know about the client.
    pub user_data: &'a [u8; USER_DATA_BYTES],
    /// Whether the sealed part says when the token was created, so that a server knows a token from before its start,
    /// which may have been used. Servers other than ours don't read it.
    pub dated: bool,
}

/// Follows the client's id in the padding, which other implementations fill with zeros and don't read.
const HAS_ID: u8 = 1;

pub struct ConnectToken {
    /// The game it is for.
    pub protocol_id: u64,
    /// When it was created, by the backend's clock.
    pub created: UnixSeconds,
    /// When it stops starting connections, by the servers' clocks.
    pub expires: UnixSeconds,
    pub(crate) nonce: [u8; TOKEN_NONCE_BYTES],
    pub(crate) sealed: Box<[u8; PRIVATE_TOKEN_BYTES]>,
    pub(crate) timeout_seconds: i32,
    /// The servers to dial, in order: 1..=32.
    pub addresses: Vec<SocketAddr>,
    pub(crate) client_to_server: Key,
    pub(crate) server_to_client: Key,
    /// The id in the sealed part, for the client to know it too. None: another implementation made the token.
    pub client_id: Option<u64>,
}

impl ConnectToken {
    /// Makes a token with a fresh nonce, then fresh keys for client to server and server to client, drawn from
    /// `entropy` in this order.
    ///
    /// # Errors
    /// When `params` doesn't fit into a token.
    pub fn generate(params: &TokenParams<'_>, entropy: &mut dyn Entropy) -> Result<ConnectToken, TokenError> {
        let public = params.public_addresses;
        let internal = params.internal_addresses.unwrap_or(public);
        if !(1..=MAX_SERVERS_PER_TOKEN).contains(&public.len()) {
            return Err(TokenError::AddressCount(public.len()));
        }
        if !(public.len()..=MAX_SERVERS_PER_TOKEN).contains(&internal.len()) {
            return Err(TokenError::AddressLists { public: public.len(), internal: internal.len() });
        }
        let timeout_seconds = match params.timeout {
            Some(seconds) => i32::try_from(seconds).map_err(|_| TokenError::Timeout(seconds))?,
            None => -1,
        };
        let expires = match params.lifetime {
            Some(seconds) => UnixSeconds(params.created.0.saturating_add(seconds.into())),
            None => UnixSeconds(u64::MAX),
        };
        let (mut nonce, mut client_to_server, mut server_to_client) =
            ([0; TOKEN_NONCE_BYTES], [0; 32], [0; 32]);
        entropy.fill(&mut nonce);
        entropy.fill(&mut client_to_server);
        entropy.fill(&mut server_to_client);
        let private = PrivateToken {
            client_id: params.client_id,
            timeout_seconds,
            addresses: internal.to_vec(),
            client_to_server,
            server_to_client,
            user_data: *params.user_data,
            created: params.dated.then_some(params.created),
        };
        Ok(ConnectToken {
            protocol_id: params.protocol_id,
            created: params.created,
            expires,
            nonce,
            sealed: Box::new(private.seal(params.private_key, params.protocol_id, expires, &nonce)),
            timeout_seconds,
            addresses: public.to_vec(),
            client_to_server,
            server_to_client,
            client_id: Some(params.client_id),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(TOKEN_BYTES);
        out.extend_from_slice(VERSION);
        out.extend_from_slice(&self.protocol_id.to_le_bytes());
        out.extend_from_slice(&self.created.0.to_le_bytes());
        out.extend_from_slice(&self.expires.0.to_le_bytes());
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&*self.sealed);
        out.extend_from_slice(&self.timeout_seconds.to_le_bytes());
        address::write_list(&self.addresses, &mut out);
        out.extend_from_slice(&self.client_to_server);
        out.extend_from_slice(&self.server_to_client);
        if let Some(id) = self.client_id {
            out.extend_from_slice(&id.to_le_bytes());
            out.push(HAS_ID);
        }
        out.resize(TOKEN_BYTES, 0);
        out
    }

    /// Reads a token's bytes. Whether it has expired is not checked here: a client has no trusted wall clock.
    ///
    /// # Errors
    /// When the bytes are not a token of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<ConnectToken, TokenError> {
        if bytes.len() != TOKEN_BYTES {
            return Err(TokenError::Length(bytes.len()));
        }
        // The longest legal content is shorter than a token, so only the list can end early.
        let early = TokenError::Addresses;
        let mut cursor = Cursor(bytes);
        if cursor.array().ok_or(early)? != *VERSION {
            return Err(TokenError::Version);
        }
        let protocol_id = cursor.u64().ok_or(early)?;
        let created = UnixSeconds(cursor.u64().ok_or(early)?);
        let expires = UnixSeconds(cursor.u64().ok_or(early)?);
        if created > expires {
            return Err(TokenError::Expiry { created, expires });
        }
        Ok(ConnectToken {
            protocol_id,
            created,
            expires,
            nonce: cursor.array().ok_or(early)?,
            sealed: Box::new(cursor.array().ok_or(early)?),
            timeout_seconds: cursor.i32().ok_or(early)?,
            addresses: address::read_list(&mut cursor).ok_or(early)?,
            client_to_server: cursor.array().ok_or(early)?,
            server_to_client: cursor.array().ok_or(early)?,
            client_id: cursor.u64().filter(|_| cursor.array() == Some([HAS_ID])),
        })
    }

    /// Which token it is: copies of it have the same.
    pub fn identity(&self) -> TokenIdentity {
        let hash = Sha256::new().chain_update(self.client_to_server).chain_update(self.server_to_client);
        let hash = hash.finalize();
        core::array::from_fn(|at| hash[at])
    }

    /// How long it may be used from its creation.
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs(self.expires.0 - self.created.0)
    }

    /// The silence after which a connection is given up; `None`: never.
    pub fn timeout(&self) -> Option<Duration> {
        timeout_from_seconds(self.timeout_seconds)
    }
}

impl fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectToken")
            .field("protocol_id", &self.protocol_id)
            .field("expires", &self.expires)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use core::net::{IpAddr, Ipv6Addr};

    fn generate(change: impl FnOnce(&mut TokenParams<'_>)) -> Result<ConnectToken, TokenError> {
        let address = ["10.0.0.1:7".parse().unwrap()];
        let mut params = TokenParams {
            protocol_id: 5,
            private_key: &[9; 32],
            client_id: 77,
            created: UnixSeconds(1000),
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &address,
            internal_addresses: None,
            user_data: &[3; 256],
            dated: true,
        };
        change(&mut params);
        ConnectToken::generate(&params, &mut Rng::seeded(1))
    }

    #[test]
    fn a_token_reads_back_as_it_was_written() {
        let token = generate(|_| ()).unwrap();
        let bytes = token.to_bytes();
        let read = ConnectToken::from_bytes(&bytes).unwrap();
        assert_eq!((read.to_bytes(), read.client_id), (bytes.clone(), Some(77)));
        // One of another implementation has zeros there.
        let mut others = bytes;
        others.truncate(1097 + 7 + 64);
        others.resize(TOKEN_BYTES, 0);
        assert_eq!(ConnectToken::from_bytes(&others).unwrap().client_id, None);
        assert_eq!((read.protocol_id, read.created, read.expires), (5, UnixSeconds(1000), UnixSeconds(1030)));
        assert_eq!(
            (read.timeout(), read.lifetime()),
            (Some(Duration::from_secs(10)), Duration::from_secs(30))
        );
    }

    #[test]
    fn no_lifetime_and_no_timeout_mean_never() {
        let token = generate(|p| (p.lifetime, p.timeout) = (None, None)).unwrap();
        assert_eq!((token.expires, token.timeout_seconds), (UnixSeconds(u64::MAX), -1));
        assert_eq!(token.timeout(), None);
        assert_eq!(timeout_from_seconds(0), None);
    }

    #[test]
    fn the_longest_legal_token_fits() {
        const IPV6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 9);
        let token = generate(|p| p.public_addresses = &[IPV6; 32]).unwrap();
        let read = ConnectToken::from_bytes(&token.to_bytes()).unwrap();
        assert_eq!(read.addresses, [IPV6; 32]);
        let error = generate(|p| p.public_addresses = &[IPV6; 33]).unwrap_err();
        assert_eq!(error, TokenError::AddressCount(33));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        assert_eq!(generate(|p| p.public_addresses = &[]).unwrap_err(), TokenError::AddressCount(0));
        assert_eq!(
            generate(|p| p.internal_addresses = Some(&[])).unwrap_err(),
            TokenError::AddressLists { public: 1, internal: 0 }
        );
        let error = generate(|p| p.timeout = Some(1 << 31)).unwrap_err();
        assert_eq!(error.to_string(), "timeout must be at most 2147483647 seconds, not 2147483648");
    }

    #[test]
    fn bytes_that_are_no_token_are_refused() {
        let bytes = generate(|_| ()).unwrap().to_bytes();
        assert_eq!(ConnectToken::from_bytes(&bytes[..2047]).unwrap_err(), TokenError::Length(2047));
        let with = |at: usize, value: u8| {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            ConnectToken::from_bytes(&wrong).map(|_| ())
        };
        assert_eq!(with(0, b'n'), Err(TokenError::Version));
        assert!(matches!(with(24, 1), Err(TokenError::Expiry { .. })));
        assert_eq!(with(1089, 0), Err(TokenError::Addresses));
        assert_eq!(with(1089, 33), Err(TokenError::Addresses));
        assert_eq!(with(1093, 3), Err(TokenError::Addresses));
        assert_eq!(with(2047, 1), Ok(()), "padding is not read");
    }
}
