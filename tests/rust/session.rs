//! A session: what a tick hands up in one value, and how a closed one lingers without its application.

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Event, Goodbye, Host, RoomError,
    SendError, ServerConfig, ToRoom,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::session::{Session, Tick};
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::chunks::{BytesSource, ChunkEvent};
use tickwire::transport::{ChannelConfig, ChannelKind, ConnectionConfig, Protocol, SendOptions};

use crate::endpoint::ms;
use crate::pair::{DIALLED, blob, number, protocol_with};

use std::sync::Arc;

const PROTOCOL_ID: u64 = 7;
const UNIX: UnixSeconds = UnixSeconds(1_000_000);

/// A server and a client; datagrams arrive at once.
struct World {
    now: Instant,
    server: Session,
    client: Session,
    out: Datagrams,
}

fn protocol() -> Arc<Protocol> {
    let latest = ChannelConfig::new(ChannelKind::Latest { keys: 4 });
    protocol_with(vec![ChannelConfig::reliable_ordered(), ChannelConfig::new(ChannelKind::Chunks), latest])
}

impl World {
    fn new() -> Self {
        let mut rng = Rng::seeded(1);
        let addresses = vec![DEVELOPMENT_ADDRESS];
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 2, addresses),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let server = Host::server(config, protocol(), &mut rng, UNIX).unwrap();
        World {
            now: Instant::ZERO,
            server: Session::new(server),
            client: Self::client(1),
            out: Datagrams::new(),
        }
    }

    /// With a token of its own.
    fn client(seed: u64) -> Session {
        let mut rng = Rng::seeded(seed + 100);
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: seed,
            created: UNIX,
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &["10.0.0.1:1".parse().unwrap()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut rng).unwrap();
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let (client, server_of_it) = Host::client(config, protocol(), token, Instant::ZERO).unwrap();
        assert_eq!(server_of_it, DIALLED);
        Session::new(client)
    }

    fn ticks(&mut self, count: usize) {
        for _ in 0..count {
            self.now += ms(16);
            self.client.transmit(self.now, &mut self.out);
            self.deliver(true);
            self.server.transmit(self.now, &mut self.out);
            self.deliver(false);
        }
    }

    /// Carries datagrams to and fro until nobody answers.
    fn deliver(&mut self, mut up: bool) {
        while !self.out.is_empty() {
            let sent = core::mem::take(&mut self.out);
            let from = if up { "10.0.0.2:2" } else { "10.0.0.1:1" }.parse().unwrap();
            let to = if up { &mut self.server } else { &mut self.client };
            for (_, datagram) in sent.iter() {
                to.handle_datagram(self.now, UNIX, from, &mut datagram.to_vec(), &mut self.out);
            }
            up = !up;
        }
    }
}

fn taken(session: &mut Session) -> Tick {
    let mut tick = Tick::default();
    session.take(Instant::ZERO, &mut tick);
    tick
}

#[test]
fn whoever_comes_talks_and_leaves_between_two_ticks_is_told_of_in_three() {
    for visitors in 1..=2 {
        let mut world = World::new();
        for visitor in 1..=visitors {
            world.client = World::client(visitor);
            world.ticks(10);
            let now = world.now;
            world.client.change().send(now, DIALLED, 0, number(3), SendOptions::default()).unwrap();
            world.ticks(2);
            world.client.change().close(now, &mut world.out);
            world.deliver(true);
        }
        let mut seen = Vec::new();
        while world.server.host().has_news() {
            let tick = taken(&mut world.server);
            let events = tick.events.iter().map(|event| match event {
                Event::Disconnected { peer, .. } => (*peer, "left"),
                event => (event.peer(), "came"),
            });
            let mut held: Vec<_> = events.collect();
            held.extend(tick.inbox.game.records.iter().map(|record| (record.head.peer, "said")));
            assert!(
                (0..held.len()).all(|one| (0..one).all(|other| held[one].0 != held[other].0)),
                "of one peer in one tick: {held:?}"
            );
            seen.push(held);
            assert!(seen.len() < 20);
        }
        // Nobody waits for another.
        assert_eq!(seen.len(), 3, "{seen:?}");
        for (tick, what) in seen.iter().zip(["came", "said", "left"]) {
            assert_eq!(tick.iter().map(|(_, what)| *what).collect::<Vec<_>>(), vec![what; visitors as usize]);
        }
    }
}

