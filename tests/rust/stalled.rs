//! Peers who let a reliable channel run full: dropped after a time, told so, and nobody else is.

use tickwire::endpoint::{DisconnectReason, Event, PeerHandle, SendError};
use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::{self, ChannelConfig, ChannelKind, SendOptions};

use crate::endpoint::{World, ms};
use crate::pair::{RELIABLE, UNRELIABLE, number, protocol, protocol_with};

/// Fills the channel to a peer; how many messages it took.
fn fill(world: &mut World, peer: PeerHandle, channel: usize) -> usize {
    let now = world.network.now();
    let mut taken = 0;
    while world.server.send(now, peer, channel, number(1), SendOptions::default()).is_ok() {
        taken += 1;
    }
    taken
}

fn joined(count: usize) -> (World, Vec<PeerHandle>) {
    let mut world = World::new(count, Conditions::perfect());
    (0..count).for_each(|_| {
        world.add_client();
    });
    (0..20).for_each(|_| world.tick());
    let peers = world.server.connected().collect::<Vec<_>>();
    assert_eq!(peers.len(), count);
    (world, peers)
}

/// Ticks the server alone: the clients' games hang.
fn hang(world: &mut World, seconds: f64) {
    for _ in 0..(seconds * 60.0) as usize {
        world.network.advance(world.network.now() + Duration::from_micros(16_667));
        world.tick_server();
    }
}

fn ends(world: &World) -> Vec<(PeerHandle, DisconnectReason)> {
    let ends = world.server_events.iter().filter_map(|event| match event {
        Event::Disconnected { peer, reason, .. } => Some((*peer, *reason)),
        _ => None,
    });
    ends.collect()
}

#[test]
fn a_peer_whose_channel_stays_full_is_dropped_in_time_and_hears_why() {
    let (mut world, peers) = joined(2);
    // The players' games tick, and never take a message: a window of them arrives, and no more.
    let mut full_since = world.network.now();
    while ends(&world).is_empty() {
        if fill(&mut world, peers[0], RELIABLE) > 0 {
            full_since = world.network.now();
        }
        world.tick();
        assert!(world.network.now() < full_since + ms(5_100));
    }
    assert!(world.network.now() >= full_since + ms(5_000));
    assert_eq!(ends(&world), [(peers[0], DisconnectReason::Stalled)]);
    assert_eq!(world.server.connection_counters().stalled, 1);
    assert!(matches!(
        world.server.send(world.network.now(), peers[0], RELIABLE, number(1), SendOptions::default()),
        Err(SendError::NotConnected)
    ));
    (0..20).for_each(|_| world.tick());
    let (_, _, events) = &world.clients[0];
    assert!(
        matches!(events.last(), Some(Event::Disconnected { reason: DisconnectReason::Stalled, .. })),
        "{events:?}"
    );
    assert!(world.server.is_connected(peers[1]), "nobody else is");
}

#[test]
fn a_peer_that_acks_nothing_is_dropped_in_time() {
    let (mut world, peers) = joined(2);
    fill(&mut world, peers[0], RELIABLE);
    hang(&mut world, 4.9);
    assert_eq!(ends(&world), []);
    hang(&mut world, 0.2);
    assert_eq!(ends(&world), [(peers[0], DisconnectReason::Stalled)]);
}

#[test]
fn a_peer_that_goes_on_before_that_stays() {
    let (mut world, peers) = joined(1);
    for _ in 0..4 {
        assert!(fill(&mut world, peers[0], RELIABLE) > 0);
        hang(&mut world, 4.5);
        // It reads again, and the channel has room before the application sends more.
        for _ in 0..60 {
            world.tick();
            let mut inbox = tickwire::endpoint::Inbox::new();
            world.clients[0].1.take_messages(&mut inbox);
        }
    }
    assert_eq!(ends(&world), []);
}

/// The players' games take what came.
fn read(world: &mut World) {
    for (_, client, _) in &mut world.clients {
        client.take_messages(&mut tickwire::endpoint::Inbox::new());
    }
}

#[test]
fn a_peer_on_a_line_that_loses_most_stays_while_its_channel_is_always_full() {
    for (loss, latency, seed) in [(0.3, 50, 1), (0.6, 150, 1), (0.6, 300, 2), (0.6, 300, 3)] {
        let mut conditions = Conditions::perfect();
        (conditions.loss, conditions.latency) = (loss, ms(latency));
        let mut world = World::seeded(1, conditions, seed, protocol());
        world.add_client();
        while world.server.connected().next().is_none() {
            world.tick();
        }
        let peer = world.server.connected().next().unwrap();
        let mut taken = 0;
        for _ in 0..120 * 60 {
            taken += fill(&mut world, peer, RELIABLE);
            world.tick();
            read(&mut world);
            assert_eq!(ends(&world), [], "{loss} {latency} {seed}, after {taken} messages");
        }
        assert!(taken > 5_000, "{taken}");
    }
}

