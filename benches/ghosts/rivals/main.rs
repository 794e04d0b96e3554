//! What rival libraries take for the scenes of the ghosts' benches, measured as ghosts are in `../main.rs`: CPU time of this
//! thread, of the server's part of a tick and of one client's; bytes are those handed to the transport. No sockets, no
//! encryption. The first word of the command line is the library, the others as `../play.rs` says.

#[path = "../clock.rs"]
mod clock;
mod entity;
mod lightyear;
mod line;
mod naia;
#[path = "../path.rs"]
mod path;
#[path = "../play.rs"]
#[allow(dead_code)] // Kinds that others have.
mod play;
mod replicon;
mod rival;
#[path = "../scene.rs"]
#[allow(dead_code)] // Some of it is for other benches.
mod scene;
mod sight;

use play::{Kind, Wanted, play};
use rival::{Played, Rival};

/// Others tell little more.
const QUANTISED: [&str; 4] = ["S1", "S2", "S5", "C901"];

fn main() {
    let mut words = std::env::args().skip(1);
    let library = words.next().unwrap_or_default();
    let wanted = Wanted::new(words);
    match library.as_str() {
        "bevy_replicon" => run::<self::replicon::Replicon>(&wanted),
        "lightyear" => run::<self::lightyear::Lightyear>(&wanted),
        "naia" => run::<self::naia::Naia>(&wanted),
        _ => panic!("no library {library:?}: bevy_replicon, lightyear or naia"),
    }
}

fn run<R: Rival>(wanted: &Wanted) {
    play::<Played<R>>(wanted, &[(Kind::Plain, &[]), (Kind::Quantised, &QUANTISED)]);
}
