//! A server that has its clients asks for no memory: whatever it receives and sends, it uses again what it has.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{ChannelConfig, ChannelKind, ConnectionConfig, Message, Protocol, SendOptions};

use crate::memory::requests;
use crate::pair::{DIALLED, blob, number, protocol_with};

const CLIENTS: usize = 64;
const PROTOCOL_ID: u64 = 7;
const TICK: Duration = Duration::from_micros(16_667);

/// Of each way, one datagram in this many is lost, and others come up to so much late: in turn and not by chance, so that
/// what is the most at once has been seen after some seconds.
const LOSS: usize = 20;
const LATENCY: Duration = Duration::from_millis(30);
const JITTER: Duration = Duration::from_millis(20);
const JITTERS: usize = 7;

/// Clients begin that turn at this many different places.
const PHASES: usize = 4;

/// Packets remembered, fewer than usual: those that were lost are until the window has passed them twice.
const WINDOW: usize = 256;

const RELIABLE: usize = 0;
const UNORDERED: usize = 1;
const UNRELIABLE: usize = 2;
const SEQUENCED: usize = 3;
const REDUNDANT: usize = 4;
const LATEST: usize = 5;

fn every_channel() -> Arc<Protocol> {
    let unordered = match ChannelConfig::reliable_ordered().kind {
        ChannelKind::Reliable { receive_window, receive_bytes, resend, .. } => {
            ChannelKind::Reliable { ordered: false, receive_window, receive_bytes, resend }
        }
        other => other,
    };
    protocol_with(vec![
        ChannelConfig::reliable_ordered(),
        ChannelConfig::new(unordered),
        ChannelConfig::unreliable(),
        ChannelConfig::new(ChannelKind::Sequenced { receive_queue: 64 }),
        ChannelConfig::new(ChannelKind::Redundant { copies: 3, receive_queue: 64 }),
        ChannelConfig::new(ChannelKind::Latest { keys: 8 }),
    ])
}

/// A way that loses, delays and reorders datagrams.
struct Way {
    sent: usize,
    under_way: VecDeque<(Instant, Vec<u8>)>,
}

impl Way {
    fn send(&mut self, now: Instant, datagram: &[u8]) {
        self.sent += 1;
        if !self.sent.is_multiple_of(LOSS) {
            let late = (self.sent * 3 % JITTERS) as u32;
            let arrival = now + LATENCY + JITTER * late / JITTERS as u32;
            let at = self.under_way.partition_point(|(other, _)| *other <= arrival);
            self.under_way.insert(at, (arrival, datagram.to_vec()));
        }
    }

    fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.under_way.front().filter(|(arrival, _)| *arrival <= now)?;
        self.under_way.pop_front().map(|(_, datagram)| datagram)
    }
}

struct Player {
    client: Host,
    address: SocketAddr,
    up: Way,
    down: Way,
    inbox: Inbox,
}

/// A server and its clients, which talk on every channel. What is counted is their own; messages come ready made.
struct World {
    now: Instant,
    server: Host,
    inbox: Inbox,
    players: Vec<Player>,
    out: Datagrams,
    requests: usize,
    received: usize,
}

impl World {
    fn new() -> Self {
        let mut rng = Rng::seeded(1);
        let protocol = every_channel();
        let mut connection = ConnectionConfig::default();
        (connection.packets.acks.sent_window, connection.packets.acks.received_window) = (WINDOW, WINDOW);
        let server = ServerConfig {
            netcode: netcode::ServerConfig::new(
                PROTOCOL_ID,
                DEVELOPMENT_KEY,
                CLIENTS,
                vec![DEVELOPMENT_ADDRESS],
            ),
            connection: connection.clone(),
            chunks: ChunkLimits::SERVER,
        };
        let players = (0..CLIENTS).map(|index| {
            let params = TokenParams {
                protocol_id: PROTOCOL_ID,
                private_key: &DEVELOPMENT_KEY,
                client_id: index as u64,
                created: UnixSeconds(1_000_000),
                lifetime: Some(30),
                timeout: Some(10),
                public_addresses: &[server_address()],
                internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
                user_data: &[0; 256],
                dated: true,
            };
            let token = ConnectToken::generate(&params, &mut Rng::seeded(index as u64)).unwrap();
            let config = ClientConfig {
                netcode: netcode::ClientConfig::new(PROTOCOL_ID),
                connection: connection.clone(),
                chunks: ChunkLimits::CLIENT,
            };
            let way = |sent| Way { sent, under_way: VecDeque::new() };
            Player {
                client: Host::client(config, protocol.clone(), token, Instant::ZERO).unwrap().0,
                address: SocketAddr::from(([10, 0, 1, index as u8], 1)),
                up: way(index % PHASES),
                down: way(index % PHASES * 3),
                inbox: Inbox::new(),
            }
        });
        World {
            now: Instant::ZERO,
            players: players.collect(),
            server: Host::server(server, protocol.clone(), &mut rng, UnixSeconds(1_000_000)).unwrap(),
            inbox: Inbox::new(),
            out: Datagrams::new(),
            requests: 0,
            received: 0,
        }
    }

