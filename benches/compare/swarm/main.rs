//! The native side of `make compare`: many clients in one process, and the floor under every server.
//!
//! `swarm ROLE name=value ...` speaks to whoever started it in lines of JSON on standard output. Roles:
//!
//! - `clients`: `count` clients of `kind` udp, enet, tickwire or tickwire_columns, each sending 64 bytes to `port` at
//!   60 Hz. The line `mark` on standard input starts the counts anew; the end of standard input ends it with them.
//! - `ticks`, `flood_receive`, `flood_send`, `echo`, `ping`: what the roles of `roles.py` of these names do, with
//!   nothing but one system call for each datagram: the floor. The end of standard input ends them.

mod clients;
mod enet;
mod floor;
mod tickwire_clients;
mod udp;

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;
use std::{io, process, thread};

/// A client's packet in each tick, and the answer to it.
pub(crate) const REQUEST_BYTES: usize = 64;
/// What the server sends to each client in each tick.
pub(crate) const ANSWER_BYTES: usize = 200;
/// Ticks a second.
pub(crate) const RATE: u32 = 60;

/// The arguments `name=value`.
pub(crate) struct Options(HashMap<String, String>);

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Self {
        let pair = |argument: String| {
            let (name, value) = argument.split_once('=').expect("arguments are name=value");
            (name.to_owned(), value.to_owned())
        };
        Options(arguments.map(pair).collect())
    }

    /// The value of an option that must be there.
    pub(crate) fn of<T: FromStr>(&self, name: &str) -> T {
        let value = self.0.get(name).unwrap_or_else(|| panic!("the option {name} is missing"));
        value.parse().unwrap_or_else(|_| panic!("the option {name} can't be {value}"))
    }

    /// An option in seconds.
    pub(crate) fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs_f64(self.of(name))
    }
}

/// Processor time that this process took, in seconds. It has one thread that does work.
pub(crate) fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells a thread's time");
    let nanoseconds: f64 =
        text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number first");
    nanoseconds / 1e9
}

/// Reports to the parent process.
pub(crate) fn tell(what: &serde_json::Value) {
    println!("{what}");
}

/// Ends the process with its standard input: when the parent is gone, or needs no more.
fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0);
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().expect("the first argument is the role");
    let options = Options::read(arguments);
    if role != "clients" {
        end_with_parent();
    }
    match role.as_str() {
        "clients" => clients::run(&options),
        "ticks" => floor::ticks(&options),
        "flood_receive" => floor::flood_receive(&options),
        "flood_send" => floor::flood_send(&options),
        "echo" => floor::echo(),
        "ping" => floor::ping(&options),
        _ => panic!("there is no role {role}"),
    }
}
