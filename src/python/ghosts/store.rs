//! Python's values to cells, unquantised: the game goes on with the numbers it set, however coarse the wire
//! is.
//!
//! Promises: a value is stored if and only if it can be written. No Python code runs except an object's own
//! conversions.

use super::*;
use crate::python::leaves::{broken, check_instance, parts};
use crate::python::shape::{Converted, Nested, Shape};
use crate::wire::node::Leaf;
use crate::wire::transform::NUMBERS;
use crate::wire::{Column, Measure, Node, Schema, Value};

/// Stores a value in a cell of its property, which has words.
pub(super) fn store(shape: &Shape, node: &Node, object: &Object<'_>, cell: &mut [u8]) -> Result<(), Refusal> {
    match (shape, node) {
        (Shape::Optional(shape), Node::Optional(optional)) => {
            let (item, present) = cell.split_at_mut(optional.item().size());
            present[0] = u8::from(!object.is_none());
            if object.is_none() {
                item.fill(0);
                return Ok(());
            }
            store(shape, optional.item(), object, item)
        }
        (Shape::Converted(converted), node) => store_converted(converted, node, object, cell),
        (Shape::Nested(nested), Node::Nested(schema)) => store_nested(nested, schema, object, cell),
        (Shape::Tuple(shapes), Node::Nested(schema)) => store_tuple(shapes, schema, object, cell),
        (_, Node::Leaf(leaf)) => store_leaf(shape, leaf, object, cell),
        _ => Err(Refusal::Raised(broken())),
    }
}

fn store_leaf(shape: &Shape, leaf: &Leaf, object: &Object<'_>, cell: &mut [u8]) -> Result<(), Refusal> {
    let mut floats = [0.0; NUMBERS];
    let value = shape.leaf_value(object, &mut floats)?;
    leaf.write(value, &mut Measure::new())?;
    let double = |bits: f64| bits.to_le_bytes();
    let single = |bits: f64| (bits as f32).to_le_bytes();
    let whole = |number: u64, cell: &mut [u8]| {
        let size = cell.len().min(8);
        cell[..size].copy_from_slice(&number.to_le_bytes()[..size]);
    };
    match (leaf.column(), value) {
        (Column::Singles(_), Value::Floats(floats)) => {
            cell.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(cell, value)| *cell = single(*value));
        }
        (Column::Doubles(_), Value::Floats(floats)) => {
            cell.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(cell, value)| *cell = double(*value));
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

fn number(value: &Value<'_>) -> Result<f64, Refusal> {
    match *value {
        Value::Float(value) => Ok(value),
        Value::Int(value) => Ok(value as f64),
        Value::Uint(value) => Ok(value as f64),
        _ => Err(Refusal::Raised(broken())),
    }
}

fn store_converted(
    converted: &Converted,
    node: &Node,
    object: &Object<'_>,
    cell: &mut [u8],
) -> Result<(), Refusal> {
    let (shape, wire) = converted.to_wire(object)?;
    // The converted value says more than the object.
    store(shape, node, &wire, cell).map_err(|refusal| refusal.within(" (to_wire)", &wire))
}

fn store_nested(
    nested: &Nested,
    schema: &Schema,
    object: &Object<'_>,
    cell: &mut [u8],
) -> Result<(), Refusal> {
    check_instance(object, nested.class())?;
    for (i, field) in schema.fields().iter().enumerate() {
        let part = object.getattr(field.name()).map_err(Refusal::Raised)?;
        let cell = &mut cell[field.offset()..][..field.node().size()];
        let stored = store(nested.fields().shape(i), field.node(), &part, cell);
        stored.map_err(|refusal| refusal.within(&format!(".{}", field.name()), &part))?;
    }
    Ok(())
}

fn store_tuple(
    shapes: &[Arc<Shape>],
    schema: &Schema,
    object: &Object<'_>,
    cell: &mut [u8],
) -> Result<(), Refusal> {
    let parts = parts(object, shapes.len())?;
    for (i, ((shape, field), part)) in shapes.iter().zip(schema.fields()).zip(parts.iter()).enumerate() {
        let cell = &mut cell[field.offset()..][..field.node().size()];
        let stored = store(shape, field.node(), &part, cell);
        stored.map_err(|refusal| refusal.within(&format!("[{i}]"), &part))?;
    }
    Ok(())
}
