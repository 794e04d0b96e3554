//! The settings of servers and clients, with their bounds.

use core::net::SocketAddr;

use super::crypto::Key;
use super::explanation::UpperProtocol;
use crate::limits::{ConfigError, MAX_CLIENT_SLOTS};
use crate::time::Duration;

/// The minimum of half-open connections and remembered tokens in the defaults of a small server.
const MIN_HALF_OPEN: usize = 1024;
const MIN_TOKEN_HISTORY: usize = 65_536;

/// A server's settings. [`ServerConfig::new`] fills in the defaults.
#[derive(Clone)]
pub struct ServerConfig {
    /// Names the game and its version; both sides must agree.
    pub protocol_id: u64,
    /// The key shared with the backend.
    pub private_key: Key,
    /// Another key, with which tokens may be sealed too: one that fewer know.
    pub second_key: Option<Key>,
    pub max_clients: usize,
    /// The addresses of this server as the tokens' internal lists name them, usually one per IP version.
    pub public_addresses: Vec<SocketAddr>,
    /// The maximum lifetime that the backend gives to tokens: a longer one is refused. An undated token
    /// ([`TokenParams::dated`](super::TokenParams::dated)) is also refused if with this lifetime it may be from
    /// before this server's start (so such tokens of a shorter lifetime must wait after a start, until this time has
    /// passed). `None` switches both off: then an undated token used before a start can be used again after it, with
    /// the same keys and nonces.
    pub max_token_lifetime: Option<Duration>,
    /// How far the clocks of backend and server may differ: tokens are accepted this much after they expire, and this
    /// much from before the server's start. Counts whole seconds.
    /// [`DropReason::TokenJustExpired`](super::DropReason::TokenJustExpired) shows when it is too little.
    pub clock_skew: Duration,
    /// Whether a new connection of a connected client takes its place, or must wait until the old one is gone.
    pub replace_duplicates: bool,
    /// Whether clients that are refused for good learn why. Only for servers without a secret key: see
    /// [`Refusal`](super::Refusal).
    pub explains: bool,
    /// The protocol of the layers above. With [`ServerConfig::explains`], clients whose token names another one
    /// ([`hash_address`](super::hash_address)) are refused and told this.
    pub upper_protocol: Option<UpperProtocol>,
    /// Most clients that may be about to answer a challenge.
    pub half_open_capacity: usize,
    /// Most tokens remembered until they expire; more than this in one lifetime are refused.
    pub token_history_capacity: usize,
}

impl ServerConfig {
    /// The defaults: no maximum lifetime, no clock skew.
    pub fn new(
        protocol_id: u64,
        private_key: Key,
        max_clients: usize,
        public_addresses: Vec<SocketAddr>,
    ) -> Self {
        ServerConfig {
            protocol_id,
            private_key,
            second_key: None,
            max_clients,
            public_addresses,
            max_token_lifetime: None,
            clock_skew: Duration::ZERO,
            replace_duplicates: true,
            explains: false,
            upper_protocol: None,
            half_open_capacity: max_clients.saturating_mul(4).max(MIN_HALF_OPEN),
            token_history_capacity: max_clients.saturating_mul(8).max(MIN_TOKEN_HISTORY),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::within("max_clients", self.max_clients, 1, MAX_CLIENT_SLOTS)?;
        let at_least_one = |field, count: usize| ConfigError::unless(count > 0, field, count, "at least 1");
        at_least_one("number of public_addresses", self.public_addresses.len())?;
        at_least_one("half_open_capacity", self.half_open_capacity)?;
        at_least_one("token_history_capacity", self.token_history_capacity)
    }
}

/// The settings of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Names the game and its version; both sides must agree.
    pub protocol_id: u64,
    /// Whether to believe a server's explanation of a refusal.
    pub development: bool,
    /// How long an address may be silent while there are more to dial, if that is less than the token's timeout.
    pub patience: Option<Duration>,
}

impl ClientConfig {
    /// Production mode, and the token's own timeout.
    pub fn new(protocol_id: u64) -> Self {
        ClientConfig { protocol_id, development: false, patience: None }
    }

    pub(crate) fn check(&self, token_protocol_id: u64) -> Result<(), ConfigError> {
        let (ours, theirs) = (self.protocol_id, token_protocol_id);
        let bound = format!("for the client's protocol, whose id is {ours:#x}");
        ConfigError::unless(ours == theirs, "the token", format_args!("for {theirs:#x}"), bound)
    }
}
