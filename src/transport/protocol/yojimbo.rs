//! The settings that both sides of yojimbo's framing must share besides messages and channels, and the features that
//! this framing lacks.

use core::fmt;

use super::channel::{ChannelConfig, ChannelKind, MAX_WINDOW};
use crate::limits::ConfigError;
use crate::limits::MAX_PAYLOAD;
use crate::transport::error::SendError;
use crate::transport::message::Message;
use crate::transport::packet::{
    AckEndpointConfig, FRAGMENT_HEADER_SIZE, Header, HeaderKind, MAX_FRAGMENTS, ReassemblyConfig,
};
use crate::wire::bit_len;

/// Most fragments of a block: yojimbo's fragment ids have 16 bits.
const MAX_BLOCK_FRAGMENTS: usize = 65_535;

/// Largest block that a channel may be configured for.
const MAX_BLOCK_BYTES: usize = 1 << 26;

/// Bytes of a packet besides a message's body or a fragment's data: entry count, entry, ids, type, lengths, an align.
const PACKET_OVERHEAD_BYTES: usize = 24;

/// Bytes of a packet that a block fragment must leave: yojimbo's own estimate of what stands beside it.
const FRAGMENT_SLACK_BYTES: usize = 64;

/// The framing of a connection's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    Native,
    /// That of the C++ library yojimbo 1.9: `YOJIMBO.md`.
    Yojimbo(YojimboConfig),
}

/// The settings of yojimbo's framing. All must be the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YojimboConfig {
    /// Largest connection packet (yojimbo's `maxPacketSize`).
    pub max_packet_bytes: usize,
    /// Bytes of each datagram of a larger packet (`packetFragmentSize`).
    pub packet_fragment_bytes: usize,
    /// The message types that carry a block.
    pub block_types: Vec<u16>,
    /// Settings of the first channels; the others have the defaults.
    pub channels: Vec<YojimboChannel>,
}

impl Default for YojimboConfig {
    fn default() -> Self {
        YojimboConfig {
            max_packet_bytes: 8192,
            packet_fragment_bytes: 1024,
            block_types: Vec::new(),
            channels: Vec::new(),
        }
    }
}

/// The settings of a channel that both sides of yojimbo's framing must share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YojimboChannel {
    /// Messages that a packet may have (yojimbo's `maxMessagesPerPacket`).
    pub max_messages_per_packet: usize,
    pub max_block_bytes: usize,
    /// Bytes of a block in each packet (`blockFragmentSize`).
    pub block_fragment_bytes: usize,
    /// Whether block messages may be sent (not `disableBlocks`).
    pub blocks: bool,
}

/// The widths of a channel's numbers, in bits.
pub(crate) struct Widths {
    pub(crate) messages: u32,
    pub(crate) block_bytes: u32,
    pub(crate) fragment_count: u32,
    pub(crate) fragment_bytes: u32,
}

impl Default for YojimboChannel {
    fn default() -> Self {
        YojimboChannel {
            max_messages_per_packet: 256,
            max_block_bytes: 256 * 1024,
            block_fragment_bytes: 1024,
            blocks: true,
        }
    }
}

impl YojimboChannel {
    /// Most fragments of a block.
    pub(crate) fn max_fragments(&self) -> usize {
        self.max_block_bytes.div_ceil(self.block_fragment_bytes)
    }

    /// The widths of its numbers on the wire.
    pub(crate) fn widths(&self) -> Widths {
        // Each is at least 1.
        let width = |most: usize| bit_len(most as u64 - 1);
        Widths {
            messages: width(self.max_messages_per_packet),
            block_bytes: width(self.max_block_bytes),
            fragment_count: width(self.max_fragments()),
            fragment_bytes: width(self.block_fragment_bytes),
        }
    }

    /// Checks each setting. Only a channel that `cuts` blocks uses the size of their fragments.
    fn validate(&self, max_packet_bytes: usize, cuts: bool) -> Result<(), ConfigError> {
        ConfigError::within("max_messages_per_packet", self.max_messages_per_packet, 1, MAX_WINDOW)?;
        let most_fragment = if cuts { max_packet_bytes - FRAGMENT_SLACK_BYTES } else { MAX_BLOCK_BYTES };
        ConfigError::within("block_fragment_size", self.block_fragment_bytes, 1, most_fragment)?;
        let most = MAX_BLOCK_BYTES.min(self.block_fragment_bytes.saturating_mul(MAX_BLOCK_FRAGMENTS));
        ConfigError::within("max_block_size", self.max_block_bytes, 1, most)
    }
}

