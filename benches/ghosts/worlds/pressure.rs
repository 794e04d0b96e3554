//! A budget that is far too small: 5,000 moving ghosts in 256 kbit/s. Compares rules that choose what goes first, by the
//! error that the client shows, over the same bytes and the same encoding.
//!
//! The client sees all ghosts of a square kilometer and walks among them. Its error is the distance between where it shows
//! a ghost and where the server has it. What a player sees of the error is its angle: the error by the ghost's distance, in
//! milliradians (a pixel of a 1080p screen is about one). The ack's age is 2 ticks.
//!
//! Rules of other libraries choose by what their documentation says. The game's part is a value for each distance d, of
//! which several are tried:
//!
//! - bevy_replicon sends an entity when the ticks since its last *acked* state, times its priority, reach 1.
//! - Fusion sends an object in each n-th tick.
//!
//! Neither has a budget. So a controller scales the priority, or n, until the rule takes as many bytes as the others.

use std::sync::Arc;

use serde_json::{Value, json};
use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{
    Classes, GhostClass, GridConfig, Interests, Mirror, Publisher, PublisherConfig, Relevancy,
};
use tickwire::wire::{BitReader, BitWriter};

use crate::clock::quantile;
use crate::columns::Columns;
use crate::line::Line;
use crate::path::Path;
use crate::scene::{Motion, Plan, Scene, Walkers};
use crate::world::entity;

/// The library's rule was chosen among some thirty variants on seeds 1 to 3, so these are others.
pub(crate) const SEEDS: [u64; 3] = [4, 5, 6];

const GHOSTS: usize = 5000;
const REACH: f32 = 500.0;
const HZ: u32 = 30;
const BUDGET_BITS: usize = 256_000 / HZ as usize;
const PAYLOAD_BITS: usize = 1170 * 8;
const CHANNEL: usize = 0;
const PEER: PeerHandle = PeerHandle { slot: 0, generation: 1 };
const ACK_AGE: u32 = 2;
/// Ticks before measuring, and measured.
const WARM: u32 = 600;
const MEASURED: u32 = 300;
/// A player's eye gets no nearer to a ghost than this, in meters.
const NEAREST: f64 = 5.0;
/// The ends of the bands of distance that the ages are listed by, in meters.
const BANDS: [f64; 6] = [25.0, 50.0, 100.0, 200.0, 400.0, f64::INFINITY];

/// A ghost as a rule sees it.
struct Ghost {
    row: usize,
    distance: f64,
    /// Ticks since it was sent, and since its newest acked state.
    sent: f64,
    acked: f64,
}

/// How a rule decides.
#[derive(Clone, Copy)]
enum Rule {
    /// The library's own, by this weight at the far end.
    Own(f64),
    /// Highest first.
    Priority(fn(&Ghost) -> f64),
    /// Sends what reaches 1, times the scale.
    Threshold(fn(&Ghost) -> f64),
    /// Sends a ghost in each n-th tick: this many, times the scale.
    Interval(fn(&Ghost) -> f64),
}

fn near(distance: f64) -> f64 {
    1.0 / distance.max(NEAREST)
}

fn linear(distance: f64) -> f64 {
    1.0 - 0.75 * (distance / 1000.0).min(1.0)
}

const RULES: [(&str, Rule); 10] = [
    ("Tickwire", Rule::Own(0.25)),
    ("Tickwire, far_weight 0.05", Rule::Own(0.05)),
    ("Tickwire, far_weight 1", Rule::Own(1.0)),
    ("wait, linear", Rule::Priority(|ghost| ghost.sent * linear(ghost.distance))),
    ("wait, 1/sqrt d", Rule::Priority(|ghost| ghost.sent * near(ghost.distance).sqrt())),
    ("bevy_replicon, 1/sqrt d", Rule::Threshold(|ghost| ghost.acked * near(ghost.distance).sqrt())),
    ("bevy_replicon, 1/d", Rule::Threshold(|ghost| ghost.acked * near(ghost.distance))),
    ("Fusion, equal", Rule::Interval(|_| 1.0)),
    ("Fusion, 1/sqrt d", Rule::Interval(|ghost| 1.0 / near(ghost.distance).sqrt())),
    ("Fusion, 1/d", Rule::Interval(|ghost| 1.0 / near(ghost.distance))),
];

