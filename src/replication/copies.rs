//! Copies a server's columns for the publisher, once a flush.
//!
//! Promises: what other threads write meanwhile is checked like any other value. Idle columns are not copied.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::rows::RowCells;
use super::table::Column;

/// The cells of a class as they were at the last flush, by property, and the mask of those that may have changed since.
#[derive(Debug, Default)]
struct ClassCopy {
    cells: Vec<Vec<u8>>,
    changed: u64,
}

/// The columns of all classes.
#[derive(Debug, Default)]
pub struct Copies(Mutex<Vec<ClassCopy>>);

/// The copied columns, in the form that the core takes.
#[derive(Debug)]
pub struct Copying<'a>(MutexGuard<'a, Vec<ClassCopy>>);

impl Copies {
    /// Copies the columns that may have changed since the last call, of the rows of all classes.
    pub fn take<'a>(&self, classes: impl Iterator<Item = &'a RowCells>) -> Copying<'_> {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (class, rows) in classes.enumerate() {
            if class == copies.len() {
                copies.push(ClassCopy::default());
            }
            let copied = &mut copies[class];
            copied.changed = rows.copy_changed(&mut copied.cells);
        }
        Copying(copies)
    }
}

impl Copying<'_> {
    /// The columns, by class and property.
    pub fn columns(&self) -> Vec<Vec<Column<'_>>> {
        self.0.iter().map(ClassCopy::columns).collect()
    }
}

impl ClassCopy {
    fn columns(&self) -> Vec<Column<'_>> {
        let each = self.cells.iter().enumerate();
        each.map(|(i, cells)| Column { cells, scan: self.changed >> i & 1 == 1 }).collect()
    }
}
