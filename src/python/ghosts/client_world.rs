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
        objects(class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> = self.population.objects(class_);
        mine(class_: &Object<'py>) -> PyResult<Option<Bound<'py, Ghost>>> =
            self.population.mine(class_);
        others(class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> =
            self.population.others(class_);
        arrays(class_: &Object<'_>) -> PyResult<GhostArrays> =
            self.population.rows_of(class_).cloned().map(GhostArrays);
        owns(ghost: &Bound<'_, Ghost>) -> PyResult<bool> = self.population.owns(ghost);
        row(ghost: &Bound<'_, Ghost>) -> PyResult<u32> = self.population.live(ghost).map(|live| live.row);
        awaits(class_: &Object<'_>, number: &Object<'_>) -> PyResult<bool> =
            Ok(matches!(self.find(class_, number)?, Found::Awaited));
        __contains__(ghost: &Object<'_>) -> bool =
            ghost.cast::<Ghost>().is_ok_and(|ghost| self.population.live(ghost).is_ok());
    }

    fn id_of(&self, ghost: &Bound<'_, Ghost>) -> PyResult<Option<u32>> {
        let live = self.population.live(ghost)?;
        let shared = self.state.upgrade().ok_or_else(|| closed_error("client"))?;
        let mut state = shared.lock()?;
        if state.is_closed() {
            return Err(closed_error("client"));
        }
        Ok(number_for(&mut state, None, &live))
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

    fn set_playout(
        &self,
        py: Python<'_>,
        #[number] delay: Option<f64>,
        #[span(0.0, 10.0)] extrapolation: f64,
        #[span(0.0, 10.0)] rest: f64,
    ) -> PyResult<()> {
        let shared = self.state.upgrade().ok_or_else(|| closed_error("client"))?;
        if shared.lock()?.is_closed() {
            return Err(closed_error("client"));
        }
        self.view.bind(py).get().set_playing(Playing { delay, extrapolation, rest })
    }

    properties! {
        __repr__: String = format!("<ClientWorld of {}>", self.population.counted());
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
