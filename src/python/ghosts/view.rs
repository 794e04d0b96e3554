//! The world at a time between ticks, for Python: a client's as shown, and a server's as seen by a client.
//!
//! Promises: it has columns of its own, which change in place; the world's stay unchanged.

use super::*;

use crate::replication::GhostClass;
use crate::session::{ClientView, PastView, Playing, View};
use crate::timeline::Playout;

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct WorldView {
    /// The view's own rows, and those of its world.
    population: Arc<Population>,
    world: Arc<Population>,
    shown: Mutex<Shown>,
}

struct Shown {
    view: View,
    /// Of a client's connection; none before it was first played.
    state: Weak<Shared<State>>,
    tick: f64,
}

#[pymethods]
impl WorldView {
    methods! {
        arrays(class_: &Object<'_>) -> PyResult<GhostArrays> =
            self.population.rows_of(class_).cloned().map(GhostArrays);
        owns(ghost: &Bound<'_, Ghost>) -> PyResult<bool> = self.population.owns(ghost);
    }

    fn objects<'py>(&self, class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keep_bodies(class_)?;
        self.population.objects(class_)
    }

    fn mine<'py>(&self, class_: &Object<'py>) -> PyResult<Option<Bound<'py, Ghost>>> {
        self.keep_bodies(class_)?;
        self.population.mine(class_)
    }

    fn others<'py>(&self, class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keep_bodies(class_)?;
        self.population.others(class_)
    }

    fn ghost<'py>(&self, ghost: &Bound<'py, Ghost>) -> PyResult<Option<Bound<'py, Ghost>>> {
        let py = ghost.py();
        let live = match ghost.get().live() {
            Some(_) => Some(self.world.live(ghost)?),
            None => None,
        };
        let Some(row) = live.as_ref().map(|live| live.row).or_else(|| ghost.get().was()) else {
            refuse!(GhostError, "this {} isn't in a world yet", ghost.get_type().name()?);
        };
        let class = ghost.get_type();
        let rows = self.population.rows_of(class.as_any())?;
        if !rows.cells.is_alive(row) || self.end_of(rows.index, row) != ghost.get().ended_at() {
            return Ok(None);
        }
        if let Some(live) = live {
            for (property, body) in live.rows.cells.bodies_of(row) {
                rows.cells.keep_body(row, property, body.to_vec());
            }
        } else {
            rows.keep_bodies_of(row, ghost);
        }
        rows.object(py, row).map(Some)
    }

    fn at<'py>(slf: &Bound<'py, Self>, #[number] tick: f64) -> PyResult<Bound<'py, Self>> {
        if !(0.0..f64::from(u32::MAX - 1)).contains(&tick) {
            refuse!(PyValueError, "tick must be 0 to {}, not {}", u32::MAX - 2, short(tick));
        }
        let state = {
            let shown = lock(&slf.get().shown);
            if shown.view.playout().is_none() {
                refuse!(GhostError, "a rewound world shows only one tick: rewind again for another tick");
            }
            shown.state.upgrade()
        };
        let state = state.ok_or_else(|| closed_error("client"))?;
        slf.get().show(&mut *state.lock()?, Some(tick));
        slf.get().show_alive(slf.py());
        Ok(slf.clone())
    }

    properties! {
        tick: f64 = lock(&self.shown).tick;
        pub(super) delay: f64 = self.played(Playout::delay);
        period: f64 = self.played(Playout::period);
        stood: f64 = self.played(|playout| playout.stood().as_secs_f64());
        __repr__: String = format!("<WorldView of tick {:.2}: {}>", self.tick(), self.population.counted());
    }

    fn shown<'py>(&self, class_: &Object<'py>) -> PyResult<Object<'py>> {
        let (py, rows) = (class_.py(), self.population.rows_of(class_)?);
        let count = rows.cells.count();
        let view = &lock(&self.shown).view;
        let is_shown = |row: usize| view.has_shown(rows.index, row) && rows.cells.is_alive(row as u32);
        let bytes: Vec<u8> = (0..count).map(|row| u8::from(is_shown(row))).collect();
        let memory = Arc::new(Cells::new(1, count));
        memory.write(0, &bytes);
        cells(py, &memory, count, true, (c"?", None))
    }

    traverses!(self.population);

    fn __clear__(&self) {
        self.population.forget_objects();
    }
}

fn classes(world: &Population) -> impl Iterator<Item = &Arc<GhostClass>> {
    world.classes.iter().map(|rows| &rows.properties.get().class)
}

impl WorldView {
    /// A number about a client's time; 0 for a view of the past.
    fn played(&self, ask: impl FnOnce(&Playout) -> f64) -> f64 {
        lock(&self.shown).view.playout().map_or(0.0, ask)
    }

