//! Rotations as quaternions in integers, so that both sides find the same.
//!
//! Where a rotation turns evenly, its states lie evenly on a great circle. So the vector of how it turned from a state to the newest,
//! half the angle along the axis, grows evenly with the state's age: each of its numbers lies on a line.

use super::track::{WINDOW, go_on};

/// 1 in a quaternion's numbers.
const BITS: u32 = 30;
const ONE: i64 = 1 << BITS;

/// States that the newest turned further from than this aren't looked at: 74 degrees, by the cosine of half of it. Behind it the
/// series are too short.
const NEAR: i64 = ONE / 5 * 4;

/// The maximum of half the angle that a rotation goes on by, squared: 70 degrees.
const FAR: i64 = ONE / 2 * 3;

/// The root of a number below 2^61, rounded down: a quarter of the time that `isqrt` takes.
#[inline]
fn root(number: i64) -> i64 {
    // The root of doubles is exact to the last bit everywhere, so this is off by less than 1.
    let near = (number as f64).sqrt() as i64;
    near + i64::from((near + 1) * (near + 1) <= number) - i64::from(near * near > number)
}

/// A product of two numbers of which the second is a quaternion's.
#[inline]
fn times(a: i64, b: i64) -> i64 {
    (a * b) >> BITS
}

/// A rotation, of length 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quaternion([i64; 4]);

impl Quaternion {
    /// The place of its largest component.
    #[inline]
    pub(super) fn largest(self) -> u64 {
        let mut most = 0;
        for at in 1..4 {
            if self.0[at].abs() > self.0[most].abs() {
                most = at;
            }
        }
        most as u64
    }

    #[inline]
    fn dot(self, other: Quaternion) -> i64 {
        let products = self.0.iter().zip(other.0).map(|(a, b)| a * b);
        products.sum::<i64>() >> BITS
    }

    /// The vector of how far it is from another one: twice as much turns that to this. None if it is too far.
    #[inline]
    fn turned_from(self, other: Quaternion) -> Option<[i64; 3]> {
        let cosine = self.dot(other);
        if cosine.abs() < NEAR {
            return None;
        }
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        // The last is the real part.
        let vector =
            [a * h - d * e + c * f - b * g, b * h - d * f + a * g - c * e, c * h - d * g + b * e - a * f];
        let vector = vector.map(|product| (product >> BITS) * cosine.signum());
        // The angle for its sine.
        let square = (ONE - times(cosine, cosine)).max(0);
        let wider = ONE + square / 6 + times(square, square) * 3 / 40;
        Some(vector.map(|part| times(part, wider)))
    }

    /// Turned further by such a vector.
    #[inline]
    fn turned_by(self, vector: [i64; 3]) -> Option<Quaternion> {
        if vector.iter().any(|part| part.abs() > FAR) {
            return None;
        }
        let square: i64 = vector.iter().map(|part| times(*part, *part)).sum();
        if square > FAR {
            return None;
        }
        let (fourth, sixth) = (times(square, square), times(times(square, square), square));
        let cosine = ONE - square / 2 + fourth / 24 - sixth / 720 + times(fourth, fourth) / 40_320;
        let sine = ONE - square / 6 + fourth / 120 - sixth / 5_040;
        let ([e, f, g], h) = (vector.map(|part| times(part, sine)), cosine);
        let [a, b, c, d] = self.0;
        let product = [
            h * a + e * d + f * c - g * b,
            h * b + f * d + g * a - e * c,
            h * c + g * d + e * b - f * a,
            h * d - e * a - f * b - g * c,
        ];
        Some(Quaternion(product.map(|part| part >> BITS)))
    }
}

/// How levels and the numbers of quaternions go with each other: a reach is the largest level, and stands for the root of a half.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    levels: i64,
    /// What a level is, in 2^-16, and 1 in levels, in 2^-16.
    level: i64,
    one: i64,
}

impl Reach {
    pub(super) fn new(levels: u64) -> Self {
        // Few bits.
        let square = 2 * u128::from(levels.max(1)).pow(2);
        let one = (square << 32).isqrt();
        let level = (1u128 << (2 * (BITS + 16))) / square;
        Reach { levels: levels as i64, level: level.isqrt() as i64, one: one as i64 }
    }

    /// How far off a line rounding may put a rotation's numbers: a level.
    fn tolerance(self) -> i64 {
        self.level >> 16
    }

    /// The rotation of a place and three levels.
    #[inline]
    pub(super) fn quaternion(self, [place, levels @ ..]: [u64; 4]) -> Quaternion {
        let [a, b, c] = levels.map(|level| ((level as i64 - self.levels) * self.level) >> 16);
        let largest = root((ONE * ONE - a * a - b * b - c * c).max(0));
        Quaternion(match place {
            0 => [largest, a, b, c],
            1 => [a, largest, b, c],
            2 => [a, b, largest, c],
            _ => [a, b, c, largest],
        })
    }

    /// The levels of all components but the one at a place.
    #[inline]
    pub(super) fn levels(self, of: Quaternion, largest: u64, levels: &mut [u64]) {
        let sign = if of.0.get(largest as usize).is_some_and(|number| *number < 0) { -1 } else { 1 };
        let others = of.0.iter().enumerate().filter(|(at, _)| *at as u64 != largest);
        for (level, (_, number)) in levels.iter_mut().zip(others) {
            let nearest =
                (i128::from(sign * number) * i128::from(self.one) + (1 << (BITS + 15))) >> (BITS + 16);
            *level = ((nearest as i64).clamp(-self.levels, self.levels) + self.levels) as u64;
        }
    }
}

/// The rotation that one goes on to from its states, the newest first; None if it stays.
pub(super) fn turn_on(
    reach: Reach,
    ages: (u16, u16),
    mut states: impl Iterator<Item = Quaternion>,
) -> Option<Quaternion> {
    let newest = states.next()?;
    let (mut vectors, mut count) = ([[0; WINDOW]; 3], 1);
    // As far back as it is near enough.
    for vector in states.map_while(|state| state.turned_from(newest)).take(WINDOW - 1) {
        vectors.iter_mut().zip(vector).for_each(|(parts, part)| parts[count] = part);
        count += 1;
    }
    let vector = vectors.map(|parts| go_on(ages, reach.tolerance(), &parts[..count]));
    if vector == [0; 3] { None } else { newest.turned_by(vector) }
}
