//! Many words at once, as the processor's vectors hold them: those of lines that aren't long.
//!
//! Promises: the words are those of [`WordRange::word`] and [`WordRange::extrapolate`] one by one.

use super::words::{Metric, WordRange};

/// The largest word whose double has 32 bits with its sign.
const MAX_LAST: u64 = (1 << 30) - 1;

/// The ranges of a class's words, up to the last of those that are computed together.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    last: Box<[i32]>,
    /// All ones for those that are computed; the others stay as they are.
    computed: Box<[i32]>,
}

/// Whether a word is computed together with others.
pub(super) fn is_laned(range: &WordRange) -> bool {
    range.metric() == Metric::Line && range.last() <= MAX_LAST
}

impl Lanes {
    pub(super) fn new(ranges: &[WordRange]) -> Self {
        let count = ranges.iter().rposition(is_laned).map_or(0, |last| last + 1);
        let ranges = &ranges[..count];
        Lanes {
            // At most 30 bits.
            last: ranges.iter().map(|range| range.last().min(MAX_LAST) as i32).collect(),
            computed: ranges.iter().map(|range| -i32::from(is_laned(range))).collect(),
        }
    }

    /// Makes words of residuals against those of a base.
    ///
    /// Part of its caller, as the next one, which may be compiled for wider vectors.
    #[inline(always)]
    pub(super) fn resolve(&self, base: &[u32], words: &mut [u32]) {
        let count = self.last.len();
        let (computed, base, words) = (&self.computed[..count], &base[..count], &mut words[..count]);
        for i in 0..count {
            words[i] = placed(words[i], self.last[i], computed[i], base[i].cast_signed());
        }
    }

    /// As [`Lanes::resolve`], against what goes on by one step from an older state to the base.
    #[inline(always)]
    pub(super) fn resolve_ahead(&self, older: &[u32], base: &[u32], words: &mut [u32]) {
        let count = self.last.len();
        let (computed, older) = (&self.computed[..count], &older[..count]);
        let (base, words) = (&base[..count], &mut words[..count]);
        for i in 0..count {
            let last = self.last[i];
            // Those that stay may be anything.
            let ahead = base[i].wrapping_add(base[i]).wrapping_sub(older[i]).cast_signed();
            let ahead = if ahead > last { last } else { ahead };
            let ahead = if ahead > 0 { ahead } else { 0 };
            words[i] = placed(words[i], last, computed[i], ahead);
        }
    }
}

/// As [`WordRange::word`], without branches: where one side of the base has ended, the other's words go on by one.
#[inline]
fn placed(residual: u32, last: i32, computed: i32, base: i32) -> u32 {
    let residual = residual.cast_signed();
    let other = last.wrapping_sub(base);
    let both = if base > other { other } else { base };
    let beyond = if base > other { last.wrapping_sub(residual) } else { residual };
    // Above the base where it is odd.
    let below = (residual & 1).wrapping_sub(1);
    let distance = (residual >> 1).wrapping_add(residual & 1);
    let near = base.wrapping_add((distance ^ below).wrapping_sub(below));
    let word = if residual > both.wrapping_add(both) { beyond } else { near };
    (residual ^ computed & (word ^ residual)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Up to the largest range whose words are computed together, and beyond, from one end of each to the other.
    #[test]
    fn words_at_once_are_those_one_by_one() {
        let mut rng = Rng::seeded(3);
        let mut lasts: Vec<u64> = (0..20).collect();
        lasts.extend([1000, (1 << 21) - 1, MAX_LAST - 1, MAX_LAST, MAX_LAST + 1, u32::MAX.into()]);
        let mut ranges: Vec<WordRange> =
            lasts.iter().map(|last| WordRange::new(*last, Metric::Line, true)).collect();
        ranges.insert(7, WordRange::new(359, Metric::Circle, true));
        ranges.insert(3, WordRange::new(3, Metric::Choice, true));
        let lanes = Lanes::new(&ranges);
        for _ in 0..4000 {
            let mut any = || -> Vec<u32> {
                let one = |range: &WordRange| match rng.below(6) {
                    0 => 0,
                    1 => range.last(),
                    2 => range.last() / 2,
                    3 => range.last().saturating_sub(rng.below(4)),
                    4 => rng.below(4).min(range.last()),
                    _ => rng.below(range.last() + 1),
                };
                ranges.iter().map(one).map(|word| word as u32).collect()
            };
            let (base, older, residuals) = (any(), any(), any());
            let (mut stays, mut ahead) = (residuals.clone(), residuals.clone());
            lanes.resolve(&base, &mut stays);
            lanes.resolve_ahead(&older, &base, &mut ahead);
            for (i, range) in ranges.iter().enumerate() {
                let [base, older, residual] = [base[i], older[i], residuals[i]].map(u64::from);
                let expected = match is_laned(range) {
                    true => {
                        [base, range.extrapolate(older, base, 1, 1)].map(|from| range.word(residual, from))
                    }
                    false => [residual; 2],
                };
                assert_eq!(
                    [stays[i], ahead[i]].map(u64::from),
                    expected,
                    "{range:?} {base} {older} {residual}"
                );
            }
            // Those of which no update said anything: whatever it is.
            let mut left: Vec<u32> = base.iter().map(|_| rng.next_u64() as u32).collect();
            lanes.resolve(&base, &mut left);
            lanes.resolve_ahead(&left.clone(), &base, &mut left);
        }
    }
}
