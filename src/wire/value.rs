//! One value of a message's field, between the application and a row or the wire.

use super::{FixedPoint, Quantizer, ValueError};

/// A field's value. Integers come in whichever variant holds them; fields accept all that fit their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// A signed integer beyond 64 bits.
    Int128(i128),
    /// An unsigned integer beyond 64 bits.
    Uint128(u128),
    Float(f64),
    Text(&'a str),
    // Bytes.
    Data(&'a [u8]),
    /// The components of a vector from the application.
    Floats(&'a [f64]),
    /// The components of a vector in a row.
    Cells(Cells<'a>),
}

/// The floats of a vector in a row, little-endian.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cells<'a> {
    Singles(&'a [[u8; 4]]),
    Doubles(&'a [[u8; 8]]),
}

impl Cells<'_> {
    /// The float at `index`.
    pub fn float(&self, index: usize) -> Option<f64> {
        match self {
            Cells::Singles(cells) => cells.get(index).map(|cell| f32::from_le_bytes(*cell).into()),
            Cells::Doubles(cells) => cells.get(index).map(|cell| f64::from_le_bytes(*cell)),
        }
    }

    /// How many floats there are.
    pub fn count(&self) -> usize {
        match self {
            Cells::Singles(cells) => cells.len(),
            Cells::Doubles(cells) => cells.len(),
        }
    }
}

impl Value<'_> {
    /// The kind of value, for error messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Uint(_) | Value::Int128(_) | Value::Uint128(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a text",
            Value::Data(_) => "bytes",
            Value::Floats(_) | Value::Cells(_) => "a vector",
        }
    }

    /// The integer, if an `i64` holds it.
    pub(super) fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Int(v) => Some(v),
            Value::Uint(v) => i64::try_from(v).ok(),
            Value::Int128(v) => i64::try_from(v).ok(),
            Value::Uint128(v) => i64::try_from(v).ok(),
            _ => None,
        }
    }

    /// The integer, if a `u64` holds it.
    pub(super) fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Int(v) => u64::try_from(v).ok(),
            Value::Uint(v) => Some(v),
            Value::Int128(v) => u64::try_from(v).ok(),
            Value::Uint128(v) => u64::try_from(v).ok(),
            _ => None,
        }
    }

    /// The integer, if an `i128` holds it.
    pub(super) fn as_i128(&self) -> Option<i128> {
        match *self {
            Value::Int(v) => Some(v.into()),
            Value::Uint(v) => Some(v.into()),
            Value::Int128(v) => Some(v),
            Value::Uint128(v) => i128::try_from(v).ok(),
            _ => None,
        }
    }

    /// The integer, if a `u128` holds it.
    pub(super) fn as_u128(&self) -> Option<u128> {
        match *self {
            Value::Uint128(v) => Some(v),
            _ => self.as_i128().and_then(|v| u128::try_from(v).ok()),
        }
    }

    /// The components, if there are `N` of them.
    pub(super) fn as_floats<const N: usize>(&self) -> Result<[f64; N], ValueError> {
        let length = match self {
            Value::Floats(floats) => match (*floats).try_into() {
                Ok(floats) => return Ok(floats),
                Err(_) => floats.len(),
            },
            Value::Cells(cells) if cells.count() == N => {
                return Ok(core::array::from_fn(|i| cells.float(i).unwrap_or(f64::NAN)));
            }
            Value::Cells(cells) => cells.count(),
            _ => return Err(ValueError::Type { expected: "a vector", found: self.type_name() }),
        };
        Err(ValueError::Components { length, count: N })
    }

    /// The number, integer or float, rounded to an `f64`.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::Float(v) => Some(v),
            Value::Int(v) => Some(v as f64),
            Value::Uint(v) => Some(v as f64),
            Value::Int128(v) => Some(v as f64),
            Value::Uint128(v) => Some(v as f64),
            _ => None,
        }
    }
}

/// Bits of a double's mantissa that a single doesn't have.
const SINGLE_SHIFT: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;

