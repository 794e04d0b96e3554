//! External streams: payload channels that a feature above the transport fills while packets are composed.
//!
//! A feature says once that it has data for a peer, and the minimum room it needs (the stream is busy then: one bit).
//! Each packet with that much room offers it, by share as to any other stream; the feature writes at most that much
//! and returns a record. The record gets one notification, in packet order.
//!
//! Promises: a feature with nothing to write is asked once and not again before it says that it has something.
//! Refuses: more bits than were offered, which is the feature's mistake: none of them are sent.

use super::draft::Draft;
use crate::wire::BitWriter;

/// A feature that fills payload channels.
pub trait Fill {
    /// A packet has room for `bits` bits on this channel. Writes at most that many into `writer`, which is empty, and
    /// returns a record under which the packet's outcome is reported. Returns None if there is nothing to write, or
    /// if so little room is useless.
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32>;
}

/// The packet that streams write into, and the feature that fills external ones.
pub(crate) struct PacketDraft<'a, 'f> {
    /// The feature to ask; None between ticks.
    pub(crate) fill: Option<&'a mut (dyn Fill + 'f)>,
    pub(crate) draft: &'a mut Draft,
    pub(crate) writer: &'a mut BitWriter,
}
