//! Motions besides falling cubes, so that the coder is judged by more than the scenes that it was made on.

use tickwire::replication::GhostClass;
use tickwire::wire::Kind;

use crate::columns::Columns;
use crate::scene::{Draws, Motion, Plan, Scene, Walkers};
use crate::world::{View, World, class, cube};

const FRAMES: u32 = 1200;

/// A heap of cubes: most of them tremble by a step or two, and now and then a push passes through a part of the heap.
pub(crate) struct Pile {
    seed: u64,
    tick: u32,
    /// Offsets from where each cube lies, and their velocities: a position and a rotation's vector.
    offsets: Vec<[f32; 6]>,
    speeds: Vec<[f32; 6]>,
}

impl Pile {
    pub(crate) const CUBES: usize = 901;

    pub(crate) fn new(seed: u64) -> Self {
        let still = vec![[0.0; 6]; Self::CUBES];
        Pile { seed, tick: 0, offsets: still.clone(), speeds: still }
    }

    fn advance(&mut self) {
        const DT: f32 = 1.0 / 60.0;
        let draws = Draws::new(self.seed, self.tick);
        // One neighborhood of 64 cubes is pushed in a tick of 30, on average.
        let pushed =
            draws.bits(0, 40).is_multiple_of(30).then(|| draws.bits(0, 41) as usize % Self::CUBES / 64);
        for (i, (offset, speed)) in self.offsets.iter_mut().zip(&mut self.speeds).enumerate() {
            let push = if pushed == Some(i / 64) { 1.5 } else { 0.0 };
            let trembles = draws.bits(i, 42) % 10 < 3;
            for axis in 0..6 {
                let kick = draws.signed(i, 43 + axis as u64);
                let tremble = if trembles { kick * 0.05 } else { 0.0 };
                // Friction ends slow motions.
                speed[axis] = (speed[axis] + kick * push + tremble - offset[axis] * 20.0 * DT) * 0.85;
                if speed[axis].abs() > 0.01 {
                    offset[axis] += speed[axis] * DT;
                }
            }
        }
    }
}

impl World for Pile {
    fn class(&self) -> GhostClass {
        cube(Self::CUBES)
    }

    fn rows(&self) -> usize {
        Self::CUBES
    }

    fn hz(&self) -> u32 {
        60
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        let begin = Draws::new(self.seed, 0);
        for (i, [x, y, z, a, b, c]) in self.offsets.iter().copied().enumerate() {
            let [dx, dy, dz] = begin.three(i, 0).map(|at| at * 8.0);
            columns.put_numbers(0, i, &[x + dx, y + dy, z + dz].map(f64::from));
            let [da, db, dc] = begin.three(i, 3);
            let q = [a + da, b + db, c + dc, 1.5];
            let length = q.iter().map(|it| it * it).sum::<f32>().sqrt();
            columns.put_singles(1, i, &q.map(|it| it / length));
            let is_moving = self.speeds[i].iter().any(|speed| speed.abs() > 0.1);
            columns.put_integer(2, i, is_moving.into());
        }
        self.tick += 1;
        self.advance();
        self.tick <= FRAMES
    }
}

/// People on a plain, who walk, run, turn and stop: two axes, a heading, 16-bit health and a state, no rotation.
pub(crate) struct Crowd {
    seed: u64,
    tick: u32,
    people: Vec<Person>,
}

#[derive(Clone, Copy, Default)]
struct Person {
    place: [f64; 2],
    heading: f64,
    speed: f64,
    turning: f64,
    health: u16,
}

impl Crowd {
    const PEOPLE: usize = 500;
    const REACH: f64 = 500.0;

    pub(crate) fn new(seed: u64) -> Self {
        let draws = Draws::new(seed, 0);
        let person = |i: usize| {
            let [x, y, heading] = draws.three(i, 0).map(f64::from);
            let place = [x * 400.0, y * 400.0];
            Person { place, heading: heading * 3.0, health: 60_000, ..Person::default() }
        };
        Crowd { seed, tick: 0, people: (0..Self::PEOPLE).map(person).collect() }
    }
}

impl World for Crowd {
    fn class(&self) -> GhostClass {
        let (lo, hi) = (-std::f64::consts::PI, std::f64::consts::PI);
        class(
            [
                ("place", Kind::Vector { axes: 2, lo: -512.0, hi: 512.0, resolution: 1.0 / 64.0 }),
                ("heading", Kind::Angle { lo, hi, resolution: hi / 512.0 }),
                ("health", Kind::Ranged { lo: 0, hi: 65_535 }),
                ("state", Kind::Ranged { lo: 0, hi: 2 }),
            ],
            Self::PEOPLE,
        )
    }

