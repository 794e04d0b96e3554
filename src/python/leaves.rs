//! Single objects and their parts, as shapes write and load them: members of enumerations, flags, tuples of floats.
//!
//! Promises: those of `super::shape`. Items and keys that were chosen to share a hash are refused: a set of them takes
//! quadratic time.

use crate::python::prelude::*;

use super::value::{float, integer};
use crate::wire::Value;
use crate::wire::node::Leaf;
use crate::wire::order::ItemsError;
use crate::wire::transform::NUMBERS;

/// How many items of a set may share a hash.
const MAX_OF_ONE_HASH: usize = 16;

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

/// Up to this many bits, all combinations of flags are made in advance.
const KNOWN_FLAG_BITS: usize = 8;

impl Numbered {
    pub(super) fn new(class: Option<&Bound<'_, PyType>>, values: Vec<(i64, Py<PyAny>)>) -> Self {
        let places = values.iter().enumerate().map(|(place, (number, _))| (*number, place)).collect();
        let by_object = values.iter().map(|(number, value)| (value.as_ptr() as usize, *number)).collect();
        Numbered { class: class.map(|class| class.clone().unbind()), values, places, by_object }
    }

    #[inline]
    pub(super) fn number(&self, object: &Object<'_>) -> Result<i64, Refusal> {
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

    #[inline]
    pub(super) fn object<'py>(&self, py: Python<'py>, number: Value<'_>) -> PyResult<Object<'py>> {
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

    #[inline]
    pub(super) fn value(&self, object: &Object<'_>) -> Result<Value<'static>, Refusal> {
        let py = object.py();
        check_instance(object, &self.class)?;
        let value = object.getattr(intern!(py, "value")).map_err(Refusal::Raised)?;
        integer(&value).map(Value::Int128)
    }

    #[inline]
    pub(super) fn flags<'py>(&self, py: Python<'py>, value: Value<'_>) -> PyResult<Object<'py>> {
        let Value::Uint(bits) = value else { return Err(broken()) };
        match usize::try_from(bits).ok().and_then(|bits| self.known.get(bits)) {
            Some(flags) => Ok(flags.bind(py).clone()),
            None => self.class.bind(py).call1((bits,)),
        }
    }
}

/// Refuses items that share a hash, more than a few of them: hashes of Python's numbers, and of tuples of
/// them, are predictable.
pub(super) fn check_hashes(objects: &[Object<'_>]) -> PyResult<()> {
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

pub(super) fn same(error: ItemsError, parts: &[Object<'_>]) -> Refusal {
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

#[inline]
pub(super) fn value<'a>(leaf: &Leaf, body: &'a [u8], at: usize) -> PyResult<Value<'a>> {
    leaf.load(body, at).ok_or_else(broken)
}

/// The slots of a dict with their objects, in slot order.
pub(super) fn entries<'py>(object: &Object<'py>) -> Result<Vec<(i128, Object<'py>)>, Refusal> {
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
#[inline]
pub(super) fn fill(floats: &mut [f64], object: &Object<'_>) -> Result<(), Refusal> {
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
pub(super) fn fill_transform(numbers: &mut [f64; NUMBERS], object: &Object<'_>) -> Result<(), Refusal> {
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
pub(super) fn transform<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Object<'py>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Value::Cells(cells) = value else { return Err(broken()) };
    let part =
        |from: usize, to: usize| PyTuple::new(py, (from..to).map(|i| cells.float(i).unwrap_or(f64::NAN)));
    let class = CLASS.import(py, "tickwire._fields", "Transform")?;
    class.call1((part(0, 3)?, part(3, 7)?, part(7, NUMBERS)?))
}
