//! A client's world: the ghosts that its server shows it.

use super::*;

use crate::session::Playing;

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct ClientWorld {
    population: Arc<Population>,
    view: Py<WorldView>,
    /// Weak: the client owns this.
    state: Weak<Shared<State>>,
}

#[pymethods]
impl ClientWorld {
    methods! {
        objects(class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> = objects(&self.population, class_);
        mine(class_: &Object<'py>) -> PyResult<Option<Bound<'py, Ghost>>> = mine(&self.population, class_);
        others(class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> = others(&self.population, class_);
        arrays(class_: &Object<'_>) -> PyResult<GhostArrays> =
            self.population.rows_of(class_).cloned().map(GhostArrays);
        owns(ghost: &Bound<'_, Ghost>) -> PyResult<bool> = owns(&self.population, ghost);
        row(ghost: &Bound<'_, Ghost>) -> PyResult<u32> = self.population.live(ghost).map(|live| live.row);
        awaits(class_: &Object<'_>, number: &Object<'_>) -> PyResult<bool> =
            Ok(matches!(self.find(class_, number)?, Found::Awaited));
    }

    fn id_of(&self, ghost: &Bound<'_, Ghost>) -> PyResult<u32> {
        let live = self.population.live(ghost)?;
        let shared = self.state.upgrade().ok_or_else(|| closed_error("client"))?;
        let number = names::number_for(&mut *shared.lock()?, None, &live);
        number.ok_or_else(|| closed_error("client"))
    }

    fn ghost_of<'py>(
        &self,
        class_: &Object<'py>,
        number: &Object<'py>,
    ) -> PyResult<Option<Bound<'py, Ghost>>> {
        Ok(match self.find(class_, number)? {
            Found::Here(ghost) => Some(ghost),
            Found::Gone | Found::Awaited => None,
        })
    }

    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, WorldView>> {
        let view = self.view.bind(py);
        view.get().play(py, &self.state)?;
        Ok(view.clone())
    }

    fn set_playout(&self, py: Python<'_>, delay: Option<f64>, extrapolation: f64, rest: f64) -> PyResult<()> {
        let shared = self.state.upgrade().ok_or_else(|| closed_error("client"))?;
        if shared.lock()?.is_closed() {
            return Err(closed_error("client"));
        }
        self.view.bind(py).get().set_playing(Playing { delay, extrapolation, rest })
    }

    fn __contains__(&self, ghost: &Object<'_>) -> bool {
        ghost.cast::<Ghost>().is_ok_and(|ghost| self.population.live(ghost).is_ok())
    }

    properties! {
        __repr__: String = format!("<ClientWorld of {}>", counted(&self.population));
    }

    traverses!(self.view, self.population);

    fn __clear__(&self) {
        self.population.forget_objects();
    }
}

impl ClientWorld {
    pub(in crate::python) fn new(
        py: Python<'_>,
        population: &Arc<Population>,
        state: Weak<Shared<State>>,
        rate: Option<u32>,
    ) -> PyResult<Self> {
        let view = Py::new(py, WorldView::of_client(py, population, rate)?)?;
        Ok(ClientWorld { population: population.clone(), view, state })
    }

    /// Seconds between arrival and display in the view.
    pub(in crate::python) fn view_delay(&self, py: Python<'_>) -> f64 {
        self.view.bind(py).get().delay()
    }

    fn find<'py>(&self, class: &Object<'py>, number: &Object<'py>) -> PyResult<Found<'py>> {
        let rows = self.population.rows_of(class)?;
        let number = bounded("number", number, 0, u32::MAX)?;
        let Some(shared) = self.state.upgrade() else { return Ok(Found::Gone) };
        self.population.named_by(class.py(), &shared, None, rows.index, number)
    }
}

/// The owner of a client's own rows, in its columns.
const SELF: u64 = 1;

/// Returns the objects of a class, by row.
pub(super) fn objects<'py>(population: &Population, class: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
    filtered(population, class, |_, _| true)
}

fn filtered<'py>(
    population: &Population,
    class: &Object<'py>,
    filter: impl Fn(&GhostRows, u32) -> bool,
) -> PyResult<Bound<'py, PyList>> {
    let (py, rows) = (class.py(), population.rows_of(class)?);
    let found = rows.alive_rows().into_iter().filter(|row| filter(rows, *row));
    PyList::new(py, found.map(|row| rows.object(py, row)).collect::<PyResult<Vec<_>>>()?)
}

/// Returns the first object of a class that the client owns.
pub(super) fn mine<'py>(population: &Population, class: &Object<'py>) -> PyResult<Option<Bound<'py, Ghost>>> {
    let rows = population.rows_of(class)?;
    let own = rows.alive_rows().into_iter().find(|row| rows.owner(*row) == SELF);
    own.map(|row| rows.object(class.py(), row)).transpose()
}

/// Returns the objects of a class that the client doesn't own, by row.
pub(super) fn others<'py>(population: &Population, class: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
    filtered(population, class, |rows, row| rows.owner(row) != SELF)
}

/// Returns whether the client owns a ghost.
pub(super) fn owns(population: &Population, ghost: &Bound<'_, Ghost>) -> PyResult<bool> {
    let live = population.live(ghost)?;
    Ok(live.rows.owner(live.row) == SELF)
}

/// The number of ghosts of each class.
pub(super) fn counted(population: &Population) -> String {
    let each = population.classes.iter().map(|rows| format!("{} {}", rows.living(), rows.name()));
    let each: Vec<String> = each.collect();
    if each.is_empty() { "no classes".into() } else { each.join(", ") }
}
