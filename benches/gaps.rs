//! What a tick of a server costs with peers whose packet numbers leave gaps and who ack nothing, beside as many honest ones: all
//! of a tick but the system's part, sealing and opening included, datagrams handed over in memory.
//!
//! The servers take turns, tick by tick, so that what else the machine does falls on all. `cargo bench --bench gaps`;
//! `gaps gaps 1 1 300` of the program itself runs one of them alone, for this many packets, messages and ticks, and profilers count
//! what [`World::serve_counted`] does: `valgrind --tool=callgrind --toggle-collect='*serve_counted*'`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant as Clock;

use tickwire::endpoint::{ChunkLimits, Host, Inbox, ServerConfig};
use tickwire::netcode::{self, ClientState, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::{
    Body, ChannelConfig, ConnectionConfig, Message, MessageType, Protocol, SendOptions, VERSION, numbered,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

const PROTOCOL_ID: u64 = 1;
const KEY: [u8; 32] = [9; 32];
const UNIX: UnixSeconds = UnixSeconds(1000);
const PEERS: usize = 25;
const TICK: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Ticks before those that count, in which the peers say 30 packets each.
const WARM: usize = 300;
const TICKS: usize = 3000;

/// How a peer numbers its packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In order, acking what arrives.
    Honest,
    /// Every other number, acking nothing.
    EveryOther,
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_000))
}

fn protocol() -> Arc<Protocol> {
    let number = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    let types = vec![MessageType { name: "Number".into(), body: Body::Declared(number) }];
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    Arc::new(Protocol::new(types, channels).unwrap())
}

/// A client of netcode alone, which puts anything into its payloads.
struct Peer {
    address: SocketAddr,
    client: netcode::Client,
    newest: u64,
    ack_bits: u32,
}

struct World {
    kept: Kept,
    now: Instant,
    server: Host,
    peers: Vec<Peer>,
    /// What every packet of a peer says.
    payload: Vec<u8>,
    message: Message,
    inbox: Inbox,
    /// To the server, each with its source.
    up: Datagrams,
    down: Datagrams,
}

impl World {
    fn new(kept: Kept) -> Self {
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, KEY, PEERS, vec![server_address()]),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::SERVER,
        };
        let protocol = protocol();
        let mut payload = BitWriter::new();
        payload.bool(true);
        payload.bits(VERSION.into(), 8);
        payload.bits(protocol.hash(), 64);
        payload.bits(0, 5);
        let mut body = BitWriter::new();
        body.bits(7, 32);
        let mut world = World {
            kept,
            now: Instant::ZERO,
            server: Host::server(config, protocol, &mut Rng::seeded(1), UNIX).unwrap(),
            peers: (0..PEERS as u8).map(Peer::new).collect(),
            payload: payload.into_bytes(),
            message: Message::new(0, body.encoded()),
            inbox: Inbox::new(),
            up: Datagrams::new(),
            down: Datagrams::new(),
        };
        while world.peers.iter().any(|peer| peer.client.state() != ClientState::Connected) {
            world.tick(0, 0, World::serve);
        }
        for _ in 0..WARM {
            world.tick(30, 0, World::serve);
        }
        world
    }

    /// A tick: each peer says this many packets, and is sent this many messages. The time of the server's part.
    fn tick(&mut self, packets: usize, messages: usize, serve: fn(&mut Self, usize)) -> u64 {
        self.now += TICK;
        for peer in &mut self.peers {
            let mut out = Datagrams::new();
            peer.client.update(self.now, &mut out);
            if peer.client.state() == ClientState::Connected {
                (0..packets).for_each(|_| peer.say(self.kept, self.now, &self.payload, &mut out));
            }
            out.iter().for_each(|(_, datagram)| self.up.push(peer.address, datagram));
        }
        let clock = Clock::now();
        serve(self, messages);
        let took = clock.elapsed().as_nanos() as u64;
        let mut answers = Datagrams::new();
        for (to, datagram) in self.down.iter_mut() {
            let peer = self.peers.iter_mut().find(|peer| peer.address == to).unwrap();
            peer.hear(self.kept, self.now, datagram, &mut answers);
        }
        self.up.clear();
        self.down.clear();
        took
    }

    /// The server's part, of a tick that counts.
    #[inline(never)]
    fn serve_counted(&mut self, messages: usize) {
        self.serve(messages);
    }

    /// The server's part.
    fn serve(&mut self, messages: usize) {
        let World { now, server, message, inbox, up, down, .. } = self;
        for (from, datagram) in up.iter_mut() {
            server.handle_datagram(*now, UNIX, from, datagram, down);
        }
        inbox.game.clear();
        server.take_messages(inbox);
        while server.poll_event().is_some() {}
        for handle in server.connected().collect::<Vec<_>>() {
            for _ in 0..messages {
                server.send(*now, handle, 1, message.clone(), SendOptions::default()).unwrap();
            }
        }
        server.transmit(*now, down);
    }
}

