//! Ghosts through sessions: a server's world in its clients, over secure connections.

use std::sync::Arc;

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, DisconnectReason, Event, Goodbye, Host,
    PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::replication::{
    Classes, Column, Condition, GhostClass, GhostEvent, GhostEventKind, Mirror, Publisher, PublisherConfig,
    ServedWorld,
};
use tickwire::rng::Rng;
use tickwire::session::protocol::{self as parts, ghost_channel};
use tickwire::session::{Ghosts, Session, Tick};
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::{
    ChannelConfig, ConnectionConfig, Framing, Protocol, SendOptions, Violation, YojimboConfig,
};
use tickwire::wire::{BitSink, BitWriter, Kind};

use crate::endpoint::ms;
use crate::fuzz_targets::ghosts::class;
use crate::pair::{DIALLED, number, protocol as game};

const PROTOCOL_ID: u64 = 7;
const UNIX: UnixSeconds = UnixSeconds(1_000_000);
const ROWS: u32 = 40;

fn classes(bits: u32) -> Arc<Classes> {
    let fields = vec![
        ("uid", Kind::Bits { bits: 32 }, Condition::Always),
        ("x", Kind::Bits { bits }, Condition::Always),
    ];
    Arc::new(Classes::new([class("Thing", fields, 100)]).unwrap())
}

/// The same, coded by how likely things are.
fn coded_classes() -> Arc<Classes> {
    let coded = classes(20)
        .iter()
        .map(|class| Arc::new(GhostClass::clone(class).with_coding(true)))
        .collect::<Vec<_>>();
    Arc::new(Classes::new(coded).unwrap())
}

fn protocol(classes: &Classes) -> Arc<Protocol> {
    let protocol = (*game()).clone();
    Arc::new(protocol.extended(parts::ghosts(classes.describe())).unwrap())
}

/// A server with a world, and clients; datagrams take no time, and some are lost.
struct World {
    now: Instant,
    rng: Rng,
    loss: f64,
    server: Session,
    clients: Vec<Session>,
    xs: Vec<u32>,
    out: Datagrams,
}

impl World {
    fn new(clients: u64, loss: f64) -> Self {
        Self::of(classes(20), clients, loss)
    }

    fn of(classes: Arc<Classes>, clients: u64, loss: f64) -> Self {
        let mut rng = Rng::seeded(1);
        let protocol = protocol(&classes);
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 8, vec![DEVELOPMENT_ADDRESS]),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let channel = ghost_channel(&protocol).unwrap();
        let world = ServedWorld::new(classes.clone(), PublisherConfig { channel, seed: 0 });
        let server = Host::server(config, protocol.clone(), &mut rng, UNIX).unwrap();
        World {
            now: Instant::ZERO,
            rng,
            loss,
            server: Session::with_roles(server, Ghosts::World(Box::new(world)), None),
            clients: (1..=clients).map(|id| Self::client(id, &classes, &protocol)).collect(),
            xs: vec![0; ROWS as usize],
            out: Datagrams::new(),
        }
    }

    fn client(id: u64, classes: &Arc<Classes>, protocol: &Arc<Protocol>) -> Session {
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let (client, _) = Host::client(config, protocol.clone(), Self::token(id), Instant::ZERO).unwrap();
        Session::with_roles(client, Ghosts::Mirror(Box::new(Mirror::new(classes.clone()))), None)
    }

    fn token(id: u64) -> ConnectToken {
        let mut rng = Rng::seeded(id + 100);
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: id,
            created: UNIX,
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &["10.0.0.1:1".parse().unwrap()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        ConnectToken::generate(&params, &mut rng).unwrap()
    }

    fn publisher(&mut self) -> &mut Publisher {
        self.server.ghosts().publisher().unwrap()
    }

    /// A tick of all; gives what the server's game was handed.
    fn tick(&mut self) -> Tick {
        self.now += ms(16);
        for client in 0..self.clients.len() {
            self.clients[client].transmit(self.now, &mut self.out);
            self.deliver(client, true);
        }
        let mut tick = Tick::default();
        self.server.take(self.now, &mut tick);
        let cells: Vec<[u8; 4]> = self.xs.iter().map(|x| x.to_le_bytes()).collect();
        let uids: Vec<[u8; 4]> = (0..ROWS).map(u32::to_le_bytes).collect();
        let columns = [
            Column { cells: uids.as_flattened(), scan: true },
            Column { cells: cells.as_flattened(), scan: true },
        ];
        if let Some(publisher) = self.server.ghosts().publisher() {
            publisher.begin_tick(&[columns], &mut Vec::new());
        }
        self.server.transmit(self.now, &mut self.out);
        self.deliver(0, false);
        tick
    }

    fn deliver(&mut self, client: usize, mut up: bool) {
        let mut from = client;
        while !self.out.is_empty() {
            let sent = core::mem::take(&mut self.out);
            for (to, datagram) in sent.iter() {
                if self.rng.chance(self.loss) {
                    continue;
                }
                let datagram = &mut datagram.to_vec();
                if up {
                    let address = format!("10.0.0.2:{}", from + 2).parse().unwrap();
                    self.server.handle_datagram(self.now, UNIX, address, datagram, &mut self.out);
                } else {
                    from = usize::from(to.port()) - 2;
                    let address = "10.0.0.1:1".parse().unwrap();
                    self.clients[from].handle_datagram(self.now, UNIX, address, datagram, &mut self.out);
                }
            }
            up = !up;
        }
    }

    /// A client's ghosts by the server's rows, and its events.
    fn shown(&mut self, client: usize) -> (Vec<Option<u32>>, Vec<GhostEvent>) {
        let mirror = self.clients[client].ghosts().mirror().unwrap();
        let rows = mirror.rows(0);
        let (mut uids, mut xs, mut events) = (vec![[0; 4]; rows], vec![[0; 4]; rows], Vec::new());
        mirror.take(&mut [vec![uids.as_flattened_mut(), xs.as_flattened_mut()]], &mut events);
        let mut shown = vec![None; ROWS as usize];
        for id in (0..rows).filter(|id| mirror.is_alive(0, *id as u32)) {
            shown[u32::from_le_bytes(uids[id]) as usize] = Some(u32::from_le_bytes(xs[id]));
        }
        (shown, events)
    }
}

