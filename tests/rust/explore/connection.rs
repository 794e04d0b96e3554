//! The states of a connection: src/netcode/STATE_MACHINE.md.

use core::net::SocketAddr;
use tickwire::netcode::packet::{self, Body, Header, Kind, Request};
use tickwire::netcode::{
    Client, ClientConfig, ClientEvent, ClientHandle, ClientState, ConnectToken, DISCONNECT_REPEATS, Server,
    ServerConfig, ServerDisconnect, ServerEvent, TokenParams,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

use super::{Accident, Machine, Wire, compare, documented, side, walk};

const PROTOCOL: u64 = 7;
const KEY: [u8; 32] = [5; 32];
const START: UnixSeconds = UnixSeconds(1_700_000_000);

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 9))
}

/// The token's.
const TIMEOUT: Duration = Duration::from_secs(5);

const SERVER: u8 = 1;
const NOBODY: u8 = 2;
const CLIENT: u8 = 3;
const RIVAL: u8 = 4;
const VICTIM: u8 = 5;

/// Who else there is, besides the client.
const NOBODY_ELSE: u8 = 0;
/// Another client, who may take the only slot.
const OTHER: u8 = 1;
/// The same account with a token more, whose owner comes back with it, or forges a victim's address.
const SAME: u8 = 2;

fn token(client_id: u64, servers: &[u8]) -> ConnectToken {
    token_of(client_id, client_id, servers)
}

/// One of several tokens of a client: its keys come from `seed`.
fn token_of(client_id: u64, seed: u64, servers: &[u8]) -> ConnectToken {
    let addresses: Vec<_> = servers.iter().map(|host| address(*host)).collect();
    let params = TokenParams {
        protocol_id: PROTOCOL,
        private_key: &KEY,
        client_id,
        created: START,
        lifetime: Some(30),
        timeout: Some(5),
        public_addresses: &addresses,
        internal_addresses: None,
        user_data: &[0; 256],
        dated: true,
    };
    ConnectToken::generate(&params, &mut Rng::seeded(seed)).unwrap()
}

/// `SERVERS` is 1 or 2, of which only the first exists; `RIVALRY` says who else there
/// is; some walks begin when the client is `CONNECTED`.
struct Session<const SERVERS: usize, const RIVALRY: u8, const CONNECTED: bool> {
    now: Instant,
    server: Server,
    client: Client,
    rival: Option<Client>,
    /// To the server, to the client.
    wires: [Wire; 2],
    /// When the server sent its last challenge.
    challenged: Option<Instant>,
    confirmed: bool,
    /// The client's own connection, at its own address.
    handle: Option<ClientHandle>,
    /// Goodbyes that the server still says.
    goodbyes: u32,
    events: Vec<ClientEvent>,
    was_connected: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Tick,
    /// Longer than the timeout, or than the token lives.
    Wait(u64),
    Suffer(usize, Accident),
    Leave,
    Kick,
    /// All goodbyes go out.
    Linger,
    /// Which clients are the same one, in some walks.
    RivalTakesTheSlot,
    Forge,
}

impl<const SERVERS: usize, const RIVALRY: u8, const CONNECTED: bool> Session<SERVERS, RIVALRY, CONNECTED> {
    fn update(&mut self, step: Duration) {
        self.now += step;
        let mut out = Datagrams::new();
        self.client.update(self.now, &mut out);
        self.send(&out);
        out.clear();
        self.server.update(self.now, &mut out);
        self.send(&out);
        self.look();
    }

    /// Puts datagrams in flight; those to nobody and to the rival are dropped.
    fn send(&mut self, out: &Datagrams) {
        for (to, bytes) in out.iter() {
            if to == address(SERVER) {
                self.wires[0].push(bytes);
            } else if to == address(CLIENT) {
                let goodbye = bytes[0] & 0x0F == 6 && self.goodbyes > 0;
                self.goodbyes -= u32::from(goodbye);
                if bytes[0] & 0x0F == 2 {
                    self.challenged = Some(self.now);
                }
                self.wires[1].push(bytes);
            }
        }
    }

    fn deliver(&mut self, to: usize, mut bytes: Vec<u8>) {
        let mut out = Datagrams::new();
        if to == 1 {
            self.client.handle_datagram(self.now, address(SERVER), &mut bytes, &mut out);
        } else {
            let kind = bytes[0] & 0x0F;
            let drops = |server: &Server| server.counters().iter().map(|(_, count)| count).sum::<u64>();
            let (before, held) = (drops(&self.server), self.ours().is_some());
            let unix = UnixSeconds(START.0 + self.now.as_nanos() / 1_000_000_000);
            let received = self.server.handle_datagram(self.now, unix, address(CLIENT), &mut bytes, &mut out);
            assert!(received.is_none(), "nobody sent one");
            self.confirmed |= held && matches!(kind, 4 | 5) && drops(&self.server) == before;
        }
        self.send(&out);
        self.look();
    }

