//! Field types that consist of others: optional ones, lists, tuples, sets, maps, unions and the like.

use super::compound::{Converted, Literals, is_hashable};
use super::fields::{FieldType, Natural, compiled};
use super::shape::{Nested, Shape};
use crate::python::prelude::*;
use crate::wire::{Kind, MAX_LENGTH};
use pyo3::types::{PyFrozenSet, PySet};

#[pyfunction]
pub(crate) fn common_of(item: &Bound<'_, FieldType>, values: Vec<Bound<'_, PyAny>>) -> PyResult<FieldType> {
    let FieldType { kind, shape, python_type, label, .. } = item.get();
    let shown: Vec<String> =
        values.iter().map(|value| Ok(value.repr()?.to_string())).collect::<PyResult<_>>()?;
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
    let default = match values.first() {
        Some(value) => Natural::Shared(value.clone().unbind()),
        None => return Err(PyValueError::new_err("common() must have one or two values, not none")),
    };
    let kind = Kind::Common { item: Box::new(kind.clone()), words };
    let label = format!("{label}, common({})", shown.join(", "));
    let schema = compiled(&kind, &label)?;
    Ok(FieldType {
        kind,
        shape: shape.clone(),
        default,
        python_type: python_type.clone_ref(item.py()),
        min_bits: schema.min_bits(),
        max_bits: schema.max_bits(),
        label,
    })
}

#[pyfunction]
pub(crate) fn optional_of(item: &Bound<'_, FieldType>) -> PyResult<FieldType> {
    let FieldType { kind, shape, python_type, label, .. } = item.get();
    FieldType::new(
        Kind::Optional(Box::new(kind.clone())),
        Shape::Optional(shape.clone()),
        Natural::Shared(item.py().None()),
        python_type.clone_ref(item.py()),
        format!("{label} | None"),
    )
}

#[pyfunction]
pub(crate) fn list_of(
    item: &Bound<'_, FieldType>,
    #[within(0, MAX_LENGTH)] up_to: u32,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, label, .. } = item.get();
    let list = item.py().get_type::<PyList>().unbind();
    FieldType::new(
        Kind::List { max: up_to, item: Box::new(kind.clone()) },
        Shape::List(shape.clone()),
        Natural::Made(list.clone_ref(item.py())),
        list,
        format!("list[{label}], up_to({up_to})"),
    )
}

#[pyfunction]
pub(crate) fn sparse_of(
    item: &Bound<'_, FieldType>,
    #[within(1, MAX_LENGTH)] sparse: u32,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, label, .. } = item.get();
    let dict = item.py().get_type::<PyDict>().unbind();
    FieldType::new(
        Kind::Sparse { slots: sparse, item: Box::new(kind.clone()) },
        Shape::Sparse(shape.clone()),
        Natural::Made(dict.clone_ref(item.py())),
        dict,
        format!("dict[int, {label}], sparse({sparse})"),
    )
}

#[pyfunction]
pub(crate) fn nested_of(class_: &Bound<'_, PyType>, schema: &Bound<'_, Schema>) -> PyResult<FieldType> {
    let fields = schema.get().core.fields().iter();
    FieldType::new(
        Kind::Nested { fields: fields.map(|field| (field.name().into(), field.kind().clone())).collect() },
        Shape::Nested(Nested::new(class_, schema.clone().unbind())?),
        Natural::Made(class_.clone().unbind()),
        class_.clone().unbind(),
        class_.name()?.to_string(),
    )
}

#[pyfunction]
pub(crate) fn tuple_of(py: Python<'_>, items: Vec<Bound<'_, FieldType>>) -> PyResult<FieldType> {
    let fields = items.iter().enumerate().map(|(i, item)| (i.to_string(), item.get().kind.clone()));
    let labels: Vec<&str> = items.iter().map(|item| item.get().label.as_str()).collect();
    FieldType::new(
        Kind::Nested { fields: fields.collect() },
        Shape::Tuple(items.iter().map(|item| item.get().shape.clone()).collect()),
        Natural::Parts(items.iter().map(|item| item.clone().unbind()).collect()),
        py.get_type::<PyTuple>().unbind(),
        format!("tuple[{}]", labels.join(", ")),
    )
}

#[pyfunction]
pub(crate) fn items_of(
    item: &Bound<'_, FieldType>,
    #[within(0, MAX_LENGTH)] up_to: u32,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, label, .. } = item.get();
    FieldType::new(
        Kind::List { max: up_to, item: Box::new(kind.clone()) },
        Shape::Items(shape.clone()),
        Natural::Shared(PyTuple::empty(item.py()).into_any().unbind()),
        item.py().get_type::<PyTuple>().unbind(),
        format!("tuple[{label}, ...], up_to({up_to})"),
    )
}

