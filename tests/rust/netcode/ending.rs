//! How connections end.

use super::world::*;
use tickwire::netcode::{
    ClientDisconnect, ClientEvent, ClientState, DropReason, ServerDisconnect, ServerEvent,
};
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
    assert!(by_peer(&world) && !world.is_connected(client));
    assert_eq!((world.clients().len(), world.events.len()), (0, 2));
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
    assert!(world.is_connected(client));
}

#[test]
fn a_kicked_client_is_told_ten_times_over_time_and_its_slot_is_free_at_once() {
    let (mut world, client) = World::connected();
    let (before, kicked_at) = (world.log.len(), world.now);
    world.server_disconnect(client, None);
    assert_eq!(world.clients().len(), 0);
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
    let client = world.client_of(1).unwrap();
    world.server_disconnect(client, Some(b"not you"));
    world.run(300);
    assert_eq!(world.peers[0].received[0], b"not you");
}

#[test]
fn a_client_that_falls_silent_times_out_on_both_sides() {
    let (mut world, client) = World::connected();
    world.server_is_cut_off = true;
    world.run(4890);
    assert!(world.is_connected(client));
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
fn without_a_timeout_only_the_server_gives_up() {
    let mut world = World::new(1);
    world.add(token(1, |p| p.timeout = None));
    world.run(400);
    world.server_is_cut_off = true;
    world.run(299_000);
    assert_eq!((world.state(0), world.clients().len()), (ClientState::Connected, 1));
    world.run(2_000);
    assert_eq!((world.state(0), world.clients().len()), (ClientState::Connected, 0));
}

#[test]
fn a_client_that_was_connected_never_dials_its_next_server() {
    let mut world = World::new(1);
    world.add(token_to(1, &[server_address(), address("10.9.9.9:1")]));
    world.run(400);
    let client = world.client_of(1).unwrap();
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
    let leaver = world.client_of(3).unwrap();
    world.server_disconnect(leaver, Some(b"closing"));
    let mut out = Datagrams::new();
    let now = world.now;
    world.server.shutdown(now, &mut out);
    assert_eq!(out.len(), 9 + 10 + 10);
    assert_eq!(world.clients().len(), 0);
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
    assert_eq!(world.clients().len(), 0);
}

/// Its socket keeps packets while it hangs: it knows when it wakes.
#[test]
fn a_client_that_hangs_is_told_when_the_server_gives_it_up() {
    let (mut world, client) = World::connected();
    let hung = core::mem::take(&mut world.peers);
    let before = world.log.len();
    world.run(5600);
    let reason = ServerDisconnect::TimedOut;
    assert_eq!(world.events.last(), Some(&ServerEvent::Disconnected { client, reason }));
    let told = world.log[before..].iter().filter(|d| d.bytes[0] & 0x0F == 6).cloned().collect::<Vec<_>>();
    assert_eq!(told.len(), 10, "as many as when it is kicked");
    assert!(told.iter().all(|d| d.bytes.len() == 18));
    world.peers = hung;
    let (now, mut out) = (world.now, Datagrams::new());
    for mut datagram in told {
        world.peers[0].client.handle_datagram(now, server_address(), &mut datagram.bytes, &mut out);
    }
    assert_eq!(world.state(0), ClientState::Disconnected);
    assert!(out.is_empty());
    let log = world.log.len();
    world.run(20_000);
    assert_eq!(world.log.len(), log, "and that is all");
}

#[test]
fn a_server_that_cannot_be_heard_is_told_when_its_client_gives_it_up() {
    let (mut world, client) = World::connected();
    let silent = world.peers[0].address;
    world.peers[0].address = client_address(9);
    world.run(4000);
    // What the server sends goes nowhere; what the client sends arrives.
    world.peers[0].address = silent;
    let last_heard = world.now;
    let (now, mut out) = (last_heard + Duration::from_millis(1100), Datagrams::new());
    world.peers[0].client.update(now, &mut out);
    assert_eq!((world.state(0), out.len()), (ClientState::TimedOut, 10));
    for (_, goodbye) in out.iter() {
        world.inject(silent, goodbye);
    }
    assert!(by_peer(&world) && !world.is_connected(client));
    let reason = ClientDisconnect::TimedOut;
    assert_eq!(world.peers[0].client.poll_event(), Some(ClientEvent::Disconnected { reason }));
    assert_eq!(world.peers[0].client.poll_event(), None);
}

/// A client that crashed is there again before its old connection has timed out.
#[test]
fn the_next_connection_of_a_client_takes_the_place_of_its_last() {
    // The server is full, with the old one.
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(400);
    let old = world.client_of(1).unwrap();
    world.add(reissued(1, |p| p.user_data = &[9; 256]));
    world.run(99);
    assert!(world.is_connected(old), "a request proves no address");
    world.run(301);
    let new = world.client_of(1).unwrap();
    assert_eq!((old.slot, new.slot, world.state(1)), (0, 0, ClientState::Connected));
    assert!(!world.is_connected(old));
    let reason = ServerDisconnect::Replaced;
    assert_eq!(world.events[1], ServerEvent::Disconnected { client: old, reason });
    let ServerEvent::Connected { client, user_data, .. } = &world.events[2] else { panic!() };
    assert_eq!((*client, **user_data), (new, [9; 256]));
    assert_eq!(world.state(0), ClientState::Disconnected, "it was told");
    world.run(10_000);
    assert_eq!((world.state(1), world.events.len()), (ClientState::Connected, 3));
}

#[test]
fn the_next_connection_may_come_from_the_same_address() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.run(400);
    let old = world.client_of(1).unwrap();
    let before = world.log.len();
    world.peers.clear();
    world.add(reissued(1, |_| ()));
    world.run(1000);
    assert_eq!(world.state(0), ClientState::Connected);
    assert!(!world.is_connected(old) && world.clients().len() == 1);
    assert!(world.log[before..].iter().all(|d| d.bytes[0] & 0x0F != 6), "nobody is there to be told");
}

/// Anyone who saw its packets can send them again.
#[test]
fn what_a_replaced_client_sent_replaces_nobody() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.run(400);
    world.add(reissued(1, |_| ()));
    world.run(400);
    let new = world.client_of(1).unwrap();
    assert!(world.server.has_address(world.peers[1].address));
    let old: Vec<_> = world.log.iter().filter(|d| d.to == server_address()).cloned().collect();
    for datagram in &old {
        for from in [client_address(0), client_address(1), client_address(2)] {
            assert!(world.inject(from, &datagram.bytes).is_empty());
        }
    }
    assert!(world.is_connected(new));
    assert_eq!(world.events.len(), 3);
}

/// The address of a connected client is nobody else's to take.
#[test]
fn another_client_does_not_take_a_connected_address() {
    let (mut world, client) = World::connected();
    let another = token(2, |_| ());
    let mut request = Vec::new();
    tickwire::netcode::packet::Request::write(&another, &mut request);
    assert!(world.inject(client_address(0), &request).is_empty());
    assert_eq!(world.dropped(DropReason::AddressConnected), 1);
    assert!(world.is_connected(client));
    assert_eq!(world.server.half_open_count(), 0);
}