#[test]
fn clients_have_the_servers_world_and_the_game_hears_nothing_of_how() {
    for classes in [classes(20), coded_classes()] {
        clients_come_to_have_the_world(World::of(classes, 3, 0.2));
    }
}

fn clients_come_to_have_the_world(mut world: World) {
    for row in 0..ROWS {
        assert_eq!(world.publisher().spawn(0, None), Ok(row));
    }
    let mut peers = Vec::new();
    for step in 0..400 {
        let tick = world.tick();
        assert!(tick.notifications.is_empty(), "they are the world's own");
        assert!(!tick.inbox.has_any());
        for event in &tick.events {
            if let Event::Accepted { peer, .. } = event {
                peers.push(*peer);
                (0..ROWS).for_each(|row| assert!(world.publisher().enter(*peer, 0, row)));
            }
        }
        if step < 300 {
            let row = world.rng.below(ROWS.into()) as usize;
            world.xs[row] = world.rng.below(1 << 20) as u32;
        }
    }
    assert_eq!(peers.len(), 3);
    let want: Vec<Option<u32>> = world.xs.iter().map(|x| Some(*x)).collect();
    for client in 0..3 {
        let mut tick = Tick::default();
        world.clients[client].take(world.now, &mut tick);
        assert!(!tick.inbox.has_any());
        let (shown, events) = world.shown(client);
        assert_eq!(shown, want, "client {client}");
        assert_eq!(
            events.iter().filter(|event| event.kind == GhostEventKind::Spawned).count(),
            ROWS as usize
        );
    }
    // Quiet: nothing is due for anybody.
    peers.iter().for_each(|peer| assert_eq!(world.publisher().due(*peer), 0));
}

