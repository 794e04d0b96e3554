//! Peers who let a reliable channel run full: dropped after a time, told so, and nobody else is.

use tickwire::endpoint::{DisconnectReason, Event, PeerHandle, SendError};
use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::{self, SendOptions};

use crate::endpoint::{World, ms};
use crate::pair::{RELIABLE, UNRELIABLE, number};

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
    assert!(matches!(full, Err(SendError::Channel(transport::SendError::Full { .. }))));
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
