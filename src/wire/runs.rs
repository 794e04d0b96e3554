//! The cells of a row that reference its tail: texts, data, lists and sparse arrays.
//!
//! Promises: [`check`] finds every cell of the application's that points outside of its arena, before anything is read
//! there. [`shift`] is for bodies that the core made, in which no two cells point to the same bytes.

use super::column::run;
use super::{Column, Measure, Node, Schema, ValueError};

/// Whether rows of this schema have a tail.
pub(super) fn any(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| points(field.node()))
}

fn points(node: &Node) -> bool {
    match node {
        Node::Leaf(leaf) => is_run(leaf.column()),
        Node::Optional(optional) => points(optional.item()),
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => true,
        Node::Nested(schema) => schema.has_tail(),
    }
}

fn is_run(column: Column) -> bool {
    matches!(column, Column::Text | Column::Data)
}

/// Refuses a value at `at` of a body whose cells point beyond its first `arena` bytes.
pub(super) fn check(node: &Node, body: &[u8], at: usize, arena: usize) -> Result<(), ValueError> {
    match node {
        Node::Leaf(leaf) if is_run(leaf.column()) => within(body, at, 1, arena).map(drop),
        Node::Leaf(_) => Ok(()),
        Node::Optional(optional) => match optional.is_present(body, at) {
            Some(true) => check(optional.item(), body, at, arena),
            _ => Ok(()),
        },
        Node::List(list) => {
            let (from, count) = within(body, at, list.stride(), arena)?;
            // Too many are refused here, so that nested lists don't cost more than full ones.
            list.write_count(count, &mut Measure::new())?;
            if points(list.item()) {
                (0..count).try_for_each(|i| check(list.item(), body, from + i * list.stride(), arena))?;
            }
            Ok(())
        }
        Node::Sparse(sparse) => {
            let (from, count) = within(body, at, sparse.stride(), arena)?;
            sparse.write_count(count, &mut Measure::new())?;
            if points(sparse.item()) {
                let item = |i| from + i * sparse.stride() + sparse.item_at();
                (0..count).try_for_each(|i| check(sparse.item(), body, item(i), arena))?;
            }
            Ok(())
        }
        Node::Union(union) => {
            let (from, variant) = run(body, at).ok_or(ValueError::Row)?;
            let variant = union.variant(variant)?;
            inside(from, 1, variant.size(), arena)?;
            check(variant, body, from, arena)
        }
        Node::Nested(schema) => check_row(schema, body, at, arena).map_err(|(_, error)| error),
    }
}

/// As [`check`], for the row at `at`; the error comes with its field's index.
pub(super) fn check_row(
    schema: &Schema,
    body: &[u8],
    at: usize,
    arena: usize,
) -> Result<(), (usize, ValueError)> {
    for (i, field) in schema.fields().iter().enumerate() {
        check(field.node(), body, at + field.offset(), arena).map_err(|error| (i, error))?;
    }
    Ok(())
}

/// The offset and the count at `at`, when that many of `size` bytes each lie within the arena.
fn within(body: &[u8], at: usize, size: usize, arena: usize) -> Result<(usize, usize), ValueError> {
    let (offset, count) = run(body, at).ok_or(ValueError::Row)?;
    inside(offset, count, size, arena)?;
    Ok((offset, count))
}

/// Refuses things from `offset` on, `count` of `size` bytes each, that do not lie within the arena.
fn inside(offset: usize, count: usize, size: usize, arena: usize) -> Result<(), ValueError> {
    let bytes = count.saturating_mul(size);
    if bytes.checked_add(offset).is_some_and(|end| end <= arena) {
        return Ok(());
    }
    Err(ValueError::OutsideArena { offset, count, bytes, arena })
}

/// Adds `by` to where the cells of the row at `at` point; it wraps, so that they can move down too.
pub(super) fn shift_row(schema: &Schema, body: &mut [u8], at: usize, by: u32) {
    schema.fields().iter().for_each(|field| shift(field.node(), body, at + field.offset(), by));
}

fn shift(node: &Node, body: &mut [u8], at: usize, by: u32) {
    match node {
        Node::Leaf(leaf) if is_run(leaf.column()) => move_run(body, at, by),
        Node::Leaf(_) => {}
        Node::Optional(optional) => {
            if optional.is_present(body, at) == Some(true) {
                shift(optional.item(), body, at, by);
            }
        }
        Node::List(list) => {
            if points(list.item())
                && let Some((from, count)) = run(body, at)
            {
                let item = |i| from + i * list.stride();
                (0..count).for_each(|i| shift(list.item(), body, item(i), by));
            }
            move_run(body, at, by);
        }
        Node::Sparse(sparse) => {
            if points(sparse.item())
                && let Some((from, count)) = run(body, at)
            {
                let item = |i| from + i * sparse.stride() + sparse.item_at();
                (0..count).for_each(|i| shift(sparse.item(), body, item(i), by));
            }
            move_run(body, at, by);
        }
        Node::Union(union) => {
            if let Some((from, variant)) = run(body, at)
                && let Ok(variant) = union.variant(variant)
            {
                shift(variant, body, from, by);
            }
            move_run(body, at, by);
        }
        Node::Nested(schema) => shift_row(schema, body, at, by),
    }
}

fn move_run(body: &mut [u8], at: usize, by: u32) {
    if let Some(place) = body.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *place = u32::from_le_bytes(*place).wrapping_add(by).to_le_bytes();
    }
}
