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

/// A quotient, rounded to the nearest.
fn divide(product: i128, by: i128) -> i64 {
    // Where a number goes on to is near its states.
    (product + by / 2).div_euclid(by) as i64
}

/// A number's states, from the newest of which it is to go on: how far it was from there as many states before.
struct Track<F> {
    back: F,
    were: [i64; WINDOW],
    known: usize,
}

impl<F: FnMut(usize) -> i64> Track<F> {
    #[inline]
    fn at(&mut self, i: usize) -> i64 {
        while self.known < i {
            self.known += 1;
            self.were[self.known] = (self.back)(self.known);
        }
        self.were[i]
    }

    /// The longest line through the newest state on which those before it lie, as nearly: how many do, and the slopes from
    /// one to the next, in 1 / [`PARTS`], that it may have.
    fn line(&mut self, states: usize, tolerance: i64) -> (usize, [i64; 2]) {
        let mut slopes = [i64::MIN, i64::MAX];
        for i in 1..=states {
            let (went, part) = (-self.at(i), PARTS / i as i64);
            let [least, most] = slopes;
            slopes = [least.max((went - tolerance) * part), most.min((went + tolerance) * part)];
            if slopes[0] > slopes[1] {
                return (i - 1, [least, most]);
            }
        }
        (states, slopes)
    }

    /// The longest parabola on which the newest state and those before it lie: how many do.
    fn parabola(&mut self, states: usize, tolerance: i64) -> usize {
        let mut bent = 0;
        for half in MIN_BENT / 2..=states / 2 {
            let (middle, last, n) = (self.at(half), self.at(2 * half), half as i64);
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
        let (last, past) = (last as i128, i128::from(past));
        let (count, to) = (last + 1, last * past + 2 * i128::from(ahead));
        let (one, four) = (count * count - 1, count * count - 4);
        let mut sums = [0; 3];
        for (i, was) in (0..=last).zip(self.were) {
            let (at, was) = (last - 2 * i, i128::from(was));
            sums = [sums[0] + was, sums[1] + at * was, sums[2] + (3 * at * at - one) * was];
        }
        let bend = if bends { 5 * (3 * to * to - one * past * past) * sums[2] } else { 0 };
        let product = 4 * one * four * past * past * sums[0] + 12 * four * past * to * sums[1] + bend;
        divide(product, 4 * count * one * four * past * past)
    }
}

/// How far a number goes on from the newest of its states, of which there are `states` more: `past` is the time between two, and
/// `ahead` the time behind the newest. `back` says how far from the newest it was this many states before.
#[inline]
pub(super) fn go_on(
    states: usize,
    (past, ahead): (u16, u16),
    tolerance: i64,
    back: impl FnMut(usize) -> i64,
) -> i64 {
    let (past, ahead) = (i64::from(past.max(1)), i64::from(ahead));
    let mut track = Track { back, were: [0; WINDOW], known: 0 };
    let (line, [least, most]) = track.line(states, tolerance);
    if line == usize::from(MAX_RUN) {
        return track.fit(line, (past, ahead), false);
    }
    if line < states {
        let bent = track.parabola(states, tolerance);
        if bent > line + 2 {
            return track.fit(bent, (past, ahead), true);
        }
        // Nothing holds for long: the last steps, more than one where more lies ahead.
        let steps = (ahead / past).clamp(1, 2);
        if steps > line as i64 && steps <= states as i64 {
            let went = -track.at(steps as usize);
            return divide(i128::from(went * ahead), i128::from(steps * past));
        }
    }
    if line == 0 { 0 } else { divide(i128::from((least + most) * ahead), i128::from(2 * PARTS * past)) }
}
