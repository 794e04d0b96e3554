//! A server whose application decides about newcomers, with clients that come, send and leave at any time: also while it
//! decides, and while it reads packets that the core holds. The network is perfect, so whatever a client sent arrives.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tickwire::endpoint::{
    ChunkLimits, ChunkStore, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Event, Host, Inbox,
    PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::chunks::{Assembly, BytesSource, ChunkEvent, MemorySink, Offer, Rejection};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, ConnectionConfig, Framing, MessageType, Protocol, SendOptions,
    YojimboConfig,
};
use tickwire::wire::{Kind, Schema};

use crate::pair::{DIALLED, number, protocol_with};

const PROTOCOL_ID: u64 = 0x7469_636B;
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);

/// Whose chunks were opened, by client id.
#[derive(Clone, Default)]
struct Opened(Arc<Mutex<Vec<u64>>>);

impl ChunkStore for Opened {
    fn open(&mut self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        self.0.lock().unwrap().push(client_id);
        let sink = MemorySink::new(offer.size).map_err(|_| Rejection::Storage)?;
        Ok(Assembly::new(offer, Box::new(sink)))
    }

    fn bytes_at_once(&self) -> u64 {
        1 << 20
    }
}

struct Player {
    id: u64,
    address: SocketAddr,
    client: Host,
    /// Reliable messages that the server's core has.
    sent: Vec<u32>,
    chunks: usize,
}

/// What the application knows of a client.
#[derive(Default)]
struct Known {
    id: u64,
    messages: Vec<u32>,
    chunks: usize,
}

struct World {
    now: Instant,
    rng: Rng,
    protocol: Arc<Protocol>,
    server: Host,
    opened: Opened,
    players: Vec<Player>,
    /// Clients that left by themselves, by id, with the messages they had sent.
    left: HashMap<u64, (Vec<u32>, usize)>,
    next_id: u64,
    is_closing: bool,
    /// By id.
    admitted: HashSet<u64>,
    refused: HashSet<u64>,
    known: HashMap<PeerHandle, Known>,
    /// Ids of those who came and went, as the application saw it.
    gone: Vec<u64>,
}

fn native() -> Arc<Protocol> {
    let chunks = ChannelConfig::new(ChannelKind::Chunks);
    protocol_with(vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable(), chunks])
}

/// A client with held packets, because of a message that the core can't read.
fn yojimbo() -> Arc<Protocol> {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    let types = vec![
        MessageType { name: "Number".into(), body: Body::Declared(schema) },
        MessageType { name: "Own".into(), body: Body::Opaque { max_bytes: 64 } },
    ];
    let framing = Framing::Yojimbo(YojimboConfig::default());
    Arc::new(Protocol::with_framing(types, vec![ChannelConfig::reliable_ordered()], framing).unwrap())
}

fn unix(now: Instant) -> UnixSeconds {
    UnixSeconds(1_700_000_000 + now.as_nanos() / 1_000_000_000)
}

