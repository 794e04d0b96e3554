//! Field types: the contents of `Annotated`.

use crate::python::prelude::*;

use super::checks::placed;
use super::shape::{FlagClass, Members, Shape, members_of};
use super::value::Takes;
use crate::wire::{self, Kind, SchemaError};

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
        min_bits, max_bits: usize of self;
        python_type: Bound<'py, PyType> = self.python_type.bind(py).clone();
        __repr__: &str = &self.label;
    }
}

/// Defines the functions that make fields of one builtin object. A field's label is the call of its function.
macro_rules! plain {
    ($($name:ident($($(#[$check:meta])? $parameter:ident: $Type:ty),*) => $kind:expr;)*) => {
        $(#[pyfunction]
        pub(crate) fn $name(py: Python<'_>, $($(#[$check])? $parameter: $Type),*) -> PyResult<FieldType> {
            FieldType::plain(py, $kind, called(stringify!($name), &[$(&$parameter),*]))
        })*
    };
}

plain! {
    bits(#[declared(1, 64)] count: u32) => Kind::Bits { bits: count };
    ranged(#[declared(i128::MIN, i128::MAX)] low: i128, #[declared(i128::MIN, i128::MAX)] high: i128) =>
        Kind::Ranged { lo: low, hi: high };
    uint128() => Kind::Uint128;
    boolean() => Kind::Bool;
    pressed() => Kind::Press;
    float32() => Kind::Float;
    float64() => Kind::Double;
    quantized(low: f64, high: f64, resolution: f64) => Kind::Quantized { lo: low, hi: high, resolution };
    fixed(
        #[declared(i64::MIN, i64::MAX)] low: i64,
        #[declared(i64::MIN, i64::MAX)] high: i64,
        #[declared(0, 64)] fraction_bits: u32
    ) => Kind::Fixed { fraction_bits, lo: low, hi: high };
    text(#[length] max_bytes: u32) => Kind::Text { max_bytes };
    wide_text(#[length] max_units: u32) => Kind::WideText { max_units };
    data(#[length] max_bytes: u32) => Kind::Data { max_bytes };
    raw(#[length] count: u32) => Kind::Raw { bytes: count };
    angle(low: f64, high: f64, resolution: f64) => Kind::Angle { lo: low, hi: high, resolution };
    network_id(#[declared(0, u32::MAX)] highest: u32) => Kind::Ranged { lo: 0, hi: highest.into() };
}

/// Defines the functions that make fields of a tuple of floats, with their defaults.
macro_rules! floats {
    ($($name:ident($($parameter:ident: $Type:ty),*) => $kind:expr, $default:expr;)*) => {
        $(#[pyfunction]
        pub(crate) fn $name(py: Python<'_>, $($parameter: $Type),*) -> PyResult<FieldType> {
            FieldType::floats(py, $kind, &$default, called(stringify!($name), &[$(&$parameter),*]))
        })*
    };
}

floats! {
    vec2(low: f64, high: f64, resolution: f64) =>
        Kind::Vector { axes: 2, lo: low, hi: high, resolution }, [nearest(low, 0.0, high); 2];
    vec3(low: f64, high: f64, resolution: f64) =>
        Kind::Vector { axes: 3, lo: low, hi: high, resolution }, [nearest(low, 0.0, high); 3];
    unit_vector(bits: u32) => Kind::Direction { bits }, [0.0, 0.0, 1.0];
    quaternion(bits: u32) => Kind::Rotation { bits }, [0.0, 0.0, 0.0, 1.0];
    signed_quaternion() => Kind::SignedRotation, [0.0, 0.0, 0.0, 1.0];
}

/// Shows a call of a function.
fn called(name: &str, given: &[&dyn Display]) -> String {
    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
    format!("{name}({})", given.join(", "))
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
