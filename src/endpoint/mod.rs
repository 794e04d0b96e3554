//! `Client` and `Server` as sans-IO machines: netcode below, one transport conversation per peer above,
//! events and messages for the application. The driver gives them datagrams and time. Beside them, for two
//! peers and without secrets: the plain [`VirtualConnection`].

mod client;
mod goodbye;
mod inbox;
mod reason;
mod reception;
mod server;
mod table;
mod virtual_connection;

pub use client::{Client, ClientConfig, ClientEvent};
pub use goodbye::{Detail, DetailError, Goodbye, MAX_LINGER};
pub use inbox::{Gap, Inbox, Messages, Record};
pub use reason::DisconnectReason;
pub use reception::{ChunkLimits, ChunkStore, PartialChunks};
pub use server::{Server, ServerConfig, ServerEvent};
pub use table::{HEAD, HEAD_BYTES, HeadColumn, Table, stride};
pub use virtual_connection::{
    VirtualConfig, VirtualConnection, VirtualCounters, VirtualDrop, VirtualEvent, VirtualSendError,
    VirtualState,
};

pub use crate::netcode::{ClientHandle, ClientState, Key};

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::transport::acks::ConfigError as TransportConfigError;
use crate::transport::chunks::ChunkError;
use crate::transport::{ConnectionConfig, SendError as ChannelError};

/// The key of development mode, in which there is no login backend. Everybody knows it, so it keeps nobody out.
pub const DEVELOPMENT_KEY: Key = *b"TICKWIRE DEVELOPMENT KEY, PUBLIC";

/// What development tokens call their server inside. A server can't know by which address a client dials it, so
/// every server answers to this name too; only who holds the key can use it.
pub const DEVELOPMENT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The settings of a connection in sealed packets: bandwidth counts what sealing adds.
fn sealed(mut config: ConnectionConfig) -> ConnectionConfig {
    // Two bytes of sequence are right for packets 256 to 65,535; before and after it is a byte less or more.
    const PREFIX_SEQUENCE_AND_TAG: u32 = 1 + 2 + 16;
    config.packets.overhead += PREFIX_SEQUENCE_AND_TAG;
    config
}

/// Why a message can't be sent. Nothing was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The client's connection is over; the slot may be somebody else's by now.
    StaleClient,
    /// Our connection is not up.
    NotConnected,
    /// The channel doesn't take it.
    Channel(ChannelError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::StaleClient => f.write_str(
                "the client is not connected any more: forget its handle when its Disconnected event comes",
            ),
            SendError::NotConnected => f.write_str(
                "the connection is not up: wait for its Connected event, or ask disconnect_reason why not",
            ),
            SendError::Channel(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

impl From<ChannelError> for SendError {
    fn from(error: ChannelError) -> Self {
        SendError::Channel(error)
    }
}

/// Why a chunk can't be sent. Nothing was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendChunkError {
    /// The client's connection is over.
    StaleClient,
    /// Our connection is not up.
    NotConnected,
    /// The channel doesn't take it.
    Chunk(ChunkError),
}

impl fmt::Display for SendChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendChunkError::StaleClient => SendError::StaleClient.fmt(f),
            SendChunkError::NotConnected => SendError::NotConnected.fmt(f),
            SendChunkError::Chunk(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendChunkError {}

impl From<ChunkError> for SendChunkError {
    fn from(error: ChunkError) -> Self {
        SendChunkError::Chunk(error)
    }
}

/// Why a budget can't be set. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetError {
    /// The client's connection is over.
    StaleClient,
    /// A number is out of its bounds.
    Config(TransportConfigError),
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetError::StaleClient => SendError::StaleClient.fmt(f),
            BudgetError::Config(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BudgetError {}

impl From<TransportConfigError> for BudgetError {
    fn from(error: TransportConfigError) -> Self {
        BudgetError::Config(error)
    }
}

/// Settings that an endpoint can't begin with.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// Of the secure connection.
    Netcode(crate::netcode::ConfigError),
    /// Of the transport.
    Transport(TransportConfigError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Netcode(error) => error.fmt(f),
            ConfigError::Transport(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ConfigError {}

impl From<crate::netcode::ConfigError> for ConfigError {
    fn from(error: crate::netcode::ConfigError) -> Self {
        ConfigError::Netcode(error)
    }
}

impl From<TransportConfigError> for ConfigError {
    fn from(error: TransportConfigError) -> Self {
        ConfigError::Transport(error)
    }
}
