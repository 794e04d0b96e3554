//! Queued messages at the end of a connection, and the reported reasons: on both ends, over bad links.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::endpoint::{Detail, DisconnectReason, Event, Goodbye, Inbox, SendError};
use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::chunks::BytesSource;
use tickwire::transport::{ChannelConfig, ChannelKind, Framing, Protocol, SendOptions, YojimboConfig};

use crate::endpoint::{World, ms};
use crate::pair::{DIALLED, RELIABLE, UNRELIABLE, number, protocol, protocol_with};

fn lingering(linger: Duration) -> Goodbye {
    Goodbye { linger, detail: Some(Detail::new("good game").unwrap()) }
}

/// Jitter is as large as it is unkind: what is sent last may arrive first.
fn lossy(loss: f64) -> Conditions {
    Conditions::perfect().latency(ms(30), ms(20)).loss(loss)
}

/// A world with one client that has been there for a second, however long it took to connect.
fn connected(conditions: Conditions, seed: u64) -> World {
    connected_with(conditions, seed, protocol())
}

fn connected_with(conditions: Conditions, seed: u64, protocol: Arc<Protocol>) -> World {
    let mut world = World::seeded(4, conditions, seed, protocol);
    world.add_client();
    while !world.client(0).is_connected(DIALLED) || world.server.connected().next().is_none() {
        world.tick();
    }
    world.ticks(60);
    world
}

/// The numbers in an inbox: rows of one column.
fn numbers(inbox: &Inbox) -> Vec<u32> {
    let row = |record| u32::from_le_bytes(inbox.game.body(record)[..4].try_into().unwrap());
    inbox.game.records.iter().map(row).collect()
}

/// What the client said, as the server's application gets it.
fn server_heard(world: &mut World) -> Vec<u32> {
    let mut inbox = Inbox::new();
    world.server.take_messages(&mut inbox);
    numbers(&inbox)
}

fn client_heard(world: &mut World) -> Vec<u32> {
    let mut inbox = Inbox::new();
    world.client(0).take_messages(&mut inbox);
    numbers(&inbox)
}

/// Ticks everything until the client has nothing more to say; how long that took.
fn until_the_client_is_over(world: &mut World) -> Duration {
    let since = world.network.now();
    while !world.client(0).is_over() {
        world.tick();
    }
    world.network.now() - since
}

fn server_end(world: &World) -> Option<(DisconnectReason, Option<&str>)> {
    world.server_events.iter().find_map(|event| match event {
        Event::Disconnected { reason, detail, .. } => Some((*reason, detail.as_deref())),
        _ => None,
    })
}

fn client_end(world: &World) -> Option<(DisconnectReason, Option<&str>)> {
    world.clients[0].2.iter().find_map(|event| match event {
        Event::Disconnected { reason, detail, .. } => Some((*reason, detail.as_deref())),
        _ => None,
    })
}

/// "I resign", on a reliable and an unreliable channel, and a goodbye a tick later: in how many of `runs` the first arrived.
fn resignations(loss: f64, linger: Duration, runs: u64) -> (u64, u64) {
    let (mut reliable, mut unreliable) = (0, 0);
    for seed in 0..runs {
        let mut world = connected(lossy(loss), seed);
        world.client_send(0, RELIABLE, number(7)).unwrap();
        world.client_send(0, UNRELIABLE, number(8)).unwrap();
        world.ticks(2);
        let now = world.network.now();
        if linger.is_zero() {
            let address = world.clients[0].0;
            world.clients[0].1.close(now, &mut world.out);
            world.carry(address);
        } else {
            world.client(0).begin_close(now, lingering(linger));
            let took = until_the_client_is_over(&mut world);
            assert!(took <= linger + ms(17), "{took:?}");
        }
        let mut heard = Vec::new();
        for _ in 0..60 {
            world.tick();
            heard.extend(server_heard(&mut world));
        }
        reliable += u64::from(heard.contains(&7));
        unreliable += u64::from(heard.contains(&8));
        if !linger.is_zero() {
            let (reason, detail) = server_end(&world).unwrap();
            assert_eq!((reason, detail), (DisconnectReason::PeerDisconnected, Some("good game")));
            assert_eq!(client_end(&world), Some((DisconnectReason::Closed, Some("good game"))));
        }
    }
    (reliable, unreliable)
}