#[test]
fn a_tick_is_taken_whole() {
    let mut world = World::new();
    world.ticks(10);
    let now = world.now;
    let options = SendOptions { tag: 5, notify: true, ..SendOptions::default() };
    world.client.change().send(now, DIALLED, 0, number(3), options).unwrap();
    let chunk = Box::new(BytesSource(Arc::new(vec![1u8; 100])));
    let hash = {
        use sha2::{Digest, Sha256};
        Sha256::digest([1; 100]).into()
    };
    let connection = world.client.change().connection_mut(DIALLED).unwrap();
    connection.send_chunk(now, chunk, hash, "label", false).unwrap();
    world.ticks(20);
    world.client.change().close(now, &mut world.out);
    world.deliver(true);
    let (first, at_server, last) =
        (taken(&mut world.server), taken(&mut world.server), taken(&mut world.server));
    let (hello, at_client, goodbye) =
        (taken(&mut world.client), taken(&mut world.client), taken(&mut world.client));
    assert!(at_server.unread.is_empty());
    assert!(matches!(first.events[..], [Event::Accepted { .. }]) && first.inbox.game.records.is_empty());
    assert!(first.chunks.is_empty());
    assert!(at_server.events.is_empty());
    assert_eq!(at_server.inbox.game.records.len(), 1);
    assert!(matches!(at_server.chunks[..], [(_, ChunkEvent::Received { .. })]), "{:?}", at_server.chunks);
    assert!(matches!(last.events[..], [Event::Disconnected { .. }]) && last.inbox.game.records.is_empty());
    assert!(matches!(last.final_stats[..], [(_, ref stats)] if stats.counters.received > 0));
    assert!(matches!(hello.events[..], [Event::Dialled { .. }]));
    assert!(at_client.events.is_empty());
    assert!(matches!(goodbye.events[..], [Event::Disconnected { .. }]) && goodbye.chunks.is_empty());
    assert!(matches!(at_client.chunks[..], [(DIALLED, ChunkEvent::Sent { .. })]), "{:?}", at_client.chunks);
    assert!(at_client.notifications.iter().all(|(_, fate)| fate.tag == 5 && fate.delivered));
    assert_eq!(at_client.notifications.len(), 1);
    assert!(!world.server.host().has_news() && !world.client.host().has_news());
}

#[test]
fn what_lingers_is_ticked_without_its_application_and_over_in_time() {
    for answers in [true, false] {
        let mut world = World::new();
        world.ticks(10);
        let now = world.now;
        world.client.change().send(now, DIALLED, 0, number(3), SendOptions::default()).unwrap();
        let goodbye = || Goodbye { linger: ms(1_000), detail: None };
        assert!(world.client.begin_close(now, goodbye(), &mut world.out).is_some());
        assert!(world.client.is_lingering() && !world.client.has_lingered(now));
        let mut turns = 0;
        while !world.client.has_lingered(world.now) {
            if answers {
                world.deliver(true);
                world.server.transmit(world.now, &mut world.out);
                world.deliver(false);
            }
            world.out.clear();
            world.now = world.client.next_deadline().max(world.now + ms(1)).min(now + ms(1_000));
            world.client.transmit_between(world.now, &mut world.out);
            turns += 1;
            assert!(turns < 2_000);
        }
        assert!(world.now <= now + ms(1_000));
        assert!(world.client.host().is_over());
        assert_eq!(world.now < now + ms(1_000), answers, "by its own, or as its time was up");
        let _ = taken(&mut world.server);
        let tick = taken(&mut world.server);
        assert_eq!(tick.inbox.game.records.len(), usize::from(answers));
    }
}

