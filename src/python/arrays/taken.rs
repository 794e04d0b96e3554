//! The game's rows on their way to the core.

use crate::python::prelude::*;

use crate::python::value::to_python;
use crate::wire::Value;
use crate::wire::rows::{RowError, Rows};

/// The maximum of bytes in rows: their cells have 32 bits for offsets.
pub(super) const MAX_BYTES: usize = 1 << 31;

/// Copies rows of a class and their arena.
pub(super) fn take(
    schema: &Bound<'_, Schema>,
    rows: &Object<'_>,
    arena: Option<&Object<'_>>,
) -> PyResult<Rows> {
    let py = rows.py();
    let (raw, count) = rows_of(schema, rows)?;
    if let Some(arena) = arena {
        check_arena(schema.get(), arena)?;
    }
    let buffer = |arena| {
        Raw::get(arena, ffi::PyBUF_STRIDED_RO).map_err(|error| match () {
            () if error.is_instance_of::<PyTypeError>(py) => {
                PyTypeError::new_err(format!("arena must be a buffer or None: {}", error.value(py)))
            }
            () => error,
        })
    };
    let behind = arena.map(buffer).transpose()?;
    let arena_bytes = behind.as_ref().map_or(0, Raw::len);
    for (what, bytes) in [("rows", raw.len()), ("arena", arena_bytes)] {
        if bytes > MAX_BYTES {
            refuse!(PyValueError, "{what} must be at most {MAX_BYTES} bytes, not {bytes}");
        }
    }
    let mut bytes = Vec::with_capacity(arena_bytes + raw.len());
    if let Some(behind) = behind {
        behind.append_to(py, &mut bytes)?;
    }
    raw.append_to(py, &mut bytes)?;
    Ok(Rows::new(bytes, arena_bytes, count))
}

/// The buffer of rows, and their number.
fn rows_of(schema: &Bound<'_, Schema>, rows: &Object<'_>) -> PyResult<(Raw, usize)> {
    let py = rows.py();
    let (name, core) = (schema.get().name(), &schema.get().fields.core);
    let (raw, count) = if let Ok(dtype) = rows.getattr(intern!(py, "dtype")) {
        let expected = schema.get().rows.dtype(py, core, false)?;
        if !dtype.is(&expected) && !dtype.eq(&expected)? {
            return Err(PyTypeError::new_err(format!(
                "rows must be of tickwire.columns.dtype({name}), which is {expected}, not of {dtype}"
            )));
        }
        let raw = Raw::get(rows, ffi::PyBUF_STRIDED_RO)?;
        // Only arrays are sure to describe themselves truthfully.
        let (own, given) = (core.row_size(), raw.item_size());
        if own != given {
            refuse!(PyTypeError, "rows of {name} must take {own} bytes each, not {given}");
        }
        let count = raw.items();
        (raw, count)
    } else {
        let Ok(raw) = Raw::get(rows, ffi::PyBUF_FULL_RO) else {
            refuse!(PyTypeError, "rows must be an array or a buffer, not {}", class_name(rows));
        };
        let count = count_of(&raw, name, core)?;
        (raw, count)
    };
    if raw.dimensions() != 1 {
        refuse!(PyValueError, "rows must have 1 dimension, a row for each message, not {}", raw.dimensions());
    }
    Ok((raw, count))
}

/// Refuses an array whose items are neither bytes nor of a type that the class's lists hold.
fn check_arena(schema: &Schema, arena: &Object<'_>) -> PyResult<()> {
    let py = arena.py();
    let Some(dtype) = arena.getattr_opt(intern!(py, "dtype"))? else { return Ok(()) };
    let Some(kind) = dtype.getattr_opt(intern!(py, "kind"))? else { return Ok(()) };
    let plain = dtype.getattr(intern!(py, "names"))?.is_none();
    let is_bytes = plain
        && (dtype.getattr(intern!(py, "itemsize"))?.extract::<usize>()? == 1
            || matches!(kind.extract::<String>()?.as_str(), "S" | "V"));
    if is_bytes {
        return Ok(());
    }
    let parts = schema.rows.parts(py, &schema.fields.core)?;
    for part in &parts {
        // A vector's rows are arrays themselves: their base counts too.
        if dtype.eq(part)? || dtype.eq(part.getattr(intern!(py, "base"))?)? {
            return Ok(());
        }
    }
    let shown: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let or = if shown.is_empty() {
        String::new()
    } else {
        format!(" or {}, the type of its lists", shown.join(" or "))
    };
    Err(PyTypeError::new_err(format!("arena of {} must be bytes{or}, not of {dtype}", schema.name())))
}

/// How many rows a buffer holds that isn't an array: its items are rows or bytes.
fn count_of(raw: &Raw, name: &str, core: &crate::wire::Schema) -> PyResult<usize> {
    let size = core.row_size();
    let format = raw.format().to_string_lossy();
    if format == core.row_format() {
        return Ok(raw.items());
    }
    if !matches!(&*format, "B" | "b" | "c") {
        return Err(PyTypeError::new_err(format!(
            "rows of {name} must be bytes or of format '{}', not '{format}'",
            core.row_format()
        )));
    }
    if !raw.len().is_multiple_of(size) {
        refuse!(PyValueError, "rows of {name} must be a whole number of {size} bytes, not {}", raw.len());
    }
    Ok(raw.len() / size)
}

/// The exception for a row that can't be written, naming class, field, row, value and bound.
#[cold]
pub(super) fn raise(py: Python<'_>, schema: &Schema, rows: &Rows, refused: &RowError) -> PyErr {
    let field = format!("{} of row {}", schema.fields.field_name(refused.field), refused.row);
    let value = match refused.error {
        ValueError::OutOfRange { value, .. } | ValueError::NotAMember { value } => Some(Value::Int128(value)),
        ValueError::AboveRange { value, .. } => Some(Value::Uint128(value)),
        ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value } => {
            Some(Value::Float(value))
        }
        ValueError::OutsideArena { .. } => None,
        _ => schema.fields.core.load_one(rows, refused.row, refused.field),
    };
    // A cell that points into the arena shows as it is.
    let cell = match refused.error {
        ValueError::OutsideArena { offset, count, .. } => Some((offset, count)),
        _ => schema.fields.core.load_run(rows, refused.row, refused.field),
    };
    let value = match value {
        Some(value) => to_python(py, value).map(Bound::unbind),
        None => cell.into_py_any(py),
    };
    match value {
        Ok(value) => FieldError::new_err((schema.name().to_owned(), field, value, refused.error.bound())),
        Err(error) => error,
    }
}
