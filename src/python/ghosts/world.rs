//! A server's world: its ghosts, their owners, and their relevancy.
//!
//! Promises: a refused spawn has changed nothing. A row with a value that can't be sent keeps its former state without
//! affecting others; the flush raises after everything is sent.

use super::*;

use crate::replication::{GhostName, MAX_PAST, Publisher};

/// The hooks of a class.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) relevancy: Option<Py<PyAny>>,
    pub(super) priority: Option<Py<PyAny>>,
    pub(super) condition: Option<Py<PyAny>>,
}

holds!(Hooks: relevancy, priority, condition);

#[pyclass(frozen, module = "tickwire.world")]
pub(crate) struct World {
    pub(in crate::python) population: Arc<Population>,
    /// Weak: the server owns this.
    state: Weak<Shared<State>>,
    /// The number of that server.
    server: u64,
    strict: bool,
    /// How many clients there may be.
    pub(super) slots: usize,
    /// Connected clients that were ever given a ghost, by number.
    owners: Mutex<HashMap<u64, Py<ClientHandle>>>,
    /// By class.
    pub(super) hooks: Mutex<Vec<Hooks>>,
    /// Whether a hook is running.
    pub(super) asking: AtomicBool,
    judgements: OnceLock<Py<PyAny>>,
}

