//! The protocol that both sides of a conversation must share: the message types in order, the channels in order, and
//! a hash of both, which the sides compare when they meet.
//!
//! Promises: what [`Protocol::new`] returns is usable unchanged; every number in it is within its bound.

mod channel;
mod cost;
mod digest;
mod extension;
mod text;
mod yojimbo;

pub(crate) use channel::MAX_CONTROL_BYTES;
pub use channel::{
    ChannelConfig, ChannelKind, MAX_EARLY_COPIES, MAX_MESSAGE_BYTES, MAX_WINDOW, Resend, Share,
};
pub use cost::FRAGMENT_BYTES;
pub(crate) use cost::{Cost, MAX_ID_BITS, key_bits, length_bits};
pub use digest::MAX_DIGEST_BYTES;
pub use extension::Extension;
pub use yojimbo::{Framing, FramingError, YojimboChannel, YojimboConfig};

use cost::ChannelCost;
use text::{describe, hash};

use super::error::SendError;
use super::message::Message;
use crate::limits::ConfigError;
use crate::wire::Schema;

/// Message types a protocol may have: type ids are 16 bits in the inbox.
const MAX_MESSAGE_TYPES: usize = 65_536;

/// Channels a protocol may have: yojimbo 1.0's bound, and small enough to walk every tick.
pub const MAX_CHANNELS: usize = 64;

/// How the body of a message type is read.
#[derive(Clone, Debug)]
pub enum Body {
    /// Declared by its fields; the core reads, checks and skips it.
    Declared(Schema),
    /// Read by code that the core can't run; preceded by its length in bits.
    Opaque {
        /// Most bytes an encoded body may have.
        max_bytes: u32,
    },
}

#[derive(Clone, Debug)]
pub struct MessageType {
    /// The class name; part of the protocol hash.
    pub name: String,
    /// How its body is read.
    pub body: Body,
}

impl MessageType {
    fn validate(&self) -> Result<(), ConfigError> {
        match self.body {
            Body::Opaque { max_bytes } => {
                ConfigError::within("max_bytes", max_bytes as usize, 1, MAX_MESSAGE_BYTES)
            }
            Body::Declared(_) => Ok(()),
        }
    }
}

/// The message types and channels of a game, compiled: the same on both sides, or they don't talk.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// The game's, then those of features.
    messages: Vec<MessageType>,
    channels: Vec<ChannelConfig>,
    /// In the order of their channels.
    features: Vec<Extended>,
    framing: Framing,
    holds_packets: bool,
    hash: u64,
    costs: Vec<ChannelCost>,
}

/// A feature's part of a protocol, and its numbers.
#[derive(Clone, Debug)]
struct Extended {
    extension: Extension,
    channels: core::ops::Range<usize>,
    message_type: Option<u16>,
}

