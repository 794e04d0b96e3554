//! What arrived for a client's ghosts: written to the columns, and as events of those classes that come as
//! objects.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::python::prelude::*;

use super::callbacks::Callbacks;
use super::core;
use super::events::{GhostChanged, GhostDespawned, GhostLinked, GhostOwned, GhostSpawned};
use super::ghost::Values;
use super::links::{Links, Relinked};
use super::old::Before;
use super::population::Population;
use super::rows::{GhostRows, NOBODY};
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
            self.receive(|columns| mirror.take(columns, &mut events));
            let received: Vec<_> = self.classes.iter().map(|rows| rows.received()).collect();
            for GhostEvent { class, id, kind } in &events {
                let (class, rows) = (usize::from(*class), &self.classes[usize::from(*class)]);
                let written = match kind {
                    GhostEventKind::Spawned => u64::MAX,
                    GhostEventKind::Changed { mask } => *mask,
                    GhostEventKind::Owned { .. } | GhostEventKind::Despawned => 0,
                };
                rows.publish(&received[class], *id as usize..*id as usize + 1, written);
                let without = rows.without_words();
                let changed = match kind {
                    GhostEventKind::Spawned => {
                        owned.push((mirror.owns(class, *id), mirror.group(class, *id)));
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
        let mut relinking = Relinking::default();
        // A reused id is the new ghost's from its spawn on.
        let mut bodies = bodies.into_iter().peekable();
        for event in &events {
            let (class, row) = (usize::from(event.class), event.id);
            let rows = &self.classes[class];
            match event.kind {
                GhostEventKind::Spawned => {
                    let (owner, group) = owned.next().unwrap_or_default();
                    rows.appear(row);
                    rows.set_owner(row, if owner { 1 } else { NOBODY });
                    rows.begin_unsent(row, group);
                }
                GhostEventKind::Owned { owner } => rows.set_owner(row, if owner { 1 } else { NOBODY }),
                GhostEventKind::Changed { .. } | GhostEventKind::Despawned => {}
            }
            relinking.note(rows, event, !as_columns.contains(&class));
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
                let values = last.remove(&(class, row)).or_else(|| rows.last_values(py, row));
                drop(rows.end(row, values));
            }
        }
        for Relinked { class, row, property } in relinking.relinked(&self.links) {
            let rows = &self.classes[class];
            let target = rows.links.target(py, (class, property), rows.reference_number(row, property))?;
            let (ghost, target) = (rows.object(py, row)?.unbind(), target.map(Bound::unbind));
            let name = rows.properties.get().attribute_name(py, property).clone().unbind();
            let told = Py::new(py, GhostLinked { ghost, name, target })?.into_any();
            if rows.callbacks.any() {
                called.push((rows.callbacks, told.clone_ref(py)));
            }
            objects.push(told);
        }
        Ok(called)
    }
}

/// What a take's events say of references.
#[derive(Default)]
struct Relinking {
    /// The numbers of ghosts that came or went, with their classes.
    moved: BTreeMap<u32, usize>,
    /// The references whose own ghosts came, or were given others: those events say so.
    told: HashMap<(usize, u32), u64>,
}

impl Relinking {
    fn note(&mut self, rows: &GhostRows, event: &GhostEvent, as_objects: bool) {
        let (class, row, links) = (rows.index, event.id, &rows.links);
        let (holds, is_numbered) =
            (as_objects && links.has_references(class), rows.properties.get().number_column().is_some());
        if !holds && !is_numbered {
            return;
        }
        match event.kind {
            GhostEventKind::Despawned => {
                self.moved.extend(links.known_number(class, row).map(|number| (number, class)));
                if holds {
                    links.release(class, row);
                }
            }
            GhostEventKind::Spawned | GhostEventKind::Changed { .. } => {
                if is_numbered && links.known_number(class, row) != rows.network_id(row) {
                    links.appear(rows, row);
                    self.moved.extend(links.known_number(class, row).map(|number| (number, class)));
                }
                let mask = match event.kind {
                    GhostEventKind::Changed { mask } => mask & links.mask(class),
                    _ => links.mask(class),
                };
                if holds && mask != 0 {
                    links.hold(rows, row, mask);
                    *self.told.entry((class, row)).or_default() |= mask;
                }
            }
            GhostEventKind::Owned { .. } => {}
        }
    }

    /// The references that are of another ghost than before, or of none, without a word by their own ghosts' events.
    fn relinked(&self, links: &Links) -> Vec<Relinked> {
        if self.moved.is_empty() {
            return Vec::new();
        }
        let mut relinked = links.relinked(&self.moved);
        relinked
            .retain(|it| self.told.get(&(it.class, it.row)).is_none_or(|told| told >> it.property & 1 == 0));
        relinked
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
            let mask = mask & rows.properties.get().visible();
            let names = rows.properties.get().names(py, mask)?.unbind();
            let (rows, before) = (rows.clone(), before.clone());
            Py::new(py, GhostChanged { ghost, names, rows, row: event.id, mask, before })?.into_any()
        }
        GhostEventKind::Owned { owner } => Py::new(py, GhostOwned { ghost, owned: owner })?.into_any(),
        GhostEventKind::Despawned => Py::new(py, GhostDespawned { ghost })?.into_any(),
    })
}
