//! Hashing with a secret, so that nobody outside can choose addresses that collide. The secret is an input: the
//! standard library's is hidden randomness.

use core::hash::{BuildHasher, Hasher};
use std::collections::HashMap;
use std::hash::DefaultHasher;

use crate::rng::Entropy;

/// A map with a keyed hash. Iterate it only where the order doesn't matter.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, KeyedHash>;

/// A SipHash that has absorbed 128 secret bits first.
#[derive(Clone)]
pub(crate) struct KeyedHash {
    keyed: DefaultHasher,
}

impl KeyedHash {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut secret = [0; 16];
        entropy.fill(&mut secret);
        let mut keyed = DefaultHasher::new();
        keyed.write(&secret);
        KeyedHash { keyed }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.keyed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_secret_decides_the_hash() {
        let hash = |seed, value: u64| KeyedHash::new(&mut Rng::seeded(seed)).hash_one(value);
        assert_eq!(hash(1, 5), hash(1, 5));
        assert_ne!(hash(1, 5), hash(2, 5));
        assert_ne!(hash(1, 5), hash(1, 6));
    }
}
