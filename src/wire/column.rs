//! The layout of a field in a row: the little-endian types that array libraries know, so that the rows of many
//! messages can be seen as columns without a copy.

use super::value::{Cells, double};
use super::{Steps, Value, ValueError};
use std::borrow::Cow;

/// The type of a field's place in a row. Numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// One byte, 0 or 1.
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    /// 128 bits, which array libraries see as 16 opaque bytes.
    Uint128,
    Int8,
    Int16,
    Int32,
    Int64,
    /// 128 bits, signed, which array libraries see as 16 opaque bytes.
    Int128,
    Float32,
    Float64,
    /// A vector of this many IEEE singles.
    Singles(u8),
    /// A vector of this many IEEE doubles.
    Doubles(u8),
    /// The text or data is after the row: its offset from the row's start and its length in bytes, 32 bits each. Text
    /// is UTF-8.
    Text,
    /// As `Text`, for bytes of any kind.
    Data,
}

impl Column {
    /// The smallest column of integers in `lo..=hi`: unsigned when none is negative.
    pub fn of_range(lo: i128, hi: i128) -> Self {
        let unsigned = [
            (u8::MAX.into(), Column::Uint8),
            (u16::MAX.into(), Column::Uint16),
            (u32::MAX.into(), Column::Uint32),
            (u64::MAX.into(), Column::Uint64),
            (i128::MAX, Column::Uint128),
        ];
        let signed = [
            (i8::MAX.into(), Column::Int8),
            (i16::MAX.into(), Column::Int16),
            (i32::MAX.into(), Column::Int32),
            (i64::MAX.into(), Column::Int64),
            (i128::MAX, Column::Int128),
        ];
        // `!lo` is -1 - lo: as far beyond zero as the largest number of the type would be.
        let (columns, reach) = if lo >= 0 { (unsigned, hi) } else { (signed, hi.max(!lo)) };
        let fit = columns.into_iter().find(|(max, _)| reach <= *max);
        fit.map_or(Column::Int128, |(_, column)| column)
    }

    /// Bytes in a row.
    pub fn size(self) -> usize {
        match self {
            Column::Bool | Column::Uint8 | Column::Int8 => 1,
            Column::Uint16 | Column::Int16 => 2,
            Column::Uint32 | Column::Int32 | Column::Float32 => 4,
            Column::Uint64 | Column::Int64 | Column::Float64 | Column::Text | Column::Data => 8,
            Column::Uint128 | Column::Int128 => 16,
            Column::Singles(count) => usize::from(count) * 4,
            Column::Doubles(count) => usize::from(count) * 8,
        }
    }

    /// Its alignment in a row: its parts' size, at most 8.
    pub fn alignment(self) -> usize {
        match self {
            Column::Text | Column::Data | Column::Singles(_) => 4,
            _ => self.size().min(8),
        }
    }

    /// The NumPy type string.
    pub fn dtype(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Column::Bool => "?",
            Column::Uint8 => "u1",
            Column::Uint16 => "<u2",
            Column::Uint32 => "<u4",
            Column::Uint64 => "<u8",
            Column::Int8 => "i1",
            Column::Int16 => "<i2",
            Column::Int32 => "<i4",
            Column::Int64 => "<i8",
            Column::Uint128 | Column::Int128 => "V16",
            Column::Float32 => "<f4",
            Column::Float64 => "<f8",
            Column::Text | Column::Data => "(2,)<u4",
            Column::Singles(count) => return format!("({count},)<f4").into(),
            Column::Doubles(count) => return format!("({count},)<f8").into(),
        })
    }

    /// Puts the low bytes of `bits` into the `size` bytes at `at`; columns of up to 64 bits.
    #[inline]
    pub(super) fn store(self, row: &mut [u8], at: usize, bits: u64) {
        let bytes = bits.to_le_bytes();
        // By size, so that each copy has a length the compiler knows.
        match self.size() {
            1 => row[at] = bytes[0],
            2 => row[at..at + 2].copy_from_slice(&bytes[..2]),
            4 => row[at..at + 4].copy_from_slice(&bytes[..4]),
            _ => row[at..at + 8].copy_from_slice(&bytes),
        }
    }

    /// The value at `at` of a body (a row and its tail); `None` when the body does not hold one.
    #[inline]
    pub(super) fn load(self, body: &[u8], at: usize) -> Option<Value<'_>> {
        Some(match self {
            Column::Bool => Value::Bool(cell::<1>(body, at)? != [0]),
            Column::Uint8 => Value::Uint(u8::from_le_bytes(cell(body, at)?).into()),
            Column::Uint16 => Value::Uint(u16::from_le_bytes(cell(body, at)?).into()),
            Column::Uint32 => Value::Uint(u32::from_le_bytes(cell(body, at)?).into()),
            Column::Uint64 => Value::Uint(u64::from_le_bytes(cell(body, at)?)),
            Column::Uint128 => Value::Uint128(u128::from_le_bytes(cell(body, at)?)),
            Column::Int8 => Value::Int(i8::from_le_bytes(cell(body, at)?).into()),
            Column::Int16 => Value::Int(i16::from_le_bytes(cell(body, at)?).into()),
            Column::Int32 => Value::Int(i32::from_le_bytes(cell(body, at)?).into()),
            Column::Int64 => Value::Int(i64::from_le_bytes(cell(body, at)?)),
            Column::Int128 => Value::Int128(i128::from_le_bytes(cell(body, at)?)),
            Column::Float32 => Value::Float(double(f32::from_le_bytes(cell(body, at)?))),
            Column::Float64 => Value::Float(f64::from_le_bytes(cell(body, at)?)),
            Column::Singles(_) => Value::Cells(Cells::Singles(self.vector(body, at)?.as_chunks().0)),
            Column::Doubles(_) => Value::Cells(Cells::Doubles(self.vector(body, at)?.as_chunks().0)),
            Column::Text => Value::Text(core::str::from_utf8(tail(body, at)?).ok()?),
            Column::Data => Value::Data(tail(body, at)?),
        })
    }

    /// The integer at `at` of a body, for columns of unsigned ones of up to 64 bits.
    #[inline]
    pub(super) fn load_unsigned(self, body: &[u8], at: usize) -> Option<u64> {
        Some(match self {
            Column::Uint8 => u8::from_le_bytes(cell(body, at)?).into(),
            Column::Uint16 => u16::from_le_bytes(cell(body, at)?).into(),
            Column::Uint32 => u32::from_le_bytes(cell(body, at)?).into(),
            Column::Uint64 => u64::from_le_bytes(cell(body, at)?),
            _ => return None,
        })
    }

    fn vector(self, body: &[u8], at: usize) -> Option<&[u8]> {
        body.get(at..)?.get(..self.size())
    }
}

