//! Relevancy rules as the game gives them: which clients are sent which ghosts.

use super::*;

use crate::python::checks;
use crate::replication::{GridConfig, Relevancy};

/// The default size of a grid's cells, and of its hysteresis, as a share of the radius.
const CELLS: f64 = 1.0 / 4.0;
const LEAVES: f64 = 1.125;

/// Reads a rule, one of the classes of `tickwire._ghost`, and a `Hook`'s function.
pub(super) fn rule(
    properties: &Properties,
    given: &Bound<'_, PyAny>,
) -> PyResult<(Relevancy, Option<Py<PyAny>>)> {
    let py = given.py();
    let module = py.import("tickwire._ghost")?;
    let is = |name: &str| -> PyResult<bool> { given.is_instance(&module.getattr(name)?) };
    if is("Always")? {
        return Ok((Relevancy::Always, None));
    }
    if is("Owner")? {
        return Ok((Relevancy::Owner, None));
    }
    if is("Chosen")? {
        return Ok((Relevancy::Mask, None));
    }
    if is("Hook")? {
        let function = given.getattr(intern!(py, "function"))?;
        return Ok((Relevancy::Mask, Some(checks::callable("Hook's function", &function, "")?)));
    }
    if !is("Grid")? {
        let shown = given.repr()?;
        let hint = if given.is_instance_of::<PyType>() { ": make an object of it" } else { "" };
        return Err(PyTypeError::new_err(format!(
            "rule must be tw.world.Always(), tw.world.Owner(), tw.world.Grid(...), tw.world.Chosen() or tw.world.Hook(...), not {shown}{hint}"
        )));
    }
    let name: String = given.getattr(intern!(py, "property"))?.extract()?;
    let property = properties.named(&name).map_err(PyValueError::new_err)?;
    let number = |name: &str| -> PyResult<Option<f64>> {
        let value = given.getattr(name)?;
        let class = value.get_type().name()?;
        value.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(format!("grid's {name} must be a number, not {class}"))
            } else {
                error
            }
        })
    };
    let radius = number("radius")?.unwrap_or(f64::NAN);
    let linger = given.getattr(intern!(py, "linger"))?;
    let grid = Relevancy::Grid(GridConfig {
        property,
        // If the radius is no number either, the error names the radius.
        cell: number("cell")?.unwrap_or(if radius > 0.0 { radius * CELLS } else { 1.0 }),
        radius,
        leave_radius: number("leave_radius")?.unwrap_or(radius * LEAVES),
        far_weight: number("far_weight")?.unwrap_or(1.0),
        linger: bounded("grid's linger", &linger, 0, 1 << 16)?,
    });
    Ok((grid, None))
}

/// Reads places of two or three numbers each.
pub(super) fn places(given: &Bound<'_, PyAny>) -> PyResult<Vec<[f64; 3]>> {
    let wrong = || PyTypeError::new_err("places must be tuples of 2 or 3 numbers");
    let each = given.try_iter().map_err(|_| wrong())?;
    let place = |each: PyResult<Bound<'_, PyAny>>| {
        let numbers: Vec<f64> = each?.extract().map_err(|_: PyErr| wrong())?;
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(PyValueError::new_err("places must be finite numbers"));
        }
        match *numbers {
            [x, y] => Ok([x, y, 0.0]),
            [x, y, z] => Ok([x, y, z]),
            _ => Err(wrong()),
        }
    };
    each.map(place).collect()
}

/// Reads a buffer of bools or bytes, one for each row.
pub(super) fn mask(given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let wrong = |what: &str| {
        PyTypeError::new_err(format!(
            "rows must be a buffer with a bool for each row, such as numpy.array([...], bool), not {what}"
        ))
    };
    let Ok(raw) = Raw::get(given, ffi::PyBUF_FULL_RO) else {
        return Err(wrong(&given.get_type().name()?.to_string()));
    };
    if raw.dimensions() != 1 {
        return Err(wrong(&format!("one of {} dimensions", raw.dimensions())));
    }
    if raw.item_size() != 1 {
        let format = raw.format().to_string_lossy().into_owned();
        return Err(wrong(&format!("one of format '{format}', {} bytes each", raw.item_size())));
    }
    let mut bytes = Vec::new();
    raw.append_to(given.py(), &mut bytes)?;
    Ok(bytes)
}

/// Reads a buffer of float32 weights, one for each row.
pub(super) fn weights(given: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let wrong = |what: &str| {
        PyTypeError::new_err(format!("weights must be a buffer of float32, one per row, not {what}"))
    };
    let Ok(raw) = Raw::get(given, ffi::PyBUF_FULL_RO) else {
        return Err(wrong(&given.get_type().name()?.to_string()));
    };
    let format = raw.format().to_string_lossy().into_owned();
    let Some(weights) = raw.numbers::<f32>(given.py())? else {
        return Err(wrong(&format!("of format {format:?}")));
    };
    if let Some(row) = weights.iter().position(|weight| weight.is_nan()) {
        refuse!(PyValueError, "weights must be numbers, and the weight of row {row} is NaN");
    }
    Ok(weights)
}
