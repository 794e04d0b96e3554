//! Rotations and directions in few bits.
//!
//! Promises: values are normalized before writing; read values have length 1 to single precision and differ from the
//! written ones by at most the angle that the type documents; the identity and the axes are read exactly. A value
//! that is written again differs by no more than that once more (near a tie another component may be the largest).
//! Refuses values without a direction: a length of zero, and numbers that are not finite.

use super::steps::rounded;
use super::{BitReader, BitSink, COMPONENT_BITS, ParameterError, ReadError, ValueError};

/// Levels from `-reach` to `reach` that lie alike on both sides of zero, so that zero is one of them. The highest
/// code of the bits is none.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Levels {
    bits: u32,
    reach: f64,
    /// Levels to a unit: a product costs a fraction of a quotient.
    rate: f64,
}

impl Levels {
    fn new(bits: u32, reach: f64) -> Result<Self, ParameterError> {
        if !COMPONENT_BITS.contains(&bits) {
            return Err(ParameterError::ComponentBits { bits });
        }
        Ok(Self::of(bits, reach))
    }

    const fn of(bits: u32, reach: f64) -> Self {
        // Exact: at most 16 bits.
        let side = ((1u32 << (bits - 1)) - 1) as f64;
        Levels { bits, reach, rate: side / reach }
    }

    /// Levels on either side of zero.
    fn side(self) -> f64 {
        f64::from((1u32 << (self.bits - 1)) - 1)
    }

    /// Half of the distance between two levels.
    fn error(self) -> f64 {
        self.reach / self.side() / 2.0
    }

    /// The code of the level nearest to a value.
    #[inline]
    fn code(self, value: f64) -> u64 {
        let side = (1i64 << (self.bits - 1)) - 1;
        let level = rounded(value * self.rate).clamp(-side, side);
        (level + side).cast_unsigned()
    }

    fn write<S: BitSink + ?Sized>(self, value: f64, sink: &mut S) {
        sink.bits(self.code(value), self.bits);
    }

    /// The value of a code, which is at most [`Levels::last`].
    #[inline]
    fn value(self, code: u64) -> f64 {
        let side = self.side();
        // At most 16 bits; and signed integers are converted at once, unlike unsigned ones.
        (code.cast_signed() as f64 - side) / side * self.reach
    }

    fn last(self) -> u64 {
        (1 << self.bits) - 2
    }

    fn read(self, reader: &mut BitReader<'_>) -> Result<f64, ReadError> {
        Ok(self.value(reader.offset(self.last())?))
    }
}

/// The components besides each one.
const OTHERS: [[usize; 3]; 4] = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]];

/// A rotation as a quaternion (x, y, z, w), of which the three smallest components are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmallestThree(Levels);

impl SmallestThree {
    /// `bits` bits for each of three components, besides 2 that name the fourth.
    ///
    /// # Errors
    /// When `bits` is not in [`COMPONENT_BITS`].
    pub fn new(bits: u32) -> Result<Self, ParameterError> {
        // No component but the largest is above the square root of a half.
        Levels::new(bits, core::f64::consts::FRAC_1_SQRT_2).map(SmallestThree)
    }

    /// Bits of a rotation.
    pub fn bits(&self) -> u32 {
        2 + 3 * self.0.bits
    }

    /// The highest code of a component.
    pub(super) fn last(&self) -> u64 {
        self.0.last()
    }

    /// The largest angle, in radians, between a rotation and its read value. The worst case has four equal
    /// components: each written one is off by e, the fourth by 3e, and the angle is twice the length of that. A tenth
    /// of a percent is for the curve of the sphere, and 1e-6 for the singles of rows.
    pub fn worst_angle(&self) -> f64 {
        let e = self.0.error();
        2.0 * (3.0 * e * e + 9.0 * e * e).sqrt() * (1.001 + 4.0 * e) + 1e-6
    }

