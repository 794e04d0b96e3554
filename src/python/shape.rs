//! The Python form of a field's value: one object, or objects within objects.
//!
//! Promises: the field's node reads what a [`Shape`] writes, and the other way round; no Python code runs
//! except an object's own conversions and large flag classes. A refusal says where in the value it is.

use crate::python::prelude::*;

use super::compound::{self, Converted, broken, check_instance, instance_of, items};
use super::slots::Slots;
use super::value::{Takes, float, integer, to_python};
use crate::wire::node::{Leaf, Union};
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

/// Objects with the integers that stand for them: members of an enumeration, or literals.
#[derive(Debug)]
pub(crate) struct Numbered {
    /// An enumeration, whose members alone are equal to themselves.
    class: Option<Py<PyType>>,
    values: Vec<(i64, Py<PyAny>)>,
    /// The objects' places, by the integer.
    places: HashMap<i64, usize>,
    /// By the object's address, which `values` keeps alive.
    by_object: HashMap<usize, i64>,
}

/// A class derived from `enum.Flag`.
#[derive(Debug)]
pub(crate) struct FlagClass {
    class: Py<PyType>,
    /// The flag of every integer, if they are few.
    known: Vec<Py<PyAny>>,
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

/// Up to this many bits, all combinations of flags are made in advance.
const KNOWN_FLAG_BITS: usize = 8;

impl Numbered {
    pub(super) fn new(class: Option<&Bound<'_, PyType>>, values: Vec<(i64, Py<PyAny>)>) -> Self {
        let places = values.iter().enumerate().map(|(place, (number, _))| (*number, place)).collect();
        let by_object = values.iter().map(|(number, value)| (value.as_ptr() as usize, *number)).collect();
        Numbered { class: class.map(|class| class.clone().unbind()), values, places, by_object }
    }

    fn number(&self, object: &Object<'_>) -> Result<i64, Refusal> {
        let py = object.py();
        if let Some(number) = self.by_object.get(&(object.as_ptr() as usize)) {
            return Ok(*number);
        }
        if let Some(class) = &self.class {
            return Err(instance_of(class, py));
        }
        for (number, value) in &self.values {
            let value = value.bind(py);
            // 1, 1.0 and True are equal but different literals.
            if value.get_type().is(object.get_type()) && value.eq(object).map_err(Refusal::Raised)? {
                return Ok(*number);
            }
        }
        let shown = self.values.iter().map(|(_, value)| Ok(value.bind(py).repr()?.to_string()));
        let shown: Vec<String> = shown.collect::<PyResult<_>>().map_err(Refusal::Raised)?;
        Err(Refusal::of_bound(format!("one of {}", shown.join(", "))))
    }

    fn object<'py>(&self, py: Python<'py>, number: Value<'_>) -> PyResult<Object<'py>> {
        let number = match number {
            Value::Int(number) => Some(number),
            Value::Uint(number) => i64::try_from(number).ok(),
            _ => None,
        };
        let place = number.and_then(|number| self.places.get(&number));
        let found = place.and_then(|place| self.values.get(*place));
        found.map(|(_, object)| object.bind(py).clone()).ok_or_else(broken)
    }
}

impl FlagClass {
    pub(super) fn new(class: &Bound<'_, PyType>, count: usize) -> PyResult<Self> {
        let known = if count <= KNOWN_FLAG_BITS { 1u32 << count } else { 0 };
        let known = (0..known).map(|bits| Ok(class.call1((bits,))?.unbind())).collect::<PyResult<_>>()?;
        Ok(FlagClass { class: class.clone().unbind(), known })
    }

