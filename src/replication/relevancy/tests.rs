use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::class::Condition;
use super::super::table::Column;
use super::*;
use crate::rng::Rng;
use crate::wire::{Properties, Schema};

const RULE: GridConfig =
    GridConfig { property: 0, cell: 5.0, radius: 20.0, leave_radius: 25.0, linger: 3, far_weight: 1.0 };

fn class(axes: u32, reach: f64) -> Arc<GhostClass> {
    let position = Kind::Vector { axes, lo: -reach, hi: reach, resolution: 0.25 };
    let fields = [("position", position), ("health", Kind::Ranged { lo: 0, hi: 100 })];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    Arc::new(GhostClass::new("Tank", properties, [Condition::Always; 2], 2000).unwrap())
}

/// A table of rows at random quarter positions.
struct World {
    table: Table,
    position: Vec<f64>,
    axes: usize,
    tick: u32,
}

impl World {
    fn new(class: &Arc<GhostClass>, axes: usize) -> Self {
        World { table: Table::new(class.clone(), 4), position: vec![0.0; 2000 * axes], axes, tick: 0 }
    }

    fn spawn(&mut self, at: &[f64]) -> u32 {
        let row = self.table.spawn().unwrap();
        self.put(row, at);
        row
    }

    fn put(&mut self, row: u32, at: &[f64]) {
        self.position[row as usize * self.axes..][..self.axes].copy_from_slice(&at[..self.axes]);
    }

    fn at(&self, row: u32) -> &[f64] {
        &self.position[row as usize * self.axes..][..self.axes]
    }

    fn tick(&mut self) {
        self.tick += 1;
        let cells: Vec<u8> = self.position.iter().flat_map(|number| number.to_le_bytes()).collect();
        let health = vec![0; 2000];
        let columns = [Column { cells: &cells, scan: true }, Column { cells: &health, scan: true }];
        self.table.update(self.tick, &columns).unwrap();
    }

