//! Finds late packets that are so old that the 16-bit numbers in them could be taken for newer ones.
//!
//! Promises: a packet that counts as old was sent before a counter of ours was one step lower than now, and one that
//! doesn't was sent after it was three steps lower. With 16-bit numbers and a step of one window, four steps are all
//! numbers.
//!
//! Trusted: the packets' own numbers, without wrapping. A peer that forges them has its own packets dropped.

/// When a count passed the last two multiples of a step, by the newest packet of the peer then.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Laps {
    step: u64,
    next: u64,
    /// The newest packet when the counter passed the multiple before the last, and the last.
    passed: [u64; 2],
}

impl Laps {
    /// For a counter at 0.
    pub(in crate::transport) fn new(step: usize) -> Self {
        Laps { step: step as u64, next: step as u64, passed: [0; 2] }
    }

    /// The counter is here, and this was the newest packet before that.
    pub(in crate::transport) fn advance(&mut self, count: u64, newest: u64) {
        while count >= self.next {
            self.next += self.step;
            self.passed = [self.passed[1], newest];
        }
    }

    /// Whether a packet is older than the count one step ago.
    pub(in crate::transport) fn is_old(&self, packet: u64) -> bool {
        packet < self.passed[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_old_once_the_count_is_a_step_beyond_the_newest_of_its_time() {
        let mut laps = Laps::new(100);
        laps.advance(99, 5);
        assert!(!laps.is_old(0));
        laps.advance(100, 7);
        laps.advance(199, 9);
        assert!(!laps.is_old(0), "as little as one message ago the count was below 100");
        laps.advance(200, 12);
        assert!(laps.is_old(6) && !laps.is_old(7));
        laps.advance(1000, 30);
        assert!(laps.is_old(29) && !laps.is_old(30));
    }
}
