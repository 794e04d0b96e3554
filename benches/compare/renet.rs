//! The same messages through Tickwire and through `renet`, in memory: a client sends messages of 64 bytes, the server
//! takes them and acks. Times are of both ends together, for one such tick.
//!
//! `plain` is neither encrypted: our `Connection` and renet's client and server. `sealed` is both, in netcode 1.02: our
//! endpoints, and renet on `renetcode`, as its own transport runs it. A tick has 1 message, which shows what a packet
//! costs, or 256, which shows what a message costs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use renet::{Bytes, ConnectionConfig as RenetConfig, DefaultChannel, RenetClient, RenetServer};
use renetcode::{
    ClientAuthentication, NetcodeClient, NetcodeServer, ServerAuthentication,
    ServerConfig as NetcodeServerConfig, ServerResult,
};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::{Datagrams, Packets};
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, Connection, ConnectionConfig, Message, MessageType, Protocol,
    SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

const BODY: [u8; 64] = [7; 64];
const TICK: Duration = Duration::from_micros(16_667);
const PROTOCOL_ID: u64 = 1;
const CLIENT_ID: u64 = 0;
const UNIX: UnixSeconds = UnixSeconds(1_000_000);

/// Two ends that are connected.
trait Pair {
    /// One tick: how many of `messages` arrived.
    fn tick(&mut self, reliable: bool, messages: usize) -> usize;
}

type MakePair = fn() -> Box<dyn Pair>;

// --- Tickwire ----------------------------------------------------------------------------------------------

fn protocol() -> Arc<Protocol> {
    let schema = Schema::new([("field", Kind::Data { max_bytes: 64 })]).unwrap();
    let types = vec![MessageType { name: "Blob".into(), body: Body::Declared(schema) }];
    let channels = vec![ChannelConfig::unreliable(), ChannelConfig::reliable_ordered()];
    Arc::new(Protocol::new(types, channels).unwrap())
}

/// As much as the ticks here take, like renet's 60,000 bytes a tick.
fn config() -> ConnectionConfig {
    let budget = BudgetConfig::new(60_000.0 * 60.0, 60_000.0);
    ConnectionConfig { budget, ..ConnectionConfig::default() }
}

/// By a writer that is used again for each message, as Python's.
fn message(writer: &mut BitWriter) -> Message {
    writer.clear();
    writer.data(&BODY, 64);
    Message::new(0, writer.encoded())
}

struct PlainTickwire {
    now: Instant,
    client: Connection,
    server: Connection,
    packets: Packets,
    writer: BitWriter,
}

impl PlainTickwire {
    fn new() -> Self {
        let connection = || Connection::new(&config(), protocol()).unwrap();
        PlainTickwire {
            now: Instant::ZERO,
            client: connection(),
            server: connection(),
            packets: Packets::new(),
            writer: BitWriter::new(),
        }
    }
}

impl Pair for PlainTickwire {
    fn tick(&mut self, reliable: bool, messages: usize) -> usize {
        let (now, channel) = (self.now, usize::from(reliable));
        for _ in 0..messages {
            let message = message(&mut self.writer);
            self.client.send(now, channel, message, SendOptions::default()).unwrap();
        }
        self.client.transmit(now, &mut self.packets);
        self.packets.iter().for_each(|(_, packet)| self.server.handle_datagram(now, packet).unwrap());
        self.packets.clear();
        let mut arrived = 0;
        while let Some(received) = self.server.poll_received(channel) {
            arrived += 1;
            self.server.reclaim(received.body);
        }
        self.server.transmit(now, &mut self.packets);
        self.packets.iter().for_each(|(_, packet)| self.client.handle_datagram(now, packet).unwrap());
        self.packets.clear();
        self.now += TICK;
        arrived
    }
}

struct SealedTickwire {
    now: Instant,
    client: Host,
    server: Host,
    out: Datagrams,
    answers: Datagrams,
    inbox: Inbox,
    writer: BitWriter,
}

/// The client's handle of its server.
const DIALLED: PeerHandle = PeerHandle { slot: 0, generation: 0 };

fn server_address() -> SocketAddr {
    "10.0.0.1:1".parse().unwrap()
}

fn client_address() -> SocketAddr {
    "10.0.0.2:1".parse().unwrap()
}

impl SealedTickwire {
    fn new() -> Self {
        let mut rng = Rng::seeded(1);
        let server = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 64, vec![DEVELOPMENT_ADDRESS]),
            connection: config(),
            chunks: ChunkLimits::SERVER,
        };
        let client = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: config(),
            chunks: ChunkLimits::CLIENT,
        };
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: CLIENT_ID,
            created: UNIX,
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[server_address()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut rng).unwrap();
        let mut pair = SealedTickwire {
            now: Instant::ZERO,
            client: Host::client(client, protocol(), token, Instant::ZERO).unwrap().0,
            server: Host::server(server, protocol(), &mut rng, UNIX).unwrap(),
            out: Datagrams::new(),
            answers: Datagrams::new(),
            inbox: Inbox::new(),
            writer: BitWriter::new(),
        };
        (0..30).for_each(|_| pair.carry());
        assert!(pair.client.is_connected(DIALLED));
        pair
    }

    /// A tick without its messages.
    fn carry(&mut self) {
        let now = self.now;
        self.client.transmit(now, &mut self.out);
        for (_, datagram) in self.out.iter_mut() {
            self.server.handle_datagram(now, UNIX, client_address(), datagram, &mut self.answers);
        }
        self.out.clear();
        self.server.transmit(now, &mut self.answers);
        for (_, datagram) in self.answers.iter_mut() {
            self.client.handle_datagram(now, UNIX, server_address(), datagram, &mut self.out);
        }
        self.answers.clear();
        self.now += TICK;
    }
}

