//! Messages and blocks in parts: how they are cut, and what is read of them from packets.

use core::ops::Range;

use super::message::Received;

/// A fragment of bytes that are cut into pieces of `size`; the last one may be shorter.
pub(crate) fn fragment_of(whole: &[u8], index: usize, size: usize) -> &[u8] {
    let end = whole.len().min((index + 1) * size);
    whole.get(index * size..end).unwrap_or_default()
}

/// A fragment of a message, read from a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageFragment {
    pub(crate) channel: u8,
    /// The message's number in its channel.
    pub(crate) id: u16,
    pub(crate) message_type: u16,
    /// Bits of the whole body at bit position 0.
    pub(crate) bits: usize,
    /// The value of its bits.
    pub(crate) count: usize,
    pub(crate) index: usize,
    /// The range of its bytes within the packet's fragment bytes: as long as its place requires.
    pub(crate) bytes: Range<usize>,
}

/// A fragment of a block, read from a packet.
#[derive(Debug)]
pub(crate) struct BlockFragment {
    /// The message's number in its channel.
    pub(crate) id: u16,
    pub(crate) count: usize,
    pub(crate) index: usize,
    pub(crate) data: Box<[u8]>,
    /// The message, with fragment 0.
    pub(crate) message: Option<Received>,
}

/// A claim of the peer about a message that can't be true if both sides have the same configuration and never lost a
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelFault {
    /// A message or credit is beyond the window that both sides know, or has another kind of number than the channel's.
    Window,
    /// Fragments of a message or a block contradict each other.
    Fragments,
    /// A fragment of a block is shorter than its place asks for, or reaches beyond the largest block.
    FragmentSize,
}