    /// Writes a unit quaternion.
    #[inline]
    pub fn write<S: BitSink + ?Sized>(&self, q: [f64; 4], sink: &mut S) {
        let [largest, a, b, c] = self.code(q);
        let bits = self.0.bits;
        sink.bits(largest | (a | b << bits | c << (2 * bits)) << 2, self.bits());
    }

    /// Which component of a unit quaternion is the largest, and the codes of the others.
    #[inline]
    pub(super) fn code(&self, q: [f64; 4]) -> [u64; 4] {
        // Neither branches on the components nor writes more than once: both cost more than all the arithmetic.
        let (mut largest, mut most) = (0, q[0].abs());
        for (i, component) in [(1, q[1]), (2, q[2]), (3, q[3])] {
            let larger = component.abs() > most;
            largest = if larger { i } else { largest };
            most = if larger { component.abs() } else { most };
        }
        // A quaternion and its negative are one rotation.
        let sign = 1f64.copysign(q[largest]);
        let [i, j, k] = OTHERS[largest];
        let [a, b, c] = [self.0.code(sign * q[i]), self.0.code(sign * q[j]), self.0.code(sign * q[k])];
        [largest as u64, a, b, c]
    }

    /// Reads a unit quaternion.
    ///
    /// # Errors
    /// At the end of the bits, or a component that has no level.
    pub fn read(&self, reader: &mut BitReader<'_>) -> Result<[f64; 4], ReadError> {
        let mut q = [0.0; 4];
        self.read_each(reader, |i, component| q[i] = component)?;
        Ok(q)
    }

    /// Like [`SmallestThree::read`], but returns each component with its index: storing them one by one needn't wait
    /// until they can be loaded together.
    #[inline]
    pub(super) fn read_each(
        &self,
        reader: &mut BitReader<'_>,
        mut each: impl FnMut(usize, f64),
    ) -> Result<(), ReadError> {
        let word = reader.bits(self.bits())?;
        let (bits, last) = (self.0.bits, self.0.last());
        // Two bits: at most 3.
        let largest = (word & 3) as usize;
        let code = |place: u32| word >> (2 + place * bits) & (u64::MAX >> (64 - bits));
        let [a, b, c] = [code(0), code(1), code(2)];
        if a.max(b).max(c) > last {
            return reader.refuse(ReadError::OutOfRange { offset: a.max(b).max(c), span: last });
        }
        self.each([largest, a as usize, b as usize, c as usize], &mut each);
        Ok(())
    }

    /// Gives each component of a unit quaternion of which this is the largest one, at most 3, and the codes of the others.
    #[inline]
    pub(super) fn each(&self, [largest, a, b, c]: [usize; 4], each: &mut impl FnMut(usize, f64)) {
        let value = |code: usize| self.0.value(code as u64);
        let [a, b, c, fourth] = completed([value(a), value(b), value(c), 0.0], 3, 1.0);
        let [i, j, k] = OTHERS[largest & 3];
        for (i, component) in [(i, a), (j, b), (k, c), (largest & 3, fourth)] {
            each(i, component);
        }
    }
}

/// A rotation as a quaternion (x, y, z, w): x, y and z in 16 bits each and the sign of w, as the book has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedThree;

impl SignedThree {
    const LEVELS: Levels = Levels::of(16, 1.0);

    /// Bits of a rotation.
    pub const BITS: u32 = 3 * 16 + 1;

    /// The highest code of a component.
    pub(super) fn last() -> u64 {
        Self::LEVELS.last()
    }

    /// The largest angle, in radians, between a rotation and its read value. The worst are half turns: near w = 0 the
    /// square root makes much of a small error. With each component off by e, w is off by at most the square root of
    /// 2 e (|x| + |y| + |z|), which is at most 2 e times the square root of 3.
    pub fn worst_angle() -> f64 {
        2.0 * (2.0 * Self::LEVELS.error() * 3f64.sqrt()).sqrt() + 1e-4
    }

