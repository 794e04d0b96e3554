//! Settings of a proxy, and why one can't be made.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use super::direction::Both;
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::time::Duration;

/// Clients at a time, unless set otherwise. Each takes a socket.
pub const DEFAULT_MAX_CLIENTS: usize = 1024;

/// The silence after which a client is forgotten, unless set otherwise.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Memory of the datagrams under way, unless set otherwise: two seconds of 200 Mbit/s, and more.
pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// Settings of a [`Proxy`](super::Proxy).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProxyConfig {
    pub target: SocketAddr,
    /// The conditions of each direction of each client's link.
    pub conditions: Both<Conditions>,
    /// The seed of all randomness, together with the order in which clients appear.
    pub seed: u64,
    /// Concurrent clients; datagrams of others are dropped.
    pub max_clients: usize,
    /// The silence, in both directions, after which a client is forgotten.
    pub idle_timeout: Duration,
    /// Memory of the datagrams under way; more are dropped.
    pub max_bytes: usize,
}

impl ProxyConfig {
    /// A proxy to this server that changes nothing yet, with the default bounds.
    pub fn new(target: SocketAddr) -> Self {
        ProxyConfig {
            target,
            conditions: Both::default(),
            seed: 0,
            max_clients: DEFAULT_MAX_CLIENTS,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }
}

/// Why a proxy can't be made.
#[derive(Debug)]
pub enum ProxyError {
    /// The conditions can't be met.
    Conditions(ConditionsError),
    /// The server's address is the proxy's own.
    ToItself(SocketAddr),
    /// The system refused the socket, the poll or the thread.
    Io(io::Error),
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyError::Conditions(error) => error.fmt(f),
            ProxyError::ToItself(address) => {
                write!(f, "to must be another address than the proxy's own, not {address}")
            }
            ProxyError::Io(error) => write!(f, "the system refused the proxy: {error}"),
        }
    }
}

impl std::error::Error for ProxyError {}

impl From<io::Error> for ProxyError {
    fn from(error: io::Error) -> Self {
        ProxyError::Io(error)
    }
}

impl From<ConditionsError> for ProxyError {
    fn from(error: ConditionsError) -> Self {
        ProxyError::Conditions(error)
    }
}
