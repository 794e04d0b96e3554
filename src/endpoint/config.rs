//! The settings of an endpoint.

use std::sync::Arc;

use super::incoming::ChunkLimits;
use crate::netcode;
use crate::transport::ConnectionConfig;

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