impl World {
    fn new(protocol: Arc<Protocol>, seed: u64, max_clients: usize) -> Self {
        let mut rng = Rng::seeded(seed);
        let addresses = vec![SERVER.into(), DEVELOPMENT_ADDRESS];
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, max_clients, addresses),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits { memory_bytes: 0 },
        };
        let mut server = Host::server(config, protocol.clone(), &mut rng, unix(Instant::ZERO)).unwrap();
        let opened = Opened::default();
        server.set_chunk_store(Box::new(opened.clone()));
        server.ask_admission();
        World {
            now: Instant::ZERO,
            rng,
            protocol,
            server,
            opened,
            players: Vec::new(),
            left: HashMap::new(),
            next_id: 1,
            is_closing: false,
            admitted: HashSet::new(),
            refused: HashSet::new(),
            known: HashMap::new(),
            gone: Vec::new(),
        }
    }

    fn add_player(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: id,
            created: unix(self.now),
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[SERVER.into()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut self.rng).unwrap();
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let client = Host::client(config, self.protocol.clone(), token, self.now).unwrap().0;
        let address = SocketAddr::from(([10, 0, 1, (id % 250) as u8], 1000 + id as u16));
        self.players.push(Player { id, address, client, sent: Vec::new(), chunks: 0 });
    }

    /// Carries a client's packets to the server, and the answers back.
    fn carry(&mut self, place: usize, out: &Datagrams) {
        let (from, now) = (self.players[place].address, self.now);
        let mut answers = Datagrams::new();
        for (_, datagram) in out.iter() {
            let mut datagram = datagram.to_vec();
            self.server.handle_datagram(now, unix(now), from, &mut datagram, &mut answers);
        }
        self.deliver(&answers);
    }

    fn deliver(&mut self, out: &Datagrams) {
        for (to, datagram) in out.iter() {
            let mut answers = Datagrams::new();
            let Some(place) = self.players.iter().position(|player| player.address == to) else { continue };
            let mut datagram = datagram.to_vec();
            let now = self.now;
            self.players[place].client.handle_datagram(
                now,
                unix(now),
                SERVER.into(),
                &mut datagram,
                &mut answers,
            );
            if !answers.is_empty() {
                self.carry(place, &answers);
            }
        }
    }

    /// What happens without the application: on a driver's thread, say.
    fn turn(&mut self) {
        self.now += Duration::from_millis(16);
        if !self.is_closing && self.players.len() < 6 && self.rng.chance(0.2) {
            self.add_player();
        }
        for place in 0..self.players.len() {
            let (now, rng, player) = (self.now, &mut self.rng, &mut self.players[place]);
            if player.client.is_connected(DIALLED) {
                if rng.chance(0.3) {
                    let n = player.sent.len() as u32;
                    player.client.send(now, DIALLED, 0, number(n), SendOptions::default()).unwrap();
                    player.sent.push(n);
                }
                if self.protocol.channels().len() == 3 && player.chunks < 2 && rng.chance(0.1) {
                    let source = BytesSource(Arc::new(vec![7u8; 300]));
                    let hash = *b"0123456789abcdef0123456789abcdef";
                    let connection = player.client.connection_mut(DIALLED).unwrap();
                    connection.send_chunk(now, Box::new(source), hash, "label", false).unwrap();
                    player.chunks += 1;
                }
            }
            let mut out = Datagrams::new();
            player.client.transmit(now, &mut out);
            self.carry(place, &out);
        }
        if self.rng.chance(0.05) && !self.players.is_empty() {
            let place = self.rng.below(self.players.len() as u64) as usize;
            self.leave(place);
        }
        let mut out = Datagrams::new();
        self.server.transmit_between(self.now, &mut out);
        self.deliver(&out);
        self.players.retain(|player| player.client.dialled(DIALLED).unwrap().end.is_none());
        let opened = self.opened.0.lock().unwrap();
        assert!(opened.iter().all(|id| self.admitted.contains(id)), "a stranger's chunk has a place");
    }

    fn leave(&mut self, place: usize) {
        let now = self.now;
        let mut out = Datagrams::new();
        self.players[place].client.close(now, &mut out);
        self.carry(place, &out);
        let player = self.players.remove(place);
        self.left.insert(player.id, (player.sent, player.chunks));
    }

    fn turns(&mut self) {
        (0..self.rng.below(10)).for_each(|_| self.turn());
    }

    /// A tick of the application, during each step of which more may happen.
    fn tick(&mut self) {
        let newcomers: Vec<_> = self.server.newcomers().cloned().collect();
        self.turns();
        let mut out = Datagrams::new();
        for newcomer in newcomers {
            let Event::Accepted { peer: client, client_id, .. } = newcomer else { unreachable!() };
            if client_id % 3 == 0 {
                assert!(self.refused.insert(client_id), "asked about once");
                self.server.refuse(self.now, client, None, &mut out);
            } else {
                assert!(self.admitted.insert(client_id), "asked about once");
                self.server.admit(client);
            }
        }
        self.deliver(&out);
        let has_news = self.server.has_news();
        let (unread, mut inbox, mut out) = (self.server.take_unread(), Inbox::new(), Datagrams::new());
        assert!(has_news || unread.is_empty(), "packets that wait to be read are news");
        let read: Vec<_> = unread
            .into_iter()
            .map(|(client, unread)| (client, unread.read(|_, _, _| Err("never called".into()))))
            .collect();
        if !read.is_empty() {
            self.turns();
        }
        for (client, read) in read {
            self.server.handle_read(self.now, client, read, &mut inbox, &mut out);
        }
        let (mut chunks, mut told) = (Vec::new(), Vec::new());
        self.server.take_messages(&mut inbox);
        self.server.take_chunk_events(&mut chunks);
        self.server.take_notifications(&mut told);
        let events: Vec<_> = core::iter::from_fn(|| self.server.poll_event()).collect();
        self.check(&events, &inbox, &chunks);
        assert!(told.is_empty());
    }

    fn check(&mut self, events: &[Event], inbox: &Inbox, chunks: &[(PeerHandle, ChunkEvent)]) {
        for event in events {
            if let Event::Accepted { peer: client, client_id, .. } = event {
                assert!(self.admitted.contains(client_id), "{client_id} was not asked about");
                let known = Known { id: *client_id, ..Known::default() };
                assert!(self.known.insert(*client, known).is_none());
            }
        }
        for record in &inbox.game.records {
            let known = self.known.get_mut(&record.head.peer).expect("heard between its events");
            known.messages.push(u32::from_le_bytes(inbox.game.body(record)[..4].try_into().unwrap()));
        }
        for (client, event) in chunks {
            let known = self.known.get_mut(client).expect("heard between its events");
            known.chunks += 1;
            assert!(matches!(event, ChunkEvent::NotReceived { .. }), "its hash is wrong: {event:?}");
        }
        for event in events {
            if let Event::Disconnected { peer: client, .. } = event {
                let Known { id, messages, chunks } = self.known.remove(client).expect("told of");
                let (sent, offered) = &self.left[&id];
                assert_eq!((&messages, chunks), (sent, *offered), "what {id} sent");
                self.gone.push(id);
            }
        }
    }
}

#[test]
fn nobody_is_heard_before_admission_and_nothing_of_a_leaver_is_lost() {
    let mut lived = 0;
    for (protocol, seeds) in [(native(), 0..12), (yojimbo(), 12..24)] {
        for seed in seeds {
            let mut world = World::new(protocol.clone(), seed, 8);
            for _ in 0..300 {
                world.turns();
                world.tick();
            }
            world.is_closing = true;
            while !world.players.is_empty() {
                world.leave(0);
            }
            world.tick();
            world.tick();
            assert!(world.known.is_empty(), "all were told to have left");
            assert!(world.gone.iter().all(|id| !world.refused.contains(id)));
            let counts = (world.gone.len(), world.refused.len());
            assert!(counts.0 > 10 && counts.1 > 5, "seed {seed}: {counts:?}");
            let of_refused = world.refused.iter().filter_map(|id| world.left.get(id));
            lived += of_refused.map(|(sent, chunks)| sent.len() + chunks).sum::<usize>();
            assert!(!world.server.has_news(), "seed {seed}");
        }
    }
    assert!(lived > 100, "{lived}: those refused had something to say");
}
