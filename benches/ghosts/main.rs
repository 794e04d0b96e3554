//! Ghosts: what a server and its clients pay in the scenes of `scene.rs`, and what goes over the wire. Prints rows, as `play.rs`
//! says; `run.py` collects them beside other libraries'.
//!
//! Measured is the CPU time of this thread: of the server's part of a tick (the application's writes, acks, comparing,
//! quantising, relevancy, packets), and of a client's (packets, columns). Without sockets and encryption; bytes are those of
//! payloads. An update is an object that changed, for a client that has it, so that what is sent twice counts once.

mod clock;
mod game;
mod hosted;
mod line;
mod path;
#[allow(dead_code)] // Kinds that others have.
mod play;
#[allow(dead_code)] // Some of it is for tests/rust/ghost_scenes.rs.
mod scene;
mod tables;

use game::Ghosts;
use hosted::Hosted;
use play::{Kind, SCENES, Wanted, costs, play, rounded, row};
use serde_json::json;

/// Nothing in S3 could be coded.
const CODED: [&str; 8] = ["S1", "S2", "S2d", "S5", "S6", "S6b", "C901", "S4"];

/// Those that are played through sessions too.
const HOSTED: [&str; 4] = ["S1", "S2", "S3", "S6"];

fn main() {
    let wanted = Wanted::new(std::env::args().skip(1));
    if wanted.has("tables") {
        for (what, time) in tables::report() {
            println!("{}", json!({"scene": "tables", "rows": 10_000, "what": what, "us": rounded(time)}));
        }
    }
    play::<Ghosts>(&wanted, &[(Kind::Plain, &[]), (Kind::Unwritten, &["S3"]), (Kind::Coded, &CODED)]);
    for (name, setup) in SCENES.into_iter().filter(|(name, _)| HOSTED.contains(name)) {
        if wanted.has(&format!("{name} hosted")) {
            let mut game = Hosted::new(setup);
            let mut row = row(&format!("{name} hosted"), setup, &costs(|| game.tick()));
            row["what"] = "with sessions and encryption".into();
            println!("{row}");
        }
    }
}
