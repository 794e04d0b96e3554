//! Affine transforms: a translation, a rotation and a scale, each left out where it changes nothing.
//!
//! Promises: the identity costs 1 bit; no rotation, no scale and a scale that is the same along all axes cost
//! a flag instead of their numbers. There is one form for each transform: a reader refuses the longer ones.

use super::direction::normalized;
use super::{BitReader, BitSink, ParameterError, ReadError, SmallestThree, Steps, ValueError};

/// Numbers of a transform in a row: the translation's 3, the rotation's 4 (x, y, z, w), the scale's 3.
pub const NUMBERS: usize = 10;

const NO_ROTATION: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
const NO_SCALE: [f32; 3] = [1.0; 3];

/// How transforms are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    translation: Steps,
    rotation: SmallestThree,
}

impl Transform {
    /// Translations in steps of `resolution` over `lo..=hi` along each axis, rotations of `bits` bits a component;
    /// scales are singles.
    ///
    /// # Errors
    /// When the steps or the bits make no sense, or zero is none of the steps: the identity must be sayable.
    pub fn new(lo: f64, hi: f64, resolution: f64, bits: u32) -> Result<Self, ParameterError> {
        let (translation, rotation) = (Steps::range(lo, hi, resolution)?, SmallestThree::new(bits)?);
        if !translation.has_zero() {
            return Err(ParameterError::NoZero { lo, hi, resolution });
        }
        Ok(Transform { translation, rotation })
    }

    /// The steps of the translation.
    pub fn translation(&self) -> &Steps {
        &self.translation
    }

    /// The least and the most bits.
    pub fn bit_range(&self) -> (usize, usize) {
        let (step, rotation) = (self.translation.bits() as usize, self.rotation.bits() as usize);
        (1, 1 + 3 * step + (1 + rotation) + (2 + 3 * 32))
    }

    /// Checks a transform and writes it; nothing is written when it is refused.
    ///
    /// # Errors
    /// When the translation is out of its range, the rotation has no direction, or a number is not finite.
    pub fn write<S: BitSink + ?Sized>(
        &self,
        numbers: [f64; NUMBERS],
        sink: &mut S,
    ) -> Result<(), ValueError> {
        self.write_coded(&self.code(numbers)?, sink);
        Ok(())
    }

    /// Reads a transform.
    ///
    /// # Errors
    ///
    /// The end of the bits, a number out of its range, or a form that is not the shortest.
    pub fn read(&self, reader: &mut BitReader<'_>) -> Result<[f64; NUMBERS], ReadError> {
        let coded = self.read_coded(reader)?;
        Ok(self.numbers(&coded))
    }

    /// A transform's numbers on the wire.
    ///
    /// # Errors
    ///
    /// Those of [`Transform::write`].
    pub(super) fn code(&self, numbers: [f64; NUMBERS]) -> Result<Coded, ValueError> {
        let [x, y, z, qx, qy, qz, qw, sx, sy, sz] = numbers;
        let steps = steps_of(&self.translation, [x, y, z])?;
        let rotation = self.rotation_word(normalized([qx, qy, qz, qw])?);
        Ok(Coded { steps, rotation, scale: [single(sx)?, single(sy)?, single(sz)?] })
    }

    /// The numbers of a transform on the wire.
    pub(super) fn numbers(&self, coded: &Coded) -> [f64; NUMBERS] {
        let rotation = if coded.rotation == self.no_rotation() {
            NO_ROTATION
        } else {
            // Codes within their bounds: all are read.
            let word = coded.rotation.to_le_bytes();
            self.rotation.read(&mut BitReader::new(&word)).unwrap_or(NO_ROTATION)
        };
        assemble(coded.steps.map(|step| self.translation.value(step)), rotation, coded.scale)
    }

