//! The channels, message type and settings that a feature adds to a game's protocol.
//!
//! Promises: the game's types and channels keep their numbers; the game's messages never go on a feature's channels, and
//! a feature's messages nowhere else.

use core::ops::Range;

use super::channel::{ChannelConfig, ChannelKind, Share};
use super::{Extended, FramingError, MAX_CHANNELS, MAX_MESSAGE_TYPES, MessageType, Protocol};
use crate::limits::ConfigError;

/// Payloads of features are read on arrival, so few wait.
const PAYLOAD_RECEIVE_QUEUE: usize = 16;

/// A feature's part of a protocol. Both sides must have the same one.
#[derive(Clone, Debug, Default)]
pub struct Extension {
    /// Names the feature in errors and questions.
    pub name: &'static str,
    /// The canonical text of its settings: part of the protocol's hash.
    pub text: String,
    /// What a class is called that the text declares, if it declares any: in differences between two protocols.
    pub class_kind: Option<&'static str>,
    /// A type of messages that go on its channels alone.
    pub message: Option<MessageType>,
    /// Its channels, behind all others.
    pub channels: Vec<ChannelConfig>,
}

impl Extension {
    /// A channel of payloads of at most this many bytes.
    pub fn payloads(name: &str, max_message_bytes: usize, share: Share) -> ChannelConfig {
        let kind = ChannelKind::Payload { receive_queue: PAYLOAD_RECEIVE_QUEUE };
        ChannelConfig { name: name.into(), max_message_bytes, share, ..ChannelConfig::new(kind) }
    }
}

impl Protocol {
    /// Adds a feature's part behind all others.
    ///
    /// # Errors
    /// When there are too many channels or types, a bound is out of its own, or the framing carries only the game's
    /// messages.
    pub fn extended(mut self, extension: Extension) -> Result<Self, FramingError> {
        let Extension { name, message, channels, .. } = &extension;
        if self.yojimbo().is_some() {
            return Err(FramingError::System { layer: name });
        }
        let first = self.channels.len();
        let most = MAX_CHANNELS.saturating_sub(channels.len());
        ConfigError::within("number of channels beside those of features", first, 1, most)?;
        channels.iter().try_for_each(ChannelConfig::validate)?;
        self.channels.extend(channels.iter().cloned());
        // Ids have 16 bits.
        let message_type = message.as_ref().map(|_| self.messages.len() as u16);
        self.messages.extend(message.clone());
        let least = usize::from(message.is_some());
        ConfigError::within("number of message types", self.messages.len(), least, MAX_MESSAGE_TYPES)?;
        let channels = first..self.channels.len();
        self.features.push(Extended { extension, channels, message_type });
        Ok(self.compiled())
    }

    /// The game's own types and channels, without features, and these channels behind them.
    ///
    /// # Errors
    /// Those of [`Protocol::new`].
    pub fn without_features(&self, more: Vec<ChannelConfig>) -> Result<Self, ConfigError> {
        let types = self.features.iter().filter(|feature| feature.message_type.is_some()).count();
        let messages = self.messages[..self.messages.len() - types].to_vec();
        Self::compile(messages, [&self.channels[..self.game_channels()], &more[..]].concat(), 0)
    }

    /// How many of the channels are the game's.
    pub fn game_channels(&self) -> usize {
        self.features.first().map_or(self.channels.len(), |feature| feature.channels.start)
    }

    /// The channels of features, which come after the game's.
    pub fn feature_channels(&self) -> Range<usize> {
        self.game_channels()..self.channels.len()
    }

    fn feature(&self, name: &str) -> Option<&Extended> {
        self.features.iter().find(|feature| feature.extension.name == name)
    }

    /// The channels of the feature with this name, if the protocol has it.
    pub fn channels_of(&self, name: &str) -> Option<Range<usize>> {
        self.feature(name).map(|feature| feature.channels.clone())
    }

    /// The message type of the feature with this name, if it has one.
    pub fn type_of(&self, name: &str) -> Option<u16> {
        self.feature(name)?.message_type
    }

    /// The feature whose messages a type is; None for the game's.
    pub(super) fn owner_of_type(&self, message_type: u16) -> Option<&'static str> {
        let owner = self.features.iter().find(|feature| feature.message_type == Some(message_type));
        owner.map(|feature| feature.extension.name)
    }

    /// Whether a message type is a feature's, and never the game's.
    pub fn is_of_feature(&self, message_type: u16) -> bool {
        self.owner_of_type(message_type).is_some()
    }

    /// Whether messages of a type may go on a channel.
    pub fn takes(&self, channel: usize, message_type: u16) -> bool {
        let Some(kind) = self.channels.get(channel).map(|config| &config.kind) else { return false };
        let owner = self.features.iter().find(|feature| feature.channels.contains(&channel));
        let owner = owner.map(|feature| feature.extension.name);
        owner == self.owner_of_type(message_type) && !kind.is_payload() && !kind.is_chunks()
    }
}
