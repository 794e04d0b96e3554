//! The compiled form of a field's kind: every constant worked out, so that writing and reading a value is a
//! comparison and a few shifts.

use super::column::{append, cell, doubles, point, put, put_doubles, put_singles, put_steps, singles};
use super::direction::{Octahedral, SignedThree, SmallestThree, normalized};
use super::transform::{self, Transform, read_steps, step_of, steps_of, write_steps};
use super::value::{fixed, narrow, number, quantizable, raw, refusal, single, text, wide, within};
use super::{
    BitReader, BitSink, Column, FixedPoint, Kind, MAX_LENGTH, ParameterError, Quantizer, ReadError, Steps,
    Value, ValueError, bit_len, bit_len128, span, span128,
};

#[derive(Clone, Debug)]
pub(super) enum Codec {
    Bool,
    /// Integers of a `u64`.
    Unsigned {
        lo: u64,
        span: u64,
        bits: u32,
    },
    /// Integers of an `i64`.
    Signed {
        lo: i64,
        span: u64,
        bits: u32,
    },
    /// Integers beyond 64 bits.
    Wide {
        lo: i128,
        hi: i128,
    },
    Uint128,
    Float,
    Double,
    Quantized(Quantizer),
    Fixed(FixedPoint),
    Text {
        max: u32,
    },
    Data {
        max: u32,
    },
    Raw {
        count: u32,
    },
    WideText {
        max: u32,
    },
    /// Integers of a list, rising; the wire has their places in it.
    Member {
        values: Box<[i64]>,
    },
    Angle(Steps),
    Vector2(Steps),
    Vector3(Steps),
    Direction(Octahedral),
    Rotation(SmallestThree),
    SignedRotation,
    Transform(Box<Transform>),
    Common(Box<Common>),
}

/// A field's codec with one or two common values.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) item: Codec,
    /// Bits of an encoded value.
    pub(super) bits: u32,
    pub(super) words: Box<[u128]>,
}

impl Codec {
    /// The codec of a kind with a single value; composite kinds have none.
    pub(super) fn new(kind: &Kind) -> Result<Option<Self>, ParameterError> {
        let length = |max| if max > MAX_LENGTH { Err(ParameterError::Length { max }) } else { Ok(max) };
        let codec = match *kind {
            Kind::Optional(_)
            | Kind::List { .. }
            | Kind::Sparse { .. }
            | Kind::Set { .. }
            | Kind::Map { .. }
            | Kind::Union { .. }
            | Kind::Nested { .. } => return Ok(None),
            Kind::Bool | Kind::Press => Codec::Bool,
            Kind::Bits { bits } if !(1..=64).contains(&bits) => return Err(ParameterError::Bits { bits }),
            Kind::Bits { bits } => Codec::Unsigned { lo: 0, span: u64::MAX >> (64 - bits), bits },
            Kind::Ranged { lo, hi } if lo > hi => return Err(ParameterError::EmptyRange { lo, hi }),
            Kind::Ranged { lo, hi } => Self::ranged(lo, hi),
            Kind::Uint128 => Codec::Uint128,
            Kind::Float => Codec::Float,
            Kind::Double => Codec::Double,
            Kind::Quantized { lo, hi, resolution } => Self::quantized(lo, hi, resolution)?,
            Kind::Fixed { fraction_bits, lo, hi } => Self::fixed(fraction_bits, lo, hi)?,
            Kind::Text { max_bytes } => Codec::Text { max: length(max_bytes)? },
            Kind::Data { max_bytes } => Codec::Data { max: length(max_bytes)? },
            Kind::Raw { bytes } => Codec::Raw { count: length(bytes)? },
            Kind::WideText { max_units } => Codec::WideText { max: length(max_units)? },
            Kind::Enum { ref members } => Self::member(members.iter().map(|(_, value)| *value).collect())?,
            Kind::Flags { ref names } => match u32::try_from(names.len()) {
                Ok(bits @ 1..=64) => Codec::Unsigned { lo: 0, span: u64::MAX >> (64 - bits), bits },
                _ => return Err(ParameterError::Flags { count: names.len() }),
            },
            Kind::Angle { lo, hi, resolution } => Codec::Angle(Steps::circle(lo, hi, resolution)?),
            Kind::Vector { axes, lo, hi, resolution } => match axes {
                2 => Codec::Vector2(Steps::range(lo, hi, resolution)?),
                3 => Codec::Vector3(Steps::range(lo, hi, resolution)?),
                _ => return Err(ParameterError::Axes { axes }),
            },
            Kind::Direction { bits } => Codec::Direction(Octahedral::new(bits)?),
            Kind::Rotation { bits } => Codec::Rotation(SmallestThree::new(bits)?),
            Kind::SignedRotation => Codec::SignedRotation,
            Kind::Transform { lo, hi, resolution, bits } => {
                Codec::Transform(Box::new(Transform::new(lo, hi, resolution, bits)?))
            }
            Kind::Common { ref item, ref words } => {
                let item = Codec::new(item)?.ok_or(ParameterError::NoFixedWidth)?;
                Codec::Common(Box::new(Common::new(item, words)?))
            }
        };
        Ok(Some(codec))
    }

