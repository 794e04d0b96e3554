//! A rendezvous server, a relay and two peers, whose datagrams the fuzzer passes on, loses, repeats, alters and forges, from
//! whatever address. Nobody gets more out of the server or the relay than it brought, and what they keep stays within bounds.

use std::net::SocketAddr;

use tickwire::rendezvous::{
    GameInfo, Handled, LobbyCode, MAGIC, RelayOffer, RelayServer, RelayServerConfig, RendezvousClient,
    RendezvousServer, RendezvousServerConfig, lobby_address,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

use super::input::Input;

const UNIX: UnixSeconds = UnixSeconds(1_000_000);
const GAMES: usize = 3;
const CHANNELS: usize = 3;
/// The maximum of datagrams in flight.
const UNDER_WAY: usize = 64;

/// Server, relay, two peers, and strangers.
const PLACES: [&str; 6] =
    ["198.51.100.1:3478", "198.51.100.2:3480", "10.0.0.1:7", "10.0.0.2:7", "20.0.0.1:9", "20.0.0.2:9"];

struct Scene {
    now: Instant,
    server: RendezvousServer,
    relay: RelayServer,
    peers: [RendezvousClient; 2],
    under_way: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
}

fn place(at: usize) -> SocketAddr {
    PLACES[at % PLACES.len()].parse().unwrap()
}

pub fn run(data: &[u8]) {
    let relay = RelayOffer { address: place(1), key: [7; 32], bytes_per_second: 10_000 };
    let config = RendezvousServerConfig {
        relay: Some(relay),
        second_port: 3479,
        max_games: GAMES,
        ..RendezvousServerConfig::default()
    };
    let relay = RelayServerConfig { key: [7; 32], max_channels: CHANNELS, max_bytes_per_second: 50_000 };
    let mut scene = Scene {
        now: Instant::from_millis(1_000),
        server: RendezvousServer::new(config, &mut Rng::seeded(1)),
        relay: RelayServer::new(relay, &mut Rng::seeded(2)),
        peers: [2, 3].map(|at| RendezvousClient::new(place(0), vec![place(at)], &mut Rng::seeded(at as u64))),
        under_way: Vec::new(),
    };
    let info = GameInfo { title: "G".into(), protocol_id: 5, players: 1, max_players: 4, listed: true };
    scene.peers[0].register(scene.now, info);
    scene.peers[1].dial_codes(5);
    scene.transmit();
    let mut input = Input::new(data);
    while !input.is_empty() {
        scene.step(&mut input);
    }
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let at = usize::from(op >> 3);
        match op & 7 {
            0 => {
                self.now += Duration::from_millis(u64::from(op >> 3) * 50);
                self.transmit();
            }
            1 | 2 if !self.under_way.is_empty() => {
                let place = at % self.under_way.len();
                let (from, to, bytes) =
                    if op & 1 == 1 { self.under_way.remove(place) } else { self.under_way[place].clone() };
                self.handle(from, to, &bytes);
            }
            3 | 4 => {
                let (from, kind) = (place(usize::from(input.u8())), input.u8());
                let bytes = [&[MAGIC, kind][..], input.piece()].concat();
                self.handle(from, place(at), &bytes);
            }
            5 => {
                if let Some((from, _, bytes)) = self.under_way.get_mut(at).filter(|it| !it.2.is_empty()) {
                    let bit = usize::from(input.u16()) % (bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    if input.u8() & 1 == 1 {
                        *from = place(at);
                    }
                }
            }
            6 => match (at & 3, self.peers[0].code()) {
                (0, Some(code)) => {
                    self.peers[1].join(self.now, code, 5);
                    self.transmit();
                }
                (1, code) => {
                    self.peers[1].list(self.now, 5);
                    self.dial(code);
                }
                (2, _) => self.peers[0].set_players(self.now, op >> 5),
                _ => {
                    let mut out = Datagrams::new();
                    self.peers[0].unregister(&mut out);
                    self.carry(place(2), &out);
                }
            },
            _ => drop((at < self.under_way.len()).then(|| self.under_way.remove(at))),
        }
    }

    /// The second peer dials a code by its address, as clients do: the code's host or nobody gets the datagram.
    fn dial(&mut self, code: Option<LobbyCode>) {
        let (mut out, code) = (Datagrams::new(), code.unwrap_or("BCDFGH".parse().unwrap()));
        let address = lobby_address(code);
        let has_path = self.peers[1].wrap(self.now, address, b"\0request", &mut out);
        assert_eq!(out.len(), usize::from(has_path));
        assert_eq!(has_path, self.peers[1].kind_of(address).is_some());
        assert!(self.peers[1].fault_of(address).is_none() || !has_path);
        self.carry(place(3), &out);
    }

    fn handle(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let (now, mut out) = (self.now, Datagrams::new());
        if to == place(0) {
            self.server.handle_datagram(now, UNIX, from, bytes, &mut out);
            assert!(self.server.counters().games <= GAMES as u64);
        } else if to == place(1) {
            self.relay.handle_datagram(now, UNIX, from, bytes, &mut out);
            assert!(self.relay.counters().channels <= CHANNELS as u64 && out.len() <= 1);
        } else if let Some(peer) = [2, 3].iter().position(|at| place(*at) == to) {
            let handled = self.peers[peer].handle_datagram(now, from, bytes, &mut out);
            assert_eq!(handled == Handled::NotOurs, bytes.first() != Some(&MAGIC));
            while self.peers[peer].poll_event().is_some() {}
            return self.carry(to, &out);
        }
        assert!(out.total_bytes() <= bytes.len(), "{} for {}", out.total_bytes(), bytes.len());
        self.carry(to, &out);
    }

    fn transmit(&mut self) {
        for peer in 0..2 {
            let mut out = Datagrams::new();
            self.peers[peer].transmit(self.now, &mut out);
            assert!(out.len() < 200, "{} datagrams at once", out.len());
            while self.peers[peer].poll_event().is_some() {}
            self.carry(place(2 + peer), &out);
        }
    }

    fn carry(&mut self, from: SocketAddr, out: &Datagrams) {
        for (to, bytes) in out.iter() {
            if self.under_way.len() < UNDER_WAY {
                self.under_way.push((from, to, bytes.to_vec()));
            }
        }
    }
}