/// The `N` bytes at `at`.
#[inline]
pub(super) fn cell<const N: usize>(body: &[u8], at: usize) -> Option<[u8; N]> {
    body.get(at..)?.first_chunk().copied()
}

/// The offset and the length or count at `at`, 32 bits each.
#[inline]
pub(super) fn run(body: &[u8], at: usize) -> Option<(usize, usize)> {
    let offset = u32::from_le_bytes(cell(body, at)?);
    let length = u32::from_le_bytes(cell(body, at + 4)?);
    Some((usize::try_from(offset).ok()?, usize::try_from(length).ok()?))
}

/// The bytes that the offset and length at `at` name.
fn tail(body: &[u8], at: usize) -> Option<&[u8]> {
    let (offset, length) = run(body, at)?;
    body.get(offset..)?.get(..length)
}

/// The doubles at `at` of a body.
#[inline]
pub(super) fn doubles<const N: usize>(body: &[u8], at: usize) -> Result<[f64; N], ValueError> {
    let cells = body.get(at..).and_then(|rest| rest.as_chunks().0.first_chunk::<N>());
    let cells = cells.ok_or(ValueError::Row)?;
    let mut found = [0.0; N];
    found.iter_mut().zip(cells).for_each(|(place, cell)| *place = f64::from_le_bytes(*cell));
    Ok(found)
}

/// The singles at `at` of a body.
#[inline]
pub(super) fn singles<const N: usize>(body: &[u8], at: usize) -> Result<[f64; N], ValueError> {
    let cells = body.get(at..).and_then(|rest| rest.as_chunks().0.first_chunk::<N>());
    let cells = cells.ok_or(ValueError::Row)?;
    let mut found = [0.0; N];
    found.iter_mut().zip(cells).for_each(|(place, cell)| *place = f32::from_le_bytes(*cell).into());
    Ok(found)
}

pub(super) fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    out[at..at + N].copy_from_slice(&bytes);
}

pub(super) fn put_steps<const N: usize>(out: &mut [u8], at: usize, steps: &Steps, found: [u32; N]) {
    for (i, step) in found.into_iter().enumerate() {
        put(out, at + i * 8, steps.value(step).to_le_bytes());
    }
}

pub(super) fn put_doubles(out: &mut [u8], at: usize, values: &[f64]) {
    for (i, value) in values.iter().enumerate() {
        put(out, at + i * 8, value.to_le_bytes());
    }
}

pub(super) fn put_singles(out: &mut [u8], at: usize, values: &[f64]) {
    for (i, value) in values.iter().enumerate() {
        put(out, at + i * 4, (*value as f32).to_le_bytes());
    }
}

pub(super) fn append(out: &mut Vec<u8>, start: usize, cell: usize, data: &[u8]) {
    let from = out.len();
    out.extend_from_slice(data);
    point(out, start, cell, from);
}

/// Writes into `cell` the place of the bytes from `from` to the end, relative to `start`. A schema's bounds keep a
/// body far below 4 GiB.
pub(super) fn point(out: &mut [u8], start: usize, cell: usize, from: usize) {
    put(out, cell, ((from - start) as u32).to_le_bytes());
    put(out, cell + 4, ((out.len() - from) as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_the_smallest_column() {
        assert_eq!(Column::of_range(0, 255), Column::Uint8);
        assert_eq!(Column::of_range(0, 256), Column::Uint16);
        assert_eq!(Column::of_range(-128, 127), Column::Int8);
        assert_eq!(Column::of_range(-129, 0), Column::Int16);
        assert_eq!(Column::of_range(-1, 128), Column::Int16);
        assert_eq!(Column::of_range(-5, -5), Column::Int8);
        assert_eq!(Column::of_range(0, u64::MAX.into()), Column::Uint64);
        assert_eq!(Column::of_range(0, i128::from(u64::MAX) + 1), Column::Uint128);
        assert_eq!(Column::of_range(i64::MIN.into(), i64::MAX.into()), Column::Int64);
        assert_eq!(Column::of_range(i128::MIN, i128::MAX), Column::Int128);
    }

    #[test]
    fn a_body_that_is_too_short_holds_no_value() {
        let body = [9, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(Column::Uint64.load(&body, 1), None);
        assert_eq!(Column::Uint8.load(&body, 8), None);
        assert_eq!(Column::Data.load(&body, 0), None, "it would lie outside");
        assert_eq!(Column::Data.load(&[4, 0, 0, 0, 255, 255, 255, 255], 0), None);
        assert_eq!(Column::Text.load(&[0, 0, 0, 0, 0, 0, 0, 0], 0), Some(Value::Text("")));
    }
}
