//! One tick of a server on the simulated driver: receive a packet of each client, take the messages, queue one for each
//! client, send. The clients' own work is not timed.
//!
//! Busy: 64 or 1,000 clients that send and are sent a message in each tick. Idle: none, or a thousand, that say nothing, and of
//! whom a sixth keep alive in a tick.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tickwire::driver::{Driver, VirtualNetwork};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::netsim::Conditions;
use tickwire::transport::{
    Body, ChannelConfig, ConnectionConfig, Message, MessageType, Notification, Protocol, SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

const PROTOCOL_ID: u64 = 1;

fn protocol() -> Arc<Protocol> {
    let fields = (0..6).map(|i| (format!("field{i}"), Kind::Bits { bits: 32 }));
    let body = Body::Declared(Schema::new(fields).unwrap());
    let types = vec![MessageType { name: "State".into(), body }];
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    Arc::new(Protocol::new(types, channels).unwrap())
}

fn message() -> Message {
    let mut writer = BitWriter::new();
    (0..6).for_each(|i| writer.bits(i, 32));
    Message::new(0, writer.encoded())
}

/// What a client calls its server.
const DIALLED: PeerHandle = PeerHandle { slot: 0, generation: 0 };

struct World {
    network: VirtualNetwork,
    server: Host,
    driver: Driver,
    clients: Vec<(Host, Driver)>,
    inbox: Inbox,
    fates: Vec<(PeerHandle, Notification)>,
}

impl World {
    fn connected(count: usize) -> Self {
        let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
        let address: SocketAddr = "10.0.0.1:40000".parse().unwrap();
        let netcode_config =
            netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 1000, vec![DEVELOPMENT_ADDRESS]);
        let config = ServerConfig {
            netcode: netcode_config,
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::SERVER,
        };
        let server = Host::server(config, protocol(), &mut network.clone(), network.unix()).unwrap();
        let driver = Driver::simulated(network.clone(), address).unwrap();
        let clients = (0..count).map(|index| Self::client(&network, address, index)).collect();
        let mut world = World { network, server, driver, clients, inbox: Inbox::new(), fates: Vec::new() };
        for _ in 0..30 {
            world.tick(false);
        }
        assert_eq!(world.server.connected().count(), count);
        world
    }

    fn client(network: &VirtualNetwork, server: SocketAddr, index: usize) -> (Host, Driver) {
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: index as u64,
            created: network.unix(),
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[server],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut network.clone()).unwrap();
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let client = Host::client(config, protocol(), token, network.now()).unwrap().0;
        let address = SocketAddr::from(([10, 0, 1 + (index / 256) as u8, index as u8], 1));
        (client, Driver::simulated(network.clone(), address).unwrap())
    }

    /// The time of the server's part; `busy` has everybody send.
    fn tick(&mut self, busy: bool) -> Duration {
        let message = message();
        for (client, driver) in &mut self.clients {
            driver
                .receive(|now, unix, from, datagram, out| {
                    client.handle_datagram(now, unix, from, datagram, out);
                })
                .unwrap();
            self.inbox.clear();
            client.take_messages(&mut self.inbox);
            if busy && client.is_connected(DIALLED) {
                client.send(driver.now(), DIALLED, 1, message.clone(), SendOptions::default()).unwrap();
            }
            driver.transmit(|now, out| client.transmit(now, out));
        }
        self.network.advance(Duration::from_micros(16_667));
        let started = Instant::now();
        self.serve(busy.then_some(&message));
        started.elapsed()
    }

    /// The server's part. A function of its own, for profilers that count what one function does.
    #[inline(never)]
    fn serve(&mut self, answer: Option<&Message>) {
        let server = &mut self.server;
        self.driver
            .receive(|now, unix, from, datagram, out| server.handle_datagram(now, unix, from, datagram, out))
            .unwrap();
        self.inbox.clear();
        server.take_messages(&mut self.inbox);
        while server.poll_event().is_some() {}
        server.take_notifications(&mut self.fates);
        if let Some(answer) = answer {
            for handle in server.connected().collect::<Vec<_>>() {
                server.send(self.driver.now(), handle, 1, answer.clone(), SendOptions::default()).unwrap();
            }
        }
        self.driver.transmit(|now, out| server.transmit(now, out));
    }
}

fn tick(c: &mut Criterion) {
    for (name, count, busy) in [
        ("tick_of_64_connections", 64, true),
        ("tick_of_1000_connections", 1000, true),
        ("tick_of_0_idle", 0, false),
        ("tick_of_1000_idle", 1000, false),
    ] {
        let mut world = World::connected(count);
        c.bench_function(&format!("endpoint/{name}"), |b| {
            b.iter_custom(|iterations| (0..iterations).map(|_| world.tick(busy)).sum());
        });
    }
}

criterion_group!(benches, tick);
criterion_main!(benches);
