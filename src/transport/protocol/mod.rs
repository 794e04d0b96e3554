//! The protocol that both sides of a conversation must share: the message types in order, the channels in order, and
//! a hash of both, which the sides compare when they meet.
//!
//! Promises: what [`Protocol::new`] returns is usable unchanged; every number in it is within its bound.

mod cost;
mod digest;
mod yojimbo;

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use cost::FRAGMENT_BYTES;
pub(crate) use cost::{Cost, MAX_ID_BITS, key_bits, length_bits};
pub use digest::MAX_DIGEST_BYTES;
pub use yojimbo::{Framing, FramingError, YojimboChannel, YojimboConfig};

use cost::ChannelCost;

use super::error::SendError;
use super::message::MESSAGE_OVERHEAD_BYTES;
use super::owner::{Layer, Owner};
use crate::wire::Schema;

/// Message types a protocol may have: type ids are 16 bits in the inbox.
const MAX_MESSAGE_TYPES: usize = 65_536;

/// Channels a protocol may have: yojimbo 1.0's bound, and small enough to walk every tick.
pub const MAX_CHANNELS: usize = 64;

/// Largest encoded message: what 256 fragments of 1,024 bytes carry, less room for the other sections of
/// the packet it rides in.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 - MAX_CONTROL_BYTES;

/// Bytes of a packet besides the messages in it, at most: hello, ack delay, ack ranges, credit of every channel, an entry.
pub(crate) const MAX_CONTROL_BYTES: usize = 1024;

/// Largest receive window in messages: far below half the range of the 16-bit ids.
pub const MAX_WINDOW: usize = 16_384;

/// Keys of a latest channel: 16 bits on the wire at most.
const MAX_KEYS: usize = 65_536;

/// Early copies of a reliable message: more would be a flood, not redundancy.
pub const MAX_EARLY_COPIES: usize = 8;

/// The maximum that ghosts write into one packet: the room of a datagram.
const MAX_GHOST_BYTES: usize = 1_200;

/// The maximum that inputs, or reports about them, write into one packet.
const MAX_TIME_BYTES: usize = 600;

/// The name of the channel of inputs and of the server's time.
const TIME_CHANNEL: &str = "time";

/// Most bytes of a message about the game that peers are in.
const MAX_PEERS_BYTES: usize = 8192;

/// Most bytes that a game core of peers writes into one packet.
const MAX_CORE_BYTES: usize = 1_000;

/// The name of the channel of game cores.
const CORE_CHANNEL: &str = "core";

/// Payloads of ghosts are read on arrival, so few wait.
const GHOST_RECEIVE_QUEUE: usize = 16;

/// The largest weight of a channel.
const MAX_WEIGHT: usize = 1000;

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

/// When a reliable message is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// This long after its last transmission, as in the article.
    After(Duration),
    /// When the packets that carry it are lost, or a timeout from RTT and its variance has passed.
    Adaptive {
        /// Packets, a tick apart, that carry it from the start while the budget has room; 1 for no redundancy.
        early_copies: u8,
    },
}

/// The promise of a channel. Windows and keys are part of the protocol hash; queues and timing are local choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// Each message exactly once.
    Reliable {
        /// In order, or in order of arrival.
        ordered: bool,
        /// Messages the receiver buffers before its application takes them: the sender never sends beyond it.
        receive_window: usize,
        /// Bytes the receiver buffers before its application takes them, `MESSAGE_OVERHEAD_BYTES` a message
        /// included.
        receive_bytes: usize,
        /// When a message is sent again.
        resend: Resend,
    },
    /// Each message at most once, in any order, never sent again.
    Unreliable {
        /// Messages the receiver keeps for its application; the oldest make room.
        receive_queue: usize,
    },
    /// Each message at most once, never sent again; older ones are dropped once a newer one came.
    Sequenced { receive_queue: usize },
    /// Each message in several packets; at most once, in order, with gaps reported.
    Redundant {
        /// Packets that carry each message, a tick apart; 0 for as many as needed until one is acked.
        copies: u8,
        receive_queue: usize,
    },
    /// The newest value of each key, until the peer has it.
    Latest {
        /// Keys are 0 to this, exclusive.
        keys: usize,
    },
    /// Opaque bits, at most once, each with one notification, in packet order.
    Payload { receive_queue: usize },
    /// Large blocks, in slices; they get what the other channels leave. A protocol has at most one such channel.
    Chunks,
}

