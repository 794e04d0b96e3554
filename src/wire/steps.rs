//! Numbers in steps of a resolution over a range, in double precision, and angles, whose range is a circle.
//!
//! Promises: the value read is at most half a step from the one written, the bounds are read exactly (a
//! circle's upper one is its lower one), zero too if it is a step, and what was read is written as
//! the same step. Every operation is one of IEEE doubles, rounded by itself, so that every platform agrees.
//! Refuses ranges whose steps doubles don't tell apart.

use super::{ParameterError, bit_len};

/// Maximum steps of a range: 32 bits.
const MAX_STEPS: f64 = u32::MAX as f64;

/// How near a number of steps must be to a whole one to be taken for it: decimal resolutions don't divide their
/// ranges exactly.
const WHOLE: f64 = 1e-6;

/// A range or a circle, cut into equal steps of at most the resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    lo: f64,
    hi: f64,
    /// Steps from `lo` to `hi`.
    count: u32,
    /// Of one of them.
    size: f64,
    /// Steps to a unit: a product costs a fraction of a quotient.
    rate: f64,
    circle: bool,
}

impl Steps {
    /// A range: both bounds are values.
    ///
    /// # Errors
    /// When bounds and resolution are not finite and rising, or make more than 2^32 - 1 steps, or steps too fine
    /// for doubles of that size.
    pub fn range(lo: f64, hi: f64, resolution: f64) -> Result<Self, ParameterError> {
        Self::new(lo, hi, resolution, false)
    }

    /// A circle: every finite number is a value, and `hi` is `lo` again.
    ///
    /// # Errors
    /// As for [`Steps::range`].
    pub fn circle(lo: f64, hi: f64, resolution: f64) -> Result<Self, ParameterError> {
        Self::new(lo, hi, resolution, true)
    }

    fn new(lo: f64, hi: f64, resolution: f64, circle: bool) -> Result<Self, ParameterError> {
        let refused = Err(ParameterError::Steps { lo, hi, resolution });
        let exact = (hi - lo) / resolution;
        let finite = lo.is_finite() && hi.is_finite() && exact.is_finite() && resolution > 0.0;
        if !(finite && exact > 0.0 && exact <= MAX_STEPS) {
            return refused;
        }
        let whole = exact.round();
        let count = if (exact - whole).abs() <= WHOLE { whole } else { exact.ceil() };
        // A whole number from 1 to 2^32 - 1: the conversion is exact.
        let count = count.clamp(1.0, MAX_STEPS) as u32;
        let size = (hi - lo) / f64::from(count);
        let steps = Steps { lo, hi, count, size, rate: 1.0 / size, circle };
        let far = lo.abs().max(hi.abs());
        if far + steps.size / 8.0 == far { refused } else { Ok(steps) }
    }

    /// The last step's number.
    pub fn last(&self) -> u32 {
        if self.circle { self.count - 1 } else { self.count }
    }

    /// Bits of a step's number.
    pub fn bits(&self) -> u32 {
        bit_len(self.last().into())
    }

