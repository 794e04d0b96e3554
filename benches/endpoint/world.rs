//! A server and clients whose datagrams are handed over in memory: what the benchmarks of an endpoint run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::{
    Body, ChannelConfig, ConnectionConfig, Message, MessageType, Notification, Protocol, SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

#[allow(dead_code)]
#[path = "../ghosts/clock.rs"]
mod clock;

const PROTOCOL_ID: u64 = 1;
const UNIX: UnixSeconds = UnixSeconds(1000);
/// Of the clients.
const FIRST_PORT: u16 = 1000;

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

/// The client's handle of its server.
const DIALLED: PeerHandle = PeerHandle { slot: 0, generation: 0 };

/// A server and its clients, in memory.
pub(crate) struct World {
    now: Instant,
    server: Host,
    clients: Vec<(Host, SocketAddr)>,
    /// To the server, each with its source, and from it.
    up: Datagrams,
    down: Datagrams,
    inbox: Inbox,
    fates: Vec<(PeerHandle, Notification)>,
}

impl World {
    /// With so many clients, who are all connected.
    pub(crate) fn connected(count: usize) -> Self {
        let netcode_config =
            netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 1000, vec![DEVELOPMENT_ADDRESS]);
        let config = ServerConfig {
            netcode: netcode_config,
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::SERVER,
        };
        let mut world = World {
            now: Instant::ZERO,
            server: Host::server(config, protocol(), &mut Rng::seeded(1), UNIX).unwrap(),
            clients: (0..count).map(client).collect(),
            up: Datagrams::new(),
            down: Datagrams::new(),
            inbox: Inbox::new(),
            fates: Vec::new(),
        };
        for _ in 0..30 {
            world.tick(false);
        }
        assert_eq!(world.server.connected().count(), count);
        world
    }

    /// The CPU time of the server's part; `busy` has everybody send.
    pub(crate) fn tick(&mut self, busy: bool) -> Duration {
        let message = message();
        self.now += Duration::from_micros(16_667);
        self.up.clear();
        let mut out = Datagrams::new();
        for (to, datagram) in self.down.iter_mut() {
            self.clients[index_of(to)].0.handle_datagram(
                self.now,
                UNIX,
                server_address(),
                datagram,
                &mut out,
            );
            out.iter().for_each(|(_, answer)| self.up.push(to, answer));
            out.clear();
        }
        for (client, address) in &mut self.clients {
            self.inbox.game.clear();
            while client.poll_event().is_some() {}
            client.take_messages(&mut self.inbox);
            if busy && client.is_connected(DIALLED) {
                client.send(self.now, DIALLED, 1, message.clone(), SendOptions::default()).unwrap();
            }
            client.transmit(self.now, &mut out);
            out.iter().for_each(|(_, datagram)| self.up.push(*address, datagram));
            out.clear();
        }
        self.down.clear();
        let mut seconds = 0.0;
        clock::timed(&mut seconds, || self.serve(busy.then_some(&message)));
        Duration::from_secs_f64(seconds)
    }

    /// Between ticks, the server wakes for a datagram of one client, as those do that wake when something arrives. Nobody
    /// else has said anything. Its time by the wall: it is as short as asking for CPU time.
    pub(crate) fn wake(&mut self) -> Duration {
        let message = message();
        self.now += Duration::from_millis(1);
        let mut out = Datagrams::new();
        let (client, address) = &mut self.clients[0];
        client.send(self.now, DIALLED, 1, message, SendOptions::default()).unwrap();
        client.transmit(self.now, &mut out);
        self.up.clear();
        out.iter().for_each(|(_, datagram)| self.up.push(*address, datagram));
        let started = Clock::now();
        self.serve_woken();
        started.elapsed()
    }

    #[inline(never)]
    fn serve_woken(&mut self) {
        self.serve(None);
        self.server.transmit_between(self.now, &mut self.down);
        assert!(self.server.next_deadline() > Instant::ZERO);
    }

    /// The server's part. A function of its own, for profilers that count what one function does.
    #[inline(never)]
    fn serve(&mut self, answer: Option<&Message>) {
        let World { now, server, up, down, inbox, .. } = self;
        for (from, datagram) in up.iter_mut() {
            server.handle_datagram(*now, UNIX, from, datagram, down);
        }
        inbox.game.clear();
        server.take_messages(inbox);
        while server.poll_event().is_some() {}
        server.take_notifications(&mut self.fates);
        if let Some(answer) = answer {
            for handle in server.connected().collect::<Vec<_>>() {
                server.send(*now, handle, 1, answer.clone(), SendOptions::default()).unwrap();
            }
        }
        server.transmit(*now, down);
    }
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_000))
}

/// Whose address that is.
fn index_of(client: SocketAddr) -> usize {
    usize::from(client.port() - FIRST_PORT)
}

fn client(index: usize) -> (Host, SocketAddr) {
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &DEVELOPMENT_KEY,
        client_id: index as u64,
        created: UNIX,
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
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits::CLIENT,
    };
    let client = Host::client(config, protocol(), token, Instant::ZERO).unwrap().0;
    (client, SocketAddr::from(([10, 0, 1 + (index / 256) as u8, index as u8], FIRST_PORT + index as u16)))
}