impl ChannelKind {
    /// The kind's name, as in the protocol hash and in statistics.
    pub fn name(&self) -> &'static str {
        match self {
            ChannelKind::Reliable { ordered: true, .. } => "reliable_ordered",
            ChannelKind::Reliable { ordered: false, .. } => "reliable_unordered",
            ChannelKind::Unreliable { .. } => "unreliable",
            ChannelKind::Sequenced { .. } => "sequenced",
            ChannelKind::Redundant { .. } => "redundant",
            ChannelKind::Latest { .. } => "latest",
            ChannelKind::Payload { .. } => "payload",
            ChannelKind::Chunks => "chunks",
        }
    }

    /// Whether the receiver grants credit.
    pub fn has_credit(&self) -> bool {
        matches!(self, ChannelKind::Reliable { .. })
    }

    /// Whether it carries payloads instead of messages.
    pub fn is_payload(&self) -> bool {
        matches!(self, ChannelKind::Payload { .. })
    }

    /// Whether it carries chunks instead of messages.
    pub fn is_chunks(&self) -> bool {
        matches!(self, ChannelKind::Chunks)
    }

    /// Whether messages of this owner may go on channels of this kind. Ghosts' messages must arrive; a call or a turn
    /// must not be replaced by a newer one.
    pub fn takes(&self, owner: Owner) -> bool {
        use ChannelKind::{Redundant, Reliable, Sequenced, Unreliable};
        match owner {
            Owner::Game => !self.is_payload() && !self.is_chunks(),
            Owner::System(Layer::Ghosts | Layer::Peers) => matches!(self, Reliable { .. }),
            Owner::System(Layer::Calls) => {
                matches!(self, Reliable { .. } | Unreliable { .. } | Sequenced { .. } | Redundant { .. })
            }
            Owner::System(Layer::Lockstep) => matches!(self, Reliable { .. } | Redundant { .. }),
        }
    }

    /// Whether messages have numbers on the wire.
    pub(crate) fn has_ids(&self) -> bool {
        matches!(self, ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. })
    }
}

/// A channel's share of a connection's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Comes before all channels that are not strict; these keep a tenth of each packet.
    pub strict: bool,
    /// The share among channels that are not strict, relative to theirs; 1 to 1,000.
    pub weight: u32,
}

impl Default for Share {
    fn default() -> Self {
        Share { strict: false, weight: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// For people; not part of the protocol hash.
    pub name: String,
    /// The promise of the channel.
    pub kind: ChannelKind,
    /// Messages that may wait on the sending side. A local choice.
    pub send_queue: usize,
    /// Largest encoded message. Part of the protocol hash.
    pub max_message_bytes: usize,
    /// Its part of what may be sent. A local choice.
    pub share: Share,
}

impl ChannelConfig {
    /// A channel of this kind with the default queue, message size and share.
    pub fn new(kind: ChannelKind) -> Self {
        ChannelConfig {
            name: String::new(),
            kind,
            send_queue: 1024,
            max_message_bytes: 65_536,
            share: Share::default(),
        }
    }

    /// Reliable-ordered with the article's resend time of 0.1 s.
    pub fn reliable_ordered() -> Self {
        let resend = Resend::default();
        let (receive_window, receive_bytes) = (1024, 1 << 20);
        Self::new(ChannelKind::Reliable { ordered: true, receive_window, receive_bytes, resend })
    }

    pub fn unreliable() -> Self {
        Self::new(ChannelKind::Unreliable { receive_queue: 1024 })
    }

    /// Checks every setting against its bound.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn validate(&self) -> Result<(), ProtocolError> {
        let check = |field, value: usize, low, high| {
            let fine = (low..=high).contains(&value);
            if fine { Ok(()) } else { Err(ProtocolError { field, value: value as u64, low, high }) }
        };
        check("send_queue", self.send_queue, 1, MAX_WINDOW)?;
        check("max_message_bytes", self.max_message_bytes, 1, MAX_MESSAGE_BYTES)?;
        check("weight", self.share.weight as usize, 1, MAX_WEIGHT)?;
        match self.kind {
            ChannelKind::Reliable { receive_window, receive_bytes, resend, .. } => {
                check("receive_window", receive_window, 4, MAX_WINDOW)?;
                // Credit is renewed at each quarter of the window; a message of half the window always fits.
                let least = 2 * (self.max_message_bytes + MESSAGE_OVERHEAD_BYTES);
                check("receive_bytes", receive_bytes, least, 1 << 30)?;
                match resend {
                    Resend::After(time) => {
                        check("resend_time in milliseconds", time.as_millis() as usize, 1, 60_000)
                    }
                    Resend::Adaptive { early_copies } => {
                        check("early_copies", early_copies.into(), 1, MAX_EARLY_COPIES)
                    }
                }
            }
            ChannelKind::Unreliable { receive_queue }
            | ChannelKind::Sequenced { receive_queue }
            | ChannelKind::Redundant { receive_queue, .. }
            | ChannelKind::Payload { receive_queue } => check("receive_queue", receive_queue, 1, MAX_WINDOW),
            ChannelKind::Latest { keys } => check("keys", keys, 1, MAX_KEYS),
            ChannelKind::Chunks => Ok(()),
        }
    }
}

/// A setting that is out of its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    pub field: &'static str,
    pub value: u64,
    /// The least it may be.
    pub low: usize,
    /// The most it may be.
    pub high: usize,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {} to {}, not {}", self.field, self.low, self.high, self.value)
    }
}

