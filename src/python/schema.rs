//! The compiled form of a declared message class: attributes to bits, rows to attributes.

use crate::python::prelude::*;

use super::fields::FieldType;
use super::row_type::RowTypes;
use super::shape::Fields;
use crate::wire::{self, Measure};

#[pyclass(frozen, module = "tickwire.messages")]
#[derive(Debug)]
pub(crate) struct Schema {
    pub(super) fields: Arc<Fields>,
    types: Vec<Py<FieldType>>,
    pub(super) rows: RowTypes,
}

#[pymethods]
impl Schema {
    #[new]
    fn new(name: String, fields: Vec<(String, Bound<'_, FieldType>)>) -> PyResult<Self> {
        let kinds = fields.iter().map(|(name, field_type)| (name.clone(), field_type.get().kind.clone()));
        let core =
            wire::Schema::new(kinds).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
        let attributes = fields.iter().map(|(name, field_type)| {
            (PyString::intern(field_type.py(), name).unbind(), field_type.get().shape.clone())
        });
        let shapes = Arc::new(Fields::new(name, core, attributes.collect()));
        let types = fields.into_iter().map(|(_, field_type)| field_type.unbind());
        Ok(Schema { fields: shapes, types: types.collect(), rows: RowTypes::default() })
    }

    properties! {
        pub(super) name: &str = self.fields.name();
        min_bits(), max_bits(): usize of self.fields.core;
    }

    #[getter]
    fn fields(&self, py: Python<'_>) -> Vec<(Py<PyString>, Py<FieldType>)> {
        let pairs = self.fields.names().zip(&self.types);
        pairs.map(|(name, field_type)| (name.clone_ref(py), field_type.clone_ref(py))).collect()
    }

    methods! {
        check(message: &Object<'_>) -> PyResult<()> = self.fields.write(message, None, &mut Measure::new());
    }
}

impl Schema {
    /// The type of the field at `index`.
    pub(super) fn field_type(&self, index: usize) -> &Py<FieldType> {
        &self.types[index]
    }
}
