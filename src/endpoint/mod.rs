//! Servers, clients and hosts as sans-IO machines: netcode below, one transport conversation per peer above, events
//! and messages for the application. The driver passes in datagrams and time.
//!
//! A [`Host`] is all three: its peers work the same whichever side dialled.

mod arriving;
mod config;
mod development;
mod dial;
mod error;
mod event;
mod feature;
mod full_channels;
mod goodbye;
mod host;
mod inbox;
mod incoming;
mod links;
mod peers;
mod reason;
mod reconnect;
mod retained;
mod rooms;
mod schedule;
mod stats;
mod table;
mod transfers;

pub use config::{ClientConfig, ServerConfig};
pub use development::{DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Development, development_names};
pub use dial::Dial;
pub use error::{BudgetError, PeerError, RoomError, SendError};
pub use event::Event;
pub use feature::Feature;
pub use full_channels::{DEFAULT_STALLED_TIMEOUT, MAX_STALLED_TIMES};
pub use goodbye::{Detail, DetailError, Goodbye, MAX_LINGER};
pub use host::Host;
pub use inbox::{Gap, Head, Inbox, Messages, Record};
pub use incoming::{ChunkLimits, ChunkStore};
pub use reason::{ConnectionEnd, DisconnectReason};
pub use reconnect::{Attempt, ReconnectConfig, Reconnector, TokenAnswer};
pub use rooms::{PeerRoom, Rooms, ToRoom};
pub use stats::{ConnectionCounters, PeerStats};
pub use table::{HEAD, HEAD_BYTES, HeadColumn, Table, stride};
pub use transfers::{SharedStatus, TransferStatus, Transfers, never_queued};

/// Names one connection of an endpoint. It is never reused for the next peer in the same slot.
pub use crate::netcode::ClientHandle as PeerHandle;
pub use crate::netcode::{ClientState, Key};
