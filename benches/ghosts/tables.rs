//! What the tables cost alone: rows that nobody wrote, rows that all changed, and a tenth of them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use crate::scene::Scene;
use tickwire::replication::{Column, Condition, GhostClass, HISTORY, Table};
use tickwire::wire::{Kind, Properties, Schema};

/// The scenes' entity: a position in steps of 1/512 m (21 bits an axis), a rotation by its smallest three in 9 bits each,
/// health of 10 bits and flags of 8.
pub fn entity(capacity: usize) -> Arc<GhostClass> {
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
pub struct Cells {
    position: Vec<u8>,
    rotation: Vec<u8>,
    health: Vec<u8>,
    flags: Vec<u8>,
}

impl Cells {
    pub fn new(rows: usize) -> Self {
        let zeros = |size| vec![0; rows * size];
        Cells { position: zeros(24), rotation: zeros(16), health: zeros(2), flags: zeros(1) }
    }

    /// Writes what moved in the scene's tick, or all.
    pub fn apply(&mut self, scene: &Scene, all: bool) {
        let every: Vec<u32> = if all { (0..scene.plan.entities as u32).collect() } else { Vec::new() };
        let position = self.position.as_chunks_mut::<8>().0;
        let rotation = self.rotation.as_chunks_mut::<4>().0;
        let health = self.health.as_chunks_mut::<2>().0;
        for i in if all { &every } else { &scene.moved } {
            let i = *i as usize;
            for axis in 0..3 {
                position[i * 3 + axis] = f64::from(scene.position[i][axis]).to_le_bytes();
            }
            for axis in 0..4 {
                rotation[i * 4 + axis] = scene.rotation[i][axis].to_le_bytes();
            }
            health[i] = scene.health[i].to_le_bytes();
            self.flags[i] = scene.flags[i];
        }
    }

    /// As columns, all of which may have changed.
    pub fn columns(&self) -> [Column<'_>; 4] {
        [&self.position, &self.rotation, &self.health, &self.flags].map(|cells| Column { cells, scan: true })
    }
}

/// The median of some times, in microseconds.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2] * 1e6
}

fn timed<T>(times: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = black_box(work());
    times.push(start.elapsed().as_secs_f64());
    made
}

pub fn report() {
    for (name, what) in [("S3", "none of 10,000"), ("S2", "a tenth"), ("S6", "all")] {
        let mut scene = Scene::named(name);
        let rows = scene.plan.entities;
        let (mut table, mut cells) = (Table::new(entity(rows), HISTORY), Cells::new(rows));
        (0..rows).for_each(|_| _ = table.spawn());
        cells.apply(&scene, true);
        table.update(1, &cells.columns()).expect("values");
        let (mut update, mut apply, mut changed) = (Vec::new(), Vec::new(), 0);
        for tick in 2..202 {
            scene.step();
            timed(&mut apply, || cells.apply(&scene, false));
            timed(&mut update, || table.update(tick, &cells.columns()).expect("values"));
            changed += table.changed().len();
        }
        let (apply, update, changed) = (median(apply), median(update.split_off(50)), changed / 200);
        println!("{name}: {what} changed ({changed} a tick): writes {apply:.1} us, update {update:.1} us");
    }
    let (cells, other) = (Cells::new(10_000), Cells::new(10_000));
    let mut compare = Vec::new();
    for _ in 0..200 {
        timed(&mut compare, || {
            cells.position == other.position
                && cells.rotation == other.rotation
                && cells.health == other.health
                && cells.flags == other.flags
        });
    }
    println!("memcmp of 10,000 rows: {:.1} us", median(compare));
}
