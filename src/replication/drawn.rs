//! Numbers for ghosts, in an order that nobody knows without the key.

use sha2::{Digest, Sha256};

/// Another number for each count: a permutation of all numbers of 32 bits, by four rounds of Feistel's network (Luby and
/// Rackoff 1988) over SHA-256 of key, round and half. Who knows numbers can't tell from them how many there were before.
pub(super) fn drawn_number(count: u32, key: u64) -> u32 {
    let (mut left, mut right) = (count >> 16, count & 0xFFFF);
    for round in 1..=4 {
        let mut input = [0; 13];
        input[..8].copy_from_slice(&key.to_le_bytes());
        input[8] = round;
        input[9..].copy_from_slice(&right.to_le_bytes());
        let digest = Sha256::digest(input);
        (left, right) = (right, left ^ u32::from(u16::from_le_bytes([digest[0], digest[1]])));
    }
    left << 16 | right
}

/// Another number of 64 bits for each count, which nobody guesses without the key.
pub(super) fn drawn_id(count: u64, key: u64) -> u64 {
    let digest = Sha256::digest([key.to_le_bytes(), count.to_le_bytes()].as_flattened());
    u64::from_le_bytes(core::array::from_fn(|i| digest[i]))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_number_is_drawn_once() {
        let drawn: HashSet<u32> = (0..20_000).map(|count| drawn_number(count, 7)).collect();
        assert_eq!(drawn.len(), 20_000);
        assert!(drawn.iter().filter(|number| **number < 1 << 31).count().abs_diff(10_000) < 500);
    }

    /// Where halves were mixed with the key bit by bit, keys that differ in the low half gave the same order but for these bits:
    /// that left 48 bits to guess.
    #[test]
    fn no_key_tells_of_another() {
        for low in [1, 0x8000, 0x1234] {
            let both = low << 16 | low;
            let alike = |count: &u32| {
                drawn_number(*count, 99 ^ u64::from(low)) == drawn_number(*count ^ both, 99) ^ both
            };
            assert!((0..1000).filter(alike).count() < 3);
        }
    }
}