    /// A tick of everybody, who send `messages` each to each, on these channels.
    fn tick(&mut self, messages: &[(usize, u32, Message)]) {
        self.now += TICK;
        let now = self.now;
        let before = requests();
        let mut others = 0;
        for player in &mut self.players {
            let Player { client, inbox, up, down, .. } = player;
            while let Some(mut datagram) = uncounted(&mut others, || down.receive(now)) {
                client.handle_datagram(now, UnixSeconds(0), server_address(), &mut datagram, &mut self.out);
            }
            inbox.game.clear();
            client.take_messages(inbox);
            self.received += inbox.game.records.len();
            while client.poll_event().is_some() {}
            if client.is_connected(DIALLED) {
                for (channel, key, message) in messages {
                    let options = SendOptions { key: *key, ..SendOptions::default() };
                    client.send(now, DIALLED, *channel, message.clone(), options).unwrap();
                }
            }
            client.transmit(now, &mut self.out);
            uncounted(&mut others, || {
                self.out.iter().for_each(|(_, datagram)| up.send(now, datagram));
            });
            self.out.clear();
        }
        for player in &mut self.players {
            while let Some(mut datagram) = uncounted(&mut others, || player.up.receive(now)) {
                let unix = UnixSeconds(1_000_000);
                self.server.handle_datagram(now, unix, player.address, &mut datagram, &mut self.out);
            }
        }
        self.inbox.game.clear();
        self.server.take_messages(&mut self.inbox);
        self.received += self.inbox.game.records.len();
        while self.server.poll_event().is_some() {}
        for slot in 0..CLIENTS as u32 {
            let client = PeerHandle { slot, generation: 0 };
            if self.server.is_connected(client) {
                for (channel, key, message) in messages {
                    let options = SendOptions { key: *key, ..SendOptions::default() };
                    self.server.send(now, client, *channel, message.clone(), options).unwrap();
                }
            }
        }
        self.server.transmit(now, &mut self.out);
        uncounted(&mut others, || {
            for (to, datagram) in self.out.iter() {
                let player = self.players.iter_mut().find(|player| player.address == to).unwrap();
                player.down.send(now, datagram);
            }
        });
        self.out.clear();
        self.requests += requests() - before - others;
    }
}

fn server_address() -> SocketAddr {
    "10.0.0.1:1".parse().unwrap()
}

/// What the network between the ends asks for isn't theirs.
fn uncounted<T>(others: &mut usize, work: impl FnOnce() -> T) -> T {
    let before = requests();
    let result = work();
    *others += requests() - before;
    result
}

#[test]
fn a_server_and_its_clients_ask_for_no_memory_in_the_steady_state() {
    let mut world = World::new();
    let round = |n: u32| {
        let large = blob(n, 180);
        vec![
            (RELIABLE, 0, number(n)),
            (RELIABLE, 0, large.clone()),
            (UNORDERED, 0, blob(n, 80)),
            (UNRELIABLE, 0, large.clone()),
            (SEQUENCED, 0, blob(n, 90)),
            (REDUNDANT, 0, number(n)),
            (LATEST, n % 8, blob(n, 100)),
        ]
    };
    let rounds: Vec<_> = (0..16).map(round).collect();
    let ticks = |world: &mut World, seconds: usize| {
        (0..seconds * 60).for_each(|tick| world.tick(&rounds[tick % rounds.len()]));
    };
    ticks(&mut world, 20);
    assert_eq!(world.server.connected().count(), CLIENTS);
    (world.requests, world.received) = (0, 0);
    ticks(&mut world, 5);
    // Of the reliable ones all arrive; of the others most.
    assert!(world.received > 2 * CLIENTS * 300 * 6, "{}", world.received);
    assert_eq!(world.requests, 0);
}
