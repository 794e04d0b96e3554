//! The compiled program of a message class declared by its fields: attributes to bits, rows to attributes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::fields::FieldType;
use super::value::{Takes, to_python};
use crate::wire::{self, BitSink, Measure};

/// The compiled program of a message class declared by its fields.
///
/// Raises:
///     TypeError, ValueError: naming class, field, value and bound.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Schema {
    name: String,
    pub(super) core: wire::Schema,
    attributes: Vec<Attribute>,
}

/// What Python needs of a field besides the core's part of it.
#[derive(Debug)]
struct Attribute {
    name: Py<PyString>,
    takes: Takes,
    field_type: Py<FieldType>,
}

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (name, fields, /))]
    fn new(name: String, fields: Vec<(String, Bound<'_, FieldType>)>) -> PyResult<Self> {
        let kinds = fields.iter().map(|(name, field_type)| (name.clone(), field_type.get().kind.clone()));
        let core =
            wire::Schema::new(kinds).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
        let attributes = fields.into_iter().map(|(name, field_type)| Attribute {
            name: PyString::intern(field_type.py(), &name).unbind(),
            takes: Takes::of(&field_type.get().kind),
            field_type: field_type.unbind(),
        });
        Ok(Schema { attributes: attributes.collect(), name, core })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn fields(&self, py: Python<'_>) -> Vec<(Py<PyString>, Py<FieldType>)> {
        let pair = |a: &Attribute| (a.name.clone_ref(py), a.field_type.clone_ref(py));
        self.attributes.iter().map(pair).collect()
    }

    #[getter]
    fn min_bits(&self) -> usize {
        self.core.min_bits()
    }

    #[getter]
    fn max_bits(&self) -> usize {
        self.core.max_bits()
    }

    /// Raises the FieldError that sending an object with these attributes would raise, if any.
    #[pyo3(signature = (message, /))]
    fn check(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(message, &mut Measure::new())
    }
}

impl Schema {
    /// Writes the object's attributes.
    pub(super) fn write(&self, message: &Bound<'_, PyAny>, sink: &mut impl BitSink) -> PyResult<()> {
        let py = message.py();
        for (field, attribute) in self.core.fields().iter().zip(&self.attributes) {
            let object = message.getattr(attribute.name.bind(py))?;
            let written = attribute.takes.value(&object).and_then(|value| Ok(field.write(value, sink)?));
            written.map_err(|refusal| refusal.raise(&self.name, field.name(), &object))?;
        }
        Ok(())
    }

    /// Sets the object's attributes from a body that the core read.
    pub(super) fn load(&self, body: &[u8], message: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = message.py();
        for (field, attribute) in self.core.fields().iter().zip(&self.attributes) {
            message.setattr(attribute.name.bind(py), to_python(py, field.load(body))?)?;
        }
        Ok(())
    }
}
