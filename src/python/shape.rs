//! The Python form of a field's value: one object, or objects within objects.
//!
//! Promises: the field's node reads what a [`Shape`] writes, and the other way round; no Python code runs
//! except an object's own conversions and large flag classes. A refusal says where in the value it is. A type of the
//! game's own runs the game's code, to the wire and back: an exception on the way out is the caller's mistake and names
//! the field; one on the way in may be the peer's.

use crate::python::prelude::*;

use super::leaves::{FlagClass, Numbered, broken, check_instance, fill, fill_transform, transform, value};
use super::slots::Slots;
use super::value::{Takes, to_python};
use crate::wire::node::Leaf;
use crate::wire::transform::NUMBERS;
use crate::wire::{self, Node, Value};

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
