//! The compiled form of a declared message class: attributes to bits, rows to attributes.

use crate::python::prelude::*;

use super::arrays::RowTypes;
use super::fields::FieldType;
use super::shape::{Body, Shape};
use super::slots::Slots;
use crate::wire::{self, Measure};

#[pyclass(frozen, module = "tickwire.messages")]
#[derive(Debug)]
pub(crate) struct Schema {
    name: String,
    pub(super) core: wire::Schema,
    attributes: Vec<Attribute>,
    pub(super) rows: RowTypes,
}

/// The Python part of a field; the core has the rest.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: Py<PyString>,
    shape: Arc<Shape>,
    pub(super) field_type: Py<FieldType>,
}

#[pymethods]
impl Schema {
    #[new]
    fn new(name: String, fields: Vec<(String, Bound<'_, FieldType>)>) -> PyResult<Self> {
        let kinds = fields.iter().map(|(name, field_type)| (name.clone(), field_type.get().kind.clone()));
        let core =
            wire::Schema::new(kinds).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
        let attributes = fields.into_iter().map(|(name, field_type)| Attribute {
            name: PyString::intern(field_type.py(), &name).unbind(),
            shape: field_type.get().shape.clone(),
            field_type: field_type.unbind(),
        });
        Ok(Schema { attributes: attributes.collect(), name, core, rows: RowTypes::default() })
    }

    properties! {
        pub(super) name: &str = &self.name;
        min_bits(), max_bits(): usize of self.core;
    }

    #[getter]
    fn fields(&self, py: Python<'_>) -> Vec<(Py<PyString>, Py<FieldType>)> {
        let pair = |a: &Attribute| (a.name.clone_ref(py), a.field_type.clone_ref(py));
        self.attributes.iter().map(pair).collect()
    }

    fn check(&self, message: &Object<'_>) -> PyResult<()> {
        self.write(message, None, &mut Measure::new())
    }
}

impl Schema {
    /// The Python shape of the field at `index`.
    pub(super) fn attribute(&self, index: usize) -> &Attribute {
        &self.attributes[index]
    }

    #[inline]
    pub(super) fn shape(&self, index: usize) -> &Shape {
        &self.attributes[index].shape
    }

    /// The name of the field at `index`.
    pub(super) fn field_name(&self, index: usize) -> &str {
        self.core.fields().get(index).map_or("", wire::Field::name)
    }

    /// How objects of a class with this schema are made and their fields accessed.
    pub(super) fn slots(&self, class: &Bound<'_, PyType>) -> PyResult<Slots> {
        let names = self.attributes.iter().map(|attribute| attribute.name.bind(class.py()));
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

    /// [`Schema::write`] whose refusal comes with the field's index and value.
    pub(super) fn write_fields<'py>(
        &self,
        message: &Object<'py>,
        slots: Option<&Slots>,
        sink: &mut impl BitSink,
    ) -> Result<(), (usize, Object<'py>, Refusal)> {
        let slots = slots.and_then(|slots| slots.of(message));
        for (i, (field, attribute)) in self.core.fields().iter().zip(&self.attributes).enumerate() {
            let object = match slots {
                Some(slots) => slots.get(i, message),
                None => message.getattr(attribute.name.bind(message.py())),
            };
            let object = match object {
                Ok(object) => object,
                Err(error) => return Err((i, message.clone(), Refusal::Raised(error))),
            };
            if let Err(refusal) = attribute.shape.write(field.node(), &object, sink) {
                return Err((i, object, refusal));
            }
        }
        Ok(())
    }

    /// Sets the object's attributes from the row at `row` of a body.
    pub(super) fn load(
        &self,
        body: Body<'_, '_>,
        row: usize,
        message: &Object<'_>,
        slots: Option<&Slots>,
    ) -> PyResult<()> {
        let py = message.py();
        let slots = slots.and_then(|slots| slots.of(message));
        for (i, (field, attribute)) in self.core.fields().iter().zip(&self.attributes).enumerate() {
            let object = attribute.shape.load(body, field.node(), row + field.offset());
            let object = match object {
                Ok(object) => object,
                Err(error) => return Err(self.noted(py, error, field.name())),
            };
            match slots {
                Some(slots) => slots.set(i, message, &object)?,
                None => message.setattr(attribute.name.bind(py), object)?,
            }
        }
        Ok(())
    }
}