    pub(super) fn write_coded<S: BitSink + ?Sized>(&self, coded: &Coded, sink: &mut S) {
        let Coded { steps, rotation, scale } = *coded;
        let (turned, scaled) = (rotation != self.no_rotation(), scale != NO_SCALE);
        let identity = !self.is_translated(steps) && !turned && !scaled;
        sink.bool(identity);
        if identity {
            return;
        }
        write_steps(&self.translation, steps, sink);
        sink.bool(turned);
        if turned {
            sink.bits(rotation, self.rotation.bits());
        }
        sink.bool(scaled);
        if scaled {
            let uniform = is_uniform(scale);
            sink.bool(uniform);
            scale.iter().take(if uniform { 1 } else { 3 }).for_each(|s| sink.float(*s));
        }
    }

    pub(super) fn read_coded(&self, reader: &mut BitReader<'_>) -> Result<Coded, ReadError> {
        if reader.bool()? {
            return Ok(self.coded_identity());
        }
        let steps = read_steps(&self.translation, reader)?;
        let turned = reader.bool()?;
        let rotation = if turned { self.read_rotation(reader)? } else { self.no_rotation() };
        let scaled = reader.bool()?;
        let scale = if scaled { read_scale(reader)? } else { NO_SCALE };
        let idle = (turned && rotation == self.no_rotation())
            || (scaled && scale == NO_SCALE)
            || !(turned || scaled || self.is_translated(steps));
        if idle { reader.refuse(ReadError::NotShortest) } else { Ok(Coded { steps, rotation, scale }) }
    }

    fn read_rotation(&self, reader: &mut BitReader<'_>) -> Result<u64, ReadError> {
        let start = reader.clone();
        self.rotation.read(reader)?;
        // The same bits again, which exist.
        start.clone().bits(self.rotation.bits())
    }

    fn coded_identity(&self) -> Coded {
        // Zero is one of the steps.
        let step = self.translation.step_of(0.0).unwrap_or(0);
        Coded { steps: [step; 3], rotation: self.no_rotation(), scale: NO_SCALE }
    }

    fn is_translated(&self, steps: [u32; 3]) -> bool {
        steps.iter().any(|step| self.translation.value(*step) != 0.0)
    }

    fn no_rotation(&self) -> u64 {
        self.rotation_word(NO_ROTATION)
    }

    /// A rotation's bits: at most 50.
    fn rotation_word(&self, rotation: [f64; 4]) -> u64 {
        let mut written = Word::default();
        self.rotation.write(rotation, &mut written);
        written.bits as u64
    }

    /// The rotation of transforms.
    pub(super) fn rotation(&self) -> &SmallestThree {
        &self.rotation
    }
}

/// A transform on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coded {
    pub(super) steps: [u32; 3],
    /// The bits of the rotation.
    pub(super) rotation: u64,
    pub(super) scale: [f32; 3],
}

/// A sink for up to 128 bits, to compare encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) bits: u128,
    pub(super) len: u32,
}

impl BitSink for Word {
    #[inline]
    fn bits(&mut self, value: u64, n: u32) {
        self.bits |= u128::from(value).unbounded_shl(self.len);
        self.len += n;
    }

    fn align(&mut self) {
        debug_assert!(false, "what is compared has no aligns");
    }

    fn bytes(&mut self, _data: &[u8]) {
        self.align();
    }
}

/// The steps of a vector's components.
#[inline]
pub(super) fn steps_of<const N: usize>(steps: &Steps, vector: [f64; N]) -> Result<[u32; N], ValueError> {
    let mut found = [0; N];
    for (found, value) in found.iter_mut().zip(vector) {
        *found = step_of(steps, value)?;
    }
    Ok(found)
}

/// The step of a number.
#[inline]
pub(super) fn step_of(steps: &Steps, value: f64) -> Result<u32, ValueError> {
    steps.step_of(value).ok_or_else(|| {
        let (lo, hi) = steps.bounds();
        if value.is_finite() {
            ValueError::FloatOutOfRange { value, lo, hi }
        } else {
            ValueError::NotFinite { value }
        }
    })
}

