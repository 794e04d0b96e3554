//! Hosts of a peer-to-peer game: each listens and dials from one address, over a virtual network.

use crate::netcode::total_dropped;
use std::net::SocketAddr;

use tickwire::endpoint::{
    ChunkLimits, DEVELOPMENT_KEY, DisconnectReason, Event, Goodbye, Host, Inbox, PeerHandle, SendError,
    ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::netsim::{Conditions, Network};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{ConnectionConfig, SendOptions};

use crate::endpoint::ms;
use crate::pair::{RELIABLE, number, protocol};

const PROTOCOL_ID: u64 = 0x7469_636B;
const SLOTS: usize = 4;

fn unix(now: Instant) -> UnixSeconds {
    UnixSeconds(1_700_000_000 + now.as_nanos() / 1_000_000_000)
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + host as u8], 40_000))
}

struct World {
    network: Network,
    rng: Rng,
    hosts: Vec<Host>,
    events: Vec<Vec<Event>>,
    out: Datagrams,
    /// The application of this host takes no events.
    deaf: Option<usize>,
}

impl World {
    fn new(hosts: usize, conditions: Conditions, seed: u64) -> Self {
        let (mut network, mut rng) = (Network::new(conditions, seed).unwrap(), Rng::seeded(seed));
        let host = |place| {
            network.add_host(address(place));
            let names = vec![address(place)];
            let config = ServerConfig {
                netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, SLOTS, names),
                connection: ConnectionConfig::default(),
                chunks: ChunkLimits::CLIENT,
            };
            Host::server(config, protocol(), &mut rng, unix(Instant::ZERO)).unwrap()
        };
        let hosts: Vec<_> = (0..hosts).map(host).collect();
        let events = hosts.iter().map(|_| Vec::new()).collect();
        World { network, rng, hosts, events, out: Datagrams::new(), deaf: None }
    }

    /// Lets a host dial another; its client id is its place.
    fn dial(&mut self, from: usize, to: usize) -> PeerHandle {
        let now = self.network.now();
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: from as u64,
            created: unix(now),
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &[address(to)],
            internal_addresses: None,
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut self.rng).unwrap();
        self.hosts[from].dial(now, netcode::ClientConfig::new(PROTOCOL_ID), token, to as u64).unwrap()
    }

    fn ticks(&mut self, count: usize) {
        for _ in 0..count {
            self.network.advance(self.network.now() + Duration::from_micros(16_667));
            for place in 0..self.hosts.len() {
                self.tick_host(place);
            }
        }
    }

    fn tick_host(&mut self, place: usize) {
        let (now, host) = (self.network.now(), &mut self.hosts[place]);
        while let Some((from, mut datagram)) = self.network.receive(address(place)) {
            host.handle_datagram(now, unix(now), from, &mut datagram, &mut self.out);
        }
        host.transmit(now, &mut self.out);
        if self.deaf != Some(place) {
            self.events[place].extend(core::iter::from_fn(|| host.poll_event()));
        }
        self.out.iter().for_each(|(to, datagram)| self.network.send(address(place), to, datagram));
        self.out.clear();
    }

    /// The clients of a host, with the places of the hosts that they are.
    fn accepted(&self, place: usize) -> Vec<(usize, PeerHandle)> {
        let accepted = self.events[place].iter().filter_map(|event| match event {
            Event::Accepted { peer, client_id, .. } => Some((*client_id as usize, *peer)),
            _ => None,
        });
        accepted.collect()
    }

    fn send(&mut self, place: usize, peer: PeerHandle, what: u32) -> Result<(), SendError> {
        self.hosts[place].send(self.network.now(), peer, RELIABLE, number(what), SendOptions::default())
    }

    /// What each peer of a host said.
    fn heard(&mut self, place: usize) -> Vec<(PeerHandle, u32)> {
        let mut inbox = Inbox::new();
        self.hosts[place].take_messages(&mut inbox);
        let number = |body: &[u8]| u32::from_le_bytes(body[..4].try_into().unwrap());
        inbox.game.records.iter().map(|record| (record.head.peer, number(inbox.game.body(record)))).collect()
    }

    fn reasons(&self, place: usize) -> Vec<(PeerHandle, DisconnectReason)> {
        let over = self.events[place].iter().filter_map(|event| match event {
            Event::Disconnected { peer, reason, .. } => Some((*peer, *reason)),
            _ => None,
        });
        over.collect()
    }
}

/// Two that dial each other, and a third that one of them dials and that dials the other: host, peer, and the host that
/// the peer is.
fn triangle(conditions: Conditions, seed: u64) -> (World, Vec<(usize, PeerHandle, usize)>) {
    let mut world = World::new(3, conditions, seed);
    let mut pairs = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (2, 0), (1, 2)] {
        pairs.push((from, world.dial(from, to), to));
    }
    world.ticks(120);
    for place in 0..3 {
        pairs.extend(world.accepted(place).into_iter().map(|(from, peer)| (place, peer, from)));
    }
    assert_eq!(pairs.len(), 8, "seed {seed}: {:?}", world.events);
    assert!(pairs.iter().all(|(place, peer, _)| world.hosts[*place].is_connected(*peer)));
    (world, pairs)
}