/// How fast ghosts are: alike, or from a tenth to three times as fast.
#[derive(Clone, Copy)]
enum Speeds {
    Alike,
    Mixed,
}

impl Speeds {
    fn factor(self, row: usize) -> f64 {
        match self {
            Speeds::Alike => 1.0,
            Speeds::Mixed => [0.1, 0.3, 1.0, 3.0][row % 4],
        }
    }
}

struct Game {
    scene: Scene,
    walkers: Walkers,
    speeds: Speeds,
    begin: Vec<[f32; 3]>,
    publisher: Publisher,
    interests: Interests,
    line: Line,
    source: Columns,
    /// The client, and one that gets each packet at once: what was sent.
    client: Seen,
    sent: Seen,
    scale: f64,
    /// Bits of a tick, on average.
    spent: f64,
    /// Bits of an update, on average.
    cost: f64,
    tick: u32,
}

struct Seen {
    mirror: Mirror,
    columns: Columns,
}

impl Seen {
    fn new(classes: &Arc<Classes>, class: &GhostClass) -> Seen {
        Seen { mirror: Mirror::new(classes.clone()), columns: Columns::new(class, GHOSTS) }
    }

    fn receive(&mut self, bytes: &[u8], bits: usize) {
        self.mirror.handle_payload(BitReader::with_range(bytes, 0, bits)).expect("a packet");
    }

    fn take(&mut self) {
        let mut events = Vec::new();
        self.mirror.take(&mut [self.columns.all_mut()], &mut events);
    }

    /// How far from a place it shows a ghost.
    fn error(&self, id: u32, place: [f64; 3]) -> f64 {
        apart(self.columns.numbers(0, id as usize), place)
    }
}

fn apart(one: [f64; 3], other: [f64; 3]) -> f64 {
    let squares = one.iter().zip(other).map(|(one, other)| (one - other) * (one - other));
    squares.sum::<f64>().sqrt()
}

/// What the client shows, over all measured ticks.
#[derive(Default)]
struct Shown {
    bits: usize,
    cost: f64,
    angles: Vec<f64>,
    /// By band: ghosts, and the sums of their ages and errors.
    bands: [[f64; 3]; BANDS.len()],
}

/// Plays all rules with these seeds, and prints a row for each.
pub(crate) fn report(seeds: &[u64], coded: bool) {
    for (name, rule) in RULES {
        for (speeds, motion) in [(Speeds::Alike, "alike"), (Speeds::Mixed, "mixed")] {
            for seed in seeds {
                let mut game = Game::new(rule, speeds, *seed, coded);
                let mut shown = Shown::default();
                for tick in 0..WARM + MEASURED {
                    let bits = game.step(rule, tick < WARM);
                    if tick >= WARM {
                        shown.bits += bits;
                        game.look(&mut shown);
                    }
                }
                shown.cost = game.cost;
                println!("{}", shown.row(name, motion, *seed, coded));
            }
        }
    }
}

impl Shown {
    fn row(self, rule: &str, motion: &str, seed: u64, coded: bool) -> Value {
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let mean = self.angles.iter().sum::<f64>() / self.angles.len() as f64;
        let of =
            |sum: usize| -> Vec<f64> { self.bands.iter().map(|band| rounded(band[sum] / band[0])).collect() };
        json!({
            "rule": rule,
            "speeds": motion,
            "seed": seed,
            "coded": coded,
            "ack_age": ACK_AGE,
            "kbit_a_second": rounded(self.bits as f64 / f64::from(MEASURED) * f64::from(HZ) / 1000.0),
            "mrad": rounded(mean),
            "bits_an_update": rounded(self.cost),
            "mrad_p95": rounded(quantile(self.angles.clone(), 0.95)),
            "age_by_band": of(1),
            "meters_by_band": of(2),
        })
    }
}

