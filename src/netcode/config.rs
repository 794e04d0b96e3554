//! The settings of servers and clients, with their bounds.

use core::fmt;
use core::net::SocketAddr;

use super::crypto::Key;
use super::explanation::Spoken;
use crate::limits::MAX_CLIENT_SLOTS;
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
    pub spoken: Option<Spoken>,
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
            spoken: None,
            half_open_capacity: max_clients.saturating_mul(4).max(MIN_HALF_OPEN),
            token_history_capacity: max_clients.saturating_mul(8).max(MIN_TOKEN_HISTORY),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_CLIENT_SLOTS).contains(&self.max_clients) {
            return Err(ConfigError::MaxClients(self.max_clients));
        }
        if self.public_addresses.is_empty() {
            return Err(ConfigError::NoPublicAddress);
        }
        if self.half_open_capacity == 0 {
            return Err(ConfigError::NoHalfOpen);
        }
        if self.token_history_capacity == 0 {
            return Err(ConfigError::NoTokenHistory);
        }
        Ok(())
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
        if self.protocol_id != token_protocol_id {
            return Err(ConfigError::ProtocolId { ours: self.protocol_id, token: token_protocol_id });
        }
        Ok(())
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    MaxClients(usize),
    /// No token could name this server.
    NoPublicAddress,
    NoHalfOpen,
    NoTokenHistory,
    /// The token is for another game or version.
    ProtocolId {
        /// The configured protocol id.
        ours: u64,
        /// The token's protocol id.
        token: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ConfigError::MaxClients(n) => {
                write!(f, "max_clients must be 1 to {MAX_CLIENT_SLOTS}, not {n}")
            }
            ConfigError::NoPublicAddress => {
                write!(f, "public_addresses must name at least 1 address, not 0")
            }
            ConfigError::NoHalfOpen => write!(f, "half_open_capacity must be at least 1, not 0"),
            ConfigError::NoTokenHistory => write!(f, "token_history_capacity must be at least 1, not 0"),
            ConfigError::ProtocolId { ours, token } => write!(
                f,
                "the token must be for the client's protocol, whose id is {ours:#x}, not for {token:#x}"
            ),
        }
    }
}

impl core::error::Error for ConfigError {}
