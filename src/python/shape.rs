//! The Python form of a field's value: one object, or objects within objects.
//!
//! Promises: the field's node reads what a [`Shape`] writes, and the other way round; no Python code runs
//! except an object's own conversions and large flag classes. A refusal says where in the value it is. A type of the
//! game's own runs the game's code, to the wire and back: an exception on the way out is the caller's mistake and names
//! the field; one on the way in may be the peer's.

use crate::python::prelude::*;
use pyo3::types::{PyFrozenSet, PySet};

use super::leaves::{
    FlagClass, Numbered, broken, check_hashes, check_instance, entries, fill, fill_transform, items, parts,
    same, transform, value,
};
use super::slots::Slots;
use super::value::{Takes, to_python};
use crate::wire::node::{Leaf, List, Union};
use crate::wire::transform::NUMBERS;
use crate::wire::{self, Node, Schema, Value};

/// A shape and its [`Node`] are made of one kind, so they have the same parts.
#[derive(Debug)]
pub(crate) enum Shape {
    /// An object of a builtin type.
    Plain(Takes),
    /// A member of an enumeration, or one of several values.
    Numbered(Numbered),
    /// A flag of a class of flags.
    Flags(FlagClass),
    /// A tuple of this many floats.
    Floats(usize),
    /// A `tickwire.fields.Transform`.
    Transform,
    /// An object or None.
    Optional(Arc<Shape>),
    /// A list.
    List(Arc<Shape>),
    /// A dict by slot.
    Sparse(Arc<Shape>),
    /// A tuple of parts that have fields of their own.
    Tuple(Vec<Arc<Shape>>),
    /// A tuple of any length.
    Items(Arc<Shape>),
    /// A set or a frozenset.
    Set { item: Arc<Shape>, frozen: bool },
    /// A dict by key.
    Map((Arc<Shape>, Arc<Shape>)),
    /// An object of one of several message classes.
    Union(Vec<Nested>),
    /// An object of a type of the game's own.
    Converted(Converted),
    /// An object of a message class.
    Nested(Nested),
}

/// The fields of a message class: names of attributes and their shapes, for the core's fields.
#[derive(Debug)]
pub(crate) struct Fields {
    name: String,
    pub(super) core: wire::Schema,
    attributes: Vec<(Py<PyString>, Arc<Shape>)>,
}

/// A message class inside another.
#[derive(Debug)]
pub(crate) struct Nested {
    slots: Slots,
    fields: Arc<Fields>,
}

impl Fields {
    /// A class's fields, with their attributes' names and shapes.
    pub(super) fn new(name: String, core: wire::Schema, attributes: Vec<(Py<PyString>, Arc<Shape>)>) -> Self {
        Fields { name, core, attributes }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The names of the attributes.
    pub(super) fn names(&self) -> impl Iterator<Item = &Py<PyString>> {
        self.attributes.iter().map(|(name, _)| name)
    }

    /// The name of the attribute at `index`.
    pub(super) fn name_of(&self, index: usize) -> &Py<PyString> {
        &self.attributes[index].0
    }

    #[inline]
    pub(super) fn shape(&self, index: usize) -> &Shape {
        &self.attributes[index].1
    }

    /// The name of the field at `index`.
    pub(super) fn field_name(&self, index: usize) -> &str {
        self.core.fields().get(index).map_or("", wire::Field::name)
    }

    /// How objects of a class with this schema are made and their fields accessed.
    pub(super) fn slots(&self, class: &Bound<'_, PyType>) -> PyResult<Slots> {
        let names = self.attributes.iter().map(|(name, _)| name.bind(class.py()));
        Slots::new(class, names)
    }

    /// Adds the field's name to an exception of the game's `from_wire`.
    #[cold]
    fn noted(&self, py: Python<'_>, error: PyErr, field: &str) -> PyErr {
        let note = format!("while reading {}.{field}", self.name);
        // If the note can't be added, the exception is raised without it.
        let _ = error.value(py).call_method1("add_note", (note,));
        error
    }

    /// Writes the object's attributes.
    #[inline]
    pub(super) fn write(
        &self,
        message: &Object<'_>,
        slots: Option<&Slots>,
        sink: &mut impl BitSink,
    ) -> PyResult<()> {
        self.write_fields(message, slots, sink)
            .map_err(|(field, object, refusal)| refusal.raise(&self.name, self.field_name(field), &object))
    }

    /// [`Fields::write`] whose refusal comes with the field's index and value.
    pub(super) fn write_fields<'py>(
        &self,
        message: &Object<'py>,
        slots: Option<&Slots>,
        sink: &mut impl BitSink,
    ) -> Result<(), (usize, Object<'py>, Refusal)> {
        let slots = slots.and_then(|slots| slots.of(message));
        for (i, (field, (name, shape))) in self.core.fields().iter().zip(&self.attributes).enumerate() {
            let object = match slots {
                Some(slots) => slots.get(i, message),
                None => message.getattr(name.bind(message.py())),
            };
            let object = match object {
                Ok(object) => object,
                Err(error) => return Err((i, message.clone(), Refusal::Raised(error))),
            };
            if let Err(refusal) = shape.write(field.node(), &object, sink) {
                return Err((i, object, refusal));
            }
        }
        Ok(())
    }