    pub fn bounds(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// The actual step: at most the resolution asked for.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// Steps to a unit, and from the lower bound to the upper one.
    pub(super) fn rate_and_count(&self) -> (f64, f64) {
        (self.rate, self.count.into())
    }

    /// The step nearest to `value`; None outside the range, or for a number that is not finite.
    #[inline]
    pub fn step_of(&self, value: f64) -> Option<u32> {
        let taken = if self.circle { value.is_finite() } else { (self.lo..=self.hi).contains(&value) };
        if !taken {
            return None;
        }
        let above = value - self.lo;
        let turn = self.hi - self.lo;
        let above = if (0.0..=turn).contains(&above) { above } else { above.rem_euclid(turn) };
        // From 0 to the count, which is a `u32`.
        let step = rounded(above * self.rate).clamp(0, i64::from(self.count)) as u32;
        Some(if self.circle && step == self.count { 0 } else { step })
    }

    /// The value of a step; `step` is at most [`Steps::last`].
    #[inline]
    pub fn value(&self, step: u32) -> f64 {
        // Rounding must not carry the last step off the bound, nor keep zero from being zero.
        let value = if step == self.count { self.hi } else { self.lo + f64::from(step) * self.size };
        if value.abs() < self.size * WHOLE { 0.0 } else { value }
    }

    /// Whether zero is one of its values.
    pub fn has_zero(&self) -> bool {
        self.step_of(0.0).is_some_and(|step| self.value(step) == 0.0)
    }
}

/// The whole number nearest to a float between -2^51 and 2^51, ties to even. Of larger ones, and of what is no number,
/// some number.
///
/// In one addition, where a call of [`f64::round`] and a conversion cost as much as all else of a value: between 2^52
/// and 2^53 doubles are whole numbers, and their patterns count up by one.
#[inline]
pub(super) fn rounded(value: f64) -> i64 {
    const MIDDLE: f64 = ((1u64 << 52) + (1u64 << 51)) as f64;
    let pattern = (value + MIDDLE).to_bits().cast_signed();
    pattern.wrapping_sub(MIDDLE.to_bits().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_power_of_two_is_exact_and_others_are_within_half_a_step() {
        let position = Steps::range(-2048.0, 2047.0, 1.0 / 512.0).unwrap();
        assert_eq!((position.bits(), position.last()), (21, 4095 * 512));
        let mut rng = Rng::seeded(1);
        for _ in 0..2000 {
            let on_grid = (rng.unit() * 4095.0 * 512.0).floor() / 512.0 - 2048.0;
            assert_eq!(position.value(position.step_of(on_grid).unwrap()), on_grid);
        }
        for (lo, hi, resolution) in [(0.0, 1.0, 0.1), (-3.3, 7.1, 0.013), (1e6, 1e6 + 1.0, 1e-6)] {
            let steps = Steps::range(lo, hi, resolution).unwrap();
            assert!(steps.size() <= resolution * (1.0 + 1e-6));
            assert_eq!(steps.value(0), lo);
            assert_eq!(steps.value(steps.last()), hi);
            for _ in 0..1000 {
                let value = lo + rng.unit() * (hi - lo);
                let step = steps.step_of(value).unwrap();
                let read = steps.value(step);
                assert!((read - value).abs() <= steps.size() * 0.500_001, "{value} read as {read}");
                assert_eq!(steps.step_of(read), Some(step));
            }
        }
    }

    #[test]
    fn a_circle_takes_every_number_and_comes_round() {
        let yaw = Steps::circle(0.0, 360.0, 0.1).unwrap();
        assert_eq!((yaw.bits(), yaw.last()), (12, 3599));
        for (value, step) in
            [(0.0, 0), (360.0, 0), (359.96, 0), (359.94, 3599), (-90.0, 2700), (725.0, 50), (-1e-300, 0)]
        {
            assert_eq!(yaw.step_of(value), Some(step), "{value}");
        }
        assert_eq!(yaw.step_of(f64::NAN), None);
        assert_eq!(yaw.step_of(f64::INFINITY), None);
        for step in 0..=yaw.last() {
            assert_eq!(yaw.step_of(yaw.value(step)), Some(step));
            assert!((0.0..360.0).contains(&yaw.value(step)));
        }
        assert_eq!(Steps::circle(0.0, 360.0, 360.0).unwrap().bits(), 0, "one direction is no news");
    }

    #[test]
    fn zero_is_read_as_zero() {
        for count in 1..200 {
            let steps = Steps::range(-1.0, 1.0, 1.0 / f64::from(count)).unwrap();
            assert!(steps.has_zero(), "{count}");
        }
        assert!(!Steps::range(1.0, 2.0, 0.1).unwrap().has_zero());
        assert!(!Steps::range(-0.05, 1.05, 0.1).unwrap().has_zero());
    }

    #[test]
    fn what_lies_outside_a_range_has_no_step() {
        let steps = Steps::range(-1.0, 1.0, 0.5).unwrap();
        assert_eq!([-1.0, 1.0].map(|v| steps.step_of(v)), [Some(0), Some(4)]);
        assert_eq!([-1.01, 1.01, f64::NAN, f64::INFINITY].map(|v| steps.step_of(v)), [None; 4]);
    }

    #[test]
    fn rounds_as_floats_do() {
        let mut rng = Rng::seeded(5);
        let near = [0.0, 0.5, -0.5, 1.5, 2.5, 0.499_999_999_999_999_94, 4_294_967_295.5, -1e15, 1e15];
        let random = (0..20_000).map(|_| (rng.unit() - 0.5) * f64::from(1u32 << rng.below(32) as u32));
        for value in random.chain(near) {
            let halves = [value, (value * 2.0).round() / 2.0];
            for value in halves {
                assert_eq!(rounded(value) as f64, value.round_ties_even(), "{value}");
            }
        }
    }

    #[test]
    fn refuses_ranges_without_meaning() {
        for (lo, hi, resolution) in [
            (1.0, 1.0, 0.1),
            (2.0, 1.0, 0.1),
            (0.0, f64::INFINITY, 0.1),
            (f64::NAN, 1.0, 0.1),
            (0.0, 1.0, 0.0),
            (0.0, 1.0, -0.1),
            (0.0, 1.0, f64::NAN),
            (0.0, 1.0, 1e-10),
            (1e17, 1e17 + 64.0, 1.0),
            (-f64::MAX, f64::MAX, f64::MAX),
        ] {
            let refused = Steps::range(lo, hi, resolution);
            assert!(matches!(refused, Err(ParameterError::Steps { .. })), "{refused:?}");
        }
    }
}
