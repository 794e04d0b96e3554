//! A server with an honest player whose every message is watched, and whatever an attacker sends in between.

use core::net::SocketAddr;
use std::time::Instant as Clock;

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, Event, Host, Inbox, PeerHandle, SendError, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, DropReason, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{ConnectionConfig, Message, SendOptions};

use crate::fuzz_targets::world::{CLIENT_CHUNKS, ORDERED, PRIVATE_KEY, PROTOCOL_ID, START, number, protocol};
use crate::memory::held;
use crate::pair::DIALLED;

pub(super) const SLOTS: usize = 8;
const HONEST: u64 = 1;
const NEWCOMER: u64 = 2;

/// The cost of an attack, and who bears it.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) datagrams: usize,
    pub(super) bytes_in: usize,
    /// To the addresses that the attack came from.
    pub(super) bytes_out: usize,
    /// The maximum memory that the server held beyond what it held before, its application's inbox included.
    pub(super) memory: isize,
    /// The longest that a message of the honest player took, in ticks.
    pub(super) delay: u32,
    /// Ticks in which a newcomer got in; None when it did not.
    pub(super) newcomer: Option<u32>,
    pub(super) nanos: u128,
}

pub(super) struct Arena {
    pub(super) now: Instant,
    pub(super) server: Host,
    pub(super) figures: Figures,
    /// Whether the application takes what players send.
    pub(super) reads: bool,
    /// What the honest player sent and was sent, as an eavesdropper sees it.
    pub(super) captured: [Vec<Vec<u8>>; 2],
    /// Used again and again, so that their memory counts once.
    out: Datagrams,
    inbox: Inbox,
    honest: Player,
    newcomer: Option<Player>,
    memory: isize,
    tick: u32,
    /// The next number to come from the honest player, and at it.
    expected: [u32; 2],
}

struct Player {
    client: Host,
    address: SocketAddr,
    since: u32,
}

pub(super) fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_000))
}

pub(super) fn honest_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 50_000))
}

/// A token of the login backend, living for 30 seconds.
pub(super) fn token(client_id: u64, now: Instant) -> ConnectToken {
    token_of(client_id, client_id, now)
}

/// One of several tokens of a client: its keys come from `seed`.
pub(super) fn token_of(client_id: u64, seed: u64, now: Instant) -> ConnectToken {
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &PRIVATE_KEY,
        client_id,
        created: unix(now),
        lifetime: Some(30),
        timeout: Some(5),
        public_addresses: &[server_address()],
        internal_addresses: None,
        user_data: &[0; 256],
        dated: true,
    };
    ConnectToken::generate(&params, &mut Rng::seeded(seed)).unwrap()
}

pub(super) fn unix(now: Instant) -> UnixSeconds {
    UnixSeconds(START.0 + now.as_nanos() / 1_000_000_000)
}

impl Player {
    fn new(client_id: u64, address: SocketAddr, now: Instant, since: u32) -> Self {
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits { memory_bytes: CLIENT_CHUNKS },
        };
        let client = Host::client(config, protocol(), token(client_id, now), now).unwrap().0;
        Player { client, address, since }
    }
}

