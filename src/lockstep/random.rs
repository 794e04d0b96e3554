//! The shared random generator: xoshiro256** seeded through SplitMix64, integers without bias.

use crate::rng::Rng;

/// A generator whose sequence follows from its seed, the same on every platform; its state can be saved and restored.
#[derive(Clone, Debug)]
pub struct SharedRandom {
    rng: Rng,
}

impl SharedRandom {
    /// The sequence of this seed.
    pub fn seeded(seed: u64) -> Self {
        SharedRandom { rng: Rng::seeded(seed) }
    }

    /// The complete state, in 32 bytes.
    pub fn state(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.rng.state()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// The generator with this state; None for all zeros, which no generator has.
    pub fn from_state(bytes: &[u8; 32]) -> Option<Self> {
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Rng::from_state(state).map(|rng| SharedRandom { rng })
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// A number in `0..bound`, all equally likely: Lemire's multiplication ("Fast Random Integer Generation in an
    /// Interval", 2019), drawing again where a number would come up too often. 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number in `low..=high`, all equally likely.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low) as u64;
        let drawn = match span.checked_add(1) {
            Some(count) => self.below(count),
            None => self.next_u64(),
        };
        low.wrapping_add(drawn as i64)
    }

    /// A float in `0..1` of 53 random bits: exact, and so the same everywhere.
    pub fn unit(&mut self) -> f64 {
        self.rng.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_goes_on_where_it_was() {
        let mut random = SharedRandom::seeded(7);
        random.next_u64();
        let mut again = SharedRandom::from_state(&random.state()).unwrap();
        assert_eq!([random.next_u64(), random.next_u64()], [again.next_u64(), again.next_u64()]);
        assert!(SharedRandom::from_state(&[0; 32]).is_none());
    }

    #[test]
    fn integers_have_no_bias() {
        // Two thirds of 2^64: without drawing again, half of the numbers would come up twice as often.
        let (mut random, bound) = (SharedRandom::seeded(1), (u64::MAX / 3) * 2);
        let low = (0..30_000).filter(|_| random.below(bound) < bound / 2).count();
        assert!((14_600..15_400).contains(&low), "{low}");
        let odd = (0..30_000).filter(|_| random.below(bound) % 2 == 1).count();
        assert!((14_600..15_400).contains(&odd), "{odd}");
        let mut seen = [0; 6];
        (0..6000).for_each(|_| seen[random.below(6) as usize] += 1);
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn the_sequence_of_a_seed_is_for_ever() {
        let mut random = SharedRandom::seeded(42);
        let drawn: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(drawn, [1546998764402558742, 6990951692964543102, 12544586762248559009]);
    }
}
