//! What arrived for a client's ghosts: written to the columns, and as events of those classes that come as
//! objects.

use super::*;

use crate::replication::rows::RowCells;
use crate::replication::{Before, GhostEvent, GhostEventKind, RowBody, RowNews};

/// The tick in which each ghost ended, by class and row, and its last values of properties without words.
type Ended = HashMap<(usize, u32), (u32, Option<Values>)>;

impl Population {
    /// Updates a client's columns, and appends the events of all but these classes. Returns the events for which a class has
    /// a callback.
    pub(in crate::python) fn take_news(
        &self,
        py: Python<'_>,
        state: &Arc<Shared<State>>,
        as_columns: &[usize],
        objects: &mut Vec<Py<PyAny>>,
    ) -> PyResult<Vec<(Callback, Py<PyAny>)>> {
        let mut called = Vec::new();
        if self.classes.is_empty() {
            return Ok(called);
        }
        let mut last = self.last_of_ended(py, state)?;
        let kept = |class: usize| match as_columns.contains(&class) {
            true => 0,
            false => self.classes[class].properties.get().visible(),
        };
        let rows: Vec<&RowCells> = self.rows().collect();
        let taken = core::mirror(&mut *state.lock()?).map(|mirror| RowNews::take(mirror, &rows, kept));
        let Some(RowNews { events, bodies, spawned, before }) = taken else { return Ok(called) };
        let before = Arc::new(before);
        for rows in &self.classes {
            *lock(&rows.news) = News::default();
        }
        // A spawn event says whether the ghost is owned.
        let is_owned = |event: &GhostEvent| matches!(event.kind, GhostEventKind::Owned { .. });
        let any_owned = events.iter().any(is_owned);
        let known: HashSet<(usize, u32)> =
            spawned.iter().filter(|_| any_owned).map(|(class, row, ..)| (*class, *row)).collect();
        let mut spawns = spawned.iter();
        // A reused id is the new ghost's from its spawn on.
        let mut bodies = bodies.into_iter().peekable();
        let mut note = |rows: &GhostRows, (callback, told): (Callback, Py<PyAny>)| {
            if rows.callbacks.has(callback) {
                called.push((callback, told.clone_ref(py)));
            }
            objects.push(told);
        };
        for event in &events {
            let (class, row) = (usize::from(event.class), event.id);
            let (rows, is_column) = (&self.classes[class], as_columns.contains(&class));
            rows.apply(event, || spawns.next().map_or((false, 0), |(.., owner, group)| (*owner, *group)));
            self.links.note(rows, event, !is_column);
            let has_values = matches!(event.kind, GhostEventKind::Spawned | GhostEventKind::Changed { .. });
            let is_its = |next: &RowBody| has_values && (next.0, next.1) == (class, row);
            while let Some((.., property, body)) = bodies.next_if(is_its) {
                rows.cells.keep_body(row, property, body);
            }
            if is_column {
                lock(&rows.news).note(event);
            } else if !(is_owned(event) && known.contains(&(class, row))) {
                note(rows, object(py, rows, event, &before)?);
            }
            if event.kind == GhostEventKind::Despawned {
                let (tick, values) = last.remove(&(class, row)).unwrap_or_default();
                drop(rows.end(row, tick, values.or_else(|| rows.last_values(py, row))));
            }
        }
        for (class, row, property) in self.links.take_relinked() {
            let rows = &self.classes[class];
            let target = rows.links.target(py, (class, property), rows.reference_number(row, property))?;
            let (ghost, target) = (rows.object(py, row)?.unbind(), target.map(Bound::unbind));
            let name = rows.properties.get().attribute_name(py, property).clone().unbind();
            note(rows, (Callback::Linked, Py::new(py, GhostLinked { ghost, name, target })?.into_any()));
        }
        Ok(called)
    }

    /// The ticks and last values of the ghosts that end: an id may be reused within one tick, and its cells with it.
    fn last_of_ended(&self, py: Python<'_>, state: &Arc<Shared<State>>) -> PyResult<Ended> {
        let ended: Vec<_> = {
            let mut state = state.lock()?;
            core::mirror(&mut state).map(|mirror| mirror.ended_at().collect()).unwrap_or_default()
        };
        let with_last = |((class, row), tick): ((usize, u32), u32)| {
            let values = self.classes[class].last_values(py, row);
            ((class, row), (tick, values))
        };
        Ok(ended.into_iter().map(with_last).collect())
    }
}

impl News {
    fn note(&mut self, event: &GhostEvent) {
        match event.kind {
            GhostEventKind::Spawned => self.spawned.push(event.id),
            GhostEventKind::Changed { .. } => self.changed.push(event.id),
            GhostEventKind::Despawned => self.despawned.push(event.id),
            GhostEventKind::Owned { .. } => {}
        }
    }
}

impl GhostRows {
    /// A copy, as making objects of it may run other code.
    pub(super) fn news(&self) -> News {
        lock(&self.news).clone()
    }

    /// Updates the row of an event, and who owns it; `spawned` gives a new ghost's owner and group.
    fn apply(&self, event: &GhostEvent, spawned: impl FnOnce() -> (bool, usize)) {
        let owner_of = |owner| if owner { 1 } else { NOBODY };
        match event.kind {
            GhostEventKind::Spawned => {
                let (owner, group) = spawned();
                self.cells.appear(event.id);
                self.cells.set_owner(event.id, owner_of(owner));
                self.begin_unsent(event.id, group);
            }
            GhostEventKind::Owned { owner } => self.cells.set_owner(event.id, owner_of(owner)),
            GhostEventKind::Changed { .. } | GhostEventKind::Despawned => {}
        }
    }
}

/// The event object that the game gets, and its callback.
fn object(
    py: Python<'_>,
    rows: &Arc<GhostRows>,
    event: &GhostEvent,
    before: &Arc<Before>,
) -> PyResult<(Callback, Py<PyAny>)> {
    let ghost = rows.object(py, event.id)?.unbind();
    Ok(match event.kind {
        GhostEventKind::Spawned => (Callback::Spawned, GhostSpawned { ghost }.into_py_any(py)?),
        GhostEventKind::Changed { mask } => {
            let mask = mask & rows.properties.get().visible();
            let names = rows.properties.get().names(py, mask)?.unbind();
            let (rows, before) = (rows.clone(), before.clone());
            let changed = GhostChanged { ghost, names, rows, row: event.id, mask, before };
            (Callback::Changed, changed.into_py_any(py)?)
        }
        GhostEventKind::Owned { owner } => {
            (Callback::Owned, GhostOwned { ghost, owned: owner }.into_py_any(py)?)
        }
        GhostEventKind::Despawned => (Callback::Despawned, GhostDespawned { ghost }.into_py_any(py)?),
    })
}
