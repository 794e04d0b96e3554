//! Many clients in one process, each on a socket of its own, their ticks spread over the tick's time as those of
//! players would be.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::tickwire_clients::{Declared, Shared, TickwireClient};
use crate::{Options, RATE, cpu_seconds, enet, tell, udp};

/// Steps in which the clients of a tick take their turns.
const STEPS: usize = 16;

/// One client of a server.
pub(crate) trait Client {
    /// One tick: receives, and sends 64 bytes once it is connected. Both are counted.
    fn tick(&mut self, counts: &mut Counts);
    /// Whether the server has let it in.
    fn connected(&self) -> bool;
}

/// What all clients did since the mark.
#[derive(Default)]
pub(crate) struct Counts {
    /// Messages sent.
    pub(crate) sent: u64,
    /// Messages of the server's size received.
    pub(crate) received: u64,
}

/// Runs the clients until standard input ends.
pub(crate) fn run(options: &Options) {
    let server = SocketAddr::from(([127, 0, 0, 1], options.of("port")));
    let kind: String = options.of("kind");
    let declared = if kind == "tickwire_columns" { Declared::Numbers } else { Declared::Bytes };
    let shared = Shared::new(declared);
    let client = |index| -> Box<dyn Client> {
        match kind.as_str() {
            "udp" => Box::new(udp::UdpClient::new(server)),
            "enet" => Box::new(enet::EnetClient::new(server)),
            "tickwire" | "tickwire_columns" => Box::new(TickwireClient::new(server, index, shared.clone())),
            _ => panic!("there are no clients of kind {kind}"),
        }
    };
    let mut clients: Vec<_> = (0..options.of("count")).map(client).collect();
    let commands = commands();
    let (mut counts, mut since, mut cpu) = (Counts::default(), Instant::now(), cpu_seconds());
    let step = Duration::from_secs(1) / RATE / u32::try_from(STEPS).expect("few steps");
    let mut due = Instant::now();
    for phase in (0..STEPS).cycle() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A step that came late is not made up for: the clients tick more slowly, and the counts say so.
        due = (due + step).max(Instant::now());
        clients.iter_mut().skip(phase).step_by(STEPS).for_each(|client| client.tick(&mut counts));
        match commands.try_recv() {
            Ok(_mark) => (counts, since, cpu) = (Counts::default(), Instant::now(), cpu_seconds()),
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
    }
    tell(&json!({ "result": {
        "connected": clients.iter().filter(|client| client.connected()).count(),
        "sent": counts.sent,
        "received": counts.received,
        "seconds": since.elapsed().as_secs_f64(),
        "cpu": cpu_seconds() - cpu,
    }}));
}

/// The lines of standard input; disconnected at its end.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