#[test]
fn whatever_may_change_a_session_changes_its_version() {
    let mut world = World::new();
    let version = world.client.version();
    world.client.host().candidates();
    assert_eq!(world.client.version(), version);
    world.client.transmit(world.now, &mut world.out);
    assert_ne!(world.client.version(), version);
}

#[test]
fn messages_that_a_channel_refuses_leave_a_room_as_it_was() {
    let mut world = World::new();
    world.ticks(5);
    taken(&mut world.server);
    let now = world.now;
    let everybody = world.server.rooms().everybody().clone();
    let keyed = |key| SendOptions { key, ..SendOptions::default() };
    let mut unknown_type = number(2);
    unknown_type.message_type = 7;
    let bad = [
        ("too large", 2, blob(2, 200_000), 1),
        ("no such key", 2, number(2), 4),
        ("a channel of chunks", 1, number(2), 0),
        ("no such channel", 9, number(2), 0),
        ("no such message type", 2, unknown_type, 1),
    ];
    for (what, channel, message, key) in bad {
        for retain_bytes in [None, Some(10_000)] {
            let messages = [(number(1), keyed(0)), (message.clone(), keyed(key))];
            let to = ToRoom { channel, messages: &messages, exclude: None, retain_bytes };
            let refused = everybody.send(now, world.server.change(), to);
            assert!(matches!(refused, Err(RoomError::Send(SendError::Refused(_)))), "{what}: {refused:?}");
        }
    }
    world.ticks(5);
    taken(&mut world.client);
    assert_eq!(taken(&mut world.client).inbox.game.records.len(), 0, "the first of them wasn't sent either");
    assert_eq!(everybody.forget(2, None), 0, "nothing was kept");
}

#[test]
fn a_newcomer_gets_what_its_rooms_retain_and_leaves_them_with_its_last_event() {
    let mut world = World::new();
    let now = world.now;
    let values = [1, 2].map(|key| (number(key), SendOptions { key, ..SendOptions::default() }));
    let to = |retain_bytes| ToRoom { channel: 2, messages: &values, exclude: None, retain_bytes };
    let (everybody, room) = (world.server.rooms().everybody().clone(), world.server.rooms().open());
    for (retain_bytes, bytes) in [(Some(1), true), (Some(1_000), false)] {
        let sent = everybody.send(now, world.server.change(), to(retain_bytes));
        assert_eq!(matches!(sent, Err(RoomError::Full { values: 2, max_bytes: 1, .. })), bytes, "{sent:?}");
    }
    assert_eq!(room.send(now, world.server.change(), to(None)), Ok(vec![]), "nothing is kept for this room");
    world.ticks(5);
    assert!(everybody.members().is_empty(), "the application knows of nobody yet");
    let events = taken(&mut world.server).events;
    let [Event::Accepted { peer, .. }] = events[..] else { panic!("{events:?}") };
    assert!(everybody.has(peer) && room.enter(world.now, world.server.change(), peer));
    assert!(!room.enter(world.now, world.server.change(), peer), "it is there already");
    let key_is_wrong = [(number(9), SendOptions { key: 4, ..SendOptions::default() })];
    let to_wrong = ToRoom { messages: &key_is_wrong, ..to(Some(1_000)) };
    let refused = room.send(world.now, world.server.change(), to_wrong);
    assert!(matches!(refused, Err(RoomError::Send(SendError::Refused(_)))), "{refused:?}");
    world.ticks(2);
    taken(&mut world.client);
    assert_eq!(taken(&mut world.client).inbox.game.records.len(), 2, "each value once");
    world.client.change().close(world.now, &mut world.out);
    world.deliver(true);
    assert_eq!([everybody.members(), room.members()], [[peer], [peer]]);
    assert_eq!(everybody.send(world.now, world.server.change(), to(None)), Ok(vec![]), "it isn't left out");
    assert!(matches!(taken(&mut world.server).events[..], [Event::Disconnected { .. }]));
    assert_eq!([everybody.members(), room.members()], [[], []]);
    assert_eq!((everybody.forget(2, Some(1)), everybody.forget(2, None), room.forget(2, None)), (1, 1, 0));
}
