//! One server, its clients and the links between them, in virtual time: time jumps to the next delivery or
//! deadline, so a deadline that is late or missing shows as a test that stalls.

use crate::netcode;
use core::net::SocketAddr;
use core::ops::RangeInclusive;

use tickwire::netcode::{
    Client, ClientConfig, ClientEvent, ClientHandle, ClientState, ConnectToken, DropReason, Farewell, Key,
    Server, ServerConfig, ServerEvent, TokenParams,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

pub(super) const PROTOCOL: u64 = 0x7469_636b;
pub(super) const PRIVATE_KEY: Key = [0x5a; 32];
pub(super) const START: UnixSeconds = UnixSeconds(1_800_000_000);

pub(super) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) fn server_address() -> SocketAddr {
    address("10.0.0.1:40000")
}

pub(super) fn client_address(n: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 1000 + n))
}

pub(super) fn config(max_clients: usize) -> ServerConfig {
    ServerConfig::new(PROTOCOL, PRIVATE_KEY, max_clients, vec![server_address()])
}

/// A token as the backend makes it: 30 s to connect, a timeout of 5 s, and what `change` changes.
pub(super) fn token(client_id: u64, change: impl FnOnce(&mut TokenParams<'_>)) -> ConnectToken {
    token_with(client_id, &[server_address()], None, change)
}

/// Another token of the same client, with keys of its own.
pub(super) fn reissued(client_id: u64, change: impl FnOnce(&mut TokenParams<'_>)) -> ConnectToken {
    // Keys are drawn by the id that `token_with` is given.
    token_with(client_id | 1 << 40, &[server_address()], None, |params| {
        params.client_id = client_id;
        change(params);
    })
}

/// A token for the server that clients dial as ever and that calls itself `internal`.
pub(super) fn token_behind_nat(client_id: u64, internal: SocketAddr) -> ConnectToken {
    token_with(client_id, &[server_address()], Some(&[internal]), |_| ())
}

/// A token for the server by these names.
pub(super) fn token_known_as(client_id: u64, names: &[SocketAddr]) -> ConnectToken {
    token_with(client_id, &[server_address()], Some(names), |_| ())
}

/// A token for these servers.
pub(super) fn token_to(client_id: u64, servers: &[SocketAddr]) -> ConnectToken {
    token_with(client_id, servers, None, |_| ())
}

fn token_with(
    client_id: u64,
    servers: &[SocketAddr],
    internal_addresses: Option<&[SocketAddr]>,
    change: impl FnOnce(&mut TokenParams<'_>),
) -> ConnectToken {
    let mut params = TokenParams {
        protocol_id: PROTOCOL,
        private_key: &PRIVATE_KEY,
        client_id,
        created: START,
        lifetime: Some(30),
        timeout: Some(5),
        public_addresses: servers,
        internal_addresses,
        user_data: &[client_id as u8; 256],
        dated: true,
    };
    change(&mut params);
    ConnectToken::generate(&params, &mut Rng::seeded(client_id)).unwrap()
}

/// Client to server, server to client: they end the public part of a token, after its IPv4 addresses.
pub(super) fn keys(token: &[u8]) -> (Key, Key) {
    let (count_at, address_bytes) = (1089, 7);
    let at = count_at + 4 + usize::from(token[count_at]) * address_bytes;
    (token[at..at + 32].try_into().unwrap(), token[at + 32..at + 64].try_into().unwrap())
}

pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) client: Client,
    pub(super) received: Vec<Vec<u8>>,
    pub(super) events: Vec<ClientEvent>,
    /// When it was connected.
    pub(super) connected_at: Option<Instant>,
}

#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) at: Instant,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) server: Server,
    pub(super) peers: Vec<Peer>,
    pub(super) received: Vec<(ClientHandle, Vec<u8>)>,
    pub(super) events: Vec<ServerEvent>,
    pub(super) latency: Duration,
    pub(super) loss: f64,
    /// Nothing reaches the server any more, or leaves it.
    pub(super) server_is_cut_off: bool,
    /// Everything ever sent.
    pub(super) log: Vec<InFlight>,
    queue: Vec<InFlight>,
    rng: Rng,
}

