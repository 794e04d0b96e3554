//! The link between clients and a server, and the four peers that can hang on it.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::VecDeque;

use renetcode::{ClientAuthentication, NetcodeClient, NetcodeServer, ServerAuthentication, ServerResult};
use tickwire::netcode::{
    Client, ClientConfig, ClientEvent, ClientHandle, ConnectToken, Key, Server, ServerConfig, ServerEvent,
    TokenParams,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

pub(super) const PROTOCOL: u64 = 0x1122_3344_5566_7788;
pub(super) const PRIVATE_KEY: Key = [0x42; 32];
/// The wall clock when virtual time is 0.
pub(super) const START: u64 = 1_800_000_000;
/// Silence that ends a connection, by every token here.
pub(super) const TIMEOUT_MS: u64 = 5000;

const LATENCY: Duration = Duration::from_millis(20);
const STEP_MS: u64 = 10;

/// The server's address.
pub(super) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);

/// An address at which nobody answers.
pub(super) const SILENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)), 40_000);

pub(super) fn client_address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 1000 + index as u16))
}

fn user_data(client_id: u64) -> [u8; 256] {
    [client_id as u8; 256]
}

/// A token of ours: 30 s to connect, and what `change` changes.
pub(super) fn our_token(client_id: u64, change: impl FnOnce(&mut TokenParams<'_>)) -> ConnectToken {
    generate(client_id, &[SERVER], change)
}

/// A token of ours for these servers.
pub(super) fn our_token_to(client_id: u64, servers: &[SocketAddr]) -> ConnectToken {
    generate(client_id, servers, |_| ())
}

fn generate(
    client_id: u64,
    servers: &[SocketAddr],
    change: impl FnOnce(&mut TokenParams<'_>),
) -> ConnectToken {
    let mut params = TokenParams {
        protocol_id: PROTOCOL,
        private_key: &PRIVATE_KEY,
        client_id,
        created: UnixSeconds(START),
        lifetime: Some(30),
        timeout: Some(TIMEOUT_MS as u32 / 1000),
        public_addresses: servers,
        internal_addresses: None,
        user_data: &user_data(client_id),
        dated: true,
    };
    change(&mut params);
    ConnectToken::generate(&params, &mut Rng::seeded(client_id)).unwrap()
}

/// A token of theirs: the same content, other keys.
pub(super) fn their_token(client_id: u64, key: &Key, servers: &[SocketAddr]) -> renetcode::ConnectToken {
    let (created, timeout) = (Duration::from_secs(START), TIMEOUT_MS as i32 / 1000);
    let data = user_data(client_id);
    let servers = servers.to_vec();
    renetcode::ConnectToken::generate(created, PROTOCOL, 30, client_id, timeout, servers, Some(&data), key)
        .unwrap()
}

/// Their token as the standard has it: without the client id in front, padded.
pub(super) fn standard_bytes(token: &renetcode::ConnectToken) -> Vec<u8> {
    let mut bytes = Vec::new();
    token.write(&mut bytes).unwrap();
    bytes.drain(..8);
    bytes.resize(2048, 0);
    bytes
}

/// Our token as they read it.
pub(super) fn read_by_them(token: &ConnectToken, client_id: u64) -> renetcode::ConnectToken {
    let bytes = [&client_id.to_le_bytes()[..], &token.to_bytes()].concat();
    renetcode::ConnectToken::read(&mut &bytes[..]).unwrap()
}

/// One end of the link.
pub(super) trait Peer {
    fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8], out: &mut Datagrams);
    fn update(&mut self, now: Instant, out: &mut Datagrams);
}

pub(super) struct OurClient {
    pub(super) client: Client,
    pub(super) events: Vec<ClientEvent>,
    pub(super) received: Vec<Vec<u8>>,
}

impl OurClient {
    pub(super) fn new(token: ConnectToken, now: Instant) -> Self {
        let client = Client::new(ClientConfig::new(PROTOCOL), token, now).unwrap();
        OurClient { client, events: Vec::new(), received: Vec::new() }
    }
}

