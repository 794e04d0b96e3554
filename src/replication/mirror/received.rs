//! When each tick arrived, and between which of them nothing was lost.
//!
//! A ghost without a record in a tick was at rest, if all of that tick arrived and the server didn't wait for acks. Losses
//! show in the sequence numbers of packets. Missing acks show in those of our packets that the server has acked.

use std::collections::VecDeque;

use super::super::class::MAX_IN_FLIGHT;
use crate::time::{Duration, Instant};

/// How many packets are remembered: a second or more, and more than any rest that is still drawn as one motion.
const KEPT: usize = 256;

/// How many arrivals wait for the view; the oldest make room.
const WAITING: usize = 256;

/// With this many ticks of ghosts in flight, the server may wait for acks of a ghost. Losses hide a few of them.
const MANY_IN_FLIGHT: u32 = MAX_IN_FLIGHT as u32 - 4;

/// The time until the server has sent what waited, once it has acks again.
const SENT_AFTER: Duration = Duration::from_millis(100);

/// A packet of the server that carries its tick, with or without ghosts.
#[derive(Clone, Copy, Debug)]
pub struct PacketTime {
    pub at: Instant,
    pub sequence: u64,
    /// How many packets between it and the one before it haven't arrived.
    pub lost: u32,
    /// The server had our acks of all packets that arrived until then.
    pub acks_until: Instant,
}

/// A tick of the server that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickArrival {
    pub tick: u32,
    pub at: Instant,
    /// How many packets between it and the arrival before it were lost.
    pub lost: u32,
    /// Ghosts may have moved in the ticks before it, because the server waited for acks.
    pub has_waited: bool,
    /// When this one was sent, the server waited for acks of each ghost that moves all the time.
    pub waits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sequence: u64,
    tick: u32,
    at: Instant,
    has_ghosts: bool,
    /// How many packets between the one before and this one are missing, at most.
    lost: u32,
    /// In how many ticks between them the server waited for acks, at most.
    waited: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReceivedTicks {
    /// By rising sequence number.
    packets: VecDeque<Packet>,
    waiting: VecDeque<TickArrival>,
    /// When the server last may have waited for acks, if that was after the newest packet.
    waited_at: Option<Instant>,
}

impl ReceivedTicks {
    /// Notes a packet of a tick.
    pub(super) fn push(&mut self, time: PacketTime, tick: u32, has_ghosts: bool) {
        let PacketTime { at, sequence, lost, .. } = time;
        let place = self.packets.partition_point(|other| other.sequence < sequence);
        if let Some(same) = self.packets.get_mut(place).filter(|other| other.sequence == sequence) {
            same.has_ghosts |= has_ghosts;
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        let is_newest = place == self.packets.len();
        let has_waited = is_newest && self.waited_at.take().is_some();
        let before = self.packets.back().filter(|_| has_waited).map_or(tick, |newest| newest.tick);
        let waited = tick.saturating_sub(before).saturating_sub(1);
        let waits = self.in_flight(time) >= MAX_IN_FLIGHT.into();
        self.waiting.push_back(TickArrival { tick, at, lost, has_waited: waited > 0, waits });
        // What is missing before a packet that was overtaken isn't known.
        let lost = if is_newest { lost } else { u32::MAX };
        self.packets.insert(place, Packet { sequence, tick, at, has_ghosts, lost, waited });
        if self.packets.len() > KEPT {
            self.packets.pop_front();
        }
    }

    /// Whether the server may wait for acks, or did so a moment ago: then a packet without ghosts doesn't mean that none
    /// changed.
    pub(super) fn may_server_wait(&mut self, time: PacketTime) -> bool {
        if self.in_flight(time) >= MANY_IN_FLIGHT {
            self.waited_at = Some(time.at);
        }
        self.waited_at.is_some_and(|waited_at| time.at.since(waited_at) < SENT_AFTER)
    }

    /// The most ticks with records of a ghost that the server had no acks of when it sent a packet. Beyond [`MAX_IN_FLIGHT`] they
    /// aren't counted.
    fn in_flight(&self, time: PacketTime) -> u32 {
        let (mut count, mut next) = (time.lost, 0);
        for (index, packet) in self.packets.iter().enumerate().rev() {
            if packet.at <= time.acks_until || count >= MAX_IN_FLIGHT.into() {
                break;
            }
            count = count.saturating_add(self.missing_before(index).unwrap_or(0));
            if packet.has_ghosts && packet.tick != next {
                (count, next) = (count.saturating_add(1), packet.tick);
            }
        }
        count
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
            if is_sent && (begins..=first).all(|index| self.unknown_before(index) == Some(0)) {
                return (at - 1).max(tick.saturating_sub(missing + 1));
            }
            missing += (begin + 1..=first).filter_map(|index| self.unknown_before(index)).sum::<u32>();
            at = before;
        }
        tick.saturating_sub(missing + 1)
    }

    /// In how many ticks between a packet and the one before it ghosts may have changed. None if that isn't known.
    fn unknown_before(&self, index: usize) -> Option<u32> {
        Some(self.missing_before(index)?.max(self.packets[index].waited))
    }