impl World {
    pub(super) fn new(max_clients: usize) -> World {
        World::with(config(max_clients))
    }

    pub(super) fn with(config: ServerConfig) -> World {
        World {
            now: Instant::ZERO,
            server: Server::new(config, &mut Rng::seeded(99), START).unwrap(),
            peers: Vec::new(),
            received: Vec::new(),
            events: Vec::new(),
            latency: Duration::from_millis(50),
            loss: 0.0,
            server_is_cut_off: false,
            log: Vec::new(),
            queue: Vec::new(),
            rng: Rng::seeded(7),
        }
    }

    /// Replaces the server by another that remembers nothing.
    pub(super) fn restart(&mut self, config: ServerConfig) {
        self.server = Server::new(config, &mut Rng::seeded(98), self.unix()).unwrap();
    }

    /// The wall clock: it moves with the virtual one.
    pub(super) fn unix(&self) -> UnixSeconds {
        UnixSeconds(START.0 + self.now.since(Instant::ZERO).as_secs())
    }

    /// A client at an address of its own; the index names it.
    pub(super) fn add(&mut self, token: ConnectToken) -> usize {
        let address = client_address(self.peers.len() as u16);
        self.add_at(address, token)
    }

    /// A client for each client id.
    pub(super) fn add_many(&mut self, client_ids: RangeInclusive<u64>) {
        for id in client_ids {
            self.add(token(id, |_| ()));
        }
    }

    pub(super) fn add_at(&mut self, address: SocketAddr, token: ConnectToken) -> usize {
        let client = Client::new(ClientConfig::new(PROTOCOL), token, self.now).unwrap();
        self.peers.push(Peer { address, client, received: vec![], events: vec![], connected_at: None });
        self.peers.len() - 1
    }

    /// A world with one connected client.
    pub(super) fn connected() -> (World, ClientHandle) {
        let mut world = World::new(4);
        world.add(token(1, |_| ()));
        world.run(400);
        assert_eq!(world.state(0), ClientState::Connected);
        let client = world.client_of(1).unwrap();
        (world, client)
    }

    /// Runs a fresh client until the server has accepted it with a keep-alive that is lost.
    pub(super) fn accept_unheard(&mut self) {
        self.run(149);
        self.loss = 1.0;
        self.run(1);
        self.loss = 0.0;
        assert_eq!(self.clients().len(), 1);
        self.run(60);
        assert_eq!(self.state(0), ClientState::SendingResponse);
    }

    pub(super) fn state(&self, peer: usize) -> ClientState {
        self.peers[peer].client.state()
    }

    /// The connected clients, by slot.
    pub(super) fn clients(&self) -> Vec<ClientHandle> {
        netcode::clients(&self.server, &self.events).into_keys().collect()
    }

    pub(super) fn client_of(&self, client_id: u64) -> Option<ClientHandle> {
        netcode::client_of(&self.server, &self.events, client_id)
    }

    pub(super) fn is_connected(&self, client: ClientHandle) -> bool {
        netcode::is_connected(&self.server, client)
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.server.counters().dropped(reason)
    }

