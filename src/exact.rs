//! Functions that are the same on every platform, for decisions.
//!
//! IEEE 754 defines addition, subtraction, multiplication, division and square root to the last bit. The standard
//! library's `exp`, `cbrt`, `ln` and `powi` come from the platform and may differ in the last bits, so a rate or a draw
//! that depends on them may differ too. The functions here use the exact operations only.

/// exp(-x) of an x that isn't negative. 0 above 700, where the result can't be told from 0, and for NaN.
pub fn decay(x: f64) -> f64 {
    /// The logarithm of 2 in two parts: products of the first with whole numbers are exact.
    const LN2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    const TERMS: u32 = 14;
    if x.is_nan() || x > 700.0 {
        return 0.0;
    }
    let halvings = (x * core::f64::consts::LOG2_E).round();
    let rest = (x - halvings * LN2[0]) - halvings * LN2[1];
    let series = (1..=TERMS).rev().fold(1.0, |sum, n| 1.0 - rest / f64::from(n) * sum);
    // At most 1010 halvings, so the power of two is a normal number.
    series * f64::from_bits((1023 - halvings as u64) << 52)
}

/// The cube root of a number that isn't negative.
pub fn cube_root(x: f64) -> f64 {
    /// Makes a third of a number's bits those of a root that is less than 6 % off.
    const THIRD: u64 = 0x2A9F_7893_782D_A1CE;
    if x <= 0.0 || !x.is_normal() {
        return 0.0;
    }
    let first = f64::from_bits(x.to_bits() / 3 + THIRD);
    // Halley's method triples the correct digits.
    (0..4).fold(first, |root, _| {
        let cube = root * root * root;
        root * ((cube + 2.0 * x) / (2.0 * cube + x))
    })
}

/// A number in a sentence: in the fewest digits that identify it, those of a single if it is one.
pub(crate) fn short(value: f64) -> String {
    let single = value as f32;
    match () {
        () if value.is_finite() && value.abs() >= 1e16 => format!("{value:e}"),
        () if f64::from(single) == value && value.abs() < 16_777_216.0 => single.to_string(),
        () => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const PRECISION: f64 = 1e-12;

    #[test]
    fn numbers_in_sentences_are_short() {
        let shown = [0.1, f64::from(0.1f32), 1.0, 2_147_483_648.0, 1e300, -1e16, f64::NAN].map(short);
        assert_eq!(shown, ["0.1", "0.1", "1", "2147483648", "1e300", "-1e16", "NaN"]);
    }

    #[test]
    fn functions_agree_with_the_standard_library() {
        let mut rng = Rng::seeded(3);
        for _ in 0..100_000 {
            let x = rng.unit() * f64::from(1u32 << rng.below(10)) * 1.3;
            assert!((decay(x) / (-x).exp() - 1.0).abs() < PRECISION, "exp(-{x})");
            let x = rng.unit() * f64::from_bits((1023 - 60 + rng.below(120)) << 52);
            assert!((cube_root(x) / x.cbrt() - 1.0).abs() < PRECISION, "the cube root of {x}");
        }
    }

    #[test]
    fn functions_keep_to_their_limits() {
        assert_eq!([0.0, 701.0, f64::INFINITY, f64::NAN].map(decay), [1.0, 0.0, 0.0, 0.0]);
        assert!(decay(700.0) > 0.0 && decay(1e-300) == 1.0);
        assert_eq!([0.0, -1.0, f64::NAN].map(cube_root), [0.0; 3]);
        assert_eq!(
            [1.0, 8.0, 1e-300, 1e300].map(|x| (cube_root(x) / f64::cbrt(x) * 1e12).round()),
            [1e12; 4]
        );
    }
}
