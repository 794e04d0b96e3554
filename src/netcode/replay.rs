//! Replay protection: each sequence is accepted once, and only while it is near the newest.
//!
//! One bit per sequence of the window: 32 bytes for 256 packets. A clear bit means "not seen" for every number, 2^64
//! - 1 included, and the age is a difference, so nothing wraps near the end of the range.
//!
//! A sequence is checked before it is proven and recorded after, so only the peer moves its window. Bounded: a bit a
//! packet, and 512 words cleared for the farthest jump.

use crate::store::InlineSlice;

/// Smallest replay window, the standard's.
pub const MIN_REPLAY_WINDOW: usize = 256;

/// Largest replay window: over three seconds of packets at 100 Mbit/s.
pub const MAX_REPLAY_WINDOW: usize = 32_768;

/// How late packets of connections may arrive without counting as replays: a second's worth on a fast connection.
pub(crate) const REPLAY_WINDOW: usize = 1024;

/// Words that need no allocation.
const INLINE_WORDS: usize = REPLAY_WINDOW / 64;

/// Which of the newest sequences have been received.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    newest: u64,
    seen: InlineSlice<u64, INLINE_WORDS>,
}

impl ReplayWindow {
    /// A window over the newest `size` sequences, starting at 0 with none seen.
    ///
    /// # Panics
    /// When `size` is not a power of two from [`MIN_REPLAY_WINDOW`] to [`MAX_REPLAY_WINDOW`].
    pub fn new(size: usize) -> Self {
        let is_valid = size.is_power_of_two() && (MIN_REPLAY_WINDOW..=MAX_REPLAY_WINDOW).contains(&size);
        assert!(is_valid, "replay window {size} is not a power of two from 256 to 32,768");
        ReplayWindow { newest: 0, seen: InlineSlice::new(0, size / 64) }
    }

    /// Whether a packet of this sequence has not been received and is not too old to tell.
    pub fn is_fresh(&self, sequence: u64) -> bool {
        if sequence > self.newest {
            return true;
        }
        let (word, mask) = self.bit(sequence);
        self.newest - sequence < self.size() && self.seen[word] & mask == 0
    }

    /// Records a fresh sequence. Only for packets that proved authentic.
    pub fn advance(&mut self, sequence: u64) {
        if sequence > self.newest {
            if sequence - self.newest >= self.size() {
                self.seen.fill(0);
            } else {
                self.forget_after_newest(sequence - self.newest);
            }
            self.newest = sequence;
        }
        let (word, mask) = self.bit(sequence);
        self.seen[word] |= mask;
    }

    pub fn reset(&mut self) {
        self.newest = 0;
        self.seen.fill(0);
    }

    /// Clears the bits of the next `count` sequences, word by word: a peer that jumps ahead with every packet
    /// costs little more than one that doesn't.
    fn forget_after_newest(&mut self, mut count: u64) {
        let mut next = self.newest;
        while count > 0 {
            next += 1;
            let bits = count.min(64 - next % 64);
            let (word, _) = self.bit(next);
            self.seen[word] &= !(u64::MAX >> (64 - bits) << (next % 64));
            next += bits - 1;
            count -= bits;
        }
    }

    fn size(&self) -> u64 {
        self.seen.len() as u64 * 64
    }

    fn bit(&self, sequence: u64) -> (usize, u64) {
        let index = sequence & (self.size() - 1);
        // Below 32,768, so the cast keeps the value.
        ((index / 64) as usize, 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::HashSet;

    #[test]
    fn agrees_with_a_set_that_remembers_everything() {
        let mut rng = Rng::seeded(11);
        for (start, ahead) in [(0, 8), (0, 300), (u64::MAX - 3000, 8), (u64::MAX - 60_000, 300)] {
            let mut window = ReplayWindow::new(256);
            let mut seen = HashSet::new();
            let mut newest = start;
            window.advance(start);
            seen.insert(start);
            for _ in 0..20_000 {
                let sequence = if rng.chance(0.1) {
                    newest.saturating_add(rng.below(ahead))
                } else {
                    newest.saturating_sub(rng.below(300))
                };
                let expected = !seen.contains(&sequence) && (sequence > newest || newest - sequence < 256);
                assert_eq!(window.is_fresh(sequence), expected, "{sequence:x} at {newest:x}");
                if expected {
                    window.advance(sequence);
                    seen.insert(sequence);
                    newest = newest.max(sequence);
                }
            }
        }
    }

    #[test]
    fn the_largest_sequence_is_accepted_once() {
        let mut window = ReplayWindow::new(256);
        assert!(window.is_fresh(u64::MAX));
        window.advance(u64::MAX);
        assert!(!window.is_fresh(u64::MAX));
        assert!(window.is_fresh(u64::MAX - 255) && !window.is_fresh(u64::MAX - 256) && !window.is_fresh(0));
        window.reset();
        assert!(window.is_fresh(0) && window.is_fresh(u64::MAX));
    }

    #[test]
    fn a_jump_of_one_window_or_more_forgets_the_old_bits() {
        let mut window = ReplayWindow::new(512);
        (0..512).for_each(|s| window.advance(s));
        window.advance(1023);
        assert!((512..1023).all(|s| window.is_fresh(s)));
        assert!((0..512).all(|s| !window.is_fresh(s)));
    }
}
