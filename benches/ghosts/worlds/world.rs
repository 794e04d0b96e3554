//! A world: the class of its objects, and their values frame by frame.

use tickwire::replication::{Condition, GhostClass};
use tickwire::wire::{Kind, Properties, Schema};

use crate::columns::Columns;
use crate::scene::SEED;
use crate::{physics, scenes};

pub(crate) trait World {
    fn class(&self) -> GhostClass;

    fn rows(&self) -> usize;

    /// Ticks a second.
    fn hz(&self) -> u32;

    /// Writes the next frame's values; false after the last frame.
    fn step(&mut self, columns: &mut Columns) -> bool;
}

/// Makes a world, or says why it can't.
pub(crate) type Make = fn() -> Result<Box<dyn World>, String>;

pub(crate) const WORLDS: [(&str, Make); 2] =
    [("physics", physics::make), ("C901", || Ok(scenes::cubes(SEED)))];

/// A class of these fields.
pub(crate) fn class<const N: usize>(fields: [(&str, Kind); N], rows: usize) -> GhostClass {
    let properties = Properties::new(Schema::new(fields).expect("fields")).expect("few fields");
    GhostClass::new("Object", properties, [Condition::Always; N], rows as u32).expect("a class")
}

/// The challenge's cube: a position in steps of 1/512 m, a rotation by its smallest three in 9 bits each, and a flag.
pub(crate) fn cube(rows: usize) -> GhostClass {
    class(
        [
            ("position", Kind::Vector { axes: 3, lo: -256.0, hi: 256.0, resolution: 1.0 / 512.0 }),
            ("rotation", Kind::Rotation { bits: 9 }),
            ("flag", Kind::Bool),
        ],
        rows,
    )
}
