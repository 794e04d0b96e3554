//! A set of small integers with a fixed bound: which fragments of a packet, which slices of a chunk.

/// A set of integers below a fixed bound, with its size at hand.
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

    /// Adds `index`; true when it was not there before.
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
