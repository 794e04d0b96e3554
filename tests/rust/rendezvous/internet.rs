//! A virtual internet with a rendezvous server, a relay and peers.

use core::net::{IpAddr, SocketAddr};

use tickwire::netsim::{Conditions, NatKind, Network};
use tickwire::rendezvous::client::PeerCounters;
use tickwire::rendezvous::relay::RelayCounters;
use tickwire::rendezvous::server::{RendezvousCounters, observe};
use tickwire::rendezvous::{
    GameInfo, Handled, JoinId, LobbyCode, PathKind, RelayOffer, RelayServer, RelayServerConfig,
    RendezvousClient, RendezvousEvent, RendezvousServer, RendezvousServerConfig, is_virtual,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

pub(super) const SERVER: &str = "198.51.100.1:3478";
pub(super) const SECOND: &str = "198.51.100.1:3479";
pub(super) const RELAY: &str = "198.51.100.2:3480";
pub(super) const KEY: [u8; 32] = [7; 32];
pub(super) const LIFETIME: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(5);

pub(super) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn game() -> GameInfo {
    GameInfo { title: "Ann's game".into(), protocol_id: 5, players: 1, max_players: 4, listed: true }
}

pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) client: RendezvousClient,
    pub(super) events: Vec<(Instant, RendezvousEvent)>,
    /// What the game got, with the address that it saw.
    pub(super) got: Vec<(SocketAddr, Vec<u8>)>,
}

impl Peer {
    /// The last way found, and when.
    pub(super) fn path(&self) -> Option<(Instant, SocketAddr, PathKind)> {
        self.events.iter().rev().find_map(|(at, event)| match event {
            RendezvousEvent::Path { address, kind, .. } => Some((*at, *address, *kind)),
            _ => None,
        })
    }

    pub(super) fn counters(&self) -> PeerCounters {
        self.client.counters()
    }
}

pub(super) struct Internet {
    pub(super) network: Network,
    pub(super) server: RendezvousServer,
    relay: RelayServer,
    pub(super) peers: Vec<Peer>,
    /// The bytes that each address was sent by the server and the relay, and those it sent them.
    pub(super) answered: usize,
    pub(super) asked: usize,
}

impl Internet {
    pub(super) fn new(conditions: Conditions, seed: u64, second_port: bool) -> Self {
        let mut network = Network::new(conditions, seed).unwrap();
        [SERVER, SECOND, RELAY].iter().for_each(|host| assert!(network.add_host(address(host))));
        let relay = RelayOffer { address: address(RELAY), key: KEY, bytes_per_second: 100_000 };
        let second_port = if second_port { address(SECOND).port() } else { 0 };
        let config = RendezvousServerConfig { relay: Some(relay), second_port, ..Default::default() };
        let relay = RelayServerConfig { key: KEY, max_channels: 100, max_bytes_per_second: 1_000_000 };
        Internet {
            network,
            server: RendezvousServer::new(config, &mut Rng::seeded(seed)),
            relay: RelayServer::new(relay, &mut Rng::seeded(seed ^ 1)),
            peers: Vec::new(),
            answered: 0,
            asked: 0,
        }
    }

    pub(super) fn add_peer(&mut self, at: &str) -> usize {
        assert!(self.network.add_host(address(at)));
        let number = self.peers.len();
        let client =
            RendezvousClient::new(address(SERVER), vec![address(at)], &mut Rng::seeded(1000 + number as u64));
        self.peers.push(Peer { address: address(at), client, events: Vec::new(), got: Vec::new() });
        number
    }

    pub(super) fn add_nat(&mut self, public: &str, inside: &[&str], kind: NatKind) {
        let inside: Vec<_> = inside.iter().map(|text| ip(text)).collect();
        self.network.add_nat(ip(public), &inside, kind, LIFETIME).unwrap();
    }

    pub(super) fn now(&self) -> Instant {
        self.network.now()
    }

    pub(super) fn counters(&self) -> (RendezvousCounters, RelayCounters) {
        (self.server.counters(), self.relay.counters())
    }

    /// Lets one peer have a game with a code.
    pub(super) fn host(&mut self, peer: usize) -> LobbyCode {
        let now = self.now();
        self.peers[peer].client.register(now, game());
        for _ in 0..600 {
            self.step();
            if let Some(code) = self.peers[peer].client.code() {
                return code;
            }
        }
        panic!("no code: {:?}", self.peers[peer].events);
    }