    /// Writes a unit quaternion.
    pub fn write<S: BitSink + ?Sized>(q: [f64; 4], sink: &mut S) {
        let [x, y, z, w] = q;
        [x, y, z].into_iter().for_each(|component| Self::LEVELS.write(component, sink));
        sink.bool(w < 0.0);
    }

    /// Reads a unit quaternion.
    ///
    /// # Errors
    /// At the end of the bits, or a component that has no level.
    pub fn read(reader: &mut BitReader<'_>) -> Result<[f64; 4], ReadError> {
        let mut q = [0.0; 4];
        for component in &mut q[..3] {
            *component = Self::LEVELS.read(reader)?;
        }
        let sign = if reader.bool()? { -1.0 } else { 1.0 };
        Ok(completed(q, 3, sign))
    }
}

/// Sets the component `missing`, zero so far, so that the quaternion has length 1. If the others leave nothing, all
/// are scaled: a peer may send components that no rotation has.
#[inline]
fn completed(mut q: [f64; 4], missing: usize, sign: f64) -> [f64; 4] {
    let rest = 1.0 - q.iter().map(|c| c * c).sum::<f64>();
    if rest < 0.0 {
        let length = (1.0 - rest).sqrt();
        return q.map(|c| c / length);
    }
    if let Some(component) = q.get_mut(missing) {
        *component = sign * rest.sqrt();
    }
    q
}

/// A direction in space as a point on an octahedron unfolded to a square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Octahedral(Levels);

impl Octahedral {
    /// `bits` bits for each of two components.
    ///
    /// # Errors
    /// When `bits` is not in [`COMPONENT_BITS`].
    pub fn new(bits: u32) -> Result<Self, ParameterError> {
        Levels::new(bits, 1.0).map(Octahedral)
    }

    /// Bits of a direction.
    pub fn bits(&self) -> u32 {
        2 * self.0.bits
    }

    /// The highest code of a component.
    pub(super) fn last(&self) -> u64 {
        self.0.last()
    }

    /// The largest angle, in radians, between a direction and its read value. The worst are in the middle of a face,
    /// which is nearest to the center, at 1 / sqrt(3): there an error of e in both components is one of e times
    /// sqrt(6) along the face and 3 times sqrt(2) e seen from the center.
    pub fn worst_angle(&self) -> f64 {
        let e = self.0.error();
        3.0 * core::f64::consts::SQRT_2 * e * (1.001 + 4.0 * e) + 1e-6
    }

    /// Writes a unit vector.
    pub fn write<S: BitSink + ?Sized>(&self, v: [f64; 3], sink: &mut S) {
        let length = v.iter().map(|c| c.abs()).sum::<f64>();
        let [x, y, z] = v.map(|c| c / length);
        let (x, y) = if z < 0.0 { folded(x, y) } else { (x, y) };
        self.0.write(x, sink);
        self.0.write(y, sink);
    }

    /// Reads a unit vector.
    ///
    /// # Errors
    /// At the end of the bits, or a component that has no level.
    pub fn read(&self, reader: &mut BitReader<'_>) -> Result<[f64; 3], ReadError> {
        let (x, y) = (self.0.read(reader)?, self.0.read(reader)?);
        let z = 1.0 - x.abs() - y.abs();
        let (x, y) = if z < 0.0 { folded(x, y) } else { (x, y) };
        let length = (x * x + y * y + z * z).sqrt();
        // Never zero: on an octahedron the components' sizes add up to 1.
        Ok([x, y, z].map(|c| c / length))
    }
}

/// The lower half of the octahedron, turned out to the square's corners; turned in again by the same.
fn folded(x: f64, y: f64) -> (f64, f64) {
    ((1.0 - y.abs()) * 1f64.copysign(x), (1.0 - x.abs()) * 1f64.copysign(y))
}

/// How far the sum of squares of normalized singles is from 1: dividing by its root again would change no level, and
/// takes longer than everything else.
const AS_SINGLES_SAY_ONE: f64 = 2.5e-7;

