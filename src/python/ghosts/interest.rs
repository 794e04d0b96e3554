//! What clients get of a world: rules of relevancy, hooks, conditions and weights.

use super::*;

use crate::python::buffers::column;
use crate::replication::{GridConfig, Relevancy};

#[pymethods]
impl World {
    fn set_relevancy(&self, class_: &Object<'_>, rule: &Object<'_>) -> PyResult<()> {
        let rows = self.population.rows_of(class_)?;
        let (rule, hook) = self::rule(rows.properties.get(), rule)?;
        let set = self.with(|state| core::world(state).map(|world| world.set_rule(rows.index, rule)))?;
        set.transpose().map_err(|error| PyValueError::new_err(format!("{}: {error}", rows.name())))?;
        self.set_hook(rows, |hooks| &mut hooks.relevancy, hook);
        Ok(())
    }

    fn set_priority(&self, class_: &Object<'_>, #[callable(1)] hook: Option<Py<PyAny>>) -> PyResult<()> {
        let rows = self.population.rows_of(class_)?;
        self.set_hook(rows, |hooks| &mut hooks.priority, hook);
        Ok(())
    }

    fn set_condition_hook(
        &self,
        class_: &Object<'_>,
        name: &str,
        #[callable(2)] hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let rows = self.population.rows_of(class_)?;
        World::check_condition(rows, name)?;
        self.set_hook(rows, |hooks| &mut hooks.condition, hook);
        Ok(())
    }

    fn set_condition(
        &self,
        client: &Bound<'_, ClientHandle>,
        class_: &Object<'_>,
        name: &str,
        rows: &Object<'_>,
    ) -> PyResult<bool> {
        let class = self.population.rows_of(class_)?;
        World::check_condition(class, name)?;
        let mask = mask(rows)?;
        self.set_interest(client, |interests, client| interests.set_chosen(client, class.index, mask))
    }

    fn look_from(
        &self,
        client: &Bound<'_, ClientHandle>,
        class_: &Object<'_>,
        places: Option<&Object<'_>>,
    ) -> PyResult<bool> {
        let rows = self.population.rows_of(class_)?;
        let places = places.map_or_else(|| Ok(Vec::new()), self::places)?;
        self.check_rule(rows, "look_from", "tw.world.Grid(...)", |rule| matches!(rule, Relevancy::Grid(_)))?;
        self.set_interest(client, |interests, client| interests.set_viewpoints(client, rows.index, places))
    }

    fn show(
        &self,
        client: &Bound<'_, ClientHandle>,
        class_: &Object<'_>,
        rows: &Object<'_>,
    ) -> PyResult<bool> {
        let class = self.population.rows_of(class_)?;
        let mask = mask(rows)?;
        self.check_rule(class, "show", "tw.world.Chosen()", |rule| rule == Relevancy::Mask)?;
        self.set_interest(client, |interests, client| interests.set_mask(client, class.index, mask))
    }

    fn set_weights(&self, class_: &Object<'_>, weights: &Object<'_>) -> PyResult<()> {
        let rows = self.population.rows_of(class_)?;
        let weights = self::weights(weights)?;
        self.publish(|it| it.set_weights(rows.index, &weights))
    }

    fn set_must_know(&self, class_: &Object<'_>, rows: Option<&Object<'_>>) -> PyResult<()> {
        let class = self.population.rows_of(class_)?;
        let rows = rows.map_or_else(|| Ok(Vec::new()), mask)?;
        self.publish(|it| it.set_must_know(class.index, rows))
    }
}

impl World {
    /// Sets what a client is interested in. False if it left.
    pub(super) fn set_interest(
        &self,
        client: &Bound<'_, ClientHandle>,
        set: impl FnOnce(&mut Interests, PeerHandle),
    ) -> PyResult<bool> {
        let Some(client) = self.peer_of("client", client)? else { return Ok(false) };
        self.with(|state| core::world(state).map(|world| set(world.interests(), client)))?;
        Ok(true)
    }

    fn set_hook(
        &self,
        rows: &GhostRows,
        of: impl FnOnce(&mut Hooks) -> &mut Option<Py<PyAny>>,
        hook: Option<Py<PyAny>>,
    ) {
        let old = ::core::mem::replace(of(&mut lock(&self.hooks)[rows.index]), hook);
        drop(old);
    }

    fn check_condition(rows: &GhostRows, name: &str) -> PyResult<()> {
        match rows.properties.get().chosen() {
            Some(chosen) if chosen == name => Ok(()),
            Some(chosen) => Err(GhostError::new_err(format!(
                "{} has the condition tw.world.when('{chosen}'), not '{name}'",
                rows.name()
            ))),
            None => Err(GhostError::new_err(format!(
                "{} has no property with a condition tw.world.when('{name}'): declare one",
                rows.name()
            ))),
        }
    }

    /// Refuses settings of another rule than the class has.
    fn check_rule(
        &self,
        rows: &GhostRows,
        method: &str,
        wanted: &str,
        is_it: impl FnOnce(Relevancy) -> bool,
    ) -> PyResult<()> {
        let is_it =
            |state: &mut State| core::world(state).is_some_and(|it| is_it(it.interests().rule(rows.index)));
        if self.with(is_it)? {
            return Ok(());
        }
        let name = rows.name();
        Err(GhostError::new_err(format!(
            "{method}() needs a class with the rule {wanted}, and {name} has another: call world.set_relevancy({name}, {wanted}) \
             first"
        )))
    }
}

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