#[test]
fn what_is_reliable_arrives_before_a_goodbye_that_lingers() {
    let (at_once, _) = resignations(0.03, Duration::ZERO, 100);
    let (reliable, unreliable) = resignations(0.03, ms(2_000), 100);
    println!("3 % loss: {at_once} of 100 without linger, {reliable} with it, {unreliable} unreliable ones");
    assert!(at_once < 90, "{at_once}");
    assert_eq!(reliable, 100);
    assert!(unreliable > 90, "each was sent once, and no goodbye overtook it: {unreliable}");
}

#[test]
fn at_thirty_percent_loss_a_second_of_linger_is_mostly_enough() {
    let (at_once, _) = resignations(0.3, Duration::ZERO, 50);
    let (reliable, unreliable) = resignations(0.3, ms(1_000), 50);
    println!("30 % loss: {at_once} of 50 without linger, {reliable} with it, {unreliable} unreliable ones");
    assert!(reliable >= 48, "{reliable}");
    assert!(unreliable > 25, "{unreliable}");
}

#[test]
fn a_server_kicks_with_words_after_what_it_said() {
    for seed in 0..50 {
        let mut world = connected(lossy(0.03), seed);
        let (now, handle) = (world.network.now(), world.handle(0));
        (0..20).for_each(|n| world.server_send(handle, RELIABLE, number(n)).unwrap());
        world.client_send(0, RELIABLE, number(99)).unwrap();
        world.server.disconnect_with(now, handle, lingering(ms(2_000)), &mut world.out).unwrap();

        // To the application, the client is gone.
        assert_eq!(world.server_send(handle, RELIABLE, number(1)), Err(SendError::NotConnected));
        assert_eq!(
            world.server.disconnect_with(now, handle, Goodbye::default(), &mut world.out),
            Err(SendError::NotConnected),
            "once is enough"
        );
        assert!(!world.server.is_connected(handle));
        assert_eq!(world.server.connected().count(), 0);
        assert!(world.server.connection(handle).is_none());
        assert_eq!(server_end(&world), None, "it is not over");

        let mut heard = Vec::new();
        for _ in 0..150 {
            world.tick();
            heard.extend(client_heard(&mut world));
            assert!(server_heard(&mut world).is_empty(), "what a leaver says is dropped");
        }
        assert!(heard.iter().copied().eq(0..20), "{heard:?}");
        assert_eq!(client_end(&world), Some((DisconnectReason::Kicked, Some("good game"))));
        assert_eq!(server_end(&world), Some((DisconnectReason::Kicked, Some("good game"))));
    }
}

#[test]
fn what_a_client_said_before_it_was_kicked_is_still_handed_over() {
    let mut world = connected(Conditions::perfect(), 1);
    world.client_send(0, RELIABLE, number(5)).unwrap();
    world.ticks(2);
    let (now, handle) = (world.network.now(), world.handle(0));
    world.server.disconnect_with(now, handle, lingering(ms(500)), &mut world.out).unwrap();
    assert_eq!(server_heard(&mut world), [5]);
}

#[test]
fn a_client_that_acks_nothing_has_its_slot_no_longer_than_the_linger() {
    let mut world = connected(lossy(0.0), 1);
    let (since, handle) = (world.network.now(), world.handle(0));
    world.server_send(handle, RELIABLE, number(1)).unwrap();
    world.server.disconnect_with(since, handle, lingering(ms(700)), &mut world.out).unwrap();
    // It sends on, and never hears a thing.
    while server_end(&world).is_none() {
        world.network.advance(world.network.now() + ms(16));
        world.tick_server();
        let address = world.clients[0].0;
        while world.network.receive(address).is_some() {}
        let now = world.network.now();
        world.clients[0].1.send(now, DIALLED, UNRELIABLE, number(3), SendOptions::default()).unwrap();
        world.clients[0].1.transmit(now, &mut world.out);
        world.carry(address);
        assert!(now < since + ms(5_000), "it has its slot for ever");
    }
    let took = world.network.now() - since;
    assert!(took >= ms(700) && took < ms(720), "{took:?}");
    assert_eq!(server_end(&world), Some((DisconnectReason::Kicked, Some("good game"))));
}

