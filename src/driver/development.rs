//! The development mode: no login backend, no key to hand out, and the same code path as with them. Not for
//! production: anyone with the key can be any player, and this key is public.

use core::net::SocketAddr;

use super::clock::unix_now;
use super::simulated::{VirtualNetwork, entropy};
use crate::endpoint::{DEVELOPMENT_ADDRESS, Key};
use crate::netcode::{ConnectToken, Spoken, TokenError, TokenParams, USER_DATA_BYTES, hash_address};

/// Seconds in which a token made on the spot must start its connection.
const TOKEN_LIFETIME: u32 = 60;

/// What a client's tokens are made of that it makes itself.
#[derive(Debug)]
pub struct Development {
    pub address: SocketAddr,
    pub key: Key,
    pub client_id: u64,
    pub timeout: u32,
}

impl Development {
    /// A fresh token.
    ///
    /// # Errors
    /// A parameter can't be in a token.
    pub fn token(
        &self,
        protocol_id: u64,
        spoken: Option<&Spoken>,
        network: Option<&VirtualNetwork>,
    ) -> Result<ConnectToken, TokenError> {
        let mut names = vec![DEVELOPMENT_ADDRESS];
        names.extend(spoken.map(|spoken| hash_address(spoken.hash)));
        let params = TokenParams {
            protocol_id,
            private_key: &self.key,
            client_id: self.client_id,
            created: network.map_or_else(unix_now, VirtualNetwork::unix),
            lifetime: Some(TOKEN_LIFETIME),
            timeout: Some(self.timeout),
            public_addresses: &[self.address],
            internal_addresses: Some(&names),
            user_data: &[0; USER_DATA_BYTES],
            dated: false,
        };
        ConnectToken::generate(&params, &mut *entropy(network.cloned()))
    }
}
