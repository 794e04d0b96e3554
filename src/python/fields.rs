//! Field types: the contents of `Annotated`.

use core::fmt::Display;

use crate::python::prelude::*;

use super::checks;

use super::shape::{FlagClass, Members, Shape, members_of};
use super::value::Takes;
use crate::wire::{self, Kind, MAX_LENGTH, SchemaError};

#[pyclass(frozen, module = "tickwire.fields")]
#[derive(Debug)]
pub(crate) struct FieldType {
    pub(super) kind: Kind,
    pub(super) shape: Arc<Shape>,
    pub(super) default: Natural,
    pub(super) python_type: Py<PyType>,
    pub(super) min_bits: usize,
    pub(super) max_bits: usize,
    pub(super) label: String,
}

/// The default of a field without one of its own.
#[derive(Debug)]
pub(super) enum Natural {
    /// One object for all.
    Shared(Py<PyAny>),
    /// A new object of this class each time.
    Made(Py<PyType>),
    /// The game's `from_wire` of the wire's default.
    Converted(Py<FieldType>, Py<PyAny>),
    /// A tuple of the parts' defaults.
    Parts(Vec<Py<FieldType>>),
}

impl FieldType {
    /// A field that is one object of a builtin type.
    fn plain(py: Python<'_>, kind: Kind, label: String) -> PyResult<Self> {
        let Some(takes) = Takes::of(&kind) else {
            refuse!(PyValueError, "{label}: not one value");
        };
        let (default, python_type) = natural(py, &kind)?;
        let default = Natural::Shared(default.unbind());
        Self::new(kind, Shape::Plain(takes), default, python_type.unbind(), label)
    }

    /// A field that is a tuple of floats.
    fn floats(py: Python<'_>, kind: Kind, default: &[f64], label: String) -> PyResult<Self> {
        let shape = Shape::Floats(default.len());
        let default = Natural::Shared(PyTuple::new(py, default)?.into_any().unbind());
        Self::new(kind, shape, default, py.get_type::<PyTuple>().unbind(), label)
    }

    /// Checks the parameters once, at the declaration.
    pub(super) fn new(
        kind: Kind,
        shape: Shape,
        default: Natural,
        python_type: Py<PyType>,
        label: String,
    ) -> PyResult<Self> {
        let py_error = |error| Python::attach(|py| placed(py, error));
        let schema = compiled(&kind, &label).map_err(py_error)?;
        let (min_bits, max_bits) = (schema.min_bits(), schema.max_bits());
        Ok(FieldType { kind, shape: Arc::new(shape), default, python_type, min_bits, max_bits, label })
    }
}

/// A schema of this one field.
pub(super) fn compiled(kind: &Kind, label: &str) -> PyResult<wire::Schema> {
    wire::Schema::new([("", kind.clone())])
        .map_err(|error| PyValueError::new_err(format!("{label}: {}", without_field(&error))))
}

fn without_field(error: &SchemaError) -> String {
    match error {
        SchemaError::Parameter { error, .. } => error.to_string(),
        error => error.to_string(),
    }
}

/// The natural default and type of fields that are one builtin object.
fn natural<'py>(py: Python<'py>, kind: &Kind) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyType>)> {
    let int = py.get_type::<PyInt>();
    let float = |value: f64| (PyFloat::new(py, value).into_any(), py.get_type::<PyFloat>());
    Ok(match *kind {
        Kind::Bool | Kind::Press => (PyBool::new(py, false).to_owned().into_any(), py.get_type::<PyBool>()),
        Kind::Ranged { lo, hi } => (nearest(lo, 0, hi).into_pyobject(py)?.into_any(), int),
        Kind::Quantized { lo, hi, .. } | Kind::Angle { lo, hi, .. } => float(nearest(lo, 0.0, hi)),
        Kind::Fixed { lo, hi, .. } => float(nearest(lo as f64, 0.0, hi as f64)),
        Kind::Float | Kind::Double => float(0.0),
        Kind::Text { .. } | Kind::WideText { .. } => {
            (PyString::new(py, "").into_any(), py.get_type::<PyString>())
        }
        Kind::Raw { bytes } => {
            (PyBytes::new(py, &vec![0; bytes as usize]).into_any(), py.get_type::<PyBytes>())
        }
        Kind::Data { .. } => (PyBytes::new(py, b"").into_any(), py.get_type::<PyBytes>()),
        _ => (0u8.into_pyobject(py)?.into_any(), int),
    })
}

/// The value if it is within its bounds, otherwise the lower bound.
fn nearest<T: PartialOrd>(lo: T, value: T, hi: T) -> T {
    if (&lo..=&hi).contains(&&value) { value } else { lo }
}

