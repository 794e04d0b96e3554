//! How a property is shown between two of its states.
//!
//! A rule is this side's own: it changes no byte on the wire, and isn't part of the protocol's hash.
//!
//! | rule | between two states | by default of |
//! |---|---|---|
//! | step | as it was, until the tick of the next one | integers, bools, enumerations, flags, and all that has parts |
//! | linear | on the line between them | numbers and vectors |
//! | angle | the shorter way round its circle | angles |
//! | slerp | the shortest rotation, at constant speed | quaternions |
//! | direction | on the line between them, of length 1 | unit vectors |
//! | transform | translation and scale linear, rotation as slerp | transforms |
//! | Hermite | on the cubic that has the velocities of both | nothing |
//! | reckoned | on with its velocity, and on a line to the next state in that one's tick | nothing |
//!
//! Slerp is Shoemake's (Animating Rotation with Quaternion Curves, 1985); dead reckoning IEEE 1278.1's with a threshold.

use core::fmt;

use crate::wire::{Column, Field, Kind, Node, Properties};

/// How a property is shown between two of its states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Step,
    Linear,
    /// A circle from `lo`, of this length.
    Angle {
        lo: f64,
        turn: f64,
    },
    Slerp,
    Direction,
    Transform,
    Hermite(Velocity),
    /// Dead reckoning: it goes on as before, and is sent when it differs from that by more than the threshold.
    Reckoned {
        velocity: Velocity,
        threshold: f64,
    },
}

/// The velocity of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Velocity {
    /// The index of the velocity property, in units a second.
    pub property: usize,
    /// Ticks a second of the server.
    pub rate: f64,
}

/// Why a rule doesn't fit a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    pub property: String,
    /// The requirement of its rule.
    pub must: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.must)
    }
}

impl core::error::Error for RuleError {}

impl Rule {
    /// The default rule of a field.
    pub fn of(field: &Field) -> Self {
        Rule::of_kind(field.kind())
    }

    fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Float
            | Kind::Double
            | Kind::Quantized { .. }
            | Kind::Fixed { .. }
            | Kind::Vector { .. } => Rule::Linear,
            Kind::Angle { lo, hi, .. } => Rule::Angle { lo: *lo, turn: hi - lo },
            Kind::Direction { .. } => Rule::Direction,
            Kind::Rotation { .. } | Kind::SignedRotation => Rule::Slerp,
            Kind::Transform { .. } => Rule::Transform,
            Kind::Common { item, .. } => Rule::of_kind(item),
            _ => Rule::Step,
        }
    }

    /// The velocity that it goes by.
    pub fn velocity(&self) -> Option<Velocity> {
        match self {
            Rule::Hermite(velocity) | Rule::Reckoned { velocity, .. } => Some(*velocity),
            _ => None,
        }
    }

    /// Checks a rule for one of these properties.
    ///
    /// # Errors
    ///
    /// What the property lacks for it.
    pub fn check(&self, properties: &Properties, property: usize) -> Result<(), RuleError> {
        let field = properties.each()[property].field();
        let wrong = |must| Err(RuleError { property: field.name().to_owned(), must });
        let (natural, numbers) = (Rule::of(field), numbers_of(field.node()));
        match self {
            Rule::Step => Ok(()),
            Rule::Angle { turn, .. } if numbers == Some(1) && turn.is_finite() && *turn > 0.0 => Ok(()),
            Rule::Angle { .. } => {
                wrong("tw.world.angular must be for one float, with its range: tw.world.angular(-180, 180)")
            }
            Rule::Slerp if natural == Rule::Slerp => Ok(()),
            Rule::Slerp => wrong("tw.world.slerp must be for a quaternion"),
            Rule::Direction if natural == Rule::Direction => Ok(()),
            Rule::Transform if natural == Rule::Transform => Ok(()),
            Rule::Linear if matches!(natural, Rule::Slerp | Rule::Direction | Rule::Transform) => wrong(
                "tw.world.linear must be for numbers that aren't angles: leave it out, or use tw.world.step",
            ),
            Rule::Linear if numbers.is_some() => Ok(()),
            Rule::Linear | Rule::Direction | Rule::Transform => wrong("its rule must be tw.world.step"),
            Rule::Hermite(velocity) | Rule::Reckoned { velocity, .. } => {
                let other = properties.each().get(velocity.property);
                let theirs = other.and_then(|other| numbers_of(other.field().node()));
                let is_number = natural == Rule::Linear || natural == Rule::Step && numbers.is_some();
                if !is_number {
                    return wrong("a property with a velocity must be a number or a vector");
                }
                if velocity.property == property || theirs != numbers {
                    return wrong("its velocity must be another property with as many numbers");
                }
                if !(velocity.rate.is_finite() && velocity.rate > 0.0) {
                    return wrong("rate must be a number of ticks a second above 0");
                }
                match self {
                    Rule::Reckoned { threshold, .. } if !(threshold.is_finite() && *threshold >= 0.0) => {
                        wrong("threshold must be a number of at least 0")
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The number of numbers in a value, if it can be interpolated.
pub fn numbers_of(node: &Node) -> Option<usize> {
    let Node::Leaf(leaf) = node else { return None };
    Some(match leaf.column() {
        Column::Singles(count) | Column::Doubles(count) => count.into(),
        Column::Text | Column::Data | Column::Uint128 | Column::Int128 | Column::Bool => return None,
        _ => 1,
    })
}

/// An angle on a circle from `lo`.
#[inline]
pub fn angular(from: f64, to: f64, weight: f64, lo: f64, turn: f64) -> f64 {
    let way = (to - from + turn / 2.0).rem_euclid(turn) - turn / 2.0;
    let at = lo + (from + way * weight - lo).rem_euclid(turn);
    // Rounding just below a whole turn gives a whole turn.
    if at >= lo + turn { lo } else { at }
}

/// A number on the cubic through two, with their velocities in units a span.
#[inline]
pub fn hermite(from: f64, from_velocity: f64, to: f64, to_velocity: f64, weight: f64) -> f64 {
    let (square, cube) = (weight * weight, weight * weight * weight);
    let bend = 3.0 * square - 2.0 * cube;
    from + (to - from) * bend + from_velocity * (cube - 2.0 * square + weight) + to_velocity * (cube - square)
}

/// A rotation on the shortest way between two.
pub fn slerp(from: [f64; 4], to: [f64; 4], weight: f64) -> [f64; 4] {
    let dot: f64 = from.iter().zip(&to).map(|(a, b)| a * b).sum();
    let to = if dot < 0.0 { to.map(|part| -part) } else { to };
    let cosine = dot.abs().min(1.0);
    let (mine, theirs) = if cosine > 0.9995 {
        // So close that a line will do, and the sine would divide by almost zero.
        (1.0 - weight, weight)
    } else {
        let angle = cosine.acos();
        let sine = angle.sin();
        (((1.0 - weight) * angle).sin() / sine, (weight * angle).sin() / sine)
    };
    let mut at = core::array::from_fn(|i| from[i] * mine + to[i] * theirs);
    normalize(&mut at, [0.0, 0.0, 0.0, 1.0]);
    at
}

/// Normalizes a vector; `else_` if it has no length.
#[inline]
pub fn normalize<const N: usize>(vector: &mut [f64; N], else_: [f64; N]) {
    let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
    *vector = if length > 1e-9 { vector.map(|part| part / length) } else { else_ };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Schema;

    #[test]
    fn angles_go_the_short_way() {
        let at = |from, to, weight| angular(from, to, weight, 0.0, 360.0);
        assert_eq!(at(350.0, 10.0, 0.5), 0.0);
        assert_eq!(at(10.0, 350.0, 0.25), 5.0);
        assert_eq!(at(10.0, 350.0, 0.75), 355.0);
        assert_eq!(angular(-170.0, 170.0, 0.75, -180.0, 360.0), 175.0);
    }

    #[test]
    fn rotations_turn_at_constant_speed_the_short_way() {
        let about_z = |degrees: f64| {
            let half = degrees.to_radians() / 2.0;
            [0.0, 0.0, half.sin(), half.cos()]
        };
        let degrees = |[_, _, z, w]: [f64; 4]| 2.0 * z.atan2(w).to_degrees();
        for (weight, expected) in [(0.0, 20.0), (0.25, 40.0), (0.5, 60.0), (1.0, 100.0)] {
            let at = slerp(about_z(20.0), about_z(100.0), weight);
            assert!((degrees(at) - expected).abs() < 1e-9, "{at:?}");
            let turned = slerp(about_z(20.0), about_z(100.0).map(|part| -part), weight);
            assert!((degrees(turned) - expected).abs() < 1e-9, "the same rotation by its other quaternion");
        }
    }

    #[test]
    fn a_cubic_goes_through_both_with_their_velocities() {
        // x = t^3 from 1 to 2: velocities 3 and 12.
        for weight in [0.0, 0.3, 0.5, 1.0] {
            let t: f64 = 1.0 + weight;
            assert!((hermite(1.0, 3.0, 8.0, 12.0, weight) - t.powi(3)).abs() < 1e-12);
        }
    }

    #[test]
    fn rules_are_refused_where_they_mean_nothing() {
        let vector = Kind::Vector { axes: 2, lo: -10.0, hi: 10.0, resolution: 0.1 };
        let kinds = [
            ("place", vector.clone()),
            ("speed", vector),
            ("heading", Kind::Angle { lo: 0.0, hi: 360.0, resolution: 1.0 }),
            ("pose", Kind::Rotation { bits: 9 }),
            ("health", Kind::Bits { bits: 7 }),
            ("name", Kind::Text { max_bytes: 8 }),
        ];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let natural: Vec<Rule> =
            properties.each().iter().map(|property| Rule::of(property.field())).collect();
        let angle = Rule::Angle { lo: 0.0, turn: 360.0 };
        assert_eq!(natural, [Rule::Linear, Rule::Linear, angle, Rule::Slerp, Rule::Step, Rule::Step]);
        let velocity = Velocity { property: 1, rate: 60.0 };
        let check =
            |rule: Rule, property| rule.check(&properties, property).map_err(|error| error.to_string());
        for (i, rule) in natural.iter().enumerate() {
            assert_eq!(check(*rule, i), Ok(()));
        }
        assert_eq!(check(Rule::Hermite(velocity), 0), Ok(()));
        assert_eq!(check(Rule::Linear, 4), Ok(()));
        let text = |error: Result<(), String>| error.unwrap_err();
        assert_eq!(text(check(Rule::Slerp, 0)), "place: tw.world.slerp must be for a quaternion");
        assert_eq!(text(check(Rule::Linear, 5)), "name: its rule must be tw.world.step");
        let own = "speed: its velocity must be another property with as many numbers";
        assert_eq!(text(check(Rule::Hermite(velocity), 1)), own);
        let never = Rule::Hermite(Velocity { rate: 0.0, ..velocity });
        assert_eq!(text(check(never, 0)), "place: rate must be a number of ticks a second above 0");
        let wrong = Rule::Reckoned { velocity, threshold: f64::NAN };
        assert_eq!(text(check(wrong, 0)), "place: threshold must be a number of at least 0");
    }
}
