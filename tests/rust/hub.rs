//! A server and two clients of other servers on one port, on the virtual network and on loopback sockets.

use std::net::SocketAddr;

use tickwire::driver::udp::UdpConfig;
use tickwire::driver::{Driver, Hub, MemberId, OsEntropy, Poller, Shared, VirtualNetwork};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Event, Host, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::netsim::Conditions;
use tickwire::session::{Session, Tick};
use tickwire::time::Duration;
use tickwire::transport::{ConnectionConfig, SendOptions};

use crate::endpoint::ms;
use crate::pair::{DIALLED, RELIABLE, number, protocol};

const PROTOCOL_ID: u64 = 7;

/// A server at an address, to be put on a port.
fn server(driver: &Driver) -> Session {
    let names = vec![driver.local_address(), DEVELOPMENT_ADDRESS];
    let config = ServerConfig {
        netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 4, names),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits::SERVER,
    };
    Session::new(Host::server(config, protocol(), &mut OsEntropy, driver.unix()).unwrap())
}

/// A client that dials these, to be put on a port.
fn client(driver: &Driver, id: u64, servers: &[SocketAddr]) -> Session {
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &DEVELOPMENT_KEY,
        client_id: id,
        created: driver.unix(),
        lifetime: Some(60),
        timeout: Some(2),
        public_addresses: servers,
        internal_addresses: Some(&vec![DEVELOPMENT_ADDRESS; servers.len()]),
        user_data: &[0; 256],
        dated: true,
    };
    let token = ConnectToken::generate(&params, &mut OsEntropy).unwrap();
    let config = ClientConfig {
        netcode: netcode::ClientConfig::new(PROTOCOL_ID),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits::CLIENT,
    };
    Session::new(Host::client(config, protocol(), token, driver.now()).unwrap().0)
}

/// Ports, and the members of each.
struct World {
    hubs: Vec<Hub>,
    members: Vec<Vec<MemberId>>,
    network: Option<VirtualNetwork>,
}

impl World {
    fn on(network: Option<VirtualNetwork>, ports: u8) -> Self {
        let driver = |n: u8| match &network {
            Some(network) => {
                Driver::simulated(network.clone(), SocketAddr::from(([10, 0, 0, 1 + n], 7))).unwrap()
            }
            None => Driver::udp("127.0.0.1:0".parse().unwrap(), UdpConfig::default()).unwrap(),
        };
        let hubs = (0..ports).map(|n| Hub::new(driver(n))).collect();
        World { hubs, members: vec![Vec::new(); ports.into()], network }
    }

    fn address(&self, port: usize) -> SocketAddr {
        self.hubs[port].driver().local_address()
    }

    fn listen(&mut self, port: usize) {
        let session = server(self.hubs[port].driver());
        self.members[port].push(self.hubs[port].add(session).unwrap());
    }

    fn dial(&mut self, port: usize, id: u64, servers: &[SocketAddr]) {
        let session = client(self.hubs[port].driver(), id, servers);
        self.members[port].push(self.hubs[port].add(session).unwrap());
    }

    /// One tick of all; a virtual network's time passes.
    fn tick(&mut self) {
        if let Some(network) = &self.network {
            network.advance(ms(16));
        }
        for (hub, members) in self.hubs.iter_mut().zip(&self.members) {
            hub.receive().unwrap();
            members.iter().for_each(|member| hub.transmit(*member));
        }
    }

    fn session(&mut self, port: usize, place: usize) -> &mut Session {
        let member = self.members[port][place];
        self.hubs[port].session(member).unwrap()
    }

    /// Ticks until it is so. Sockets have as long as they take, within reason.
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begun = std::time::Instant::now();
        while !is_so(self) {
            let now = self.network.as_ref().map(|network| network.now().as_nanos());
            let took = now.map_or_else(|| begun.elapsed(), Duration::from_nanos);
            assert!(took < Duration::from_secs(60), "in time");
            self.tick();
        }
    }

    fn send(&mut self, port: usize, place: usize, peer: PeerHandle, what: u32) {
        let now = self.hubs[port].driver().now();
        let host = self.session(port, place).change();
        host.send(now, peer, RELIABLE, number(what), SendOptions::default()).unwrap();
    }

    fn take(&mut self, port: usize, place: usize) -> Tick {
        let mut tick = Tick::default();
        self.session(port, place).take(&mut tick);
        tick
    }
}

