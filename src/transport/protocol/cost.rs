//! The overhead of a framing for the messages of a channel: compiled once per protocol, because each packet needs it.

use super::channel::{ChannelConfig, ChannelKind};
use super::{Body, Framing, Protocol, bits_to_name_one_of};
use crate::transport::message::Message;
use crate::transport::parts::fragment_of;
use crate::wire::Measure;

/// Bytes of a fragment of a reliable message: larger messages are cut. Beside it a datagram has room for small messages, and
/// a strict channel may have it in the nine tenths of a packet that it may fill.
pub const FRAGMENT_BYTES: usize = 1024;

/// Bits of a message id whose predecessor isn't known: the widest relative integer.
pub(crate) const MAX_ID_BITS: usize = 23;

/// The bits a framing spends around the messages of one channel: upper bounds, so that what a channel selects fits.
#[derive(Clone, Debug)]
pub(crate) struct ChannelCost {
    pub(crate) entry: usize,
    /// Once per message, besides id, key and body.
    message: usize,
    pub(crate) key: usize,
    /// The messages are payloads: no message has a type.
    payload: bool,
    /// Messages of the channel that a packet may have.
    pub(crate) max_messages: usize,
    /// The length of a block that rides with its message.
    block: usize,
    /// Bytes of a fragment: of a block, or of a message that is cut.
    pub(crate) fragment_bytes: usize,
    /// Bits of a packet around a fragment.
    fragment_entry: usize,
    /// Messages larger than a fragment are cut.
    cuts: bool,
    /// The most bits of a message.
    max_bits: usize,
}

/// [`ChannelCost`] with the data for the size of a message.
#[derive(Clone, Copy)]
pub(crate) struct Cost<'a> {
    protocol: &'a Protocol,
    channel: &'a ChannelCost,
}

impl core::ops::Deref for Cost<'_> {
    type Target = ChannelCost;

    fn deref(&self) -> &ChannelCost {
        self.channel
    }
}

impl Cost<'_> {
    /// Bits of one message without its id or key, at any position.
    pub(crate) fn message(&self, message: &Message) -> usize {
        let length = if self.payload { 0 } else { self.protocol.opaque_length_bits(message.message_type) };
        let block = message.block.as_ref().map_or(0, |block| self.block + 7 + block.len() * 8);
        self.channel.message + length as usize + message.encoded.max_bits() + block
    }

    /// Bits of a payload of this many bits, at any position, with its entry.
    pub(crate) fn payload(&self, bits: usize) -> usize {
        // Seven for its first align.
        self.entry + self.channel.message + bits + 7
    }

    /// Bits of the largest payload that this room holds and the channel allows, if any.
    pub(crate) fn payload_in(&self, room: usize) -> Option<usize> {
        room.checked_sub(self.payload(0)).map(|bits| bits.min(self.max_bits)).filter(|bits| *bits > 0)
    }

    /// The number of fragments of a message; None for one that goes whole.
    pub(crate) fn fragments(&self, message: &Message) -> Option<usize> {
        let bytes = message.encoded.bits().div_ceil(8);
        (self.cuts && bytes > self.fragment_bytes).then(|| bytes.div_ceil(self.fragment_bytes))
    }

    /// Bits of a fragment of a message that is cut.
    pub(crate) fn message_fragment(&self, message: &Message, index: usize) -> usize {
        self.fragment_entry + 7 + fragment_of(message.encoded.bytes(), index, self.fragment_bytes).len() * 8
    }

    /// Bits of a fragment of a block, with its entry.
    pub(crate) fn block_fragment(&self, message: &Message, index: usize) -> usize {
        let first = if index == 0 { self.channel.message + message.encoded.max_bits() } else { 0 };
        let data = fragment_of(message.block_bytes(), index, self.fragment_bytes);
        self.fragment_entry + 7 + data.len() * 8 + first
    }

    /// Bits of a message id behind the previous one of its selection. The first of a selection has 16 if it is the
    /// first of its entry too, and more if another selection's ids come before it.
    pub(crate) fn id(&self, previous: Option<u16>, id: u16) -> usize {
        let step = |previous| Measure::relative(id.wrapping_sub(previous).into());
        previous.map_or(MAX_ID_BITS, step)
    }
}

impl Protocol {
    /// The framing's overhead for the messages of a channel.
    pub(crate) fn cost(&self, channel: usize) -> Cost<'_> {
        Cost { protocol: self, channel: &self.costs[channel] }
    }

    /// Bits of the length before a body that the core can't read; none for declared types, and none at all in yojimbo's
    /// framing.
    pub(crate) fn opaque_length_bits(&self, message_type: u16) -> u32 {
        match self.messages[usize::from(message_type)].body {
            Body::Opaque { max_bytes } if self.framing == Framing::Native => length_bits(max_bytes as usize),
            _ => 0,
        }
    }

    pub(super) fn compile_costs(&self) -> Vec<ChannelCost> {
        let channels = 0..self.channels.len();
        match self.framing {
            Framing::Native => channels.map(|channel| self.native_cost(channel)).collect(),
            Framing::Yojimbo(_) => channels.map(|channel| self.yojimbo_cost(channel)).collect(),
        }
    }

    fn native_cost(&self, channel: usize) -> ChannelCost {
        let config = &self.channels[channel];
        let payload = config.kind.is_payload();
        let kind = if payload { length_bits(config.max_message_bytes) } else { self.type_bits() };
        // An entry: its flag, the channel, the flag after its last message. A message: a flag before it (counted for
        // the first too, which has none), the type or the length.
        ChannelCost {
            entry: 2 + self.channel_bits() as usize,
            message: 1 + kind as usize,
            key: key_bits(&config.kind) as usize,
            payload,
            max_messages: usize::MAX,
            block: 0,
            fragment_bytes: FRAGMENT_BYTES,
            fragment_entry: self.fragment_bits(config),
            cuts: config.kind.has_credit(),
            max_bits: config.max_message_bytes * 8,
        }
    }

    /// Bits around a fragment of a message, with the flag of its section: the index as wide as that of the largest message.
    fn fragment_bits(&self, config: &ChannelConfig) -> usize {
        let index = bits_to_name_one_of(config.max_message_bytes.div_ceil(FRAGMENT_BYTES));
        let names = self.channel_bits() + self.type_bits();
        2 + 16 + (names + length_bits(config.max_message_bytes) + index) as usize
    }

    fn yojimbo_cost(&self, channel: usize) -> ChannelCost {
        let settings = self.yojimbo_channel(channel);
        let bits = settings.widths();
        let entry = self.channel_bits() as usize + 1;
        let fragment = 16 + (bits.fragment_count * 2 + bits.fragment_bytes) as usize;
        ChannelCost {
            entry: entry + 1 + bits.messages as usize,
            message: self.type_bits() as usize,
            key: 0,
            payload: false,
            max_messages: settings.max_messages_per_packet,
            block: bits.block_bytes as usize,
            fragment_bytes: settings.block_fragment_bytes,
            fragment_entry: entry + fragment,
            cuts: false,
            max_bits: self.channels[channel].max_message_bytes * 8,
        }
    }
}

/// Bits of a key on the wire.
pub(crate) fn key_bits(kind: &ChannelKind) -> u32 {
    if let ChannelKind::Latest { keys } = kind { bits_to_name_one_of(*keys) } else { 0 }
}

/// Bits of a length in bits, of up to this many bytes.
pub(crate) fn length_bits(max_bytes: usize) -> u32 {
    bits_to_name_one_of(max_bytes * 8 + 1)
}
