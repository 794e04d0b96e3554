//! Fields whose values have parts: lists, tuples, dicts, sets, and objects of message classes.

use crate::python::prelude::*;
use pyo3::types::{PyFrozenSet, PySet};

use super::leaves::{broken, check_hashes, check_instance, entries, items, parts, same};
use super::shape::{Nested, Shape};
use crate::wire::node::{List, Union};
use crate::wire::{Node, Schema};

impl Shape {
    pub(super) fn write_parts<S: BitSink>(
        &self,
        node: &Node,
        object: &Object<'_>,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        match (self, node) {
            (Shape::List(shape) | Shape::Items(shape), Node::List(list)) => {
                let expected = if let Shape::List(_) = self { "a list" } else { "a tuple" };
                let items = items(object, expected)?;
                list.write_count(items.len(), sink)?;
                for (i, item) in items.iter().enumerate() {
                    let written = shape.write(list.item(), &item, sink);
                    written.map_err(|refusal| refusal.within(&format!("[{i}]"), &item))?;
                }
                Ok(())
            }
            (Shape::Sparse(shape), Node::Sparse(sparse)) => {
                let entries = entries(object)?;
                let mut slots = sparse.write_count(entries.len(), sink)?;
                for (slot, item) in &entries {
                    slots.write(*slot, sink).map_err(|error| match slot.into_pyobject(item.py()) {
                        Ok(slot) => Refusal::from(error).within(" (slot)", &slot),
                        Err(error) => Refusal::Raised(error.into()),
                    })?;
                    let written = shape.write(sparse.item(), item, sink);
                    written.map_err(|refusal| refusal.within(&format!("[{slot}]"), item))?;
                }
                Ok(())
            }
            (Shape::Nested(nested), Node::Nested(_)) => {
                check_instance(object, nested.class())?;
                nested.write(object, sink)
            }
            (Shape::Tuple(shapes), Node::Nested(schema)) => write_tuple(shapes, schema, object, sink),
            (Shape::Set { item, .. }, Node::List(list)) => write_set(item, list, object, sink),
            (Shape::Map(shapes), Node::List(list)) => write_map(shapes, list, object, sink),
            (Shape::Union(classes), Node::Union(union)) => write_union(classes, union, object, sink),
            _ => Err(Refusal::Raised(broken())),
        }
    }

    pub(super) fn load_parts<'py, const CONVERT: bool>(
        &self,
        py: Python<'py>,
        node: &Node,
        body: &[u8],
        at: usize,
    ) -> PyResult<Object<'py>> {
        match (self, node) {
            (Shape::Converted(converted), node) => converted.load::<CONVERT>(py, node, body, at),
            (Shape::List(shape), Node::List(list)) => {
                Ok(load_items::<CONVERT>(py, shape, list, body, at)?.into_any())
            }
            (Shape::Items(shape), Node::List(list)) => {
                Ok(load_items::<CONVERT>(py, shape, list, body, at)?.to_tuple().into_any())
            }
            (Shape::Sparse(shape), Node::Sparse(sparse)) => {
                let objects = PyDict::new(py);
                for entry in sparse.entries(body, at).ok_or_else(broken)? {
                    let (slot, at) = entry.ok_or_else(broken)?;
                    objects.set_item(slot, shape.load::<CONVERT>(py, sparse.item(), body, at)?)?;
                }
                Ok(objects.into_any())
            }
            (Shape::Nested(nested), Node::Nested(_)) => nested.load::<CONVERT>(py, body, at),
            (Shape::Tuple(shapes), Node::Nested(schema)) => {
                load_tuple::<CONVERT>(py, shapes, schema, body, at)
            }
            (Shape::Set { item, frozen }, Node::List(list)) => {
                load_set::<CONVERT>(py, item, *frozen, list, body, at)
            }
            (Shape::Map(shapes), Node::List(list)) => load_map::<CONVERT>(py, shapes, list, body, at),
            (Shape::Union(classes), Node::Union(union)) => {
                load_union::<CONVERT>(py, classes, union, body, at)
            }
            _ => Err(broken()),
        }
    }
}

/// Writes the number of an object's class, then the object.
fn write_union<S: BitSink>(
    classes: &[Nested],
    union: &Union,
    object: &Object<'_>,
    sink: &mut S,
) -> Result<(), Refusal> {
    let found = classes.iter().position(|nested| nested.class().is(object.get_type()));
    let Some((number, nested)) = found.and_then(|number| Some((number, classes.get(number)?))) else {
        return Err(Refusal::of_bound(format!("one of {}", names(classes, object.py()))));
    };
    union.write_variant(number, sink)?;
    nested.write(object, sink)
}

fn load_union<'py, const CONVERT: bool>(
    py: Python<'py>,
    classes: &[Nested],
    union: &Union,
    body: &[u8],
    at: usize,
) -> PyResult<Object<'py>> {
    let (number, _, row) = union.load(body, at).ok_or_else(broken)?;
    classes.get(number).ok_or_else(broken)?.load::<CONVERT>(py, body, row)
}

fn names(classes: &[Nested], py: Python<'_>) -> String {
    let names: Vec<String> = classes.iter().map(|nested| name_of(nested.class().bind(py))).collect();
    names.join(", ")
}