fn heard(tick: &Tick) -> Vec<u32> {
    let bodies = tick.inbox.records().iter().map(|record| tick.inbox.body(record));
    bodies.map(|body| u32::from_le_bytes(body[..4].try_into().unwrap())).collect()
}

fn a_server_and_two_clients_share_a_port(network: Option<VirtualNetwork>) {
    let mut world = World::on(network, 4);
    (0..3).for_each(|port| world.listen(port));
    let servers: Vec<_> = (0..3).map(|port| world.address(port)).collect();
    world.dial(0, 1, &servers[1..2]);
    world.dial(0, 2, &servers[2..3]);
    world.dial(3, 3, &servers[0..1]);
    world.until(|world| {
        (1..3).all(|place| world.session(0, place).host().is_connected(DIALLED))
            && (0..3).all(|port| world.session(port, 0).host().connected().count() == 1)
            && world.session(3, 0).host().is_connected(DIALLED)
    });
    for place in 1..3 {
        world.send(0, place, DIALLED, 100 + place as u32);
    }
    world.send(3, 0, DIALLED, 100);
    for port in 0..3 {
        let peer = world.session(port, 0).host().connected().next().unwrap();
        world.send(port, 0, peer, 200 + port as u32);
    }
    let mut ticks: Vec<Vec<u32>> = vec![Vec::new(); 6];
    world.until(|world| {
        for (place, (port, member)) in
            [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (3, 0)].into_iter().enumerate()
        {
            ticks[place].extend(heard(&world.take(port, member)));
        }
        ticks.iter().all(|heard| !heard.is_empty())
    });
    assert_eq!(ticks, [[100], [201], [202], [101], [102], [200]], "each to whom it was for");
    assert_eq!(world.session(0, 0).host().netcode_counters().total_dropped(), 0);

    // One goes, and the other stays.
    let gone = world.members[0].remove(1);
    world.hubs[0].close(gone);
    assert!(world.hubs[0].session(gone).is_none());
    world.until(|world| world.session(1, 0).host().connected().next().is_none());
    assert!(world.session(0, 1).host().is_connected(DIALLED));
    assert_eq!(world.session(2, 0).host().connected().count(), 1);
}

#[test]
fn a_server_and_two_clients_share_a_port_of_the_virtual_network() {
    let conditions = Conditions::perfect().latency(ms(20), ms(5)).loss(0.05);
    a_server_and_two_clients_share_a_port(Some(VirtualNetwork::new(conditions, 1).unwrap()));
}

#[test]
fn a_server_and_two_clients_share_a_socket() {
    a_server_and_two_clients_share_a_port(None);
}

#[test]
fn a_thread_keeps_all_sessions_of_a_port_going() {
    let mut world = World::on(None, 2);
    (0..2).for_each(|port| world.listen(port));
    let there = world.address(1);
    world.dial(0, 1, &[there]);
    let (mut hubs, members) = (core::mem::take(&mut world.hubs), core::mem::take(&mut world.members));
    let shared = |hub: Hub| {
        let poller = Poller::new(hub.driver().socket().unwrap().handle().unwrap()).unwrap();
        Shared::new(hub, Some(poller)).unwrap()
    };
    let (second, first) = (shared(hubs.pop().unwrap()), shared(hubs.pop().unwrap()));
    let begun = std::time::Instant::now();
    // Nobody ticks them.
    while !first.lock().unwrap().session(members[0][1]).unwrap().host().is_connected(DIALLED) {
        assert!(begun.elapsed() < Duration::from_secs(60), "in time");
        std::thread::yield_now();
    }
    first.close();
    while second.lock().unwrap().session(members[1][0]).unwrap().host().connected().next().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is told");
        std::thread::yield_now();
    }
    assert!(second.lock().unwrap().take_error().is_none());
}

