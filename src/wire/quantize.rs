//! Numbers in steps: the compressed float and the fixed-point format of serialize 1.0.
//!
//! Promises: the standard's single-precision arithmetic, each step rounded by itself (no double, no fused
//! multiply-add), so that every platform makes the same bits and reads the same value.
//! Refuses bounds and resolutions for which the standard gives no meaning.

use super::{MAX_FRACTION_BITS, ParameterError, ReadError, bit_len};

/// Largest single below 2^32: the standard's bound of the number of steps.
const MAX_STEPS: f32 = 4_294_967_040.0;

/// Singles tell no more steps apart.
pub(super) const MAX_EXACT_STEPS: u32 = 1 << f32::MANTISSA_DIGITS;

/// A range of floats cut into equal steps, with its constants worked out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantizer {
    lo: f32,
    hi: f32,
    resolution: f32,
    delta: f32,
    last: u32,
    bits: u32,
}

impl Quantizer {
    /// Steps of about `resolution` over `lo..=hi`. Everything is rounded to single precision first.
    ///
    /// # Errors
    /// When a bound or the resolution is not finite, `lo` is not below `hi`, or the resolution is not
    /// positive.
    pub fn new(lo: f64, hi: f64, resolution: f64) -> Result<Self, ParameterError> {
        let (low, high, step) = (lo as f32, hi as f32, resolution as f32);
        let delta = high - low;
        if !(delta.is_finite() && delta > 0.0) {
            return Err(ParameterError::FloatRange { lo, hi });
        }
        let steps = delta / step;
        if !(step.is_finite() && step > 0.0 && steps.is_finite()) {
            return Err(ParameterError::Resolution { resolution });
        }
        // A whole number of at most 32 bits: the conversion is exact.
        let last = steps.clamp(1.0, MAX_STEPS).ceil() as u32;
        Ok(Quantizer { lo: low, hi: high, resolution: step, delta, last, bits: bit_len(u64::from(last)) })
    }

    /// Bits of a step number.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The last step's number.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The lower bound, the upper bound and the resolution, in single precision as they are used.
    pub fn parameters(&self) -> (f32, f32, f32) {
        (self.lo, self.hi, self.resolution)
    }

    /// The bounds, or the last step's value if rounding puts it above the upper one: read values can be written
    /// again.
    pub fn reach(&self) -> (f32, f32) {
        (self.lo, self.hi.max(self.delta + self.lo))
    }

    /// The step nearest to `value`, which must be a number; the first or the last one beyond the bounds.
    pub fn quantize(&self, value: f32) -> u32 {
        debug_assert!(!value.is_nan());
        let normalized = ((value - self.lo) / self.delta).clamp(0.0, 1.0);
        let scaled = normalized * self.last as f32;
        // From 2^23 steps on the sum can round beyond the last step.
        ((scaled + 0.5).floor() as u32).min(self.last)
    }

    /// A step's float.
    ///
    /// # Errors
    /// When `step` is beyond the last one.
    pub fn value(&self, step: u64) -> Result<f32, ReadError> {
        match u32::try_from(step) {
            Ok(step) if step <= self.last => Ok(step as f32 / self.last as f32 * self.delta + self.lo),
            _ => {
                let step = u32::try_from(step).unwrap_or(u32::MAX);
                Err(ReadError::BeyondLastStep { step, last: self.last })
            }
        }
    }
}

/// A fixed-point format: integers that count 2^-fraction_bits, between bounds in whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPoint {
    fraction_bits: u32,
    raw_lo: i128,
    raw_hi: i128,
}

impl FixedPoint {
    /// `fraction_bits` binary places over `lo..=hi` whole units.
    ///
    /// # Errors
    /// When `lo` is above `hi`, or there are more than [`MAX_FRACTION_BITS`].
    pub fn new(fraction_bits: u32, lo: i64, hi: i64) -> Result<Self, ParameterError> {
        if fraction_bits > MAX_FRACTION_BITS {
            return Err(ParameterError::FractionBits { bits: fraction_bits });
        }
        if lo > hi {
            return Err(ParameterError::EmptyRange { lo: i128::from(lo), hi: i128::from(hi) });
        }
        let raw = |units: i64| i128::from(units) << fraction_bits;
        Ok(FixedPoint { fraction_bits, raw_lo: raw(lo), raw_hi: raw(hi) })
    }

    /// Whether an `f64` carries every number of the format exactly.
    pub fn fits_f64(&self) -> bool {
        const EXACT: i128 = 1 << f64::MANTISSA_DIGITS;
        self.raw_lo >= -EXACT && self.raw_hi <= EXACT
    }

    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// The smallest raw integer.
    pub fn raw_lo(&self) -> i128 {
        self.raw_lo
    }