    /// Gives the rows of a class the present values of what isn't interpolated.
    fn keep_bodies(&self, class: &Object<'_>) -> PyResult<()> {
        let (rows, world) = (self.population.rows_of(class)?, self.world.rows_of(class)?);
        let is_client = lock(&self.shown).view.playout().is_some();
        for row in rows.cells.alive_rows() {
            // A ghost that is gone keeps the last values, if it was read before.
            if world.cells.is_alive(row) && self.end_of(rows.index, row).is_none() {
                for (property, body) in world.cells.bodies_of(row) {
                    rows.cells.keep_body(row, property, body.to_vec());
                }
            } else if !is_client {
                // The values of a ghost that is gone are lost: the class's defaults are shown, as for properties that
                // aren't sent.
                rows.keep_default_bodies(row);
            }
        }
        Ok(())
    }

    /// The view of a client's world; `rate` is the protocol's, until the server's is measured.
    pub(super) fn of_client(py: Python<'_>, world: &Arc<Population>, rate: Option<u32>) -> PyResult<Self> {
        WorldView::new(py, world, View::Client(Box::new(ClientView::new(classes(world), rate))))
    }

    /// A past state of a server's world.
    pub(super) fn of_past(py: Python<'_>, world: &Arc<Population>) -> PyResult<Self> {
        WorldView::new(py, world, View::Past(PastView::new(classes(world))))
    }

    fn new(py: Python<'_>, world: &Arc<Population>, view: View) -> PyResult<Self> {
        let population = Arc::new(world.empty_copy(py)?);
        let shown = Mutex::new(Shown { view, state: Weak::new(), tick: 0.0 });
        Ok(WorldView { population, world: world.clone(), shown })
    }

    pub(super) fn set_playing(&self, playing: Playing) -> PyResult<()> {
        let View::Client(view) = &mut lock(&self.shown).view else { return Ok(()) };
        if let (Some(delay), (least, most)) = (playing.delay, view.delay_bounds())
            && !(least - 1e-9..=most + 1e-9).contains(&delay)
        {
            let (ticks, rate) = (most / least, 1.0 / least);
            refuse!(
                PyValueError,
                "delay must be {least:.4} to {most:.4} seconds, 1 to {ticks:.0} ticks at {rate:.0} a second, not {}",
                short(delay)
            );
        }
        view.set_playing(playing);
        Ok(())
    }

    /// Shows the client's world for now.
    pub(super) fn play(&self, py: Python<'_>, state: &Weak<Shared<State>>) -> PyResult<()> {
        let shared = state.upgrade().ok_or_else(|| closed_error("client"))?;
        {
            let mut locked = shared.lock()?;
            if locked.is_closed() {
                return Err(closed_error("client"));
            }
            lock(&self.shown).state.clone_from(state);
            self.show(&mut locked, None);
        }
        self.show_alive(py);
        Ok(())
    }

    fn show(&self, state: &mut State, tick: Option<f64>) {
        let now = state.carrier.driver().map(|driver| driver.now());
        let Shown { view: View::Client(view), tick: shown, .. } = &mut *lock(&self.shown) else { return };
        let session = &mut state.carrier.session;
        let at = self.population.receive(|columns| session.show(view, now, tick, columns));
        *shown = at.unwrap_or(*shown);
    }

    /// Shows a server's world as it was.
    pub(super) fn rewind(&self, state: &mut State, tick: f64, client: Option<PeerHandle>) {
        let Some(publisher) = core::publisher(state) else { return };
        let Shown { view: View::Past(view), tick: shown, .. } = &mut *lock(&self.shown) else { return };
        *shown = tick;
        self.population.receive(|columns| view.rewind(publisher, tick, client, columns));
    }

    /// Updates the rows to those that exist now, with their owners.
    pub(super) fn show_alive(&self, py: Python<'_>) {
        for (rows, world) in self.population.classes.iter().zip(&self.world.classes) {
            let alive = {
                let view = &lock(&self.shown).view;
                let Some(frames) = view.frames(rows.index) else { continue };
                let alive = frames.alive().to_vec();
                rows.cells.copy_owners(&world.cells, alive.len(), |row| {
                    alive[row] != 1 || view.end_of(rows.index, row).is_some()
                });
                alive
            };
            rows.show(py, &alive);
        }
    }

    /// The tick in which a row's ghost ended, if the world no longer has it.
    fn end_of(&self, class: usize, row: u32) -> Option<u32> {
        lock(&self.shown).view.end_of(class, row as usize)
    }
}
