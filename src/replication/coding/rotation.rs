//! Rotations as quaternions, in operations that IEEE 754 defines to the last bit, so that both sides find the same.
//!
//! Where a rotation turns evenly, its states lie evenly on a great circle. So the vector of how it turned from a state to the newest,
//! half the angle along the axis, grows evenly with the state's age: each of its numbers lies on a line.

use super::track::{LANES, Lanes, go_on, nearest};

/// States that the newest turned further from than this aren't looked at: 74 degrees, by the cosine of half of it. Behind it the
/// series are too short.
const NEAR: f32 = 0.8;

/// The maximum of half the angle that a rotation goes on by, squared: 70 degrees.
const FAR: f32 = 1.5;

/// A rotation, of length 1; the last number is the real part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quaternion([f32; 4]);

impl Quaternion {
    /// The rotation without a component at a place, of which the others are known.
    #[inline]
    fn without(place: u32, [a, b, c]: [f32; 3]) -> Quaternion {
        let square = 1.0 - a * a - b * b - c * c;
        let largest = (if square > 0.0 { square } else { 0.0 }).sqrt();
        // Selections instead of branches, so that the compiler can make four rotations at once.
        let or = |is_it: bool, number: f32| if is_it { largest } else { number };
        Quaternion([
            or(place == 0, a),
            or(place == 1, if place < 1 { a } else { b }),
            or(place == 2, if place < 2 { b } else { c }),
            or(place > 2, c),
        ])
    }

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
    fn conjugate(self) -> Quaternion {
        let [x, y, z, real] = self.0;
        Quaternion([-x, -y, -z, real])
    }

    #[inline]
    fn times(self, Quaternion([e, f, g, h]): Quaternion) -> Quaternion {
        let [a, b, c, d] = self.0;
        Quaternion([
            a * h + b * g - c * f + d * e,
            b * h - a * g + c * e + d * f,
            a * f - b * e + c * h + d * g,
            d * h - a * e - b * f - c * g,
        ])
    }

    /// Turned further by a vector, the half angle along the axis.
    #[inline]
    fn turned_by(self, vector: [f32; 3], square: f32) -> Quaternion {
        let series = |terms: [f32; 4]| terms.iter().rev().fold(0.0, |sum, term| term - square * sum);
        let cosine = 1.0 - square * series([1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0]);
        let sine = series([1.0, 1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0]);
        let [x, y, z] = vector.map(|part| part * sine);
        Quaternion([x, y, z, cosine]).times(self)
    }
}

/// How levels and the numbers of quaternions go with each other: a reach is the largest level, and stands for the root of a half.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    levels: i32,
    /// What a level is, and 1 in levels.
    level: f32,
    one: f32,
}

impl Reach {
    /// Of levels below 2^24.
    pub(super) fn new(levels: u64) -> Self {
        let one = core::f32::consts::SQRT_2 * levels.max(1) as f32;
        Reach { levels: levels as i32, level: 1.0 / one, one }
    }

    /// The rotation of a place and three levels.
    #[inline]
    pub(super) fn quaternion(self, [place, levels @ ..]: [u32; 4]) -> Quaternion {
        // As few bits.
        Quaternion::without(place, levels.map(|level| (level as i32 - self.levels) as f32 * self.level))
    }

    /// The levels of all components but the one at a place.
    #[inline]
    pub(super) fn levels(self, of: Quaternion, largest: u64, levels: &mut [u64]) {
        let is_below = of.0.get(largest as usize).is_some_and(|number| *number < 0.0);
        let (one, most) = (if is_below { -self.one } else { self.one }, i64::from(self.levels));
        let others = of.0.iter().enumerate().filter(|(at, _)| *at as u64 != largest);
        for (level, (_, number)) in levels.iter_mut().zip(others) {
            *level = (nearest(one * number).clamp(-most, most) + most) as u64;
        }
    }
}

/// The rotation that one goes on to from this many states; None if it stays. `words` are those of the states, the newest first: the
/// place of the largest component, and the levels of the others.
#[inline]
pub(super) fn turn_on(
    reach: Reach,
    ahead: f32,
    words: &[[u32; LANES]; 4],
    count: usize,
) -> Option<Quaternion> {
    let newest = reach.quaternion(words.map(|words| words[0]));
    let (conjugate, mut vectors, mut cosines) = (newest.conjugate(), [[0.0; LANES]; 3], [0.0; LANES]);
    for i in 0..LANES {
        let [x, y, z, cosine] =
            reach.quaternion([0, 1, 2, 3].map(|part: usize| words[part][i])).times(conjugate).0;
        let square = 1.0 - cosine * cosine;
        // The angle for its sine.
        let wider = 1.0 + square * (1.0 / 6.0 + square * (3.0 / 40.0));
        let wider = if cosine < 0.0 { -wider } else { wider };
        (vectors[0][i], vectors[1][i], vectors[2][i]) = (x * wider, y * wider, z * wider);
        cosines[i] = cosine.abs();
    }
    // As far back as it is near enough.
    let count = 1 + cosines[1..count].iter().take_while(|cosine| **cosine >= NEAR).count();
    // Rounding may put a rotation's numbers a level off a line.
    let vector = vectors.map(|were: Lanes| go_on(ahead, reach.level, &were, count, false));
    let square: f32 = vector.iter().map(|part| part * part).sum();
    // Less than a part of a level is none.
    let least = reach.level * reach.level / 64.0;
    (least..FAR).contains(&square).then(|| newest.turned_by(vector, square))
}
