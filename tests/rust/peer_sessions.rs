//! Sessions of peers without a server: what the application is handed, and clocks that were set or stood still.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tickwire::endpoint::{ChunkLimits, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, ServerConfig};
use tickwire::mesh::{Happening, LeaveReason, Mesh, MeshConfig};
use tickwire::netcode;
use tickwire::rng::Rng;
use tickwire::session::protocol::peers;
use tickwire::session::{PeerConfig, PeerPart, Session, Tick};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{ChannelConfig, ConnectionConfig, Protocol};

use crate::endpoint::ms;
use crate::pair::protocol_with;

const PROTOCOL_ID: u64 = 7;

/// Peers whose datagrams arrive in the next tick.
struct World {
    now: Instant,
    unix: u64,
    sessions: Vec<Session>,
    mail: BTreeMap<SocketAddr, Vec<(SocketAddr, Vec<u8>)>>,
    /// What happened by the ticks of each peer, and how many final statistics they handed up.
    happened: Vec<Vec<Happening>>,
    final_stats: Vec<usize>,
}

fn address(peer: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + peer as u8], 40_000))
}

fn protocol() -> Arc<Protocol> {
    let game = protocol_with(vec![ChannelConfig::reliable_ordered()]);
    Arc::new(Protocol::clone(&game).extended(peers()).unwrap())
}

impl World {
    fn new() -> Self {
        let mut world = World {
            now: Instant::ZERO,
            unix: 1_700_000_000,
            sessions: Vec::new(),
            mail: BTreeMap::new(),
            happened: Vec::new(),
            final_stats: Vec::new(),
        };
        world.add(None);
        world
    }

    /// Another peer: the host of the game, or one that joins at the host.
    fn add(&mut self, contact: Option<usize>) -> usize {
        let (peer, unix) = (self.sessions.len(), UnixSeconds(self.unix));
        let mut rng = Rng::seeded(peer as u64);
        let names = vec![address(peer), DEVELOPMENT_ADDRESS];
        let mut listener = netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 32, names);
        let own_key = [peer as u8; 32];
        listener.second_key = Some(own_key);
        listener.replace_duplicates = false;
        listener.clock_skew = Duration::from_secs(3600);
        let (connection, chunks) = (ConnectionConfig::default(), ChunkLimits::CLIENT);
        let config = ServerConfig { netcode: listener, connection, chunks };
        let host = Host::server(config, protocol(), &mut rng, unix).unwrap();
        let config = MeshConfig {
            name: format!("peer {peer}"),
            key: own_key,
            addresses: vec![address(peer)],
            places: 8,
            timeout: Duration::from_secs(5),
        };
        let mesh = match contact {
            None => Mesh::host(config),
            Some(contact) => Mesh::join(config, vec![address(contact)]),
        };
        let dialling = netcode::ClientConfig::new(PROTOCOL_ID);
        let config = PeerConfig {
            key: DEVELOPMENT_KEY,
            netcode: dialling,
            timeout: 5,
            upper_protocol: None,
            relaying: false,
        };
        let mut session = Session::new(host);
        session.set_peers(self.now, PeerPart::new(mesh, config, Box::new(rng), self.now, unix));
        self.sessions.push(session);
        self.happened.push(Vec::new());
        self.final_stats.push(0);
        peer
    }

    fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.now += ms(16);
            for peer in 0..self.sessions.len() {
                let (session, mut out) = (&mut self.sessions[peer], Datagrams::new());
                for (from, mut datagram) in self.mail.remove(&address(peer)).unwrap_or_default() {
                    let unix = UnixSeconds(self.unix);
                    session.handle_datagram(self.now, unix, from, &mut datagram, &mut out);
                }
                let mut tick = Tick::default();
                session.take(self.now, &mut tick);
                self.happened[peer].append(&mut tick.players);
                self.final_stats[peer] += tick.final_stats.len();
                session.transmit(self.now, &mut out);
                for (to, datagram) in out.iter() {
                    self.mail.entry(to).or_default().push((address(peer), datagram.to_vec()));
                }
            }
        }
    }

    fn members(&mut self, peer: usize) -> usize {
        self.sessions[peer].peers().unwrap().mesh().roster().members.len()
    }
}

#[test]
fn introductions_are_dated_by_the_clock_of_after_a_suspend() {
    let mut world = World::new();
    world.add(Some(0));
    world.run(100);
    // The monotonic clock stood still meanwhile.
    world.unix += 3 * 3600;
    world.add(Some(0));
    world.run(200);
    assert_eq!([0, 1, 2].map(|peer| world.members(peer)), [3; 3]);
}

#[test]
fn players_that_left_take_no_memory() {
    let mut world = World::new();
    for _ in 0..5 {
        let visitor = world.add(Some(0));
        world.run(100);
        world.sessions[visitor].peers().unwrap().mesh_mut().end(LeaveReason::Closed);
        world.run(100);
    }
    let left = |it: &&Happening| matches!(it, Happening::Left { .. });
    assert_eq!(world.happened[0].iter().filter(left).count(), 5);
    assert_eq!(world.final_stats[0], 0);
}
