//! One conversation with one peer: reliable 1.0 packets and acks, channels, framing.
//!
//! Each module knows only those below it in this table (`tests/rust/layers.rs` finds no circle among them):
//!
//! | modules | hold |
//! |---|---|
//! | [`Connection`] | the conversation: receiving, sending, composing packets |
//! | `framing` | how a packet looks: Tickwire's own and yojimbo's |
//! | `stream`, [`chunks`] | what fills packets: channels of messages and what a feature above writes, and the scheduler that divides a packet among them; large blocks |
//! | [`ack_endpoint`] | reliable 1.0 whole, to use alone |
//! | `ledger` | the known packets: sent ones with their contents, received ones, notifications in packet order, RTT and loss |
//! | `congestion`, `message_window`, `pacing` | how much may go out |
//! | [`candidates`], [`protocol`], `parts`, `message` | what both sides share, what each message costs, and messages on their way |
//! | [`packet`] | headers, fragments, settings |

pub mod ack_endpoint;
pub mod candidates;
pub mod chunks;
mod congestion;
mod connection;
mod direct_tables;
mod error;
mod framing;
mod ledger;
mod message;
mod message_window;
mod outlet;
mod pacing;
pub mod packet;
mod parts;
mod peer_clock;
pub mod protocol;
mod stream;
mod windowed_min;

pub use candidates::{Attribute, Column, ScoreError};
pub use congestion::CongestionConfig;
pub use connection::{Connection, ConnectionConfig, End, ReadPackets, Scratch, UnreadPackets, Violation};
pub use direct_tables::DirectTables;
pub use error::SendError;
pub use framing::{
    CloseReason, Extent, Fault, FaultKind, MAX_DETAIL_BYTES, Refusal, VERSION, alone_bits, begin_alone,
    read_alone, write_alone,
};
pub use ledger::acks::PacketCounters;
pub use ledger::estimate::Stats as PacketStats;
pub use ledger::{Notification, acks, estimate};
pub use message::{Block, Message, OpaqueBody, Received, SendOptions};
pub use outlet::Outlet;
pub use pacing::{BudgetConfig, RateConfig};
pub use packet::{fragment, header, numbered};
pub use protocol::{
    Body, ChannelConfig, ChannelKind, FRAGMENT_BYTES, Framing, FramingError, MessageType, Protocol, Resend,
    Share, YojimboChannel, YojimboConfig,
};
pub use stream::{ChannelStats, Fill, Pool};
