//! Messages that needn't wait are read straight into the tables of the tick, which the connection's owner lends for a
//! datagram. A packet's writes there are a transaction.

use super::message::Prefix;
use crate::time::Instant;

/// The tables of a tick, lent by the connection's owner to
/// [`Connection::handle_into`](super::Connection::handle_into). A `dyn` trait, so that reading packets isn't generic:
/// a layer above implements it, and a call for each message costs little beside reading it.
pub trait DirectTables {
    /// A datagram begins: everything until the next call belongs to it. Returns another number after each time that the
    /// application took the tables.
    fn begin(&mut self, now: Instant) -> u64;

    /// Where to append the body of a message; None if it must wait in its channel. [`DirectTables::settle`] or
    /// [`DirectTables::cut`] follows.
    fn place(&mut self, packet_sequence: u64, channel: u8, message_type: u16) -> Option<&mut Vec<u8>>;

    /// The body is complete.
    fn settle(&mut self);

    /// The datagram is dropped or refused: removes everything since it began.
    fn cut(&mut self);

    /// A message that waits in a channel needs the place of the oldest one here from the same channel.
    fn push_out(&mut self, channel: u8);
}

/// Bytes of one connection's messages in one tick, as many as 1,536 of 64 bytes have, above which the others wait in their
/// channels, which costs more. The bounds of the channels hold all the same: what a flood makes us keep is both.
pub(crate) const MAX_DIRECT_BYTES: usize = 192 << 10;

/// Where the messages of a packet may go while it is read.
pub(crate) struct Destination<'a> {
    pub(crate) tables: &'a mut dyn DirectTables,
    /// Which messages of a channel needn't wait.
    pub(crate) room: &'a dyn Fn(usize) -> DirectRoom,
    /// Bytes of messages that needn't wait, of all channels. The last one may exceed it.
    pub(crate) bytes: usize,
}

/// Which messages of a packet on one channel may go into the tick's tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirectRoom {
    /// How many of them may.
    pub(crate) messages: usize,
    /// Ordered channels: the number of the first one. The others follow it without a gap.
    pub(crate) first: Option<u16>,
    /// Bytes of the window that are left to them.
    pub(crate) window_bytes: usize,
}

impl DirectRoom {
    /// Whether another message may, after those that are there, even if it is as large as it can be.
    pub(crate) fn takes(&self, prefix: Prefix, placed: &Placed, max_window_bytes: usize) -> bool {
        (placed.count as usize) < self.messages
            && placed.window_bytes + max_window_bytes <= self.window_bytes
            && self.first.is_none_or(|first| prefix == Prefix::Id(first.wrapping_add(placed.count as u16)))
    }
}

/// The messages of a packet on one channel that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) channel: u8,
    pub(crate) count: u32,
    /// What they take of the window.
    pub(crate) window_bytes: usize,
}