    pub(super) fn join(&mut self, peer: usize, code: LobbyCode) -> JoinId {
        let now = self.now();
        self.peers[peer].client.join(now, code, 5).unwrap()
    }

    /// Joins, and says how both sides reach each other and after which time the later one knew it: within three seconds.
    pub(super) fn meet(&mut self, host: usize, joiner: usize) -> (PathKind, Duration) {
        if let Some(met) = self.meet_within(host, joiner, Duration::from_secs(3)) {
            return met;
        }
        let both = [host, joiner].map(|it| (&self.peers[it].events, self.peers[it].counters()));
        panic!("{both:?} {:?} {:?}", self.counters(), self.network.counters());
    }

    /// As [`Internet::meet`], within another time.
    pub(super) fn meet_within(
        &mut self,
        host: usize,
        joiner: usize,
        limit: Duration,
    ) -> Option<(PathKind, Duration)> {
        let code = self.host(host);
        let before = self.now();
        [host, joiner].iter().for_each(|peer| self.peers[*peer].events.clear());
        self.join(joiner, code);
        while self.now() - before < limit {
            self.step();
            if let (Some(one), Some(other)) = (self.peers[host].path(), self.peers[joiner].path()) {
                assert_eq!(one.2, other.2, "both see the same kind");
                self.check_carries(host, joiner);
                return Some((one.2, one.0.max(other.0) - before));
            }
        }
        None
    }

    /// The game's datagrams go both ways, and come from where they are sent to.
    pub(super) fn check_carries(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            let seen = self.peers[from].path().unwrap().1;
            let expected = self.peers[to].path().unwrap().1;
            self.peers[to].got.clear();
            for _ in 0..20 {
                self.send(from, seen, &[3; 1225]);
                self.run(Duration::from_millis(50));
            }
            let got = &self.peers[to].got;
            assert!(got.len() > 5, "{} of 20", got.len());
            assert!(got.iter().all(|(from, bytes)| *from == expected && bytes == &[3; 1225]), "{got:?}");
        }
    }

    /// Sends a datagram of the game.
    pub(super) fn send(&mut self, from: usize, to: SocketAddr, datagram: &[u8]) {
        let mut out = Datagrams::new();
        out.push(to, datagram);
        let now = self.now();
        self.peers[from].client.wrap_all(now, &mut out);
        self.carry(self.peers[from].address, &out);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.step();
        }
    }

    pub(super) fn step(&mut self) {
        self.network.advance(self.network.now() + STEP);
        let (now, unix) = (self.now(), UnixSeconds(1_000_000 + self.now().as_nanos() / 1_000_000_000));
        self.server.sweep(now);
        self.relay.sweep(now);
        for at in [SERVER, SECOND, RELAY].map(address) {
            let mut out = Datagrams::new();
            while let Some((from, bytes)) = self.network.receive(at) {
                self.asked += bytes.len();
                if at == address(SERVER) {
                    self.server.handle_datagram(now, unix, from, &bytes, &mut out);
                } else if at == address(SECOND) {
                    observe(from, &bytes, &mut out);
                } else {
                    self.relay.handle_datagram(now, unix, from, &bytes, &mut out);
                }
            }
            self.answered += out.total_bytes();
            self.carry(at, &out);
        }
        for number in 0..self.peers.len() {
            let mut out = Datagrams::new();
            let peer = &mut self.peers[number];
            while let Some((from, bytes)) = self.network.receive(peer.address) {
                match peer.client.handle_datagram(now, from, &bytes, &mut out) {
                    Handled::NotOurs => peer.got.push((from, bytes)),
                    Handled::Relayed(from, bytes) => peer.got.push((from, bytes.to_vec())),
                    Handled::Taken => {}
                }
            }
            peer.client.transmit(now, &mut out);
            assert!(peer.client.next_deadline() > now, "what is due was done");
            peer.events.extend(core::iter::from_fn(|| peer.client.poll_event()).map(|event| (now, event)));
            self.carry(self.peers[number].address, &out);
        }
    }

    pub(super) fn carry(&mut self, from: SocketAddr, out: &Datagrams) {
        for (to, bytes) in out.iter() {
            assert!(!is_virtual(to));
            self.network.send(from, to, bytes);
        }
    }
}
