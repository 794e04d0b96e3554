//! Blocks: messages with more bytes beside them than a packet holds, in fragments over many packets. Yojimbo's framing has
//! them on its reliable channels, one at a time, in the order of the messages.
//!
//! Promises: a block is handed out whole, once every fragment is here; the memory of a partial one is that of its fragments
//! and sixteen bytes for each that is missing. A fragment is sent again when the packet that carried it is lost, or after a
//! quarter of a second.
//! Refuses: fragments that disagree about their number or have another size than their place asks for.

use core::time::Duration;

use super::Moment;
use crate::time::Instant;
use crate::transport::message::{Message, Received};

/// When a fragment is sent again of which nothing was heard.
const RESEND: Duration = Duration::from_millis(250);

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
        let end = block.len().min((self.index + 1) * self.size);
        block.get(self.index * self.size..end).unwrap_or_default()
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

/// The block being sent: the oldest message that the peer is not known to have.
#[derive(Debug)]
pub(super) struct SendBlock {
    pub(super) mark: u64,
    fragments: Vec<Launched>,
    acked: usize,
    /// All fragments before this one are acked.
    first_open: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Launched {
    last_sent: Option<Instant>,
    /// Packets that carry it and are neither acked nor lost.
    in_flight: u32,
    acked: bool,
}

impl Launched {
    fn is_due(&self, moment: &Moment) -> bool {
        let wait = RESEND.max(moment.resend.timeout);
        !self.acked && (self.in_flight == 0 || self.last_sent.is_none_or(|sent| sent + wait <= moment.now))
    }
}

impl SendBlock {
    pub(super) fn new(mark: u64, fragments: usize) -> Self {
        SendBlock { mark, fragments: vec![Launched::default(); fragments], acked: 0, first_open: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.fragments.len()
    }

    /// The first fragment that is to be sent now.
    pub(super) fn next(&self, moment: &Moment) -> Option<usize> {
        let open = self.fragments.get(self.first_open..).unwrap_or_default();
        open.iter().position(|fragment| fragment.is_due(moment)).map(|place| self.first_open + place)
    }

    /// Notes that a packet carries a fragment; whether one did before.
    pub(super) fn launch(&mut self, index: usize, now: Instant) -> bool {
        let Some(fragment) = self.fragments.get_mut(index) else { return false };
        fragment.in_flight += 1;
        fragment.last_sent.replace(now).is_some()
    }

    /// A packet that carried a fragment was acked; whether the whole block is.
    pub(super) fn handle_ack(&mut self, index: usize) -> bool {
        if let Some(fragment) = self.fragments.get_mut(index)
            && !core::mem::replace(&mut fragment.acked, true)
        {
            self.acked += 1;
        }
        while self.fragments.get(self.first_open).is_some_and(|fragment| fragment.acked) {
            self.first_open += 1;
        }
        self.acked == self.fragments.len()
    }

    pub(super) fn handle_lost(&mut self, index: usize) {
        if let Some(fragment) = self.fragments.get_mut(index) {
            fragment.in_flight = fragment.in_flight.saturating_sub(1);
        }
    }
}

/// The block being received.
#[derive(Debug)]
pub(super) struct ReceiveBlock {
    fragments: Vec<Option<Box<[u8]>>>,
    missing: usize,
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
        let fragments = core::iter::repeat_with(|| None).take(count).collect();
        ReceiveBlock { fragments, missing: count, message: None }
    }

    /// Takes a fragment; the message with its block when it was the last one missing.
    pub(super) fn handle(
        &mut self,
        fragment: BlockFragment,
        limits: BlockLimits,
    ) -> Result<Option<Received>, Desync> {
        let BlockFragment { count, index, data, message, .. } = fragment;
        if count != self.fragments.len() {
            return Err(Desync::FragmentCount);
        }
        let last = index + 1 == count;
        let beyond = index * limits.fragment_bytes + data.len() > limits.max_bytes;
        if beyond || (!last && data.len() != limits.fragment_bytes) {
            return Err(Desync::FragmentSize);
        }
        let Some(place) = self.fragments.get_mut(index) else { return Err(Desync::FragmentCount) };
        if place.is_some() {
            return Ok(None);
        }
        *place = Some(data);
        self.missing -= 1;
        self.message = self.message.take().or(message);
        if self.missing > 0 {
            return Ok(None);
        }
        let parts: Vec<Box<[u8]>> = self.fragments.drain(..).flatten().collect();
        let block = parts.concat();
        Ok(self.message.take().map(|message| Received {
            window_bytes: message.window_bytes + block.len(),
            block: Some(block.into()),
            ..message
        }))
    }
}
