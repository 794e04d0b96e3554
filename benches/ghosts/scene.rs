//! The worlds of the ghosts' benches: `scene.py` makes the same ones, bit for bit.
//!
//! Random numbers are a hash of (seed, tick, entity, lane). Everything else is single precision under + - * / and square
//! roots, each rounded by itself. Lengths are in meters, and y points up.
//!
//! | scene | entities | moving in a tick | where | ticks a second |
//! |---|---|---|---|---|
//! | S1 | 1,000 | all | +-1,000 m along each axis | 30 |
//! | S2 | 10,000 | a random tenth | as S1 | 30 |
//! | S3 | 10,000 | none | as S1 | 30 |
//! | S6 | 10,000 | all | 4 km x 4 km, +-10 m high | 30 |
//! | S6b | 10,000 | a random tenth | as S6 | 30 |
//! | C901 | 901 cubes that fall, bounce, rest and are kicked | about a third | 32 m x 32 m | 60 |
//!
//! Velocities and spins are random walks within bounds; at the edge of the world an entity turns round. Health changes in
//! 1 % of the moves, flags in 0.5 %.

pub(crate) const SEED: u64 = 20_240_607;

/// Which entities move in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    All,
    Tenth,
    None,
    /// Cubes fall, bounce and rest until something kicks them.
    Cubes,
}

/// The parameters of a scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) entities: usize,
    pub(crate) motion: Motion,
    /// The farthest that an entity gets from the middle, by axis.
    pub(crate) reach: [f32; 3],
    pub(crate) hz: u32,
}

const WIDE: [f32; 3] = [1000.0; 3];
const FLAT: [f32; 3] = [2000.0, 10.0, 2000.0];

const fn plan(name: &'static str, entities: usize, motion: Motion, reach: [f32; 3]) -> Plan {
    Plan { name, entities, motion, reach, hz: 30 }
}

pub(crate) const PLANS: [Plan; 6] = [
    plan("S1", 1000, Motion::All, WIDE),
    plan("S2", 10_000, Motion::Tenth, WIDE),
    plan("S3", 10_000, Motion::None, WIDE),
    plan("S6", 10_000, Motion::All, FLAT),
    plan("S6b", 10_000, Motion::Tenth, FLAT),
    Plan { hz: 60, ..plan("C901", 901, Motion::Cubes, [16.0, 4.0, 16.0]) },
];

fn splitmix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// The random numbers of a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64, tick: u32) -> Self {
        Draws(splitmix(seed ^ u64::from(tick) << 40))
    }

    pub(crate) fn bits(self, entity: usize, lane: u64) -> u64 {
        splitmix(self.0 ^ (entity as u64) << 8 ^ lane)
    }

    /// A number from -1 to below 1.
    pub(crate) fn signed(self, entity: usize, lane: u64) -> f32 {
        (self.bits(entity, lane) >> 40) as f32 / 8_388_608.0 - 1.0
    }

    /// The numbers of this lane and the next two.
    pub(crate) fn three(self, entity: usize, lane: u64) -> [f32; 3] {
        [0, 1, 2].map(|axis| self.signed(entity, lane + axis))
    }
}

/// A scene in one of its ticks.
pub(crate) struct Scene {
    pub(crate) plan: Plan,
    pub(crate) tick: u32,
    pub(crate) position: Vec<[f32; 3]>,
    /// w, x, y, z.
    pub(crate) rotation: Vec<[f32; 4]>,
    pub(crate) health: Vec<u16>,
    pub(crate) flags: Vec<u8>,
    /// The entities that moved in this tick, rising.
    pub(crate) moved: Vec<u32>,
    seed: u64,
    velocity: Vec<[f32; 3]>,
    spin: Vec<[f32; 3]>,
}

impl Scene {
    pub(crate) fn named(name: &str) -> Self {
        Self::new(*PLANS.iter().find(|plan| plan.name == name).expect("a scene"), SEED)
    }

    /// A scene before its first tick.
    pub(crate) fn new(plan: Plan, seed: u64) -> Self {
        let (draws, cubes, each) = (Draws::new(seed, 0), plan.motion == Motion::Cubes, 0..plan.entities);
        let position = each.clone().map(|i| {
            let [x, y, z] = draws.three(i, 0);
            let height = if cubes { 0.2 + (y + 1.0) * plan.reach[1] } else { y * plan.reach[1] };
            [x * plan.reach[0], height, z * plan.reach[2]]
        });
        let (speed, turning) = if cubes { (0.0, 4.0) } else { (5.0, 1.0) };
        Scene {
            plan,
            tick: 0,
            position: position.collect(),
            rotation: each
                .clone()
                .map(|i| normalized([6, 7, 8, 9].map(|lane| draws.signed(i, lane))))
                .collect(),
            health: each.clone().map(|i| if cubes { 0 } else { (draws.bits(i, 13) % 1001) as u16 }).collect(),
            flags: each.clone().map(|i| if cubes { 0 } else { draws.bits(i, 14) as u8 }).collect(),
            moved: Vec::new(),
            seed,
            velocity: each.clone().map(|i| draws.three(i, 3).map(|v| v * speed)).collect(),
            spin: each.map(|i| draws.three(i, 10).map(|w| w * turning)).collect(),
        }
    }