    /// The largest raw integer.
    pub fn raw_hi(&self) -> i128 {
        self.raw_hi
    }

    /// The raw integer nearest to `value`, ties away from zero; `None` when that is outside the bounds or
    /// `value` is not a number.
    pub fn raw(&self, value: f64) -> Option<i128> {
        // Scaling by a power of two is exact. `round` takes ties away from zero.
        let scaled = (value * self.scale()).round();
        const LIMIT: f64 = (1u128 << 127) as f64;
        if !(-LIMIT..LIMIT).contains(&scaled) {
            return None;
        }
        let raw = scaled as i128;
        (self.raw_lo..=self.raw_hi).contains(&raw).then_some(raw)
    }

    /// The number of a raw integer.
    pub fn value(&self, raw: i128) -> f64 {
        raw as f64 / self.scale()
    }

    fn scale(&self) -> f64 {
        (1u128 << self.fraction_bits) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_each_step_to_single_precision() {
        let steps = Quantizer::new(0.0, 10.0, 0.01).unwrap();
        assert_eq!(steps.bits(), 10);
        // In double precision these would be 0, 2, 10 and 999.
        for (value, step) in [(0.005, 1), (0.025, 3), (0.105, 11), (9.995, 1000), (-1.0, 0), (1e30, 1000)] {
            assert_eq!(steps.quantize(value), step, "{value}");
        }
        assert_eq!(steps.value(1), Ok(f32::from_bits(0x3C23_D70B)));
        assert_eq!(steps.value(1001), Err(ReadError::BeyondLastStep { step: 1001, last: 1000 }));
        let around_zero = Quantizer::new(-100.0, 100.0, 0.01).unwrap();
        assert_eq!(around_zero.value(384), Ok(f32::from_bits(0xC2C0_51EC)), "not fused");
    }

    #[test]
    fn never_makes_a_step_beyond_the_last() {
        let odd = Quantizer::new(0.0, 8_388_609.0, 1.0).unwrap();
        assert_eq!((odd.quantize(8_388_609.0), odd.bits()), (8_388_609, 24));
        let full = Quantizer::new(0.0, 16_777_215.0, 1.0).unwrap();
        assert_eq!((full.quantize(16_777_215.0), full.bits()), (16_777_215, 24));
        assert_eq!(full.quantize(8_388_608.0), 8_388_608, "not fused");
        let clamped = Quantizer::new(0.0, 8_589_934_592.0, 1.0).unwrap();
        assert_eq!((clamped.bits(), clamped.quantize(f32::INFINITY)), (32, 4_294_967_040));
        assert_eq!(Quantizer::new(0.0, 1.0, 10.0).unwrap().bits(), 1);
    }

    #[test]
    fn refuses_ranges_without_meaning() {
        for (lo, hi, resolution) in
            [(1.0, 1.0, 0.1), (2.0, 1.0, 0.1), (f64::NAN, 1.0, 0.1), (-3e38, 3e38, 0.1), (0.0, 1e300, 0.1)]
        {
            let refused = Quantizer::new(lo, hi, resolution);
            assert!(matches!(refused, Err(ParameterError::FloatRange { .. })), "{refused:?}");
        }
        for resolution in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-60] {
            let refused = Quantizer::new(0.0, 1.0, resolution);
            assert!(matches!(refused, Err(ParameterError::Resolution { .. })), "{refused:?}");
        }
    }

    #[test]
    fn fixed_point_rounds_ties_away_from_zero() {
        let format = FixedPoint::new(4, -100, 100).unwrap();
        let half = 0.5 / 16.0;
        assert_eq!(format.raw(1.0 + half), Some(17));
        assert_eq!(format.raw(-1.0 - half), Some(-17));
        assert_eq!(format.raw(-3.25).map(|raw| format.value(raw)), Some(-3.25));
        assert_eq!(format.raw(100.0 + half), None);
        assert_eq!(format.raw(f64::NAN), None);
        assert_eq!(format.raw(f64::NEG_INFINITY), None);
    }

    #[test]
    fn fixed_point_spans_128_bits() {
        let format = FixedPoint::new(64, i64::MIN, i64::MAX).unwrap();
        assert_eq!(format.raw_lo(), i128::MIN);
        assert_eq!(format.raw_hi(), i128::from(i64::MAX) << 64);
        assert!(!format.fits_f64());
        assert_eq!((format.raw(-2e19), format.raw(f64::NEG_INFINITY)), (None, None));
        assert_eq!(format.raw(-9_223_372_036_854_775_808.0), Some(i128::MIN));
        assert_eq!(FixedPoint::new(65, 0, 1), Err(ParameterError::FractionBits { bits: 65 }));
        assert_eq!(FixedPoint::new(1, 1, 0), Err(ParameterError::EmptyRange { lo: 1, hi: 0 }));
    }
}