/// Writes the steps of a vector's components.
#[inline]
pub(super) fn write_steps<S: BitSink + ?Sized, const N: usize>(steps: &Steps, found: [u32; N], sink: &mut S) {
    let bits = steps.bits();
    match bits {
        0 => {}
        // All at once.
        _ if bits as usize * N <= 64 => {
            let word = found.iter().rev().fold(0, |word, step| word << bits | u64::from(*step));
            sink.bits(word, bits * N as u32);
        }
        _ => found.iter().for_each(|step| sink.bits(u64::from(*step), bits)),
    }
}

/// Reads the steps of a vector's components.
#[inline]
pub(super) fn read_steps<const N: usize>(
    steps: &Steps,
    reader: &mut BitReader<'_>,
) -> Result<[u32; N], ReadError> {
    let (bits, last) = (steps.bits(), u64::from(steps.last()));
    let mut found = [0; N];
    if bits > 0 && bits as usize * N <= 64 {
        // All at once.
        let mut word = reader.bits(bits * N as u32)?;
        for step in &mut found {
            let offset = word & (u64::MAX >> (64 - bits));
            if offset > last {
                return reader.refuse(ReadError::OutOfRange { offset, span: last });
            }
            (*step, word) = (offset as u32, word >> bits);
        }
        return Ok(found);
    }
    for step in &mut found {
        // At most the last step's number, which 32 bits hold.
        *step = reader.offset(last)? as u32;
    }
    Ok(found)
}

fn read_scale(reader: &mut BitReader<'_>) -> Result<[f32; 3], ReadError> {
    let uniform = reader.bool()?;
    let first = reader.float()?;
    let scale = if uniform { [first; 3] } else { [first, reader.float()?, reader.float()?] };
    if scale.iter().any(|s| !s.is_finite()) {
        return reader.refuse(ReadError::NotFinite);
    }
    if !uniform && is_uniform(scale) { reader.refuse(ReadError::NotShortest) } else { Ok(scale) }
}

/// By their patterns: a zero and its negative are two.
fn is_uniform([x, y, z]: [f32; 3]) -> bool {
    x.to_bits() == y.to_bits() && y.to_bits() == z.to_bits()
}

fn single(value: f64) -> Result<f32, ValueError> {
    if value.is_finite() { super::value::single(value) } else { Err(ValueError::NotFinite { value }) }
}

fn assemble([x, y, z]: [f64; 3], [qx, qy, qz, qw]: [f64; 4], scale: [f32; 3]) -> [f64; NUMBERS] {
    let [sx, sy, sz] = scale.map(f64::from);
    [x, y, z, qx, qy, qz, qw, sx, sy, sz]
}

#[cfg(test)]
mod tests {
    use super::super::BitWriter;
    use super::*;