    /// Advances by a tick.
    pub(crate) fn step(&mut self) {
        self.tick += 1;
        self.moved.clear();
        let draws = Draws::new(self.seed, self.tick);
        for i in 0..self.plan.entities {
            let moves = match self.plan.motion {
                Motion::All => true,
                Motion::Tenth => draws.bits(i, 7).is_multiple_of(10),
                Motion::None => false,
                Motion::Cubes => self.flags[i] & 1 == 0 || self.kick(i, draws),
            };
            if moves {
                self.moved.push(i as u32);
                if self.plan.motion == Motion::Cubes { self.fall(i) } else { self.walk(i, draws) }
            }
        }
    }

    /// Moves an entity by its random walk.
    fn walk(&mut self, i: usize, draws: Draws) {
        let dt = 1.0 / self.plan.hz as f32;
        let (kicks, twists) = (draws.three(i, 0), draws.three(i, 3));
        for axis in 0..3 {
            let reach = self.plan.reach[axis];
            let v = (self.velocity[i][axis] + kicks[axis]).clamp(-10.0, 10.0);
            let p = self.position[i][axis] + v * dt;
            let is_out = p > reach || p < -reach;
            self.position[i][axis] = p.min(reach).max(-reach);
            self.velocity[i][axis] = if is_out { -v } else { v };
            self.spin[i][axis] = (self.spin[i][axis] + twists[axis] * 0.2).clamp(-2.0, 2.0);
        }
        self.rotation[i] = turned(self.rotation[i], self.spin[i], dt);
        let bits = draws.bits(i, 6);
        if bits.is_multiple_of(100) {
            self.health[i] = ((bits >> 32) % 1001) as u16;
        }
        if (bits >> 8).is_multiple_of(200) {
            self.flags[i] = (bits >> 56) as u8;
        }
    }

    /// Kicks a cube that rests, with a chance of 1 in 249; true if it did.
    fn kick(&mut self, i: usize, draws: Draws) -> bool {
        if !draws.bits(i, 0).is_multiple_of(249) {
            return false;
        }
        let [x, y, z] = draws.three(i, 1);
        self.flags[i] &= 0xFE;
        self.velocity[i] = [x * 4.0, 5.5 + y * 2.5, z * 4.0];
        self.spin[i] = draws.three(i, 4).map(|w| w * 4.0);
        true
    }

    /// Moves a cube through the air; it bounces, and comes to rest when it is slow.
    fn fall(&mut self, i: usize) {
        const FLOOR: f32 = 0.2;
        let dt = 1.0 / self.plan.hz as f32;
        let (v, p, spin) = (&mut self.velocity[i], &mut self.position[i], &mut self.spin[i]);
        v[1] -= 9.8125 * dt;
        for axis in 0..3 {
            p[axis] += v[axis] * dt;
        }
        for axis in [0, 2] {
            let reach = self.plan.reach[axis];
            if p[axis] > reach || p[axis] < -reach {
                v[axis] = -v[axis];
            }
            p[axis] = p[axis].min(reach).max(-reach);
        }
        if p[1] < FLOOR {
            p[1] = FLOOR;
            let up = if v[1] < 0.0 { -0.5 * v[1] } else { v[1] };
            *v = [0.7 * v[0], up, 0.7 * v[2]];
            *spin = spin.map(|w| 0.7 * w);
            if v[1] < 0.4 {
                (*v, *spin) = ([0.0; 3], [0.0; 3]);
                self.flags[i] |= 1;
            }
        }
        self.rotation[i] = turned(self.rotation[i], *spin, dt);
    }

    /// CRC-32 of everything that clients see and of the entities that moved, after `before`.
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

/// A rotation after a spin for this time.
fn turned(q: [f32; 4], spin: [f32; 3], dt: f32) -> [f32; 4] {
    let ([a, b, c, d], half) = (q, 0.5 * dt);
    let [x, y, z] = spin.map(|w| w * half);
    normalized([
        a - (x * b + y * c + z * d),
        b + (x * a + y * d - z * c),
        c + (y * a + z * b - x * d),
        d + (z * a + x * c - y * b),
    ])
}

/// The places from which clients look at a flat scene: they walk at random.
pub(crate) struct Walkers {
    /// Along x and z.
    pub(crate) position: Vec<[f32; 2]>,
    seed: u64,
    reach: f32,
    dt: f32,
    tick: u32,
    velocity: Vec<[f32; 2]>,
}

impl Walkers {
    pub(crate) fn new(seed: u64, count: usize, reach: f32, hz: u32) -> Self {
        let draws = Draws::new(seed, 0);
        let pair = |lane: u64, scale: f32, i: usize| [0, 1].map(|axis| draws.signed(i, lane + axis) * scale);
        Walkers {
            position: (0..count).map(|i| pair(100, reach, i)).collect(),
            seed,
            reach,
            dt: 1.0 / hz as f32,
            tick: 0,
            velocity: (0..count).map(|i| pair(102, 10.0, i)).collect(),
        }
    }

    /// Advances by a tick.
    pub(crate) fn step(&mut self) {
        self.tick += 1;
        let draws = Draws::new(self.seed, self.tick);
        for (i, (position, velocity)) in self.position.iter_mut().zip(&mut self.velocity).enumerate() {
            for axis in 0..2 {
                let v = (velocity[axis] + draws.signed(i, 102 + axis as u64)).clamp(-20.0, 20.0);
                let p = position[axis] + v * self.dt;
                let is_out = p > self.reach || p < -self.reach;
                position[axis] = p.min(self.reach).max(-self.reach);
                velocity[axis] = if is_out { -v } else { v };
            }
        }
    }
}
