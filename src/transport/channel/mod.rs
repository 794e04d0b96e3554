//! Channels: what is promised for the messages put in. A channel is queues and windows; how its messages look
//! in a packet is the business of the framing.

mod reliable;
mod unreliable;

pub(crate) use reliable::{CreditMark, ReliableOrdered, WindowViolation};
pub(crate) use unreliable::Unreliable;

use core::fmt;

use super::message::{Message, Received};
use super::protocol::{ChannelConfig, ChannelKind};

/// Counts of one channel since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Messages now waiting to be sent or acked.
    pub queued: usize,
    /// Messages sent, each counted once.
    pub sent: u64,
    /// Times a message was sent again.
    pub resent: u64,
    /// Messages received, each counted once.
    pub received: u64,
    /// Messages received again and dropped.
    pub duplicates: u64,
    /// Messages pushed out by a full queue or a tick's budget.
    pub dropped: u64,
}

/// Why a channel doesn't take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// As many messages wait as may.
    Full {
        /// How many that is.
        capacity: usize,
    },
    /// The encoded message is larger than the channel takes.
    TooLarge {
        /// The message's upper bound in bytes.
        bytes: usize,
        /// The channel's.
        max_bytes: usize,
    },
    /// There is no channel of this index.
    NoChannel {
        /// The index.
        channel: usize,
        /// How many there are.
        channels: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full { capacity } => {
                write!(
                    f,
                    "{capacity} messages wait to be sent or acked already, as many as send_queue allows"
                )
            }
            SendError::TooLarge { bytes, max_bytes } => {
                write!(f, "the message takes {bytes} bytes, the channel's max_message_bytes is {max_bytes}")
            }
            SendError::NoChannel { channel, channels } => {
                write!(f, "there is no channel {channel}; channels are 0 to {}", channels - 1)
            }
        }
    }
}

impl core::error::Error for SendError {}

/// One channel of one connection, of whatever kind.
#[derive(Debug)]
pub(crate) enum Channel {
    Reliable(ReliableOrdered),
    Unreliable(Unreliable),
}

impl Channel {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        match config.kind {
            ChannelKind::ReliableOrdered { receive_window, receive_bytes, resend_time } => Channel::Reliable(
                ReliableOrdered::new(config.send_queue, receive_window, receive_bytes, resend_time),
            ),
            ChannelKind::Unreliable { receive_queue } => {
                Channel::Unreliable(Unreliable::new(config.send_queue, receive_queue))
            }
        }
    }

    /// Queues a message whose size has been checked.
    pub(crate) fn send(&mut self, message: Message) -> Result<(), SendError> {
        match self {
            Channel::Reliable(channel) => channel.send(message),
            Channel::Unreliable(channel) => channel.send(message),
        }
    }

    /// Takes the next message for the application.
    pub(crate) fn poll_received(&mut self) -> Option<Received> {
        match self {
            Channel::Reliable(channel) => channel.poll_received(),
            Channel::Unreliable(channel) => channel.poll_received(),
        }
    }

    pub(crate) fn stats(&self) -> ChannelStats {
        match self {
            Channel::Reliable(channel) => channel.stats(),
            Channel::Unreliable(channel) => channel.stats(),
        }
    }

    /// The tick's packets are out: what may not wait is dropped.
    pub(crate) fn end_of_tick(&mut self) {
        if let Channel::Unreliable(channel) = self {
            channel.end_of_tick();
        }
    }
}
