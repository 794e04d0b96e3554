//! The protocol that both sides of a conversation must share: the message types in order, the channels in order, and
//! a hash of both, which the sides compare when they meet.
//!
//! Promises: what [`Protocol::new`] returns is usable unchanged; every number in it is within its bound.

mod channel;
mod cost;
mod digest;
mod features;
mod text;
mod yojimbo;

use core::ops::Range;

pub(crate) use channel::MAX_CONTROL_BYTES;
pub use channel::{
    ChannelConfig, ChannelKind, MAX_EARLY_COPIES, MAX_MESSAGE_BYTES, MAX_WINDOW, ProtocolError, Resend, Share,
};
pub use cost::FRAGMENT_BYTES;
pub(crate) use cost::{Cost, MAX_ID_BITS, key_bits, length_bits};
pub use digest::MAX_DIGEST_BYTES;
pub use features::ServerTime;
pub use yojimbo::{Framing, FramingError, YojimboChannel, YojimboConfig};

use cost::ChannelCost;
use text::{describe, hash};

use super::error::SendError;
use super::owner::{Layer, Owner};
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
    /// Most bits a body of this type takes, at any position in a packet.
    pub fn max_bits(&self) -> usize {
        match &self.body {
            Body::Declared(schema) => schema.max_bits(),
            Body::Opaque { max_bytes } => *max_bytes as usize * 8,
        }
    }

    fn validate(&self) -> Result<(), ProtocolError> {
        match self.body {
            Body::Opaque { max_bytes } if !(1..=MAX_MESSAGE_BYTES).contains(&(max_bytes as usize)) => {
                let value = max_bytes.into();
                Err(ProtocolError { field: "max_bytes", value, low: 1, high: MAX_MESSAGE_BYTES })
            }
            _ => Ok(()),
        }
    }
}

/// The message types and channels of a game, compiled: the same on both sides, or they don't talk.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// The game's, then the layers'.
    messages: Vec<MessageType>,
    game_types: usize,
    /// How many types each layer has, as in [`Layer::ALL`].
    system_types: [usize; Layer::ALL.len()],
    channels: Vec<ChannelConfig>,
    /// The canonical text of the ghosts' classes; theirs is the channel behind the game's then.
    ghosts: Option<String>,
    /// The server's time: the canonical text of it and of inputs; theirs is the last channel then.
    time: Option<ServerTime>,
    /// Peers may play it without a server: the last two channels are of what they say of the game, and of a game core.
    peers: bool,
    /// The hash of the whole protocol, of which this is the part between players.
    whole: Option<u64>,
    framing: Framing,
    holds_packets: bool,
    hash: u64,
    costs: Vec<ChannelCost>,
}

impl Protocol {
    /// Compiles a protocol.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn new(messages: Vec<MessageType>, channels: Vec<ChannelConfig>) -> Result<Self, ProtocolError> {
        Self::compile(messages, channels, 1)
    }

    /// Like [`Protocol::new`], for layers alone: without messages of the game.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn of_layers(channels: Vec<ChannelConfig>) -> Result<Self, ProtocolError> {
        Self::compile(Vec::new(), channels, 0)
    }

    fn compile(
        messages: Vec<MessageType>,
        channels: Vec<ChannelConfig>,
        least: usize,
    ) -> Result<Self, ProtocolError> {
        let bounded = |field, value: usize, low, high| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(ProtocolError { field, value: value as u64, low, high })
            }
        };
        bounded("number of message types", messages.len(), least, MAX_MESSAGE_TYPES)?;
        bounded("number of channels", channels.len(), 1, MAX_CHANNELS)?;
        messages.iter().try_for_each(MessageType::validate)?;
        channels.iter().try_for_each(ChannelConfig::validate)?;
        let of_chunks = channels.iter().filter(|channel| channel.kind.is_chunks()).count();
        if of_chunks > 1 {
            let field = "number of channels of chunks";
            return Err(ProtocolError { field, value: of_chunks as u64, low: 0, high: 1 });
        }
        let protocol = Protocol {
            game_types: messages.len(),
            messages,
            system_types: [0; Layer::ALL.len()],
            channels,
            ghosts: None,
            time: None,
            peers: false,
            whole: None,
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

    /// Checks that a channel allows a message of this many bytes.
    pub(crate) fn check_bytes(&self, channel: usize, bytes: usize) -> Result<(), SendError> {
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

    /// Checks that a channel carries messages of a type; payloads have none.
    pub(crate) fn check_type(&self, channel: usize, message_type: u16) -> Result<(), SendError> {
        let kind = &self.channels[channel].kind;
        let known = usize::from(message_type) < self.messages.len();
        if kind.is_payload() || kind.is_chunks() || (known && kind.takes(self.owner(message_type))) {
            return Ok(());
        }
        Err(SendError::WrongType { message_type, kind: kind.name() })
    }

    /// Whether packets are held until the application can read them: there are opaque message types, and the framing
    /// doesn't carry their length.
    pub fn holds_packets(&self) -> bool {
        self.holds_packets
    }

    /// The message types; the index is the type id on the wire. The game's come first, and behind them those of the layers.
    pub fn messages(&self) -> &[MessageType] {
        &self.messages
    }

    /// How many of the message types are the game's.
    pub fn game_types(&self) -> usize {
        self.game_types
    }

    /// The ids of a layer's message types.
    pub fn types_of(&self, layer: Layer) -> Range<usize> {
        let (before, rest) = self.system_types.split_at(layer as usize);
        let start = self.game_types + before.iter().sum::<usize>();
        start..start + rest.first().copied().unwrap_or(0)
    }

    /// The owner of the messages of a type.
    pub fn owner(&self, message_type: u16) -> Owner {
        let id = usize::from(message_type);
        if id < self.game_types {
            return Owner::Game;
        }
        let layer = Layer::ALL.into_iter().find(|layer| self.types_of(*layer).contains(&id));
        layer.map_or(Owner::Game, Owner::System)
    }

    /// Whether messages of a type may go on a channel.
    pub fn takes(&self, channel: usize, message_type: u16) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.kind.takes(self.owner(message_type)))
    }

    /// The channels; the index is the channel on the wire. The game's come first, then the ghosts', then that of
    /// inputs and the server's time, then those of peers.
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
        let Protocol { messages, channels, framing, ghosts, .. } = self;
        let mut layers = ghosts.clone().unwrap_or_default();
        layers += &self.time.as_ref().map(ServerTime::describe).unwrap_or_default();
        layers += &self.whole.map(|hash| format!("hosted {hash:016x}\n")).unwrap_or_default();
        describe(messages, |id| self.owner(id), &layers, channels, framing)
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
