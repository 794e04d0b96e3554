//! The settings of an endpoint.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::incoming::ChunkLimits;
use crate::netcode::{self, Key};
use crate::transport::ConnectionConfig;

/// The key of development mode, which has no login backend. Everybody knows it, so it keeps nobody out.
pub const DEVELOPMENT_KEY: Key = *b"TICKWIRE DEVELOPMENT KEY, PUBLIC";

/// The server's internal address in development tokens. A server can't know by which address a client dials it, so
/// every server answers to this name too. Only clients with the key can use it.
pub const DEVELOPMENT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Settings of an endpoint that listens.
#[derive(Clone)]
pub struct ServerConfig {
    pub netcode: netcode::ServerConfig,
    pub connection: ConnectionConfig,
    /// Which chunks are accepted from each peer.
    pub chunks: ChunkLimits,
}

/// Settings of an endpoint that dials one server.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub netcode: netcode::ClientConfig,
    pub connection: ConnectionConfig,
    /// Which chunks are accepted from the server.
    pub chunks: ChunkLimits,
}

/// The settings of a connection in sealed packets: bandwidth includes the overhead of sealing.
pub(super) fn sealed(mut config: ConnectionConfig) -> ConnectionConfig {
    // Two bytes of sequence are right for packets 256 to 65,535; earlier and later ones have one byte less or more.
    const PREFIX_SEQUENCE_AND_TAG: u32 = 1 + 2 + 16;
    config.packets.overhead += PREFIX_SEQUENCE_AND_TAG;
    // Clones of a configuration may make several endpoints.
    config.pool = Arc::default();
    config
}
