//! Relevancy rules as the game gives them: which clients are sent which ghosts.

use super::*;

use crate::python::buffers::column;
use crate::replication::{GridConfig, Relevancy};

/// The core's rule for an object of `tickwire.world`, and the hook that decides it.
pub(super) fn rule(properties: &Properties, given: &Object<'_>) -> PyResult<(Relevancy, Option<Py<PyAny>>)> {
    let module = given.py().import("tickwire._ghost")?;
    let (name, about): (String, Object<'_>) = module.call_method1("relevancy_of", (given,))?.extract()?;
    Ok(match name.as_str() {
        "Always" => (Relevancy::Always, None),
        "Owner" => (Relevancy::Owner, None),
        "Chosen" => (Relevancy::Mask, None),
        "Hook" => (Relevancy::Mask, Some(about.unbind())),
        _ => {
            let (name, cell, radius, leave_radius, far_weight, linger): (String, _, _, _, _, _) =
                about.extract()?;
            let property = properties.named(&name).map_err(PyValueError::new_err)?;
            let grid = GridConfig { property, cell, radius, leave_radius, far_weight, linger };
            (Relevancy::Grid(grid), None)
        }
    })
}

/// Reads places of two or three numbers each.
pub(super) fn places(given: &Object<'_>) -> PyResult<Vec<[f64; 3]>> {
    let wrong = || PyTypeError::new_err("places must be tuples of 2 or 3 numbers");
    let each = given.try_iter().map_err(|_| wrong())?;
    let place = |each: PyResult<Object<'_>>| {
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
pub(super) fn mask(given: &Object<'_>) -> PyResult<Vec<u8>> {
    column("rows", given, "a buffer with a bool for each row, such as numpy.array([...], bool)")
}

/// Reads a weight for each row.
pub(super) fn weights(given: &Object<'_>) -> PyResult<Vec<f32>> {
    let weights: Vec<f32> = column("weights", given, "a buffer of float32, one per row")?;
    if let Some(row) = weights.iter().position(|weight| weight.is_nan()) {
        refuse!(PyValueError, "weights must be numbers, and the weight of row {row} is NaN");
    }
    Ok(weights)
}
