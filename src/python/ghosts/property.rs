//! The descriptors by which objects access their properties.

use super::*;

use crate::python::fields::FieldType;

#[pymethods]
impl Property {
    #[new]
    fn new(properties: Bound<'_, Properties>, place: usize) -> PyResult<Self> {
        let count = properties.get().len();
        if place >= count {
            refuse!(PyValueError, "place must be 0 to {}, not {place}", count - 1);
        }
        Ok(Property { properties: properties.unbind(), place })
    }

    properties! {
        name: &str = self.properties.get().property_name(self.place);
        field_type: Py<FieldType> =
            self.properties.get().schema.get().field_type(self.place).clone_ref(py);
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        ghost: &Object<'py>,
        owner: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
        let _ = owner;
        if ghost.is_none() {
            return Ok(slf.clone().into_any());
        }
        let Property { properties, place } = slf.get();
        Ghost::get(live(ghost)?, properties.get(), *place)
    }

    fn __set__(&self, ghost: &Object<'_>, value: &Object<'_>) -> PyResult<()> {
        Ghost::set(live(ghost)?, self.properties.get(), self.place, value)
    }

    fn __repr__(&self) -> String {
        let properties = self.properties.get();
        format!("<Property {}.{}>", properties.name(), properties.property_name(self.place))
    }
}

fn live<'a, 'py>(ghost: &'a Object<'py>) -> PyResult<&'a Bound<'py, Ghost>> {
    ghost.cast().map_err(|_| PyAttributeError::new_err("only objects of ghost classes have properties"))
}
