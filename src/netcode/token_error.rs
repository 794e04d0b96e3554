//! Why a token can't be made or read.

use core::fmt;

use super::TOKEN_BYTES;
use super::address::MAX_SERVERS_PER_TOKEN;
use crate::time::UnixSeconds;

/// Why a token can't be made or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// No address, or more than a token holds.
    AddressCount(usize),
    /// At least as many internal as public addresses are needed, and no more than a token holds.
    AddressLists {
        /// How many public addresses were given.
        public: usize,
        /// How many internal addresses were given.
        internal: usize,
    },
    /// Larger than the token's field.
    Timeout(u32),
    /// Not the length of a token.
    Length(usize),
    /// Not a token of this version of netcode.
    Version,
    /// It expires before it was created.
    Expiry {
        /// When it was created.
        created: UnixSeconds,
        expires: UnixSeconds,
    },
    /// Its list of addresses has a count outside 1..=32 or an unknown type of address.
    Addresses,
    /// Its private part was sealed with another key, belongs to another token, or was altered.
    NotAuthentic,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TokenError::AddressCount(n) => {
                write!(f, "servers must be 1 to {MAX_SERVERS_PER_TOKEN} addresses, not {n}")
            }
            TokenError::AddressLists { public, internal } => {
                write!(
                    f,
                    "internal_servers must have one address for each of servers ({public}), not {internal}"
                )
            }
            TokenError::Timeout(seconds) => {
                write!(f, "timeout must be at most {} seconds, not {seconds}", i32::MAX)
            }
            TokenError::Length(n) => write!(f, "a connect token must be {TOKEN_BYTES} bytes, not {n}"),
            TokenError::Version => {
                write!(f, "the bytes must be a connect token (NETCODE 1.02), as from ConnectToken.to_bytes()")
            }
            TokenError::Expiry { created, expires } => write!(
                f,
                "the connect token must expire after its creation at {} (unix seconds), not at {}",
                created.0, expires.0
            ),
            TokenError::Addresses => write!(
                f,
                "the connect token's list of server addresses is malformed: have the backend make a new one"
            ),
            TokenError::NotAuthentic => {
                write!(f, "the connect token's private part was not sealed with this private key")
            }
        }
    }
}

impl core::error::Error for TokenError {}