/// The vector at length 1.
///
/// # Errors
/// When a number is not finite, or all are zero.
#[inline]
pub(super) fn normalized<const N: usize>(v: [f64; N]) -> Result<[f64; N], ValueError> {
    let squared = v.iter().map(|c| c * c).sum::<f64>();
    if is_one(squared) {
        return Ok(v);
    }
    // Then all are finite, and some are not zero.
    if (1e-200..1e200).contains(&squared) {
        let scale = 1.0 / squared.sqrt();
        let mut v = v;
        v.iter_mut().for_each(|c| *c *= scale);
        return Ok(v);
    }
    normalized_slowly(v)
}

/// Whether [`normalized`] leaves a vector with this square of its length as it is.
#[inline]
pub(super) fn is_one(squared: f64) -> bool {
    (squared - 1.0).abs() < AS_SINGLES_SAY_ONE
}

#[cold]
fn normalized_slowly<const N: usize>(v: [f64; N]) -> Result<[f64; N], ValueError> {
    if let Some(value) = v.into_iter().find(|c| !c.is_finite()) {
        return Err(ValueError::NotFinite { value });
    }
    let largest = v.iter().fold(0f64, |most, c| most.max(c.abs()));
    if largest == 0.0 {
        return Err(ValueError::NoDirection);
    }
    // Squares of the largest doubles are infinite, those of the smallest zero.
    let v = v.map(|c| c / largest);
    let length = v.iter().map(|c| c * c).sum::<f64>().sqrt();
    Ok(v.map(|c| c / length))
}

#[cfg(test)]
mod tests {
    use super::super::BitWriter;
    use super::*;
    use crate::rng::Rng;

    fn random<const N: usize>(rng: &mut Rng) -> [f64; N] {
        loop {
            let v: [f64; N] = core::array::from_fn(|_| rng.unit() * 2.0 - 1.0);
            if let Ok(v) = normalized(v) {
                return v;
            }
        }
    }

    /// As singles, as they lie in a row.
    fn stored<const N: usize>(v: [f64; N]) -> [f64; N] {
        v.map(|c| f64::from(c as f32))
    }

    fn angle<const N: usize>(a: [f64; N], b: [f64; N]) -> f64 {
        let apart = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        2.0 * (apart / 2.0).min(1.0).asin()
    }

    fn rotation_angle(a: [f64; 4], b: [f64; 4]) -> f64 {
        2.0 * angle(a, b).min(angle(a, b.map(|c| -c)))
    }

