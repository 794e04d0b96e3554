//! Acks for every packet that the reliable header's 32 bits no longer cover.
//!
//! Promises: a received packet is reported, in each packet we send, until a packet of ours that reported it
//! was acked. Refuses nothing: it remembers as many packets as its window has places, and forgets older ones.
//!
//! What comes in here was accepted by [`Acks`](super::acks::Acks). A peer that acks nothing keeps the window full and no more.

use std::collections::VecDeque;

use super::framing::AckRange;
use crate::store::sequence::distance;

/// The packets that the header of `ack` covers.
const HEADER_ACKS: i32 = 32;

/// The packets received that the peer may not know of.
#[derive(Debug, Default)]
pub(crate) struct AckRanges {
    /// In the order in which they arrived.
    unconfirmed: VecDeque<u16>,
    /// How many arrived before those.
    confirmed: u64,
    window: usize,
}

impl AckRanges {
    /// How many packets the peer may not know of.
    pub(crate) fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Notes a packet received; `window` are remembered.
    pub(crate) fn record(&mut self, sequence: u16, window: usize) {
        self.window = window;
        if self.unconfirmed.len() >= window {
            self.unconfirmed.pop_front();
            self.confirmed += 1;
        }
        self.unconfirmed.push_back(sequence);
    }

    /// The ranges that a packet with this `ack` in its header should carry, newest first: none as long as
    /// the header covers all that the peer may not know of.
    pub(crate) fn ranges(&self, ack: u16, received: impl Fn(u16) -> bool, out: &mut Vec<AckRange>) {
        out.clear();
        let ages = self.unconfirmed.iter().map(|sequence| distance(ack, *sequence));
        let oldest = ages.filter(|age| *age < self.window as i32).max().unwrap_or(0);
        let mut run = None::<AckRange>;
        for age in HEADER_ACKS..=oldest {
            // Below the window, and so below 32,768.
            let sequence = ack.wrapping_sub(age as u16);
            if received(sequence) {
                let newest = run.map_or(sequence, |run| run.newest);
                run = Some(AckRange { newest, oldest: sequence });
            } else {
                out.extend(run.take());
            }
        }
        out.extend(run);
    }

    /// What [`AckRanges::confirm`] is told when a packet sent now is acked.
    pub(crate) fn mark(&self) -> u64 {
        self.confirmed + self.unconfirmed.len() as u64
    }

    /// The peer has a packet that reported every arrival before `mark`.
    pub(crate) fn confirm(&mut self, mark: u64) {
        while self.confirmed < mark && self.unconfirmed.pop_front().is_some() {
            self.confirmed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SequenceSet;

    /// With the window of received packets that stands beside it.
    struct Receiver {
        acks: AckRanges,
        received: SequenceSet,
    }

    impl Receiver {
        fn new(window: usize) -> Self {
            Receiver { acks: AckRanges::default(), received: SequenceSet::new(window) }
        }

        fn record(&mut self, sequence: u16) {
            assert!(self.received.insert(sequence));
            self.acks.record(sequence, self.received.capacity());
        }

        fn confirm_all(&mut self) {
            self.acks.confirm(self.acks.mark());
        }

        fn ranges(&self, ack: u16) -> Vec<(u16, u16)> {
            let mut out = Vec::new();
            self.acks.ranges(ack, |sequence| self.received.contains(sequence), &mut out);
            out.iter().map(|range| (range.newest, range.oldest)).collect()
        }
    }

    #[test]
    fn says_nothing_while_the_header_covers_everything() {
        let mut receiver = Receiver::new(256);
        assert_eq!(receiver.ranges(0xFFFF), []);
        (0..32).for_each(|s| receiver.record(s));
        assert_eq!(receiver.ranges(31), []);
    }

    #[test]
    fn reports_what_the_header_no_longer_covers_until_confirmed() {
        let mut receiver = Receiver::new(256);
        (0..100).filter(|s| s % 10 != 3).for_each(|s| receiver.record(s));
        let mark = receiver.acks.mark();
        let expected = [(67, 64), (62, 54), (52, 44), (42, 34), (32, 24), (22, 14), (12, 4), (2, 0)];
        assert_eq!(receiver.ranges(99), expected);
        (100..140).for_each(|s| receiver.record(s));
        receiver.acks.confirm(mark);
        assert_eq!(receiver.ranges(139), [(107, 100)], "what was confirmed is not said again");
    }

    #[test]
    fn a_packet_that_comes_late_is_reported() {
        let mut receiver = Receiver::new(256);
        (0..100).filter(|s| *s != 20).for_each(|s| receiver.record(s));
        receiver.confirm_all();
        assert_eq!(receiver.ranges(99), []);
        receiver.record(20);
        assert_eq!(receiver.ranges(99), [(67, 20)]);
        receiver.confirm_all();
        assert_eq!(receiver.ranges(99), []);
    }

    #[test]
    fn crosses_the_wrap_and_forgets_beyond_the_window() {
        let mut receiver = Receiver::new(64);
        (0..70_000u32).for_each(|s| receiver.record(s as u16));
        let newest = 69_999u32 as u16;
        assert_eq!(receiver.ranges(newest), [(newest - 32, newest - 63)]);
        receiver.record(newest.wrapping_add(30_000));
        assert_eq!(receiver.ranges(newest.wrapping_add(30_000)), []);
    }
}
