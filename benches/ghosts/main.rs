//! Ghosts: what a server and its clients pay in the scenes of `scene.rs`, and what goes over the wire. Prints a table and writes
//! `benches/ghosts/results.json`; with names of scenes, only these, and nothing is written.
//!
//! Measured is the CPU time of this thread: of the server's part of a tick (the application's writes, acks, comparing,
//! quantising, relevancy, packets), and of a client's (packets, columns). Without sockets and encryption; bytes are those of
//! payloads. An update is an object that changed, for a client that has it, so that what is sent twice counts once.

mod clock;
mod figures;
mod game;
mod hosted;
mod line;
#[allow(dead_code)] // Some of it is for tests/rust/ghost_scenes.rs.
mod scene;
mod tables;

use clock::quantile;
use figures::{MEASURED, WARM, bytes_an_update, rounded};
use game::{Game, Setup};
use hosted::Hosted;
use line::Path;
use serde_json::{Value, json};

const RESULTS: &str = "benches/ghosts/results.json";

/// At 30 Hz about 50 ms.
const LATE: Path = Path { ticks: 2, loss: 0.0 };
const BAD: Path = Path { ticks: 2, loss: 0.05 };
const NEAR: Path = Path { ticks: 0, loss: 0.0 };

const fn setup(scene: &'static str, clients: usize, path: Path) -> Setup {
    Setup { scene, clients, path, sight: None, scan: true, coded: false }
}

/// Coded by how likely things are.
const fn coded(setup: Setup) -> Setup {
    Setup { coded: true, ..setup }
}

const SCENES: [(&str, Setup); 18] = [
    ("S1", setup("S1", 16, NEAR)),
    ("S2", setup("S2", 64, NEAR)),
    ("S2d", setup("S2", 64, LATE)),
    ("S3", setup("S3", 64, NEAR)),
    ("S3 unwritten", Setup { scan: false, ..setup("S3", 64, NEAR) }),
    ("S5", setup("S1", 16, BAD)),
    ("S6", Setup { sight: Some(200.0), ..setup("S6", 64, NEAR) }),
    ("S6b", Setup { sight: Some(200.0), ..setup("S6b", 64, NEAR) }),
    ("C901", setup("C901", 1, NEAR)),
    ("S4", setup("S2", 64, NEAR)),
    ("S1 coded", coded(setup("S1", 16, NEAR))),
    ("S2 coded", coded(setup("S2", 64, NEAR))),
    ("S2d coded", coded(setup("S2", 64, LATE))),
    ("S5 coded", coded(setup("S1", 16, BAD))),
    ("S6 coded", coded(Setup { sight: Some(200.0), ..setup("S6", 64, NEAR) })),
    ("S6b coded", coded(Setup { sight: Some(200.0), ..setup("S6b", 64, NEAR) })),
    ("C901 coded", coded(setup("C901", 1, NEAR))),
    ("S4 coded", coded(setup("S2", 64, NEAR))),
];

/// Those that are played through sessions too.
const HOSTED: [&str; 4] = ["S1", "S2", "S3", "S6"];

fn main() {
    let wanted = figures::wanted();
    let of = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut results: Vec<Value> = Vec::new();
    if of("tables") {
        for (what, time) in tables::report() {
            println!("10,000 rows, {what}: {time:.1} us");
            results.push(json!({"scene": "tables", "rows": 10_000, "what": what, "us": rounded(time)}));
        }
    }
    for (name, setup) in SCENES.into_iter().filter(|(name, _)| of(name)) {
        let row = if name.starts_with("S4") { join(name, setup) } else { scene(name, setup) };
        println!("{row}");
        results.push(row);
    }
    for (name, setup) in SCENES.into_iter().filter(|(name, _)| of(name) && HOSTED.contains(name)) {
        let row = hosted(name, setup);
        println!("{row}");
        results.push(row);
    }
    if wanted.is_empty() {
        figures::write(RESULTS, "tickwire", results);
    }
}

fn scene(name: &str, setup: Setup) -> Value {
    let mut game = Game::new(setup);
    let hz = f64::from(game.scene.plan.hz);
    // Cubes fall first, and rest.
    let warm = if setup.scene == "C901" { 1200 } else { WARM };
    (0..warm).for_each(|_| _ = game.tick(true));
    let (mut server, mut client, mut ages) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut updates) = (0, 0);
    for tick in 0..MEASURED {
        let cost = game.tick(true);
        server.push(cost.server * 1e3);
        client.push(cost.client * 1e3);
        (bytes, updates) = (bytes + cost.bytes, updates + cost.updates);
        if tick % 10 == 0 {
            game.ages(&mut ages);
        }
    }
    // Nothing moves until all has arrived, lost or not.
    (0..60).for_each(|_| _ = game.tick(false));
    game.check();
    let a_second = bytes as f64 / MEASURED as f64 * hz / setup.clients as f64;
    json!({
        "scene": name,
        "clients": setup.clients,
        "server_ms": rounded(quantile(server, 0.5)),
        "bytes_a_client_and_second": a_second.round(),
        "bytes_an_update": bytes_an_update(bytes, updates),
        "client_ms": rounded(quantile(client, 0.5)),
        "age_p95_ticks": quantile(ages, 0.95),
    })
}

/// Through sessions.
fn hosted(name: &str, setup: Setup) -> Value {
    let mut game = Hosted::new(setup);
    (0..WARM).for_each(|_| _ = game.tick());
    let costs: Vec<_> = (0..MEASURED).map(|_| game.tick()).collect();
    let bytes: usize = costs.iter().map(|cost| cost.bytes).sum();
    let updates: usize = costs.iter().map(|cost| cost.updates).sum();
    json!({
        "scene": name,
        "what": "with sessions and encryption",
        "clients": setup.clients,
        "server_ms": rounded(quantile(costs.iter().map(|cost| cost.server * 1e3).collect(), 0.5)),
        "bytes_a_client_and_second": (bytes as f64 / MEASURED as f64 * 30.0 / setup.clients as f64).round(),
        "bytes_an_update": bytes_an_update(bytes, updates),
    })
}

/// One more client joins: its bytes and ticks until it has all, and the server's time above that of usual ticks.
fn join(name: &str, setup: Setup) -> Value {
    let mut game = Game::new(setup);
    let usual: Vec<f64> = (0..WARM + MEASURED).map(|_| game.tick(true).server * 1e3).collect();
    let usual = quantile(usual[WARM..].to_vec(), 0.5);
    game.join();
    let (mut ticks, mut above) = (0, 0.0);
    while !game.has_all(setup.clients) {
        above += game.tick(true).server * 1e3 - usual;
        ticks += 1;
    }
    json!({
        "scene": name,
        "clients": setup.clients + 1,
        "server_ms": rounded(usual),
        "joiner_bytes": game.bytes_of(setup.clients),
        "joiner_ticks": ticks,
        "ms_above_a_usual_tick": rounded(above),
    })
}