    fn through<T>(
        write: impl FnOnce(&mut BitWriter),
        read: impl FnOnce(&mut BitReader<'_>) -> Result<T, ReadError>,
    ) -> T {
        let mut writer = BitWriter::new();
        write(&mut writer);
        let bits = writer.bit_len();
        let bytes = writer.into_bytes();
        let mut reader = BitReader::with_range(&bytes, 0, bits);
        let value = read(&mut reader).unwrap();
        assert_eq!(reader.remaining_bits(), 0);
        value
    }

    /// Random vectors, and random ones near those given.
    fn samples<const N: usize>(hard: &[[f64; N]]) -> Vec<[f64; N]> {
        let rng = &mut Rng::seeded(7);
        let mut found: Vec<_> = (0..4000).map(|_| random(rng)).collect();
        for v in hard {
            for n in 0..2000 {
                let near = 0.02 * f64::from(n % 100) / 100.0;
                let off: [f64; N] = random(rng);
                found.extend(normalized(core::array::from_fn(|i| v[i] + off[i] * near)));
            }
        }
        found
    }

    fn check(stated: f64, worst: f64) {
        assert!(worst <= stated, "{worst} is above {stated}");
        assert!(worst > stated * 0.55, "{worst} is far below {stated}: say less");
    }

    #[test]
    fn smallest_three_keeps_the_angle_it_states() {
        for bits in [4, 6, 9, 12, 16] {
            let codec = SmallestThree::new(bits).unwrap();
            let read = |q| stored(through(|w| codec.write(q, w), |r| codec.read(r)));
            let alike = [[0.5; 4], [0.5, -0.5, 0.5, -0.5], [1.0, 0.0, 0.0, 0.0]];
            let worst = samples(&alike).into_iter().map(|q| rotation_angle(q, read(q))).fold(0.0, f64::max);
            check(codec.worst_angle(), worst);
            assert_eq!(read([0.0, 0.0, 0.0, -1.0]), [0.0, 0.0, 0.0, 1.0]);
        }
        let nine = SmallestThree::new(9).unwrap();
        assert_eq!((nine.bits(), nine.worst_angle().to_degrees() < 0.56), (29, true));
    }

    #[test]
    fn signed_three_keeps_the_angle_it_states() {
        let read = |q| stored(through(|w| SignedThree::write(q, w), SignedThree::read));
        let third = 1.0 / 3f64.sqrt();
        let half_turns = [[third, third, third, 0.0], [third, -third, third, 1e-4], [0.0, 0.0, 1.0, 0.0]];
        let worst = samples(&half_turns).into_iter().map(|q| rotation_angle(q, read(q))).fold(0.0, f64::max);
        check(SignedThree::worst_angle(), worst);
        assert!(SignedThree::worst_angle().to_degrees() < 0.85);
        assert_eq!(read([0.0, 0.0, 0.0, 1.0]), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(read([0.0, 0.0, 0.0, -1.0]), [0.0, 0.0, 0.0, -1.0]);
    }

    #[test]
    fn octahedral_keeps_the_angle_it_states() {
        for bits in [4, 8, 12, 16] {
            let codec = Octahedral::new(bits).unwrap();
            let read = |v| stored(through(|w| codec.write(v, w), |r| codec.read(r)));
            let third = 1.0 / 3f64.sqrt();
            let faces = [[third; 3], [-third, third, -third], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]];
            let worst = samples(&faces).into_iter().map(|v| angle(v, read(v))).fold(0.0, f64::max);
            check(codec.worst_angle(), worst);
            for axis in 0..3 {
                for sign in [1.0, -1.0] {
                    let mut v = [0.0; 3];
                    v[axis] = sign;
                    assert_eq!(read(v), v);
                }
            }
        }
        let twelve = Octahedral::new(12).unwrap();
        assert_eq!((twelve.bits(), twelve.worst_angle().to_degrees() < 0.07), (24, true));
    }

    #[test]
    fn any_bits_are_a_unit_vector_or_refused() {
        let mut rng = Rng::seeded(3);
        let (nine, twelve) = (SmallestThree::new(9).unwrap(), Octahedral::new(12).unwrap());
        let length = |v: &[f64]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
        for _ in 0..20_000 {
            let bytes = rng.next_u64().to_le_bytes();
            let read = [
                nine.read(&mut BitReader::new(&bytes)).map(|q| length(&q)),
                SignedThree::read(&mut BitReader::new(&bytes)).map(|q| length(&q)),
                twelve.read(&mut BitReader::new(&bytes)).map(|v| length(&v)),
            ];
            for length in read.into_iter().flatten() {
                assert!((length - 1.0).abs() < 1e-9, "{length}");
            }
        }
        let refused = nine.read(&mut BitReader::new(&[0xFF; 4]));
        assert_eq!(refused, Err(ReadError::OutOfRange { offset: 511, span: 510 }));
    }

    #[test]
    fn only_what_has_a_direction_is_normalized() {
        assert_eq!(normalized([0.0; 4]), Err(ValueError::NoDirection));
        let refused = normalized([0.0, f64::INFINITY, 1.0]);
        assert_eq!(refused, Err(ValueError::NotFinite { value: f64::INFINITY }));
        assert_eq!(normalized([f64::MAX, 0.0, 0.0]), Ok([1.0, 0.0, 0.0]));
        assert_eq!(normalized([0.0, -f64::MIN_POSITIVE]), Ok([0.0, -1.0]));
    }
}