impl Pair for SealedTickwire {
    fn tick(&mut self, reliable: bool, messages: usize) -> usize {
        for _ in 0..messages {
            let message = message(&mut self.writer);
            self.client
                .send(self.now, DIALLED, usize::from(reliable), message, SendOptions::default())
                .unwrap();
        }
        self.carry();
        self.inbox.game.clear();
        while self.server.poll_event().is_some() {}
        self.server.take_messages(&mut self.inbox);
        self.inbox.game.records.len()
    }
}

// --- renet -------------------------------------------------------------------------------------------------

fn channel(reliable: bool) -> u8 {
    if reliable { DefaultChannel::ReliableOrdered } else { DefaultChannel::Unreliable }.into()
}

struct PlainRenet {
    client: RenetClient,
    server: RenetServer,
}

impl PlainRenet {
    fn new() -> Self {
        let mut client = RenetClient::new(RenetConfig::default());
        client.set_connected();
        let mut server = RenetServer::new(RenetConfig::default());
        server.add_connection(CLIENT_ID);
        PlainRenet { client, server }
    }

    fn send(&mut self, reliable: bool, messages: usize) {
        for _ in 0..messages {
            self.client.send_message(channel(reliable), Bytes::copy_from_slice(&BODY));
        }
    }

    fn take(&mut self, reliable: bool) -> usize {
        std::iter::from_fn(|| self.server.receive_message(CLIENT_ID, channel(reliable))).count()
    }
}

impl Pair for PlainRenet {
    fn tick(&mut self, reliable: bool, messages: usize) -> usize {
        self.client.update(TICK);
        self.server.update(TICK);
        self.send(reliable, messages);
        for packet in self.client.get_packets_to_send() {
            self.server.process_packet_from(&packet, CLIENT_ID).unwrap();
        }
        let arrived = self.take(reliable);
        for packet in self.server.get_packets_to_send(CLIENT_ID).unwrap() {
            self.client.process_packet(&packet);
        }
        arrived
    }
}

struct SealedRenet {
    plain: PlainRenet,
    client: NetcodeClient,
    server: NetcodeServer,
}

impl SealedRenet {
    fn new() -> Self {
        // What renetcode calls unsecure is encrypted as well, with keys from a token that the client makes itself.
        let authentication = ClientAuthentication::Unsecure {
            protocol_id: PROTOCOL_ID,
            client_id: CLIENT_ID,
            server_addr: server_address(),
            user_data: None,
        };
        let config = NetcodeServerConfig {
            current_time: Duration::ZERO,
            max_clients: 64,
            protocol_id: PROTOCOL_ID,
            public_addresses: vec![server_address()],
            authentication: ServerAuthentication::Unsecure,
        };
        let mut pair = SealedRenet {
            plain: PlainRenet::new(),
            client: NetcodeClient::new(Duration::ZERO, authentication).unwrap(),
            server: NetcodeServer::new(config),
        };
        (0..100).for_each(|_| pair.shake_hands());
        assert!(pair.client.is_connected());
        pair
    }

    /// What the connection itself has to say in a tick.
    fn shake_hands(&mut self) {
        if let Some((packet, _)) = self.client.update(TICK) {
            let answer = match self.server.process_packet(client_address(), packet) {
                ServerResult::PacketToSend { payload, .. }
                | ServerResult::ClientConnected { payload, .. } => payload,
                _ => &mut [],
            };
            if !answer.is_empty() {
                self.client.process_packet(answer);
            }
        }
        self.server.update(TICK);
        if let ServerResult::PacketToSend { payload, .. } = self.server.update_client(CLIENT_ID) {
            self.client.process_packet(payload);
        }
    }
}

impl Pair for SealedRenet {
    fn tick(&mut self, reliable: bool, messages: usize) -> usize {
        self.shake_hands();
        self.plain.client.update(TICK);
        self.plain.server.update(TICK);
        self.plain.send(reliable, messages);
        for packet in self.plain.client.get_packets_to_send() {
            let (_, sealed) = self.client.generate_payload_packet(&packet).unwrap();
            let ServerResult::Payload { client_id, payload } =
                self.server.process_packet(client_address(), sealed)
            else {
                panic!("a payload packet is opened");
            };
            self.plain.server.process_packet_from(payload, client_id).unwrap();
        }
        let arrived = self.plain.take(reliable);
        for packet in self.plain.server.get_packets_to_send(CLIENT_ID).unwrap() {
            let (_, sealed) = self.server.generate_payload_packet(CLIENT_ID, &packet).unwrap();
            self.plain.client.process_packet(self.client.process_packet(sealed).expect("it is opened"));
        }
        arrived
    }
}

fn ticks(c: &mut Criterion) {
    let pairs: [(&str, MakePair); 4] = [
        ("plain/tickwire", || Box::new(PlainTickwire::new())),
        ("plain/renet", || Box::new(PlainRenet::new())),
        ("sealed/tickwire", || Box::new(SealedTickwire::new())),
        ("sealed/renet", || Box::new(SealedRenet::new())),
    ];
    for (channel, reliable) in [("unreliable", false), ("reliable", true)] {
        for messages in [1, 256] {
            let mut group = c.benchmark_group(format!("renet/{channel}/{messages}"));
            group.throughput(Throughput::Elements(messages as u64));
            for (name, pair) in pairs {
                let mut pair = pair();
                group.bench_function(name, |b| {
                    b.iter(|| assert_eq!(pair.tick(reliable, messages), messages));
                });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = ticks
}
criterion_main!(benches);
