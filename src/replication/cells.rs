//! Cells as numbers, and interpolation between two of them, by rows.

use super::rules;
use crate::wire::{Column, Node};

/// The numbers of one property, of all rows.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Numbers of a value.
    pub(super) count: usize,
    pub(super) from: Vec<f64>,
    pub(super) to: Vec<f64>,
}

#[inline]
pub(super) fn between(from: &[f64], to: &[f64], weight: f64, out: &mut [f64]) {
    for (out, (from, to)) in out.iter_mut().zip(from.iter().zip(to)) {
        *out = if weight == 0.0 { *from } else { from + (to - from) * weight };
    }
}

pub(super) fn turn(from: &[f64], to: &[f64], weight: f64, out: &mut [f64]) {
    let (Some(a), Some(b)) = (from.first_chunk::<4>(), to.first_chunk::<4>()) else { return };
    out.copy_from_slice(&if weight == 0.0 { *a } else { rules::slerp(*a, *b, weight) });
}

/// Each row's numbers by a function.
pub(super) fn each(
    numbers: &Numbers,
    weights: &[f64],
    column: Option<Column>,
    cells: &mut [u8],
    show: impl Fn(&[f64], &[f64], f64, &mut [f64]),
) {
    let (count, size) = (numbers.count, column.map_or(0, Column::size).max(1));
    let mut out = [0.0; 16];
    let rows = numbers.from.chunks_exact(count).zip(numbers.to.chunks_exact(count)).zip(weights);
    for (((from, to), weight), cell) in rows.zip(cells.chunks_exact_mut(size)) {
        show(from, to, *weight, &mut out[..count]);
        write_numbers(column, &out[..count], cell);
    }
}

/// The commonest rule, with a loop each for the commonest cells, so that the compiler makes it one of vectors.
pub(super) fn linear(numbers: &Numbers, weights: &[f64], column: Option<Column>, cells: &mut [u8]) {
    match column {
        Some(Column::Doubles(2)) => lines::<2>(numbers, weights, cells),
        Some(Column::Doubles(3)) => lines::<3>(numbers, weights, cells),
        Some(Column::Float64) => lines::<1>(numbers, weights, cells),
        _ => each(numbers, weights, column, cells, between),
    }
}

fn lines<const N: usize>(numbers: &Numbers, weights: &[f64], cells: &mut [u8]) {
    let (from, to) = (numbers.from.as_chunks::<N>().0, numbers.to.as_chunks::<N>().0);
    let rows = from.iter().zip(to).zip(weights);
    for (((from, to), weight), cell) in rows.zip(cells.as_chunks_mut::<8>().0.chunks_exact_mut(N)) {
        for (i, cell) in cell.iter_mut().enumerate() {
            let way = if *weight == 0.0 { 0.0 } else { (to[i] - from[i]) * weight };
            *cell = (from[i] + way).to_le_bytes();
        }
    }
}

/// The numbers of a cell of a node that has some.
pub(super) fn numbers_in(node: &Node, cell: &[u8], out: &mut [f64]) {
    if let Node::Leaf(leaf) = node {
        read_numbers(Some(leaf.column()), cell, out);
    }
}

/// The numbers of a cell.
#[inline]
pub(super) fn read_numbers(column: Option<Column>, cell: &[u8], out: &mut [f64]) {
    match column {
        Some(Column::Doubles(_) | Column::Float64) => {
            out.iter_mut()
                .zip(cell.as_chunks::<8>().0)
                .for_each(|(out, cell)| *out = f64::from_le_bytes(*cell));
        }
        Some(Column::Singles(_) | Column::Float32) => {
            let singles = cell.as_chunks::<4>().0;
            out.iter_mut().zip(singles).for_each(|(out, cell)| *out = f32::from_le_bytes(*cell).into());
        }
        Some(column) => out[0] = whole(column, cell),
        None => {}
    }
}

fn whole(column: Column, cell: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    let size = cell.len().min(8);
    bytes[..size].copy_from_slice(&cell[..size]);
    let unsigned = u64::from_le_bytes(bytes);
    match column {
        Column::Int8 | Column::Int16 | Column::Int32 | Column::Int64 => {
            let shift = 64 - 8 * size as u32;
            ((unsigned << shift).cast_signed() >> shift) as f64
        }
        _ => unsigned as f64,
    }
}

/// A cell of these numbers; integers are rounded, and stay within their type.
#[inline]
pub(super) fn write_numbers(column: Option<Column>, numbers: &[f64], cell: &mut [u8]) {
    match column {
        Some(Column::Doubles(_) | Column::Float64) => {
            let cells = cell.as_chunks_mut::<8>().0;
            cells.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number.to_le_bytes());
        }
        Some(Column::Singles(_) | Column::Float32) => {
            let cells = cell.as_chunks_mut::<4>().0;
            cells.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = (*number as f32).to_le_bytes());
        }
        Some(column) => {
            let signed = matches!(column, Column::Int8 | Column::Int16 | Column::Int32 | Column::Int64);
            let (number, size) = (numbers[0].round(), cell.len().min(8));
            let rest = 64 - 8 * size as u32;
            let bytes = if signed {
                (number as i64).clamp(i64::MIN >> rest, i64::MAX >> rest).to_le_bytes()
            } else {
                (number as u64).min(u64::MAX >> rest).to_le_bytes()
            };
            cell[..size].copy_from_slice(&bytes[..size]);
        }
        None => {}
    }
}