impl YojimboConfig {
    /// Checks every setting against its bound, and limits those of the channels to the size of a packet.
    pub(crate) fn settle(&self, channels: &mut [ChannelConfig]) -> Result<(), FramingError> {
        let smallest = 2 * FRAGMENT_SLACK_BYTES;
        let most_fragment = MAX_PAYLOAD - FRAGMENT_HEADER_SIZE - Header::MAX_SIZE;
        ConfigError::within("packet_fragment_size", self.packet_fragment_bytes, smallest, most_fragment)?;
        let most = self.packet_fragment_bytes * MAX_FRAGMENTS;
        ConfigError::within("max_packet_size", self.max_packet_bytes, smallest, most)?;
        if self.channels.len() > channels.len() {
            let (given, most) = (self.channels.len(), channels.len());
            return Err(FramingError::YojimboChannels { given, most });
        }
        for (number, channel) in channels.iter_mut().enumerate() {
            let kind = channel.kind;
            if !matches!(kind, ChannelKind::Reliable { ordered: true, .. } | ChannelKind::Unreliable { .. }) {
                return Err(FramingError::Kind { channel: number, kind: kind.name() });
            }
            let settings = self.channel(number);
            let cuts = settings.blocks && matches!(kind, ChannelKind::Reliable { .. });
            settings.validate(self.max_packet_bytes, cuts)?;
            channel.max_message_bytes = channel.max_message_bytes.min(self.max_message_bytes());
        }
        Ok(())
    }

    /// The settings of a channel.
    pub(crate) fn channel(&self, number: usize) -> YojimboChannel {
        self.channels.get(number).copied().unwrap_or_default()
    }

    /// The room in a packet for a message, with its block or a fragment of it.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.max_packet_bytes - PACKET_OVERHEAD_BYTES
    }

    /// The packet settings, as far as this framing determines them.
    pub(crate) fn packets(&self, config: &AckEndpointConfig) -> AckEndpointConfig {
        let max_fragments = self.max_packet_bytes.div_ceil(self.packet_fragment_bytes);
        AckEndpointConfig {
            max_packet_size: self.max_packet_bytes,
            header: HeaderKind::Standard,
            reassembly: ReassemblyConfig {
                window: AckEndpointConfig::large().reassembly.window,
                fragment_size: self.packet_fragment_bytes,
                max_fragments,
                max_bytes: config.reassembly.max_bytes.max(self.packet_fragment_bytes * max_fragments),
            },
            ..config.clone()
        }
    }

    /// Whether messages of this type carry a block.
    pub(crate) fn is_block(&self, message_type: u16) -> bool {
        self.block_types.contains(&message_type)
    }

    /// Checks that a channel takes a message with a block.
    pub(super) fn check_block(
        &self,
        channel: usize,
        kind: &ChannelKind,
        message: &Message,
    ) -> Result<(), SendError> {
        let settings = self.channel(channel);
        if !settings.blocks {
            return Err(SendError::BlocksDisabled);
        }
        let bytes = message.block.as_ref().map_or(0, |block| block.len());
        let max_bytes = settings.max_block_bytes;
        if bytes == 0 || bytes > max_bytes {
            return Err(SendError::Block { bytes, max_bytes });
        }
        let reliable = matches!(kind, ChannelKind::Reliable { .. });
        let beside = if reliable { bytes.min(settings.block_fragment_bytes) } else { bytes };
        let bytes = message.encoded.max_bits().div_ceil(8) + beside;
        let (max_bytes, max_packet_bytes) = (self.max_message_bytes(), self.max_packet_bytes);
        if bytes > max_bytes {
            return Err(SendError::Packet { bytes, max_bytes, max_packet_bytes });
        }
        Ok(())
    }
}

/// Why messages and channels don't fit a framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A setting is out of its bound.
    Setting(ConfigError),
    /// Yojimbo has no channel of this kind.
    Kind { channel: usize, kind: &'static str },
    /// Yojimbo has no messages but the game's.
    System {
        /// The layer that they belong to.
        layer: &'static str,
    },
    /// There are settings for more channels than the protocol has.
    YojimboChannels { given: usize, most: usize },
}

impl From<ConfigError> for FramingError {
    fn from(error: ConfigError) -> Self {
        FramingError::Setting(error)
    }
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramingError::Setting(error) => error.fmt(f),
            FramingError::Kind { channel, kind } => {
                write!(f, "channel {channel} is {kind}; yojimbo has only reliable_ordered and unreliable")
            }
            FramingError::System { layer } => {
                write!(f, "yojimbo has no {layer}: the other side can't receive them")
            }
            FramingError::YojimboChannels { given, most } => {
                write!(f, "yojimbo has settings for {given} channels, and the protocol has {most}")
            }
        }
    }
}

impl core::error::Error for FramingError {}
