//! Hashing with a secret, so that nobody outside can choose addresses that collide. The secret is an input: the
//! standard library's is hidden randomness.
//!
//! SipHash-1-3 (Aumasson and Bernstein 2012, with the rounds of the standard library), because each datagram's source is
//! hashed: the standard library's, which gathers bytes into words, takes three times the instructions.
//!
//! Promises: keys of whole words hash as the standard library hashes their bytes, the lowest first, whatever the
//! processor's order. Other bytes fill their last word with zeros: fine for a map, in whose keys their number is hashed too.

use core::hash::{BuildHasher, Hasher};
use std::collections::HashMap;

use crate::rng::Entropy;

/// A map with a keyed hash. Iterate it only where the order doesn't matter.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, KeyedHash>;

/// A SipHash that has absorbed 128 secret bits first. It is never printed: its state would be enough to make collisions.
#[derive(Clone)]
pub(crate) struct KeyedHash {
    keyed: WordHasher,
}

/// The state of a hash.
#[derive(Clone, Copy)]
pub(crate) struct WordHasher {
    state: [u64; 4],
    words: u64,
}

impl WordHasher {
    /// SipHash of a key of zeros.
    pub(crate) const NEW: Self = WordHasher {
        state: [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573],
        words: 0,
    };

    fn round(&mut self) {
        let [a, b, c, d] = &mut self.state;
        (*a, *c) = (a.wrapping_add(*b), c.wrapping_add(*d));
        (*b, *d) = (b.rotate_left(13) ^ *a, d.rotate_left(16) ^ *c);
        (*a, *c) = (a.rotate_left(32).wrapping_add(*d), c.wrapping_add(*b));
        (*d, *b) = (d.rotate_left(21) ^ *a, b.rotate_left(17) ^ *c);
        *c = c.rotate_left(32);
    }

    fn absorb(&mut self, word: u64) {
        self.state[3] ^= word;
        self.round();
        self.state[0] ^= word;
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.absorb(word);
        self.words += 1;
    }

    #[inline]
    fn write_u128(&mut self, words: u128) {
        self.write_u64(words as u64);
        self.write_u64((words >> 64) as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut last = *self;
        last.absorb(self.words << 59);
        last.state[2] ^= 0xff;
        (0..3).for_each(|_| last.round());
        last.state.into_iter().fold(0, |all, word| all ^ word)
    }
}

impl KeyedHash {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut secret = [0; 16];
        entropy.fill(&mut secret);
        Self::of(&secret)
    }

    /// The hash with this secret.
    pub(crate) fn of(secret: &[u8; 16]) -> Self {
        let mut keyed = WordHasher::NEW;
        keyed.write(secret);
        KeyedHash { keyed }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        self.keyed
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_secret_decides_the_hash() {
        let hash = |seed, value: u64| KeyedHash::new(&mut Rng::seeded(seed)).hash_one(value);
        assert_eq!(hash(1, 5), hash(1, 5));
        assert_ne!(hash(1, 5), hash(2, 5));
        assert_ne!(hash(1, 5), hash(1, 6));
    }

    #[test]
    fn words_hash_as_the_standard_library_hashes_them() {
        let mut rng = Rng::seeded(1);
        for _ in 0..1_000 {
            let mut secret = [0; 16];
            rng.fill(&mut secret);
            let (mut ours, mut standard) = (WordHasher::NEW, DefaultHasher::new());
            ours.write(&secret);
            standard.write(&secret);
            for words in 0..5 {
                assert_eq!(ours.finish(), standard.finish(), "after {words}");
                let word = rng.next_u64();
                let wide = u128::from(word) << 64 | u128::from(rng.next_u64());
                ours.write_u64(word);
                ours.write_u128(wide);
                // Its own for words hash their bytes in the processor's order.
                standard.write(&word.to_le_bytes());
                standard.write(&wide.to_le_bytes());
            }
        }
    }
}
