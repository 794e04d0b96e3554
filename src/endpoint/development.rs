//! Development mode: no login backend, no key to hand out, and the same code path as with them. Not for production: anyone
//! with the key can be any player, and the default key is public.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::netcode::{ConnectToken, Key, TokenError, TokenParams, USER_DATA_BYTES, hash_address};
use crate::rng::Entropy;
use crate::time::UnixSeconds;

/// The key of development mode, which has no login backend. Everybody knows it, so it keeps nobody out.
pub const DEVELOPMENT_KEY: Key = *b"TICKWIRE DEVELOPMENT KEY, PUBLIC";

/// The server's internal address in development tokens. A server can't know by which address a client dials it, so
/// every server answers to this name too. Only clients with the key can use it.
pub const DEVELOPMENT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Seconds in which a token made on the spot must start its connection.
const TOKEN_LIFETIME: u32 = 60;

/// The internal addresses of a token for a server that doesn't know its own address: one entry for each address, and
/// then the protocol's hash, for refusals that say what differs.
pub fn development_names(addresses: usize, upper_protocol: Option<u64>) -> Vec<SocketAddr> {
    let mut names = vec![DEVELOPMENT_ADDRESS; addresses];
    names.extend(upper_protocol.map(hash_address));
    names
}

/// The contents of the tokens that a client makes itself.
#[derive(Clone, Debug)]
pub struct Development {
    pub protocol_id: u64,
    /// The hash of the protocol.
    pub upper_protocol: Option<u64>,
    pub address: SocketAddr,
    pub key: Key,
    pub client_id: u64,
    pub timeout: u32,
}

impl Development {
    /// A fresh token.
    ///
    /// # Errors
    /// A parameter is out of its bounds.
    pub fn token(&self, unix: UnixSeconds, entropy: &mut dyn Entropy) -> Result<ConnectToken, TokenError> {
        let params = TokenParams {
            protocol_id: self.protocol_id,
            private_key: &self.key,
            client_id: self.client_id,
            created: unix,
            lifetime: Some(TOKEN_LIFETIME),
            timeout: Some(self.timeout),
            public_addresses: &[self.address],
            internal_addresses: Some(&development_names(1, self.upper_protocol)),
            user_data: &[0; USER_DATA_BYTES],
            dated: false,
        };
        ConnectToken::generate(&params, entropy)
    }
}