#[pymethods]
impl World {
    #[pyo3(signature = (ghost, /, *, owner = None))]
    fn spawn<'py>(
        &self,
        ghost: &Object<'py>,
        owner: Option<&Bound<'py, ClientHandle>>,
    ) -> PyResult<Object<'py>> {
        let object = self.plain(ghost)?;
        let ghost = object.cast::<Ghost>()?;
        let rows = self.population.rows_of(object.get_type().as_any())?;
        let values = rows.check(&object)?;
        self.begin(rows, &values, self.check_owner(owner)?, Some(ghost))?;
        Ok(object)
    }

    fn spawn_rows<'py>(
        &self,
        ghost: &Object<'py>,
        #[within(0, u32::MAX)] count: u32,
        owner: Option<&Bound<'py, ClientHandle>>,
    ) -> PyResult<Object<'py>> {
        let py = ghost.py();
        let object = self.plain(ghost)?;
        let rows = self.population.rows_of(object.get_type().as_any())?;
        let values = rows.check(&object)?;
        let owner = self.check_owner(owner)?;
        let mut begun = Vec::new();
        for _ in 0..count {
            match self.begin(rows, &values, owner, None) {
                Ok(row) => begun.push(row),
                Err(error) => {
                    self.end(py, rows, &begun)?;
                    return Err(error);
                }
            }
        }
        numbers(py, &begun)
    }

    fn despawn(&self, ghost: &Bound<'_, Ghost>) -> PyResult<()> {
        let Live { rows, row } = self.population.live(ghost)?;
        self.end(ghost.py(), &rows, &[row])
    }

    fn despawn_rows(&self, class_: &Object<'_>, rows: &Object<'_>) -> PyResult<()> {
        let class = self.population.rows_of(class_)?;
        let mut given = rows_of(rows)?;
        given.sort_unstable();
        if let Some(row) = given.iter().find(|row| !class.cells.is_alive(**row)) {
            refuse!(GhostError, "no {} lives in row {row}", class.name());
        }
        if let Some(twice) = given.windows(2).find(|pair| pair[0] == pair[1]) {
            refuse!(GhostError, "row {} of {} is given twice", twice[0], class.name());
        }
        self.end(class_.py(), class, &given)
    }

    methods! {
        objects(class_: &Object<'py>) -> PyResult<Bound<'py, PyList>> = self.population.objects(class_);
        arrays(class_: &Object<'_>) -> PyResult<GhostArrays> =
            self.population.rows_of(class_).cloned().map(GhostArrays);
        row(ghost: &Bound<'_, Ghost>) -> PyResult<u32> = self.population.live(ghost).map(|live| live.row);
        __contains__(ghost: &Object<'_>) -> bool =
            ghost.cast::<Ghost>().is_ok_and(|ghost| self.population.live(ghost).is_ok());
    }

    fn owner(&self, py: Python<'_>, ghost: &Bound<'_, Ghost>) -> PyResult<Option<Py<ClientHandle>>> {
        let Live { rows, row } = self.population.live(ghost)?;
        let owner = rows.cells.owner(row);
        Ok(lock(&self.owners).get(&owner).map(|handle| handle.clone_ref(py)))
    }

    fn set_owner(&self, ghost: &Bound<'_, Ghost>, owner: Option<&Bound<'_, ClientHandle>>) -> PyResult<()> {
        let Live { rows, row } = self.population.live(ghost)?;
        let owner = self.check_owner(owner)?;
        self.publish(|it| it.set_owner(rows.index, row, owner.map(|owner| owner.get().core)))?;
        self.with(|state| self.note_owner(state, &rows, row, owner))
    }

    fn id_of(&self, client: &Bound<'_, ClientHandle>, ghost: &Bound<'_, Ghost>) -> PyResult<Option<u32>> {
        let live = self.population.live(ghost)?;
        let Some(client) = self.peer_of("client", client)? else { return Ok(None) };
        self.with(|state| number_for(state, Some(client), &live))
    }

    fn ghost_of<'py>(
        &self,
        client: &Bound<'py, ClientHandle>,
        class_: &Object<'py>,
        #[within(0, u32::MAX)] number: u32,
    ) -> PyResult<Option<Bound<'py, Ghost>>> {
        let rows = self.population.rows_of(class_)?;
        let Some(client) = self.peer_of("client", client)? else { return Ok(None) };
        let row = self.publish(|it| it.named(client, rows.index, GhostName::from_number(number)))?;
        row.map(|row| rows.object(class_.py(), row)).transpose()
    }

    #[getter]
    fn costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let costs = self.publish(|it| it.costs())?;
        let all = PyDict::new(py);
        for (rows, class) in self.population.classes.iter().zip(&costs.classes) {
            let fields = rows.properties.get().class.properties.each().iter();
            let each = fields.map(|property| property.field().name()).zip(class.properties.iter().copied());
            let others =
                [("(updates)", class.updates), ("(creates)", class.creates), ("(destroys)", class.destroys)];
            all.set_item(rows.name(), counts(py, each.chain(others))?)?;
        }
        all.set_item("(world)", counts(py, [("(packets)", costs.packets)].into_iter())?)?;
        Ok(all)
    }

    fn client_bits(&self, client: &Bound<'_, ClientHandle>) -> PyResult<u64> {
        let Some(client) = self.peer_of("client", client)? else { return Ok(0) };
        self.publish(|it| it.peer_bits(client))
    }

    fn remember(&self, #[number] seconds: f64) -> PyResult<()> {
        let own = self.with(|state| state.carrier.session.timing().inputs().map(|timing| timing.rate()))?;
        let rate = own.unwrap_or(DEFAULT_RATE);
        let most = f64::from(MAX_PAST) / rate;
        if !(0.0..=most).contains(&seconds) {
            refuse!(
                PyValueError,
                "seconds must be 0 to {most} ({MAX_PAST} ticks at {rate} a second), not {}",
                short(seconds)
            );
        }
        // Whole ticks stay whole: 250 / 60 s times 60 is above 250 by a rounding error.
        let ticks = (seconds * rate * (1.0 - 1e-12)).ceil();
        self.publish(|it| it.remember(ticks as u32))
    }

    properties! {
        past_bytes: PyResult<usize> = self.publish(|it| it.past_bytes());
        tick: PyResult<u32> = self.publish(|it| it.tick());
        __repr__: String = format!("<World of {}>", self.population.counted());
    }

    fn rewind<'py>(
        slf: &Bound<'py, Self>,
        client: &Bound<'py, ClientHandle>,
        #[number] seen: Option<f64>,
    ) -> PyResult<Object<'py>> {
        let said = match seen {
            None => {
                let core = client.get().of_server("client", slf.get().server)?;
                slf.get().with(|state| seen_by(state, core))??
            }
            given => given,
        };
        Self::past(slf, Some(client), said)
    }

    fn rewind_to<'py>(slf: &Bound<'py, Self>, #[number] tick: f64) -> PyResult<Object<'py>> {
        Self::past(slf, None, Some(tick))
    }

    #[getter]
    fn judgements<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        if let Some(made) = self.judgements.get() {
            return Ok(made.bind(py).clone());
        }
        let made = py.import("tickwire._past")?.getattr("Judgements")?.call0()?;
        Ok(self.judgements.get_or_init(|| made.unbind()).bind(py).clone())
    }

    traverses!(self.population, self.hooks, self.judgements, self.owners);

    fn __clear__(&self) {
        self.population.forget_objects();
        let hooks: Vec<_> = lock(&self.hooks).iter_mut().map(::core::mem::take).collect();
        drop(hooks);
    }
}

impl World {
    pub(in crate::python) fn new(
        population: Arc<Population>,
        state: Weak<Shared<State>>,
        server: u64,
        strict: bool,
        slots: usize,
    ) -> Self {
        let hooks = population.classes.iter().map(|_| Hooks::default()).collect();
        World {
            population,
            state,
            server,
            strict,
            slots,
            owners: Mutex::default(),
            hooks: Mutex::new(hooks),
            asking: AtomicBool::new(false),
            judgements: OnceLock::new(),
        }
    }

