//! How connections end.

use super::world::*;
use tickwire::netcode::{ClientDisconnect, ClientEvent, ClientState, ServerDisconnect, ServerEvent};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

fn by_peer(world: &World) -> bool {
    let reason = ServerDisconnect::ByPeer;
    matches!(world.events.last(), Some(ServerEvent::Disconnected { reason: r, .. }) if *r == reason)
}

fn last_client_event(world: &World) -> Option<ClientDisconnect> {
    match world.peers[0].events.last() {
        Some(ClientEvent::Disconnected { reason }) => Some(*reason),
        _ => None,
    }
}

#[test]
fn a_client_that_leaves_frees_its_slot() {
    let (mut world, client) = World::connected();
    world.client_disconnect(0, None);
    assert_eq!(world.state(0), ClientState::Disconnected);
    world.run(60);
    assert!(by_peer(&world) && !world.server.is_connected(client));
    assert_eq!((world.server.connected_count(), world.events.len()), (0, 2));
    assert_eq!(world.peers[0].events.len(), 1, "its own disconnect is no event");
}

#[test]
fn a_farewell_of_the_client_comes_as_payload_and_the_layer_above_ends_the_connection() {
    let (mut world, client) = World::connected();
    world.loss = 0.5;
    world.client_disconnect(0, Some(b"gone fishing"));
    world.run(60);
    assert!(!world.received.is_empty());
    assert!(world.received.iter().all(|r| *r == (client, b"gone fishing".to_vec())));
    assert!(world.server.is_connected(client));
}

#[test]
fn a_kicked_client_is_told_ten_times_over_time_and_its_slot_is_free_at_once() {
    let (mut world, client) = World::connected();
    let (before, kicked_at) = (world.log.len(), world.now);
    world.server_disconnect(client, None);
    assert_eq!(world.server.connected_count(), 0);
    world.run(500);
    let told: Vec<_> = world.log[before..]
        .iter()
        .filter(|d| d.from == server_address())
        .map(|d| d.at.since(kicked_at + world.latency))
        .collect();
    let every_15_ms: Vec<_> = (0..10).map(|i| Duration::from_millis(15 * i)).collect();
    assert_eq!(told, every_15_ms);
    assert_eq!(last_client_event(&world), Some(ClientDisconnect::ByPeer));
    assert_eq!((world.state(0), world.state(0).number()), (ClientState::Disconnected, 0));
    assert_eq!(world.events.len(), 1, "our own disconnect is no event");
}

#[test]
fn a_farewell_of_the_server_arrives_through_loss() {
    let (mut world, client) = World::connected();
    world.loss = 0.5;
    world.server_disconnect(client, Some(b"cheater"));
    world.run(500);
    assert!((1..10).contains(&world.peers[0].received.len()));
    assert!(world.peers[0].received.iter().all(|p| p == b"cheater"));
}

#[test]
fn a_farewell_reaches_a_client_that_did_not_know_it_was_connected() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.accept_unheard();
    let client = world.server.find_client(1).unwrap();
    world.server_disconnect(client, Some(b"not you"));
    world.run(300);
    assert_eq!(world.peers[0].received[0], b"not you");
}

#[test]
fn a_client_that_falls_silent_times_out_on_both_sides() {
    let (mut world, client) = World::connected();
    world.server_is_cut_off = true;
    world.run(4890);
    assert!(world.server.is_connected(client));
    assert_eq!(world.state(0), ClientState::Connected);
    world.run(200);
    let reason = ServerDisconnect::TimedOut;
    assert_eq!(world.events.last(), Some(&ServerEvent::Disconnected { client, reason }));
    assert_eq!(last_client_event(&world), Some(ClientDisconnect::TimedOut));
    assert_eq!(world.state(0), ClientState::TimedOut);
}

#[test]
fn a_client_gives_up_after_its_timeout_and_not_at_it() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    let (client, mut out) = (&mut world.peers[0].client, Datagrams::new());
    client.update(Instant::ZERO + Duration::from_secs(5), &mut out);
    assert_eq!(client.state(), ClientState::SendingRequest);
    client.update(Instant::ZERO + Duration::from_secs(5) + Duration::from_nanos(1), &mut out);
    assert_eq!(client.state(), ClientState::RequestTimedOut);
}

#[test]
fn without_a_timeout_nobody_gives_up() {
    let mut world = World::new(1);
    world.add(token(1, |p| p.timeout = None));
    world.run(400);
    world.server_is_cut_off = true;
    world.run(100_000);
    assert_eq!((world.state(0), world.server.connected_count()), (ClientState::Connected, 1));
}

#[test]
fn a_client_that_was_connected_never_dials_its_next_server() {
    let mut world = World::new(1);
    world.add(token_to(1, &[server_address(), address("10.9.9.9:1")]));
    world.run(400);
    let client = world.server.find_client(1).unwrap();
    world.server_disconnect(client, None);
    world.run(1000);
    assert_eq!(world.state(0), ClientState::Disconnected);
    let log = world.log.len();
    world.run(10_000);
    assert_eq!(world.log.len(), log);
}

#[test]
fn a_shutdown_tells_everybody_everything_at_once() {
    let mut world = World::new(4);
    world.add_many(1..=3);
    world.run(400);
    let leaver = world.server.find_client(3).unwrap();
    world.server_disconnect(leaver, Some(b"closing"));
    let mut out = Datagrams::new();
    let now = world.now;
    world.server.shutdown(now, &mut out);
    assert_eq!(out.len(), 9 + 10 + 10);
    assert_eq!(world.server.connected_count(), 0);
    assert_eq!(world.server.next_deadline(), Instant::NEVER);
}

#[test]
fn leaving_while_dialling_sends_nothing_more() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(10);
    world.client_disconnect(0, Some(b"not sent: nobody is connected"));
    assert!(world.log.iter().all(|d| matches!(d.bytes[0] & 0x0F, 0 | 6)));
    let log = world.log.len();
    world.run(1000);
    assert_eq!(world.state(0), ClientState::Disconnected);
    assert_eq!(world.log.len(), log + 1, "one challenge, to a client that has gone");
    assert_eq!(world.server.connected_count(), 0);
}
