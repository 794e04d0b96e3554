//! When each tick arrived, and between which of them nothing was lost.
//!
//! A ghost without a record in a tick was at rest, if all of that tick arrived. Losses show in the sequence numbers of
//! packets.

use std::collections::VecDeque;

use crate::time::Instant;

/// How many packets are remembered: a second or more, and more than any rest that is still drawn as one motion.
const KEPT: usize = 256;

/// How many arrivals wait for the view; the oldest make room.
const WAITING: usize = 256;

/// A packet of the server that carries its tick, with or without ghosts.
#[derive(Clone, Copy, Debug)]
pub struct PacketTime {
    pub at: Instant,
    pub sequence: u64,
    /// How many packets between it and the one before it haven't arrived.
    pub lost: u32,
}

/// A tick of the server that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickArrival {
    pub tick: u32,
    pub at: Instant,
    /// How many packets between it and the arrival before it were lost.
    pub lost: u32,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sequence: u64,
    tick: u32,
    /// No packet was lost between the one before and this one.
    is_next: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReceivedTicks {
    /// By rising sequence number.
    packets: VecDeque<Packet>,
    waiting: VecDeque<TickArrival>,
}

impl ReceivedTicks {
    /// Notes a packet of a tick.
    pub(super) fn push(&mut self, time: PacketTime, tick: u32) {
        let PacketTime { at, sequence, lost } = time;
        let place = self.packets.partition_point(|other| other.sequence < sequence);
        if self.packets.get(place).is_some_and(|other| other.sequence == sequence) {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(TickArrival { tick, at, lost });
        let is_next = lost == 0 && place == self.packets.len();
        self.packets.insert(place, Packet { sequence, tick, is_next });
        if self.packets.len() > KEPT {
            self.packets.pop_front();
        }
    }

    /// The sequence number of the newest packet.
    pub(super) fn newest(&self) -> Option<u64> {
        self.packets.back().map(|newest| newest.sequence)
    }

    /// The ticks that arrived since the last call.
    pub(super) fn take(&mut self) -> impl Iterator<Item = TickArrival> {
        self.waiting.drain(..)
    }

    /// Whether all of the tick before this one is known to have arrived. Ghosts without a record were unchanged then.
    pub(super) fn rested(&self, tick: u32) -> bool {
        let first_of = |tick| self.packets.partition_point(|other| other.tick < tick);
        let tick_at = |index: usize| self.packets.get(index).map(|packet| packet.tick);
        let first = first_of(tick);
        let Some(before) = first.checked_sub(1).and_then(tick_at) else { return false };
        // If nothing was sent in the tick before, nothing of it can be missing.
        let begin = if before + 1 < tick { first } else { first_of(before) };
        tick_at(first) == Some(tick) && (begin..=first).all(|index| self.is_tight(index))
    }

    /// Whether nothing was lost between a packet and the one before it.
    fn is_tight(&self, index: usize) -> bool {
        let pair = index.checked_sub(1).map(|before| (self.packets[before], self.packets[index]));
        pair.is_some_and(|(a, b)| b.is_next || b.sequence - a.sequence == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u64, lost: u32) -> PacketTime {
        PacketTime { at: Instant::ZERO, sequence, lost }
    }

    #[test]
    fn packets_without_a_tick_hide_no_rest() {
        let mut received = ReceivedTicks::default();
        for (sequence, lost, tick) in [(1, 0, 10), (5, 0, 14), (9, 1, 18)] {
            received.push(packet(sequence, lost), tick);
        }
        assert!(received.rested(14), "all packets between arrived");
        assert!(!received.rested(18), "one was lost");
    }

    #[test]
    fn rest_is_known_where_nothing_was_lost() {
        let mut received = ReceivedTicks::default();
        for (sequence, tick) in [(8, 10), (9, 11), (10, 12), (12, 14), (13, 15), (14, 15), (15, 16), (16, 20)]
        {
            received.push(packet(sequence, 1), tick);
        }
        assert!(!received.rested(11), "what was before is not known");
        assert!(received.rested(12));
        assert!(!received.rested(1000));
        assert!(!received.rested(14), "one was lost");
        assert!(!received.rested(15), "one of the tick before may have been lost");
        assert!(received.rested(16));
        assert!(received.rested(20), "nothing was sent meanwhile");
        assert!(!received.rested(19));
        received.push(packet(11, 0), 13);
        assert!(received.rested(14));
        assert_eq!(received.take().count(), 9);
        assert_eq!(received.take().count(), 0);
    }
}
