//! The changes that arrived for a client's ghosts, taken over by the rows of all classes.
//!
//! Promises: the values that the changes replace are copied first. A game that never asks for them pays for the copy of
//! the cells that changed.

use std::collections::HashMap;
use std::sync::Arc;

use super::rows::RowCells;
use super::{GhostEvent, GhostEventKind, Mirror};

/// A value of a property without words: class, row, property, body.
pub type RowBody = (usize, u32, usize, Vec<u8>);

/// A client's news of one tick. The cells are in the rows already.
#[derive(Debug, Default)]
pub struct RowNews {
    pub events: Vec<GhostEvent>,
    /// The values without words, in the order of the events.
    pub bodies: Vec<RowBody>,
    /// The class and row of each new ghost, whether it is owned, and its group.
    pub spawned: Vec<(usize, u32, bool, usize)>,
    pub before: Before,
}

/// The values that one tick's changes replaced, of all ghosts.
#[derive(Debug, Default)]
pub struct Before {
    cells: Vec<u8>,
    /// Where a row's values begin, by class and row.
    starts: HashMap<(usize, u32), usize>,
    /// Values of properties without words, if there were any.
    bodies: HashMap<(usize, u32, usize), Arc<[u8]>>,
}

impl RowNews {
    /// Takes over a mirror's changes. `kept` is the mask of the properties of a class whose former values are kept.
    pub fn take(mirror: &mut Mirror, classes: &[&RowCells], kept: impl Fn(usize) -> u64) -> Self {
        let mut news = RowNews::default();
        for (class, rows) in classes.iter().enumerate() {
            news.before.copy(class, rows, mirror, kept(class));
        }
        let mut received: Vec<_> = classes.iter().map(|rows| rows.received()).collect();
        let columns = received.iter_mut().map(|cells| cells.iter_mut().map(|cells| &mut **cells).collect());
        mirror.take(&mut columns.collect::<Vec<Vec<_>>>(), &mut news.events);
        for event in &news.events {
            let (class, row) = (usize::from(event.class), event.id);
            let written = match event.kind {
                GhostEventKind::Spawned => {
                    news.spawned.push((class, row, mirror.owns(class, row), mirror.group(class, row)));
                    u64::MAX
                }
                GhostEventKind::Changed { mask } => mask,
                GhostEventKind::Owned { .. } | GhostEventKind::Despawned => 0,
            };
            let rows = classes[class];
            rows.publish(&received[class], row as usize..row as usize + 1, written);
            let changed = written & rows.without_words();
            for property in (0..64).filter(|property| changed >> property & 1 == 1) {
                if let Some(body) = mirror.value(class, row, property) {
                    news.bodies.push((class, row, property, body.to_vec()));
                }
            }
        }
        news
    }
}

impl Before {
    fn copy(&mut self, class: usize, rows: &RowCells, mirror: &Mirror, kept: u64) {
        if kept == 0 {
            return;
        }
        for (row, mask) in mirror.changing(class) {
            self.starts.insert((class, row), self.cells.len());
            for property in (0..64).filter(|property| mask & kept & 1 << property != 0) {
                if rows.without_words() >> property & 1 == 1 {
                    self.bodies.extend(rows.body(row, property).map(|body| ((class, row, property), body)));
                    continue;
                }
                let (memory, start) = (rows.column(property), self.cells.len());
                self.cells.resize(start + memory.size(), 0);
                memory.read(row as usize, &mut self.cells[start..]);
            }
        }
    }

    /// The former cells of a row, one after the other by property, if it changed.
    pub fn cells(&self, class: usize, row: u32) -> Option<&[u8]> {
        self.starts.get(&(class, row)).map(|start| &self.cells[*start..])
    }

    /// The former value of a property without words, if there was one.
    pub fn body(&self, class: usize, row: u32, property: usize) -> Option<&[u8]> {
        self.bodies.get(&(class, row, property)).map(|body| &**body)
    }
}