    /// Runs `work` on the server's state, if the server is open.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> PyResult<T> {
        let shared = self.state.upgrade().ok_or_else(|| closed_error("server"))?;
        let mut state = shared.lock()?;
        if state.is_closed() {
            return Err(closed_error("server"));
        }
        Ok(work(&mut state))
    }

    /// Runs work on what the server publishes.
    pub(super) fn publish<T: Default>(&self, work: impl FnOnce(&mut Publisher) -> T) -> PyResult<T> {
        self.with(|state| core::publisher(state).map(work).unwrap_or_default())
    }

    /// The object to spawn: the given one, or a new one of the given class.
    fn plain<'py>(&self, ghost: &Object<'py>) -> PyResult<Object<'py>> {
        if ghost.is_instance_of::<PyType>() {
            self.population.rows_of(ghost)?;
            return ghost.call0();
        }
        let Ok(plain) = ghost.cast::<Ghost>() else {
            let class = ghost.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "ghost must be an object of a class made by @tickwire.ghost, or the class, not {class}"
            )));
        };
        let name = ghost.get_type().name()?;
        if let Some(live) = plain.get().live() {
            refuse!(GhostError, "this {name} is already spawned, in row {}", live.row);
        }
        if let Some(row) = plain.get().was() {
            return Err(GhostError::new_err(format!(
                "the {name} of row {row} was despawned: spawn a new one, such as a copy by \
                 dataclasses.replace()"
            )));
        }
        Ok(ghost.clone())
    }

    /// The number of the client in an argument, if it is connected.
    pub(super) fn peer_of(
        &self,
        name: &str,
        client: &Bound<'_, ClientHandle>,
    ) -> PyResult<Option<PeerHandle>> {
        let client = client.get().of_server(name, self.server)?;
        match self.with(|state| state.host().is_connected(client))? {
            false if self.strict => Err(stale_client()),
            is_connected => Ok(is_connected.then_some(client)),
        }
    }

    /// Checks an owner. A ghost of a client that has just left waits for it, once the game has the client's last event.
    fn check_owner<'a, 'py>(
        &self,
        owner: Option<&'a Bound<'py, ClientHandle>>,
    ) -> PyResult<Option<&'a Bound<'py, ClientHandle>>> {
        owner.map(|owner| self.peer_of("owner", owner)).transpose()?;
        Ok(owner)
    }

    fn note_owner(
        &self,
        state: &mut State,
        rows: &GhostRows,
        row: u32,
        owner: Option<&Bound<'_, ClientHandle>>,
    ) {
        let owned = core::publisher(state).and_then(|it| it.owner(rows.index, row));
        let number = owned.map(PeerHandle::number);
        rows.cells.set_owner(row, number.unwrap_or(NOBODY));
        if let (Some(number), Some(owner)) = (number, owner) {
            lock(&self.owners).entry(number).or_insert_with(|| owner.clone().unbind());
        }
    }

    /// Makes a row with these values, and the object its own if one is given.
    fn begin(
        &self,
        rows: &Arc<GhostRows>,
        values: &Checked,
        owner: Option<&Bound<'_, ClientHandle>>,
        object: Option<&Bound<'_, Ghost>>,
    ) -> PyResult<u32> {
        let mut former = None;
        let row = self.with(|state| {
            let row = core::publisher(state)?.spawn(rows.index, owner.map(|owner| owner.get().core)).ok()?;
            rows.begin(row, values);
            for (property, body) in rows.cells.bodies_of(row) {
                core::set_value(state, rows.index, row, property, &body);
            }
            self.note_owner(state, rows, row, owner);
            if let Some(object) = object {
                former = Some(object.get().enter(Live { rows: rows.clone(), row }));
                rows.adopt(row, object);
            }
            Some(row)
        })?;
        // The object's own values: no lock is held where they are dropped.
        drop(former);
        row.ok_or_else(|| {
            let (name, capacity) = (rows.name(), rows.properties.get().capacity());
            GhostError::new_err(format!(
                "{name} must have at most {capacity} ghosts at a time, its capacity: despawn some, or declare more by \
                 @tw.ghost(capacity=...)"
            ))
        })
    }

    /// Despawns rows: each is free in the core and here at the same time.
    fn end(&self, py: Python<'_>, rows: &GhostRows, ended: &[u32]) -> PyResult<()> {
        let mut objects = Vec::new();
        self.with(|state| {
            for row in ended {
                match rows.known_object(py, *row) {
                    Some(object) => objects.push((*row, object)),
                    None => drop(despawn(state, rows, *row, None)),
                }
            }
        })?;
        for (row, object) in objects {
            // The game's own types run here, and may spawn and despawn.
            let mut values = rows.last_values(py, row);
            let ended = self.with(|state| {
                if !rows.known_object(py, row).is_some_and(|known| known.is(&object)) {
                    return None;
                }
                despawn(state, rows, row, values.take())
            })?;
            drop((ended, values));
        }
        Ok(())
    }

    /// Gives a client that came back the ghosts that waited for it.
    pub(in crate::python) fn give_back(&self, py: Python<'_>, client: &Py<ClientHandle>) {
        let peer = client.get().core;
        // A closed server gives nothing.
        let owned = self.publish(|publisher| {
            let each = self.population.classes.iter();
            each.map(|rows| {
                let owned = publisher.owned(peer, rows.index);
                owned.inspect(|row| rows.cells.set_owner(*row, peer.number())).count()
            })
            .sum::<usize>()
        });
        if owned.is_ok_and(|owned| owned > 0) {
            lock(&self.owners).entry(peer.number()).or_insert_with(|| client.clone_ref(py));
        }
    }

    /// Forgets clients that are gone: their ghosts have no owner any more.
    pub(in crate::python) fn forget_owners(&self, gone: &[PeerHandle]) {
        if gone.is_empty() {
            return;
        }
        // A closed server's ghosts have no owners.
        let _ = self.with(|state| {
            let orphans = core::world(state).map(|world| world.take_orphans());
            for (class, row) in orphans.into_iter().flatten() {
                self.population.classes[class].cells.set_owner(row, NOBODY);
            }
        });
        let forgotten: Vec<_> = {
            let mut owners = lock(&self.owners);
            gone.iter().filter_map(|peer| owners.remove(&peer.number())).collect()
        };
        drop(forgotten);
    }
}