    fn update(&self, rule: &ClassRelevancy, view: View<'_>, interest: &mut Interest) -> (Vec<u32>, Vec<u32>) {
        let mut changes = Changes::default();
        rule.update(self.tick, &self.table, view, interest, &mut changes);
        (changes.entered, changes.left)
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// A client: its ghosts, its viewpoints, and the rows it should have with the tick when each was last near.
type Watcher = (Interest, Vec<[f64; 3]>, BTreeMap<u32, u32>);

/// Random walks, spawns and despawns: each client has exactly what a brute-force comparison gives.
#[test]
fn a_grid_finds_what_comparing_all_with_all_finds() {
    for seed in 0..40 {
        let mut rng = Rng::seeded(seed);
        let axes = 2 + seed as usize % 2;
        // Some worlds are a single cell, some have far more cells than there may be rows.
        let reach = [10.0, 100.0, 50_000.0][seed as usize % 3];
        let cell = [5.0, 0.01, 70.0][(seed as usize / 3) % 3];
        let class = class(axes as u32, reach);
        let config = GridConfig { cell, linger: seed as u32 % 4, ..RULE };
        let mut rule = ClassRelevancy::new(&class, Relevancy::Grid(config)).unwrap();
        let mut world = World::new(&class, axes);
        let spread = reach.min(120.0);
        let mut clients: Vec<Watcher> = (0..4).map(|_| Default::default()).collect();
        for _ in 0..25 {
            let some = |rng: &mut Rng| -> [f64; 3] {
                core::array::from_fn(|_| ((rng.unit() * 2.0 - 1.0) * spread * 4.0).round() / 4.0)
            };
            for _ in 0..rng.below(30) {
                let at = some(&mut rng);
                world.spawn(&at);
            }
            for row in 0..world.table.rows() as u32 {
                if rng.chance(0.05) && world.table.despawn(row) {
                    world.table.release(row);
                    for (interest, _, expected) in &mut clients {
                        interest.forget(row);
                        expected.remove(&row);
                    }
                } else if rng.chance(0.4) {
                    let step = |rng: &mut Rng| (rng.below(41) as f64 - 20.0) / 4.0;
                    let at: Vec<f64> =
                        world.at(row).iter().map(|at| (at + step(&mut rng)).clamp(-reach, reach)).collect();
                    world.put(row, &at);
                }
            }
            world.tick();
            rule.begin_tick(&world.table);
            for (client, (interest, views, expected)) in clients.iter_mut().enumerate() {
                // The last client looks from its own objects; the others from one or two places, possibly far outside.
                let owned: Vec<u32> = if client == 3 {
                    (0..world.table.rows() as u32).step_by(97).collect()
                } else {
                    Vec::new()
                };
                if client < 3 && (views.is_empty() || rng.chance(0.7)) {
                    *views = (0..=client % 2).map(|_| some(&mut rng).map(|at| at * 1.5)).collect();
                }
                let view = View { owned: &owned, viewpoints: views, mask: &[] };
                let (entered, left) = world.update(&rule, view, interest);
                let mut from: Vec<Vec<f64>> = views.iter().map(|view| view[..axes].to_vec()).collect();
                let alive = |row: &u32| world.table.is_alive(*row) && world.table.has_state(*row);
                if client == 3 {
                    from.extend(owned.iter().filter(|row| alive(row)).map(|row| world.at(*row).to_vec()));
                }
                let (mut came, mut went) = (Vec::new(), Vec::new());
                for row in (0..world.table.rows() as u32).filter(alive) {
                    let nearest =
                        from.iter().map(|from| distance(from, world.at(row))).fold(f64::INFINITY, f64::min);
                    let owns = owned.contains(&row);
                    if owns || nearest <= config.radius {
                        if expected.insert(row, world.tick).is_none() {
                            came.push(row);
                        }
                    } else if let Some(near) = expected.get_mut(&row) {
                        if nearest <= config.leave_radius {
                            *near = world.tick;
                        } else if world.tick - *near > config.linger {
                            went.push(row);
                            expected.remove(&row);
                        }
                    }
                }
                let mut left = left;
                left.sort_unstable();
                assert_eq!(
                    (entered, left),
                    (came, went),
                    "seed {seed}, tick {}, client {client}",
                    world.tick
                );
                let has: Vec<u32> = (0..2000).filter(|row| interest.contains(*row)).collect();
                assert_eq!(has, expected.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn all_rows_matter_once_they_have_a_state() {
    let class = class(2, 100.0);
    let mut world = World::new(&class, 2);
    let mut rule = ClassRelevancy::new(&class, Relevancy::Always).unwrap();
    let mut interest = Interest::default();
    (0..70).for_each(|_| _ = world.spawn(&[0.0, 0.0]));
    rule.begin_tick(&world.table);
    assert_eq!(world.update(&rule, View::default(), &mut interest), (vec![], vec![]));
    world.tick();
    rule.begin_tick(&world.table);
    assert_eq!(world.update(&rule, View::default(), &mut interest), ((0..70).collect(), vec![]));
    assert_eq!(world.update(&rule, View::default(), &mut interest), (vec![], vec![]));
    world.table.despawn(3);
    world.table.release(3);
    interest.forget(3);
    world.spawn(&[1.0, 1.0]);
    world.tick();
    rule.begin_tick(&world.table);
    assert_eq!(
        world.update(&rule, View::default(), &mut interest),
        (vec![3], vec![]),
        "another of that number"
    );
    world.table.despawn(5);
    world.tick();
    rule.begin_tick(&world.table);
    assert_eq!(world.update(&rule, View::default(), &mut interest), (vec![], vec![]));
    assert!(!interest.contains(5), "what ended doesn't leave");
}

#[test]
fn owners_and_masks_say_what_matters() {
    let class = class(2, 100.0);
    let mut world = World::new(&class, 2);
    (0..130).for_each(|_| _ = world.spawn(&[0.0, 0.0]));
    world.tick();
    let mut rule = ClassRelevancy::new(&class, Relevancy::Owner).unwrap();
    rule.begin_tick(&world.table);
    let mut interest = Interest::default();
    let owned = |owned| View { owned, ..View::default() };
    assert_eq!(world.update(&rule, owned(&[2, 129, 500]), &mut interest), (vec![2, 129], vec![]));
    assert_eq!(world.update(&rule, owned(&[129, 1]), &mut interest), (vec![1], vec![2]));

    let mut rule = ClassRelevancy::new(&class, Relevancy::Mask).unwrap();
    rule.begin_tick(&world.table);
    let mut interest = Interest::default();
    let mut mask = vec![0; 300];
    (mask[0], mask[128], mask[200]) = (1, 255, 1);
    let by = |mask| View { mask, ..View::default() };
    assert_eq!(world.update(&rule, by(&mask), &mut interest), (vec![0, 128], vec![]));
    assert_eq!(
        world.update(&rule, by(&mask[..100]), &mut interest),
        (vec![], vec![128]),
        "what is missing is 0"
    );
}

#[test]
fn what_comes_back_while_it_lingers_stays() {
    let class = class(2, 100.0);
    let mut world = World::new(&class, 2);
    let row = world.spawn(&[19.0, 0.0]);
    let mut rule = ClassRelevancy::new(&class, Relevancy::Grid(RULE)).unwrap();
    let mut interest = Interest::default();
    let mut told = Vec::new();
    for x in [19.0, 24.0, 26.0, 26.0, 26.0, 24.0, 26.0, 26.0, 26.0, 26.0, 24.0, 20.0] {
        world.put(row, &[x, 0.0]);
        world.tick();
        rule.begin_tick(&world.table);
        let view = View { viewpoints: &[[0.0; 3]], ..View::default() };
        let (entered, left) = world.update(&rule, view, &mut interest);
        told.push((entered.len(), left.len()));
    }
    let (no, in_, out) = ((0, 0), (1, 0), (0, 1));
    assert_eq!(told, [in_, no, no, no, no, no, no, no, no, out, no, in_]);
}

/// Many rows that linger and end cost no more than one look each.
#[test]
fn rows_that_end_while_they_linger_are_others_when_they_come_again() {
    const ROWS: u32 = 2000;
    let class = class(2, 100.0);
    let mut world = World::new(&class, 2);
    (0..ROWS).for_each(|_| _ = world.spawn(&[0.0, 0.0]));
    let rule = Relevancy::Grid(GridConfig { linger: 10, ..RULE });
    let mut rule = ClassRelevancy::new(&class, rule).unwrap();
    let mut interest = Interest::default();
    let mut look = |world: &mut World, interest: &mut Interest, x: f64| {
        world.tick();
        rule.begin_tick(&world.table);
        world.update(&rule, View { viewpoints: &[[x, 0.0, 0.0]], ..View::default() }, interest)
    };
    assert_eq!(look(&mut world, &mut interest, 0.0).0.len(), ROWS as usize);
    assert_eq!(look(&mut world, &mut interest, 90.0), (vec![], vec![]));
    for row in (0..ROWS).rev() {
        world.table.despawn(row);
        world.table.release(row);
        interest.forget(row);
    }
    // Row 0 is reused, seen, and lingers from then on, not from when the former one did.
    (0..7).for_each(|_| assert_eq!(look(&mut world, &mut interest, 90.0), (vec![], vec![])));
    assert_eq!(world.spawn(&[0.0, 0.0]), 0);
    assert_eq!(look(&mut world, &mut interest, 0.0), (vec![0], vec![]));
    (0..10).for_each(|_| assert_eq!(look(&mut world, &mut interest, 90.0), (vec![], vec![])));
    assert_eq!(look(&mut world, &mut interest, 90.0), (vec![], vec![0]));
    assert!(!interest.is_waiting());
}

#[test]
fn a_still_world_matters_otherwise_when_who_looks_changes() {
    let class = class(2, 100.0);
    let mut world = World::new(&class, 2);
    let (far, near) = (world.spawn(&[90.0, 0.0]), world.spawn(&[0.0, 0.0]));
    world.tick();
    let rule = Relevancy::Grid(GridConfig { linger: 0, ..RULE });
    let mut rule = ClassRelevancy::new(&class, rule).unwrap();
    rule.begin_tick(&world.table);
    let mut interest = Interest::default();
    let both = [[0.0; 3], [90.0, 0.0, 0.0]];
    let owned = [far];
    let view = |owned, viewpoints| View { owned, viewpoints, mask: &[] };
    assert_eq!(world.update(&rule, view(&owned[..], &both[..1]), &mut interest), (vec![far, near], vec![]));
    world.tick();
    rule.begin_tick(&world.table);
    assert_eq!(world.update(&rule, view(&[], &both[..1]), &mut interest), (vec![], vec![far]), "given away");
    assert_eq!(world.update(&rule, view(&[], &both), &mut interest), (vec![far], vec![]));
    assert_eq!(world.update(&rule, view(&[], &both[..1]), &mut interest), (vec![], vec![far]), "a view less");
}

#[test]
fn wrong_grids_are_refused_with_what_is_wrong() {
    let class = class(2, 100.0);
    let error = |config| ClassRelevancy::new(&class, Relevancy::Grid(config)).unwrap_err().to_string();
    assert_eq!(
        error(GridConfig { property: 2, ..RULE }),
        "grid's property must be one of the class's, not number 2"
    );
    assert_eq!(error(GridConfig { property: 1, ..RULE }), "grid's property must be a vector, not \"health\"");
    let weight = GridConfig { far_weight: 1.5, ..RULE };
    assert_eq!(error(weight), "grid's far_weight must be above 0 and at most 1, not 1.5");
    assert_eq!(error(GridConfig { cell: 0.0, ..RULE }), "grid's cell must be above 0 and finite, not 0");
    assert_eq!(
        error(GridConfig { radius: f64::NAN, ..RULE }),
        "grid's radius must be above 0 and finite, not NaN"
    );
    assert_eq!(
        error(GridConfig { leave_radius: 19.0, ..RULE }),
        "grid's leave_radius must be at least 20 and finite, not 19"
    );
}