#[test]
fn a_leaver_that_leaves_or_breaks_the_rules_meanwhile_is_over_at_once() {
    let mut world = connected(lossy(0.0), 1);
    let handle = world.handle(0);
    // Blocked: nobody reads what fills the window.
    (0..1_000).for_each(|n| world.server_send(handle, RELIABLE, number(n)).unwrap());
    world.ticks(60);
    (0..500).for_each(|n| world.server_send(handle, RELIABLE, number(n)).unwrap());
    let now = world.network.now();
    world.server.disconnect_with(now, handle, lingering(ms(30_000)), &mut world.out).unwrap();
    world.ticks(60);
    assert_eq!(server_end(&world), None);
    let (now, address) = (world.network.now(), world.clients[0].0);
    world.clients[0].1.close(now, &mut world.out);
    world.carry(address);
    world.ticks(10);
    let reason = DisconnectReason::Kicked;
    assert_eq!(server_end(&world), Some((reason, Some("good game"))), "that is what the game wanted");
}

#[test]
fn a_server_that_closes_gives_its_last_words_to_everybody_and_lets_nobody_in() {
    let mut world = connected(lossy(0.1), 3);
    for _ in 0..3 {
        world.add_client();
    }
    world.ticks(120);
    let clients: Vec<_> = world.server.connected().collect();
    assert_eq!(clients.len(), 4);
    let now = world.network.now();
    for client in clients {
        world.server_send(client, RELIABLE, number(77)).unwrap();
    }
    world.server.begin_close(now, lingering(ms(3_000)));
    assert_eq!(world.server.connected().count(), 0);
    world.add_client();
    let mut heard = [0; 5];
    let mut inbox = Inbox::new();
    while !world.server.is_over() {
        world.tick();
        for (index, heard) in heard.iter_mut().enumerate() {
            world.client(index).take_messages(&mut inbox);
            *heard += inbox.game.records.len();
            inbox.game.clear();
        }
    }
    assert!(world.network.now() - now < ms(3_000));
    world.ticks(10);
    assert_eq!(heard, [1, 1, 1, 1, 0]);
    let over = world.server_events.iter().filter(|event| matches!(event, Event::Disconnected { .. }));
    assert_eq!(over.count(), 4);
    for client in 0..4 {
        let end = world.clients[client].2.last().unwrap();
        let Event::Disconnected { reason, detail, .. } = end else { panic!("{end:?}") };
        assert_eq!((*reason, detail.as_deref()), (DisconnectReason::ServerClosed, Some("good game")));
    }
}

#[test]
fn both_sides_may_end_it_at_once() {
    for seed in 0..50 {
        let mut world = connected(lossy(0.1), seed);
        let (now, handle) = (world.network.now(), world.handle(0));
        world.client_send(0, RELIABLE, number(1)).unwrap();
        world.server_send(handle, RELIABLE, number(2)).unwrap();
        world.server.disconnect_with(now, handle, lingering(ms(2_000)), &mut world.out).unwrap();
        world.client(0).begin_close(now, lingering(ms(2_000)));
        let took = until_the_client_is_over(&mut world);
        assert!(took <= ms(2_017), "{took:?}");
        world.ticks(150);
        assert_eq!(server_end(&world).unwrap().0, DisconnectReason::Kicked);
        assert_eq!(client_end(&world).unwrap().0, DisconnectReason::Closed);
        for events in [world.clients[0].2.len(), world.server_events.len()] {
            assert_eq!(events, 2, "it is notified of once");
        }
    }
}

#[test]
fn the_fates_of_last_words_are_told() {
    let mut world = connected(lossy(0.05), 4);
    let (now, handle) = (world.network.now(), world.handle(0));
    let options = SendOptions { tag: 9, notify: true, ..SendOptions::default() };
    world.server.send(now, handle, RELIABLE, number(1), options).unwrap();
    world.server.disconnect_with(now, handle, lingering(ms(2_000)), &mut world.out).unwrap();
    world.ticks(150);
    let mut told = Vec::new();
    world.server.take_notifications(&mut told);
    assert_eq!(told.len(), 1);
    assert!(told[0].1.delivered, "{told:?}");
}