    /// Sets the object's attributes from the row at `row` of a body; `CONVERT` as in [`Shape::load`].
    pub(super) fn load<const CONVERT: bool>(
        &self,
        body: &[u8],
        row: usize,
        message: &Object<'_>,
        slots: Option<&Slots>,
    ) -> PyResult<()> {
        let py = message.py();
        let slots = slots.and_then(|slots| slots.of(message));
        for (i, (field, (name, shape))) in self.core.fields().iter().zip(&self.attributes).enumerate() {
            let object = shape.load::<CONVERT>(py, field.node(), body, row + field.offset());
            let object = match object {
                Ok(object) => object,
                Err(error) => return Err(self.noted(py, error, field.name())),
            };
            match slots {
                Some(slots) => slots.set(i, message, &object)?,
                None => message.setattr(name.bind(py), object)?,
            }
        }
        Ok(())
    }
}

impl Nested {
    /// A message class and its fields.
    pub(super) fn new(class: &Bound<'_, PyType>, fields: Arc<Fields>) -> PyResult<Self> {
        Ok(Nested { slots: fields.slots(class)?, fields })
    }

    pub(super) fn class(&self) -> &Py<PyType> {
        self.slots.class()
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(super) fn write<S: BitSink>(&self, object: &Object<'_>, sink: &mut S) -> Result<(), Refusal> {
        self.fields.write_fields(object, Some(&self.slots), sink).map_err(|(field, object, refusal)| {
            refusal.within(&format!(".{}", self.fields.field_name(field)), &object)
        })
    }

    pub(super) fn load<'py, const CONVERT: bool>(
        &self,
        py: Python<'py>,
        body: &[u8],
        at: usize,
    ) -> PyResult<Object<'py>> {
        let object = self.slots.make(py)?;
        self.fields.load::<CONVERT>(body, at, &object, Some(&self.slots))?;
        Ok(object)
    }
}

impl Shape {
    /// Checks the object and writes it.
    #[inline]
    pub(super) fn write<S: BitSink>(
        &self,
        node: &Node,
        object: &Object<'_>,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        match (self, node) {
            (Shape::Plain(takes), Node::Leaf(leaf)) => Ok(leaf.write(takes.value(object)?, sink)?),
            (Shape::Optional(shape), Node::Optional(optional)) => {
                sink.bool(!object.is_none());
                if object.is_none() { Ok(()) } else { shape.write(optional.item(), object, sink) }
            }
            (Shape::Converted(converted), node) => converted.write(node, object, sink),
            (_, Node::Leaf(leaf)) => self.write_leaf(leaf, object, sink),
            _ => self.write_parts(node, object, sink),
        }
    }

    /// The object for the value at `at` in a body that the core read. Without `CONVERT`, the game's own types
    /// stay what is on the wire.
    #[inline]
    pub(super) fn load<'py, const CONVERT: bool>(
        &self,
        py: Python<'py>,
        node: &Node,
        body: &[u8],
        at: usize,
    ) -> PyResult<Object<'py>> {
        match (self, node) {
            (Shape::Plain(_) | Shape::Floats(_), Node::Leaf(leaf)) => to_python(py, value(leaf, body, at)?),
            (Shape::Optional(shape), Node::Optional(optional)) => {
                if optional.is_present(body, at).ok_or_else(broken)? {
                    shape.load::<CONVERT>(py, optional.item(), body, at)
                } else {
                    Ok(py.None().into_bound(py))
                }
            }
            (Shape::Numbered(numbered), Node::Leaf(leaf)) => numbered.object(py, value(leaf, body, at)?),
            (Shape::Flags(class), Node::Leaf(leaf)) => class.flags(py, value(leaf, body, at)?),
            (Shape::Transform, Node::Leaf(leaf)) => transform(py, value(leaf, body, at)?),
            _ => self.load_parts::<CONVERT>(py, node, body, at),
        }
    }

    /// Whether it is one object of a builtin type.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Shape::Plain(_))
    }

    fn write_leaf<S: BitSink>(&self, leaf: &Leaf, object: &Object<'_>, sink: &mut S) -> Result<(), Refusal> {
        let mut floats = [0.0; NUMBERS];
        let value = self.leaf_value(object, &mut floats)?;
        Ok(leaf.write(value, sink)?)
    }

    /// The value of a single object, not yet checked against any bound; a vector's numbers go into `floats`.
    pub(super) fn leaf_value<'a>(
        &self,
        object: &'a Object<'_>,
        floats: &'a mut [f64; NUMBERS],
    ) -> Result<Value<'a>, Refusal> {
        Ok(match self {
            Shape::Plain(takes) => takes.value(object)?,
            Shape::Numbered(numbered) => Value::Int(numbered.number(object)?),
            Shape::Flags(class) => class.value(object)?,
            Shape::Floats(count) => {
                let floats = &mut floats[..*count];
                fill(floats, object)?;
                Value::Floats(floats)
            }
            Shape::Transform => {
                fill_transform(floats, object)?;
                Value::Floats(floats)
            }
            _ => return Err(Refusal::Raised(broken())),
        })
    }

    fn write_parts<S: BitSink>(&self, node: &Node, object: &Object<'_>, sink: &mut S) -> Result<(), Refusal> {
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

    fn load_parts<'py, const CONVERT: bool>(
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
