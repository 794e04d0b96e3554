//! Randomness as an input: a seeded generator for simulation and tests, and the trait through which the
//! driver hands secrets to the core.

/// A source of random bytes: the operating system for drivers, [`Rng`] for tests.
pub trait Entropy {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);
}

/// xoshiro256** (Blackman and Vigna, 2018), seeded through SplitMix64: fast, identical on every platform.
/// Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose sequence follows from `seed`.
    pub fn seeded(seed: u64) -> Self {
        let mut x = seed;
        let mut split_mix = || {
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Rng { state: [split_mix(), split_mix(), split_mix(), split_mix()] }
    }

    /// The complete state, to be saved.
    pub fn state(&self) -> [u64; 4] {
        self.state
    }

    /// The generator with this state; None for all zeros, which no generator has.
    pub fn from_state(state: [u64; 4]) -> Option<Self> {
        (state != [0; 4]).then_some(Rng { state })
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// A number in `0..bound` with negligible bias (Lemire's multiply-shift; the bias is below `bound / 2^64`). `bound`
    /// 0 gives 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with this probability (0 never, 1 always).
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

impl Entropy for Rng {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence() {
        let mut a = Rng::seeded(1);
        let mut b = Rng::seeded(1);
        let first: Vec<u64> = (0..4).map(|_| a.next_u64()).collect();
        assert_eq!(first, (0..4).map(|_| b.next_u64()).collect::<Vec<_>>());
        assert_ne!(first[0], Rng::seeded(2).next_u64());
    }

    #[test]
    fn chance_matches_its_probability() {
        let mut rng = Rng::seeded(7);
        let hits = (0..100_000).filter(|_| rng.chance(0.3)).count();
        assert!((29_500..30_500).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| !rng.chance(0.0)));
        assert!((0..1000).all(|_| rng.chance(1.0)));
        assert!((0..1000).all(|_| rng.below(10) < 10));
    }
}
