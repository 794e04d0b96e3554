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

/// The longest line through the newest of a number's states on which those before it lie, as nearly: how many do, and the
/// slopes from one to the next, in 1 / [`PARTS`], that it may have.
#[inline]
fn line(were: &[i64], tolerance: i64) -> (usize, [i64; 2]) {
    let (mut line, mut slopes) = (0, [i64::MIN, i64::MAX]);
    for (was, part) in were.iter().zip(SLOPES).skip(1) {
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
fn parabola(were: &[i64], tolerance: i64) -> usize {
    let mut bent = 0;
    // All of one are this near.
    if were.get(3).is_none_or(|third| (third - 3 * (were[2] - were[1])).abs() > 7 * tolerance) {
        return 0;
    }
    for half in MIN_BENT / 2..=(were.len() - 1) / 2 {
        let (last, middle, n) = (were[2 * half], were[half], half as i64);
        // Of the parabola through the first, the middle and the last.
        let (slope, bend) = (n * (last - 4 * middle), last - 2 * middle);
        let off = |i: i64| 2 * n * n * were[i as usize] + i * slope - i * i * bend;
        if !(1..2 * n).all(|i| off(i).abs() <= 2 * n * n * tolerance) {
            break;
        }
        bent = 2 * half;
    }
    bent
}

/// The number ahead by the line or the parabola that is nearest to these states by least squares, in the orthogonal
/// polynomials of Gram (1883) over evenly spaced points.
fn fit(were: &[i64], (past, ahead): (i64, i64), bends: bool) -> i64 {
    let count = were.len() as i64;
    let last = count - 1;
    let to = last * past + 2 * ahead;
    let (one, four) = (count * count - 1, count * count - 4);
    let mut sums = [0; 3];
    for (i, was) in (0..).zip(were) {
        let at = last - 2 * i;
        sums = [sums[0] + was, sums[1] + at * was, sums[2] + (3 * at * at - one) * was];
    }
    let bend = if bends { 5 * (3 * to * to - one * past * past) } else { 0 };
    let factors = [4 * one * four * past * past, 12 * four * past * to, bend];
    let products = sums.iter().zip(factors).map(|(sum, factor)| i128::from(*sum) * i128::from(factor));
    divide(products.sum(), i128::from(4 * count * one * four * past * past))
}

/// How far a number goes on from the newest of its states, of which there are at most [`WINDOW`]. `were` says how far each was
/// from the newest, which comes first; `past` is the time between two, and `ahead` the time behind the newest.
#[inline]
pub(super) fn go_on((past, ahead): (u16, u16), tolerance: i64, were: &[i64]) -> i64 {
    let (past, ahead) = (i64::from(past.max(1)), i64::from(ahead));
    let (line, [least, most]) = line(were, tolerance);
    if line == usize::from(MAX_RUN) {
        return fit(were, (past, ahead), false);
    }
    // Unless there are no more states.
    if were.len() > line + 1 {
        let bent = parabola(were, tolerance);
        if bent > line + 2 {
            return fit(&were[..=bent], (past, ahead), true);
        }
        // Nothing holds for long: the last steps, more than one where more lies ahead.
        let steps = (ahead / past).clamp(1, 2);
        if steps > line as i64
            && let Some(was) = were.get(steps as usize)
        {
            return divide(i128::from(-was * ahead), i128::from(steps * past));
        }
    }
    if line == 0 { 0 } else { divide(i128::from((least + most) * ahead), i128::from(2 * PARTS * past)) }
}
