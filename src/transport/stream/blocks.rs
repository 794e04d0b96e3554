//! Blocks: messages with more bytes attached than a packet holds, in fragments over many packets. Yojimbo's framing
//! has them on its reliable channels, one at a time, in the order of the messages.
//!
//! Promises: a block is handed out whole, once every fragment is here; the memory of a partial one is that of its
//! fragments. A fragment is sent again when the packet that carried it is lost, or after a quarter of a second,
//! doubled with each try. Refuses: fragments that disagree about their number or have another size than their place
//! requires.

use core::time::Duration;

use super::fragments::Parts;
use crate::transport::message::Received;
use crate::transport::parts::{BlockFragment, ChannelFault};
use crate::transport::protocol::{Resend, YojimboChannel};

/// A fragment isn't sent again before this time without an ack, even if the round trip is shorter.
pub(super) const MIN_RESEND_TIMEOUT: Duration = Duration::from_millis(250);

/// A fragment goes in one packet at a time.
pub(super) const RESEND: Resend = Resend::Adaptive { early_copies: 1 };

/// The block being received.
#[derive(Debug)]
pub(super) struct ReceiveBlock {
    parts: Parts,
    message: Option<Received>,
}

impl ReceiveBlock {
    pub(super) fn new(count: usize) -> Self {
        ReceiveBlock { parts: Parts::new(count), message: None }
    }

    /// Takes a fragment; returns the message with its block if it was the last one missing.
    pub(super) fn handle(
        &mut self,
        fragment: BlockFragment,
        limits: &YojimboChannel,
    ) -> Result<Option<Received>, ChannelFault> {
        let BlockFragment { count, index, data, message, .. } = fragment;
        if count != self.parts.count || index >= count {
            return Err(ChannelFault::Fragments);
        }
        let last = index + 1 == count;
        let size = limits.block_fragment_bytes;
        let beyond = index * size + data.len() > limits.max_block_bytes;
        if beyond || (!last && data.len() != size) {
            return Err(ChannelFault::FragmentSize);
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
