//! The checks that parameters name, as in `#[within(1, 64)] count: u32`, or have by their types: see `macros`.
//!
//! Each takes the parameter's name, the argument, and what else the parameter may be (" or None").

use crate::python::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{PyClass, PyTypeCheck, PyTypeInfo};

use crate::wire::MAX_LENGTH;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyUnicodeEncodeError;

/// The latest time that a caller may give: 200 years.
pub(super) const LATEST: f64 = 200.0 * 366.0 * 86_400.0;

/// An int from `low` to `high`.
pub(super) fn within<T>(name: &str, given: &Object<'_>, or: &str, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    if given.is_instance_of::<PyBool>() {
        refuse!(PyTypeError, "{name} must be an int{or}, not bool");
    }
    let number = match given.extract::<i64>() {
        Ok(number) => number.into(),
        Err(_) => match given.extract::<i128>() {
            Ok(number) => number,
            // An int beyond an i128 is out of every bound here.
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                return Err(outside(name, given, low, high));
            }
            Err(error) => return Err(wrong(name, given, &format!("an int{or}"), error)),
        },
    };
    T::try_from(number)
        .ok()
        .filter(|it| (&low..=&high).contains(&it))
        .ok_or_else(|| outside(name, number, low, high))
}

/// [`within`] for parameters that have other types too.
pub(super) fn bounded<T>(name: &str, value: &Object<'_>, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    within(name, value, "", low, high)
}

/// [`within`] for a field that is being declared.
pub(super) fn declared<T>(name: &str, value: &Object<'_>, or: &str, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    within(name, value, or, low, high).map_err(|error| placed(value.py(), error))
}

/// The greatest length of a field that is being declared: longer data belongs in chunks.
pub(super) fn length(name: &str, value: &Object<'_>, or: &str) -> PyResult<u32> {
    if let Ok(given) = value.extract::<i128>()
        && given > MAX_LENGTH.into()
    {
        let sentence = format!(
            "{name} must be 0 to {MAX_LENGTH}, not {given}: send larger data as a chunk (on a tw.chunks() channel)"
        );
        return Err(placed(value.py(), PyValueError::new_err(sentence)));
    }
    declared(name, value, or, 0, MAX_LENGTH)
}

/// Adds the class and field being declared to an error, if there are any.
#[cold]
pub(super) fn placed(py: Python<'_>, error: PyErr) -> PyErr {
    let place = || -> PyResult<String> {
        py.import("tickwire._fields")?.getattr("place_of_declaration")?.call0()?.extract()
    };
    match place() {
        Ok(place) if !place.is_empty() => {
            let sentence = format!("{place}{}", error.value(py));
            PyErr::from_type(error.get_type(py), sentence)
        }
        // The position only helps: without it, the error is raised as it is.
        _ => error,
    }
}

/// [`within`] that also accepts a float with an integral value, such as 1e6.
pub(super) fn whole<T>(name: &str, given: &Object<'_>, or: &str, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    let Ok(float) = given.cast::<PyFloat>().map(|float| float.value()) else {
        return within(name, given, or, low, high);
    };
    if float.fract() != 0.0 {
        refuse!(PyTypeError, "{name} must be a whole number, not {}", short(float));
    }
    T::try_from(float as i128)
        .ok()
        .filter(|it| (&low..=&high).contains(&it))
        .ok_or_else(|| outside(name, short(float), low, high))
}

fn outside(name: &str, value: impl Display, low: impl Display, high: impl Display) -> PyErr {
    PyValueError::new_err(format!("{name} must be {low} to {high}, not {value}"))
}

/// A count; the core knows its bounds.
pub(super) fn count(name: &str, given: &Object<'_>, or: &str) -> PyResult<usize> {
    if let Ok(count) = given.extract::<usize>()
        && !given.is_instance_of::<PyBool>()
    {
        return Ok(count);
    }
    let number: i128 = not_bool(name, given, &format!("an int{or}"))?;
    refuse!(PyValueError, "{name} must be at least 1 and fit in memory, not {number}")
}

/// Seconds from 0 to `high`.
pub(super) fn seconds(name: &str, given: &Object<'_>, or: &str, high: f64) -> PyResult<Duration> {
    duration(name, number(name, given, or)?, high)
}

