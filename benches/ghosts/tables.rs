//! What the tables cost alone: rows that nobody wrote, rows that all changed, and a tenth of them.

use std::sync::Arc;

use crate::clock::{quantile, timed};
use crate::scene::Scene;
use tickwire::replication::{Column, Condition, GhostClass, HISTORY, Table};
use tickwire::wire::{Kind, Properties, Schema};

/// The scenes' entity: a position in steps of 1/512 m (21 bits an axis), a rotation by its smallest three in 9 bits each,
/// health of 10 bits and flags of 8.
pub(crate) fn entity(capacity: usize) -> Arc<GhostClass> {
    let fields = [
        ("position", Kind::Vector { axes: 3, lo: -2000.0, hi: 2000.0, resolution: 1.0 / 512.0 }),
        ("rotation", Kind::Rotation { bits: 9 }),
        ("health", Kind::Ranged { lo: 0, hi: 1000 }),
        ("flags", Kind::Bits { bits: 8 }),
    ];
    let properties = Properties::new(Schema::new(fields).expect("fields")).expect("few fields");
    let class = GhostClass::new("Entity", properties, [Condition::Always; 4], capacity as u32);
    Arc::new(class.expect("a class"))
}

/// The cells of [`entity`], as an application has them.
#[derive(Clone)]
pub(crate) struct Cells {
    position: Vec<u8>,
    rotation: Vec<u8>,
    health: Vec<u8>,
    flags: Vec<u8>,
}

impl Cells {
    pub(crate) fn new(rows: usize) -> Self {
        let zeros = |size| vec![0; rows * size];
        Cells { position: zeros(24), rotation: zeros(16), health: zeros(2), flags: zeros(1) }
    }

    /// Writes what moved in the scene's tick, or all.
    pub(crate) fn apply(&mut self, scene: &Scene, all: bool) {
        let every: Vec<u32> = if all { (0..scene.plan.entities as u32).collect() } else { Vec::new() };
        let position = self.position.as_chunks_mut::<8>().0;
        let rotation = self.rotation.as_chunks_mut::<4>().0;
        let health = self.health.as_chunks_mut::<2>().0;
        for i in if all { &every } else { &scene.moved } {
            let i = *i as usize;
            for axis in 0..3 {
                position[i * 3 + axis] = f64::from(scene.position[i][axis]).to_le_bytes();
            }
            let [w, x, y, z] = scene.rotation[i];
            rotation[i * 4..][..4].copy_from_slice(&[x, y, z, w].map(f32::to_le_bytes));
            health[i] = scene.health[i].to_le_bytes();
            self.flags[i] = scene.flags[i];
        }
    }

    /// As columns, which may have changed.
    pub(crate) fn columns(&self, scan: bool) -> [Column<'_>; 4] {
        [&self.position, &self.rotation, &self.health, &self.flags].map(|cells| Column { cells, scan })
    }

    /// As columns, to be written.
    pub(crate) fn columns_mut(&mut self) -> [&mut [u8]; 4] {
        [&mut self.position, &mut self.rotation, &mut self.health, &mut self.flags]
    }

    /// Panics when a row's cells aren't what these words stand for.
    pub(crate) fn check(&self, row: usize, words: &[u64], class: &GhostClass) {
        let mut body = vec![0; class.properties.schema().row_size()];
        class.properties.restore(words, &mut body);
        let columns = [(&self.position, 24), (&self.rotation, 16), (&self.health, 2), (&self.flags, 1)];
        for (property, (column, size)) in class.properties.each().iter().zip(columns) {
            let (field, cell) = (property.field(), &column[row * size..][..size]);
            assert_eq!(cell, &body[field.offset()..][..size], "{} of {row}", field.name());
        }
    }
}

/// What an update of 10,000 rows takes in microseconds of CPU: by what changed, and what comparing their memory takes.
pub(crate) fn report() -> Vec<(&'static str, f64)> {
    let mut rows = Vec::new();
    for (name, what) in [("S3", "none changed"), ("S2", "a tenth changed"), ("S6", "all changed")] {
        let mut scene = Scene::named(name);
        let entities = scene.plan.entities;
        let (mut table, mut cells) = (Table::new(entity(entities), HISTORY), Cells::new(entities));
        (0..entities).for_each(|_| _ = table.spawn());
        cells.apply(&scene, true);
        table.update(1, &cells.columns(true)).expect("values");
        let mut times = Vec::new();
        for tick in 2..202 {
            scene.step();
            cells.apply(&scene, false);
            let mut time = 0.0;
            timed(&mut time, || table.update(tick, &cells.columns(true)).expect("values"));
            times.push(time * 1e6);
        }
        // The first ones take memory for the history.
        rows.push((what, quantile(times.split_off(50), 0.5)));
    }
    let (cells, other) = (Cells::new(10_000), Cells::new(10_000));
    let times = (0..200).map(|_| {
        let mut time = 0.0;
        timed(&mut time, || {
            cells.position == other.position
                && cells.rotation == other.rotation
                && cells.health == other.health
                && cells.flags == other.flags
        });
        time * 1e6
    });
    rows.push(("memory compared", quantile(times.collect(), 0.5)));
    rows
}
