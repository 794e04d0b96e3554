//! The world of the ghosts' benches, tick by tick: the same as `scene.py` makes, bit for bit.
//!
//! What is random comes from a hash of (seed, stream, tick, entity), so that nothing depends on an order; numbers are IEEE
//! singles under + - * / and square roots, each rounded by itself. The first hundred ticks of both are compared with
//! `checksums.txt`.
//!
//! | scene | entities | moving each tick | where | Hz |
//! |---|---|---|---|---|
//! | S1 | 1,000 | all | a cube of +-1,000 m | 30 |
//! | S2 | 10,000 | a random tenth | as S1 | 30 |
//! | S3 | 10,000 | none | as S1 | 30 |
//! | S6 | 10,000 | all | 4 km x 4 km, +-10 m high | 30 |
//! | S6b | 10,000 | a random tenth | as S6 | 30 |
//! | C901 | 901 cubes that fall, bounce, rest and are kicked | about a third | 100 m x 100 m | 60 |
//!
//! Random walks: with each move a velocity is multiplied by 0.98 and gets up to +-0.5 m/s an axis (about 1.5 m/s an axis in
//! the long run), a spin is multiplied by 0.98 and gets up to +-0.2 rad/s (about 0.6). At a bound an entity stops and turns
//! round. Health changes in 1 % of the moves, flags in 0.5 %. Cubes are kicked, while they rest, with a chance of 1 in 200 a
//! tick, upwards with 3 to 6 m/s; a bounce keeps half of the height's velocity and 0.7 of the rest; below 1 m/s they rest.

pub(crate) const SEED: u32 = 20_240_607;

/// The parameters of a scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) entities: usize,
    /// Of 2^32 draws: those that move.
    pub(crate) moving: u64,
    /// Where they are, from minus to plus, by axis.
    pub(crate) reach: [f32; 3],
    pub(crate) hz: u32,
    pub(crate) cubes: bool,
}

const CUBE: [f32; 3] = [1000.0; 3];
const PLAIN: [f32; 3] = [2000.0, 2000.0, 10.0];
const ALL: u64 = 1 << 32;
const TENTH: u64 = ALL / 10;

const fn plan(name: &'static str, entities: usize, moving: u64, reach: [f32; 3]) -> Plan {
    Plan { name, entities, moving, reach, hz: 30, cubes: false }
}

pub(crate) const PLANS: [Plan; 6] = [
    plan("S1", 1000, ALL, CUBE),
    plan("S2", 10_000, TENTH, CUBE),
    plan("S3", 10_000, 0, CUBE),
    plan("S6", 10_000, ALL, PLAIN),
    plan("S6b", 10_000, TENTH, PLAIN),
    Plan { name: "C901", entities: 901, moving: 0, reach: [50.0, 50.0, 100.0], hz: 60, cubes: true },
];

/// What draws are for.
mod stream {
    pub(crate) const POSITION: u32 = 0;
    pub(crate) const ROTATION: u32 = 3;
    pub(crate) const HEALTH: u32 = 7;
    pub(crate) const FLAGS: u32 = 8;
    pub(crate) const MOVES: u32 = 9;
    pub(crate) const VELOCITY: u32 = 10;
    pub(crate) const SPIN: u32 = 13;
    pub(crate) const HEALTH_CHANGES: u32 = 16;
    pub(crate) const FLAGS_CHANGE: u32 = 18;
    pub(crate) const KICKED: u32 = 20;
}

const HURT: u32 = (ALL / 100) as u32;
const FLAGGED: u32 = (ALL / 200) as u32;
const KICK: u32 = (ALL / 200) as u32;

fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7FEB_352D);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

const GOLDEN: u32 = 0x9E37_79B9;

/// Draws of one stream in one tick.
#[derive(Clone, Copy)]
struct Draws(u32);

impl Draws {
    fn new(stream: u32, tick: u32) -> Self {
        Draws(mix(mix(SEED ^ stream.wrapping_mul(GOLDEN)).wrapping_add(tick)))
    }

