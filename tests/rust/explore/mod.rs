//! The state machines of the documents, walked through: every order of calls, deliveries, losses and duplicates up to a
//! depth, on the real code. Whatever has no clock, sockets or randomness of its own can be walked by doing the same again,
//! so nothing needs to be cloned.
//!
//! From each state that is reached a patient network takes over, and all must end well: no sequence of accidents may lead
//! where there is no way out.

mod byte_window;
mod chunks;
mod connection;
mod elections;
mod ghosts;
mod reliable;
mod slices;

use std::collections::{BTreeSet, HashSet};
use std::fmt::{Debug, Write};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use tickwire::transport::ConnectionConfig;

/// Two ends, and the packets between them.
trait Machine: Sized {
    type Action: Copy + Debug;

    fn start() -> Self;

    /// What may happen next.
    fn actions(&self) -> Vec<Self::Action>;

    /// Does it, and checks what must hold at any time.
    fn act(&mut self, action: Self::Action);

    /// The state by the names of the document.
    fn state(&self) -> String;

    /// Everything on which the future depends; equal ones are walked on from once. None if that can't be told.
    fn everything(&self) -> Option<u64>;

    /// From here on all goes well: checks that all ends well.
    fn conclude(self);
}

/// The results of a walk.
struct Walk {
    states: usize,
    /// From, to.
    steps: BTreeSet<(String, String)>,
}

fn walk<M: Machine>(depth: usize) -> Walk {
    let again = |path: &[M::Action]| {
        let mut machine = M::start();
        path.iter().for_each(|action| machine.act(*action));
        machine
    };
    let (mut seen, mut steps, mut states) = (HashSet::new(), BTreeSet::new(), 0);
    let mut paths = vec![Vec::new()];
    for _ in 0..depth {
        for path in core::mem::take(&mut paths) {
            let before = again(&path);
            let from = before.state();
            for action in before.actions() {
                let mut machine = again(&path);
                machine.act(action);
                steps.insert((from.clone(), machine.state()));
                if machine.everything().is_none_or(|all| seen.insert(all)) {
                    states += 1;
                    let path = [&path[..], &[action]].concat();
                    let guard = Guard(&path);
                    machine.conclude();
                    core::mem::forget(guard);
                    paths.push(path);
                }
            }
        }
    }
    Walk { states, steps }
}

/// Shows the way to a state in which a check failed.
struct Guard<'a, A: Debug>(&'a [A]);

impl<A: Debug> Drop for Guard<'_, A> {
    fn drop(&mut self) {
        println!("after {:?}", self.0);
    }
}

/// Windows of packets that walks don't fill: small ones are soon compared.
fn small_windows() -> ConnectionConfig {
    let mut config = ConnectionConfig::default();
    let acks = &mut config.packets.acks;
    (acks.sent_window, acks.received_window, acks.max_window) = (32, 32, None);
    config.packets.reassembly.window = 4;
    config
}

/// A hash of what `Debug` shows, which is hashed at once: it comes in pieces of a few letters.
fn hash_of(things: &[&dyn Debug]) -> u64 {
    let mut text = String::with_capacity(1 << 16);
    things.iter().for_each(|thing| write!(text, "{thing:?};").unwrap());
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// The steps of a document's table under this heading, columns `from` and `to` counted from 0. A cell may name several
/// states; a state that says `unchanged` stays.
fn documented(file: &str, heading: &str, from: usize, to: usize) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let section = text.split(heading).nth(1).unwrap_or_else(|| panic!("{file} has {heading}"));
    let table = section.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect());
    let rows: Vec<Vec<String>> = cells.filter(|cells: &Vec<String>| cells.len() > to).collect();
    let names = |cell: &str| -> Vec<String> {
        let cell = cell.replace("after the tenth", ",").replace("else", ",");
        cell.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let mut steps = BTreeSet::new();
    for row in rows.iter().skip(1).filter(|row| !["-", "any"].contains(&&*row[from])) {
        for a in names(&row[from]) {
            for b in names(&row[to]) {
                steps.insert((a.clone(), if b == "unchanged" { a.clone() } else { b }));
            }
        }
    }
    steps
}

/// The steps of one side of states that are named `one/other`.
fn side(walks: &[Walk], side: usize) -> BTreeSet<(String, String)> {
    let name = |state: &String| state.split('/').nth(side).unwrap().to_owned();
    walks.iter().flat_map(|walk| &walk.steps).map(|(from, to)| (name(from), name(to))).collect()
}

/// The steps of a walk and of a document are the same; staying is always allowed.
fn compare(walked: &BTreeSet<(String, String)>, documented: &BTreeSet<(String, String)>) {
    let moves = |steps: &BTreeSet<(String, String)>| -> BTreeSet<_> {
        steps.iter().filter(|(from, to)| from != to).cloned().collect()
    };
    let (walked, documented) = (moves(walked), moves(documented));
    let undocumented: Vec<_> = walked.difference(&documented).collect();
    let never: Vec<_> = documented.difference(&walked).collect();
    assert!(
        undocumented.is_empty() && never.is_empty(),
        "undocumented {undocumented:?}, never seen {never:?}"
    );
}

/// Packets in flight in one direction: any may come next, be lost, or come twice.
#[derive(Debug, Default)]
struct Wire {
    packets: Vec<Packet>,
}

#[derive(Clone, Debug)]
struct Packet {
    bytes: Vec<u8>,
    copied: bool,
}

/// The fate of a packet in flight, by its place.
#[derive(Clone, Copy, Debug)]
enum Accident {
    Deliver(usize),
    Lose(usize),
    /// Comes now, and once more.
    Double(usize),
}

impl Wire {
    fn push(&mut self, bytes: &[u8]) {
        self.packets.push(Packet { bytes: bytes.to_vec(), copied: false });
    }

    fn accidents(&self) -> Vec<Accident> {
        let each = self.packets.iter().enumerate().flat_map(|(at, packet)| {
            let twice = (!packet.copied).then_some(Accident::Double(at));
            [Some(Accident::Deliver(at)), Some(Accident::Lose(at)), twice]
        });
        each.flatten().collect()
    }

    /// The packet to hand over, if any.
    fn suffer(&mut self, accident: Accident) -> Option<Vec<u8>> {
        match accident {
            Accident::Deliver(at) => Some(self.packets.remove(at).bytes),
            Accident::Lose(at) => {
                self.packets.remove(at);
                None
            }
            Accident::Double(at) => {
                self.packets[at].copied = true;
                Some(self.packets[at].bytes.clone())
            }
        }
    }
}
