//! A set of small integers with a fixed bound: which fragments of a packet, which slices of a chunk.

use core::ops::Range;

/// A set of integers below a fixed bound that knows its size.
#[derive(Clone, Debug)]
pub struct BitSet {
    words: Box<[u64]>,
    bound: usize,
    len: usize,
}

impl BitSet {
    /// An empty set of integers below `bound`.
    pub fn new(bound: usize) -> Self {
        BitSet { words: vec![0; bound.div_ceil(64)].into(), bound, len: 0 }
    }

    /// The set of all integers below `bound`.
    pub fn full(bound: usize) -> Self {
        let mut words = vec![u64::MAX; bound.div_ceil(64)];
        // Bits beyond the bound are never set.
        if let Some(last) = words.last_mut().filter(|_| !bound.is_multiple_of(64)) {
            *last = (1 << (bound % 64)) - 1;
        }
        BitSet { words: words.into(), bound, len: bound }
    }

    /// One past the largest integer the set can hold.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// How many integers are in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether every integer below the bound is in the set.
    pub fn is_full(&self) -> bool {
        self.len == self.bound
    }

    /// Whether `index` is in the set. False beyond the bound.
    pub fn contains(&self, index: usize) -> bool {
        index < self.bound && self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Adds `index`; true if it was new.
    ///
    /// # Panics
    /// When `index` is not below the bound.
    pub fn insert(&mut self, index: usize) -> bool {
        assert!(index < self.bound, "index {index} is not below the bound {}", self.bound);
        let mask = 1 << (index % 64);
        let word = &mut self.words[index / 64];
        let new = *word & mask == 0;
        *word |= mask;
        self.len += usize::from(new);
        new
    }

    /// Removes `index`; true if it was in the set.
    pub fn remove(&mut self, index: usize) -> bool {
        let there = self.contains(index);
        if there {
            self.words[index / 64] &= !(1 << (index % 64));
            self.len -= 1;
        }
        there
    }

    /// The integers in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.runs().flatten()
    }

    /// The runs of consecutive integers in the set, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = self.next(at, true)?;
            at = self.next(start, false).unwrap_or(self.bound);
            Some(start..at)
        })
    }

    /// The first integer from `start` on that is in the set, or isn't. None if there is none below the bound.
    fn next(&self, start: usize, contained: bool) -> Option<usize> {
        let flip = if contained { 0 } else { u64::MAX };
        let first = self.words.get(start / 64)? ^ flip;
        let masked = first & u64::MAX << (start % 64);
        let rest = self.words[start / 64 + 1..].iter().map(|word| word ^ flip);
        let words = core::iter::once(masked).chain(rest);
        let (word, bits) = words.enumerate().find(|(_, bits)| *bits != 0)?;
        let found = (start / 64 + word) * 64 + bits.trailing_zeros() as usize;
        (found < self.bound).then_some(found)
    }
}

/// The indices of an integer's set bits, in rising order.
#[inline]
pub fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        let any = bits != 0;
        bits &= bits.wrapping_sub(1);
        any.then_some(bit)
    })
}

/// The indices of the set bits of integers, in rising order.
#[inline]
pub fn ones_of(blocks: &[u64]) -> impl Iterator<Item = usize> {
    let blocks = blocks.iter().enumerate();
    blocks.flat_map(|(block, bits)| ones(*bits).map(move |bit| block * u64::BITS as usize + bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_the_bits_that_are_set() {
        assert_eq!(ones(1 << 63 | 5).collect::<Vec<_>>(), [0, 2, 63]);
        assert_eq!((ones(u64::MAX).count(), ones(0).count()), (64, 0));
        assert_eq!(ones_of(&[0, 5, 1 << 63]).collect::<Vec<_>>(), [64, 66, 191]);
    }

    #[test]
    fn runs_are_what_is_in_the_set() {
        let mut set = BitSet::new(200);
        assert_eq!(set.runs().count(), 0);
        let members = [0, 1, 2, 63, 64, 65, 128, 199];
        members.iter().for_each(|i| assert!(set.insert(*i)));
        assert_eq!(set.runs().collect::<Vec<_>>(), [0..3, 63..66, 128..129, 199..200]);
        assert_eq!(set.iter().collect::<Vec<_>>(), members);
        assert!(set.remove(64) && !set.remove(64) && !set.remove(500));
        assert_eq!((set.len(), set.runs().count()), (7, 5));
        for bound in [0, 1, 63, 64, 65, 200] {
            let full = BitSet::full(bound);
            assert!(full.is_full() && full.iter().eq(0..bound), "{bound}");
        }
        (0..200).for_each(|i| _ = set.insert(i));
        assert_eq!((set.runs().count(), set.runs().next()), (1, Some(0..200)));
    }

    #[test]
    fn counts_each_member_once() {
        let mut set = BitSet::new(130);
        assert!(set.is_empty());
        assert!(set.insert(0) && set.insert(129) && !set.insert(129));
        assert_eq!(set.len(), 2);
        assert!(set.contains(129) && !set.contains(64) && !set.contains(130));
        (0..130).for_each(|i| assert!(set.insert(i) || [0, 129].contains(&i)));
        assert!(set.is_full());
    }
}
