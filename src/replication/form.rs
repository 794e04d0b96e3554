//! How the words of a state are stored: in half the memory if all are small.

use core::ops::Range;

use super::class::GhostClass;
use crate::store::ones;

/// How words are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Words of a state.
    width: usize,
    /// Whether all have 32 bits at most, and take half the room.
    narrow: bool,
}

impl Form {
    /// For states of this many words.
    pub(super) fn new(width: usize, narrow: bool) -> Self {
        Form { width, narrow }
    }

    /// Numbers of 32 bits that a state takes.
    #[inline]
    pub(super) fn size(self) -> usize {
        if self.narrow { self.width } else { 2 * self.width }
    }

    /// The properties of a mask whose words differ between two states as they are stored.
    pub(super) fn differing(self, class: &GhostClass, mask: u64, a: &[u32], b: &[u32]) -> u64 {
        let (each, numbers) = (&class.properties, if self.narrow { 1 } else { 2 });
        let mut changed = 0;
        for i in ones(mask & each.all()) {
            let Range { start, end } = each.word_range(i);
            let range = start * numbers..end * numbers;
            let mut pairs = a[range.clone()].iter().zip(&b[range]);
            changed |= u64::from(pairs.any(|(a, b)| a != b)) << i;
        }
        changed
    }

    /// The word at a place of a state as it is stored.
    #[inline]
    pub(super) fn word(self, from: &[u32], at: usize) -> u64 {
        if self.narrow { from[at].into() } else { join(from[2 * at], from[2 * at + 1]) }
    }

    /// As many words from a place on of a state as it is stored, if it has them.
    #[inline]
    pub(super) fn words<const N: usize>(self, from: &[u32], at: usize) -> Option<[u64; N]> {
        if self.narrow {
            return Some(from.get(at..)?.first_chunk::<N>()?.map(u64::from));
        }
        let halves = from.as_chunks::<2>().0.get(at..)?.first_chunk::<N>()?;
        Some(halves.map(|[low, high]| join(low, high)))
    }

    #[inline]
    pub(super) fn load(self, from: &[u32], words: &mut [u64]) {
        if self.narrow {
            words.iter_mut().zip(from).for_each(|(to, word)| *to = u64::from(*word));
        } else {
            let halves = from.as_chunks::<2>().0;
            words.iter_mut().zip(halves).for_each(|(to, [low, high])| *to = join(*low, *high));
        }
    }

    #[inline]
    pub(super) fn store(self, words: &[u64], to: &mut [u32]) {
        if self.narrow {
            // Words of a narrow class have 32 bits.
            to.iter_mut().zip(words).for_each(|(to, word)| *to = *word as u32);
        } else {
            let halves = to.as_chunks_mut::<2>().0;
            halves.iter_mut().zip(words).for_each(|(to, word)| *to = split(*word));
        }
    }
}

#[inline]
pub(super) fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[inline]
pub(super) fn split(both: u64) -> [u32; 2] {
    [both as u32, (both >> 32) as u32]
}
