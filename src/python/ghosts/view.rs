//! The world at a time between ticks, for Python: a client's as shown, and a server's as seen by a client.
//!
//! Promises: it has columns of its own, which change in place; the world's stay unchanged. Time never runs back unless
//! the game asks for an earlier tick.

use crate::python::prelude::*;

use super::arrays::GhostArrays;
use super::client_world::{self, counted};
use super::core;
use super::ghost::Ghost;
use super::memory::{Memory, cells};
use super::population::Population;
use super::rows::GhostRows;
use crate::python::errors::{GhostError, closed_error};
use crate::replication::{Frames, Rule, TickArrival, WorldFrames, WorldTime};
use crate::store::sequence::nearest;
use crate::timeline::{Playout, PlayoutConfig};

/// After this many seconds without data, no time is found any more.
const MAX_AHEAD: f64 = 3600.0;

/// How a view's time is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Playing {
    pub(super) delay: Option<f64>,
    pub(super) extrapolation: f64,
    pub(super) rest: f64,
}

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct WorldView {
    /// The view's own rows, and those of its world.
    population: Arc<Population>,
    world: Arc<Population>,
    shown: Mutex<Shown>,
}

struct Shown {
    source: ViewSource,
    tick: f64,
}

enum ViewSource {
    Client {
        frames: Option<Box<WorldFrames>>,
        playout: Box<Playout>,
        /// Of the client's connection.
        state: Weak<Shared<State>>,
        /// Seconds of silence that are drawn as motion, and for which velocities go on.
        rest: f64,
        extrapolation: f64,
        /// The epoch of the server's world.
        epoch: u32,
    },
    Past {
        frames: Vec<Frames>,
        /// By class: the rows that the client was shown, a byte each. None if it is nobody's view.
        shown: Option<Vec<Vec<u8>>>,
        /// By class: the rows that still hold the same ghost.
        same: Vec<Vec<bool>>,
    },
}

#[pymethods]
impl WorldView {
    fn arrays(&self, class_: &Bound<'_, PyAny>) -> PyResult<GhostArrays> {
        self.population.rows_of(class_).cloned().map(GhostArrays)
    }

    fn objects<'py>(&self, class_: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.keep_bodies(class_)?;
        client_world::objects(&self.population, class_)
    }

    fn mine<'py>(&self, class_: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Ghost>>> {
        self.keep_bodies(class_)?;
        client_world::mine(&self.population, class_)
    }

    fn others<'py>(&self, class_: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.keep_bodies(class_)?;
        client_world::others(&self.population, class_)
    }

    fn owns(&self, ghost: &Bound<'_, Ghost>) -> PyResult<bool> {
        client_world::owns(&self.population, ghost)
    }

    fn ghost<'py>(&self, ghost: &Bound<'py, Ghost>) -> PyResult<Option<Bound<'py, Ghost>>> {
        let py = ghost.py();
        let live = match ghost.get().live() {
            Some(_) => Some(self.world.live(ghost)?),
            None => None,
        };
        let Some(row) = live.as_ref().map(|live| live.row).or_else(|| ghost.get().was()) else {
            refuse!(GhostError, "this {} is in no world yet", ghost.get_type().name()?);
        };
        let class = ghost.get_type();
        let rows = self.population.rows_of(class.as_any())?;
        if !rows.is_alive(row) || self.is_of_one_gone(rows.index, row) == live.is_some() {
            return Ok(None);
        }
        if let Some(live) = live {
            for (property, body) in live.rows.bodies_of(row) {
                rows.keep_body(row, property, body.to_vec());
            }
        } else {
            rows.keep_bodies_of(row, ghost);
        }
        rows.object(py, row).map(Some)
    }

    fn at<'py>(slf: &Bound<'py, Self>, tick: f64) -> PyResult<Bound<'py, Self>> {
        if !(0.0..f64::from(u32::MAX - 1)).contains(&tick) {
            refuse!(PyValueError, "tick must be 0 to {}, not {tick}", u32::MAX - 2);
        }
        let state = match &lock(&slf.get().shown).source {
            ViewSource::Client { state, .. } => state.upgrade(),
            ViewSource::Past { .. } => {
                return Err(GhostError::new_err("a rewound world is of one tick: rewind again for another"));
            }
        };
        let state = state.ok_or_else(|| closed_error("client"))?;
        slf.get().show(slf.py(), &mut *state.lock()?, Some(tick));
        slf.get().show_alive(slf.py());
        Ok(slf.clone())
    }

    properties! {
        tick: f64 = lock(&self.shown).tick;
        __repr__: String = format!("<WorldView of tick {:.2}: {}>", self.tick(), counted(&self.population));
    }

    #[getter]
    pub(super) fn delay(&self) -> f64 {
        match &lock(&self.shown).source {
            ViewSource::Client { playout, .. } => playout.delay(),
            ViewSource::Past { .. } => 0.0,
        }
    }

    #[getter]
    fn period(&self) -> f64 {
        match &lock(&self.shown).source {
            ViewSource::Client { playout, .. } => playout.period(),
            ViewSource::Past { .. } => 0.0,
        }
    }

    #[getter]
    fn stood(&self) -> f64 {
        match &lock(&self.shown).source {
            ViewSource::Client { playout, .. } => playout.stood().as_secs_f64(),
            ViewSource::Past { .. } => 0.0,
        }
    }

    fn shown<'py>(&self, class_: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, rows) = (class_.py(), self.population.rows_of(class_)?);
        let count = rows.count();
        let mut bytes = vec![1; count];
        if let ViewSource::Past { shown: Some(shown), .. } = &lock(&self.shown).source {
            for (row, byte) in bytes.iter_mut().enumerate() {
                *byte = shown[rows.index].get(row).copied().unwrap_or(0);
            }
        }
        for (row, byte) in (0..).zip(&mut bytes) {
            *byte &= u8::from(rows.is_alive(row));
        }
        let memory = Arc::new(Memory::new(1, count));
        memory.write(0, &bytes);
        cells(py, &memory, count, true, (c"?", None))
    }

    traverses!(self.population);

    fn __clear__(&self) {
        self.population.forget_objects();
    }
}

