//! Messages that needn't wait are read straight into the tables of the tick: whoever owns the connection lends them for a
//! datagram. What a packet brings there is a transaction.

use crate::time::Instant;

/// The tables of a tick, lent by whoever owns the connection to [`Connection::handle_into`](super::Connection::handle_into).
/// As `dyn`, so that the reading of packets isn't generic: what implements it is of a layer above, and a call for each message
/// costs little beside reading it.
pub trait DirectTables {
    /// Another number after each time that the application took the tables.
    fn tick(&self) -> u64;

    /// A datagram begins: what comes until the next one is of it.
    fn begin(&mut self, now: Instant);

    /// Where to append the body of a message; None when it is to wait in its channel. [`DirectTables::settle`] follows, or
    /// [`DirectTables::cut`].
    fn place(&mut self, packet_sequence: u16, channel: u8, message_type: u16) -> Option<&mut Vec<u8>>;

    /// The body is where it belongs.
    fn settle(&mut self);

    /// The datagram is dropped or refused: forgets what came since it began.
    fn cut(&mut self);

    /// A message that waits in a channel needs the place of the oldest one here of the same channel.
    fn push_out(&mut self, channel: u8);
}

/// Bytes of messages of one connection in one tick beyond which the others wait: what is behind in its queues has bounds of its
/// own, and the two must not add up to twice as much.
pub(crate) const MAX_DIRECT_BYTES: usize = 96 << 10;

/// Where the messages of a packet may go as it is read.
pub(crate) struct Destination<'a> {
    pub(crate) tables: &'a mut dyn DirectTables,
    /// How many messages of a channel needn't wait.
    pub(crate) room: &'a dyn Fn(usize) -> usize,
    /// Bytes of messages that needn't, of all channels. The last one may take more.
    pub(crate) bytes: usize,
}
