//! How a connection packet looks: which bits stand for acks, credit and messages. The channels don't know.

mod chunk_items;
pub(crate) mod native;
#[cfg(test)]
mod vectors;
pub(crate) mod yojimbo;

pub(crate) use chunk_items::slice_bits;
pub(crate) use native::AckRange;
pub use native::{
    CloseReason, FRAGMENT_BYTES, MAX_DETAIL_BYTES, Refusal, VERSION, alone_bits, begin_alone, write_alone,
};

pub use yojimbo::{
    BodyFault, Extent, Fault, FaultKind, Framing, FramingError, PacketFault, YojimboChannel, YojimboConfig,
};

use super::channel::{Fragment, fragment_of};
use super::message::Message;
use super::protocol::{Body, Protocol, bits_to_name_one_of};
use crate::store::SmallBytes;
use crate::wire::{BitSink, Measure};

/// The bits a framing spends around the messages of one channel: upper bounds, so that what a channel selects
/// fits.
pub(crate) struct Cost<'a> {
    pub(crate) protocol: &'a Protocol,
    /// Once per packet.
    pub(crate) entry: usize,
    /// Once per message, besides id, key and body.
    pub(crate) message: usize,
    /// A key.
    pub(crate) key: usize,
    /// The messages are payloads: no message has a type.
    pub(crate) payload: bool,
    /// Messages of the channel that a packet may have.
    pub(crate) most: usize,
    /// The length of a block that rides with its message.
    pub(crate) block: usize,
    /// Bytes of a fragment: of a block, or of a message that is cut.
    pub(crate) fragment_bytes: usize,
    /// Bits of a packet around a fragment.
    pub(crate) fragment_entry: usize,
    /// Messages larger than a fragment are cut.
    pub(crate) cuts: bool,
}

impl Cost<'_> {
    /// Bits of one message without its id or key, wherever it lies.
    pub(crate) fn message(&self, message: &Message) -> usize {
        let length = if self.payload { 0 } else { opaque_length_bits(self.protocol, message.message_type) };
        let block = message.block.as_ref().map_or(0, |block| self.block + 7 + block.len() * 8);
        self.message + length as usize + message.encoded.max_bits() + block
    }

    /// How many fragments a message goes in; None for one that goes whole.
    pub(crate) fn fragments(&self, message: &Message) -> Option<usize> {
        let bytes = message.encoded.bits().div_ceil(8);
        (self.cuts && bytes > self.fragment_bytes).then(|| bytes.div_ceil(self.fragment_bytes))
    }

    /// Bits of a fragment of a message that is cut.
    pub(crate) fn message_fragment(&self, message: &Message, index: usize) -> usize {
        self.fragment_entry + 7 + fragment_of(message.encoded.bytes(), index, self.fragment_bytes).len() * 8
    }

    /// Bits of a fragment of a block, with its entry.
    pub(crate) fn fragment(&self, fragment: &Fragment) -> usize {
        let first = fragment.index == 0;
        let message = if first { self.message + fragment.message.encoded.max_bits() } else { 0 };
        self.fragment_entry + 7 + fragment.data().len() * 8 + message
    }

    /// Bits of a message id behind the previous one of its selection. The first of a selection has 16 if it is the
    /// first of its entry too, and up to the ladder's 23 if another selection's ids come before it.
    pub(crate) fn id(&self, previous: Option<u16>, id: u16) -> usize {
        previous.map_or(23, |previous| ladder_bits(u32::from(id.wrapping_sub(previous))))
    }
}

/// Bits of a number of at least 1 on the ladder of serialize's relative integers.
pub(crate) fn ladder_bits(number: u32) -> usize {
    let mut measure = Measure::new();
    measure.int_relative(0, number);
    measure.bits_bound()
}

/// What the framing of this protocol spends around the messages of a channel.
pub(crate) fn cost(protocol: &Protocol, channel: usize) -> Cost<'_> {
    match protocol.framing() {
        Framing::Native => native::cost(protocol, channel),
        Framing::Yojimbo(_) => yojimbo::cost(protocol, channel),
    }
}

/// Reads what [`write_alone`] wrote: the message's type and its body. `extent` says where a body ends that only its own code
/// can read and that has no length.
///
/// # Errors
/// Whatever in a packet would be refused.
pub fn read_alone(
    protocol: &Protocol,
    bytes: &[u8],
    extent: Extent<'_>,
) -> Result<(u16, SmallBytes), Refusal> {
    match protocol.framing() {
        Framing::Native => native::read_alone(protocol, bytes),
        Framing::Yojimbo(_) => yojimbo::read_alone(protocol, bytes, extent),
    }
}

/// Bits of the length before a body that the core can't read; none for declared types, and none at all in yojimbo's
/// framing.
pub(crate) fn opaque_length_bits(protocol: &Protocol, message_type: u16) -> u32 {
    if protocol.yojimbo().is_some() {
        return 0;
    }
    match protocol.messages()[usize::from(message_type)].body {
        Body::Declared(_) => 0,
        Body::Opaque { max_bytes } => length_bits(max_bytes as usize),
    }
}

/// Bits of a length in bits, of up to this many bytes.
pub(crate) fn length_bits(max_bytes: usize) -> u32 {
    bits_to_name_one_of(max_bytes * 8 + 1)
}
