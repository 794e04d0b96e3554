//! Values made of other values: tuples, sets, dicts by key, unions of messages, literals, and the game's own
//! types.
//!
//! Promises: those of `super::shape`. A type of the game's own runs the game's code, to the wire and back: an
//! exception on the way out is the caller's mistake and names the field; on the way in, [`super::refusals`]
//! judges it. Items and keys that were chosen to share a hash are refused: a set of them takes quadratic
//! time.

use crate::python::prelude::*;
use pyo3::types::{PyFrozenSet, PySet};

use super::shape::Shape;
use crate::wire::node::List;
use crate::wire::order::ItemsError;
use crate::wire::{Node, Schema};

/// How many items of a set may share a hash.
const MAX_OF_ONE_HASH: usize = 16;

/// A type of the game's own, with its conversions to and from a type that a field takes.
#[derive(Debug)]
pub(crate) struct Converted {
    class: Py<PyType>,
    item: Arc<Shape>,
    to_wire: Py<PyAny>,
    from_wire: Py<PyAny>,
}

impl Converted {
    pub(super) fn new(class: Py<PyType>, item: Arc<Shape>, to_wire: Py<PyAny>, from_wire: Py<PyAny>) -> Self {
        Converted { class, item, to_wire, from_wire }
    }

    pub(super) fn write<S: BitSink>(
        &self,
        node: &Node,
        object: &Object<'_>,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let (item, converted) = self.to_wire(object)?;
        match item.write(node, &converted, sink) {
            // The converted value says more than the object.
            Err(refusal) => Err(refusal.within(" (to_wire)", &converted)),
            written => written,
        }
    }

    /// The shape on the wire, and how an object is converted to it.
    pub(super) fn to_wire<'py>(&self, object: &Object<'py>) -> Result<(&Shape, Object<'py>), Refusal> {
        let py = object.py();
        check_instance(object, &self.class)?;
        let converted =
            self.to_wire.bind(py).call1((object,)).map_err(|error| Refusal::to_wire(py, error))?;
        Ok((&self.item, converted))
    }

    pub(super) fn load<'py, const CONVERT: bool>(
        &self,
        py: Python<'py>,
        node: &Node,
        body: &[u8],
        at: usize,
    ) -> PyResult<Object<'py>> {
        let value = self.item.load::<CONVERT>(py, node, body, at)?;
        if CONVERT { self.from_wire.bind(py).call1((value,)) } else { Ok(value) }
    }
}

/// Writes a tuple whose parts have fields of their own.
pub(super) fn write_tuple<S: BitSink>(
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

pub(super) fn load_tuple<'py, const CONVERT: bool>(
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
pub(super) fn write_set<S: BitSink>(
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

pub(super) fn load_set<'py, const CONVERT: bool>(
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
pub(super) fn write_map<S: BitSink>(
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

pub(super) fn load_map<'py, const CONVERT: bool>(
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

/// Refuses items that share a hash, more than a few of them: hashes of Python's numbers, and of tuples of
/// them, are predictable.
fn check_hashes(objects: &[Object<'_>]) -> PyResult<()> {
    if objects.len() <= MAX_OF_ONE_HASH {
        return Ok(());
    }
    let mut hashes = objects.iter().map(|object| object.hash()).collect::<PyResult<Vec<_>>>()?;
    hashes.sort_unstable();
    if hashes.windows(MAX_OF_ONE_HASH + 1).any(|run| run.first() == run.last()) {
        refuse!(StreamError, "more than {MAX_OF_ONE_HASH} items of a set, or keys of a dict, have one hash");
    }
    Ok(())
}

fn same(error: ItemsError, parts: &[Object<'_>]) -> Refusal {
    match error {
        ItemsError::Value(error) => error.into(),
        ItemsError::Same(a, b) => {
            let shown =
                |i: usize| parts.get(i).and_then(|part| part.repr().ok()).map(|shown| shown.to_string());
            let (a, b) = (shown(a).unwrap_or_default(), shown(b).unwrap_or_default());
            Refusal::of_bound(format!("items that differ on the wire, and {a} and {b} have the same bits"))
        }
    }
}

/// The items of a list.
#[inline]
pub(super) fn load_items<'py, const CONVERT: bool>(
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

/// An internal error: the core made the body, and one kind made shape and node.
#[cold]
pub(super) fn broken() -> PyErr {
    PyValueError::new_err("the body is not one of its schema's")
}

#[cold]
pub(super) fn instance_of(class: &Py<PyType>, py: Python<'_>) -> Refusal {
    Refusal::of_type(format!("a {}", name_of(class.bind(py))))
}

pub(super) fn check_instance(object: &Object<'_>, class: &Py<PyType>) -> Result<(), Refusal> {
    let is_instance = object.is_instance(class.bind(object.py())).map_err(Refusal::Raised)?;
    if is_instance { Ok(()) } else { Err(instance_of(class, object.py())) }
}

/// The parts of a tuple of fixed length.
pub(super) fn parts<'py>(object: &Object<'py>, count: usize) -> Result<Bound<'py, PyTuple>, Refusal> {
    let parts = items(object, "a tuple")?;
    if parts.len() != count {
        let bound = format!("a tuple of {count}, not {}", parts.len());
        return Err(Refusal::of_bound(bound));
    }
    Ok(parts)
}

/// A copy of a list's or tuple's objects: their own code may change the list.
pub(super) fn items<'py>(
    object: &Object<'py>,
    expected: &'static str,
) -> Result<Bound<'py, PyTuple>, Refusal> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Ok(tuple.clone());
    }
    object.cast::<PyList>().map(|list| list.to_tuple()).map_err(|_| Refusal::of_type(expected))
}