    /// Runs for this many milliseconds.
    pub(super) fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            self.deliver();
            self.update();
            let next = self
                .queue
                .iter()
                .map(|d| d.at)
                .chain(self.peers.iter().map(|p| p.client.next_deadline()))
                .chain([self.server.next_deadline()])
                .min()
                .unwrap();
            assert!(next > self.now, "a deadline does not move on: {next:?} at {:?}", self.now);
            if next > end {
                break;
            }
            self.now = next;
        }
        self.now = end;
    }

    /// Hands bytes to the server as if they came from an address, and returns its answer.
    pub(super) fn inject(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Datagrams::new();
        let mut bytes = bytes.to_vec();
        let unix = self.unix();
        if let Some((client, _, payload)) =
            self.server.handle_datagram(self.now, unix, from, &mut bytes, &mut out)
        {
            self.received.push((client, payload.to_vec()));
        }
        self.events.extend(core::iter::from_fn(|| self.server.poll_event()));
        out.iter().inspect(|(to, _)| assert_eq!(*to, from)).map(|(_, bytes)| bytes.to_vec()).collect()
    }

    /// The first datagram with this type bits ever sent from an address.
    pub(super) fn captured(&self, from: SocketAddr, packet_type: u8) -> Vec<u8> {
        let matches = |d: &&InFlight| d.from == from && d.bytes[0] & 0x0F == packet_type;
        self.log.iter().find(matches).unwrap().bytes.clone()
    }

    pub(super) fn server_send(&mut self, client: ClientHandle, payload: &[u8]) {
        let mut out = Datagrams::new();
        netcode::send_payload(&mut self.server, self.now, client, payload, &mut out).unwrap();
        self.transmit(server_address(), &out);
    }

    pub(super) fn client_send(&mut self, peer: usize, payload: &[u8]) {
        let mut out = Datagrams::new();
        self.peers[peer].client.send_payload(self.now, payload, &mut out).unwrap();
        self.transmit(self.peers[peer].address, &out);
    }

    pub(super) fn server_disconnect(&mut self, client: ClientHandle, farewell: Option<&[u8]>) {
        let mut out = Datagrams::new();
        let farewell = farewell.map(|payload| Farewell { payload: payload.into(), understood: true });
        self.server.disconnect(self.now, client, farewell, &mut out).unwrap();
        self.transmit(server_address(), &out);
    }

    pub(super) fn client_disconnect(&mut self, peer: usize, farewell: Option<&[u8]>) {
        let mut out = Datagrams::new();
        self.peers[peer].client.disconnect(farewell, &mut out).unwrap();
        assert_eq!(out.len(), 10);
        self.transmit(self.peers[peer].address, &out);
    }

    fn deliver(&mut self) {
        while let Some(i) = self.queue.iter().position(|d| d.at <= self.now) {
            let InFlight { from, to, mut bytes, .. } = self.queue.remove(i);
            if self.server_is_cut_off && (to == server_address() || from == server_address()) {
                continue;
            }
            if to == server_address() {
                let answers = self.inject(from, &bytes);
                let mut out = Datagrams::new();
                answers.iter().for_each(|answer| out.push(from, answer));
                self.transmit(to, &out);
            } else if let Some(i) = self.peers.iter().position(|p| p.address == to) {
                let mut out = Datagrams::new();
                let peer = &mut self.peers[i];
                if let Some((_, payload)) = peer.client.handle_datagram(self.now, from, &mut bytes, &mut out)
                {
                    peer.received.push(payload.to_vec());
                }
                self.transmit(to, &out);
            }
        }
    }

    fn update(&mut self) {
        let mut out = Datagrams::new();
        if self.server.next_deadline() <= self.now {
            self.server.update(self.now, &mut out);
            self.server.say_goodbyes(self.now, &mut out);
            self.transmit(server_address(), &out);
        }
        self.events.extend(core::iter::from_fn(|| self.server.poll_event()));
        for i in 0..self.peers.len() {
            let mut out = Datagrams::new();
            let peer = &mut self.peers[i];
            if peer.client.next_deadline() <= self.now {
                peer.client.update(self.now, &mut out);
            }
            while let Some(event) = peer.client.poll_event() {
                if matches!(event, ClientEvent::Connected { .. }) {
                    peer.connected_at = Some(self.now);
                }
                peer.events.push(event);
            }
            self.transmit(self.peers[i].address, &out);
        }
    }

    fn transmit(&mut self, from: SocketAddr, out: &Datagrams) {
        for (to, bytes) in out.iter() {
            let datagram = InFlight { at: self.now + self.latency, from, to, bytes: bytes.to_vec() };
            self.log.push(datagram.clone());
            if !self.rng.chance(self.loss) {
                self.queue.push(datagram);
            }
        }
    }
}
