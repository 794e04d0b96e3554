//! Messages that needn't wait are read straight into the tables of the tick, which the connection's owner lends for a
//! datagram. A packet's writes there are a transaction.

use crate::time::Instant;

/// The tables of a tick, lent by the connection's owner to
/// [`Connection::handle_into`](super::Connection::handle_into). A `dyn` trait, so that reading packets isn't generic:
/// a layer above implements it, and a call for each message costs little beside reading it.
pub trait DirectTables {
    /// Another number after each time that the application took the tables.
    fn tick(&self) -> u64;

    /// A datagram begins: everything until the next call belongs to it.
    fn begin(&mut self, now: Instant);

    /// Where to append the body of a message; None if it must wait in its channel. [`DirectTables::settle`] or
    /// [`DirectTables::cut`] follows.
    fn place(&mut self, packet_sequence: u16, channel: u8, message_type: u16) -> Option<&mut Vec<u8>>;

    /// The body is complete.
    fn settle(&mut self);

    /// The datagram is dropped or refused: removes everything since it began.
    fn cut(&mut self);

    /// A message that waits in a channel needs the place of the oldest one here from the same channel.
    fn push_out(&mut self, channel: u8);
}

/// Bytes of one connection's messages in one tick above which the others wait: its queues have bounds of their own,
/// and the two must not add up to twice as much.
pub(crate) const MAX_DIRECT_BYTES: usize = 96 << 10;

/// Where the messages of a packet may go while it is read.
pub(crate) struct Destination<'a> {
    pub(crate) tables: &'a mut dyn DirectTables,
    /// How many messages of a channel needn't wait.
    pub(crate) room: &'a dyn Fn(usize) -> usize,
    /// Bytes of messages that needn't wait, of all channels. The last one may exceed it.
    pub(crate) bytes: usize,
}