    /// The client's connection, while it is up.
    fn ours(&self) -> Option<ClientHandle> {
        self.handle.filter(|handle| self.server.next_number(*handle).is_ok())
    }

    /// Hands the server a datagram, and returns its answer.
    fn hand(&mut self, from: u8, mut datagram: Vec<u8>) -> Vec<Vec<u8>> {
        let unix = UnixSeconds(START.0 + self.now.as_nanos() / 1_000_000_000);
        let mut out = Datagrams::new();
        self.server.handle_datagram(self.now, unix, address(from), &mut datagram, &mut out);
        self.look();
        out.iter().map(|(_, bytes)| bytes.to_vec()).collect()
    }

    /// The account requests with one token in the victim's name, and answers that with the challenge of another token, which
    /// it requested where it listens.
    fn forge(&mut self) {
        // Two keys end the public part, after a list of one address.
        const KEYS_AT: usize = 1089 + 4 + 7;
        let [forged, own] = [11, 12].map(|seed| token_of(1, seed, &[SERVER]));
        let key =
            |token: &ConnectToken, at: usize| token.to_bytes()[KEYS_AT + at..][..32].try_into().unwrap();
        let request = |token| {
            let mut out = Vec::new();
            Request::write(token, &mut out);
            out
        };
        assert!(self.hand(VICTIM, request(&forged)).iter().all(|answer| answer.len() < 1078));
        let Some(mut seen) = self.hand(RIVAL, request(&own)).pop() else { return };
        let opened = Header::read(&seen).unwrap().open(&mut seen, PROTOCOL, &key(&own, 32));
        let Ok(Body::Challenge { sequence, token }) = opened else { return };
        let body = packet::challenge_body(sequence, token);
        let mut response = Vec::new();
        packet::seal(&mut response, PROTOCOL, &key(&forged, 0), 0, Kind::Response, &body);
        assert!(self.hand(VICTIM, response).is_empty(), "the victim is sent nothing");
    }

    fn look(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Connected { client, address: at, .. } => {
                    assert_ne!(at, address(VICTIM), "nobody proved that address");
                    if at == address(CLIENT) {
                        self.handle = Some(client);
                    }
                }
                ServerEvent::Disconnected { client, reason } => {
                    // Its own packets need no goodbye.
                    if self.handle == Some(client) && reason != ServerDisconnect::ByPeer {
                        self.goodbyes = DISCONNECT_REPEATS;
                    }
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            assert!(self.events.len() < 2, "connected and disconnected, at most");
            self.events.push(event);
        }
        match self.ours() {
            None => self.confirmed = false,
            Some(_) => self.challenged = None,
        }
        self.was_connected |= self.client.state() == ClientState::Connected;
    }
}