    fn quantized(lo: f64, hi: f64, resolution: f64) -> Result<Self, ParameterError> {
        let quantizer = Quantizer::new(lo, hi, resolution)?;
        let is_exact = quantizer.last() <= super::quantize::MAX_EXACT_STEPS;
        if is_exact {
            Ok(Codec::Quantized(quantizer))
        } else {
            Err(ParameterError::Resolution { resolution })
        }
    }

    fn fixed(fraction_bits: u32, lo: i64, hi: i64) -> Result<Self, ParameterError> {
        let format = FixedPoint::new(fraction_bits, lo, hi)?;
        let error = ParameterError::FixedRange { lo, hi, fraction_bits };
        if format.fits_f64() { Ok(Codec::Fixed(format)) } else { Err(error) }
    }

    fn member(values: Box<[i64]>) -> Result<Self, ParameterError> {
        let is_rising = values.windows(2).all(|pair| pair[0] < pair[1]);
        if values.is_empty() || values.len() > MAX_LENGTH as usize || !is_rising {
            return Err(ParameterError::Members);
        }
        Ok(Codec::Member { values })
    }

    fn ranged(lo: i128, hi: i128) -> Self {
        let bits = bit_len128(span128(lo, hi));
        if let (Ok(lo), Ok(hi)) = (u64::try_from(lo), u64::try_from(hi)) {
            Codec::Unsigned { lo, span: hi - lo, bits }
        } else if let (Ok(lo), Ok(hi)) = (i64::try_from(lo), i64::try_from(hi)) {
            Codec::Signed { lo, span: span(lo, hi), bits }
        } else {
            Codec::Wide { lo, hi }
        }
    }

    pub(super) fn column(&self) -> Column {
        match *self {
            Codec::Bool => Column::Bool,
            Codec::Unsigned { .. } | Codec::Signed { .. } | Codec::Wide { .. } => {
                let (lo, hi) = self.bounds();
                Column::of_range(lo, hi)
            }
            Codec::Uint128 => Column::Uint128,
            // The standard's arithmetic is in singles: a double would hold nothing more.
            Codec::Float | Codec::Quantized(_) => Column::Float32,
            Codec::Double | Codec::Fixed(_) => Column::Float64,
            Codec::Member { ref values } => {
                let bound = |value: Option<&i64>| i128::from(value.copied().unwrap_or(0));
                Column::of_range(bound(values.first()), bound(values.last()))
            }
            Codec::Angle(_) => Column::Float64,
            Codec::Vector2(_) => Column::Doubles(2),
            Codec::Vector3(_) => Column::Doubles(3),
            Codec::Direction(_) => Column::Singles(3),
            Codec::Rotation(_) | Codec::SignedRotation => Column::Singles(4),
            Codec::Transform(_) => Column::Doubles(transform::NUMBERS as u8),
            Codec::Common(ref common) => common.item().column(),
            Codec::Text { .. } | Codec::WideText { .. } => Column::Text,
            Codec::Data { .. } | Codec::Raw { .. } => Column::Data,
        }
    }

