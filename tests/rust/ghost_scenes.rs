//! The scenes of `benches/ghosts`, which a program in Python makes too: `tests/py/test_ghost_scenes.py` compares that one.

#[allow(dead_code)]
#[path = "../../benches/ghosts/scene.rs"]
mod scene;

use std::sync::Arc;

use scene::{PLANS, SEED, Scene, Walkers};
use tickwire::replication::{
    Changes, ClassRelevancy, Column, Condition, GhostClass, GridConfig, HISTORY, Interest, Relevancy, Table,
    View,
};
use tickwire::wire::{Kind, Properties, Schema};

use crate::memory::requests;

#[test]
fn the_first_hundred_ticks_are_those_that_numpy_makes() {
    let mut lines = String::new();
    for plan in PLANS {
        let mut scene = Scene::new(plan, SEED);
        let mut checksum = scene.checksum(0);
        for _ in 0..100 {
            scene.step();
            checksum = scene.checksum(checksum);
        }
        lines += &format!("{} {checksum:08x}\n", plan.name);
    }
    let mut walkers = Walkers::new(SEED, 64, 2000.0, 30);
    let mut crc = crc32fast::Hasher::new();
    for tick in 0..=100 {
        if tick > 0 {
            walkers.step();
        }
        walkers.position.iter().flatten().for_each(|number| crc.update(&number.to_le_bytes()));
    }
    lines += &format!("walkers {:08x}\n", crc.finalize());
    assert_eq!(lines, include_str!("../../benches/ghosts/checksums.txt"));
}

#[test]
fn a_tenth_moves_and_a_third_of_the_cubes() {
    let moved = |name: &str, ticks: u32| {
        let mut scene = Scene::named(name);
        (0..ticks).for_each(|_| scene.step());
        let all: usize = (0..100)
            .map(|_| {
                scene.step();
                scene.moved.len()
            })
            .sum();
        all as f64 / 100.0 / scene.plan.entities as f64
    };
    assert!((0.098..0.102).contains(&moved("S2", 0)));
    let cubes = moved("C901", 1200);
    assert!((0.28..0.40).contains(&cubes), "{cubes}");
    assert_eq!((moved("S1", 0), moved("S3", 0)), (1.0, 0.0));
}

#[test]
fn ticks_of_a_table_and_its_relevancy_ask_for_no_memory() {
    let fields = [
        ("position", Kind::Vector { axes: 3, lo: -2000.0, hi: 2000.0, resolution: 1.0 / 512.0 }),
        ("health", Kind::Ranged { lo: 0, hi: 1000 }),
    ];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let class = Arc::new(GhostClass::new("Entity", properties, [Condition::Always; 2], 1000).unwrap());
    let near = GridConfig {
        property: 0,
        cell: 100.0,
        radius: 300.0,
        leave_radius: 320.0,
        linger: 2,
        far_weight: 0.25,
    };
    let mut rule = ClassRelevancy::new(&class, Relevancy::Grid(near)).unwrap();
    let (mut table, mut interest, mut changes) =
        (Table::new(class, HISTORY), Interest::default(), Changes::default());
    let mut scene = Scene::named("S1");
    (0..1000).for_each(|row| assert_eq!(table.spawn(), Ok(row)));
    let (mut position, mut health) = (vec![0; 24_000], vec![0; 2000]);
    let mut before = 0;
    for tick in 1..100 {
        scene.step();
        let numbers = scene.position.iter().flatten().map(|number| f64::from(*number).to_le_bytes());
        position.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number);
        let numbers = scene.health.iter().map(|number| number.to_le_bytes());
        health.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number);
        if tick == 80 {
            // The history is full, and the grid has had its cells.
            changes.entered.reserve(1000);
            changes.left.reserve(1000);
            before = requests();
        }
        let columns = [&position, &health].map(|cells| Column { cells, scan: true });
        table.update(tick, &columns).unwrap();
        rule.begin_tick(&table);
        changes.entered.clear();
        changes.left.clear();
        // It walks fast, so that much enters and leaves.
        let viewpoints = [[f64::from(tick) * 20.0 - 1200.0, 0.0, 0.0]];
        let view = View { viewpoints: &viewpoints, ..View::default() };
        rule.update(tick, &table, view, &mut interest, &mut changes);
        assert_eq!(table.changed().len(), 1000);
    }
    // A few more rows may linger than ever.
    assert!(requests() - before <= 2, "{}", requests() - before);
}
