//! Acks for every packet that the reliable header's 32 bits no longer cover.
//!
//! Promises: a received packet is reported, in each packet we send, until a packet of ours that reported it
//! was acked. Refuses nothing: it remembers as many packets as its window has places, and forgets older ones.

use super::framing::AckRange;
use crate::store::SequenceBuffer;
use crate::store::sequence::{distance, less};

/// The packets that the header of `ack` covers.
const HEADER_ACKS: u16 = 32;

/// What has been received, and how much of that the peer surely knows.
#[derive(Debug)]
pub(crate) struct AckRanges {
    /// The order in which packets arrived, by their sequence.
    arrivals: SequenceBuffer<u64>,
    next_arrival: u64,
    /// The peer knows of every arrival before this one.
    confirmed: u64,
    /// The oldest packet that the peer may not know of, if any is at or before the newest.
    floor: u16,
}

impl AckRanges {
    pub(crate) fn new(window: usize) -> Self {
        AckRanges { arrivals: SequenceBuffer::new(window), next_arrival: 0, confirmed: 0, floor: 0 }
    }

    /// Notes a packet received.
    pub(crate) fn record(&mut self, sequence: u16) {
        let first = self.next_arrival == 0;
        if self.arrivals.insert(sequence, self.next_arrival).is_err() {
            return;
        }
        self.next_arrival += 1;
        if first || less(sequence, self.floor) {
            self.floor = sequence;
        }
        let oldest = self.arrivals.next().wrapping_sub(self.arrivals.capacity() as u16);
        if less(self.floor, oldest) {
            self.floor = oldest;
        }
    }

    /// The ranges that a packet with this `ack` in its header should carry, newest first: none as long as
    /// the header covers all that the peer may not know of.
    pub(crate) fn ranges(&self, ack: u16, out: &mut Vec<AckRange>) {
        out.clear();
        if self.next_arrival == 0 {
            return;
        }
        let mut run = None::<AckRange>;
        let mut sequence = ack.wrapping_sub(HEADER_ACKS);
        while distance(sequence, self.floor) >= 0 {
            if self.arrivals.contains(sequence) {
                let newest = run.map_or(sequence, |run| run.newest);
                run = Some(AckRange { newest, oldest: sequence });
            } else {
                out.extend(run.take());
            }
            sequence = sequence.wrapping_sub(1);
        }
        out.extend(run);
    }

    /// What [`AckRanges::confirm`] is told when a packet sent now is acked.
    pub(crate) fn mark(&self) -> u64 {
        self.next_arrival
    }

    /// The peer has a packet that reported every arrival before `mark`.
    pub(crate) fn confirm(&mut self, mark: u64) {
        self.confirmed = self.confirmed.max(mark);
        while less(self.floor, self.arrivals.next())
            && self.arrivals.get(self.floor).is_none_or(|arrival| *arrival < self.confirmed)
        {
            self.floor = self.floor.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(acks: &AckRanges, ack: u16) -> Vec<(u16, u16)> {
        let mut out = Vec::new();
        acks.ranges(ack, &mut out);
        out.iter().map(|range| (range.newest, range.oldest)).collect()
    }

    #[test]
    fn says_nothing_while_the_header_covers_everything() {
        let mut acks = AckRanges::new(256);
        assert_eq!(ranges(&acks, 0xFFFF), []);
        (0..32).for_each(|s| acks.record(s));
        assert_eq!(ranges(&acks, 31), []);
    }

    #[test]
    fn reports_what_the_header_no_longer_covers_until_confirmed() {
        let mut acks = AckRanges::new(256);
        (0..100).filter(|s| s % 10 != 3).for_each(|s| acks.record(s));
        let mark = acks.mark();
        let expected = [(67, 64), (62, 54), (52, 44), (42, 34), (32, 24), (22, 14), (12, 4), (2, 0)];
        assert_eq!(ranges(&acks, 99), expected);
        (100..140).for_each(|s| acks.record(s));
        acks.confirm(mark);
        assert_eq!(ranges(&acks, 139), [(107, 100)], "what was confirmed is not said again");
    }

    #[test]
    fn a_packet_that_comes_late_is_reported() {
        let mut acks = AckRanges::new(256);
        (0..100).filter(|s| *s != 20).for_each(|s| acks.record(s));
        acks.confirm(acks.mark());
        assert_eq!(ranges(&acks, 99), []);
        acks.record(20);
        assert_eq!(ranges(&acks, 99), [(67, 20)]);
        acks.confirm(acks.mark());
        assert_eq!(ranges(&acks, 99), []);
    }

    #[test]
    fn crosses_the_wrap_and_forgets_beyond_the_window() {
        let mut acks = AckRanges::new(64);
        (0..70_000u32).for_each(|s| acks.record(s as u16));
        let newest = 69_999u32 as u16;
        assert_eq!(ranges(&acks, newest), [(newest - 32, newest - 63)]);
        acks.record(newest.wrapping_add(30_000));
        assert_eq!(ranges(&acks, newest.wrapping_add(30_000)), []);
    }
}
