//! Ghosts: the scenes of `scene.rs`, and the tables alone.

mod scene;
mod tables;

fn main() {
    tables::report();
}