    fn value(&self, object: &Object<'_>) -> Result<Value<'static>, Refusal> {
        let py = object.py();
        check_instance(object, &self.class)?;
        let value = object.getattr(intern!(py, "value")).map_err(Refusal::Raised)?;
        integer(&value).map(Value::Int128)
    }

    fn flags<'py>(&self, py: Python<'py>, value: Value<'_>) -> PyResult<Object<'py>> {
        let Value::Uint(bits) = value else { return Err(broken()) };
        match usize::try_from(bits).ok().and_then(|bits| self.known.get(bits)) {
            Some(flags) => Ok(flags.bind(py).clone()),
            None => self.class.bind(py).call1((bits,)),
        }
    }
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
            (Shape::Tuple(shapes), Node::Nested(schema)) => {
                compound::write_tuple(shapes, schema, object, sink)
            }
            (Shape::Set { item, .. }, Node::List(list)) => compound::write_set(item, list, object, sink),
            (Shape::Map(shapes), Node::List(list)) => compound::write_map(shapes, list, object, sink),
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
                Ok(compound::load_items::<CONVERT>(py, shape, list, body, at)?.into_any())
            }
            (Shape::Items(shape), Node::List(list)) => {
                Ok(compound::load_items::<CONVERT>(py, shape, list, body, at)?.to_tuple().into_any())
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
                compound::load_tuple::<CONVERT>(py, shapes, schema, body, at)
            }
            (Shape::Set { item, frozen }, Node::List(list)) => {
                compound::load_set::<CONVERT>(py, item, *frozen, list, body, at)
            }
            (Shape::Map(shapes), Node::List(list)) => {
                compound::load_map::<CONVERT>(py, shapes, list, body, at)
            }
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

fn value<'a>(leaf: &Leaf, body: &'a [u8], at: usize) -> PyResult<Value<'a>> {
    leaf.load(body, at).ok_or_else(broken)
}

/// The slots of a dict with their objects, in slot order.
fn entries<'py>(object: &Object<'py>) -> Result<Vec<(i128, Object<'py>)>, Refusal> {
    let Ok(dict) = object.cast::<PyDict>() else { return Err(Refusal::of_type("a dict")) };
    let mut entries = Vec::with_capacity(dict.len());
    for entry in dict.items() {
        let entry = entry.cast_into::<PyTuple>().map_err(|_| Refusal::Raised(broken()))?;
        let slot = entry.get_item(0).map_err(Refusal::Raised)?;
        let item = entry.get_item(1).map_err(Refusal::Raised)?;
        let slot = integer(&slot).map_err(|refusal| refusal.within(" (slot)", &slot))?;
        entries.push((slot, item));
    }
    entries.sort_by_key(|(slot, _)| *slot);
    Ok(entries)
}

/// Takes exactly `floats.len()` floats from a tuple, a list or another sequence.
fn fill(floats: &mut [f64], object: &Object<'_>) -> Result<(), Refusal> {
    let count = floats.len();
    let wrong = |length| wrong_count(length, count);
    if let Ok(tuple) = object.cast::<PyTuple>() {
        if tuple.len() != count {
            return Err(wrong(Some(tuple.len())));
        }
        for (i, place) in floats.iter_mut().enumerate() {
            let item = tuple.get_borrowed_item(i).map_err(Refusal::Raised)?;
            *place = component(&item, i)?;
        }
        return Ok(());
    }
    let Ok(mut found) = object.try_iter() else { return Err(wrong(None)) };
    for (i, place) in floats.iter_mut().enumerate() {
        let item = found.next().ok_or_else(|| wrong(Some(i)))?.map_err(Refusal::Raised)?;
        *place = component(&item, i)?;
    }
    if found.next().is_some() { Err(wrong(None)) } else { Ok(()) }
}

#[cold]
fn wrong_count(length: Option<usize>, count: usize) -> Refusal {
    match length {
        Some(length) => Refusal::of_bound(format!("{count} numbers, not {length}")),
        None => Refusal::of_type(format!("a tuple of {count} numbers")),
    }
}

fn component(object: &Object<'_>, i: usize) -> Result<f64, Refusal> {
    float(object).map_err(|refusal| refusal.within(&format!("[{i}]"), object))
}

/// Takes translation, rotation and scale of a `Transform`.
fn fill_transform(numbers: &mut [f64; NUMBERS], object: &Object<'_>) -> Result<(), Refusal> {
    let expected = "a Transform";
    let parts = items(object, expected)?;
    if parts.len() != 3 {
        return Err(Refusal::of_type(expected));
    }
    let (translation, rest) = numbers.split_at_mut(3);
    let (rotation, scale) = rest.split_at_mut(4);
    let names = [".translation", ".rotation", ".scale"];
    for ((part, floats), name) in parts.iter().zip([translation, rotation, scale]).zip(names) {
        fill(floats, &part).map_err(|refusal| refusal.within(name, &part))?;
    }
    Ok(())
}

/// Makes a `Transform` of a row's numbers.
fn transform<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Object<'py>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Value::Cells(cells) = value else { return Err(broken()) };
    let part =
        |from: usize, to: usize| PyTuple::new(py, (from..to).map(|i| cells.float(i).unwrap_or(f64::NAN)));
    let class = CLASS.import(py, "tickwire._fields", "Transform")?;
    class.call1((part(0, 3)?, part(3, 7)?, part(7, NUMBERS)?))
}