impl Game {
    fn new(rule: Rule, speeds: Speeds, seed: u64, coded: bool) -> Game {
        let reach = [REACH, 10.0, REACH];
        let plan = Plan { name: "pressure", entities: GHOSTS, motion: Motion::All, reach, hz: HZ };
        let scene = Scene::new(plan, seed);
        let class = Arc::new(entity(GHOSTS, 4.0 * f64::from(REACH)).with_coding(coded));
        let classes = Arc::new(Classes::new([class.clone()]).expect("classes"));
        let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: CHANNEL, seed: 0 });
        publisher.add_peer(PEER);
        (0..GHOSTS).for_each(|_| _ = publisher.spawn(0, None).expect("a row"));
        let mut interests = Interests::new(&classes);
        let far_weight = if let Rule::Own(far) = rule { far } else { 1.0 };
        // All are within this radius.
        let (radius, leave_radius) = (1000.0, 2000.0);
        let grid = GridConfig { property: 0, cell: 100.0, radius, leave_radius, linger: 2, far_weight };
        interests.set_rule(&classes, 0, Relevancy::Grid(grid)).expect("a rule");
        Game {
            begin: scene.position.clone(),
            scene,
            walkers: Walkers::new(seed, 1, REACH / 2.0, HZ),
            speeds,
            publisher,
            interests,
            line: Line::new(Path::with_ack_age(ACK_AGE, 0.0), seed),
            source: Columns::new(&class, GHOSTS),
            client: Seen::new(&classes, &class),
            sent: Seen::new(&classes, &class),
            scale: 1.0,
            spent: BUDGET_BITS as f64,
            cost: 100.0,
            tick: 0,
        }
    }

    fn eye(&self) -> [f64; 3] {
        let [x, z] = self.walkers.position[0].map(f64::from);
        [x, 0.0, z]
    }

    /// Where the server has a ghost.
    fn place(&self, row: usize) -> [f64; 3] {
        let factor = self.speeds.factor(row);
        std::array::from_fn(|axis| {
            let begin = f64::from(self.begin[row][axis]);
            begin + (f64::from(self.scene.position[row][axis]) - begin) * factor
        })
    }

    /// A tick of both ends. Returns the bits that were sent.
    fn step(&mut self, rule: Rule, adapts: bool) -> usize {
        self.tick += 1;
        self.scene.step();
        self.walkers.step();
        for row in 0..GHOSTS {
            self.source.put_numbers(0, row, &self.place(row));
            let [w, x, y, z] = self.scene.rotation[row];
            self.source.put_singles(1, row, &[x, y, z, w]);
            self.source.put_integer(2, row, self.scene.health[row].into());
            self.source.put_integer(3, row, self.scene.flags[row].into());
        }
        let mut notifications = Vec::new();
        self.line.notifications(self.tick, |record, delivered| notifications.push((record, delivered)));
        for (record, delivered) in notifications {
            self.publisher.handle_notification(PEER, record, delivered);
        }
        let mut errors = Vec::new();
        self.publisher.begin_tick(&[self.source.scanned()], &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        self.interests.set_viewpoints(PEER, 0, vec![self.eye()]);
        self.interests.update(&mut self.publisher);
        let budget = self.prioritize(rule);
        self.publisher.choose(PEER, budget);
        let bits = self.flush(adapts);
        while let Some((record, bytes, bits)) = self.line.receive(self.tick) {
            if record.is_some() {
                self.client.receive(&bytes, bits);
            }
        }
        self.client.take();
        self.line.ack(self.tick);
        bits
    }

    /// Sets the rows' weights so that the library's own order becomes the rule's, and returns the budget.
    fn prioritize(&mut self, rule: Rule) -> usize {
        let (eye, mut weights, mut due) = (self.eye(), vec![0.0_f32; GHOSTS], 0);
        if matches!(rule, Rule::Own(_)) {
            return BUDGET_BITS;
        }
        for (row, weight) in weights.iter_mut().enumerate() {
            let Some(ghost) = self.ghost(row, eye) else {
                // Creates go first.
                *weight = f32::MAX;
                due += 1;
                continue;
            };
            // The library multiplies the weight by the time that a ghost waited.
            let priority = match rule {
                Rule::Own(_) => 1.0,
                Rule::Priority(of) => of(&ghost),
                Rule::Threshold(of) if of(&ghost) * self.scale >= 1.0 => ghost.sent,
                Rule::Interval(of) => {
                    let ticks = (of(&ghost) / self.scale).round().max(1.0) as usize;
                    if (self.tick as usize + ghost.row).is_multiple_of(ticks) { ghost.sent } else { 0.0 }
                }
                Rule::Threshold(_) => 0.0,
            };
            due += usize::from(priority > 0.0);
            *weight = (priority / ghost.sent) as f32;
        }
        self.publisher.set_weights(0, &weights);
        match rule {
            Rule::Threshold(_) | Rule::Interval(_) => ((due as f64 * self.cost) as usize).max(1),
            _ => BUDGET_BITS,
        }
    }

    /// A row's ghost, if the client was sent one.
    fn ghost(&self, row: usize, eye: [f64; 3]) -> Option<Ghost> {
        let id = self.publisher.ghost_id(PEER, 0, row as u32)?;
        let tick = |seen: &Seen| seen.mirror.tick_of(0, id) & 0xFFFF;
        let place = self.place(row);
        (tick(&self.sent) > 0).then(|| Ghost {
            row,
            distance: apart(place, eye),
            sent: f64::from(self.tick - tick(&self.sent)) + 1.0,
            acked: f64::from(self.tick - tick(&self.client)),
        })
    }

    /// Writes all packets of the tick, and returns their bits.
    fn flush(&mut self, adapts: bool) -> usize {
        let (mut writer, mut all, records) = (BitWriter::new(), 0, self.sent.mirror.counters().records);
        loop {
            writer.clear();
            let Some(record) = self.publisher.fill(PEER, CHANNEL, PAYLOAD_BITS, &mut writer) else { break };
            let (bits, bytes) = (writer.bit_len(), writer.as_bytes().to_vec());
            all += bits;
            self.sent.receive(&bytes, bits);
            self.line.send(self.tick, (Some(record), bytes, bits));
        }
        self.sent.take();
        self.line.keep_alive(self.tick);
        let count = self.sent.mirror.counters().records - records;
        if count > 0 {
            self.cost += (all as f64 / count as f64 - self.cost) * 0.1;
        }
        if adapts {
            self.spent += (all as f64 - self.spent) * 0.02;
            self.scale *= (BUDGET_BITS as f64 / self.spent).clamp(0.8, 1.25).powf(0.1);
        }
        all
    }

    /// Adds what the client shows now.
    fn look(&self, shown: &mut Shown) {
        let eye = self.eye();
        for row in 0..GHOSTS {
            let id =
                self.publisher.ghost_id(PEER, 0, row as u32).filter(|id| self.client.mirror.is_alive(0, *id));
            let Some(id) = id else { continue };
            let place = self.place(row);
            let (distance, error) = (apart(place, eye), self.client.error(id, place));
            let age = self.tick - (self.client.mirror.tick_of(0, id) & 0xFFFF);
            shown.angles.push(error / distance.max(NEAREST) * 1000.0);
            let band = BANDS.iter().position(|end| distance < *end).unwrap_or(BANDS.len() - 1);
            let sums = [1.0, f64::from(age), error];
            shown.bands[band].iter_mut().zip(sums).for_each(|(sum, value)| *sum += value);
        }
    }
}
