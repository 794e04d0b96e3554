//! Arrays of messages: a row a message, as NumPy's structured arrays or as plain buffers with a `struct` format.
//!
//! Promises: no Python object is made for a message. Received rows are one block of memory that nothing changes, and
//! that lives as long as a view of it. Rows to send are copied first and checked afterwards, so other threads may write
//! to them meanwhile: the mixture that is sent is checked like any other. Wrong rows are refused before anything is
//! queued.

mod rows;
mod send;
mod taken;

pub(crate) use rows::Rows as ReceivedRows;
pub(super) use rows::{Received, received_rows};
pub(crate) use send::Batch;
pub(super) use send::{Recipients, Rows};

use crate::python::prelude::*;

use super::columns;

/// The program of a class made by `@tickwire.message`.
pub(super) fn declared<'py>(class: &Object<'py>) -> PyResult<Bound<'py, Schema>> {
    let py = class.py();
    let own = class.cast::<PyType>().ok().and_then(|class| {
        class.getattr(intern!(py, "__dict__")).ok()?.get_item(intern!(py, "__tickwire_schema__")).ok()
    });
    own.and_then(|own| own.cast_into::<Schema>().ok()).ok_or_else(|| {
        let shown = repr_of(class);
        PyTypeError::new_err(format!(
            "{shown} can't be sent as rows: only classes made by @tickwire.message can"
        ))
    })
}

/// The program of a class that has rows.
fn with_rows<'py>(class: &Object<'py>) -> PyResult<Bound<'py, Schema>> {
    let schema = declared(class)?;
    match schema.get().fields.core.row_size() {
        0 => {
            Err(PyTypeError::new_err(format!("{} must have fields to be sent as rows", schema.get().name())))
        }
        _ => Ok(schema),
    }
}

#[pyfunction]
pub(crate) fn dtype<'py>(class_: &Object<'py>) -> PyResult<Object<'py>> {
    let schema = with_rows(class_)?;
    schema.get().rows.dtype(class_.py(), &schema.get().fields.core, false)
}

#[pyfunction]
pub(crate) fn row_format(class_: &Object<'_>) -> PyResult<String> {
    Ok(with_rows(class_)?.get().fields.core.row_format())
}

#[pyfunction]
pub(crate) fn pack<'py>(
    class_: &Object<'py>,
    rows: &Object<'py>,
    arena: Option<&Object<'py>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let schema = with_rows(class_)?;
    let rows = taken::take(&schema, rows, arena)?;
    let core = &schema.get().fields.core;
    let about = rows.count() * core.max_bits().div_ceil(8).min(core.row_size()) + 8;
    let mut writer = BitWriter::with_buffer(Vec::with_capacity(about));
    core.write_all(&rows, &mut writer)
        .map_err(|error| taken::raise(class_.py(), schema.get(), &rows, &error))?;
    Ok(PyBytes::new(class_.py(), writer.as_bytes()))
}

#[pyfunction]
pub(crate) fn unpack<'py>(class_: &Object<'py>, data: &[u8], count: &Object<'py>) -> PyResult<Object<'py>> {
    let schema = with_rows(class_)?;
    let core = &schema.get().fields.core;
    let count = bounded("count", count, 0, taken::MAX_BYTES / core.row_size())?;
    let mut reader = BitReader::new(data);
    let refuse = |row, error: &dyn core::fmt::Display| {
        StreamError::new_err(format!("{}, row {row}: {error}", schema.get().name()))
    };
    let (rows, arena) = core.read_all(&mut reader, count).map_err(|(row, error)| refuse(row, &error))?;
    reader.finish().map_err(|error| refuse(count, &error))?;
    received_rows(&schema, rows, count, arena)
}

#[pyfunction]
pub(crate) fn arena<'py>(rows: &Object<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
    let py = rows.py();
    let mut at = rows.clone();
    // An array's base is the object it is a view of; a memoryview's `obj` is its source.
    for _ in 0..64 {
        if let Ok(column) = at.cast::<columns::ColumnView>() {
            return column.get().arena(py);
        }
        if let Ok(rows) = at.cast::<rows::Rows>() {
            return rows.get().arena(py);
        }
        let below =
            if at.is_instance_of::<PyMemoryView>() { intern!(py, "obj") } else { intern!(py, "base") };
        let Ok(next) = at.getattr(below) else { break };
        at = next;
    }
    Err(PyValueError::new_err(
        "rows must be made by Tickwire, or be a view of such rows: a copy has no arena",
    ))
}