    fn rows(&self) -> usize {
        Self::PEOPLE
    }

    fn hz(&self) -> u32 {
        30
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        self.tick += 1;
        let draws = Draws::new(self.seed, self.tick);
        for (i, person) in self.people.iter_mut().enumerate() {
            // A new intent every two seconds.
            if draws.bits(i, 10).is_multiple_of(60) {
                person.speed = [0.0, 1.4, 1.4, 4.5][draws.bits(i, 11) as usize % 4];
                person.turning =
                    f64::from([0.0, 0.0, 1.0][draws.bits(i, 12) as usize % 3] * draws.signed(i, 13));
            }
            if person.speed > 0.0 {
                person.heading += person.turning / 30.0;
            }
            let way = [person.heading.cos(), person.heading.sin()];
            for (at, way) in person.place.iter_mut().zip(way) {
                *at = (*at + way * person.speed / 30.0).clamp(-Self::REACH, Self::REACH);
            }
            if draws.bits(i, 14).is_multiple_of(100) {
                person.health = person.health.wrapping_sub((draws.bits(i, 15) % 900) as u16);
            }
            let heading = person.heading.sin().atan2(person.heading.cos());
            columns.put_numbers(0, i, &person.place);
            columns.put_numbers(1, i, &[heading]);
            columns.put_integer(2, i, person.health.into());
            columns.put_integer(
                3,
                i,
                if person.speed == 0.0 { 0 } else { 1 + u64::from(person.speed > 2.0) },
            );
        }
        self.tick <= FRAMES
    }
}

/// Players' entities on a plain, of which a walking client sees those within 120 m, in 48 kbit/s.
pub(crate) struct Players {
    scene: Scene,
    walkers: Walkers,
}

impl Players {
    const REACH: f32 = 500.0;

    pub(crate) fn new(seed: u64) -> Self {
        let reach = [Self::REACH, 10.0, Self::REACH];
        let plan = Plan { name: "players", entities: 2000, motion: Motion::All, reach, hz: 30 };
        Players { scene: Scene::new(plan, seed), walkers: Walkers::new(seed, 1, Self::REACH, 30) }
    }
}

impl World for Players {
    fn class(&self) -> GhostClass {
        class(
            [
                ("position", Kind::Vector { axes: 3, lo: -512.0, hi: 512.0, resolution: 1.0 / 512.0 }),
                ("rotation", Kind::Rotation { bits: 9 }),
                ("health", Kind::Ranged { lo: 0, hi: 1000 }),
                ("flags", Kind::Bits { bits: 8 }),
            ],
            self.rows(),
        )
    }

    fn rows(&self) -> usize {
        self.scene.plan.entities
    }

    fn hz(&self) -> u32 {
        self.scene.plan.hz
    }

    fn view(&self) -> Option<View> {
        let [x, z] = self.walkers.position[0].map(f64::from);
        Some(View { place: [x, 0.0, z], radius: 120.0, budget_bits: 48_000 / 30 })
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        for i in 0..self.rows() {
            columns.put_numbers(0, i, &self.scene.position[i].map(f64::from));
            let [w, x, y, z] = self.scene.rotation[i];
            columns.put_singles(1, i, &[x, y, z, w]);
            columns.put_integer(2, i, self.scene.health[i].into());
            columns.put_integer(3, i, self.scene.flags[i].into());
        }
        self.scene.step();
        self.walkers.step();
        self.scene.tick <= FRAMES
    }
}

/// Ships whose places are bare singles, which nothing quantizes, with 16-bit hulls.
pub(crate) struct Ships(Scene);

impl Ships {
    pub(crate) fn new(seed: u64) -> Self {
        let plan = Plan { name: "ships", entities: 300, motion: Motion::All, reach: [5000.0; 3], hz: 30 };
        Ships(Scene::new(plan, seed))
    }
}

impl World for Ships {
    fn class(&self) -> GhostClass {
        let axis = |name| (name, Kind::Float);
        class([axis("x"), axis("y"), axis("z"), ("hull", Kind::Ranged { lo: 0, hi: 65_535 })], self.rows())
    }

    fn rows(&self) -> usize {
        self.0.plan.entities
    }

    fn hz(&self) -> u32 {
        self.0.plan.hz
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        for i in 0..self.rows() {
            for (axis, at) in self.0.position[i].into_iter().enumerate() {
                columns.put_singles(axis, i, &[at]);
            }
            columns.put_integer(3, i, u64::from(self.0.health[i]) * 65);
        }
        self.0.step();
        self.0.tick <= FRAMES
    }
}
