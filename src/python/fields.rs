//! Field types: the contents of `Annotated`.

use crate::python::prelude::*;

use super::checks::placed;
use super::shape::Shape;
use super::value::Takes;
use crate::wire::{self, Kind, SchemaError};

#[pyclass(frozen, module = "tickwire.fields")]
#[derive(Debug)]
pub(crate) struct FieldType {
    pub(super) kind: Kind,
    pub(super) shape: Arc<Shape>,
    default: Py<PyAny>,
    /// Whether the default is called to make one each time.
    made: bool,
    pub(super) python_type: Py<PyType>,
    pub(super) min_bits: usize,
    pub(super) max_bits: usize,
    pub(super) label: String,
}

/// Its label, its Python type, and its default with whether it is called to make one each time.
pub(super) type About = (String, Py<PyType>, Py<PyAny>, bool);

impl FieldType {
    /// A field that is one object of a builtin type.
    fn plain(py: Python<'_>, kind: Kind, label: String) -> PyResult<Self> {
        let Some(takes) = Takes::of(&kind) else {
            refuse!(PyValueError, "{label}: not one value");
        };
        let (default, python_type) = natural(py, &kind)?;
        let about = (label, python_type.unbind(), default.unbind(), false);
        Self::new(kind, Arc::new(Shape::Plain(takes)), about)
    }

    /// A field that is a tuple of floats.
    fn floats(py: Python<'_>, kind: Kind, default: &[f64], label: String) -> PyResult<Self> {
        let (shape, default) = (Shape::Floats(default.len()), PyTuple::new(py, default)?.into_any().unbind());
        Self::new(kind, Arc::new(shape), (label, py.get_type::<PyTuple>().unbind(), default, false))
    }

    /// Checks the parameters once, at the declaration.
    pub(super) fn new(kind: Kind, shape: Arc<Shape>, about: About) -> PyResult<Self> {
        let (label, python_type, default, made) = about;
        let schema = compiled(&kind, &label).map_err(|error| Python::attach(|py| placed(py, error)))?;
        let (min_bits, max_bits) = (schema.min_bits(), schema.max_bits());
        Ok(FieldType { kind, shape, default, made, python_type, min_bits, max_bits, label })
    }
}

/// A schema of this one field.
pub(super) fn compiled(kind: &Kind, label: &str) -> PyResult<wire::Schema> {
    wire::Schema::new([("", kind.clone())]).map_err(|error| match error {
        SchemaError::Parameter { error, .. } => value_error(format!("{label}: {error}")),
        error => value_error(format!("{label}: {error}")),
    })
}

/// The natural default and type of fields that are one builtin object.
fn natural<'py>(py: Python<'py>, kind: &Kind) -> PyResult<(Object<'py>, Bound<'py, PyType>)> {
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
    properties! {
        default: PyResult<Py<PyAny>> = if self.made { self.default.call0(py) } else { Ok(self.default.clone_ref(py)) };
        is_mutable: bool = self.made;
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
    let default = class.call0()?.unbind();
    FieldType::new(kind, Arc::new(Shape::Transform), (label, class.unbind(), default, false))
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
