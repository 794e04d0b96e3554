//! Datagrams of strangers at a server without clients and at a client that dials: nobody connects, and no answer is
//! larger than its question.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::LazyLock;

use tickwire::endpoint::Host;
use tickwire::netcode::packet::Request;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

use super::input::Input;
use super::world::{DIALLED, START, client, server, server_address, token};

static REQUEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut request = Vec::new();
    Request::write(&token(), &mut request);
    request
});

struct World {
    server: Host,
    client: Host,
    runs: u32,
}

thread_local! {
    // Setting up costs more than a run; a server that strangers have been at is as good as a new one. Not for ever, so
    // that what is found can be repeated.
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    WORLD.with_borrow_mut(|place| {
        let world = place.get_or_insert_with(|| World { server: server(), client: client(token()), runs: 0 });
        world.runs += 1;
        play(world, &mut Input::new(data));
        if world.runs == 1000 {
            *place = None;
        }
    });
}

fn play(world: &mut World, input: &mut Input<'_>) {
    let mut out = Datagrams::new();
    let mut now = Instant::from_millis(u64::from(world.runs) * 1000);
    while !input.is_empty() {
        let op = input.u8();
        now += Duration::from_millis(u64::from(op >> 4) * 8);
        let unix = UnixSeconds(START.0 + now.as_nanos() / 1_000_000_000);
        let mut datagram = match op % 4 {
            // A request that somebody saw, with bits turned.
            0 => {
                let mut request = REQUEST.clone();
                let at = usize::from(input.u16()) % request.len();
                for (to, with) in request[at..].iter_mut().zip(input.piece()) {
                    *to ^= with;
                }
                request
            }
            _ => input.piece().to_vec(),
        };
        let asked = datagram.len();
        let from = SocketAddr::from(([10, 1, 1, op >> 3 & 3], 9));
        let mut same = datagram.clone();
        world.server.handle_datagram(now, unix, from, &mut datagram, &mut out);
        assert!(out.len() <= 1 && out.total_bytes() <= asked);
        assert!(out.iter().all(|(to, _)| to == from));
        out.clear();
        world.client.handle_datagram(
            now,
            unix,
            if op % 4 == 1 { from } else { server_address() },
            &mut same,
            &mut out,
        );
        assert!(out.is_empty(), "nothing that a stranger can make is worth an answer");
        assert_eq!(world.server.poll_event(), None);
        assert!(!world.client.is_connected(DIALLED));
        assert!(world.server.listener().unwrap().half_open_count() <= 4);
    }
    world.server.transmit(now, &mut out);
    assert!(out.is_empty(), "nobody is connected");
}
