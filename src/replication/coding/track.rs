//! The extrapolation of a number from its last states.
//!
//! It goes on by the longest line that these lie on, or the longest parabola if that holds for longer: as far back as rounding
//! explains the distances. Where neither holds, it goes on by the last steps. All is in integers, so that both sides find the same.

/// The maximum of states before the newest that words are predicted from.
pub(in crate::replication) const MAX_RUN: u8 = 12;

/// The maximum of them where they follow each other by no certain ticks.
pub(in crate::replication) const MAX_STEPS: u8 = 3;

/// States and the newest.
pub(in crate::replication) const WINDOW: usize = MAX_RUN as usize + 1;

/// A number that each count of states divides.
const PARTS: i64 = 27_720;

/// A parabola is looked for in no fewer states before the newest.
const MIN_BENT: usize = 6;

/// The slopes of a line, by how many states it is until it has gone this far: [`PARTS`] over that.
const SLOPES: [i64; WINDOW] = {
    let mut slopes = [0; WINDOW];
    let mut i = 1;
    while i < WINDOW {
        slopes[i] = PARTS / i as i64;
        i += 1;
    }
    slopes
};

/// A quotient, rounded to the nearest.
fn divide(product: i128, by: i128) -> i64 {
    let product = product + by / 2;
    // Where a number goes on to is near its states.
    match (i64::try_from(product), i64::try_from(by)) {
        (Ok(product), Ok(by)) => product.div_euclid(by),
        _ => product.div_euclid(by) as i64,
    }
}

/// A number's states, from the newest of which it is to go on: how far it was from there as many states before, which is asked for
/// only where it matters.
struct Track<F> {
    back: F,
    were: [i64; WINDOW],
    known: usize,
}

impl<F: FnMut(usize) -> Option<i64>> Track<F> {
    #[inline]
    fn at(&mut self, i: usize) -> Option<i64> {
        while self.known < i {
            self.were[self.known + 1] = (self.back)(self.known + 1)?;
            self.known += 1;
        }
        Some(self.were[i])
    }

    /// The longest line through the newest state on which those before it lie, as nearly: how many do, and the slopes from
    /// one to the next, in 1 / [`PARTS`], that it may have.
    fn line(&mut self, tolerance: i64) -> (usize, [i64; 2]) {
        let (mut line, mut slopes) = (0, [i64::MIN, i64::MAX]);
        while line < usize::from(MAX_RUN)
            && let Some(was) = self.at(line + 1)
        {
            let part = SLOPES[line + 1];
            let [least, most] = slopes;
            let within = [least.max((-was - tolerance) * part), most.min((-was + tolerance) * part)];
            if within[0] > within[1] {
                break;
            }
            (line, slopes) = (line + 1, within);
        }
        (line, slopes)
    }

    /// The longest parabola on which the newest state and those before it lie: how many do.
    fn parabola(&mut self, tolerance: i64) -> usize {
        let mut bent = 0;
        // All of one are this near.
        if self.at(3).is_none_or(|third| (third - 3 * (self.were[2] - self.were[1])).abs() > 7 * tolerance) {
            return 0;
        }
        for half in MIN_BENT / 2..=usize::from(MAX_RUN) / 2 {
            let Some(last) = self.at(2 * half) else { break };
            let (middle, n) = (self.were[half], half as i64);
            // Of the parabola through the first, the middle and the last.
            let (slope, bend) = (n * (last - 4 * middle), last - 2 * middle);
            let off = |i: i64| 2 * n * n * self.were[i as usize] + i * slope - i * i * bend;
            if !(1..2 * n).all(|i| off(i).abs() <= 2 * n * n * tolerance) {
                break;
            }
            bent = 2 * half;
        }
        bent
    }

    /// The number ahead by the line or the parabola that is nearest to the last states by least squares, in the orthogonal
    /// polynomials of Gram (1883) over evenly spaced points.
    fn fit(&self, last: usize, (past, ahead): (i64, i64), bends: bool) -> i64 {
        let last = last as i64;
        let (count, to) = (last + 1, last * past + 2 * ahead);
        let (one, four) = (count * count - 1, count * count - 4);
        let mut sums = [0; 3];
        for (i, was) in (0..=last).zip(self.were) {
            let at = last - 2 * i;
            sums = [sums[0] + was, sums[1] + at * was, sums[2] + (3 * at * at - one) * was];
        }
        let bend = if bends { 5 * (3 * to * to - one * past * past) } else { 0 };
        let factors = [4 * one * four * past * past, 12 * four * past * to, bend];
        let products = sums.iter().zip(factors).map(|(sum, factor)| i128::from(*sum) * i128::from(factor));
        divide(products.sum(), i128::from(4 * count * one * four * past * past))
    }
}

/// How far a number goes on from the newest of its states: `past` is the time between two, and `ahead` the time behind the newest.
/// `back` says how far from the newest it was this many states before, from 1 on, as far as there are states.
#[inline]
pub(super) fn go_on(
    (past, ahead): (u16, u16),
    tolerance: i64,
    back: impl FnMut(usize) -> Option<i64>,
) -> i64 {
    let (past, ahead) = (i64::from(past.max(1)), i64::from(ahead));
    let mut track = Track { back, were: [0; WINDOW], known: 0 };
    let (line, [least, most]) = track.line(tolerance);
    if line == usize::from(MAX_RUN) {
        return track.fit(line, (past, ahead), false);
    }
    // Unless there are no more states.
    if track.known > line {
        let bent = track.parabola(tolerance);
        if bent > line + 2 {
            return track.fit(bent, (past, ahead), true);
        }
        // Nothing holds for long: the last steps, more than one where more lies ahead.
        let steps = (ahead / past).clamp(1, 2);
        if steps > line as i64
            && let Some(was) = track.at(steps as usize)
        {
            return divide(i128::from(-was * ahead), i128::from(steps * past));
        }
    }
    if line == 0 { 0 } else { divide(i128::from((least + most) * ahead), i128::from(2 * PARTS * past)) }
}
