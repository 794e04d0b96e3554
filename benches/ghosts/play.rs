//! Plays the scenes of `scene.rs` and measures: the same for Tickwire and for others, each a [`Game`].
//!
//! Prints a row of JSON for each scene, which `run.py` collects. With names of scenes, only these; with `--list`, their names.

use serde_json::{Value, json};

use crate::clock::quantile;
use crate::path::Path;
use crate::scene::PLANS;

/// Ticks before measuring, and measured.
const WARM: usize = 60;
const MEASURED: usize = 150;

/// Clients that join, one after the other; fewer, if that takes longer than this.
const JOINS: usize = 9;
const JOIN_SECONDS: u64 = 60;
/// No library takes as many ticks until a client has all.
const JOIN_TICKS: u32 = 1000;
/// Ticks before each of them, whose costs are the usual ones.
const BETWEEN: usize = 15;

const NEAR: Path = Path::with_ack_age(1, 0.0);
/// At 30 Hz about 50 ms.
const LATE: Path = Path::with_ack_age(4, 0.0);
const BAD: Path = Path::with_ack_age(4, 0.05);

/// What a library is asked for; not all know all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As it comes.
    Plain,
    /// The application says that it wrote nothing.
    Unwritten,
    /// Coded by how likely things are.
    Coded,
    /// Components that the application makes small.
    Quantised,
}

impl Kind {
    fn name(self, scene: &str) -> String {
        match self {
            Kind::Plain => scene.into(),
            Kind::Unwritten => format!("{scene} unwritten"),
            Kind::Coded => format!("{scene} coded"),
            Kind::Quantised => format!("{scene} quantised"),
        }
    }
}

/// How a scene is played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) scene: &'static str,
    pub(crate) clients: usize,
    pub(crate) path: Path,
    /// Each client sees so far, from an entity that it owns.
    pub(crate) sight: Option<f64>,
    pub(crate) kind: Kind,
}

const fn setup(scene: &'static str, clients: usize, path: Path) -> Setup {
    Setup { scene, clients, path, sight: None, kind: Kind::Plain }
}

pub(crate) const SCENES: [(&str, Setup); 9] = [
    ("S1", setup("S1", 16, NEAR)),
    ("S2", setup("S2", 64, NEAR)),
    ("S2d", setup("S2", 64, LATE)),
    ("S3", setup("S3", 64, NEAR)),
    ("S5", setup("S1", 16, BAD)),
    ("S6", Setup { sight: Some(200.0), ..setup("S6", 64, NEAR) }),
    ("S6b", Setup { sight: Some(200.0), ..setup("S6b", 64, NEAR) }),
    ("C901", setup("C901", 1, NEAR)),
    (JOIN, setup("S2", 64, NEAR)),
];

/// In this one a client joins.
const JOIN: &str = "S4";

/// The cost of a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// CPU seconds of the server.
    pub(crate) server: f64,
    /// Of the first client.
    pub(crate) client: f64,
    /// For all clients.
    pub(crate) bytes: usize,
    /// Objects that changed, for each client that has them.
    pub(crate) updates: usize,
}

/// A server with its clients in a scene.
pub(crate) trait Game: Sized {
    fn new(setup: Setup) -> Self;

    /// A tick of all, in which the scene goes on or rests.
    fn tick(&mut self, moves: bool) -> Cost;

    /// One more client.
    fn join(&mut self);

    /// The client that came last goes.
    fn leave(&mut self);

    /// Whether the server begins to send the client what it is to have: handshakes don't count.
    fn is_connected(&self, client: usize) -> bool {
        let _ = client;
        true
    }

    /// Whether a client has all that it is to have; one that isn't looked at, always.
    fn has_all(&self, client: usize) -> bool;

    /// Bytes for one client so far.
    fn bytes_of(&self, client: usize) -> usize;

    /// How many ticks ago the server's last had what the first client shows, of each object that it has.
    fn ages(&self, ages: &mut Vec<f64>);

    /// How many objects the first client shows otherwise than the server's world has them, once nothing is in flight.
    fn wrong(&self) -> usize;
}

/// The scenes that the command line names; none: all.
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Wanted(words.filter(|word| word != "--bench").collect())
    }

    /// Whether these scenes are to be played. Prints their names, if that's what is asked for.
    pub(crate) fn has(&self, name: &str) -> bool {
        if self.0.iter().any(|word| word == "--list") {
            println!("{name}");
            return false;
        }
        self.0.is_empty() || self.0.iter().any(|word| word == name)
    }
}

/// Plays these kinds of scenes, if they are wanted: each with the names of those that it is for, or none for all.
pub(crate) fn play<G: Game>(wanted: &Wanted, kinds: &[(Kind, &[&str])]) {
    for (kind, scenes) in kinds {
        for (scene, setup) in SCENES.into_iter().filter(|(it, _)| scenes.is_empty() || scenes.contains(it)) {
            let (name, setup) = (kind.name(scene), Setup { kind: *kind, ..setup });
            if wanted.has(&name) {
                let row = if scene == JOIN { join::<G>(&name, setup) } else { measured::<G>(&name, setup) };
                println!("{row}");
            }
        }
    }
}

