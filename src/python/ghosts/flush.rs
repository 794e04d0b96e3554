//! What a flush can't send.

use super::*;

use crate::replication::Wrong;

impl Population {
    /// The exception for the first value that can't be sent.
    #[cold]
    pub(in crate::python) fn error(&self, py: Python<'_>, wrong: &[(usize, Wrong)]) -> Option<PyErr> {
        let (class, wrong) = wrong.first()?;
        self.classes.get(*class).map(|rows| field_error(py, rows, wrong))
    }
}

fn field_error(py: Python<'_>, rows: &GhostRows, wrong: &Wrong) -> PyErr {
    let (properties, row) = (rows.properties.get(), wrong.row);
    let name = format!("{} of row {row}", properties.property_name(wrong.property));
    let value = match wrong.error {
        ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value } => {
            value.into_pyobject(py).map(|value| value.into_any().unbind()).map_err(Into::into)
        }
        _ => rows.plain_value(py, row, wrong.property).map(Bound::unbind),
    };
    match value {
        Ok(value) => FieldError::new_err((
            rows.name().to_owned(),
            name,
            value,
            wrong.error.bound(),
            rows.class.clone_ref(py),
            row,
            properties.property_name(wrong.property).to_owned(),
        )),
        Err(error) => error,
    }
}