impl<const SERVERS: usize, const RIVALRY: u8, const CONNECTED: bool> Machine
    for Session<SERVERS, RIVALRY, CONNECTED>
{
    type Action = Action;

    fn start() -> Self {
        let mut config = ServerConfig::new(PROTOCOL, KEY, 1, vec![address(SERVER)]);
        config.half_open_capacity = 4;
        config.token_history_capacity = 8;
        let server = Server::new(config, &mut Rng::seeded(1), START).unwrap();
        let servers = &[SERVER, NOBODY][..SERVERS];
        let client = Client::new(ClientConfig::new(PROTOCOL), token(1, servers), Instant::ZERO).unwrap();
        let mut session = Session {
            now: Instant::ZERO,
            server,
            client,
            rival: None,
            wires: Default::default(),
            challenged: None,
            confirmed: false,
            handle: None,
            goodbyes: 0,
            events: Vec::new(),
            was_connected: false,
        };
        while CONNECTED && session.client.state() != ClientState::Connected {
            for to in 0..2 {
                for packet in core::mem::take(&mut session.wires[to].packets) {
                    session.deliver(to, packet.bytes);
                }
            }
            session.update(Duration::from_millis(100));
        }
        session
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for to in 0..2 {
            actions
                .extend(self.wires[to].accidents().into_iter().map(|accident| Action::Suffer(to, accident)));
        }
        if self.wires[0].packets.len() < 2 && self.wires[1].packets.len() < 2 {
            actions.extend([Action::Tick, Action::Wait(6)]);
            if !self.client.state().is_final() {
                actions.extend([Action::Wait(31), Action::Leave]);
            }
            if self.ours().is_some() {
                actions.push(Action::Kick);
            }
        }
        if self.goodbyes > 0 {
            actions.push(Action::Linger);
        }
        if RIVALRY == OTHER && self.rival.is_none() && !self.server.has_address(address(CLIENT)) {
            actions.push(Action::RivalTakesTheSlot);
        }
        if RIVALRY == SAME && self.rival.is_none() {
            actions.extend([Action::RivalTakesTheSlot, Action::Forge]);
        }
        actions
    }

    fn act(&mut self, action: Action) {
        let mut out = Datagrams::new();
        match action {
            Action::Tick => self.update(Duration::from_millis(100)),
            Action::Wait(seconds) => self.update(Duration::from_secs(seconds)),
            Action::Suffer(to, accident) => {
                if let Some(bytes) = self.wires[to].suffer(accident) {
                    self.deliver(to, bytes);
                }
            }
            Action::Leave => {
                self.client.disconnect(None, &mut out).unwrap();
                // Ten of a kind: the first two stand for them.
                let said = out.iter().take(2).map(|(to, bytes)| (to, bytes.to_vec())).collect::<Vec<_>>();
                assert_eq!(out.len(), DISCONNECT_REPEATS as usize);
                said.iter().filter(|(to, _)| *to == address(SERVER)).for_each(|(_, b)| self.wires[0].push(b));
            }
            Action::Kick => {
                let client = self.ours().unwrap();
                self.goodbyes = DISCONNECT_REPEATS;
                self.server.disconnect(self.now, client, None, &mut out).unwrap();
                self.send(&out);
                self.look();
            }
            Action::Linger => {
                for _ in 0..2 * DISCONNECT_REPEATS {
                    self.now += Duration::from_millis(15);
                    self.server.update(self.now, &mut out);
                    self.send(&out);
                    out.clear();
                    self.wires[1].packets.truncate(2);
                }
            }
            Action::RivalTakesTheSlot => {
                let token = if RIVALRY == SAME { token_of(1, 10, &[SERVER]) } else { token(2, &[SERVER]) };
                let mut rival = Client::new(ClientConfig::new(PROTOCOL), token, self.now).unwrap();
                let unix = UnixSeconds(START.0 + self.now.as_nanos() / 1_000_000_000);
                let mut answers = Datagrams::new();
                rival.update(self.now, &mut out);
                for _ in 0..2 {
                    for (_, bytes) in out.iter() {
                        let mut bytes = bytes.to_vec();
                        self.server.handle_datagram(self.now, unix, address(RIVAL), &mut bytes, &mut answers);
                    }
                    out.clear();
                    for (_, bytes) in answers.iter() {
                        rival.handle_datagram(self.now, address(SERVER), &mut bytes.to_vec(), &mut out);
                    }
                    answers.clear();
                }
                self.rival = Some(rival);
            }
            Action::Forge => self.forge(),
        }
        self.look();
    }

    fn state(&self) -> String {
        let server = match () {
            () if self.ours().is_some() && self.confirmed => "Confirmed",
            () if self.ours().is_some() => "Unconfirmed",
            () if self.goodbyes > 0 => "Leaving",
            () if self.challenged.is_some_and(|at| self.now - at < TIMEOUT) => "Half-open",
            () => "Unknown",
        };
        format!("{}/{server}", self.client.state().number())
    }

    /// What the ends hold can't be seen: every path is walked on.
    fn everything(&self) -> Option<u64> {
        None
    }

    fn conclude(mut self) {
        for _ in 0..12 {
            for to in 0..2 {
                for packet in core::mem::take(&mut self.wires[to].packets) {
                    self.deliver(to, packet.bytes);
                }
            }
            self.update(Duration::from_millis(100));
        }
        // The server's goodbyes may all have been lost.
        if self.client.state() == ClientState::Connected && self.ours().is_none() {
            (0..60).for_each(|_| self.update(Duration::from_millis(100)));
        }
        let state = self.client.state();
        let held = self.ours().is_some();
        assert!(state != ClientState::Connected || held, "a client that is connected to nothing");
        assert!(
            !self.was_connected || matches!(state, ClientState::Connected) || state.is_final(),
            "no way back from connected: {state:?}"
        );
        // On a patient network, a client that still dials gets in, or is denied.
        assert!(
            state.is_final()
                || held
                || self.client.server_address() == address(NOBODY)
                || self.rival.is_some()
        );
        let disconnected =
            self.events.iter().filter(|e| matches!(e, ClientEvent::Disconnected { .. })).count();
        assert!(disconnected <= 1, "told once");
    }
}

#[test]
fn connections_go_as_their_document_says() {
    let walks = [
        walk::<Session<1, NOBODY_ELSE, false>>(6),
        walk::<Session<1, OTHER, false>>(6),
        walk::<Session<2, OTHER, false>>(6),
        walk::<Session<1, NOBODY_ELSE, true>>(4),
        walk::<Session<1, SAME, false>>(5),
        walk::<Session<1, SAME, true>>(3),
    ];
    let states = walks.each_ref().map(|walk| walk.states);
    println!("a connection: {states:?} states to depths of 6, 6, 6, 4, 5 and 3");
    let file = "src/netcode/STATE_MACHINE.md";
    compare(&side(&walks, 0), &documented(file, "## Client", 0, 3));
    compare(&side(&walks, 1), &documented(file, "## Server, one client", 0, 3));
}