impl Arena {
    /// With the honest player connected and in the swing.
    pub(super) fn new() -> Self {
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, PRIVATE_KEY, SLOTS, vec![server_address()]),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits { memory_bytes: CLIENT_CHUNKS },
        };
        let mut arena = Arena {
            now: Instant::ZERO,
            server: Host::server(config, protocol(), &mut Rng::seeded(2), START).unwrap(),
            figures: Figures::default(),
            reads: true,
            captured: Default::default(),
            out: Datagrams::new(),
            inbox: Inbox::new(),
            honest: Player::new(HONEST, honest_address(), Instant::ZERO, 0),
            newcomer: None,
            memory: 0,
            tick: 0,
            expected: [0; 2],
        };
        (0..120).for_each(|_| drop(arena.tick()));
        assert!(arena.honest.client.is_connected(DIALLED));
        arena.memory = 0;
        arena.figures = Figures::default();
        arena
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.server.listener().unwrap().counters().dropped(reason)
    }

    pub(super) fn drops(&self) -> u64 {
        self.server.listener().unwrap().counters().iter().map(|(_, count)| count).sum()
    }

    /// Has the server do something, and counts the memory it takes or gives back.
    fn watch<T>(&mut self, act: impl FnOnce(&mut Host) -> T) -> T {
        let before = held();
        let result = act(&mut self.server);
        self.memory += held() - before;
        self.figures.memory = self.figures.memory.max(self.memory);
        result
    }

    /// Hands the server a datagram of the attacker's; returns the immediate answer.
    pub(super) fn attack(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.figures.datagrams += 1;
        self.figures.bytes_in += bytes.len();
        let (now, mut datagram, mut out) = (self.now, bytes.to_vec(), core::mem::take(&mut self.out));
        let clock = Clock::now();
        self.watch(|server| server.handle_datagram(now, unix(now), from, &mut datagram, &mut out));
        self.figures.nanos += clock.elapsed().as_nanos();
        assert!(out.iter().all(|(to, _)| to == from), "no answer goes to a third");
        self.figures.bytes_out += out.total_bytes();
        let answers = out.iter().map(|(_, answer)| answer.to_vec()).collect();
        out.clear();
        self.out = out;
        answers
    }

    /// The application sends a player something.
    pub(super) fn server_send(
        &mut self,
        client: PeerHandle,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let now = self.now;
        self.watch(|server| server.send(now, client, channel, message, options))
    }

    /// Hands the honest player a datagram in the server's name.
    pub(super) fn attack_honest(&mut self, bytes: &[u8]) {
        let mut out = Datagrams::new();
        self.honest.client.handle_datagram(
            self.now,
            unix(self.now),
            server_address(),
            &mut bytes.to_vec(),
            &mut out,
        );
        assert!(out.is_empty());
    }

    /// Somebody new, with a good token, begins to dial.
    pub(super) fn dial(&mut self) {
        let address = SocketAddr::from(([10, 0, 0, 3], 50_000));
        self.newcomer = Some(Player::new(NEWCOMER, address, self.now, self.tick));
    }

    /// A tick of the server and the players. Gives what goes to others.
    pub(super) fn tick(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.now += Duration::from_nanos(1_000_000_000 / 60);
        self.tick += 1;
        let (now, mut out, mut to_server) = (self.now, core::mem::take(&mut self.out), Vec::new());
        if self.honest.client.is_connected(DIALLED) {
            let sent =
                self.honest.client.send(now, DIALLED, ORDERED, number(self.tick), SendOptions::default());
            sent.expect("the honest player's queue has room");
        }
        let Arena { honest, newcomer, .. } = self;
        for player in core::iter::once(&mut *honest).chain(newcomer) {
            player.client.transmit(now, &mut out);
            to_server.extend(out.iter().map(|(_, bytes)| (player.address, bytes.to_vec())));
            out.clear();
        }
        for (from, mut bytes) in to_server {
            if from == honest_address() {
                self.captured[0].push(bytes.clone());
            }
            self.watch(|server| server.handle_datagram(now, unix(now), from, &mut bytes, &mut out));
        }
        if let Some(honest) = self.server.find(HONEST) {
            let message = number(self.tick);
            let sent =
                self.watch(|server| server.send(now, honest, ORDERED, message, SendOptions::default()));
            sent.expect("the honest player's queue has room");
        }
        self.watch(|server| server.transmit(now, &mut out));
        let elsewhere = self.deliver(&out);
        out.clear();
        self.out = out;
        self.figures.bytes_out += elsewhere.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.take();
        elsewhere
    }

    fn deliver(&mut self, out: &Datagrams) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut elsewhere, mut nothing) = (Vec::new(), Datagrams::new());
        for (to, bytes) in out.iter() {
            let player =
                core::iter::once(&mut self.honest).chain(&mut self.newcomer).find(|p| p.address == to);
            let Some(player) = player else {
                elsewhere.push((to, bytes.to_vec()));
                continue;
            };
            if to == honest_address() {
                self.captured[1].push(bytes.to_vec());
            }
            player.client.handle_datagram(
                self.now,
                unix(self.now),
                server_address(),
                &mut bytes.to_vec(),
                &mut nothing,
            );
        }
        if let Some(newcomer) = &mut self.newcomer {
            let connected = core::iter::from_fn(|| newcomer.client.poll_event())
                .any(|event| matches!(event, Event::Dialled { .. }));
            if connected {
                self.figures.newcomer = Some(self.tick - newcomer.since);
            }
        }
        elsewhere
    }

    /// The honest player's messages, each once and in order at both ends, and how late they are.
    fn take(&mut self) {
        while self.server.poll_event().is_some() {}
        let mut inbox = Inbox::new();
        while self.honest.client.poll_event().is_some() {}
        self.honest.client.take_messages(&mut inbox);
        self.look(&inbox, 1);
        if self.reads {
            let mut inbox = core::mem::take(&mut self.inbox);
            self.watch(|server| server.take_messages(&mut inbox));
            self.look(&inbox, 0);
            inbox.game.clear();
            self.inbox = inbox;
        }
    }

    fn look(&mut self, inbox: &Inbox, end: usize) {
        for record in &inbox.game.records {
            if end == 0 && self.server.find(HONEST) != Some(record.head.peer) {
                continue;
            }
            let number = u32::from_le_bytes(inbox.game.body(record)[..4].try_into().unwrap());
            let expected = &mut self.expected[end];
            assert!(*expected == 0 || number == *expected, "{number} instead of {expected}");
            *expected = number + 1;
            self.figures.delay = self.figures.delay.max(self.tick - number);
        }
    }

    /// Lets the honest player finish: all that it sent and was sent must have arrived.
    pub(super) fn finish(mut self) -> Figures {
        self.reads = true;
        let (memory, delay) = (self.figures.memory, self.figures.delay);
        (0..10).for_each(|_| drop(self.tick()));
        assert!(self.honest.client.is_connected(DIALLED));
        assert_eq!(self.expected, [self.tick + 1; 2]);
        Figures { memory, delay, ..self.figures }
    }
}