/// An argument in seconds, from 0 to `high`.
pub(super) fn duration(name: &str, value: f64, high: f64) -> PyResult<Duration> {
    if (0.0..=high).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(PyValueError::new_err(format!("{name} must be 0 to {high} seconds, not {}", short(value))))
    }
}

/// Seconds of a clock of the caller's.
pub(super) fn instant(name: &str, given: &Object<'_>, or: &str) -> PyResult<Instant> {
    seconds(name, given, or, LATEST).map(|since| Instant::ZERO + since)
}

/// A number; the caller checks its bounds. An int beyond all floats is infinite.
pub(super) fn number(name: &str, given: &Object<'_>, or: &str) -> PyResult<f64> {
    if given.is_instance_of::<PyBool>() {
        refuse!(PyTypeError, "{name} must be a number{or}, not bool");
    }
    match given.extract() {
        Ok(number) => Ok(number),
        Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
            Ok(if given.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        Err(error) => Err(wrong(name, given, &format!("a number{or}"), error)),
    }
}

/// Seconds from `low` to `high`.
pub(super) fn span(name: &str, given: &Object<'_>, or: &str, low: f64, high: f64) -> PyResult<f64> {
    let seconds = number(name, given, or)?;
    if (low..=high).contains(&seconds) {
        return Ok(seconds);
    }
    refuse!(PyValueError, "{name} must be {low} to {high} seconds{or}, not {}", short(seconds))
}

/// A latency, or its variation: a larger number is one of milliseconds by mistake.
pub(super) fn latency(name: &str, given: &Object<'_>, or: &str) -> PyResult<f64> {
    let value = number(name, given, or)?;
    if value > 10.0 {
        let shown = short(value);
        refuse!(PyValueError, "{name} must be 0 to 10 seconds, not {shown}: 50 milliseconds are {name}=0.05");
    }
    span(name, given, or, 0.0, 10.0)
}

/// An object of a class, as Rust has it.
pub(super) fn frozen<'a, T>(name: &str, given: &'a Object<'_>, or: &str) -> PyResult<&'a T>
where
    T: PyClass<Frozen = True> + PyTypeInfo + Sync,
{
    instance::<T>(name, given, or).map(|given| given.get())
}

/// A copy of settings that another object has.
pub(super) fn copied<T>(name: &str, given: &Object<'_>, or: &str) -> PyResult<T>
where
    T: PyClass<Frozen = True> + PyTypeInfo + Sync + Copy,
{
    frozen(name, given, or).copied()
}

/// One of two words.
pub(super) fn either(name: &str, given: &Object<'_>, or: &str, one: &str, other: &str) -> PyResult<String> {
    let word: String = argument(name, given, &format!("'{one}' or '{other}'{or}"))?;
    if word == one || word == other {
        return Ok(word);
    }
    refuse!(PyValueError, "{name} must be '{one}' or '{other}'{or}, not '{word}'")
}

/// A function, or another object that can be called with a number of arguments.
pub(super) fn callable(name: &str, given: &Object<'_>, or: &str, count: usize) -> PyResult<Py<PyAny>> {
    let (py, others) = (given.py(), PyDict::new(given.py()));
    others.set_item(intern!(py, "others"), or)?;
    let checks = py.import("tickwire._checks")?;
    checks.call_method(intern!(py, "check_callable"), (name, given, count), Some(&others))?;
    Ok(given.clone().unbind())
}

/// A list of message classes, or None for none.
pub(super) fn classes(name: &str, given: &Object<'_>, _: &str) -> PyResult<Vec<Py<PyAny>>> {
    let classes: Option<_> = argument(name, given, "a list of message classes or None")?;
    Ok(classes.unwrap_or_default())
}

/// Conditions of a single direction.
pub(super) fn one_way(name: &str, given: &Object<'_>, or: &str) -> PyResult<Conditions> {
    if !given.is_instance_of::<PyTuple>() {
        return copied(name, given, or);
    }
    let hint = "as up, down = Conditions.preset(...) gives one for each direction";
    refuse!(PyTypeError, "{name} must be one Conditions, {hint}, not tuple")
}

/// A path.
pub(super) fn path(name: &str, given: &Object<'_>, or: &str) -> PyResult<PathBuf> {
    argument(name, given, &format!("a path{or}"))
}

/// A bool.
pub(super) fn truth(name: &str, given: &Object<'_>, or: &str) -> PyResult<bool> {
    argument(name, given, &format!("True or False{or}"))
}

/// A text.
pub(super) fn text<'a, T: From<&'a str>>(name: &str, given: &'a Object<'_>, or: &str) -> PyResult<T> {
    let text: PyResult<&'a str> = given.extract();
    text.map(T::from).map_err(|error| wrong(name, given, &format!("a str{or}"), error))
}

/// Bytes.
pub(super) fn bytes<'a>(name: &str, given: &'a Object<'_>, or: &str) -> PyResult<&'a [u8]> {
    instance::<PyBytes>(name, given, or).map(|bytes| bytes.as_bytes())
}

/// An address, or several in a list, or a code.
pub(super) fn address<'py, T>(name: &str, given: &Object<'py>, _: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    given.extract().map_err(|error: PyErr| {
        let sentence = error.value(given.py()).to_string();
        let sentence = match sentence.split_once(" must be ") {
            Some(("an address" | "addresses", rest)) => format!("{name} must be {rest}"),
            _ => format!("{name}: {sentence}"),
        };
        PyErr::from_type(error.get_type(given.py()), sentence)
    })
}

/// An object of a class.
pub(super) fn instance<'a, 'py, T: PyTypeCheck + PyTypeInfo>(
    name: &str,
    given: &'a Object<'py>,
    or: &str,
) -> PyResult<&'a Bound<'py, T>> {
    given.cast().map_err(|_| {
        let class = T::type_object(given.py());
        let what = match class.name() {
            Ok(class) if class == "bytes" => class.to_string(),
            Ok(class) => format!("a {class}"),
            Err(error) => return error,
        };
        PyTypeError::new_err(format!("{name} must be {what}{or}, not {}", class_name(given)))
    })
}

/// [`instance`], to be kept.
pub(super) fn object<T: PyTypeCheck + PyTypeInfo>(
    name: &str,
    given: &Object<'_>,
    or: &str,
) -> PyResult<Py<T>> {
    instance(name, given, or).map(|object| object.clone().unbind())
}

/// Extracts an argument; `what` says in words what it must be.
pub(super) fn argument<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Object<'py>,
    what: &str,
) -> PyResult<T> {
    given.extract().map_err(|error: T::Error| wrong(name, given, what, error.into()))
}