impl Peer {
    fn new(index: u8) -> Self {
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &KEY,
            client_id: index.into(),
            created: UNIX,
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[server_address()],
            internal_addresses: None,
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut Rng::seeded(index.into())).unwrap();
        Peer {
            address: SocketAddr::from(([10, 0, 1, index], 1)),
            client: netcode::Client::new(netcode::ClientConfig::new(PROTOCOL_ID), token, Instant::ZERO)
                .unwrap(),
            newest: u64::MAX,
            ack_bits: 0,
        }
    }

    fn say(&mut self, kept: Kept, now: Instant, payload: &[u8], out: &mut Datagrams) {
        let number = self.client.next_number() + u64::from(kept == Kept::EveryOther);
        let header = FullHeader { sequence: number, ack: self.newest, ack_bits: self.ack_bits, skipped: 0 };
        let mut datagram = Vec::new();
        numbered::write(&header, None, &mut datagram);
        datagram.extend(payload);
        self.client.send_numbered(now, number, |out| out.extend_from_slice(&datagram), out).unwrap();
    }

    fn hear(&mut self, kept: Kept, now: Instant, datagram: &mut [u8], out: &mut Datagrams) {
        let received = self.client.handle_datagram(now, server_address(), datagram, out);
        // The server's packets come in order.
        if let Some((number, _)) = received.filter(|_| kept == Kept::Honest) {
            let ahead = number.wrapping_sub(self.newest).min(32) as u32;
            (self.newest, self.ack_bits) = (number, self.ack_bits.unbounded_shl(ahead) | 1);
        }
    }
}

/// The least and the median, in microseconds.
fn summed_up(mut nanos: Vec<u64>) -> (f64, f64) {
    nanos.sort_unstable();
    (nanos[0] as f64 / 1e3, nanos[nanos.len() / 2] as f64 / 1e3)
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let number = |index: usize| arguments.get(index).map(|argument| argument.parse().expect("a number"));
    let wanted = arguments.first();
    let all = [("honest", Kept::Honest), ("gaps", Kept::EveryOther)];
    let kinds: Vec<_> =
        all.into_iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    println!("{PEERS} peers: µs a tick, least and median, and times the honest ones'");
    let cases = match (number(1), number(2)) {
        (Some(packets), Some(messages)) => vec![(packets, messages)],
        _ => vec![(1, 1), (4, 1), (1, 20), (0, 1), (30, 1)],
    };
    for (packets, messages) in cases {
        let mut worlds: Vec<_> = kinds.iter().map(|(_, kept)| World::new(*kept)).collect();
        let mut took = vec![Vec::new(); worlds.len()];
        for _ in 0..number(3).unwrap_or(TICKS) {
            for (world, took) in worlds.iter_mut().zip(&mut took) {
                took.push(world.tick(packets, messages, World::serve_counted));
            }
        }
        print!("{packets:>2} packets in, {messages:>2} messages out:");
        let mut honest = None;
        for ((name, _), took) in kinds.iter().zip(took) {
            let (least, median) = summed_up(took);
            let (honest_least, honest_median) = *honest.get_or_insert((least, median));
            print!(
                "  {name} {least:.1} ({:.2}) {median:.1} ({:.2})",
                least / honest_least,
                median / honest_median
            );
        }
        println!();
    }
}