/// The tick that a client's player saw when giving the input of the current tick; None if the client didn't report it.
///
/// # Errors
/// The protocol has no inputs.
fn seen_by(state: &mut State, peer: PeerHandle) -> PyResult<Option<f64>> {
    let timing = state.carrier.session.timing().inputs().filter(|timing| timing.has_inputs());
    let timing = timing.ok_or_else(|| {
        PyValueError::new_err(
            "seen must be given, because the protocol has no inputs that report it: rewind(client, seen=tick), or \
             Protocol(..., inputs=Move, tick_rate=60) on both sides",
        )
    })?;
    Ok(timing.seen_by(peer))
}

/// Ends a row in the core and here; its ghost isn't in the next tick.
fn despawn(state: &mut State, rows: &GhostRows, row: u32, last: Option<Values>) -> Option<Py<Ghost>> {
    let tick = core::publisher(state).map_or(0, |publisher| {
        publisher.despawn(rows.index, row);
        publisher.tick() + 1
    });
    rows.end(row, tick, last)
}

impl World {
    /// A view of an earlier tick, with its `Past` object.
    pub(super) fn past<'py>(
        slf: &Bound<'py, Self>,
        client: Option<&Bound<'py, ClientHandle>>,
        claim: Option<f64>,
    ) -> PyResult<Object<'py>> {
        let (py, world) = (slf.py(), slf.get());
        if let Some(seen) = claim.filter(|seen| !seen.is_finite()) {
            let name = if client.is_some() { "seen" } else { "tick" };
            refuse!(PyValueError, "{name} must be a tick of the server, not {seen}");
        }
        let peer = client.map_or(Ok(None), |client| world.peer_of("client", client))?;
        let Some((oldest, newest)) = world.publish(|it| Some((it.oldest_past()?, it.tick())))? else {
            return Err(GhostError::new_err(
                "the world must have a record to be rewound: call server.world.remember(1.0) when it is \
                 made, and rewind after a tick was sent",
            ));
        };
        let claimed = claim.unwrap_or(newest.into());
        let tick = claimed.clamp(oldest.into(), newest.into());
        let view = Bound::new(py, WorldView::of_past(py, &world.population)?)?;
        world.with(|state| view.get().rewind(state, tick, peer))?;
        view.get().show_alive(py);
        let clamped = match () {
            () if claim.is_none() => "unsaid",
            () if claimed > tick => "future",
            () if claimed < tick => "too old",
            () => "",
        };
        let past = py.import("tickwire._past")?.getattr("Past")?;
        past.call1((slf, view, client, claimed, newest, clamped))
    }
}
