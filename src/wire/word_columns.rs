//! A property of many objects as words and back: done for all of them in each tick, once for all receivers.
//!
//! Promises: the words are those of the rows one by one. The commonest kinds have a loop each, without branches on
//! the value, so that the compiler vectorizes it; if one of their values turns out to be invalid, or on a circle a
//! turn away, all are checked again one by one.

use super::codec::Codec;
use super::direction::{is_one, normalized};
use super::property::Property;
use super::steps::rounded;
use super::value::quantizable;
use super::{Column, Node, SmallestThree, Steps, ValueError};

impl Property {
    /// Checks the values of many rows and returns their words, row after row. `cells` begins with the first row's
    /// value; the next is `stride` bytes later. There are as many rows as `words` has room for.
    ///
    /// # Errors
    ///
    /// The first row with an invalid value, and why; or the first one beyond `cells`. The contents of `words` are
    /// meaningless then.
    pub fn quantize_column(
        &self,
        cells: &[u8],
        stride: usize,
        words: &mut [u64],
    ) -> Result<(), (usize, ValueError)> {
        let (node, count) = (self.field().node(), self.words().len());
        let rows = words.len().checked_div(count).unwrap_or(0);
        let held = held(cells.len(), stride, node.size());
        if rows > held {
            return Err((held, ValueError::Row));
        }
        if let Node::Leaf(leaf) = node
            && quantize_at_once(leaf.codec(), leaf.column(), cells, stride, words)
        {
            return Ok(());
        }
        for (row, words) in words.chunks_exact_mut(count.max(1)).enumerate() {
            self.quantize_at(cells, row * stride, words).map_err(|error| (row, error))?;
        }
        Ok(())
    }

    /// Writes the values of many rows' words into their cells, laid out as in [`Property::quantize_column`].
    ///
    /// # Panics
    ///
    /// When `cells` does not hold that number of rows.
    pub fn restore_column(&self, words: &[u64], cells: &mut [u8], stride: usize) {
        if let Node::Leaf(leaf) = self.field().node()
            && let Codec::Vector2(steps) | Codec::Vector3(steps) = leaf.codec()
            && stride == leaf.column().size()
        {
            let cells = &mut cells.as_chunks_mut::<8>().0[..words.len()];
            for (cell, word) in cells.iter_mut().zip(words) {
                // Steps have 32 bits.
                *cell = steps.value(*word as u32).to_le_bytes();
            }
            return;
        }
        for (row, words) in words.chunks_exact(self.words().len().max(1)).enumerate() {
            self.restore_at(words, &mut cells[row * stride..]);
        }
    }
}

/// How many rows this many bytes hold.
fn held(bytes: usize, stride: usize, size: usize) -> usize {
    match bytes.checked_sub(size) {
        None => 0,
        Some(rest) => rest.checked_div(stride).map_or(usize::MAX, |more| more + 1),
    }
}

/// Converts values of the commonest kinds; false for others, and if one may be invalid.
fn quantize_at_once(codec: &Codec, column: Column, cells: &[u8], stride: usize, words: &mut [u64]) -> bool {
    match codec {
        Codec::Common(common) => quantize_at_once(common.item(), column, cells, stride, words),
        Codec::Bool => lanes::<1, 1>(cells, stride, words, |[byte]| (u64::from(byte != 0), true)),
        Codec::Float => lanes::<4, 1>(cells, stride, words, |cell| (u32::from_le_bytes(cell).into(), true)),
        Codec::Double => lanes::<8, 1>(cells, stride, words, |cell| (u64::from_le_bytes(cell), true)),
        Codec::Unsigned { lo, span, .. } => {
            let offset = |value: u64| {
                let offset = value.wrapping_sub(*lo);
                (offset, offset <= *span && value >= *lo)
            };
            unsigned(offset, column, cells, stride, words)
        }
        Codec::Signed { lo, span, .. } => {
            let offset = |value: i64| {
                let offset = value.wrapping_sub(*lo).cast_unsigned();
                (offset, offset <= *span)
            };
            signed(offset, column, cells, stride, words)
        }
        Codec::Quantized(quantizer) => lanes::<4, 1>(cells, stride, words, |cell| {
            match quantizable(f32::from_le_bytes(cell).into(), quantizer) {
                Ok(value) => (quantizer.quantize(value).into(), true),
                Err(_) => (0, false),
            }
        }),
        Codec::Angle(steps) => {
            // The step at the upper bound is the lower one's.
            let (step, end) = (step_within(steps), u64::from(steps.last()) + 1);
            lanes::<8, 1>(cells, stride, words, |cell| {
                let (word, within) = step(cell);
                (if word == end { 0 } else { word }, within)
            })
        }
        Codec::Vector2(steps) => lanes::<8, 2>(cells, stride, words, step_within(steps)),
        Codec::Vector3(steps) => lanes::<8, 3>(cells, stride, words, step_within(steps)),
        Codec::Rotation(rotation) => rotations(rotation, cells, stride, words),
        _ => false,
    }
}

