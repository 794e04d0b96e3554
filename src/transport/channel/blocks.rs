//! Blocks: messages with more bytes beside them than a packet holds, in fragments over many packets. Yojimbo's framing has
//! them on its reliable channels, one at a time, in the order of the messages.
//!
//! Promises: a block is handed out whole, once every fragment is here; the memory of a partial one is that of its fragments.
//! A fragment is sent again when the packet that carried it is lost, or after a quarter of a second, doubled with each try.
//! Refuses: fragments that disagree about their number or have another size than their place asks for.

use core::time::Duration;

use super::fragments::{Parts, fragment_of};
use crate::transport::message::{Message, Received};
use crate::transport::protocol::Resend;

/// When a fragment is sent again of which nothing was heard: not before this, even if the round trip is shorter.
pub(super) const MIN_RESEND_TIMEOUT: Duration = Duration::from_millis(250);

/// A fragment goes in one packet at a time.
pub(super) const RESEND: Resend = Resend::Adaptive { early_copies: 1 };

/// A fragment that the packet being composed carries.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    /// The message's number in its channel.
    pub(crate) id: u16,
    pub(crate) count: usize,
    pub(crate) index: usize,
    /// Bytes of all fragments but the last.
    pub(crate) size: usize,
    /// The message and the whole block.
    pub(crate) message: Message,
    /// By which the channel knows the message again.
    pub(crate) mark: u64,
}

impl Fragment {
    /// Its part of the block.
    pub(crate) fn data(&self) -> &[u8] {
        let block = self.message.block.as_deref().map_or(&[][..], Vec::as_slice);
        fragment_of(block, self.index, self.size)
    }
}

/// A fragment read from a packet.
#[derive(Debug)]
pub(crate) struct BlockFragment {
    /// The message's number in its channel.
    pub(crate) id: u16,
    pub(crate) count: usize,
    /// Below `count`.
    pub(crate) index: usize,
    pub(crate) data: Box<[u8]>,
    /// The message, with fragment 0.
    pub(crate) message: Option<Received>,
}

/// What the peer said that can't be true if both sides are configured alike and never lost a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Desync {
    /// A message beyond the receive window.
    Window,
    /// A fragment of a block of another number of fragments.
    FragmentCount,
    /// A fragment that is shorter than its place asks for, or reaches beyond the largest block.
    FragmentSize,
}

/// The block being received.
#[derive(Debug)]
pub(super) struct ReceiveBlock {
    parts: Parts,
    message: Option<Received>,
}

/// The bounds of the blocks of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLimits {
    /// Bytes of all fragments but the last.
    pub(crate) fragment_bytes: usize,
    /// Bytes of the largest block.
    pub(crate) max_bytes: usize,
}

impl ReceiveBlock {
    pub(super) fn new(count: usize) -> Self {
        ReceiveBlock { parts: Parts::new(count), message: None }
    }

    /// Takes a fragment; the message with its block when it was the last one missing.
    pub(super) fn handle(
        &mut self,
        fragment: BlockFragment,
        limits: BlockLimits,
    ) -> Result<Option<Received>, Desync> {
        let BlockFragment { count, index, data, message, .. } = fragment;
        if count != self.parts.count() || index >= count {
            return Err(Desync::FragmentCount);
        }
        let last = index + 1 == count;
        let beyond = index * limits.fragment_bytes + data.len() > limits.max_bytes;
        if beyond || (!last && data.len() != limits.fragment_bytes) {
            return Err(Desync::FragmentSize);
        }
        if !self.parts.insert(index, data) {
            return Ok(None);
        }
        self.message = self.message.take().or(message);
        if !self.parts.are_whole() {
            return Ok(None);
        }
        let block = self.parts.concat();
        Ok(self.message.take().map(|message| Received {
            window_bytes: message.window_bytes + block.len(),
            block: Some(block.into()),
            ..message
        }))
    }
}