#[pyfunction]
pub(crate) fn set_of(
    item: &Bound<'_, FieldType>,
    #[within(0, MAX_LENGTH)] up_to: u32,
    frozen: bool,
) -> PyResult<FieldType> {
    let py = item.py();
    let FieldType { kind, shape, label, .. } = item.get();
    check_hashable(item, "items of a set")?;
    let (name, class) = match frozen {
        true => ("frozenset", py.get_type::<PyFrozenSet>().unbind()),
        false => ("set", py.get_type::<PySet>().unbind()),
    };
    let default = match frozen {
        true => Natural::Shared(class.bind(py).call0()?.unbind()),
        false => Natural::Made(class.clone_ref(py)),
    };
    FieldType::new(
        Kind::Set { max: up_to, item: Box::new(kind.clone()) },
        Shape::Set { item: shape.clone(), frozen },
        default,
        class,
        format!("{name}[{label}], up_to({up_to})"),
    )
}

#[pyfunction]
pub(crate) fn map_of(
    key: &Bound<'_, FieldType>,
    item: &Bound<'_, FieldType>,
    #[within(0, MAX_LENGTH)] up_to: u32,
) -> PyResult<FieldType> {
    check_hashable(key, "keys of a dict")?;
    let boxed = |field: &Bound<'_, FieldType>| Box::new(field.get().kind.clone());
    let dict = key.py().get_type::<PyDict>().unbind();
    FieldType::new(
        Kind::Map { max: up_to, key: boxed(key), item: boxed(item) },
        Shape::Map((key.get().shape.clone(), item.get().shape.clone())),
        Natural::Made(dict.clone_ref(key.py())),
        dict,
        format!("dict[{}, {}], up_to({up_to})", key.get().label, item.get().label),
    )
}

fn check_hashable(item: &Bound<'_, FieldType>, what: &str) -> PyResult<()> {
    let class = item.get().python_type.bind(item.py());
    if is_hashable(class)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("{what} must be hashable, and a {} is not", class.name()?)))
}

#[pyfunction]
pub(crate) fn literal_of(py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<FieldType> {
    let shown: Vec<String> =
        values.iter().map(|value| Ok(value.repr()?.to_string())).collect::<PyResult<_>>()?;
    let Some(first) = values.first() else {
        return Err(PyTypeError::new_err("Literal must have values, and has none"));
    };
    let class = first.get_type();
    let python_type = match values.iter().all(|value| value.get_type().is(&class)) {
        true => class.clone(),
        false => py.get_type::<PyAny>(),
    };
    // As in enumerations: the values' own integers if all are integers, otherwise their positions.
    let own = values.iter().map(|value| value.cast_exact::<PyInt>().ok()?.extract::<i64>().ok());
    let numbers: Vec<i64> = own.collect::<Option<_>>().unwrap_or_else(|| (0..).take(values.len()).collect());
    let literals = numbers.iter().zip(&values).map(|(number, value)| (*number, value.clone().unbind()));
    let shape = Shape::Literal(Literals::new(literals.collect()));
    let default = Natural::Shared(first.clone().unbind());
    let mut members: Vec<(String, i64)> = shown.iter().cloned().zip(numbers).collect();
    members.sort_by_key(|(_, number)| *number);
    let label = format!("Literal[{}]", shown.join(", "));
    FieldType::new(Kind::Enum { members }, shape, default, python_type.unbind(), label)
}

#[pyfunction]
pub(crate) fn union_of(
    py: Python<'_>,
    classes: Vec<(Bound<'_, PyType>, Bound<'_, Schema>)>,
) -> PyResult<FieldType> {
    let mut names = Vec::with_capacity(classes.len());
    for (class, _) in &classes {
        names.push(class.name()?.to_string());
    }
    let Some((first, _)) = classes.first() else { return Err(PyTypeError::new_err("a union of nothing")) };
    let variants = names.iter().zip(&classes).map(|(name, (_, schema))| {
        let fields = schema.get().core.fields().iter();
        let fields = fields.map(|field| (field.name().into(), field.kind().clone())).collect();
        (name.clone(), Kind::Nested { fields })
    });
    let variants = variants.collect();
    let nested = classes.iter().map(|(class, schema)| Nested::new(class, schema.clone().unbind()));
    FieldType::new(
        Kind::Union { variants },
        Shape::Union(nested.collect::<PyResult<_>>()?),
        Natural::Made(first.clone().unbind()),
        py.get_type::<PyAny>().unbind(),
        names.join(" | "),
    )
}

#[pyfunction]
pub(crate) fn converted_of(
    class_: &Bound<'_, PyType>,
    item: &Bound<'_, FieldType>,
    #[callable] to_wire: Py<PyAny>,
    #[callable] from_wire: Py<PyAny>,
) -> PyResult<FieldType> {
    let FieldType { kind, shape, label, .. } = item.get();
    let natural = Natural::Converted(item.clone().unbind(), from_wire.clone_ref(item.py()));
    let converted = Converted::new(class_.clone().unbind(), shape.clone(), to_wire, from_wire);
    FieldType::new(
        kind.clone(),
        Shape::Converted(converted),
        natural,
        class_.clone().unbind(),
        format!("{} as {label}", class_.name()?),
    )
}