#[pymethods]
impl FieldType {
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.default {
            Natural::Shared(value) => Ok(value.bind(py).clone()),
            Natural::Made(class) => class.bind(py).call0(),
            Natural::Converted(item, from_wire) => from_wire.bind(py).call1((item.get().default(py)?,)),
            Natural::Parts(parts) => {
                let parts = parts.iter().map(|part| part.get().default(py)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, parts)?.into_any())
            }
        }
    }

    #[getter]
    fn is_mutable(&self) -> bool {
        match &self.default {
            Natural::Shared(_) => false,
            Natural::Made(_) | Natural::Converted(..) => true,
            Natural::Parts(parts) => parts.iter().any(|part| part.get().is_mutable()),
        }
    }

    properties! {
        min_bits: usize = self.min_bits;
        max_bits: usize = self.max_bits;
        python_type: Bound<'py, PyType> = self.python_type.bind(py).clone();
        __repr__: &str = &self.label;
    }
}

/// Adds the class and field being declared to an error, if there are any.
#[cold]
fn placed(py: Python<'_>, error: PyErr) -> PyErr {
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

/// [`bounded`] for a field that is being declared.
fn declared<T>(name: &str, value: &Bound<'_, PyAny>, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    bounded(name, value, low, high).map_err(|error| placed(value.py(), error))
}

/// [`declared`] for a length in bytes: longer data belongs in chunks.
fn length(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    if let Ok(given) = value.extract::<i128>()
        && given > MAX_LENGTH.into()
    {
        let sentence = format!(
            "{name} must be 0 to {MAX_LENGTH}, not {given}: send larger data as a chunk (on a tw.chunks() channel)"
        );
        return Err(placed(value.py(), PyValueError::new_err(sentence)));
    }
    declared(name, value, 0, MAX_LENGTH)
}

/// An argument that is an integer within bounds; the error names the argument.
pub(super) fn bounded<T>(name: &str, value: &Bound<'_, PyAny>, low: T, high: T) -> PyResult<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    checks::within(name, value, "", low, high)
}

#[pyfunction]
pub(crate) fn bits(count: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = count.py();
    let bits = declared("count", count, 1, 64)?;
    FieldType::plain(py, Kind::Bits { bits }, format!("bits({bits})"))
}

#[pyfunction]
pub(crate) fn ranged(low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = low.py();
    let lo = declared("low", low, i128::MIN, i128::MAX)?;
    let hi = declared("high", high, i128::MIN, i128::MAX)?;
    FieldType::plain(py, Kind::Ranged { lo, hi }, format!("ranged({lo}, {hi})"))
}

#[pyfunction]
pub(crate) fn uint128(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::plain(py, Kind::Uint128, "uint128()".into())
}

#[pyfunction]
pub(crate) fn boolean(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::plain(py, Kind::Bool, "boolean()".into())
}

#[pyfunction]
pub(crate) fn pressed(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::plain(py, Kind::Press, "pressed()".into())
}

#[pyfunction]
pub(crate) fn float32(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::plain(py, Kind::Float, "float32()".into())
}

#[pyfunction]
pub(crate) fn float64(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::plain(py, Kind::Double, "float64()".into())
}

#[pyfunction]
pub(crate) fn quantized(py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<FieldType> {
    let label = format!("quantized({low}, {high}, {resolution})");
    FieldType::plain(py, Kind::Quantized { lo: low, hi: high, resolution }, label)
}

#[pyfunction]
pub(crate) fn fixed(
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
    fraction_bits: &Bound<'_, PyAny>,
) -> PyResult<FieldType> {
    let py = low.py();
    let lo = declared("low", low, i64::MIN, i64::MAX)?;
    let hi = declared("high", high, i64::MIN, i64::MAX)?;
    let fraction_bits = declared("fraction_bits", fraction_bits, 0, 64)?;
    let label = format!("fixed({lo}, {hi}, {fraction_bits})");
    FieldType::plain(py, Kind::Fixed { fraction_bits, lo, hi }, label)
}

#[pyfunction]
pub(crate) fn text(max_bytes: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = max_bytes.py();
    let max_bytes = length("max_bytes", max_bytes)?;
    FieldType::plain(py, Kind::Text { max_bytes }, format!("text({max_bytes})"))
}

#[pyfunction]
pub(crate) fn wide_text(max_units: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = max_units.py();
    let max_units = length("max_units", max_units)?;
    FieldType::plain(py, Kind::WideText { max_units }, format!("wide_text({max_units})"))
}

#[pyfunction]
pub(crate) fn data(max_bytes: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = max_bytes.py();
    let max_bytes = length("max_bytes", max_bytes)?;
    FieldType::plain(py, Kind::Data { max_bytes }, format!("data({max_bytes})"))
}

#[pyfunction]
pub(crate) fn raw(count: &Bound<'_, PyAny>) -> PyResult<FieldType> {
    let py = count.py();
    let bytes = length("count", count)?;
    FieldType::plain(py, Kind::Raw { bytes }, format!("raw({bytes})"))
}

#[pyfunction]
pub(crate) fn angle(py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<FieldType> {
    FieldType::plain(
        py,
        Kind::Angle { lo: low, hi: high, resolution },
        format!("angle({low}, {high}, {resolution})"),
    )
}

#[pyfunction]
pub(crate) fn vec2(py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<FieldType> {
    vector(py, 2, low, high, resolution)
}

#[pyfunction]
pub(crate) fn vec3(py: Python<'_>, low: f64, high: f64, resolution: f64) -> PyResult<FieldType> {
    vector(py, 3, low, high, resolution)
}

fn vector(py: Python<'_>, axes: u32, lo: f64, hi: f64, resolution: f64) -> PyResult<FieldType> {
    let label = format!("vec{axes}({lo}, {hi}, {resolution})");
    let default = vec![nearest(lo, 0.0, hi); axes as usize];
    FieldType::floats(py, Kind::Vector { axes, lo, hi, resolution }, &default, label)
}

#[pyfunction]
pub(crate) fn unit_vector(py: Python<'_>, bits: u32) -> PyResult<FieldType> {
    FieldType::floats(py, Kind::Direction { bits }, &[0.0, 0.0, 1.0], format!("unit_vector({bits})"))
}

#[pyfunction]
pub(crate) fn quaternion(py: Python<'_>, bits: u32) -> PyResult<FieldType> {
    FieldType::floats(py, Kind::Rotation { bits }, &[0.0, 0.0, 0.0, 1.0], format!("quaternion({bits})"))
}

#[pyfunction]
pub(crate) fn signed_quaternion(py: Python<'_>) -> PyResult<FieldType> {
    FieldType::floats(py, Kind::SignedRotation, &[0.0, 0.0, 0.0, 1.0], "signed_quaternion()".into())
}

#[pyfunction]
pub(crate) fn transform(
    py: Python<'_>,
    low: f64,
    high: f64,
    resolution: f64,
    rotation_bits: u32,
) -> PyResult<FieldType> {
    let kind = Kind::Transform { lo: low, hi: high, resolution, bits: rotation_bits };
    let label = format!("transform({low}, {high}, {resolution}, rotation_bits={rotation_bits})");
    let class = py.import("tickwire._fields")?.getattr("Transform")?.cast_into::<PyType>()?;
    let default = Natural::Shared(class.call0()?.unbind());
    FieldType::new(kind, Shape::Transform, default, class.unbind(), label)
}

#[pyfunction]
pub(crate) fn flags(py: Python<'_>, names: Vec<String>) -> PyResult<FieldType> {
    if !(1..=64).contains(&names.len()) {
        refuse!(PyValueError, "flags must have 1 to 64 names, not {}", names.len());
    }
    let label = format!("flags({})", names.join(", "));
    if let Some(twice) = names.iter().enumerate().find_map(|(i, n)| names[..i].contains(n).then_some(n)) {
        refuse!(PyValueError, "{label}: names must differ, and {twice} appears twice");
    }
    FieldType::plain(py, Kind::Flags { names }, label)
}

#[pyfunction]
pub(crate) fn network_id(py: Python<'_>, highest: i128) -> PyResult<FieldType> {
    let hi: u32 = declared("highest", highest.into_pyobject(py)?.as_any(), 0, u32::MAX)?;
    FieldType::plain(py, Kind::Ranged { lo: 0, hi: hi.into() }, format!("network_id({highest})"))
}

#[pyfunction]
pub(crate) fn enum_of(class_: &Bound<'_, PyType>) -> PyResult<FieldType> {
    let label = class_.name()?.to_string();
    let members = members_of(class_)?;
    let Some((_, _, first)) = members.first() else {
        refuse!(PyTypeError, "{label} must have members, and has none");
    };
    let default = Natural::Shared(first.clone().unbind());
    let shape = Shape::Member(Members::new(
        class_,
        members.iter().map(|(_, value, member)| (*value, member.clone().unbind())).collect(),
    ));
    let mut members: Vec<_> = members.into_iter().map(|(name, value, _)| (name, value)).collect();
    members.sort_by_key(|(_, value)| *value);
    FieldType::new(Kind::Enum { members }, shape, default, class_.clone().unbind(), label)
}

#[pyfunction]
pub(crate) fn flags_of(class_: &Bound<'_, PyType>) -> PyResult<FieldType> {
    const MAX_FLAGS: usize = 16;
    let label = class_.name()?.to_string();
    let mut members = members_of(class_)?;
    members.sort_by_key(|(_, value, _)| *value);
    let rising = members.iter().enumerate().all(|(i, (_, value, _))| i < MAX_FLAGS && *value == 1 << i);
    if members.is_empty() || !rising {
        return Err(PyTypeError::new_err(format!(
            "{label} must have flags 1, 2, 4 and so on, none left out, at most {MAX_FLAGS} (each combination that \
             arrives stays in its class); tw.flags(...) takes more, as an int"
        )));
    }
    let shape = Shape::Flags(FlagClass::new(class_, members.len())?);
    let default = Natural::Shared(class_.call1((0,))?.unbind());
    let names = members.into_iter().map(|(name, _, _)| name).collect();
    FieldType::new(Kind::Flags { names }, shape, default, class_.clone().unbind(), label)
}
