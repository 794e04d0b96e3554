//! What arrived for a client's ghosts: written to the columns, and as events of those classes that come as
//! objects.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pyo3::prelude::*;

use super::callbacks::Callbacks;
use super::core;
use super::events::{GhostChanged, GhostDespawned, GhostOwned, GhostSpawned};
use super::ghost::Values;
use super::old::Before;
use super::population::Population;
use super::rows::{GhostRows, NOBODY};
use crate::python::lock;
use crate::python::shared::Shared;
use crate::python::state::State;
use crate::replication::{GhostEvent, GhostEventKind};

/// The rows of a class to which something happened in the last tick.
#[derive(Default)]
pub(super) struct News {
    pub(super) spawned: Vec<u32>,
    pub(super) changed: Vec<u32>,
    pub(super) despawned: Vec<u32>,
}

/// Values of properties without words: class, row, property, body.
type Bodies = Vec<(usize, u32, usize, Vec<u8>)>;

impl Population {
    /// Updates a client's columns, and appends the events of all but these classes. Returns those of the
    /// events whose class has callbacks.
    pub(in crate::python) fn take_news(
        &self,
        py: Python<'_>,
        state: &Arc<Shared<State>>,
        as_columns: &[usize],
        objects: &mut Vec<Py<PyAny>>,
    ) -> PyResult<Vec<(Callbacks, Py<PyAny>)>> {
        let mut called = Vec::new();
        if self.classes.is_empty() {
            return Ok(called);
        }
        // An id may be reused within one tick, and its cells with it.
        let ended: Vec<(usize, u32)> = {
            let mut state = state.lock()?;
            core::mirror(&mut state).map(|mirror| mirror.ended().collect()).unwrap_or_default()
        };
        let last = ended.into_iter().filter_map(|(class, row)| {
            self.classes[class].last_values(py, row).map(|values| ((class, row), values))
        });
        let mut last: HashMap<(usize, u32), Values> = last.collect();
        let (mut events, mut bodies, mut owned) = (Vec::new(), Bodies::new(), Vec::new());
        let mut before = Before::default();
        {
            let mut state = state.lock()?;
            let Some(mirror) = core::mirror(&mut state) else { return Ok(called) };
            let told = self.classes.iter().filter(|rows| !as_columns.contains(&rows.index));
            told.for_each(|rows| before.copy(rows, mirror));
            {
                let mut columns: Vec<Vec<&mut [u8]>> =
                    self.classes.iter().map(|rows| rows.cells_to_write()).collect();
                mirror.take(&mut columns, &mut events);
            }
            for GhostEvent { class, id, kind } in &events {
                let (class, rows) = (usize::from(*class), &self.classes[usize::from(*class)]);
                let without = rows.without_words();
                let changed = match kind {
                    GhostEventKind::Spawned => {
                        owned.push(mirror.owns(class, *id));
                        without
                    }
                    GhostEventKind::Changed { mask } => without & mask,
                    GhostEventKind::Owned { .. } | GhostEventKind::Despawned => 0,
                };
                for property in (0..64).filter(|property| changed >> property & 1 == 1) {
                    if let Some(body) = mirror.value(class, *id, property) {
                        bodies.push((class, *id, property, body.to_vec()));
                    }
                }
            }
        }
        let before = Arc::new(before);
        for rows in &self.classes {
            *lock(&rows.news) = News::default();
        }
        let any_owned = events.iter().any(|event| matches!(event.kind, GhostEventKind::Owned { .. }));
        let is_spawn = |event: &&GhostEvent| any_owned && event.kind == GhostEventKind::Spawned;
        let spawned: HashSet<(u16, u32)> =
            events.iter().filter(is_spawn).map(|event| (event.class, event.id)).collect();
        // A spawn event says whether the ghost is owned.
        let is_known = |event: &GhostEvent| {
            matches!(event.kind, GhostEventKind::Owned { .. }) && spawned.contains(&(event.class, event.id))
        };
        let mut owned = owned.into_iter();
        // A reused id is the new ghost's from its spawn on.
        let mut bodies = bodies.into_iter().peekable();
        for event in &events {
            let (class, row) = (usize::from(event.class), event.id);
            let rows = &self.classes[class];
            match event.kind {
                GhostEventKind::Spawned => {
                    let owner = owned.next().unwrap_or(false);
                    rows.appear(row);
                    rows.set_owner(row, if owner { 1 } else { NOBODY });
                    rows.begin_unsent(row, owner);
                }
                GhostEventKind::Owned { owner } => rows.set_owner(row, if owner { 1 } else { NOBODY }),
                GhostEventKind::Changed { .. } | GhostEventKind::Despawned => {}
            }
            let has_values = matches!(event.kind, GhostEventKind::Spawned | GhostEventKind::Changed { .. });
            let is_its = |next: &(usize, u32, usize, Vec<u8>)| has_values && (next.0, next.1) == (class, row);
            while let Some((.., property, body)) = bodies.next_if(is_its) {
                rows.keep_body(row, property, body);
            }
            if as_columns.contains(&class) {
                let mut news = lock(&rows.news);
                match event.kind {
                    GhostEventKind::Spawned => news.spawned.push(row),
                    GhostEventKind::Changed { .. } => news.changed.push(row),
                    GhostEventKind::Despawned => news.despawned.push(row),
                    GhostEventKind::Owned { .. } => {}
                }
            } else if !is_known(event) {
                let told = object(py, rows, event, &before)?;
                if rows.callbacks.any() {
                    called.push((rows.callbacks, told.clone_ref(py)));
                }
                objects.push(told);
            }
            if event.kind == GhostEventKind::Despawned {
                rows.end(py, row, last.remove(&(class, row)));
            }
        }
        Ok(called)
    }
}

/// The ghost or event object that the game gets.
fn object(
    py: Python<'_>,
    rows: &Arc<GhostRows>,
    event: &GhostEvent,
    before: &Arc<Before>,
) -> PyResult<Py<PyAny>> {
    let ghost = rows.object(py, event.id)?.unbind();
    Ok(match event.kind {
        GhostEventKind::Spawned => Py::new(py, GhostSpawned { ghost })?.into_any(),
        GhostEventKind::Changed { mask } => {
            let names = rows.properties.get().names(py, mask)?.unbind();
            let (rows, before) = (rows.clone(), before.clone());
            Py::new(py, GhostChanged { ghost, names, rows, row: event.id, mask, before })?.into_any()
        }
        GhostEventKind::Owned { owner } => Py::new(py, GhostOwned { ghost, owned: owner })?.into_any(),
        GhostEventKind::Despawned => Py::new(py, GhostDespawned { ghost })?.into_any(),
    })
}