/// The single as a double. A conversion would make a signalling NaN a quiet one; each pattern of a single has its double.
pub(super) fn double(value: f32) -> f64 {
    if !value.is_nan() {
        return value.into();
    }
    let bits = value.to_bits();
    let sign = u64::from(bits & (1 << 31)) << 32;
    let mantissa = u64::from(bits & ((1 << (f32::MANTISSA_DIGITS - 1)) - 1)) << SINGLE_SHIFT;
    f64::from_bits(sign | f64::INFINITY.to_bits() | mantissa)
}

/// The float as a single; refuses numbers that are too large for one. What [`double`] made becomes what it was.
pub(super) fn single(value: f64) -> Result<f32, ValueError> {
    if value.is_nan() {
        let bits = value.to_bits();
        let sign = ((bits >> 32) as u32) & (1 << 31);
        let mantissa = (bits >> SINGLE_SHIFT) as u32 & ((1 << (f32::MANTISSA_DIGITS - 1)) - 1);
        // Otherwise a mantissa whose bits are all lost would become an infinity.
        let mantissa = if mantissa == 0 { 1 << (f32::MANTISSA_DIGITS - 2) } else { mantissa };
        return Ok(f32::from_bits(sign | f32::INFINITY.to_bits() | mantissa));
    }
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        return Err(ValueError::FloatOutOfRange { value, lo: f32::MIN.into(), hi: f32::MAX.into() });
    }
    Ok(single)
}

/// The float, when it is a number.
fn finite(value: f64) -> Result<f64, ValueError> {
    if value.is_finite() { Ok(value) } else { Err(ValueError::NotFinite { value }) }
}

/// The float as a single, if it lies within the bounds. The standard clamps values to the bounds; here that is the
/// caller's mistake.
pub(super) fn quantizable(value: f64, quantizer: &Quantizer) -> Result<f32, ValueError> {
    let single = finite(value)? as f32;
    let (lo, hi) = quantizer.reach();
    if (lo..=hi).contains(&single) {
        return Ok(single);
    }
    Err(ValueError::FloatOutOfRange { value, lo: lo.into(), hi: hi.into() })
}

/// The raw integer of a fixed-point number.
pub(super) fn fixed(value: f64, format: &FixedPoint) -> Result<i128, ValueError> {
    let (lo, hi) = (format.value(format.raw_lo()), format.value(format.raw_hi()));
    format.raw(finite(value)?).ok_or(ValueError::FloatOutOfRange { value, lo, hi })
}

/// The text, when a string of `max` bytes can hold it.
pub(super) fn narrow(text: &str, max: u32) -> Result<&str, ValueError> {
    within(text.as_bytes(), max)?;
    without_nul(text)
}

/// The text, when a wide string of `max` units can hold it.
pub(super) fn wide(text: &str, max: u32) -> Result<&str, ValueError> {
    let length = text.encode_utf16().count();
    if length > max as usize {
        return Err(ValueError::TooLong { length, max, unit: "UTF-16 units" });
    }
    without_nul(text)
}

/// The data, when it is at most `max` bytes.
pub(super) fn within(data: &[u8], max: u32) -> Result<&[u8], ValueError> {
    let length = data.len();
    if length > max as usize { Err(ValueError::TooLong { length, max, unit: "bytes" }) } else { Ok(data) }
}

/// Bytes of exactly this number.
pub(super) fn raw(value: Value<'_>, count: u32) -> Result<&[u8], ValueError> {
    match value {
        Value::Data(data) if data.len() == count as usize => Ok(data),
        Value::Data(data) => Err(ValueError::Length { length: data.len(), count }),
        _ => Err(refusal("bytes", value)),
    }
}

fn without_nul(text: &str) -> Result<&str, ValueError> {
    text.find('\0').map_or(Ok(text), |at| Err(ValueError::InteriorNul { at }))
}

pub(super) fn number(value: Value<'_>) -> Result<f64, ValueError> {
    value.as_f64().ok_or_else(|| refusal("a number", value))
}

pub(super) fn text(value: Value<'_>) -> Result<&str, ValueError> {
    if let Value::Text(text) = value { Ok(text) } else { Err(refusal("a text", value)) }
}

#[cold]
pub(super) fn refusal(expected: &'static str, value: Value<'_>) -> ValueError {
    ValueError::Type { expected, found: value.type_name() }
}
