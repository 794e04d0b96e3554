//! The messages selected for the packet that is being composed, a set of streams, and external streams: payload channels
//! that a feature above the transport fills while packets are composed.
//!
//! A feature says once that it has data for a peer, and the minimum room it needs (the stream is busy then: one bit).
//! Each packet with that much room offers it, by share as to any other stream; the feature writes at most that much
//! and returns a record. The record gets one notification, in packet order.
//!
//! Promises: a feature with nothing to write is asked once and not again before it says that it has something.
//! Refuses: more bits than were offered, which is the feature's mistake: none of them are sent.

use super::resend::ResendTimer;
use crate::store::ones;
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::message::{Message, Prefix, Selected};
use crate::transport::protocol::{Cost, Protocol};
use crate::wire::BitWriter;

/// Some of the streams, by a bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Set(u64);

impl Set {
    pub(super) fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.0 &= !(1 << index);
    }

    pub(super) fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The one in it, if there is only one.
    pub(super) fn only(self) -> Option<usize> {
        self.0.is_power_of_two().then_some(self.0.trailing_zeros() as usize)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        ones(self.0)
    }
}

/// The selection for the packet being composed: memory that connections share.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// By stream, as many as were ever selected.
    selected: Vec<Vec<Selected>>,
    /// Streams with something in the packet.
    pub(super) chosen: Set,
    /// Records of more bits than were offered, by channel: nothing of them is sent.
    pub(crate) refused: Vec<(u8, u32)>,
}

impl Draft {
    /// Begins an empty packet.
    pub(crate) fn clear(&mut self) {
        self.chosen.iter().for_each(|index| self.selected[index].clear());
        self.chosen = Set::default();
    }

    /// The selected messages, streams ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[Selected])> {
        self.chosen.iter().map(|index| (index, &*self.selected[index]))
    }

    /// Whether no message is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Where a stream's messages go.
    pub(super) fn of(&mut self, index: usize) -> &mut Vec<Selected> {
        if self.selected.len() <= index {
            self.selected.resize_with(index + 1, Vec::new);
        }
        &mut self.selected[index]
    }

    /// Puts what several selections took into the order of ids: receivers go through a packet in order.
    pub(super) fn sort(&mut self) {
        for index in self.chosen.iter() {
            let selected = &mut self.selected[index];
            let Some(&Selected { prefix: Prefix::Id(first), .. }) = selected.first() else { continue };
            let ahead = |selected: &Selected| match selected.prefix {
                Prefix::Id(id) => distance(id, first),
                _ => 0,
            };
            if !selected.is_sorted_by_key(ahead) {
                selected.sort_by_key(ahead);
            }
        }
    }
}

/// A feature that fills payload channels.
pub trait Fill {
    /// A packet has room for `bits` bits on this channel. Writes at most that many into `writer`, which is empty, and
    /// returns a record under which the packet's outcome is reported. Returns None if there is nothing to write, or
    /// if so little room is useless.
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32>;
}

/// The time at which a packet is composed, and the link's estimates then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendContext {
    pub(crate) now: Instant,
    /// It is a tick's, not one between ticks.
    pub(crate) tick: bool,
    pub(crate) resend: ResendTimer,
    /// A feature exists that fills external streams.
    pub(crate) fills: bool,
}

/// The packet that streams write into, and the feature that fills external ones.
pub(crate) struct PacketDraft<'a, 'f> {
    /// The feature to ask; None between ticks.
    pub(crate) fill: Option<&'a mut (dyn Fill + 'f)>,
    pub(crate) draft: &'a mut Draft,
    pub(crate) writer: &'a mut BitWriter,
    pub(crate) context: &'a SendContext,
    pub(crate) protocol: &'a Protocol,
}

/// One channel's messages for one packet, while they are selected.
pub(crate) struct Filling<'a> {
    pub(super) context: &'a SendContext,
    pub(super) cost: Cost<'a>,
    pub(super) bits_left: usize,
    /// The bits that were used, with those of the entry.
    pub(super) used: usize,
    pub(super) selected: &'a mut Vec<Selected>,
}

impl Filling<'_> {
    /// Whether this many bits more fit.
    pub(super) fn has_room(&self, bits: usize) -> bool {
        self.used + bits <= self.bits_left
    }

    /// Adds a whole message of this many bits.
    pub(super) fn push(&mut self, bits: usize, prefix: Prefix, message: Message, mark: u64) {
        self.used += bits;
        self.selected.push(Selected { prefix, message, mark, fragment: None });
    }
}
