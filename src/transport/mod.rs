//! One conversation with one peer: reliable 1.0 packets and acks, channels, framing.

pub mod ack_config;
pub mod ack_endpoint;
mod ack_ranges;
pub mod acks;
pub mod candidates;
mod channel;
pub mod chunks;
mod congestion;
mod connection;
pub mod estimate;
mod fates;
pub mod fragment;
mod framing;
pub mod good_bad;
pub mod header;
mod in_flight;
mod laps;
mod message;
mod message_window;
mod numbers;
mod pacing;
mod peer_clock;
mod peer_pace;
pub mod protocol;
mod standard_estimate;
mod stream_manager;
mod windowed_min;

pub use ack_endpoint::EndpointCounters as PacketCounters;
pub use candidates::{Attribute, Column, ScoreError};
pub use channel::{ChannelStats, Desync, SendError};
pub use congestion::{AdaptiveConfig, CongestionConfig};
pub use connection::{Connection, ConnectionConfig, End, Read, Scratch, SendOptions, Unread, Violation};
pub use estimate::Stats as PacketStats;
pub use fates::{Notification, PacketFate};
pub use framing::{
    BodyFault, CloseReason, Extent, FRAGMENT_BYTES, Fault, FaultKind, Framing, FramingError,
    MAX_DETAIL_BYTES, PacketFault, Refusal, VERSION, YojimboChannel, YojimboConfig, alone_bits, begin_alone,
    read_alone, write_alone,
};
pub use message::{Block, Message, OpaqueBody, Received};
pub use pacing::{BudgetConfig, RateConfig};
pub use protocol::{Body, ChannelConfig, ChannelKind, MessageType, Protocol, ProtocolError, Resend, Share};