#[test]
fn a_client_that_writes_ghosts_is_sent_away_and_others_stay() {
    let mut world = World::new(2, 0.0);
    (0..30).for_each(|_| drop(world.tick()));
    let channel = ghost_channel(world.server.host().protocol()).unwrap();
    let mut forged = BitWriter::new();
    forged.bits(0x1_2345, 17);
    let now = world.now;
    world.clients[0].change().send_payload(now, DIALLED, channel, forged.encoded(), 0).unwrap();
    let ended: Vec<Event> = (0..4).flat_map(|_| world.tick().events).collect();
    let [Event::Disconnected { reason, violation, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(*reason, DisconnectReason::ProtocolViolation);
    assert!(matches!(violation, Some(Violation::Payload { feature: "ghosts", .. })));
    assert_eq!(world.server.host().connected().count(), 1);
    // A peer that sends is heard.
    let now = world.now;
    world.clients[1].change().send(now, DIALLED, 0, number(3), SendOptions::default()).unwrap();
    assert!((0..3).any(|_| world.tick().inbox.has_any()));
}

/// A host that others dial has a picture of the world of one that it dials, and of no other.
#[test]
fn a_mirror_reads_only_what_its_server_writes() {
    let mut world = World::new(1, 0.0);
    *world.server.ghosts() = Ghosts::Mirror(Box::new(Mirror::new(classes(20))));
    (0..30).for_each(|_| drop(world.tick()));
    let channel = ghost_channel(world.server.host().protocol()).unwrap();
    // A tick, no visit, and no section.
    let mut well_formed = BitWriter::new();
    well_formed.bits(0x2345, 18);
    let now = world.now;
    world.clients[0].change().send_payload(now, DIALLED, channel, well_formed.encoded(), 0).unwrap();
    let ended: Vec<Event> = (0..4).flat_map(|_| world.tick().events).collect();
    let [Event::Disconnected { violation, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert!(matches!(violation, Some(Violation::Payload { feature: "ghosts", .. })));
    assert_eq!(world.server.ghosts().mirror().unwrap().tick(), 0);
}

/// Ticks until the client has all, and is sent away. Gives who it was for the server.
fn shown_and_sent_away(world: &mut World) -> PeerHandle {
    (0..ROWS).for_each(|row| assert_eq!(world.publisher().spawn(0, None), Ok(row)));
    let mut server = None;
    for _ in 0..60 {
        enter_all(world);
        let mut tick = Tick::default();
        world.clients[0].take(world.now, &mut tick);
        for event in tick.events {
            let Event::Dialled { peer, .. } = event else { panic!("{event:?}") };
            server = Some(peer);
        }
    }
    let peer = world.server.host().connected().next().unwrap();
    let now = world.now;
    world.server.change().disconnect_with(now, peer, Goodbye::default(), &mut world.out).unwrap();
    world.deliver(0, false);
    server.unwrap()
}

/// A tick in which a client that connects is shown everything.
fn enter_all(world: &mut World) {
    for event in world.tick().events {
        if let Event::Accepted { peer, .. } = event {
            (0..ROWS).for_each(|row| assert!(world.publisher().enter(peer, 0, row)));
        }
    }
}

#[test]
fn the_end_waits_one_tick_for_who_does_not_look_at_ghosts() {
    let mut world = World::new(1, 0.0);
    let server = shown_and_sent_away(&mut world);
    let mut take = || {
        let mut tick = Tick::default();
        world.clients[0].take(world.now, &mut tick);
        tick.events
    };
    assert_eq!(take(), []);
    let events = take();
    let [Event::Disconnected { peer, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*peer, server);
}

#[test]
fn another_server_shows_another_world() {
    let mut world = World::new(1, 0.0);
    let first = shown_and_sent_away(&mut world);
    let of = |events: &[GhostEvent], kind| events.iter().filter(|it| it.kind == kind).count();
    let events = world.shown(0).1;
    assert_eq!((events.len(), of(&events, GhostEventKind::Spawned)), (ROWS as usize, ROWS as usize));
    let (now, config) = (world.now, netcode::ClientConfig::new(PROTOCOL_ID));
    let mut tick = Tick::default();
    world.clients[0].take(now, &mut tick);
    assert!(matches!(tick.events[..], [Event::Disconnected { .. }]));
    let second = world.clients[0].change().dial(now, config, World::token(2), 2).unwrap();
    assert_ne!(second, first);
    // Those rows are gone in the next world, and its ticks start again for clients that connect.
    (0..10).for_each(|row| assert!(world.publisher().despawn(0, row)));
    let mut is_told = false;
    for _ in 0..60 {
        for event in world.tick().events {
            if let Event::Accepted { peer, .. } = event {
                (10..ROWS).for_each(|row| assert!(world.publisher().enter(peer, 0, row)));
            }
        }
        let mut tick = Tick::default();
        world.clients[0].take(world.now, &mut tick);
        let told = tick.events.iter().any(|event| matches!(event, Event::Dialled { .. }));
        is_told |= told;
        assert!((is_told && !told) || world.clients[0].mirror().is_none(), "shown before it is told of");
    }
    assert!(is_told);
    let (shown, events) = world.shown(0);
    assert_eq!(shown.iter().flatten().count(), ROWS as usize - 10);
    assert_eq!(of(&events, GhostEventKind::Despawned), ROWS as usize);
    assert_eq!(of(&events, GhostEventKind::Spawned), ROWS as usize - 10);
}

#[test]
fn the_classes_are_part_of_what_both_sides_agree_on() {
    let hash = |bits| protocol(&classes(bits)).hash();
    assert_eq!(hash(20), hash(20));
    assert_ne!(hash(20), hash(21));
    assert_ne!(hash(20), game().hash());
    assert_ne!(hash(20), protocol(&coded_classes()).hash(), "coded or not");
    assert_eq!((ghost_channel(&game()), game().game_channels()), (None, 2));
    let with = protocol(&classes(20));
    assert_eq!((ghost_channel(&with), with.game_channels(), with.channels().len()), (Some(2), 2, 3));
    let yojimbo = Framing::Yojimbo(YojimboConfig::default());
    let messages = game().messages()[..1].to_vec();
    let yojimbo = Protocol::with_framing(messages, vec![ChannelConfig::unreliable()], yojimbo).unwrap();
    assert!(yojimbo.extended(parts::ghosts(classes(20).describe())).is_err());
}
