//! What rival libraries take for the scenes of the ghosts' benches, measured as ghosts are in `../main.rs`: CPU time of this
//! thread, of the server's part of a tick and of one client's; bytes are those handed to the transport. No sockets, no
//! encryption. Prints rows, and adds them to `results.json`; with names of scenes only these, and nothing is written.

#[path = "../clock.rs"]
mod clock;
#[path = "../figures.rs"]
mod figures;
mod line;
mod replicon;
#[path = "../scene.rs"]
#[allow(dead_code)] // Some of it is for other benches.
mod scene;

use clock::quantile;
use figures::{MEASURED, WARM, bytes_an_update, rounded};
use line::Path;
use serde_json::{Value, json};

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../results.json");

/// At 30 Hz about 50 ms, as in `../main.rs`.
const LATE: Path = Path { ticks: 2, loss: 0.0 };
const BAD: Path = Path { ticks: 2, loss: 0.05 };
const NEAR: Path = Path { ticks: 0, loss: 0.0 };

/// How a scene is played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) scene: &'static str,
    pub(crate) clients: usize,
    pub(crate) path: Path,
    pub(crate) quantised: bool,
}

/// What a tick took: seconds of CPU, and bytes for all clients.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    pub(crate) server: f64,
    pub(crate) client: f64,
    pub(crate) bytes: usize,
    pub(crate) updates: usize,
}

const fn plain(scene: &'static str, clients: usize, path: Path) -> Setup {
    Setup { scene, clients, path, quantised: false }
}

const fn quantised(setup: Setup) -> Setup {
    Setup { quantised: true, ..setup }
}

const SCENES: [(&str, Setup); 11] = [
    ("S1", plain("S1", 16, NEAR)),
    ("S1 quantised", quantised(plain("S1", 16, NEAR))),
    ("S2", plain("S2", 64, NEAR)),
    ("S2 quantised", quantised(plain("S2", 64, NEAR))),
    ("S2d", plain("S2", 64, LATE)),
    ("S3", plain("S3", 64, NEAR)),
    ("S4", plain("S2", 64, NEAR)),
    ("S5", plain("S1", 16, BAD)),
    ("S5 quantised", quantised(plain("S1", 16, BAD))),
    ("C901", plain("C901", 1, NEAR)),
    ("C901 quantised", quantised(plain("C901", 1, NEAR))),
];

fn main() {
    let wanted = figures::wanted();
    let of = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut rows: Vec<Value> = Vec::new();
    for (name, setup) in SCENES.into_iter().filter(|(name, _)| of(name)) {
        let row = if name == "S4" { join(name, setup) } else { scene(name, setup) };
        println!("bevy_replicon: {row}");
        rows.push(row);
    }
    if wanted.is_empty() {
        figures::write(RESULTS, "bevy_replicon", rows);
    }
}

fn scene(name: &str, setup: Setup) -> Value {
    let mut game = replicon::Game::new(setup);
    let hz = f64::from(game.scene.plan.hz);
    // Cubes fall first, and rest.
    let warm = if setup.scene == "C901" { 1200 } else { WARM };
    (0..warm).for_each(|_| _ = game.tick());
    let (mut server, mut client, mut ages) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut updates) = (0, 0);
    for tick in 0..MEASURED {
        let cost = game.tick();
        server.push(cost.server * 1e3);
        client.push(cost.client * 1e3);
        (bytes, updates) = (bytes + cost.bytes, updates + cost.updates);
        if tick % 10 == 0 {
            game.ages(&mut ages);
        }
    }
    if setup.path.ticks == 0 {
        game.check();
    }
    let rate = hz / MEASURED as f64 / setup.clients as f64;
    json!({
        "scene": name,
        "clients": setup.clients,
        "server_ms": rounded(quantile(server, 0.5)),
        "client_ms": rounded(quantile(client, 0.5)),
        "bytes_a_client_and_second": (bytes as f64 * rate).round(),
        "bytes_an_update": bytes_an_update(bytes, updates),
        "age_p95_ticks": (!ages.is_empty()).then(|| quantile(ages, 0.95)),
    })
}

/// One more client joins.
fn join(name: &str, setup: Setup) -> Value {
    let mut game = replicon::Game::new(setup);
    (0..WARM).for_each(|_| _ = game.tick());
    let usual = quantile((0..MEASURED).map(|_| game.tick().server * 1e3).collect(), 0.5);
    game.join();
    let (mut ticks, mut above) = (0, 0.0);
    while !game.has_all(setup.clients) {
        above += game.tick().server * 1e3 - usual;
        ticks += 1;
        assert!(ticks < 1000, "it never has all");
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