#[test]
fn every_kind_of_channel_is_waited_for() {
    let kinds = || {
        let kind = |kind| ChannelConfig::new(kind);
        vec![
            ChannelConfig::reliable_ordered(),
            ChannelConfig::unreliable(),
            kind(ChannelKind::Redundant { copies: 3, receive_queue: 64 }),
            kind(ChannelKind::Latest { keys: 8 }),
        ]
    };
    let mut heard = [0; 4];
    for seed in 0..100 {
        let mut world = connected_with(lossy(0.1), seed, protocol_with(kinds()));
        for channel in 0..4 {
            world.client_send(0, channel, number(channel as u32)).unwrap();
        }
        // Without a tick in between.
        let now = world.network.now();
        world.client(0).begin_close(now, lingering(ms(2_000)));
        until_the_client_is_over(&mut world);
        world.ticks(60);
        for number in server_heard(&mut world) {
            heard[number as usize] += 1;
        }
    }
    let [reliable, unreliable, redundant, latest] = heard;
    println!(
        "10 % loss: {reliable} reliable, {unreliable} unreliable, {redundant} redundant, {latest} latest"
    );
    assert_eq!((reliable, latest), (100, 100));
    assert!(redundant >= 99 && unreliable > 80, "{heard:?}");
}

#[test]
fn nothing_queued_is_a_goodbye_at_once_and_a_second_one_does_not_wait() {
    let mut world = connected(lossy(0.0), 1);
    let now = world.network.now();
    world.client(0).begin_close(now, lingering(ms(60_000)));
    let took = until_the_client_is_over(&mut world);
    assert!(took < ms(500), "the keep-alive's fate, then goodbyes over 135 ms: {took:?}");

    let mut world = connected(lossy(0.0), 1);
    let (now, address) = (world.network.now(), world.clients[0].0);
    world.client_send(0, RELIABLE, number(1)).unwrap();
    world.client(0).begin_close(now, lingering(ms(60_000)));
    assert_eq!(world.client_send(0, RELIABLE, number(2)), Err(SendError::NotConnected));
    world.tick();
    assert!(!world.client(0).is_over());
    let now = world.network.now();
    world.clients[0].1.close(now, &mut world.out);
    world.carry(address);
    assert!(world.client(0).is_over());
    world.ticks(60);
    assert_eq!(server_end(&world), Some((DisconnectReason::PeerDisconnected, Some("good game"))));
}

#[test]
fn goodbyes_of_a_linger_are_spread_over_an_outage() {
    let mut world = connected(Conditions::perfect().latency(ms(10), ms(0)), 1);
    let now = world.network.now();
    world.client(0).begin_close(now, lingering(ms(2_000)));
    // Nothing passes for the first 100 ms.
    world.network.set_conditions(None, None, Conditions::perfect().latency(ms(10), ms(0)).loss(1.0)).unwrap();
    world.ticks(6);
    world.network.set_conditions(None, None, Conditions::perfect().latency(ms(10), ms(0))).unwrap();
    world.ticks(30);
    assert_eq!(server_end(&world), Some((DisconnectReason::PeerDisconnected, Some("good game"))));
}

/// Packets that wait to be read by code of the application's own go with a connection that lingers, on either side.
#[test]
fn what_nobody_read_of_a_leaver_does_not_keep_its_end() {
    let framing = Framing::Yojimbo(YojimboConfig::default());
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let Ok(yojimbo) = Protocol::with_framing(protocol().messages().to_vec(), channels, framing) else {
        panic!("it can be had")
    };
    let yojimbo = Arc::new(yojimbo);
    for seed in 0..20 {
        let mut world = connected_with(lossy(0.1), seed, yojimbo.clone());
        let (now, handle) = (world.network.now(), world.handle(0));
        world.server.disconnect_with(now, handle, lingering(ms(500)), &mut world.out).unwrap();
        for n in 0..20 {
            let _ = world.client_send(0, UNRELIABLE, number(n));
            world.ticks(1);
        }
        world.ticks(60);
        assert_eq!(
            server_end(&world).map(|(reason, _)| reason),
            Some(DisconnectReason::Kicked),
            "seed {seed}"
        );

        let mut world = connected_with(lossy(0.1), seed, yojimbo.clone());
        let (now, handle) = (world.network.now(), world.handle(0));
        world.client(0).begin_close(now, lingering(ms(500)));
        for n in 0..20 {
            let _ = world.server_send(handle, UNRELIABLE, number(n));
            world.ticks(1);
        }
        world.ticks(60);
        assert_eq!(
            client_end(&world).map(|(reason, _)| reason),
            Some(DisconnectReason::Closed),
            "seed {seed}"
        );
    }
}

