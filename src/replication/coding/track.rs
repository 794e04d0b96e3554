//! The extrapolation of a number from its last states.
//!
//! It goes on by the longest line that these lie on, or the longest parabola if that holds for longer: as far back as rounding
//! explains the distances. Where neither holds, it goes on by the last steps.
//!
//! IEEE 754 defines all operations here to the last bit, so both sides find the same. The compiler turns loops over all lanes into
//! vector instructions.

/// The maximum of states before the newest that words are predicted from.
pub(in crate::replication) const MAX_RUN: u8 = 12;

/// The maximum of them where they follow each other by no certain ticks.
pub(in crate::replication) const MAX_STEPS: u8 = 3;

/// States and the newest.
pub(in crate::replication) const WINDOW: usize = MAX_RUN as usize + 1;

/// A number of each state, by how many are newer. The places beyond the states have any.
pub(super) type Lanes = [f32; LANES];
pub(super) const LANES: usize = WINDOW.next_multiple_of(4);

/// The numbers of the lanes, and one over each.
const NUMBERS: Lanes = {
    let mut numbers = [0.0; LANES];
    let mut i = 0;
    while i < LANES {
        numbers[i] = i as f32;
        i += 1;
    }
    numbers
};
const PARTS: Lanes = {
    let mut parts = [1.0; LANES];
    let mut i = 1;
    while i < LANES {
        parts[i] = 1.0 / i as f32;
        i += 1;
    }
    parts
};

/// A parabola is looked for in no fewer states before the newest.
const MIN_BENT: usize = 6;

/// A number rounded to the nearest whole one, halves up.
#[inline]
pub(super) fn nearest(number: f32) -> i64 {
    let number = f64::from(number) + 0.5;
    // Results are far below 2^63.
    let cut = number as i64;
    cut - i64::from(cut as f64 > number)
}

/// The longest line through the newest of these states on which those before it lie, as nearly: how many do, and twice the slope
/// from one to the next.
#[inline]
fn line(were: &Lanes, count: usize, tolerance: f32) -> (usize, f32) {
    let (mut low, mut high) = ([0.0; LANES], [0.0; LANES]);
    for i in 0..LANES {
        low[i] = (-were[i] - tolerance) * PARTS[i];
        high[i] = (-were[i] + tolerance) * PARTS[i];
    }
    let (mut line, mut least, mut most) = (0, f32::MIN, f32::MAX);
    for (low, high) in low[..count].iter().zip(&high[..count]).skip(1) {
        let low = if *low > least { *low } else { least };
        let high = if *high < most { *high } else { most };
        if low > high {
            break;
        }
        (line, least, most) = (line + 1, low, high);
    }
    (line, if line == 0 { 0.0 } else { least + most })
}

/// The longest parabola on which the newest state and those before it lie: how many do.
#[inline]
fn parabola(were: &Lanes, count: usize, tolerance: f32) -> usize {
    let mut bent = 0;
    // All of one are this near.
    if (were[3] - 3.0 * (were[2] - were[1])).abs() > 7.0 * tolerance {
        return 0;
    }
    for half in MIN_BENT / 2..=(count - 1) / 2 {
        // Of the parabola through the first, the middle and the last.
        let (last, middle, part) = (were[2 * half], were[half], 0.5 * PARTS[half]);
        let (slope, bend) = ((4.0 * middle - last) * part, (last - 2.0 * middle) * part * part * 2.0);
        let distance = |i: usize| were[i] - NUMBERS[i] * (slope + NUMBERS[i] * bend);
        if (1..2 * half).any(|i| distance(i).abs() > tolerance) {
            break;
        }
        bent = 2 * half;
    }
    bent
}

/// The number this far ahead, in states, by the line or the parabola that is nearest to these states by least squares, in the
/// orthogonal polynomials of Gram (1883) over evenly spaced points.
#[inline]
fn fit(were: &[f32], ahead: f32, bends: bool) -> f32 {
    let count = were.len() as f32;
    let to = count - 1.0 + 2.0 * ahead;
    let (one, four) = (count * count - 1.0, count * count - 4.0);
    let mut sums = [0.0; 3];
    for (was, number) in were.iter().zip(NUMBERS) {
        let at = count - 1.0 - 2.0 * number;
        sums = [sums[0] + was, sums[1] + at * was, sums[2] + (3.0 * at * at - one) * was];
    }
    let bend = if bends { 1.25 * (3.0 * to * to - one) * sums[2] / four } else { 0.0 };
    (sums[0] + (3.0 * to * sums[1] + bend) / one) / count
}

/// How far a number goes on from the newest of its states, of which there are this many. `were` says how far each was from the
/// newest, which comes first; `ahead` is the time behind the newest, in times between two states. It may go on by a parabola if it
/// bends.
#[inline]
pub(super) fn go_on(ahead: f32, tolerance: f32, were: &Lanes, count: usize, bends: bool) -> f32 {
    let (line, slope) = line(were, count, tolerance);
    if line == usize::from(MAX_RUN) {
        return fit(&were[..WINDOW], ahead, false);
    }
    // Unless there are no more states.
    if count > line + 1 {
        let bent = if bends { parabola(were, count, tolerance) } else { 0 };
        if bent > line + 2 {
            return fit(&were[..=bent], ahead, true);
        }
        // Nothing holds for long: the last steps, more than one where more lies ahead.
        let steps = if ahead < 2.0 { 1 } else { 2 };
        if steps > line && count > steps {
            return -were[steps] * ahead * PARTS[steps];
        }
    }
    slope * ahead * 0.5
}