impl Peer for OurClient {
    fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8], out: &mut Datagrams) {
        let received = self.client.handle_datagram(now, from, datagram, out);
        self.received.extend(received.map(|(_, payload)| payload.to_vec()));
        self.events.extend(core::iter::from_fn(|| self.client.poll_event()));
    }

    fn update(&mut self, now: Instant, out: &mut Datagrams) {
        self.client.update(now, out);
        self.events.extend(core::iter::from_fn(|| self.client.poll_event()));
    }
}

pub(super) struct OurServer {
    pub(super) server: Server,
    pub(super) events: Vec<ServerEvent>,
    pub(super) received: Vec<(ClientHandle, Vec<u8>)>,
}

impl OurServer {
    pub(super) fn new(max_clients: usize) -> Self {
        let config = ServerConfig::new(PROTOCOL, PRIVATE_KEY, max_clients, vec![SERVER]);
        let server = Server::new(config, &mut Rng::seeded(1), UnixSeconds(START)).unwrap();
        OurServer { server, events: Vec::new(), received: Vec::new() }
    }
}

impl Peer for OurServer {
    fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8], out: &mut Datagrams) {
        let unix = UnixSeconds(START + now.since(Instant::ZERO).as_secs());
        let received = self.server.handle_datagram(now, unix, from, datagram, out);
        if let Some((client, _, payload)) = received {
            self.received.push((client, payload.to_vec()));
        }
        self.events.extend(core::iter::from_fn(|| self.server.poll_event()));
    }

    fn update(&mut self, now: Instant, out: &mut Datagrams) {
        self.server.update(now, out);
        self.events.extend(core::iter::from_fn(|| self.server.poll_event()));
    }
}

pub(super) struct TheirClient {
    pub(super) client: NetcodeClient,
    pub(super) received: Vec<Vec<u8>>,
}

impl TheirClient {
    pub(super) fn new(connect_token: renetcode::ConnectToken, now: Instant) -> Self {
        let how = ClientAuthentication::Secure { connect_token };
        let client = NetcodeClient::new(now.since(Instant::ZERO), how).unwrap();
        TheirClient { client, received: Vec::new() }
    }
}

impl Peer for TheirClient {
    fn handle(&mut self, _: Instant, from: SocketAddr, datagram: &mut [u8], _: &mut Datagrams) {
        // To ask for the source is its caller's part.
        if from == self.client.server_addr() {
            self.received.extend(self.client.process_packet(datagram).map(<[u8]>::to_vec));
        }
    }

