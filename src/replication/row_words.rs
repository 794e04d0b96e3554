//! The words of many rows, in half the memory if they are small.
//!
//! Trusted: a narrow class's words have 32 bits.

/// The words of many rows.
#[derive(Clone, Debug)]
pub(super) enum RowWords {
    /// If no word of the class has more than 32 bits.
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl RowWords {
    /// Words of no row yet.
    pub(super) fn new(narrow: bool) -> Self {
        if narrow { RowWords::Narrow(Vec::new()) } else { RowWords::Wide(Vec::new()) }
    }

    /// Makes room for this many words; new ones are 0.
    pub(super) fn grow(&mut self, len: usize) {
        match self {
            RowWords::Narrow(all) => all.resize(len, 0),
            RowWords::Wide(all) => all.resize(len, 0),
        }
    }

    /// Stores words from `at` on.
    #[inline]
    pub(super) fn store(&mut self, at: usize, words: &[u64]) {
        match self {
            RowWords::Narrow(all) => {
                // Words of a narrow class have 32 bits.
                all[at..][..words.len()].iter_mut().zip(words).for_each(|(to, word)| *to = *word as u32);
            }
            RowWords::Wide(all) => all[at..][..words.len()].copy_from_slice(words),
        }
    }

    /// Loads the words from `at` on.
    #[inline]
    pub(super) fn load(&self, at: usize, words: &mut [u64]) {
        match self {
            RowWords::Narrow(all) => {
                let from = &all[at..][..words.len()];
                words.iter_mut().zip(from).for_each(|(to, word)| *to = u64::from(*word));
            }
            RowWords::Wide(all) => words.copy_from_slice(&all[at..][..words.len()]),
        }
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        match self {
            RowWords::Narrow(all) => all.capacity() * size_of::<u32>(),
            RowWords::Wide(all) => all.capacity() * size_of::<u64>(),
        }
    }
}