fn measured<G: Game>(name: &str, setup: Setup) -> Value {
    let mut game = G::new(setup);
    let warm = match setup.scene {
        // Cubes fall first, and rest.
        "C901" => 1200,
        // Clients joined it, and with some libraries parts of that are sent again for seconds.
        "S2" => 400,
        _ => WARM,
    };
    (0..warm).for_each(|_| _ = game.tick(true));
    // With some libraries it takes longer until all clients have a large world.
    let mut late = 0;
    for client in 0..setup.clients {
        while !game.has_all(client) {
            assert!(late < JOIN_TICKS, "client {client} never has all");
            game.tick(true);
            late += 1;
        }
    }
    let (mut costs, mut ages) = (Vec::new(), Vec::new());
    for tick in 0..MEASURED {
        costs.push(game.tick(true));
        if tick % 10 == 0 {
            game.ages(&mut ages);
        }
    }
    // Nothing moves until all has arrived, lost or not.
    (0..60).for_each(|_| _ = game.tick(false));
    let wrong = game.wrong();
    assert!(wrong == 0 || setup.path.loss > 0.0, "{wrong} objects are shown wrong");
    let mut row = row(name, setup, &costs);
    let client = quantile(costs.iter().map(|cost| cost.client * 1e3).collect(), 0.5);
    // Not all libraries mend all losses.
    row["wrong_in_the_end"] = wrong.into();
    row["client_ms"] = rounded(client).into();
    row["age_p95_ticks"] = (!ages.is_empty()).then(|| quantile(ages, 0.95)).into();
    row
}

/// What a server's ticks took.
pub(crate) fn row(name: &str, setup: Setup, costs: &[Cost]) -> Value {
    let hz = PLANS.iter().find(|plan| plan.name == setup.scene).map_or(0, |plan| plan.hz);
    let bytes: usize = costs.iter().map(|cost| cost.bytes).sum();
    let updates: usize = costs.iter().map(|cost| cost.updates).sum();
    let a_second = f64::from(hz) / (costs.len() * setup.clients) as f64;
    json!({
        "scene": name,
        "clients": setup.clients,
        "ack_age": setup.path.ack_age(),
        "server_ms": rounded(server_ms(costs)),
        "bytes_a_client_and_second": (bytes as f64 * a_second).round(),
        "bytes_an_update": (updates > 0).then(|| rounded(bytes as f64 / updates as f64)),
    })
}

/// Plays some ticks through what [`Game`] isn't.
pub(crate) fn costs(mut tick: impl FnMut() -> Cost) -> Vec<Cost> {
    (0..WARM).for_each(|_| _ = tick());
    (0..MEASURED).map(|_| tick()).collect()
}

/// One more client joins, and goes again once it has all, some times: the medians of its bytes, of its ticks, and of the
/// server's time above that of the ticks before.
fn join<G: Game>(name: &str, setup: Setup) -> Value {
    let started = std::time::Instant::now();
    let mut game = G::new(setup);
    (0..WARM).for_each(|_| _ = game.tick(true));
    let (mut usuals, mut above, mut bytes, mut ticks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    while above.len() < JOINS && (above.is_empty() || started.elapsed().as_secs() < JOIN_SECONDS) {
        let usual: Vec<Cost> = (0..BETWEEN).map(|_| game.tick(true)).collect();
        // Those in which the one before left have more to do.
        let usual = server_ms(&usual[BETWEEN / 2..]);
        let client = setup.clients;
        game.join();
        let (mut cost, mut count, mut before) = (0.0, 0, 0);
        while !game.has_all(client) {
            if !game.is_connected(client) {
                // In the tick that ends its handshake it may be sent all.
                (cost, count, before) = (0.0, 0, game.bytes_of(client));
            }
            cost += game.tick(true).server * 1e3 - usual;
            count += 1;
            assert!(count < JOIN_TICKS, "it never has all");
        }
        usuals.push(usual);
        above.push(cost);
        bytes.push((game.bytes_of(client) - before) as f64);
        ticks.push(f64::from(count));
        game.leave();
    }
    json!({
        "scene": name,
        "clients": setup.clients + 1,
        "joins": above.len(),
        "server_ms": rounded(quantile(usuals, 0.5)),
        "joiner_bytes": quantile(bytes, 0.5),
        "joiner_ticks": quantile(ticks, 0.5),
        "ms_above_a_usual_tick": rounded(quantile(above, 0.5)),
    })
}

/// The middle one.
fn server_ms(costs: &[Cost]) -> f64 {
    quantile(costs.iter().map(|cost| cost.server * 1e3).collect(), 0.5)
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