impl Drop for WorldView {
    fn drop(&mut self) {
        self.population.forget_objects();
    }
}

/// Seconds for which time goes on without data: zero if nothing is extrapolated.
fn ahead_of(world: &Population, extrapolation: f64) -> f64 {
    let mut rules = world.classes.iter().flat_map(|rows| rows.properties.get().class.rules.iter());
    if rules.any(|rule| matches!(rule, Rule::Reckoned { .. })) { MAX_AHEAD } else { extrapolation }
}

impl WorldView {
    fn is_client(&self) -> bool {
        matches!(lock(&self.shown).source, ViewSource::Client { .. })
    }

    /// Gives the rows of a class the present values of what isn't interpolated.
    fn keep_bodies(&self, class: &Bound<'_, PyAny>) -> PyResult<()> {
        let (rows, world) = (self.population.rows_of(class)?, self.world.rows_of(class)?);
        let is_client = self.is_client();
        for row in rows.alive_rows() {
            // A ghost that is gone keeps the last values, if it was read before.
            if world.is_alive(row) && !self.is_of_one_gone(rows.index, row) {
                for (property, body) in world.bodies_of(row) {
                    rows.keep_body(row, property, body.to_vec());
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
        let usual = PlayoutConfig::default();
        let period = rate.map_or(usual.period, |rate| 1.0 / f64::from(rate));
        let config = PlayoutConfig { extrapolation: ahead_of(world, 0.0), period, ..usual };
        let playout = Box::new(Playout::new(config));
        let state = Weak::new();
        let source =
            ViewSource::Client { frames: None, playout, state, rest: 0.0, extrapolation: 0.0, epoch: 0 };
        WorldView::new(py, world, source)
    }

    /// A past state of a server's world.
    pub(super) fn of_past(py: Python<'_>, world: &Arc<Population>) -> PyResult<Self> {
        let frames = world.classes.iter().map(|rows| Frames::new(rows.properties.get().class.clone()));
        let same = vec![Vec::new(); world.classes.len()];
        WorldView::new(py, world, ViewSource::Past { frames: frames.collect(), shown: None, same })
    }

    fn new(py: Python<'_>, world: &Arc<Population>, source: ViewSource) -> PyResult<Self> {
        let population = Arc::new(world.empty_copy(py)?);
        Ok(WorldView { population, world: world.clone(), shown: Mutex::new(Shown { source, tick: 0.0 }) })
    }

    pub(super) fn set_playing(&self, playing: Playing) -> PyResult<()> {
        let Playing { delay, extrapolation, rest } = playing;
        for (name, value) in
            [("delay", delay.unwrap_or(0.0)), ("extrapolation", extrapolation), ("rest", rest)]
        {
            if !(0.0..=10.0).contains(&value) {
                refuse!(PyValueError, "{name} must be 0 to 10 seconds, not {value}");
            }
        }
        let source = &mut lock(&self.shown).source;
        if let ViewSource::Client { playout, rest: own_rest, extrapolation: own, .. } = source {
            (*own_rest, *own) = (rest, extrapolation);
            let extrapolation = ahead_of(&self.world, extrapolation);
            let config = PlayoutConfig { delay, extrapolation, ..*playout.config() };
            if playout.tick().is_none() {
                **playout = Playout::new(config);
            } else {
                playout.set_config(config);
            }
        }
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
            if let ViewSource::Client { state: own, .. } = &mut lock(&self.shown).source {
                own.clone_from(state);
            }
            self.show(py, &mut locked, None);
        }
        self.show_alive(py);
        Ok(())
    }

    fn show(&self, _: Python<'_>, state: &mut State, tick: Option<f64>) {
        let now = state.carrier.driver().map(|driver| driver.now());
        let server_tick = state.carrier.session.timing().player().and_then(|player| player.server_tick());
        let Some(mirror) = core::mirror(state) else { return };
        // The mirror knows only the low bits of the server's ticks; the clock completes them.
        let own = mirror.tick();
        let turns = server_tick.and_then(|tick| nearest(own as u16, tick));
        let turns = turns.map_or(0.0, |tick| f64::from(tick) - f64::from(own));
        let tick = tick.map(|tick| (tick - turns).max(0.0));
        let shown = &mut *lock(&self.shown);
        let source = &mut shown.source;
        let ViewSource::Client { frames, playout, rest, extrapolation, epoch, .. } = source else { return };
        if ::core::mem::replace(epoch, mirror.epoch()) != mirror.epoch() {
            playout.reset();
        }
        for TickArrival { tick, at, lost } in mirror.take_received() {
            playout.handle_arrival(tick, at, lost);
        }
        let played = now.and_then(|now| playout.advance(now));
        let is_played = tick.is_none();
        let Some(tick) = tick.or(played) else { return };
        let frames = frames.get_or_insert_with(|| Box::new(WorldFrames::new(mirror.classes())));
        let ahead = *extrapolation / playout.period();
        let spread = (*rest / playout.period()) as u32;
        self.population.receive(|columns| mirror.show(WorldTime { tick, ahead, spread }, frames, columns));
        shown.tick = tick + turns;
        if is_played && let Some(player) = state.carrier.session.timing().player() {
            player.see((tick.max(0.0) * 256.0) as u64);
        }
    }

    /// Shows a server's world as it was.
    pub(super) fn rewind(&self, state: &mut State, tick: f64, client: Option<PeerHandle>) {
        let Some(publisher) = core::publisher(state) else { return };
        let view = &mut *lock(&self.shown);
        view.tick = tick;
        let ViewSource::Past { frames, shown, same } = &mut view.source else { return };
        self.population.receive(|columns| publisher.show_past(tick, frames, columns));
        let same_of = |rows: &Arc<GhostRows>| -> Vec<bool> {
            let count = frames[rows.index].alive().len();
            (0..count).map(|row| publisher.lived_at(rows.index, row as u32, tick as u32)).collect()
        };
        *same = self.population.classes.iter().map(same_of).collect();
        *shown = client.map(|client| {
            let of = |class| {
                let mut shown = Vec::new();
                // In whole ticks.
                publisher.shown_at(client, class, tick as u32, &mut shown);
                shown
            };
            (0..frames.len()).map(of).collect()
        });
    }

    /// Updates the rows to those that exist now, with their owners.
    pub(super) fn show_alive(&self, py: Python<'_>) {
        for (rows, world) in self.population.classes.iter().zip(&self.world.classes) {
            let alive = {
                let shown = lock(&self.shown);
                let (frames, is_gone): (_, Box<dyn Fn(usize) -> bool>) = match &shown.source {
                    ViewSource::Client { frames: None, .. } => continue,
                    ViewSource::Client { frames: Some(frames), .. } => (
                        frames.class(rows.index),
                        Box::new(|row| frames.is_of_one_gone(rows.index, row as u32)),
                    ),
                    ViewSource::Past { frames, same, .. } => (
                        &frames[rows.index],
                        Box::new(|row| !same[rows.index].get(row).is_some_and(|same| *same)),
                    ),
                };
                let alive = frames.alive().to_vec();
                rows.copy_owners(world, alive.len(), is_gone);
                alive
            };
            rows.show(py, &alive);
        }
    }

    /// Whether a row belongs to a ghost that the world no longer has.
    fn is_of_one_gone(&self, class: usize, row: u32) -> bool {
        match &lock(&self.shown).source {
            ViewSource::Client { frames: Some(frames), .. } => frames.is_of_one_gone(class, row),
            ViewSource::Client { frames: None, .. } => false,
            ViewSource::Past { same, .. } => !same[class].get(row as usize).is_some_and(|same| *same),
        }
    }
}