#[test]
fn hosts_that_dial_each_other_have_a_connection_each_way() {
    for seed in 0..10 {
        let lossy = Conditions::perfect().latency(ms(30), ms(10)).loss(0.05).duplicate(0.02);
        let (mut world, pairs) = triangle(lossy, seed);
        for round in 0..20 {
            for (place, peer, to) in pairs.clone() {
                world.send(place, peer, (round * 100 + place * 10 + to) as u32).unwrap();
            }
            world.ticks(1);
        }
        world.ticks(120);
        for place in 0..3 {
            let heard = world.heard(place);
            for (_, peer, from) in pairs.iter().filter(|(at, ..)| *at == place) {
                let of_it = heard.iter().filter(|(by, _)| by == peer).map(|(_, what)| *what as usize);
                let said = (0..20).map(|round| round * 100 + from * 10 + place);
                assert!(of_it.eq(said), "seed {seed}, {from} to {place}: {heard:?}");
            }
            assert_eq!(heard.len(), 20 * pairs.iter().filter(|(at, ..)| *at == place).count());
        }
    }
}

#[test]
fn one_connection_of_two_between_the_same_hosts_ends_alone() {
    let (mut world, pairs) = triangle(Conditions::perfect().latency(ms(20), ms(0)), 1);
    let (now, dialled) = (world.network.now(), pairs[0].1);
    let goodbye = Goodbye { linger: ms(500), detail: None };
    world.send(0, dialled, 77).unwrap();
    world.hosts[0].disconnect_with(now, dialled, goodbye, &mut world.out).unwrap();
    assert_eq!(world.send(0, dialled, 78), Err(SendError::NotConnected));
    world.ticks(60);
    assert_eq!(world.reasons(0), [(dialled, DisconnectReason::Closed)]);
    let (_, accepted) = world.accepted(1)[0];
    assert_eq!(world.reasons(1), [(accepted, DisconnectReason::PeerDisconnected)]);
    assert_eq!(world.heard(1), [(accepted, 77)]);
    assert_eq!(world.hosts.iter().map(|host| host.connected().count()).sum::<usize>(), 6);

    // In its place comes another, whom the old handle doesn't reach.
    let again = world.dial(0, 1);
    assert_eq!((again.slot, again.generation), (dialled.slot, dialled.generation + 1));
    world.ticks(60);
    assert!(world.hosts[0].is_connected(again));
    assert_eq!(world.send(0, dialled, 1), Err(SendError::NotConnected));
    assert!(world.hosts[0].dialled(dialled).is_none());
}

#[test]
fn datagrams_in_the_name_of_a_peer_change_nothing() {
    let (mut world, pairs) = triangle(Conditions::perfect().latency(ms(20), ms(0)), 1);
    let mut rng = Rng::seeded(9);
    for _ in 0..2_000 {
        let now = world.network.now();
        let mut datagram = vec![0; 1 + rng.next_u64() as usize % 1_300];
        datagram.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
        // All kinds, with sequences of all lengths.
        datagram[0] = rng.next_u64() as u8;
        world.hosts[0].handle_datagram(now, unix(now), address(1), &mut datagram, &mut world.out);
        assert!(world.out.is_empty());
    }
    assert!(total_dropped(&world.hosts[0].netcode_counters()) >= 2_000);
    for (place, peer, to) in &pairs {
        world.send(*place, *peer, *to as u32).unwrap();
    }
    world.ticks(30);
    assert_eq!((0..3).map(|place| world.heard(place).len()).sum::<usize>(), 8);
}

#[test]
fn a_host_that_closes_ends_all_its_connections_and_what_it_dials() {
    let (mut world, _) = triangle(Conditions::perfect().latency(ms(20), ms(0)), 1);
    // Nobody is there.
    let in_vain = PeerHandle { slot: SLOTS as u32 + 1, generation: 0 };
    let now = world.network.now();
    let token = {
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: 9,
            created: unix(now),
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &[address(9)],
            internal_addresses: None,
            user_data: &[0; 256],
            dated: true,
        };
        ConnectToken::generate(&params, &mut world.rng).unwrap()
    };
    let config = netcode::ClientConfig::new(PROTOCOL_ID);
    assert_eq!(world.hosts[0].dial(now, config, token, 9).unwrap(), in_vain);
    world.ticks(1);
    let now = world.network.now();
    world.hosts[0].begin_close(now, Goodbye { linger: ms(1_000), detail: None });
    assert!(!world.hosts[0].is_over());
    world.ticks(60);
    assert!(world.hosts[0].is_over());
    assert_eq!(world.reasons(0).len(), 4, "each once: {:?}", world.reasons(0));
    assert!(world.reasons(0).iter().all(|(_, reason)| *reason == DisconnectReason::Closed));
    let others: Vec<_> = [1, 2].into_iter().flat_map(|place| world.reasons(place)).collect();
    assert_eq!(others.len(), 3, "{others:?}");
    assert_eq!(world.hosts[1].connected().count() + world.hosts[2].connected().count(), 2);
}

#[test]
fn dials_that_are_over_make_no_room_for_events() {
    let mut world = World::new(2, Conditions::default(), 5);
    for _ in 0..100 {
        let (peer, now) = (world.dial(0, 1), world.network.now());
        world.hosts[0].hang_up_on(now, peer, &mut world.out);
        world.ticks(1);
    }
    world.deaf = Some(0);
    for _ in 0..20 {
        let peer = world.dial(1, 0);
        world.ticks(30);
        let _refused =
            world.hosts[1].disconnect_with(world.network.now(), peer, Goodbye::default(), &mut world.out);
        world.ticks(30);
    }
    let waiting = core::iter::from_fn(|| world.hosts[0].poll_event()).count();
    // Two for each slot, and for each place of a dial: a few were not over when the next one began.
    assert!((2 * SLOTS..4 * SLOTS).contains(&waiting), "{waiting}");
}
