//! Values by 16-bit ids of which few are in use: memory is in proportion to their number, not to how high they are.
//!
//! Ids are a peer's choice and the hash is known: it keeps consecutive ids apart, and of 65,536 ids few share a place
//! of a large table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type IdMap<V> = HashMap<u16, V, BuildHasherDefault<IdHasher>>;

#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u16(&mut self, id: u16) {
        // An odd factor: the low bits, which choose the place, differ as those of ids do; the high ones tell ids of a place apart.
        self.0 = u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, bytes: &[u8]) {
        let shifted = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
        self.0 = shifted.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_share_low_bits_are_told_apart_in_bounded_time() {
        let mut map = IdMap::default();
        // The worst choice for a table of 512 places.
        (0..128u16).for_each(|n| assert!(map.insert(n * 512, n).is_none()));
        assert!((0..128u16).all(|n| map[&(n * 512)] == n && !map.contains_key(&(n * 512 + 1))));
    }
}