/// [`argument`] for numbers, which refuses True and False.
pub(super) fn not_bool<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    given: &Object<'py>,
    what: &str,
) -> PyResult<T> {
    if given.is_instance_of::<PyBool>() {
        refuse!(PyTypeError, "{name} must be {what}, not bool");
    }
    argument(name, given, what)
}

/// Replaces the error that an argument's conversion raised.
#[cold]
pub(super) fn wrong(name: &str, given: &Object<'_>, what: &str, error: PyErr) -> PyErr {
    let py = given.py();
    match () {
        () if error.is_instance_of::<PyUnicodeEncodeError>(py) => {
            PyValueError::new_err(format!("{name} must be text without lone surrogates"))
        }
        () if error.is_instance_of::<PyOverflowError>(py) => {
            PyValueError::new_err(format!("{name} must be a number of at most 128 bits"))
        }
        // The object's own code raised it.
        () if !error.is_instance_of::<PyTypeError>(py) => error,
        () if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() => {
            PyTypeError::new_err(format!("{name} must be {what}: {}", error.value(py)))
        }
        () => PyTypeError::new_err(format!("{name} must be {what}, not {}", class_name(given))),
    }
}

/// The name of an object's class, for errors.
pub(super) fn class_name(object: &Object<'_>) -> String {
    name_of(&object.get_type())
}

/// The name of a class, for errors.
pub(super) fn name_of(class: &Bound<'_, PyType>) -> String {
    class.name().map_or_else(|_| "it".into(), |name| name.to_string())
}

/// The representation of an object, for errors.
pub(super) fn repr_of(object: &Object<'_>) -> String {
    object.repr().map_or_else(|_| "it".into(), |text| text.to_string())
}
