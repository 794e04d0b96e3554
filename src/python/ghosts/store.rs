//! Python's values to cells, unquantised: the game goes on with the numbers it set, however coarse the wire
//! is.
//!
//! Promises: a value is stored if and only if it can be written. No Python code runs except an object's own
//! conversions.

use crate::python::prelude::*;

use crate::python::shape::{Shape, Target, broken};
use crate::wire::node::Leaf;
use crate::wire::{Column, Measure, Node, Value};

/// A cell of a property with words, where a part is written.
pub(super) struct Cell<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
}

impl Target for Cell<'_> {
    fn leaf(&mut self, leaf: &Leaf, value: Value<'_>) -> Result<(), Refusal> {
        leaf.write(value, &mut Measure::new())?;
        let cell = &mut self.bytes[self.at..][..leaf.column().size()];
        let double = |bits: f64| bits.to_le_bytes();
        let single = |bits: f64| (bits as f32).to_le_bytes();
        let whole = |number: u64, cell: &mut [u8]| {
            let size = cell.len().min(8);
            cell[..size].copy_from_slice(&number.to_le_bytes()[..size]);
        };
        match (leaf.column(), value) {
            (Column::Singles(_), Value::Floats(floats)) => {
                cell.as_chunks_mut()
                    .0
                    .iter_mut()
                    .zip(floats)
                    .for_each(|(cell, value)| *cell = single(*value));
            }
            (Column::Doubles(_), Value::Floats(floats)) => {
                cell.as_chunks_mut()
                    .0
                    .iter_mut()
                    .zip(floats)
                    .for_each(|(cell, value)| *cell = double(*value));
            }
            (Column::Float32, value) => cell[..4].copy_from_slice(&single(number(&value)?)),
            (Column::Float64, value) => cell[..8].copy_from_slice(&double(number(&value)?)),
            (_, Value::Bool(value)) => whole(value.into(), cell),
            (_, Value::Int(value)) => whole(value.cast_unsigned(), cell),
            (_, Value::Uint(value)) => whole(value, cell),
            // The value is within the bounds, so its low bits are all of it.
            (_, Value::Int128(value)) => whole(value as u64, cell),
            (_, Value::Uint128(value)) => whole(value as u64, cell),
            _ => return Err(Refusal::Raised(broken())),
        }
        Ok(())
    }

    fn presence(&mut self, item: &Node, is_present: bool) {
        let (at, size) = (self.at, item.size());
        self.bytes[at + size] = u8::from(is_present);
        if !is_present {
            self.bytes[at..at + size].fill(0);
        }
    }

    fn part<T>(&mut self, offset: usize, write: impl FnOnce(&mut Self) -> T) -> T {
        self.at += offset;
        let written = write(self);
        self.at -= offset;
        written
    }

    /// Properties with words have none.
    fn items(&mut self, _: &Shape, _: &Node, _: &Bound<'_, PyAny>) -> Result<(), Refusal> {
        Err(Refusal::Raised(broken()))
    }
}

fn number(value: &Value<'_>) -> Result<f64, Refusal> {
    match *value {
        Value::Float(value) => Ok(value),
        Value::Int(value) => Ok(value as f64),
        Value::Uint(value) => Ok(value as f64),
        _ => Err(Refusal::Raised(broken())),
    }
}
