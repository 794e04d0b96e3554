//! Scenes of `benches/ghosts/scene.rs` as worlds.

use tickwire::replication::GhostClass;

use crate::columns::Columns;
use crate::scene::{PLANS, Scene};
use crate::world::{World, cube};

/// Frames of a scene: as many as the recorded physics has.
const FRAMES: u32 = 2830;

struct Cubes(Scene);

/// Falling cubes with this seed.
pub(crate) fn cubes(seed: u64) -> Box<dyn World> {
    let plan = PLANS.iter().find(|plan| plan.name == "C901").expect("a scene");
    Box::new(Cubes(Scene::new(*plan, seed)))
}

impl World for Cubes {
    fn class(&self) -> GhostClass {
        cube(self.rows())
    }

    fn rows(&self) -> usize {
        self.0.plan.entities
    }

    fn hz(&self) -> u32 {
        self.0.plan.hz
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        if self.0.tick == FRAMES {
            return false;
        }
        // All rows, so that the first frame is complete.
        for row in 0..self.rows() {
            columns.put_numbers(0, row, &self.0.position[row].map(f64::from));
            let [w, x, y, z] = self.0.rotation[row];
            columns.put_singles(1, row, &[x, y, z, w]);
            columns.put_integer(2, row, (self.0.flags[row] & 1).into());
        }
        self.0.step();
        true
    }
}