    fn of(self, entity: usize) -> u32 {
        mix(self.0.wrapping_add((entity as u32).wrapping_mul(GOLDEN)))
    }

    /// In [0, 1).
    fn unit(self, entity: usize) -> f32 {
        (self.of(entity) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// In [-1, 1).
    fn signed(self, entity: usize) -> f32 {
        self.unit(entity) * 2.0 - 1.0
    }
}

/// A scene in one of its ticks.
pub(crate) struct Scene {
    pub(crate) plan: Plan,
    pub(crate) tick: u32,
    pub(crate) position: Vec<[f32; 3]>,
    /// x, y, z, w.
    pub(crate) rotation: Vec<[f32; 4]>,
    pub(crate) health: Vec<u16>,
    pub(crate) flags: Vec<u8>,
    /// What moved in this tick, rising.
    pub(crate) moved: Vec<u32>,
    velocity: Vec<[f32; 3]>,
    spin: Vec<[f32; 3]>,
}

impl Scene {
    pub(crate) fn named(name: &str) -> Self {
        Self::new(*PLANS.iter().find(|plan| plan.name == name).expect("a scene"))
    }

    /// A scene before its first tick.
    pub(crate) fn new(plan: Plan) -> Self {
        let draws = |stream: u32| Draws::new(stream, 0);
        let signed = |stream: u32, i: usize| draws(stream).signed(i);
        let three = |stream: u32, i: usize| [0, 1, 2].map(|axis| signed(stream + axis, i));
        let each = 0..plan.entities;
        let position = each.clone().map(|i| {
            if plan.cubes {
                let (row, column) = ((i / 30) as f32, (i % 30) as f32);
                let height = draws(stream::POSITION).unit(i) * 9.0 + 1.0;
                return [column - 15.0, row - 15.0, height];
            }
            let [x, y, z] = three(stream::POSITION, i);
            [x * plan.reach[0], y * plan.reach[1], z * plan.reach[2]]
        });
        let rotation = each.clone().map(|i| {
            let q = [0, 1, 2, 3].map(|axis| signed(stream::ROTATION + axis, i));
            normalized([q[0], q[1], q[2], q[3] + 2.0])
        });
        let scaled = |stream: u32, by: f32, i: usize| three(stream, i).map(|it| it * by);
        let still = if plan.cubes { 0.0 } else { 1.0 };
        let health = |i| if plan.cubes { 1000 } else { (draws(stream::HEALTH).of(i) % 1001) as u16 };
        let flags = |i| if plan.cubes { 0 } else { draws(stream::FLAGS).of(i) as u8 };
        Scene {
            plan,
            tick: 0,
            position: position.collect(),
            rotation: rotation.collect(),
            health: each.clone().map(health).collect(),
            flags: each.clone().map(flags).collect(),
            moved: Vec::new(),
            velocity: each.clone().map(|i| scaled(stream::VELOCITY, 2.5 * still, i)).collect(),
            spin: each.map(|i| scaled(stream::SPIN, 1.0 * still, i)).collect(),
        }
    }

    /// Goes on by a tick.
    pub(crate) fn step(&mut self) {
        self.tick += 1;
        self.moved.clear();
        if self.plan.cubes {
            return self.step_cubes();
        }
        let Plan { moving, reach, .. } = self.plan;
        let dt = 1.0 / self.plan.hz as f32;
        let draws = |stream: u32| Draws::new(stream, self.tick);
        let moves = draws(stream::MOVES);
        let kicks = [0, 1, 2].map(|axis| draws(stream::VELOCITY + axis));
        let twists = [0, 1, 2].map(|axis| draws(stream::SPIN + axis));
        let (hurt, healths) = (draws(stream::HEALTH_CHANGES), draws(stream::HEALTH_CHANGES + 1));
        let (flagged, flags) = (draws(stream::FLAGS_CHANGE), draws(stream::FLAGS_CHANGE + 1));
        for i in 0..self.plan.entities {
            if u64::from(moves.of(i)) >= moving {
                continue;
            }
            self.moved.push(i as u32);
            for axis in 0..3 {
                let v = self.velocity[i][axis] * 0.98 + kicks[axis].signed(i) * 0.5;
                let p = self.position[i][axis] + v * dt;
                let out = p > reach[axis] || p < -reach[axis];
                self.velocity[i][axis] = if out { -v } else { v };
                self.position[i][axis] = p.min(reach[axis]).max(-reach[axis]);
                self.spin[i][axis] = self.spin[i][axis] * 0.98 + twists[axis].signed(i) * 0.2;
            }
            self.rotation[i] = turned(self.rotation[i], self.spin[i], dt * 0.5);
            if hurt.of(i) < HURT {
                self.health[i] = (healths.of(i) % 1001) as u16;
            }
            if flagged.of(i) < FLAGGED {
                self.flags[i] = flags.of(i) as u8;
            }
        }
    }

    fn step_cubes(&mut self) {
        const FLOOR: f32 = 0.2;
        let dt = 1.0 / self.plan.hz as f32;
        let reach = self.plan.reach;
        let draws = |stream: u32| Draws::new(stream, self.tick);
        let kicked = draws(stream::KICKED);
        let kicks = [0, 1, 2].map(|axis| draws(stream::VELOCITY + axis));
        let twists = [0, 1, 2].map(|axis| draws(stream::SPIN + axis));
        for i in 0..self.plan.entities {
            if self.flags[i] == 1 {
                if kicked.of(i) >= KICK {
                    continue;
                }
                self.velocity[i] =
                    [kicks[0].signed(i) * 2.0, kicks[1].signed(i) * 2.0, kicks[2].unit(i) * 3.0 + 3.0];
                self.spin[i] = twists.map(|draws| draws.signed(i) * 4.0);
                self.flags[i] = 0;
            }
            self.moved.push(i as u32);
            let (v, p) = (&mut self.velocity[i], &mut self.position[i]);
            v[2] -= 9.81 * dt;
            for axis in 0..3 {
                p[axis] += v[axis] * dt;
            }
            for axis in 0..2 {
                if p[axis] > reach[axis] || p[axis] < -reach[axis] {
                    v[axis] = -v[axis];
                }
                p[axis] = p[axis].min(reach[axis]).max(-reach[axis]);
            }
            self.rotation[i] = turned(self.rotation[i], self.spin[i], dt * 0.5);
            if p[2] < FLOOR {
                p[2] = FLOOR;
                if v[2] > -1.0 {
                    *v = [0.0; 3];
                    self.spin[i] = [0.0; 3];
                    self.flags[i] = 1;
                } else {
                    *v = [v[0] * 0.7, v[1] * 0.7, -v[2] * 0.5];
                    self.spin[i] = self.spin[i].map(|spin| spin * 0.7);
                }
            }
        }
    }

    /// CRC-32 of all that is seen and of what moved, after `before`.
    pub(crate) fn checksum(&self, before: u32) -> u32 {
        let mut crc = crc32fast::Hasher::new_with_initial(before);
        for number in self.position.iter().flatten().chain(self.rotation.iter().flatten()) {
            crc.update(&number.to_le_bytes());
        }
        self.health.iter().for_each(|health| crc.update(&health.to_le_bytes()));
        crc.update(&self.flags);
        self.moved.iter().for_each(|entity| crc.update(&entity.to_le_bytes()));
        crc.finalize()
    }
}

fn normalized(q: [f32; 4]) -> [f32; 4] {
    let length = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
    q.map(|it| it / length)
}

/// A rotation after a spin for twice the time `half`.
fn turned(q: [f32; 4], spin: [f32; 3], half: f32) -> [f32; 4] {
    let ([x, y, z, w], [a, b, c]) = (q, spin);
    normalized([
        x + half * (a * w + b * z - c * y),
        y + half * (b * w + c * x - a * z),
        z + half * (c * w + a * y - b * x),
        w - half * (a * x + b * y + c * z),
    ])
}