/// Writes a tuple whose parts have fields of their own.
fn write_tuple<S: BitSink>(
    shapes: &[Arc<Shape>],
    schema: &Schema,
    object: &Object<'_>,
    sink: &mut S,
) -> Result<(), Refusal> {
    let parts = parts(object, shapes.len())?;
    for (i, ((shape, field), part)) in shapes.iter().zip(schema.fields()).zip(parts.iter()).enumerate() {
        let written = shape.write(field.node(), &part, sink);
        written.map_err(|refusal| refusal.within(&format!("[{i}]"), &part))?;
    }
    Ok(())
}

fn load_tuple<'py, const CONVERT: bool>(
    py: Python<'py>,
    shapes: &[Arc<Shape>],
    schema: &Schema,
    body: &[u8],
    at: usize,
) -> PyResult<Object<'py>> {
    let parts = shapes.iter().zip(schema.fields());
    let parts =
        parts.map(|(shape, field)| shape.load::<CONVERT>(py, field.node(), body, at + field.offset()));
    Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// Writes a set, in wire order.
fn write_set<S: BitSink>(
    shape: &Arc<Shape>,
    list: &List,
    object: &Object<'_>,
    sink: &mut S,
) -> Result<(), Refusal> {
    let parts: Vec<Object<'_>> = if let Ok(set) = object.cast::<PySet>() {
        set.iter().collect()
    } else if let Ok(set) = object.cast::<PyFrozenSet>() {
        set.iter().collect()
    } else {
        return Err(Refusal::of_type("a set"));
    };
    let mut written = Vec::with_capacity(parts.len());
    for part in &parts {
        let mut writer = BitWriter::new();
        let item = shape.write(list.item(), part, &mut writer);
        item.map_err(|refusal| refusal.within(" (item)", part))?;
        written.push(writer.into_bytes());
    }
    list.write_items(&written, sink).map_err(|error| same(error, &parts))
}

fn load_set<'py, const CONVERT: bool>(
    py: Python<'py>,
    shape: &Arc<Shape>,
    frozen: bool,
    list: &List,
    body: &[u8],
    at: usize,
) -> PyResult<Object<'py>> {
    let (from, count) = list.items(body, at).ok_or_else(broken)?;
    let load = |i| shape.load::<CONVERT>(py, list.item(), body, from + i * list.stride());
    let objects = (0..count).map(load).collect::<PyResult<Vec<_>>>()?;
    if CONVERT {
        check_hashes(&objects)?;
    }
    if frozen {
        return Ok(PyFrozenSet::new(py, objects)?.into_any());
    }
    Ok(PySet::new(py, objects)?.into_any())
}

/// Writes a dict, in the wire order of its keys.
fn write_map<S: BitSink>(
    shapes: &(Arc<Shape>, Arc<Shape>),
    list: &List,
    object: &Object<'_>,
    sink: &mut S,
) -> Result<(), Refusal> {
    let Ok(dict) = object.cast::<PyDict>() else { return Err(Refusal::of_type("a dict")) };
    let Node::Nested(entry) = list.item() else { return Err(Refusal::Raised(broken())) };
    let [key_field, value_field] = entry.fields() else { return Err(Refusal::Raised(broken())) };
    let (mut keys, mut written) = (Vec::with_capacity(dict.len()), Vec::with_capacity(dict.len()));
    // A copy: the objects' own code may change the dict.
    for entry in dict.items() {
        let (key, value): (Object<'_>, Object<'_>) = entry.extract().map_err(Refusal::Raised)?;
        let mut writer = BitWriter::new();
        let wrote = shapes.0.write(key_field.node(), &key, &mut writer);
        wrote.map_err(|refusal| refusal.within(" (key)", &key))?;
        let wrote = shapes.1.write(value_field.node(), &value, &mut writer);
        wrote.map_err(|refusal| refusal.within(&format!("[{}]", repr_of(&key)), &value))?;
        written.push(writer.into_bytes());
        keys.push(key);
    }
    list.write_items(&written, sink).map_err(|error| same(error, &keys))
}

fn load_map<'py, const CONVERT: bool>(
    py: Python<'py>,
    shapes: &(Arc<Shape>, Arc<Shape>),
    list: &List,
    body: &[u8],
    at: usize,
) -> PyResult<Object<'py>> {
    let Node::Nested(entry) = list.item() else { return Err(broken()) };
    let [key_field, value_field] = entry.fields() else { return Err(broken()) };
    let (from, count) = list.items(body, at).ok_or_else(broken)?;
    let row = |i| from + i * list.stride();
    let key = |i| shapes.0.load::<CONVERT>(py, key_field.node(), body, row(i) + key_field.offset());
    let keys = (0..count).map(key).collect::<PyResult<Vec<_>>>()?;
    if CONVERT {
        check_hashes(&keys)?;
    }
    let objects = PyDict::new(py);
    for (i, key) in keys.into_iter().enumerate() {
        let at = row(i) + value_field.offset();
        objects.set_item(key, shapes.1.load::<CONVERT>(py, value_field.node(), body, at)?)?;
    }
    Ok(objects.into_any())
}

/// The items of a list.
#[inline]
fn load_items<'py, const CONVERT: bool>(
    py: Python<'py>,
    shape: &Arc<Shape>,
    list: &List,
    body: &[u8],
    at: usize,
) -> PyResult<Bound<'py, PyList>> {
    let (from, count) = list.items(body, at).ok_or_else(broken)?;
    let objects = PyList::empty(py);
    for i in 0..count {
        objects.append(shape.load::<CONVERT>(py, list.item(), body, from + i * list.stride())?)?;
    }
    Ok(objects)
}
