//! The errors of the transport's callers: a setting out of its bounds, a message that a channel refuses.

use core::fmt;
use std::borrow::Cow;

use crate::exact::short;
use crate::store::SequenceBuffer;

/// A setting out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the setting.
    pub field: &'static str,
    /// The value it was given.
    pub value: String,
    /// A text with the allowed values.
    pub bound: Cow<'static, str>,
}

impl ConfigError {
    /// An error about `field`, unless its value is `valid`.
    pub(crate) fn unless(
        valid: bool,
        field: &'static str,
        value: impl fmt::Display,
        bound: impl Into<Cow<'static, str>>,
    ) -> Result<(), ConfigError> {
        if valid { Ok(()) } else { Err(ConfigError { field, value: value.to_string(), bound: bound.into() }) }
    }

    /// An error about `field`, unless its value is one of these.
    pub(crate) fn within<T: PartialOrd + fmt::Debug>(
        field: &'static str,
        value: T,
        low: T,
        high: T,
    ) -> Result<(), ConfigError> {
        let valid = (&low..=&high).contains(&&value);
        let value = format_args!("{value:?}");
        if valid { Ok(()) } else { Self::unless(false, field, value, format!("{low:?} to {high:?}")) }
    }

    /// An error about `field`, unless its value is a number above 0.
    pub(crate) fn positive(field: &'static str, value: f64) -> Result<(), ConfigError> {
        ConfigError::unless(value.is_finite() && value > 0.0, field, short(value), "above 0 and finite")
    }

    /// An error unless `low` is at most `high`. It is about the field that was given: `high`, unless that has its
    /// default.
    pub(crate) fn ordered(
        (low_field, low): (&'static str, f64),
        (high_field, high): (&'static str, f64),
        default_high: f64,
    ) -> Result<(), ConfigError> {
        let [low_shown, high_shown] = [low, high].map(short);
        match () {
            () if low <= high => Ok(()),
            () if high == default_high => {
                Self::unless(false, low_field, low_shown, format!("at most {high_field} ({high_shown})"))
            }
            () => Self::unless(false, high_field, high_shown, format!("at least {low_field} ({low_shown})")),
        }
    }

    /// An error about `field`, unless its value can be a window of packet numbers.
    pub(super) fn check_window(field: &'static str, capacity: usize) -> Result<(), ConfigError> {
        let valid = SequenceBuffer::<()>::valid_capacity(capacity);
        ConfigError::unless(valid, field, capacity, "a power of two up to 32768")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}, not {}", self.field, self.bound, self.value)
    }
}

impl std::error::Error for ConfigError {}

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
