//! External streams: payload channels that a feature above the transport fills while packets are composed.
//!
//! A feature says once that it has something for a peer, and in which least room (the stream is busy then: one bit). Each
//! packet that has the room offers it, by share as to any other stream; the feature writes at most that much and gives a
//! record. The record is told what became of the packet, once and in the order of the packets.
//!
//! Promises: who has nothing to write is asked once and not again before it says that it has something.
//! Refuses: more bits than were offered, which is the feature's mistake: nothing of them is sent.

use super::streams::Draft;
use crate::wire::BitWriter;

/// A feature that fills payload channels.
pub trait Fill {
    /// A packet has room for `bits` bits on this channel. Writes at most as many into `writer`, which is empty, and returns
    /// the record by which the packet's fate is told; None when there is nothing to write, or no use in so little room.
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32>;
}

/// What streams write a packet into, and who fills external ones.
pub(crate) struct Offer<'a, 'f> {
    /// Who is asked; None between ticks.
    pub(crate) fill: Option<&'a mut (dyn Fill + 'f)>,
    pub(crate) draft: &'a mut Draft,
    pub(crate) writer: &'a mut BitWriter,
}