/// A world whose peers may read four messages, and get the next ones then.
fn few_at_a_time(send_queue: usize) -> (World, PeerHandle) {
    let mut channel = ChannelConfig { send_queue, ..ChannelConfig::reliable_ordered() };
    if let ChannelKind::Reliable { receive_window, .. } = &mut channel.kind {
        *receive_window = 4;
    }
    let protocol = protocol_with(vec![channel, ChannelConfig::unreliable()]);
    let mut world = World::seeded(1, Conditions::perfect(), 1, protocol);
    world.add_client();
    (0..20).for_each(|_| world.tick());
    let peer = world.server.connected().next().unwrap();
    world.server.set_stalled_timeout(Some(ms(500)));
    (world, peer)
}

/// Has the peer take four messages each 0.4 s; how long it stayed, if it was dropped.
fn trickle(world: &mut World, peer: PeerHandle, seconds: u64) -> Option<Duration> {
    let began = world.network.now();
    while world.network.now() < began + Duration::from_secs(seconds) {
        for _ in 0..24 {
            fill(world, peer, RELIABLE);
            world.tick();
            if !ends(world).is_empty() {
                assert_eq!(ends(world), [(peer, DisconnectReason::Stalled)]);
                return Some(world.network.now() - began);
            }
        }
        read(world);
    }
    None
}

#[test]
fn a_peer_that_takes_a_message_now_and_then_is_dropped_when_others_wait_too_long() {
    let (mut world, peer) = few_at_a_time(1024);
    let stayed = trickle(&mut world, peer, 20).expect("it pins a full queue");
    assert!((ms(6_000)..ms(6_500)).contains(&stayed), "twelve times the timeout: {stayed:?}");
    // Where what waits is through in that time, it is slow and no more.
    let (mut world, peer) = few_at_a_time(8);
    assert_eq!(trickle(&mut world, peer, 20), None);
}

#[test]
fn a_peer_whose_channel_was_full_once_and_has_room_is_left_alone() {
    let (mut world, peer) = few_at_a_time(64);
    fill(&mut world, peer, RELIABLE);
    for _ in 0..3 {
        (0..3).for_each(|_| world.tick());
        read(&mut world);
    }
    (0..20 * 60).for_each(|_| world.tick());
    assert_eq!(ends(&world), [], "nothing was refused in that time");
}

#[test]
fn the_time_is_a_setting_and_may_be_none() {
    let (mut world, peers) = joined(1);
    world.server.set_stalled_timeout(Some(ms(500)));
    fill(&mut world, peers[0], RELIABLE);
    hang(&mut world, 0.6);
    assert_eq!(ends(&world), [(peers[0], DisconnectReason::Stalled)]);

    let (mut world, peers) = joined(1);
    world.server.set_stalled_timeout(None);
    fill(&mut world, peers[0], RELIABLE);
    hang(&mut world, 9.0);
    assert_eq!(ends(&world), []);
    hang(&mut world, 2.0);
    assert_eq!(ends(&world), [(peers[0], DisconnectReason::TimedOut)]);
}

#[test]
fn too_many_unreliable_messages_in_a_tick_are_no_stall() {
    let (mut world, peers) = joined(1);
    for _ in 0..7 * 60 {
        assert!(fill(&mut world, peers[0], UNRELIABLE) > 0);
        world.tick();
    }
    assert_eq!(ends(&world), []);
}

#[test]
fn a_driver_that_sleeps_wakes_for_it() {
    let (mut world, peers) = joined(1);
    let since = world.network.now();
    fill(&mut world, peers[0], RELIABLE);
    let full = world.server.send(since, peers[0], RELIABLE, number(1), SendOptions::default());
    assert!(matches!(full, Err(SendError::Refused(transport::SendError::Full { .. }))));
    let mut turns = 0;
    while world.server.is_connected(peers[0]) {
        let now = world.network.now();
        world.server.transmit_between(now, &mut world.out);
        world.out.clear();
        let next = world.server.next_deadline().max(now + ms(1));
        assert!(next <= since + Duration::from_secs(5) || now >= since + Duration::from_secs(5));
        world.network.advance(next);
        turns += 1;
        assert!(turns < 10_000);
    }
    assert!(world.network.now() < since + ms(5_100));
}
