//! The development mode: no login backend, no key to hand out, and the same code path as with them. Not for
//! production: anyone with the key can be any player, and this key is public.

use crate::python::prelude::*;

use crate::driver::unix_now;
use crate::endpoint::{DEVELOPMENT_ADDRESS, Key};
use crate::netcode::{ConnectToken, TokenParams, USER_DATA_BYTES, hash_address};

/// Seconds in which a token made on the spot must start its connection.
const TOKEN_LIFETIME: u32 = 60;

/// What a client's tokens are made of that it makes itself.
pub(super) struct Development {
    pub(super) address: SocketAddr,
    pub(super) key: Key,
    pub(super) client_id: u64,
    pub(super) timeout: u32,
}

impl Development {
    /// A fresh token.
    pub(super) fn token(
        &self,
        protocol: &Protocol,
        network: Option<&VirtualNetwork>,
    ) -> PyResult<ConnectToken> {
        let mut names = vec![DEVELOPMENT_ADDRESS];
        names.extend(protocol.upper_protocol().map(|upper_protocol| hash_address(upper_protocol.hash)));
        let params = TokenParams {
            protocol_id: protocol.id,
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
        ConnectToken::generate(&params, &mut *entropy(network.cloned())).map_err(value_error)
    }
}