    /// How many packets are missing between a packet and the one before it. None if that isn't known.
    fn missing_before(&self, index: usize) -> Option<u32> {
        let (before, packet) = (self.packets.get(index.checked_sub(1)?)?, self.packets.get(index)?);
        let between = (packet.sequence - before.sequence).saturating_sub(1);
        Some(packet.lost.min(u32::try_from(between).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u64, lost: u32) -> PacketTime {
        PacketTime { at: Instant::from_millis(sequence), sequence, lost, acks_until: Instant::ZERO }
    }

    #[test]
    fn packets_without_a_tick_hide_no_rest() {
        let mut received = ReceivedTicks::default();
        for (sequence, lost, tick) in [(1, 0, 10), (5, 0, 14), (9, 1, 18)] {
            received.push(packet(sequence, lost), tick, true);
        }
        assert_eq!(received.rested_until(14), 13, "all packets between arrived");
        assert_eq!(received.rested_until(18), 16, "one was lost");
    }

    #[test]
    fn rest_is_known_where_nothing_was_lost() {
        let mut received = ReceivedTicks::default();
        for (sequence, tick) in [(8, 10), (9, 11), (10, 12), (12, 14), (13, 15), (14, 15), (15, 16), (16, 20)]
        {
            received.push(packet(sequence, 1), tick, true);
        }
        assert_eq!(received.rested_until(11), 10, "what was before is not known, but nothing is missing");
        assert_eq!(received.rested_until(12), 11);
        assert_eq!(received.rested_until(14), 12, "one was lost");
        assert_eq!(received.rested_until(15), 13, "one of the tick before may have been lost");
        assert_eq!(received.rested_until(16), 15);
        assert_eq!(received.rested_until(20), 19, "nothing was sent meanwhile");
        received.push(packet(11, 0), 13, true);
        assert_eq!(received.rested_until(14), 13);
        assert_eq!(received.take().count(), 9);
        assert_eq!(received.take().count(), 0);
    }

    #[test]
    fn what_moved_before_a_stall_moves_in_all_of_it() {
        let mut received = ReceivedTicks::default();
        (0..40).for_each(|tick| received.push(packet(tick, 0), tick as u32, true));
        received.push(packet(70, 30), 70, true);
        assert_eq!(received.rested_until(70), 39);
    }

    /// A client whose packets are lost from this time on, in milliseconds, while a tick is sent each of them.
    fn unheard(acks_until: u64, sequence: u64, lost: u32) -> PacketTime {
        let at = Instant::from_millis(sequence);
        PacketTime { at, sequence, lost, acks_until: Instant::from_millis(acks_until) }
    }

    #[test]
    fn a_tick_without_ghosts_is_no_rest_while_the_server_has_no_acks() {
        let mut received = ReceivedTicks::default();
        (0..=27).for_each(|at| received.push(packet(at, 0), 100 + at as u32, true));
        assert!(!received.may_server_wait(unheard(0, 28, 0)), "27 ticks are in flight");
        received.push(unheard(0, 28, 0), 128, true);
        for at in [29, 60] {
            assert!(received.may_server_wait(unheard(0, at, 0)));
        }
        assert!(
            received.may_server_wait(unheard(50, 159, 0)),
            "it has acks, but may not have sent anything yet"
        );
        received.push(unheard(50, 159, 0), 259, true);
        assert_eq!(received.rested_until(259), 128);
        let waited = received.take().filter(|tick| tick.has_waited).map(|tick| tick.tick);
        assert_eq!(waited.collect::<Vec<_>>(), [259]);
    }

    #[test]
    fn ticks_in_which_only_some_ghosts_can_be_sent_are_known() {
        let mut received = ReceivedTicks::default();
        (0..40).for_each(|at| received.push(packet(at, 0), 100 + at as u32, true));
        received.push(unheard(30, 40, 0), 140, true);
        let waits = received.take().filter(|tick| tick.waits).map(|tick| tick.tick);
        assert_eq!(waits.collect::<Vec<_>>(), (133..140).collect::<Vec<_>>());
    }

    #[test]
    fn a_quiet_world_rests_however_long_the_server_has_no_acks() {
        let mut received = ReceivedTicks::default();
        (0..200).for_each(|at| received.push(packet(at, 0), 100 + at as u32, at < 20));
        assert!(!received.may_server_wait(unheard(0, 200, 0)));
    }

    #[test]
    fn lost_packets_may_have_been_of_ghosts() {
        let mut received = ReceivedTicks::default();
        (0..10).for_each(|at| received.push(packet(at, 0), 100 + at as u32, true));
        assert!(!received.may_server_wait(unheard(9, 37, 27)));
        assert!(received.may_server_wait(unheard(5, 37, 27)), "the last of those that arrived count too");
        assert!(received.may_server_wait(unheard(5, 130, 27)));
        assert!(!received.may_server_wait(unheard(120, 240, 0)), "it had the time to send what waited");
    }
}
