//! Messages on their way: encoded and waiting to be sent, or read and waiting to be taken.

use std::sync::Arc;

use crate::store::{SmallBytes, Spares};
use crate::time::Instant;
use crate::wire::{BitReader, Encoded};

/// The overhead of every buffered message in the receiver's byte window, so that tiny messages can't fill memory with
/// their bookkeeping.
pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// A message encoded once, to be placed in packets of any number of connections.
#[derive(Clone, Debug)]
pub struct Message {
    // Index into `super::Protocol::messages`.
    pub message_type: u16,
    pub encoded: Encoded,
    /// The block of a block message; only yojimbo's framing has them.
    pub block: Option<Block>,
}

/// The bytes of a block message. A clone shares them. One pointer: most messages have none.
pub type Block = Arc<Vec<u8>>;

impl Message {
    /// A message without a block.
    pub fn new(message_type: u16, encoded: Encoded) -> Self {
        Message { message_type, encoded, block: None }
    }

    /// The bytes of its block; none without one.
    pub(crate) fn block_bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| block)
    }

    /// The message's size in the receiver's byte window: an upper bound, wherever in a packet the message lies.
    pub fn window_bytes(&self) -> usize {
        window_bytes(self.encoded.max_bits()) + self.block.as_ref().map_or(0, |block| block.len())
    }
}

// See `Message::window_bytes`.
pub(crate) fn window_bytes(body_bits: usize) -> usize {
    MESSAGE_OVERHEAD_BYTES + body_bits.div_ceil(8)
}

/// A message received and not yet taken by the application.
#[derive(Clone, Debug)]
pub struct Received {
    // Index into `super::Protocol::messages`.
    pub message_type: u16,
    /// The packet that brought it first.
    pub packet_sequence: u64,
    /// When that packet was handled.
    pub received_at: Instant,
    /// Latest channels: what this is the value of. 0 on others.
    pub key: u32,
    /// Redundant channels: how many messages before this one never came. 0 on others.
    pub missed: u16,
    /// Declared types: the row of their schema. Opaque types: see [`OpaqueBody`].
    pub body: SmallBytes,
    /// The block of a block message.
    pub block: Option<Block>,
    /// Its size in the byte window.
    pub(crate) window_bytes: usize,
}

impl Received {
    /// Bytes of memory that its contents take.
    pub(crate) fn memory(&self) -> usize {
        self.body.len() + self.block.as_ref().map_or(0, |block| block.len())
    }

    /// Bytes of memory including itself, for a message that is only stored because it arrived.
    pub(crate) fn held_memory(&self) -> usize {
        size_of::<Self>() + self.memory()
    }
}

/// Memory to read the bodies of messages in.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// Lent memory for the message being read.
    pub(crate) scratch: Vec<u8>,
    pub(crate) spares: Spares,
}

impl Bodies {
    /// Where to read the next message.
    pub(crate) fn cleared(&mut self) -> &mut Vec<u8> {
        self.scratch.clear();
        &mut self.scratch
    }

    /// The body read there.
    pub(crate) fn kept(&mut self) -> SmallBytes {
        self.spares.keep(&self.scratch)
    }
}

/// The body of an opaque message: its bits, cut out of the packet at their position, so that alignment inside keeps
/// its meaning.
///
/// The bits are the peer's and unchecked; the framing made the rest, so reading it can't fail.
///
/// Layout of the bytes: start bit (0 to 7) u8, length in bits u32 little-endian, the bytes that hold the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpaqueBody<'a> {
    /// The bit of the first byte at which the body begins.
    pub start_bit: u32,
    /// Bits of the body.
    pub bits: usize,
    /// The bytes that hold them.
    pub bytes: &'a [u8],
}

impl<'a> OpaqueBody<'a> {
    const HEADER: usize = 5;

    /// Reads what [`OpaqueBody::write`] wrote.
    ///
    /// # Panics
    /// When `body` is not the body of an opaque message.
    pub fn read(body: &'a [u8]) -> Self {
        let bits = u32::from_le_bytes(body[1..Self::HEADER].try_into().expect("four bytes"));
        OpaqueBody { start_bit: u32::from(body[0]), bits: bits as usize, bytes: &body[Self::HEADER..] }
    }

    /// A reader of its bits.
    pub fn reader(&self) -> BitReader<'a> {
        BitReader::with_range(self.bytes, self.start_bit as usize, self.bits)
    }

    /// Appends the body as one block of bytes.
    pub fn write(&self, body: &mut Vec<u8>) {
        body.push(self.start_bit as u8);
        body.extend_from_slice(&(self.bits as u32).to_le_bytes());
        body.extend_from_slice(self.bytes);
    }
}

/// The options of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// On latest channels: the key whose value the message is.
    pub key: u32,
    /// The application's own name for it: notifications and candidates carry it.
    pub tag: u32,
    /// Report the message's outcome: see `Connection::poll_notification`.
    pub notify: bool,
}

impl SendOptions {
    /// The tag of the message's notification, if one was asked for.
    pub(crate) fn notify_tag(self) -> Option<u32> {
        self.notify.then_some(self.tag)
    }
}

/// A message handed to a channel.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) message: Message,
    pub(crate) at: Instant,
    pub(crate) options: SendOptions,
}

/// The part of an entry in front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    None,
    /// The message's number in its channel.
    Id(u16),
    /// The key of the value.
    Key(u16),
}

/// A message that the packet being composed carries.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) prefix: Prefix,
    pub(crate) message: Message,
    /// The channel's own name for it, for when the packet's outcome is known.
    pub(crate) mark: u64,
    /// Which fragment of it, if it is cut.
    pub(crate) fragment: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opaque_body_keeps_its_phase() {
        let body = OpaqueBody { start_bit: 5, bits: 13, bytes: &[1, 2, 3] };
        let mut bytes = Vec::new();
        body.write(&mut bytes);
        assert_eq!(OpaqueBody::read(&bytes), body);
    }
}
