//! The message types and channels that features add to a game's protocol.

use core::ops::Range;
use std::sync::Arc;

use super::channel::{ChannelConfig, ChannelKind, Resend, Share};
use super::{Body, FramingError, MAX_CHANNELS, MAX_MESSAGE_TYPES, MessageType, Protocol};
use crate::transport::error::ConfigError;
use crate::wire::Schema;

/// The maximum that ghosts write into one packet: the room of a datagram.
const MAX_GHOST_BYTES: usize = 1_200;

/// The maximum that inputs, or reports about them, write into one packet.
const MAX_TIME_BYTES: usize = 600;

/// The name of the ghosts' channel.
const GHOST_CHANNEL: &str = "ghosts";

/// The name of the channel of inputs and of the server's time.
const TIME_CHANNEL: &str = "time";

/// Most bytes of a message about the game that peers are in.
const MAX_PEERS_BYTES: usize = 8192;

/// Most bytes that a game core of peers writes into one packet.
const MAX_CORE_BYTES: usize = 1_000;

/// The name of the message and the channel of peers.
const PEERS: &str = "peers";

/// The name of the channel of game cores.
const CORE_CHANNEL: &str = "core";

/// Payloads of features are read on arrival, so few wait.
const PAYLOAD_RECEIVE_QUEUE: usize = 16;

/// The settings of the server's time that both sides share.
#[derive(Clone, Debug)]
pub struct ServerTime {
    /// Ticks a second of the server.
    pub rate: u32,
    /// The name and the fields of an input, if clients have inputs.
    pub input: Option<(String, Arc<Schema>)>,
}

impl ServerTime {
    pub(super) fn describe(&self) -> String {
        let mut text = format!("tickwire time 1\nrate {}\n", self.rate);
        if let Some((name, schema)) = &self.input {
            text += &format!("input {}:{name} declared\n{}", name.len(), schema.describe());
        }
        text
    }
}

/// A channel of payloads.
fn payload_channel(name: &str, max_message_bytes: usize, share: Share) -> ChannelConfig {
    let kind = ChannelKind::Payload { receive_queue: PAYLOAD_RECEIVE_QUEUE };
    ChannelConfig { name: name.into(), max_message_bytes, share, ..ChannelConfig::new(kind) }
}

impl Protocol {
    /// Adds ghosts with this canonical description of their classes, and a channel for them after the game's.
    ///
    /// # Errors
    ///
    /// When there are too many channels, a bound is out of its own, or the framing has no ghosts.
    pub fn with_ghosts(mut self, text: String, share: Share) -> Result<Self, FramingError> {
        let channel = payload_channel(GHOST_CHANNEL, MAX_GHOST_BYTES, share);
        self.add_channels(GHOST_CHANNEL, "number of channels beside ghosts", [channel])?;
        self.ghosts = Some(text);
        Ok(self.compiled())
    }

    /// Adds the server's time, inputs if there are any, and a channel for them after all others.
    ///
    /// # Errors
    ///
    /// When there are too many channels, or the framing has no such channel.
    pub fn with_time(mut self, time: ServerTime, share: Share) -> Result<Self, FramingError> {
        let channel = payload_channel(TIME_CHANNEL, MAX_TIME_BYTES, share);
        self.add_channels(TIME_CHANNEL, "number of channels beside time", [channel])?;
        self.time = Some(time);
        Ok(self.compiled())
    }

    /// Adds messages about the game of peers without a server, and two channels after all others. It comes last.
    ///
    /// # Errors
    /// When there are too many channels, or the framing has none but the game's.
    pub fn with_peers(mut self) -> Result<Self, FramingError> {
        self.refuse_yojimbo(PEERS)?;
        ConfigError::within("number of message types", self.messages.len() + 1, 1, MAX_MESSAGE_TYPES)?;
        let max_bytes = MAX_PEERS_BYTES as u32;
        self.messages.push(MessageType { name: PEERS.into(), body: Body::Opaque { max_bytes } });
        let kind = ChannelKind::Reliable {
            ordered: true,
            receive_window: 256,
            receive_bytes: 1 << 18,
            // They are few, and who waits for a master waits for all of them.
            resend: Resend::Adaptive { early_copies: 3 },
        };
        let share = Share { strict: true, weight: 1 };
        let messages = ChannelConfig {
            name: PEERS.into(),
            max_message_bytes: MAX_PEERS_BYTES,
            send_queue: 256,
            share,
            ..ChannelConfig::new(kind)
        };
        let core = payload_channel(CORE_CHANNEL, MAX_CORE_BYTES, share);
        self.add_channels(PEERS, "number of channels beside peers", [messages, core])?;
        self.peers = true;
        Ok(self.compiled())
    }

    /// The protocol on the links between the players of a game that one of them hosts: ghosts, inputs and the server's
    /// time pass between its server and clients instead. The game's types and channels keep their numbers. It has a
    /// channel of chunks, for the world.
    ///
    /// # Errors
    /// When there are too many channels, or the framing has none but the game's.
    pub fn between_players(&self) -> Result<Self, FramingError> {
        self.refuse_yojimbo(PEERS)?;
        let mut channels = self.channels[..self.game_channels()].to_vec();
        if !self.has_chunks() {
            channels.push(ChannelConfig::new(ChannelKind::Chunks));
        }
        let types = self.messages.len() - usize::from(self.peers);
        let mut protocol = Self::compile(self.messages[..types].to_vec(), channels, 0)?;
        protocol.whole = Some(self.hash);
        protocol.with_peers()
    }

    /// Adds channels of a feature after all others.
    fn add_channels<const N: usize>(
        &mut self,
        feature: &'static str,
        field: &'static str,
        channels: [ChannelConfig; N],
    ) -> Result<(), FramingError> {
        self.refuse_yojimbo(feature)?;
        ConfigError::within(field, self.channels.len(), 1, MAX_CHANNELS - N)?;
        channels.iter().try_for_each(ChannelConfig::validate)?;
        self.channels.extend(channels);
        Ok(())
    }

    /// yojimbo's framing carries only the game's messages.
    fn refuse_yojimbo(&self, feature: &'static str) -> Result<(), FramingError> {
        if self.yojimbo().is_some() { Err(FramingError::System { layer: feature }) } else { Ok(()) }
    }

    /// How many of the channels are the game's.
    pub fn game_channels(&self) -> usize {
        let hidden = usize::from(self.ghosts.is_some()) + usize::from(self.time.is_some());
        self.channels.len() - hidden - 2 * usize::from(self.peers)
    }

    /// The channels of features, which come after the game's.
    pub fn feature_channels(&self) -> Range<usize> {
        self.game_channels()..self.channels.len()
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
}