    /// The least and the most bits it takes, 7 of them for an align.
    pub(super) fn bit_range(&self) -> (usize, usize) {
        let exact = |bits: u32| (bits as usize, bits as usize);
        match *self {
            Codec::Bool => exact(1),
            Codec::Unsigned { bits, .. } | Codec::Signed { bits, .. } => exact(bits),
            Codec::Wide { lo, hi } => exact(bit_len128(span128(lo, hi))),
            Codec::Uint128 => exact(128),
            Codec::Float => exact(32),
            Codec::Double => exact(64),
            Codec::Quantized(quantizer) => exact(quantizer.bits()),
            Codec::Fixed(format) => exact(bit_len128(span128(format.raw_lo(), format.raw_hi()))),
            Codec::Text { max } | Codec::Data { max } => {
                let length = bit_len(u64::from(max)) as usize;
                (length, length + 7 + max as usize * 8)
            }
            Codec::Raw { count } => (count as usize * 8, count as usize * 8 + 7),
            Codec::WideText { max } => {
                let length = bit_len(u64::from(max)) as usize;
                (length, length + max as usize * 32)
            }
            Codec::Member { ref values } => exact(place_bits(values)),
            Codec::Angle(ref steps) => exact(steps.bits()),
            Codec::Vector2(ref steps) => exact(2 * steps.bits()),
            Codec::Vector3(ref steps) => exact(3 * steps.bits()),
            Codec::Direction(direction) => exact(direction.bits()),
            Codec::Rotation(rotation) => exact(rotation.bits()),
            Codec::SignedRotation => exact(SignedThree::BITS),
            Codec::Transform(ref transform) => transform.bit_range(),
            Codec::Common(ref common) => common.bit_range(),
        }
    }

    /// For a number in a fixed count of bits: the smallest value, the range above it, the bits, and whether its cell
    /// is signed.
    pub(super) fn plain(&self) -> Option<(u64, u64, u32, bool)> {
        Some(match *self {
            Codec::Bool => (0, 1, 1, false),
            Codec::Unsigned { lo, span, bits } => (lo, span, bits, false),
            Codec::Signed { lo, span, bits } => (lo.cast_unsigned(), span, bits, true),
            // Any bit pattern is valid.
            Codec::Float => (0, u32::MAX.into(), 32, false),
            Codec::Double => (0, u64::MAX, 64, false),
            _ => return None,
        })
    }