    const IDENTITY: [f64; NUMBERS] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];

    fn with(changes: &[(usize, f64)]) -> [f64; NUMBERS] {
        let mut numbers = IDENTITY;
        changes.iter().for_each(|(i, value)| numbers[*i] = *value);
        numbers
    }

    fn codec() -> Transform {
        Transform::new(-100.0, 100.0, 0.125, 9).unwrap()
    }

    fn written(numbers: [f64; NUMBERS]) -> (Vec<u8>, usize) {
        let mut writer = BitWriter::new();
        codec().write(numbers, &mut writer).unwrap();
        let bits = writer.bit_len();
        (writer.into_bytes(), bits)
    }

    #[test]
    fn what_changes_nothing_costs_a_flag() {
        let translation = 3 * 11;
        let half = [(3, 0.0), (4, 0.0), (5, 1.0), (6, 0.0)];
        for (numbers, expected) in [
            (IDENTITY, 1),
            (with(&[(6, -1.0)]), 1),
            (with(&[(0, 0.01)]), 1),
            (with(&[(0, 12.5), (2, -100.0)]), 1 + translation + 1 + 1),
            (with(&half), 1 + translation + 30 + 1),
            (with(&[(7, 2.0), (8, 2.0), (9, 2.0)]), 1 + translation + 1 + 2 + 32),
            (with(&[(7, 2.0)]), 1 + translation + 1 + 2 + 96),
            (with(&[(5, 0.3), (6, 1.0), (0, 3.0), (7, -2.0)]), 1 + translation + 30 + 2 + 96),
        ] {
            let (bytes, bits) = written(numbers);
            assert_eq!(bits, expected, "{numbers:?}");
            let read = codec().read(&mut BitReader::with_range(&bytes, 0, bits)).unwrap();
            let normal = normalized([numbers[3], numbers[4], numbers[5], numbers[6].abs()]).unwrap();
            for i in 0..3 {
                assert!((read[i] - numbers[i]).abs() <= 0.0625);
                assert_eq!(read[7 + i], numbers[7 + i]);
            }
            assert!((0..4).all(|i| (read[3 + i] - normal[i]).abs() < 0.002), "{read:?}");
            assert_eq!(written(read), (bytes, bits));
        }
        assert_eq!(codec().bit_range(), (1, 1 + translation + 30 + 98));
    }

    #[test]
    fn longer_forms_and_numbers_that_are_none_are_refused() {
        let read = |write: &dyn Fn(&mut BitWriter)| {
            let mut writer = BitWriter::new();
            writer.bool(false);
            write(&mut writer);
            let bytes = writer.into_bytes();
            codec().read(&mut BitReader::new(&bytes))
        };
        let nowhere = |w: &mut BitWriter| (0..3).for_each(|_| w.bits(800, 11));
        let plain = read(&|w| {
            nowhere(w);
            w.bits(0b00, 2);
        });
        assert_eq!(plain, Err(ReadError::NotShortest));
        let unturned = read(&|w| {
            (0..3).for_each(|_| w.bits(801, 11));
            w.bool(true);
            codec().rotation.write(NO_ROTATION, w);
            w.bool(false);
        });
        assert_eq!(unturned, Err(ReadError::NotShortest));
        let scaled = |uniform: bool, scale: &[f32]| {
            read(&|w| {
                nowhere(w);
                w.bits(if uniform { 0b110 } else { 0b010 }, 3);
                scale.iter().for_each(|s| w.float(*s));
            })
        };
        assert_eq!(scaled(true, &[1.0]), Err(ReadError::NotShortest));
        assert_eq!(scaled(false, &[2.0; 3]), Err(ReadError::NotShortest));
        assert_eq!(scaled(false, &[2.0, f32::NAN, 1.0]), Err(ReadError::NotFinite));
        assert_eq!(scaled(true, &[f32::INFINITY]), Err(ReadError::NotFinite));
        assert!(scaled(true, &[3.0]).is_ok());
    }

    #[test]
    fn the_identity_must_be_sayable() {
        let refused = Transform::new(1.0, 2.0, 0.25, 9);
        assert!(matches!(refused, Err(ParameterError::NoZero { .. })), "{refused:?}");
    }

    #[test]
    fn values_out_of_their_bounds_are_refused_whole() {
        let refused = |changes: &[(usize, f64)]| {
            let mut writer = BitWriter::new();
            let error = codec().write(with(changes), &mut writer).unwrap_err();
            assert_eq!(writer.bit_len(), 0);
            error
        };
        assert_eq!(refused(&[(6, 0.0)]), ValueError::NoDirection);
        let far = ValueError::FloatOutOfRange { value: 101.0, lo: -100.0, hi: 100.0 };
        assert_eq!(refused(&[(1, 101.0)]), far);
        for i in 0..NUMBERS {
            assert!(matches!(refused(&[(i, f64::NAN)]), ValueError::NotFinite { .. }), "{i}");
        }
        assert!(matches!(refused(&[(9, 1e39)]), ValueError::FloatOutOfRange { .. }));
    }
}
