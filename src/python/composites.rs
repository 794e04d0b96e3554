//! Field types that consist of others, of an enumeration's members, or of message classes: see `tickwire._composed`.

use super::fields::{About, FieldType, compiled};
use super::leaves::{FlagClass, Numbered};
use super::shape::{Converted, Nested, Shape};
use crate::python::prelude::*;
use crate::wire::{Kind, MAX_LENGTH};

#[pyfunction]
pub(crate) fn common_of(
    item: &Bound<'_, FieldType>,
    values: Vec<Object<'_>>,
    about: About,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, label, .. } = item.get();
    let own = compiled(kind, label)?;
    let field = own.fields().first().ok_or_else(|| PyValueError::new_err("a field"))?;
    let mut words = Vec::new();
    for value in &values {
        let mut writer = BitWriter::new();
        let written = shape.write(field.node(), value, &mut writer);
        written.map_err(|refusal| refusal.raise(label, "common", value))?;
        let mut word = [0; 16];
        for (byte, written) in word.iter_mut().zip(writer.as_bytes()) {
            *byte = *written;
        }
        words.push(u128::from_le_bytes(word));
    }
    FieldType::new(Kind::Common { item: Box::new(kind.clone()), words }, shape.clone(), about)
}

#[pyfunction]
pub(crate) fn composed(
    form: &str,
    parts: Vec<Bound<'_, FieldType>>,
    count: &Object<'_>,
    about: About,
) -> PyResult<FieldType> {
    let kind = |part: usize| Box::new(parts[part].get().kind.clone());
    let shape = |part: usize| parts[part].get().shape.clone();
    let up_to = || bounded("up_to", count, 0, MAX_LENGTH);
    let (kind, shape) = match form {
        "optional" => (Kind::Optional(kind(0)), Shape::Optional(shape(0))),
        "list" => (Kind::List { max: up_to()?, item: kind(0) }, Shape::List(shape(0))),
        "items" => (Kind::List { max: up_to()?, item: kind(0) }, Shape::Items(shape(0))),
        "set" | "frozenset" => {
            let shape = Shape::Set { item: shape(0), frozen: form == "frozenset" };
            (Kind::Set { max: up_to()?, item: kind(0) }, shape)
        }
        "map" => {
            let kind = Kind::Map { max: up_to()?, key: kind(0), item: kind(1) };
            (kind, Shape::Map((shape(0), shape(1))))
        }
        "sparse" => {
            let slots = bounded("sparse", count, 1, MAX_LENGTH)?;
            (Kind::Sparse { slots, item: kind(0) }, Shape::Sparse(shape(0)))
        }
        _ => {
            let fields = parts.iter().enumerate().map(|(i, part)| (i.to_string(), part.get().kind.clone()));
            let shapes = parts.iter().map(|part| part.get().shape.clone());
            (Kind::Nested { fields: fields.collect() }, Shape::Tuple(shapes.collect()))
        }
    };
    FieldType::new(kind, Arc::new(shape), about)
}

#[pyfunction]
pub(crate) fn member_of(
    form: &str,
    class_: &Bound<'_, PyType>,
    members: Vec<(String, i64, Py<PyAny>)>,
    about: About,
) -> PyResult<FieldType> {
    let mut names: Vec<_> = members.iter().map(|(name, number, _)| (name.clone(), *number)).collect();
    names.sort_by_key(|(_, number)| *number);
    let own = members.into_iter().map(|(_, number, member)| (number, member)).collect();
    let shape = match form {
        "flags" => Shape::Flags(FlagClass::new(class_, names.len())?),
        "enum" => Shape::Numbered(Numbered::new(Some(class_), own)),
        _ => Shape::Numbered(Numbered::new(None, own)),
    };
    let kind = match form {
        "flags" => Kind::Flags { names: names.into_iter().map(|(name, _)| name).collect() },
        _ => Kind::Enum { members: names },
    };
    FieldType::new(kind, Arc::new(shape), about)
}

#[pyfunction]
pub(crate) fn nested_of(
    classes: Vec<(Bound<'_, PyType>, Bound<'_, Schema>)>,
    union: bool,
    about: About,
) -> PyResult<FieldType> {
    let (mut nested, mut variants) = (Vec::new(), Vec::new());
    for (class, schema) in classes {
        let fields = schema.get().fields.core.fields().iter();
        let fields = fields.map(|field| (field.name().into(), field.kind().clone())).collect();
        variants.push((class.name()?.to_string(), Kind::Nested { fields }));
        nested.push(Nested::new(&class, schema.get().fields.clone())?);
    }
    let (kind, shape) = match (nested.pop(), variants.pop()) {
        (Some(class), Some((_, kind))) if !union => (kind, Shape::Nested(class)),
        (last, variant) => {
            nested.extend(last);
            variants.extend(variant);
            (Kind::Union { variants }, Shape::Union(nested))
        }
    };
    FieldType::new(kind, Arc::new(shape), about)
}

#[pyfunction]
pub(crate) fn converted_of(
    class_: Py<PyType>,
    item: &Bound<'_, FieldType>,
    #[callable(1)] to_wire: Py<PyAny>,
    #[callable(1)] from_wire: Py<PyAny>,
    about: About,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, .. } = item.get();
    let converted = Converted::new(class_, shape.clone(), to_wire, from_wire);
    FieldType::new(kind.clone(), Arc::new(Shape::Converted(converted)), about)
}
