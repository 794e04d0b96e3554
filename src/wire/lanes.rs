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
    /// A function of its own, as the next one: so the compiler knows that what it writes isn't what it reads.
    #[inline(never)]
    pub(super) fn resolve(&self, base: &[u32], words: &mut [u32]) {
        let count = self.last.len();
        let (computed, base, words) = (&self.computed[..count], &base[..count], &mut words[..count]);
        for i in 0..count {
            words[i] = placed(words[i], self.last[i], computed[i], base[i].cast_signed());
        }
    }

    /// As [`Lanes::resolve`], against what goes on by one step from an older state to the base.
    #[inline(never)]
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
