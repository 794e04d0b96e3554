//! The errors of the transport's callers: a message that a channel refuses.

use core::fmt;

/// Why a channel refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The channel's queue is full.
    Full {
        /// How many that is.
        capacity: usize,
    },
    /// The queue for the next tick's packets is full; messages that don't fit into them are dropped then.
    TickFull {
        /// How many that is.
        capacity: usize,
    },
    /// The encoded message is larger than the channel allows.
    TooLarge {
        /// The message's upper bound in bytes.
        bytes: usize,
        max_bytes: usize,
    },
    /// The encoded message is larger than a packet has room for.
    Packet {
        /// The message's upper bound in bytes.
        bytes: usize,
        /// The room that a packet leaves it.
        max_bytes: usize,
        /// The packet's own bound.
        max_packet_bytes: usize,
    },
    /// There is no channel of this index.
    NoChannel {
        channel: usize,
        /// How many there are.
        channels: usize,
    },
    /// A latest channel has no such key.
    NoKey {
        key: u32,
        /// How many there are.
        keys: usize,
    },
    /// Messages need channels of messages, payloads channels of payloads.
    WrongKind,
    /// A layer's message on a kind of channel that doesn't carry such.
    WrongType { message_type: u16, kind: &'static str },
    /// A block of no bytes, or of more than the channel allows.
    Block {
        bytes: usize,
        /// The maximum of the channel.
        max_bytes: usize,
    },
    /// The channel has no blocks.
    BlocksDisabled,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full { capacity } => {
                write!(
                    f,
                    "{capacity} messages already wait to be sent or acked, the maximum (send_queue): \
                     try again in a later tick, or disconnect a peer that can't keep up"
                )
            }
            SendError::TickFull { capacity } => write!(
                f,
                "{capacity} messages of this tick already wait, the maximum (send_queue): send fewer per \
                 tick, or raise send_queue"
            ),
            SendError::TooLarge { bytes, max_bytes } => {
                write!(f, "the message must take at most {max_bytes} bytes, the channel's max_message_bytes, not {bytes}")
            }
            SendError::Packet { bytes, max_bytes, max_packet_bytes } => write!(
                f,
                "the message must take at most {max_bytes} bytes, which max_packet_size={max_packet_bytes} leaves it, not {bytes}"
            ),
            SendError::NoChannel { channel, channels } => {
                write!(f, "channel must be 0 to {}, not {channel}", channels - 1)
            }
            SendError::NoKey { key, keys } => {
                write!(f, "key must be 0 to {}, not {key}", keys - 1)
            }
            SendError::Block { bytes, max_bytes } => {
                write!(f, "the block must be 1 to {max_bytes} bytes, not {bytes}")
            }
            SendError::WrongType { message_type, kind } => {
                write!(f, "messages of type {message_type} are not for {kind} channels")
            }
            SendError::BlocksDisabled => f.write_str("the channel takes no blocks: make it without disable_blocks"),
            SendError::WrongKind => f.write_str(
                "send_payload() is for payload channels, send_chunk() for chunks, and send() for all other channels",
            ),
        }
    }
}

impl core::error::Error for SendError {}