impl core::error::Error for ProtocolError {}

/// The settings of the server's time that both sides share.
#[derive(Clone, Debug)]
pub struct ServerTime {
    /// Ticks a second of the server.
    pub rate: u32,
    /// The name and the fields of an input, if clients have inputs.
    pub input: Option<(String, Arc<Schema>)>,
}

impl ServerTime {
    fn describe(&self) -> String {
        let mut text = format!("tickwire time 1\nrate {}\n", self.rate);
        if let Some((name, schema)) = &self.input {
            text += &format!("input {}:{name} declared\n{}", name.len(), schema.describe());
        }
        text
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
        let mut protocol = Protocol {
            game_types: messages.len(),
            messages,
            system_types: [0; Layer::ALL.len()],
            channels,
            ghosts: None,
            time: None,
            peers: false,
            framing: Framing::Native,
            holds_packets: false,
            hash: 0,
            costs: Vec::new(),
        };
        protocol.hash = hash(&protocol.describe());
        protocol.costs = protocol.compile_costs();
        Ok(protocol)
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
        protocol.hash = hash(&protocol.describe());
        protocol.costs = protocol.compile_costs();
        Ok(protocol)
    }

    /// Adds message types of a layer, after the existing ones. The game's types, and without such types packets and
    /// hash too, are unchanged.
    ///
    /// # Errors
    ///
    /// When there are too many types, a bound of one is out of its own, or the framing only carries the game's.
    pub fn with_system(mut self, layer: Layer, types: Vec<MessageType>) -> Result<Self, FramingError> {
        if self.yojimbo().is_some() {
            return Err(FramingError::System { layer: layer.name() });
        }
        let high = MAX_MESSAGE_TYPES;
        let count = self.messages.len() + types.len();
        if count > high {
            let field = "number of message types";
            return Err(ProtocolError { field, value: count as u64, low: 1, high }.into());
        }
        types.iter().try_for_each(MessageType::validate)?;
        let place = self.types_of(layer).end;
        self.system_types[layer as usize] += types.len();
        self.messages.splice(place..place, types);
        self.hash = hash(&self.describe());
        self.costs = self.compile_costs();
        Ok(self)
    }

    /// Adds ghosts with this canonical description of their classes, and a channel for them after the game's.
    ///
    /// # Errors
    ///
    /// When there are too many channels, a bound is out of its own, or the framing has no ghosts.
    pub fn with_ghosts(mut self, text: String, share: Share) -> Result<Self, FramingError> {
        if self.yojimbo().is_some() {
            return Err(FramingError::System { layer: Layer::Ghosts.name() });
        }
        let high = MAX_CHANNELS - 1;
        if self.channels.len() > high {
            let (field, value) = ("number of channels beside ghosts", self.channels.len() as u64);
            return Err(ProtocolError { field, value, low: 1, high }.into());
        }
        let channel = ChannelConfig {
            name: Layer::Ghosts.name().into(),
            max_message_bytes: MAX_GHOST_BYTES,
            share,
            ..ChannelConfig::new(ChannelKind::Payload { receive_queue: GHOST_RECEIVE_QUEUE })
        };
        channel.validate()?;
        self.channels.push(channel);
        self.ghosts = Some(text);
        self.hash = hash(&self.describe());
        self.costs = self.compile_costs();
        Ok(self)
    }

