//! Values made of other values: tuples, sets, dicts by key, unions of messages, literals, and the game's own
//! types.
//!
//! Promises: those of `shape`. A type of the game's own runs the game's code, to the wire and back: an
//! exception on the way out is the caller's mistake and names the field; on the way in, [`super::refusals`]
//! judges it. Items and keys that were chosen to share a hash are refused: a set of them takes quadratic
//! time.

use crate::python::prelude::*;
use pyo3::types::{PyFrozenSet, PySet};

use super::shape::{Body, Loaded, Nested, Shape, Written, broken, check_instance, parts};
use crate::wire::node::{List, Sparse, Union};
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

    pub(super) fn write<S: BitSink>(&self, node: &Node, object: &Object<'_>, sink: &mut S) -> Written {
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

    pub(super) fn load<'py>(&self, body: Body<'_, 'py>, node: &Node, at: usize) -> Loaded<'py> {
        let value = self.item.load(body, node, at)?;
        if body.converts { self.from_wire.bind(body.py).call1((value,)) } else { Ok(value) }
    }
}

/// Writes a tuple whose parts have fields of their own.
pub(super) fn write_tuple<S: BitSink>(
    shapes: &[Arc<Shape>],
    schema: &Schema,
    object: &Object<'_>,
    sink: &mut S,
) -> Written {
    let parts = parts(object, shapes.len())?;
    for (i, ((shape, field), part)) in shapes.iter().zip(schema.fields()).zip(parts.iter()).enumerate() {
        let written = shape.write(field.node(), &part, sink);
        written.map_err(|refusal| refusal.within(&format!("[{i}]"), &part))?;
    }
    Ok(())
}

/// Writes a set, in wire order.
pub(super) fn write_set<S: BitSink>(
    shape: &Shape,
    list: &List,
    object: &Object<'_>,
    sink: &mut S,
) -> Written {
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

/// Writes a dict, in the wire order of its keys.
pub(super) fn write_map<S: BitSink>(
    shapes: &(Arc<Shape>, Arc<Shape>),
    list: &List,
    object: &Object<'_>,
    sink: &mut S,
) -> Written {
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
        wrote.map_err(|refusal| {
            let shown = key.repr().map_or_else(|_| "?".into(), |shown| shown.to_string());
            refusal.within(&format!("[{shown}]"), &value)
        })?;
        written.push(writer.into_bytes());
        keys.push(key);
    }
    list.write_items(&written, sink).map_err(|error| same(error, &keys))
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

/// Writes the number of an object's class, then the object.
pub(super) fn write_union<S: BitSink>(
    classes: &[Nested],
    union: &Union,
    object: &Object<'_>,
    sink: &mut S,
) -> Written {
    let found = classes.iter().position(|nested| nested.class().is(object.get_type()));
    let Some((number, nested)) = found.and_then(|number| Some((number, classes.get(number)?))) else {
        return Err(Refusal::of_bound(format!("one of {}", names(classes, object.py()))));
    };
    union.write_variant(number, sink)?;
    nested.write(object, sink)
}

fn names(classes: &[Nested], py: Python<'_>) -> String {
    let name = |nested: &Nested| {
        let name = nested.class().bind(py).name();
        name.map_or_else(|_| "message".into(), |name| name.to_string())
    };
    classes.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl<'py> Body<'_, 'py> {
    /// The objects of a list's items.
    fn items(self, item: &Shape, list: &List, at: usize) -> PyResult<impl Iterator<Item = Loaded<'py>>> {
        let (from, count) = list.items(self.bytes, at).ok_or_else(broken)?;
        Ok((0..count).map(move |i| item.load(self, list.item(), from + i * list.stride())))
    }

    #[inline]
    pub(super) fn list(self, item: &Shape, list: &List, at: usize) -> PyResult<Bound<'py, PyList>> {
        let objects = PyList::empty(self.py);
        for object in self.items(item, list, at)? {
            objects.append(object?)?;
        }
        Ok(objects)
    }

    pub(super) fn sparse(self, item: &Shape, sparse: &Sparse, at: usize) -> Loaded<'py> {
        let objects = PyDict::new(self.py);
        for entry in sparse.entries(self.bytes, at).ok_or_else(broken)? {
            let (slot, at) = entry.ok_or_else(broken)?;
            objects.set_item(slot, item.load(self, sparse.item(), at)?)?;
        }
        Ok(objects.into_any())
    }

    pub(super) fn tuple(self, shapes: &[Arc<Shape>], schema: &Schema, at: usize) -> Loaded<'py> {
        let parts = shapes.iter().zip(schema.fields());
        let parts = parts.map(|(shape, field)| shape.load(self, field.node(), at + field.offset()));
        Ok(PyTuple::new(self.py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    pub(super) fn set(self, item: &Shape, frozen: bool, list: &List, at: usize) -> Loaded<'py> {
        let objects = self.items(item, list, at)?.collect::<PyResult<Vec<_>>>()?;
        self.check_hashes(&objects)?;
        if frozen {
            return Ok(PyFrozenSet::new(self.py, objects)?.into_any());
        }
        Ok(PySet::new(self.py, objects)?.into_any())
    }

    pub(super) fn map(self, shapes: &(Arc<Shape>, Arc<Shape>), list: &List, at: usize) -> Loaded<'py> {
        let Node::Nested(entry) = list.item() else { return Err(broken()) };
        let [key_field, value_field] = entry.fields() else { return Err(broken()) };
        let (from, count) = list.items(self.bytes, at).ok_or_else(broken)?;
        let row = |i| from + i * list.stride();
        let key = |i| shapes.0.load(self, key_field.node(), row(i) + key_field.offset());
        let keys = (0..count).map(key).collect::<PyResult<Vec<_>>>()?;
        self.check_hashes(&keys)?;
        let objects = PyDict::new(self.py);
        for (i, key) in keys.into_iter().enumerate() {
            let at = row(i) + value_field.offset();
            objects.set_item(key, shapes.1.load(self, value_field.node(), at)?)?;
        }
        Ok(objects.into_any())
    }

    pub(super) fn union(self, classes: &[Nested], union: &Union, at: usize) -> Loaded<'py> {
        let (number, _, row) = union.load(self.bytes, at).ok_or_else(broken)?;
        classes.get(number).ok_or_else(broken)?.load(self, row)
    }

    /// Refuses items that share a hash, more than a few of them: hashes of Python's numbers, and of tuples of
    /// them, are predictable.
    fn check_hashes(self, objects: &[Object<'_>]) -> PyResult<()> {
        if !self.converts || objects.len() <= MAX_OF_ONE_HASH {
            return Ok(());
        }
        let mut hashes = objects.iter().map(|object| object.hash()).collect::<PyResult<Vec<_>>>()?;
        hashes.sort_unstable();
        if hashes.windows(MAX_OF_ONE_HASH + 1).any(|run| run.first() == run.last()) {
            refuse!(
                StreamError,
                "more than {MAX_OF_ONE_HASH} items of a set, or keys of a dict, have one hash"
            );
        }
        Ok(())
    }
}
