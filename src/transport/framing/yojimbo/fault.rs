//! The faults that a peer may commit in yojimbo's framing, with yojimbo's names.

use core::fmt;

use crate::transport::parts::Desync;
use crate::wire::ReadError;

/// The fault of a packet, or of its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The packet outside of its messages: yojimbo's READ_PACKET_FAILED.
    Packet(PacketFault),
    /// A channel's messages: FAILED_TO_SERIALIZE.
    Messages {
        channel: u8,
        /// The fault of the body.
        error: BodyFault,
    },
    /// A fragment on an unreliable channel: FAILED_TO_SERIALIZE too.
    UnreliableFragment {
        channel: u8,
    },
    Desync {
        channel: u8,
        desync: Desync,
    },
}

/// A fault of a packet outside of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketFault {
    /// It has no bytes.
    Empty,
    Bits(ReadError),
    /// A fragment on a channel whose blocks are disabled.
    BlocksDisabled {
        channel: u8,
    },
    /// A block's message has a type without blocks.
    NotABlock {
        message_type: u16,
    },
    /// The message of a block, by its own code.
    BlockMessage {
        why: String,
    },
}

/// A fault of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFault {
    Bits(ReadError),
    /// The error of its own code.
    Own(String),
}

/// Yojimbo's classification of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    ReadPacketFailed,
    FailedToSerialize,
    Desync,
}

impl Fault {
    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Packet(_) => FaultKind::ReadPacketFailed,
            Fault::Messages { .. } | Fault::UnreliableFragment { .. } => FaultKind::FailedToSerialize,
            Fault::Desync { .. } => FaultKind::Desync,
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Fault::Packet(PacketFault::Bits(error))
    }
}

impl From<ReadError> for BodyFault {
    fn from(error: ReadError) -> Self {
        BodyFault::Bits(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Packet(PacketFault::Empty) => f.write_str("a packet has no bytes"),
            Fault::Packet(PacketFault::Bits(error)) => write!(f, "a packet: {error}"),
            Fault::Packet(PacketFault::BlocksDisabled { channel }) => {
                write!(f, "a block on channel {channel}, whose blocks are disabled")
            }
            Fault::Packet(PacketFault::NotABlock { message_type }) => {
                write!(f, "a block with a message of type {message_type}, which carries none")
            }
            Fault::Packet(PacketFault::BlockMessage { why }) => {
                write!(f, "the message of a block is refused by its own serialize: {why}")
            }
            Fault::Messages { channel, error: BodyFault::Bits(error) } => {
                write!(f, "the messages of channel {channel}: {error}")
            }
            Fault::Messages { channel, error: BodyFault::Own(why) } => {
                write!(f, "a message of channel {channel} is refused by its own serialize: {why}")
            }
            Fault::UnreliableFragment { channel } => {
                write!(f, "a fragment of a block on channel {channel}, which is unreliable")
            }
            Fault::Desync { channel, desync } => match desync {
                Desync::Window => write!(f, "a message of channel {channel} is beyond the receive window"),
                Desync::FragmentCount => write!(f, "the fragments of a block on channel {channel} disagree"),
                Desync::FragmentSize => {
                    write!(f, "a fragment of a block on channel {channel} is too short or reaches too far")
                }
            },
        }
    }
}
