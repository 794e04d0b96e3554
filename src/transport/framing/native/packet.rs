//! The contents of a packet.

use core::time::Duration;

use crate::transport::chunks::Item;
use crate::transport::direct_tables::Placed;
use crate::transport::ledger::AckRange;
use crate::transport::message::{Prefix, Received};
use crate::transport::parts::MessageFragment;
use crate::transport::peer_clock::ReceiveTime;

/// The bits of an ack delay, and its unit.
pub(super) const DELAY_BITS: u32 = 14;
pub(super) const DELAY_UNIT_NANOS: u64 = 64_000;

/// The version of this framing.
pub const VERSION: u8 = 4;

/// UTF-8 bytes of the text with which an application ends a connection: a sentence, and no more than a game's
/// smallest packets even when it is repeated.
pub const MAX_DETAIL_BYTES: usize = 128;

/// Why the peer ended the connection, or why we do. The numbers are the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The application closed it.
    Closed = 1,
    /// The server's application wants this player gone.
    Kicked = 2,
    /// The sides' protocols differ.
    Mismatch = 3,
    /// The peer broke the protocol.
    Violation = 4,
    /// The same client connected again.
    Replaced = 5,
    /// Nothing was heard of the peer for too long.
    TimedOut = 6,
    /// A channel to the peer stayed full for too long.
    Stalled = 7,
}

impl CloseReason {
    pub(super) fn from_number(number: u64) -> Self {
        match number {
            2 => CloseReason::Kicked,
            3 => CloseReason::Mismatch,
            4 => CloseReason::Violation,
            5 => CloseReason::Replaced,
            6 => CloseReason::TimedOut,
            7 => CloseReason::Stalled,
            _ => CloseReason::Closed,
        }
    }
}

/// Everything in a packet besides messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// The protocol hash, while the peer may not know it.
    pub(crate) hello: Option<u64>,
    pub(crate) close: Option<CloseReason>,
    /// The application's text for the close: 1 to [`MAX_DETAIL_BYTES`] bytes.
    pub(crate) detail: Option<Box<str>>,
    pub(crate) ack_delay: Option<Duration>,
    /// When the packet arrived that the ack delay is about. Omitted without a delay.
    pub(crate) received_at: Option<ReceiveTime>,
    pub(crate) ranges: Vec<AckRange>,
    /// (channel, unread id), channels ascending.
    pub(crate) credits: Vec<(u8, u16)>,
}

/// A packet read whole.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    pub(crate) control: Control,
    pub(crate) messages: Vec<PacketMessage>,
    /// Messages, with those that needn't wait.
    pub(super) count: usize,
    /// The messages that were placed directly in the tables.
    pub(crate) placed: Vec<Placed>,
    /// Bytes of memory of those.
    pub(crate) placed_memory: usize,
    /// Fragments of messages, and their bytes.
    pub(crate) fragments: Vec<MessageFragment>,
    pub(crate) fragment_bytes: Vec<u8>,
    /// Bytes of memory that the messages and fragments take.
    pub(crate) memory: usize,
    /// The chunk items, with the bytes of their slices.
    pub(crate) chunk_items: Vec<Item>,
    pub(crate) slices: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct PacketMessage {
    pub(crate) channel: u8,
    pub(crate) prefix: Prefix,
    pub(crate) received: Received,
}
