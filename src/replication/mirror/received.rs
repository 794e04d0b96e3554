//! When each tick arrived, and between which of them nothing was lost.
//!
//! A ghost without a record in a tick was at rest, if all of that tick arrived. Losses show in the sequences of
//! packets: between two consecutive ones there was none.

use std::collections::VecDeque;

use crate::store::sequence::nearest;
use crate::time::Instant;

/// How many packets are remembered: a second or more, and more than any rest that is still drawn as one motion.
const KEPT: usize = 256;

/// How many arrivals wait for the view; the oldest make room.
const WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct ReceivedTicks {
    /// Sequence, in 32 bits, and tick of each, by rising sequence.
    packets: VecDeque<(u32, u32)>,
    waiting: VecDeque<(u32, Instant)>,
    /// The newest tick that came in more than one packet.
    divided: u32,
}

impl ReceivedTicks {
    /// Notes a packet of a tick.
    pub(super) fn push(&mut self, now: Instant, sequence: u16, tick: u32) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((tick, now));
        // So that those before the first stay above 0.
        let first = (1 << 16) + u32::from(sequence);
        let Some(sequence) =
            self.packets.back().map_or(Some(first), |(newest, _)| nearest(sequence, *newest))
        else {
            return;
        };
        let place = self.packets.partition_point(|(other, _)| *other < sequence);
        if self.packets.get(place).is_some_and(|(other, _)| *other == sequence) {
            return;
        }
        let beside = [place.checked_sub(1), Some(place)].map(|at| at.and_then(|at| self.packets.get(at)));
        if beside.into_iter().flatten().any(|(_, other)| *other == tick) {
            self.divided = self.divided.max(tick);
        }
        self.packets.insert(place, (sequence, tick));
        if self.packets.len() > KEPT {
            self.packets.pop_front();
        }
    }

    /// Ticks and when they arrived, since it was last asked.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (u32, Instant)> {
        self.waiting.drain(..)
    }

    /// The last tick before this one that arrived completely, with nothing lost since. Ghosts without a record were
    /// unchanged then.
    pub(super) fn rested(&self, tick: u32) -> Option<u32> {
        let first = self.packets.partition_point(|(_, other)| *other < tick);
        let is_tight = |index: usize| {
            let pair = Some(index).zip(index.checked_sub(1));
            pair.and_then(|(b, a)| Some((self.packets.get(b)?.0, self.packets.get(a)?.0)))
                .is_some_and(|(b, a)| b - a == 1)
        };
        if self.packets.get(first)?.1 != tick {
            return None;
        }
        let rested = self.packets.get(first.checked_sub(1)?)?.1;
        // The server skips sequences at times, to find peers that ack what was never sent. With one packet per tick,
        // consecutive ticks show that only such a number is missing.
        if self.divided.saturating_add(KEPT as u32) < tick {
            return (is_tight(first) || rested + 1 == tick).then_some(rested);
        }
        if !is_tight(first) {
            return None;
        }
        let mut index = first - 1;
        while self.packets[index].1 == rested {
            if !is_tight(index) {
                return None;
            }
            index -= 1;
        }
        Some(rested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_that_is_left_out_is_no_loss_where_ticks_are_one_packet() {
        let mut received = ReceivedTicks::default();
        for (sequence, tick) in [(1, 1000), (2, 1001), (4, 1002), (6, 1004), (7, 1007)] {
            received.push(Instant::ZERO, sequence, tick);
        }
        assert_eq!(received.rested(1002), Some(1001));
        assert_eq!(received.rested(1004), None, "that was a tick");
        assert_eq!(received.rested(1007), Some(1004));
    }

    #[test]
    fn rest_is_known_where_nothing_was_lost() {
        let mut received = ReceivedTicks::default();
        for (sequence, tick) in
            [(65_534, 10), (65_535, 11), (0, 12), (2, 14), (3, 15), (4, 15), (5, 16), (6, 20)]
        {
            received.push(Instant::ZERO, sequence, tick);
        }
        assert_eq!(received.rested(11), None, "what was before is not known");
        assert_eq!(received.rested(12), Some(11));
        assert_eq!(received.rested(1000), None);
        assert_eq!(received.rested(14), None, "one was lost");
        assert_eq!(received.rested(15), None, "one of the tick before may have been lost");
        assert_eq!(received.rested(16), Some(15));
        assert_eq!(received.rested(20), Some(16), "nothing was sent meanwhile");
        assert_eq!(received.rested(19), None);
        received.push(Instant::ZERO, 1, 13);
        assert_eq!(received.rested(14), Some(13));
        assert_eq!(received.take().count(), 9);
        assert_eq!(received.take().count(), 0);
    }
}