#[test]
fn strangers_reach_the_listener_and_forged_senders_nobody_else() {
    let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
    let mut world = World::on(Some(network.clone()), 3);
    (0..2).for_each(|port| world.listen(port));
    let (shared, other) = (world.address(0), world.address(1));
    world.dial(0, 1, &[other]);
    world.dial(2, 2, &[shared]);
    world.until(|world| {
        world.session(0, 1).host().is_connected(DIALLED) && world.session(2, 0).host().is_connected(DIALLED)
    });
    let listener_dropped = |world: &mut World| world.session(0, 0).host().netcode_counters().total_dropped();
    let client_dropped = |world: &mut World| world.session(0, 1).host().netcode_counters().total_dropped();
    let before = (listener_dropped(&mut world), client_dropped(&mut world));
    for n in 0..1_000u32 {
        // In the name of the server that the client dials, and of nobody.
        let datagram = [0x15; 40];
        network.deliver(other, shared, &datagram);
        network.deliver(SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 9)), shared, &datagram);
        world.tick();
    }
    assert_eq!(client_dropped(&mut world) - before.1, 1_000);
    assert_eq!(listener_dropped(&mut world) - before.0, 1_000);
    assert!(world.session(0, 1).host().is_connected(DIALLED));
    assert_eq!(world.session(0, 0).host().connected().count(), 1);
    assert_eq!(world.hubs[0].counters().1, 0);
}

#[test]
fn two_sessions_of_a_port_have_no_server_and_no_role_in_common() {
    let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
    let mut world = World::on(Some(network), 2);
    world.listen(0);
    let second = server(world.hubs[0].driver());
    assert_eq!(world.hubs[0].add(second).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let dialled = world.address(1);
    world.dial(0, 1, &[dialled]);
    let second = client(world.hubs[0].driver(), 2, &[dialled]);
    assert_eq!(world.hubs[0].add(second).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    // Free again when the first is gone.
    let first = world.members[0].pop().unwrap();
    world.hubs[0].close(first);
    world.dial(0, 3, &[dialled]);
}

#[test]
fn a_client_that_goes_on_to_its_next_server_takes_its_route_along() {
    let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
    let mut world = World::on(Some(network.clone()), 2);
    world.listen(0);
    world.listen(1);
    let nobody = SocketAddr::from(([10, 0, 0, 99], 7));
    let there = world.address(1);
    world.dial(0, 1, &[nobody, there]);
    world.until(|world| world.session(0, 1).host().is_connected(DIALLED));
    let dropped =
        |world: &mut World, place| world.session(0, place).host().netcode_counters().total_dropped();
    let before = [dropped(&mut world, 0), dropped(&mut world, 1)];
    network.deliver(nobody, world.address(0), &[0x15; 40]);
    world.tick();
    assert_eq!([dropped(&mut world, 0), dropped(&mut world, 1)], [before[0] + 1, before[1]]);
    let events = world.take(1, 0).events;
    assert!(matches!(events[..], [Event::Accepted { .. }]), "{events:?}");
}

#[test]
fn a_hub_that_is_woken_when_it_says_so_keeps_all_its_sessions() {
    let network = VirtualNetwork::new(Conditions::perfect().latency(ms(10), ms(0)), 1).unwrap();
    let mut world = World::on(Some(network.clone()), 2);
    (0..2).for_each(|port| world.listen(port));
    let there = world.address(1);
    world.dial(0, 1, &[there]);
    world.dial(1, 2, &[SocketAddr::from(([10, 0, 0, 9], 7))]);
    world.until(|world| world.session(0, 1).host().is_connected(DIALLED));
    for _ in 0..1_000 {
        network.advance(ms(10));
        for hub in &mut world.hubs {
            hub.turn().unwrap();
        }
    }
    assert!(world.session(0, 1).host().is_connected(DIALLED), "ten seconds without a tick");
    assert_eq!(world.session(1, 0).host().connected().count(), 1);
    assert!(!world.session(1, 1).host().is_connected(DIALLED));
}