#[test]
fn yojimbos_framing_lingers_and_has_no_words() {
    // Declared ones only: packets of others wait to be read, and the client's end with them.
    let types = protocol().messages()[..1].to_vec();
    let framing = Framing::Yojimbo(YojimboConfig::default());
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let Ok(yojimbo) = Protocol::with_framing(types, channels, framing) else { panic!("it can be had") };
    let yojimbo = Arc::new(yojimbo);
    for seed in 0..30 {
        let mut world = connected_with(lossy(0.1), seed, yojimbo.clone());
        world.client_send(0, RELIABLE, number(1)).unwrap();
        let now = world.network.now();
        world.client(0).begin_close(now, lingering(ms(3_000)));
        until_the_client_is_over(&mut world);
        world.ticks(60);
        assert_eq!(server_end(&world), Some((DisconnectReason::PeerDisconnected, None)));
    }
}

#[test]
fn details_are_short_texts() {
    for good in ["a", &"x".repeat(128), "tschüß"] {
        assert_eq!(Detail::new(good).unwrap().as_str(), good);
    }
    for bad in ["", &"x".repeat(129), &"ü".repeat(65), "a\0b"] {
        assert!(Detail::new(bad).is_err(), "{bad:?}");
    }
}

/// In how many of 50 worlds a message on this channel alone, sent as the client leaves, arrives.
fn alone(kind: ChannelKind, loss: f64) -> usize {
    let runs = (0..50).filter(|seed| {
        let protocol = protocol_with(vec![ChannelConfig::new(kind)]);
        let mut world = connected_with(lossy(loss), *seed, protocol);
        world.client_send(0, 0, number(1)).unwrap();
        let now = world.network.now();
        world.client(0).begin_close(now, lingering(ms(2_000)));
        until_the_client_is_over(&mut world);
        world.ticks(10);
        server_heard(&mut world) == [1]
    });
    runs.count()
}

#[test]
fn a_goodbye_does_not_overtake_what_is_sent_once() {
    assert_eq!(alone(ChannelKind::Unreliable { receive_queue: 8 }, 0.0), 50);
    assert_eq!(alone(ChannelKind::Sequenced { receive_queue: 8 }, 0.0), 50);
}

#[test]
fn a_newest_value_that_is_lost_is_sent_again_before_the_goodbye() {
    assert!(alone(ChannelKind::Latest { keys: 4 }, 0.3) >= 49);
    assert!(alone(ChannelKind::Redundant { copies: 0, receive_queue: 8 }, 0.3) >= 49);
}

#[test]
fn a_leaver_that_floods_with_offers_of_chunks_takes_no_memory() {
    let protocol =
        protocol_with(vec![ChannelConfig::reliable_ordered(), ChannelConfig::new(ChannelKind::Chunks)]);
    let mut world = connected_with(Conditions::perfect(), 1, protocol);
    let handle = world.handle(0);
    // Blocked, so that the linger lasts.
    (0..1_000).for_each(|n| world.server_send(handle, RELIABLE, number(n)).unwrap());
    world.ticks(60);
    (0..100).for_each(|n| world.server_send(handle, RELIABLE, number(n)).unwrap());
    let now = world.network.now();
    world.server.disconnect_with(now, handle, lingering(ms(30_000)), &mut world.out).unwrap();
    for _ in 0..120 {
        let now = world.network.now();
        let source = Box::new(BytesSource(Arc::new(vec![1; 100])));
        let hash = Sha256::digest([1; 100]).into();
        let connection = world.clients[0].1.connection_mut(DIALLED);
        if let Some(Ok(chunk)) = connection.map(|it| it.send_chunk(now, source, hash, "again", false)) {
            world.tick();
            world.client(0).connection_mut(DIALLED).unwrap().chunks_mut().cancel(chunk);
        }
        world.tick();
    }
    assert_eq!(server_end(&world), None, "it lingers");
    let mut events = Vec::new();
    world.server.take_chunk_events(&mut events);
    assert!(events.is_empty(), "{events:?}");
    assert!(!world.server.has_news());
}
