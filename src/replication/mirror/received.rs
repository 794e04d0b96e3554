//! When each tick arrived, and between which of them nothing was lost.
//!
//! A ghost without a record in a tick was at rest, if all of that tick arrived. Losses show in the sequence numbers of
//! packets.

use std::collections::VecDeque;

use super::super::class::{ACKED_AFTER, LONG_LOSS};
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
    /// How many packets between the one before and this one are missing, at most.
    lost: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReceivedTicks {
    /// By rising sequence number.
    packets: VecDeque<Packet>,
    waiting: VecDeque<TickArrival>,
    /// When packets began to arrive again after a long loss, and how many packets without ghosts came while the server may
    /// have waited for acks.
    waiting_server: Option<(Instant, u32)>,
}

impl ReceivedTicks {
    /// Notes a packet of a tick.
    pub(super) fn push(&mut self, time: PacketTime, tick: u32) {
        let PacketTime { at, sequence, lost } = time;
        let lost = lost + self.waiting_server.take().map_or(0, |(_, count)| count);
        let place = self.packets.partition_point(|other| other.sequence < sequence);
        if self.packets.get(place).is_some_and(|other| other.sequence == sequence) {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(TickArrival { tick, at, lost });
        // What is missing before a packet that was overtaken isn't known.
        let lost = if place == self.packets.len() { lost } else { u32::MAX };
        self.packets.insert(place, Packet { sequence, tick, lost });
        if self.packets.len() > KEPT {
            self.packets.pop_front();
        }
    }

    /// Whether the server may wait for acks, so a packet without ghosts doesn't mean that none changed.
    pub(super) fn may_server_wait(&self, time: PacketTime) -> bool {
        let since = self.waiting_server.map_or(time.at, |(since, _)| since);
        time.lost >= u32::from(LONG_LOSS) && time.at - since < ACKED_AFTER
    }

    /// Counts a packet without ghosts of a server that may wait for acks.
    pub(super) fn note_waiting(&mut self, at: Instant) {
        self.waiting_server.get_or_insert((at, 0)).1 += 1;
    }

    /// The sequence number of the newest packet.
    pub(super) fn newest(&self) -> Option<u64> {
        self.packets.back().map(|newest| newest.sequence)
    }

    /// The ticks that arrived since the last call.
    pub(super) fn take(&mut self) -> impl Iterator<Item = TickArrival> {
        self.waiting.drain(..)
    }

    /// The last tick up to which a ghost rested whose next state is of this tick, and that had none shortly before: the
    /// newest tick of which everything arrived, or the first of as many ticks as packets are missing.
    pub(super) fn rested_until(&self, tick: u32) -> u32 {
        let first_of = |tick| self.packets.partition_point(|other| other.tick < tick);
        let (mut at, mut missing) = (tick, 0);
        loop {
            let first = first_of(at);
            let is_sent = self.packets.get(first).is_some_and(|packet| packet.tick == at);
            let Some(before) = first.checked_sub(1).map(|index| self.packets[index].tick) else { break };
            let begin = first_of(before);
            // If nothing was sent in the tick before, nothing of it can be missing.
            let begins = if before + 1 < at { first } else { begin };
            if is_sent && (begins..=first).all(|index| self.missing_before(index) == Some(0)) {
                return (at - 1).max(tick.saturating_sub(missing + 1));
            }
            missing += (begin + 1..=first).filter_map(|index| self.missing_before(index)).sum::<u32>();
            at = before;
        }
        tick.saturating_sub(missing + 1)
    }

    /// How many packets are missing between a packet and the one before it. None if that isn't known.
    fn missing_before(&self, index: usize) -> Option<u32> {
        let (before, packet) = (self.packets[index.checked_sub(1)?], self.packets.get(index)?);
        let between = (packet.sequence - before.sequence).saturating_sub(1);
        Some(packet.lost.min(u32::try_from(between).unwrap_or(u32::MAX)))
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
        assert_eq!(received.rested_until(14), 13, "all packets between arrived");
        assert_eq!(received.rested_until(18), 16, "one was lost");
    }

    #[test]
    fn rest_is_known_where_nothing_was_lost() {
        let mut received = ReceivedTicks::default();
        for (sequence, tick) in [(8, 10), (9, 11), (10, 12), (12, 14), (13, 15), (14, 15), (15, 16), (16, 20)]
        {
            received.push(packet(sequence, 1), tick);
        }
        assert_eq!(received.rested_until(11), 10, "what was before is not known, but nothing is missing");
        assert_eq!(received.rested_until(12), 11);
        assert_eq!(received.rested_until(14), 12, "one was lost");
        assert_eq!(received.rested_until(15), 13, "one of the tick before may have been lost");
        assert_eq!(received.rested_until(16), 15);
        assert_eq!(received.rested_until(20), 19, "nothing was sent meanwhile");
        received.push(packet(11, 0), 13);
        assert_eq!(received.rested_until(14), 13);
        assert_eq!(received.take().count(), 9);
        assert_eq!(received.take().count(), 0);
    }

    #[test]
    fn what_moved_before_a_stall_moves_in_all_of_it() {
        let mut received = ReceivedTicks::default();
        (0..40).for_each(|tick| received.push(packet(tick, 0), tick as u32));
        received.push(packet(70, 30), 70);
        assert_eq!(received.rested_until(70), 39);
    }

    #[test]
    fn after_many_losses_a_tick_without_ghosts_is_not_known_to_be_quiet() {
        let mut received = ReceivedTicks::default();
        let at = |millis, lost| PacketTime { at: Instant::from_millis(millis), sequence: millis, lost };
        assert!(!received.may_server_wait(at(0, 15)));
        received.push(at(0, 15), 1);
        for millis in [100, 500] {
            assert!(received.may_server_wait(at(millis, 16)));
            received.note_waiting(Instant::from_millis(millis));
        }
        assert!(!received.may_server_wait(at(600, 16)), "it waits no longer: nothing changed");
        received.push(at(600, 16), 40);
        assert!(!received.may_server_wait(at(700, 0)));
        received.push(at(700, 0), 41);
        assert!(received.may_server_wait(at(800, 40)));
        received.note_waiting(Instant::from_millis(800));
        received.push(at(810, 40), 90);
        assert_eq!(received.take().map(|tick| tick.lost).collect::<Vec<_>>(), [15, 18, 0, 41]);
    }
}
