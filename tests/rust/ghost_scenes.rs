//! The scenes of `benches/ghosts`, which a program in Python makes too: `tests/py/test_ghost_scenes.py` compares that one.

#[allow(dead_code)]
#[path = "../../benches/ghosts/scene.rs"]
mod scene;

use scene::{PLANS, Scene};

#[test]
fn the_first_hundred_ticks_are_those_that_numpy_makes() {
    let mut lines = String::new();
    for plan in PLANS {
        let mut scene = Scene::new(plan);
        let mut checksum = scene.checksum(0);
        for _ in 0..100 {
            scene.step();
            checksum = scene.checksum(checksum);
        }
        lines += &format!("{} {checksum:08x}\n", plan.name);
    }
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
