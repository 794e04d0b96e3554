//! Worlds of moving objects through a server's [`Publisher`] and a client's [`Mirror`]: what a frame costs by the age of its
//! acks. Prints a row of JSON for each world, age and coding.
//!
//! `cargo bench --bench worlds -- [physics] [C901] [age=6] [loss=0.05] [coded=false] [frames=500] [--list]`. Without words,
//! it plays all worlds with acks of 1, 2 and 6 frames, coded and plain. `physics` needs `benches/ghosts/physics.py` to
//! run first.
//!
//! Bytes are those of payloads, without the headers of packets, after the first frame's creates. CPU time is this thread's,
//! the median of all frames: the server's flush (notifications, comparing and quantising, packets), and the client's
//! packets and columns. `wrong` counts the cells that the client shows differently from the server's quantised world, in
//! all frames; with losses or a budget it compares each object with the server's state of the same tick. An update is an
//! object that changed and that the client has.
//!
//! [`Publisher`]: tickwire::replication::Publisher
//! [`Mirror`]: tickwire::replication::Mirror

#[path = "../clock.rs"]
mod clock;
mod columns;
#[path = "../line.rs"]
mod line;
mod motions;
#[path = "../path.rs"]
mod path;
mod physics;
mod replay;
#[path = "../scene.rs"]
#[allow(dead_code)] // The other benches use the rest.
mod scene;
mod scenes;
mod world;

use path::Path;
use replay::replay;
use world::{WORLDS, World};

/// What the command line asks for.
struct Wanted {
    names: Vec<String>,
    ages: Vec<u32>,
    codings: Vec<bool>,
    loss: f64,
    frames: usize,
    lists: bool,
}

impl Wanted {
    fn new(words: impl Iterator<Item = String>) -> Wanted {
        let mut wanted = Wanted {
            names: Vec::new(),
            ages: Vec::new(),
            codings: Vec::new(),
            loss: 0.0,
            frames: usize::MAX,
            lists: false,
        };
        for word in words.filter(|word| word != "--bench") {
            match word.split_once('=') {
                Some(("age", age)) => wanted.ages.push(age.parse().expect("age must be a number of frames")),
                Some(("loss", loss)) => wanted.loss = loss.parse().expect("loss must be a share"),
                Some(("coded", coded)) => {
                    wanted.codings.push(coded.parse().expect("coded must be true or false"));
                }
                Some(("frames", frames)) => wanted.frames = frames.parse().expect("frames must be a number"),
                _ if word == "--list" => wanted.lists = true,
                _ => wanted.names.push(word),
            }
        }
        if wanted.ages.is_empty() {
            wanted.ages = vec![1, 2, 6];
        }
        if wanted.codings.is_empty() {
            wanted.codings = vec![true, false];
        }
        wanted
    }

    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn main() {
    let wanted = Wanted::new(std::env::args().skip(1));
    for (name, make) in WORLDS {
        if wanted.lists {
            println!("{name}");
            continue;
        }
        if !wanted.has(name) {
            continue;
        }
        for (coded, age) in
            wanted.codings.iter().flat_map(|coded| wanted.ages.iter().map(move |age| (*coded, *age)))
        {
            let mut world: Box<dyn World> = match make() {
                Ok(world) => world,
                Err(error) => {
                    eprintln!("{name}: {error}");
                    break;
                }
            };
            let path = Path::with_ack_age(age, wanted.loss);
            println!("{}", replay(name, &mut *world, coded, path, wanted.frames));
        }
    }
}
