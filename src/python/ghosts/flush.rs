//! Copies a server's columns for the core, once a flush.
//!
//! Promises: what other threads write meanwhile is checked like any other value. Idle columns are not copied.

use super::*;

use crate::replication::Wrong;

/// The cells of a class as they were at the last flush, by property, and the mask of those that may have changed since.
#[derive(Default)]
pub(super) struct Copied {
    cells: Vec<Vec<u8>>,
    changed: u64,
}

/// The columns of all classes.
#[derive(Default)]
pub(in crate::python) struct Copies(Mutex<Vec<Copied>>);

/// The copied columns, in the form that the core takes.
pub(in crate::python) struct Copying<'a>(MutexGuard<'a, Vec<Copied>>);

impl Copies {
    /// Copies the columns that may have changed since the last call.
    pub(in crate::python) fn take(&self, population: &Population) -> Copying<'_> {
        let mut copies = lock(&self.0);
        copies.resize_with(population.classes.len(), Copied::default);
        for (copied, rows) in copies.iter_mut().zip(&population.classes) {
            copied.changed = rows.copy_changed(&mut copied.cells);
        }
        Copying(copies)
    }
}

impl Copying<'_> {
    /// The columns, by class and property.
    pub(in crate::python) fn columns(&self) -> Vec<Vec<Column<'_>>> {
        self.0.iter().map(Copied::columns).collect()
    }
}

impl Copied {
    fn columns(&self) -> Vec<Column<'_>> {
        let each = self.cells.iter().enumerate();
        each.map(|(i, cells)| Column { cells, scan: self.changed >> i & 1 == 1 }).collect()
    }
}

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