    fn update(&mut self, now: Instant, out: &mut Datagrams) {
        let passed = now.since(Instant::ZERO) - self.client.current_time();
        if let Some((datagram, to)) = self.client.update(passed) {
            out.push(to, datagram);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TheirEvent {
    Connected { client_id: u64, user_data: Box<[u8; 256]> },
    Disconnected { client_id: u64 },
}

pub(super) struct TheirServer {
    pub(super) server: NetcodeServer,
    pub(super) events: Vec<TheirEvent>,
    pub(super) received: Vec<(u64, Vec<u8>)>,
}

impl TheirServer {
    pub(super) fn new(max_clients: usize) -> Self {
        let server = NetcodeServer::new(renetcode::ServerConfig {
            // One clock is both the monotonic and the wall clock.
            current_time: Duration::from_secs(START),
            max_clients,
            protocol_id: PROTOCOL,
            public_addresses: vec![SERVER],
            authentication: ServerAuthentication::Secure { private_key: PRIVATE_KEY },
        });
        TheirServer { server, events: Vec::new(), received: Vec::new() }
    }

    pub(super) fn disconnect(&mut self, client_id: u64, out: &mut Datagrams) {
        Self::apply(self.server.disconnect(client_id), &mut self.events, &mut self.received, out);
    }

    fn apply(
        result: ServerResult<'_, '_>,
        events: &mut Vec<TheirEvent>,
        received: &mut Vec<(u64, Vec<u8>)>,
        out: &mut Datagrams,
    ) {
        match result {
            ServerResult::None => (),
            ServerResult::PacketToSend { addr, payload } => out.push(addr, payload),
            ServerResult::Payload { client_id, payload } => received.push((client_id, payload.to_vec())),
            ServerResult::ClientConnected { client_id, addr, user_data, payload } => {
                events.push(TheirEvent::Connected { client_id, user_data });
                out.push(addr, payload);
            }
            ServerResult::ClientDisconnected { client_id, addr, payload } => {
                events.push(TheirEvent::Disconnected { client_id });
                payload.into_iter().for_each(|payload| out.push(addr, payload));
            }
        }
    }
}

impl Peer for TheirServer {
    fn handle(&mut self, _: Instant, from: SocketAddr, datagram: &mut [u8], out: &mut Datagrams) {
        let result = self.server.process_packet(from, datagram);
        Self::apply(result, &mut self.events, &mut self.received, out);
    }

    fn update(&mut self, now: Instant, out: &mut Datagrams) {
        let unix = Duration::from_secs(START) + now.since(Instant::ZERO);
        self.server.update(unix - self.server.current_time());
        for client_id in self.server.clients_id() {
            Self::apply(self.server.update_client(client_id), &mut self.events, &mut self.received, out);
        }
    }
}

/// Clients, a server, and what is between them: everything arrives after [`LATENCY`], or not at all.
pub(super) struct Link<C, S> {
    pub(super) now: Instant,
    pub(super) clients: Vec<C>,
    pub(super) server: S,
    pub(super) loss: f64,
    in_flight: VecDeque<InFlight>,
    rng: Rng,
}

struct InFlight {
    arrives: Instant,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl<C: Peer, S: Peer> Link<C, S> {
    pub(super) fn new(server: S) -> Self {
        Link {
            now: Instant::ZERO,
            clients: Vec::new(),
            server,
            loss: 0.0,
            in_flight: VecDeque::new(),
            rng: Rng::seeded(3),
        }
    }

    /// Runs for this many milliseconds.
    pub(super) fn run(&mut self, millis: u64) {
        for _ in 0..millis / STEP_MS {
            self.now += Duration::from_millis(STEP_MS);
            self.deliver();
            self.at_server(|server, now, out| server.update(now, out));
            for i in 0..self.clients.len() {
                self.at_client(i, |client, now, out| client.update(now, out));
            }
        }
    }

    /// Does something at the server; its packets are then in flight.
    pub(super) fn at_server<R>(&mut self, act: impl FnOnce(&mut S, Instant, &mut Datagrams) -> R) -> R {
        let mut out = Datagrams::new();
        let result = act(&mut self.server, self.now, &mut out);
        self.transmit(SERVER, &out);
        result
    }

    /// Does something at a client; its packets are then in flight.
    pub(super) fn at_client<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut C, Instant, &mut Datagrams) -> R,
    ) -> R {
        let mut out = Datagrams::new();
        let result = act(&mut self.clients[index], self.now, &mut out);
        self.transmit(client_address(index), &out);
        result
    }

    fn deliver(&mut self) {
        while self.in_flight.front().is_some_and(|datagram| datagram.arrives <= self.now) {
            let Some(InFlight { from, to, mut bytes, .. }) = self.in_flight.pop_front() else { return };
            if to == SERVER {
                self.at_server(|server, now, out| server.handle(now, from, &mut bytes, out));
            } else if let Some(index) = (0..self.clients.len()).find(|&i| client_address(i) == to) {
                self.at_client(index, |client, now, out| client.handle(now, from, &mut bytes, out));
            }
        }
    }

    fn transmit(&mut self, from: SocketAddr, out: &Datagrams) {
        for (to, bytes) in out.iter() {
            if !self.rng.chance(self.loss) {
                let arrives = self.now + LATENCY;
                self.in_flight.push_back(InFlight { arrives, from, to, bytes: bytes.to_vec() });
            }
        }
    }
}

/// Payloads of the shortest and the longest length, and many between.
pub(super) fn payloads() -> Vec<Vec<u8>> {
    let lengths = [1, 1200].into_iter().chain((0..300).map(|i| 1 + (i * 41) % 1200));
    lengths.enumerate().map(|(i, length)| vec![i as u8; length]).collect()
}