    /// Checks a value and writes it; nothing is written when it is refused.
    #[inline]
    pub(super) fn write<S: BitSink + ?Sized>(
        &self,
        value: Value<'_>,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        match *self {
            Codec::Bool => match value {
                Value::Bool(v) => sink.bool(v),
                _ => return Err(refusal("a boolean", value)),
            },
            Codec::Unsigned { lo, span, bits } => {
                let offset = value.as_u64().and_then(|v| v.checked_sub(lo));
                self.write_offset(offset.filter(|offset| *offset <= span), bits, value, sink)?;
            }
            Codec::Signed { lo, span, bits } => {
                let offset = value.as_i64().map(|v| v.wrapping_sub(lo).cast_unsigned());
                self.write_offset(offset.filter(|offset| *offset <= span), bits, value, sink)?;
            }
            Codec::Wide { lo, hi } => match value.as_i128() {
                Some(v) if (lo..=hi).contains(&v) => sink.int128(v, lo, hi),
                _ => return Err(self.integer_error(value)),
            },
            Codec::Uint128 => match (value.as_u128(), value.as_i128()) {
                (Some(v), _) => sink.uint128(v),
                (None, Some(value)) => return Err(ValueError::Negative { value }),
                _ => return Err(refusal("an integer", value)),
            },
            Codec::Float => sink.float(single(number(value)?)?),
            Codec::Double => sink.double(number(value)?),
            Codec::Quantized(ref quantizer) => {
                sink.compressed_float(quantizable(number(value)?, quantizer)?, quantizer);
            }
            Codec::Fixed(ref format) => sink.fixed(fixed(number(value)?, format)?, format),
            Codec::Text { max } => sink.string(narrow(text(value)?, max)?, max),
            Codec::WideText { max } => sink.wstring(wide(text(value)?, max)?, max),
            Codec::Data { max } => match value {
                Value::Data(data) => sink.data(within(data, max)?, max),
                _ => return Err(refusal("bytes", value)),
            },
            Codec::Raw { count } => sink.bytes(raw(value, count)?),
            Codec::Member { ref values } => {
                let place = value.as_i64().and_then(|value| values.binary_search(&value).ok());
                self.write_offset(place.map(|place| place as u64), place_bits(values), value, sink)?;
            }
            Codec::Angle(ref steps) => write_steps(steps, [step_of(steps, number(value)?)?], sink),
            Codec::Vector2(ref steps) => {
                write_steps(steps, steps_of::<2>(steps, value.as_floats()?)?, sink);
            }
            Codec::Vector3(ref steps) => {
                write_steps(steps, steps_of::<3>(steps, value.as_floats()?)?, sink);
            }
            Codec::Direction(ref direction) => direction.write(normalized(value.as_floats()?)?, sink),
            Codec::Rotation(ref rotation) => rotation.write(normalized(value.as_floats()?)?, sink),
            Codec::SignedRotation => SignedThree::write(normalized(value.as_floats()?)?, sink),
            Codec::Transform(ref transform) => transform.write(value.as_floats()?, sink)?,
            Codec::Common(ref common) => common.write(value, sink)?,
        }
        Ok(())
    }

    #[inline]
    fn write_offset<S: BitSink + ?Sized>(
        &self,
        offset: Option<u64>,
        bits: u32,
        value: Value<'_>,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        match offset {
            Some(offset) if bits > 0 => sink.bits(offset, bits),
            Some(_) => {}
            None => return Err(self.integer_error(value)),
        }
        Ok(())
    }

    /// Writes the value at `at` of a body. The commonest kinds are here, the others in a call: in a single function
    /// all of them would pay for what a few need.
    pub(super) fn write_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        at: usize,
        column: Column,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        match self {
            // Not by way of a double, which would change the pattern of a signalling NaN.
            Codec::Float => {
                let bits = u32::from_le_bytes(cell(body, at).ok_or(ValueError::Row)?);
                sink.float(f32::from_bits(bits));
                Ok(())
            }
            // The hot ones, without a detour by way of a value.
            Codec::Unsigned { lo, span, bits } => {
                let value = column.load_unsigned(body, at).ok_or(ValueError::Row)?;
                let offset = value.checked_sub(*lo).filter(|offset| offset <= span);
                self.write_offset(offset, *bits, Value::Uint(value), sink)
            }
            Codec::Vector3(steps) => {
                write_steps(steps, steps_of(steps, doubles::<3>(body, at)?)?, sink);
                Ok(())
            }
            Codec::Rotation(rotation) => {
                rotation.write(normalized(singles::<4>(body, at)?)?, sink);
                Ok(())
            }
            _ => self.write_other_cell(body, at, column, sink),
        }
    }

    #[inline(never)]
    fn write_other_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        at: usize,
        column: Column,
        sink: &mut S,
    ) -> Result<(), ValueError> {
        match column.load(body, at) {
            Some(value) => self.write(value, sink),
            None if column == Column::Text && Column::Data.load(body, at).is_some() => {
                Err(ValueError::NotUtf8)
            }
            None => Err(ValueError::Row),
        }
    }

    /// Reads a value into its cell, `at` bytes into the body that starts at `start` of `out`; text and data
    /// go to the end of `out`. As for [`Codec::write_cell`], the commonest kinds are here.
    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        at: usize,
        column: Column,
    ) -> Result<(), ReadError> {
        let cell = start + at;
        match *self {
            Codec::Bool => column.store(out, cell, reader.bits(1)?),
            Codec::Unsigned { lo, span, .. } => column.store(out, cell, lo + reader.offset(span)?),
            Codec::Signed { lo, span, .. } => {
                let value = lo.wrapping_add(reader.offset(span)?.cast_signed());
                column.store(out, cell, value.cast_unsigned());
            }
            Codec::Float => put(out, cell, reader.float()?.to_le_bytes()),
            Codec::Double => put(out, cell, reader.double()?.to_le_bytes()),
            Codec::Quantized(ref quantizer) => {
                put(out, cell, reader.compressed_float(quantizer)?.to_le_bytes());
            }
            Codec::Text { max } => append(out, start, cell, reader.string(max)?.as_bytes()),
            Codec::Data { max } => append(out, start, cell, reader.data(max)?),
            Codec::Angle(ref steps) => put_steps(out, cell, steps, read_steps::<1>(steps, reader)?),
            Codec::Vector2(ref steps) => put_steps(out, cell, steps, read_steps::<2>(steps, reader)?),
            Codec::Vector3(ref steps) => put_steps(out, cell, steps, read_steps::<3>(steps, reader)?),
            Codec::Rotation(ref rotation) => rotation.read_each(reader, |i, component| {
                put(out, cell + i * 4, (component as f32).to_le_bytes());
            })?,
            _ => self.read_other_cell(reader, out, start, at, column)?,
        }
        Ok(())
    }

    #[inline(never)]
    fn read_other_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
        at: usize,
        column: Column,
    ) -> Result<(), ReadError> {
        let cell = start + at;
        match *self {
            // Handled by `read_cell`.
            Codec::Bool
            | Codec::Unsigned { .. }
            | Codec::Signed { .. }
            | Codec::Float
            | Codec::Double
            | Codec::Quantized(_)
            | Codec::Text { .. }
            | Codec::Data { .. }
            | Codec::Angle(_)
            | Codec::Vector2(_)
            | Codec::Vector3(_)
            | Codec::Rotation(_) => {}
            Codec::Wide { lo, hi } => put(out, cell, reader.int128(lo, hi)?.to_le_bytes()),
            Codec::Uint128 => put(out, cell, reader.uint128()?.to_le_bytes()),
            Codec::Fixed(ref format) => {
                put(out, cell, format.value(reader.fixed(format)?).to_le_bytes());
            }
            Codec::Raw { count } => append(out, start, cell, reader.bytes(count as usize)?),
            Codec::WideText { max } => {
                let from = out.len();
                let mut utf8 = [0; 4];
                reader.wide_chars(max, |c| out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()))?;
                point(out, start, cell, from);
            }
            Codec::Member { ref values } => {
                let place = reader.offset((values.len() - 1) as u64)? as usize;
                let value = values.get(place).copied().unwrap_or_default();
                column.store(out, cell, value.cast_unsigned());
            }
            Codec::Direction(ref direction) => put_singles(out, cell, &direction.read(reader)?),
            Codec::SignedRotation => put_singles(out, cell, &SignedThree::read(reader)?),
            Codec::Transform(ref transform) => put_doubles(out, cell, &transform.read(reader)?),
            Codec::Common(ref common) => common.read_cell(reader, out, start, at, column)?,
        }
        Ok(())
    }

    /// The bounds of the integers it takes.
    fn bounds(&self) -> (i128, i128) {
        match *self {
            Codec::Unsigned { lo, span, .. } => (lo.into(), i128::from(lo) + i128::from(span)),
            Codec::Signed { lo, span, .. } => (lo.into(), i128::from(lo) + i128::from(span)),
            Codec::Wide { lo, hi } => (lo, hi),
            _ => (0, 0),
        }
    }

    #[cold]
    fn integer_error(&self, value: Value<'_>) -> ValueError {
        if let (Codec::Member { .. }, Some(value)) = (self, value.as_i128()) {
            return ValueError::NotAMember { value };
        }
        let (lo, hi) = self.bounds();
        match (value.as_i128(), value.as_u128()) {
            (Some(value), _) => ValueError::OutOfRange { value, lo, hi },
            (None, Some(value)) => ValueError::AboveRange { value, hi },
            _ => refusal("an integer", value),
        }
    }
}

/// Bits of a place in an enumeration.
fn place_bits(values: &[i64]) -> u32 {
    bit_len(values.len() as u64 - 1)
}
