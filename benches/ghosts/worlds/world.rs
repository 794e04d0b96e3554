//! A world: the class of its objects, and their values frame by frame.

use tickwire::replication::{Condition, GhostClass};
use tickwire::wire::{Kind, Properties, Schema};

use crate::columns::Columns;
use crate::motions::{Crowd, Pile, Players, Ships};
use crate::scene::SEED;
use crate::{physics, scenes};

pub(crate) trait World {
    fn class(&self) -> GhostClass;

    fn rows(&self) -> usize;

    /// Ticks a second.
    fn hz(&self) -> u32;

    /// The part of the world that the client sees; none if it sees everything.
    fn view(&self) -> Option<View> {
        None
    }

    /// Writes the next frame's values; false after the last frame.
    fn step(&mut self, columns: &mut Columns) -> bool;
}

/// A client's place, how far it sees, and the bits that it gets in a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) place: [f64; 3],
    pub(crate) radius: f64,
    pub(crate) budget_bits: usize,
}

/// Makes a world, or says why it can't.
pub(crate) type Make = fn() -> Result<Box<dyn World>, String>;

/// The worlds by name. A number in a name is another seed's.
pub(crate) const WORLDS: [(&str, Make); 12] = [
    ("physics", physics::make),
    ("C901", || Ok(scenes::cubes(SEED))),
    ("C901-2", || Ok(scenes::cubes(2))),
    ("C901-3", || Ok(scenes::cubes(3))),
    ("pile", || Ok(Box::new(Pile::new(1)))),
    ("pile-2", || Ok(Box::new(Pile::new(2)))),
    ("crowd", || Ok(Box::new(Crowd::new(1)))),
    ("crowd-2", || Ok(Box::new(Crowd::new(2)))),
    ("players", || Ok(Box::new(Players::new(1)))),
    ("players-2", || Ok(Box::new(Players::new(2)))),
    ("ships", || Ok(Box::new(Ships::new(1)))),
    ("ships-2", || Ok(Box::new(Ships::new(2)))),
];

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