impl Protocol {
    /// Compiles a protocol.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn new(messages: Vec<MessageType>, channels: Vec<ChannelConfig>) -> Result<Self, ConfigError> {
        Self::compile(messages, channels, 1)
    }

    /// Like [`Protocol::new`], for layers alone: without messages of the game.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn of_layers(channels: Vec<ChannelConfig>) -> Result<Self, ConfigError> {
        Self::compile(Vec::new(), channels, 0)
    }

    fn compile(
        messages: Vec<MessageType>,
        channels: Vec<ChannelConfig>,
        least: usize,
    ) -> Result<Self, ConfigError> {
        ConfigError::within("number of message types", messages.len(), least, MAX_MESSAGE_TYPES)?;
        ConfigError::within("number of channels", channels.len(), 1, MAX_CHANNELS)?;
        messages.iter().try_for_each(MessageType::validate)?;
        channels.iter().try_for_each(ChannelConfig::validate)?;
        let of_chunks = channels.iter().filter(|channel| channel.kind.is_chunks()).count();
        ConfigError::within("number of channels of chunks", of_chunks, 0, 1)?;
        let protocol = Protocol {
            messages,
            channels,
            features: Vec::new(),
            framing: Framing::Native,
            holds_packets: false,
            hash: 0,
            costs: Vec::new(),
        };
        Ok(protocol.compiled())
    }

    /// Brings the hash and the costs up to date.
    fn compiled(mut self) -> Self {
        self.hash = hash(&self.describe());
        self.costs = self.compile_costs();
        self
    }

    /// Compiles a protocol with this framing.
    ///
    /// # Errors
    ///
    /// The first setting out of its bound, or a feature that the framing lacks.
    pub fn with_framing(
        messages: Vec<MessageType>,
        channels: Vec<ChannelConfig>,
        framing: Framing,
    ) -> Result<Self, FramingError> {
        let mut protocol = Self::new(messages, channels)?;
        if let Framing::Yojimbo(config) = &framing {
            config.settle(&mut protocol.channels)?;
        }
        let yojimbo = matches!(framing, Framing::Yojimbo(_));
        let opaque = |message: &MessageType| matches!(message.body, Body::Opaque { .. });
        protocol.holds_packets = yojimbo && protocol.messages.iter().any(opaque);
        protocol.framing = framing;
        Ok(protocol.compiled())
    }

    pub fn framing(&self) -> &Framing {
        &self.framing
    }

    /// The settings of yojimbo's framing, if the protocol uses it.
    pub(crate) fn yojimbo(&self) -> Option<&YojimboConfig> {
        if let Framing::Yojimbo(config) = &self.framing { Some(config) } else { None }
    }

    /// A channel's settings for yojimbo's framing.
    pub(crate) fn yojimbo_channel(&self, channel: usize) -> YojimboChannel {
        self.yojimbo().map(|config| config.channel(channel)).unwrap_or_default()
    }

    /// Checks that a channel takes a message, if it has room.
    pub(crate) fn check(&self, channel: usize, message: &Message, key: u32) -> Result<(), SendError> {
        self.check_message(channel, message.encoded.max_bits(), key)?;
        if let Some(config) = self.yojimbo().filter(|config| config.is_block(message.message_type)) {
            config.check_block(channel, &self.channels[channel].kind, message)?;
        }
        let known = usize::from(message.message_type) < self.messages.len();
        if known && self.takes(channel, message.message_type) {
            return Ok(());
        }
        let kind = self.channels[channel].kind.name();
        Err(SendError::WrongType { message_type: message.message_type, kind })
    }

    /// Checks that a channel takes a message of at most this many bits, if it has room.
    pub(crate) fn check_message(&self, channel: usize, max_bits: usize, key: u32) -> Result<(), SendError> {
        match self.channel(channel)?.kind {
            ChannelKind::Payload { .. } | ChannelKind::Chunks => Err(SendError::WrongKind),
            ChannelKind::Latest { keys } if key as usize >= keys => Err(SendError::NoKey { key, keys }),
            _ => self.check_bytes(channel, max_bits.div_ceil(8)),
        }
    }

    /// Checks that a channel takes a payload of at most this many bits, if it has room.
    pub(crate) fn check_payload(&self, channel: usize, max_bits: usize) -> Result<(), SendError> {
        if !self.channel(channel)?.kind.is_payload() {
            return Err(SendError::WrongKind);
        }
        self.check_bytes(channel, max_bits.div_ceil(8))
    }

    fn channel(&self, channel: usize) -> Result<&ChannelConfig, SendError> {
        self.channels.get(channel).ok_or(SendError::NoChannel { channel, channels: self.channels.len() })
    }

    /// Checks that a channel allows a message of this many bytes.
    fn check_bytes(&self, channel: usize, bytes: usize) -> Result<(), SendError> {
        let max_bytes = self.channels[channel].max_message_bytes;
        let packet = self.yojimbo().map(|yojimbo| (yojimbo.max_packet_bytes, yojimbo.max_message_bytes()));
        match packet {
            _ if bytes <= max_bytes => Ok(()),
            Some((max_packet_bytes, most)) if most == max_bytes => {
                Err(SendError::Packet { bytes, max_bytes, max_packet_bytes })
            }
            _ => Err(SendError::TooLarge { bytes, max_bytes }),
        }
    }

    /// Whether packets are held until the application can read them: there are opaque message types, and the framing
    /// doesn't carry their length.
    pub fn holds_packets(&self) -> bool {
        self.holds_packets
    }

    /// The message types; the index is the type id on the wire. The game's come first, and behind them those of features.
    pub fn messages(&self) -> &[MessageType] {
        &self.messages
    }

    /// The channels; the index is the channel on the wire. The game's come first, and behind them those of features.
    pub fn channels(&self) -> &[ChannelConfig] {
        &self.channels
    }

    /// The channel of chunks, if there is one.
    pub fn chunk_channel(&self) -> Option<usize> {
        self.channels.iter().position(|channel| channel.kind.is_chunks())
    }

    /// Whether chunks can be sent.
    pub(crate) fn has_chunks(&self) -> bool {
        self.chunk_channel().is_some()
    }

    /// 64 bits over everything that both sides must agree on.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The canonical text that the hash is made of: `STANDARD.md` or `YOJIMBO.md`, "Protocol hash".
    pub fn describe(&self) -> String {
        let Protocol { messages, channels, framing, features, .. } = self;
        let layers: String = features.iter().map(|feature| &feature.extension.text[..]).collect();
        describe(messages, |number| self.owner_of_type(number), &layers, channels, framing)
    }

    /// Bits of a message type on the wire: none when there is only one.
    pub fn type_bits(&self) -> u32 {
        bits_to_name_one_of(self.messages.len())
    }

    /// Bits of a channel on the wire: none when there is only one.
    pub fn channel_bits(&self) -> u32 {
        bits_to_name_one_of(self.channels.len())
    }
}

/// Bits needed to tell `count` things apart: `ceil(log2 count)`.
pub(crate) fn bits_to_name_one_of(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests;