/// Words of unsigned integers.
#[inline]
fn unsigned(
    offset: impl Fn(u64) -> (u64, bool),
    column: Column,
    cells: &[u8],
    stride: usize,
    words: &mut [u64],
) -> bool {
    match column {
        Column::Uint8 => lanes::<1, 1>(cells, stride, words, |[byte]| offset(byte.into())),
        Column::Uint16 => lanes::<2, 1>(cells, stride, words, |cell| offset(u16::from_le_bytes(cell).into())),
        Column::Uint32 => lanes::<4, 1>(cells, stride, words, |cell| offset(u32::from_le_bytes(cell).into())),
        Column::Uint64 => lanes::<8, 1>(cells, stride, words, |cell| offset(u64::from_le_bytes(cell))),
        _ => false,
    }
}

/// Words of signed integers.
#[inline]
fn signed(
    offset: impl Fn(i64) -> (u64, bool),
    column: Column,
    cells: &[u8],
    stride: usize,
    words: &mut [u64],
) -> bool {
    match column {
        Column::Int8 => lanes::<1, 1>(cells, stride, words, |cell| offset(i8::from_le_bytes(cell).into())),
        Column::Int16 => lanes::<2, 1>(cells, stride, words, |cell| offset(i16::from_le_bytes(cell).into())),
        Column::Int32 => lanes::<4, 1>(cells, stride, words, |cell| offset(i32::from_le_bytes(cell).into())),
        Column::Int64 => lanes::<8, 1>(cells, stride, words, |cell| offset(i64::from_le_bytes(cell))),
        _ => false,
    }
}

/// Words of rows that are `N` numbers of `SIZE` bytes, by what `each` makes of one; whether all are right.
#[inline]
fn lanes<const SIZE: usize, const N: usize>(
    cells: &[u8],
    stride: usize,
    words: &mut [u64],
    each: impl Fn([u8; SIZE]) -> (u64, bool),
) -> bool {
    let mut right = true;
    if stride == SIZE * N {
        for (cell, word) in cells.as_chunks::<SIZE>().0.iter().zip(words) {
            let (found, fine) = each(*cell);
            *word = found;
            right &= fine;
        }
        return right;
    }
    for (row, words) in cells.chunks(stride.max(1)).zip(words.as_chunks_mut::<N>().0) {
        for (cell, word) in row.as_chunks::<SIZE>().0.iter().zip(words) {
            let (found, fine) = each(*cell);
            *word = found;
            right &= fine;
        }
    }
    // A stride of 0 has every row be the first.
    right && stride > 0
}

/// Like [`Steps::step_of`], for values between the bounds, without a branch; and whether it is valid.
#[inline]
fn step_within(steps: &Steps) -> impl Fn([u8; 8]) -> (u64, bool) {
    let ((lo, hi), (rate, count)) = (steps.bounds(), steps.rate_and_count());
    move |cell| {
        let value = f64::from_le_bytes(cell);
        let above = (value - lo) * rate;
        let above = if above < count { above } else { count };
        (rounded(above).cast_unsigned(), value >= lo && value <= hi)
    }
}

fn rotations(rotation: &SmallestThree, cells: &[u8], stride: usize, words: &mut [u64]) -> bool {
    for (row, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let cell = cells.get(row * stride..).map_or(&[][..], |rest| rest.as_chunks::<4>().0);
        let Some(q) = cell.first_chunk::<4>() else { return false };
        let q = q.map(|single| f64::from(f32::from_le_bytes(single)));
        // Most are unit quaternions: what may fail is kept apart, so that these stay in registers.
        *words = if is_one(q.iter().map(|c| c * c).sum()) {
            rotation.code(q)
        } else {
            let Ok(q) = normalized(q) else { return false };
            rotation.code(q)
        };
    }
    true
}