    /// Adds the server's time, inputs if there are any, and a channel for them after all others.
    ///
    /// # Errors
    ///
    /// When there are too many channels, or the framing has no such channel.
    pub fn with_time(mut self, time: ServerTime, share: Share) -> Result<Self, FramingError> {
        if self.yojimbo().is_some() {
            return Err(FramingError::System { layer: TIME_CHANNEL });
        }
        let high = MAX_CHANNELS - 1;
        if self.channels.len() > high {
            let (field, value) = ("number of channels beside time", self.channels.len() as u64);
            return Err(ProtocolError { field, value, low: 1, high }.into());
        }
        let channel = ChannelConfig {
            name: TIME_CHANNEL.into(),
            max_message_bytes: MAX_TIME_BYTES,
            share,
            ..ChannelConfig::new(ChannelKind::Payload { receive_queue: GHOST_RECEIVE_QUEUE })
        };
        channel.validate()?;
        self.channels.push(channel);
        self.time = Some(time);
        self.hash = hash(&self.describe());
        self.costs = self.compile_costs();
        Ok(self)
    }

    /// Adds what peers without a server need, and two channels of it behind all others. It comes last.
    ///
    /// # Errors
    /// When there are too many channels, or the framing has none but the game's.
    pub fn with_peers(mut self) -> Result<Self, FramingError> {
        let max_bytes = MAX_PEERS_BYTES as u32;
        let said = MessageType { name: Layer::Peers.name().into(), body: Body::Opaque { max_bytes } };
        self = self.with_system(Layer::Peers, vec![said])?;
        let high = MAX_CHANNELS - 2;
        if self.channels.len() > high {
            let (field, value) = ("number of channels beside peers", self.channels.len() as u64);
            return Err(ProtocolError { field, value, low: 1, high }.into());
        }
        let kind = ChannelKind::Reliable {
            ordered: true,
            receive_window: 256,
            receive_bytes: 1 << 18,
            // They are few, and who waits for a master waits for all of them.
            resend: Resend::Adaptive { early_copies: 3 },
        };
        let share = Share { strict: true, weight: 1 };
        let (name, max_message_bytes) = (Layer::Peers.name().into(), MAX_PEERS_BYTES);
        let messages =
            ChannelConfig { name, max_message_bytes, send_queue: 256, share, ..ChannelConfig::new(kind) };
        let core = ChannelConfig {
            name: CORE_CHANNEL.into(),
            max_message_bytes: MAX_CORE_BYTES,
            share,
            ..ChannelConfig::new(ChannelKind::Payload { receive_queue: GHOST_RECEIVE_QUEUE })
        };
        for channel in [messages, core] {
            channel.validate()?;
            self.channels.push(channel);
        }
        self.peers = true;
        self.hash = hash(&self.describe());
        self.costs = self.compile_costs();
        Ok(self)
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

    /// How many of the channels are the game's.
    pub fn game_channels(&self) -> usize {
        let hidden = usize::from(self.ghosts.is_some()) + usize::from(self.time.is_some());
        self.channels.len() - hidden - 2 * usize::from(self.peers)
    }

    /// The ghosts' channel, if there are ghosts.
    pub fn ghost_channel(&self) -> Option<usize> {
        self.ghosts.as_ref().map(|_| self.game_channels())
    }

    /// The channel of inputs and of the server's time, if the protocol has a time.
    pub fn time_channel(&self) -> Option<usize> {
        self.time.as_ref().map(|_| self.game_channels() + usize::from(self.ghosts.is_some()))
    }

    /// The channel of what peers say of the game, if peers may play it without a server.
    pub fn peer_channel(&self) -> Option<usize> {
        self.peers.then(|| self.channels.len() - 2)
    }

    /// The channel of game cores, if there is one.
    pub fn core_channel(&self) -> Option<usize> {
        self.peers.then(|| self.channels.len() - 1)
    }

    /// The settings of the server's time that both sides share.
    pub fn time(&self) -> Option<&ServerTime> {
        self.time.as_ref()
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

/// The first eight bytes, little-endian, of SHA-256 over the canonical text.
fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    u64::from_le_bytes(core::array::from_fn(|i| digest[i]))
}

/// The canonical text of `STANDARD.md` or `YOJIMBO.md`, "Protocol hash".
fn describe(
    messages: &[MessageType],
    owner: impl Fn(u16) -> Owner,
    layers: &str,
    channels: &[ChannelConfig],
    framing: &Framing,
) -> String {
    let mut text = match framing {
        Framing::Native => String::from("tickwire protocol 1\n"),
        Framing::Yojimbo(YojimboConfig { max_packet_bytes, packet_fragment_bytes, .. }) => {
            format!("yojimbo protocol 1\npackets {max_packet_bytes} {packet_fragment_bytes}\n")
        }
    };
    for (number, MessageType { name, body }) in messages.iter().enumerate() {
        if let Framing::Yojimbo(config) = framing
            && config.is_block(number as u16)
        {
            text += "block ";
        }
        // Ids have 16 bits.
        match owner(number as u16) {
            Owner::Game => text += "message ",
            Owner::System(layer) => text += &format!("system {} ", layer.name()),
        }
        // The length before the name makes the text unambiguous whatever is in a name.
        text += &match body {
            Body::Declared(schema) => {
                format!("{}:{name} declared\n{}", name.len(), schema.describe())
            }
            Body::Opaque { max_bytes } => format!("{}:{name} opaque {max_bytes}\n", name.len()),
        };
    }
    text += layers;
    channels
        .iter()
        .enumerate()
        .for_each(|(number, channel)| text += &describe_channel(number, channel, framing));
    text
}

/// Its line of the text.
fn describe_channel(number: usize, channel: &ChannelConfig, framing: &Framing) -> String {
    let mut text = format!("channel {}", channel.kind.name());
    if let Framing::Yojimbo(config) = framing {
        let YojimboChannel { max_messages_per_packet, max_block_bytes, block_fragment_bytes, blocks } =
            config.channel(number);
        let blocks = u8::from(blocks);
        text += &format!(" {max_messages_per_packet} {max_block_bytes} {block_fragment_bytes} {blocks}\n");
        return text;
    }
    if !channel.kind.is_chunks() {
        text += &format!(" {}", channel.max_message_bytes);
    }
    text += &match channel.kind {
        ChannelKind::Reliable { receive_window, receive_bytes, .. } => {
            format!(" {receive_window} {receive_bytes}")
        }
        ChannelKind::Latest { keys } => format!(" {keys}"),
        _ => String::new(),
    };
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opaque(name: &str) -> MessageType {
        MessageType { name: name.into(), body: Body::Opaque { max_bytes: 100 } }
    }

    fn two_channels() -> Vec<ChannelConfig> {
        vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()]
    }

    #[test]
    fn a_type_costs_the_bits_that_tell_it_apart() {
        assert_eq!([1, 2, 3, 4, 5, 64].map(bits_to_name_one_of), [0, 1, 2, 2, 3, 6]);
    }

    #[test]
    fn the_hash_tells_apart_what_must_agree_and_nothing_else() {
        let hash = |messages: &[&str], channels: Vec<ChannelConfig>| {
            Protocol::new(messages.iter().map(|n| opaque(n)).collect(), channels).unwrap().hash()
        };
        let base = hash(&["A", "B"], two_channels());
        assert_eq!(base, hash(&["A", "B"], two_channels()));
        assert_ne!(base, hash(&["B", "A"], two_channels()));
        assert_ne!(base, hash(&["A"], two_channels()));
        assert_ne!(base, hash(&["A", "B"], two_channels().into_iter().rev().collect()));
        let mut local = two_channels();
        local[0].send_queue = 7;
        local[1].name = "state".into();
        assert_eq!(base, hash(&["A", "B"], local), "local choices need not agree");
        let mut window = two_channels();
        window[0].max_message_bytes = 7;
        assert_ne!(base, hash(&["A", "B"], window));
    }

    #[test]
    fn refuses_settings_out_of_their_bounds() {
        let refused = |change: fn(&mut ChannelConfig), field: &str| {
            let mut channel = ChannelConfig::reliable_ordered();
            change(&mut channel);
            let error = Protocol::new(vec![opaque("A")], vec![channel]).unwrap_err();
            assert_eq!(error.field, field);
        };
        refused(|c| c.send_queue = 0, "send_queue");
        refused(|c| c.max_message_bytes = 1 << 20, "max_message_bytes");
        refused(
            |c| {
                if let ChannelKind::Reliable { receive_bytes, .. } = &mut c.kind {
                    *receive_bytes = 65_536;
                }
            },
            "receive_bytes",
        );
        assert_eq!(Protocol::new(vec![], two_channels()).unwrap_err().field, "number of message types");
        assert_eq!(Protocol::new(vec![opaque("A")], vec![]).unwrap_err().field, "number of channels");
    }
}
