//! Getting connected, staying connected, and payloads.

use super::world::*;
use crate::netcode::{send_payload, total_dropped};
use std::collections::HashSet;
use tickwire::limits::MAX_PAYLOAD;
use tickwire::netcode::packet::{self, Body, Header, Kind, Request};
use tickwire::netcode::{
    Client, ClientConfig, ClientDisconnect, ClientEvent, ClientState, DropReason, Farewell, SendError,
    Server, ServerEvent,
};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

#[test]
fn connecting_takes_two_round_trips() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.run(1000);
    assert_eq!(world.peers[0].connected_at, Some(Instant::from_millis(4 * 50)));
    assert_eq!(world.peers[0].events, [ClientEvent::Connected { client_index: 0, max_clients: 4 }]);
    let client = world.client_of(1).unwrap();
    let connected = ServerEvent::Connected {
        client,
        client_id: 1,
        address: client_address(0),
        user_data: Box::new([1; 256]),
    };
    assert_eq!(world.events, [connected]);
    assert!(world.server.has_address(client_address(0)));
    assert_eq!(world.clients(), [client]);
    // The link holds several requests before the first answer: only those are dropped.
    assert_eq!(total_dropped(world.server.counters()), world.dropped(DropReason::AddressConnected));
}

#[test]
fn unanswered_packets_are_repeated_every_tenth_of_a_second() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.server_is_cut_off = true;
    world.run(950);
    assert_eq!(world.log.len(), 10);
    assert!(world.log.iter().all(|d| d.bytes.len() == 1078));
}

#[test]
fn connections_come_about_through_heavy_loss() {
    let mut world = World::new(32);
    world.loss = 0.5;
    world.add_many(1..=32);
    world.run(4000);
    assert_eq!(world.clients().len(), 32);
    assert!((0..32).all(|peer| world.state(peer) == ClientState::Connected));
}

#[test]
fn keep_alives_hold_a_silent_connection_beyond_its_timeout() {
    let (mut world, client) = World::connected();
    let sent = world.log.len();
    world.run(60_000);
    assert_eq!(world.state(0), ClientState::Connected);
    assert!(world.is_connected(client));
    assert_eq!(world.log.len() - sent, 2 * 600, "ten a second in each direction");
}

#[test]
fn payloads_go_both_ways_unaltered_and_once() {
    let (mut world, client) = World::connected();
    let sent: Vec<Vec<u8>> = (1..=MAX_PAYLOAD).step_by(100).map(|n| vec![n as u8; n]).collect();
    for payload in &sent {
        world.client_send(0, payload);
        world.server_send(client, payload);
    }
    world.run(100);
    assert_eq!(world.peers[0].received, sent);
    assert_eq!(world.received, sent.into_iter().map(|p| (client, p)).collect::<Vec<_>>());
}

#[test]
fn a_payload_sent_before_the_client_knows_arrives_when_the_keep_alive_was_lost() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.accept_unheard();
    let client = world.client_of(1).unwrap();
    world.server_send(client, b"welcome");
    world.run(60);
    assert_eq!(world.peers[0].received, [b"welcome"]);
}

#[test]
fn payloads_netcode_cannot_carry_are_refused_at_the_call() {
    let (mut world, client) = World::connected();
    let mut out = Datagrams::new();
    let now = world.now;
    for (payload, error) in [(vec![], SendError::Empty), (vec![0; 1201], SendError::TooLong(1201))] {
        let farewell = Farewell { payload: payload.clone(), understood: true };
        assert_eq!(world.server.disconnect(now, client, Some(farewell), &mut out), Err(error));
        assert_eq!(world.peers[0].client.send_payload(now, &payload, &mut out), Err(error));
        assert_eq!(world.peers[0].client.disconnect(Some(&payload), &mut out), Err(error));
    }
    assert!(out.is_empty() && world.is_connected(client));
}

#[test]
fn a_stale_handle_never_reaches_the_next_client_of_its_slot() {
    let (mut world, old) = World::connected();
    world.server_disconnect(old, None);
    world.add(token(2, |_| ()));
    world.run(400);
    let new = world.client_of(2).unwrap();
    assert_eq!((new.slot, new.generation), (old.slot, old.generation + 1));
    let mut out = Datagrams::new();
    let now = world.now;
    assert_eq!(
        send_payload(&mut world.server, now, old, b"for the old", &mut out),
        Err(SendError::NotConnected)
    );
    assert_eq!(world.server.disconnect(now, old, None, &mut out), Err(SendError::NotConnected));
    assert!(!world.is_connected(old) && world.is_connected(new) && out.is_empty());
}

#[test]
fn a_full_server_denies() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(400);
    world.add(token(2, |_| ()));
    world.run(400);
    assert_eq!(world.state(1), ClientState::Denied);
    assert_eq!(world.peers[1].events, [ClientEvent::Disconnected { reason: ClientDisconnect::Denied }]);
    assert!(world.dropped(DropReason::ServerFull) >= 1);
    assert_eq!(world.state(0), ClientState::Connected);
}

#[test]
fn of_two_clients_after_the_last_slot_the_slower_is_denied() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.add(token(2, |_| ()));
    world.run(1000);
    assert_eq!((world.state(0), world.state(1)), (ClientState::Connected, ClientState::Denied));
}

#[test]
fn the_next_server_of_the_token_is_dialled() {
    let silent = address("10.9.9.9:1");
    let both = [silent, server_address()];
    let mut world = World::new(1);
    world.add(token_to(1, &both));
    world.run(4000);
    assert_eq!(world.peers[0].client.server_address(), silent);
    world.run(1500);
    assert_eq!(world.state(0), ClientState::Connected);
    assert_eq!(world.peers[0].client.server_address(), server_address());
    assert_eq!(world.peers[0].events.len(), 1, "servers that were tried raise no events");
    let dialled = world.log.iter().find(|d| d.to == server_address()).unwrap().at.since(Instant::ZERO);
    assert!(dialled - world.latency < Duration::from_millis(5001), "at once: {dialled:?}");
}

#[test]
fn with_less_patience_the_next_server_is_dialled_sooner_and_the_last_for_the_whole_timeout() {
    let silent = [address("10.9.9.9:1"), address("10.9.9.9:2")];
    let config = ClientConfig { patience: Some(Duration::from_millis(1500)), ..ClientConfig::new(PROTOCOL) };
    let mut client = Client::new(config, token_to(1, &silent), Instant::ZERO).unwrap();
    let mut over = 0;
    for ms in 0..10_000 {
        client.update(Instant::from_millis(ms), &mut Datagrams::new());
        let last = ms > 1500;
        assert_eq!(client.server_address(), silent[usize::from(last)], "{ms}");
        over = if client.state().is_final() { over } else { ms };
    }
    assert_eq!(over, 1501 + 5000);
}

#[test]
fn an_unreachable_last_server_ends_the_attempt() {
    let unreachable = [address("10.9.9.9:1"), address("10.9.9.9:2")];
    let mut world = World::new(1);
    world.add(token_to(1, &unreachable));
    world.run(10_500);
    assert_eq!(world.state(0), ClientState::RequestTimedOut);
    let reason = ClientDisconnect::RequestTimedOut;
    assert_eq!(world.peers[0].events, [ClientEvent::Disconnected { reason }]);
}

#[test]
fn a_server_that_falls_silent_after_its_challenge_times_the_response_out() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(120);
    assert_eq!(world.state(0), ClientState::SendingResponse);
    world.server_is_cut_off = true;
    world.run(5000);
    assert_eq!(world.state(0), ClientState::ResponseTimedOut);
}

#[test]
fn the_client_gives_up_when_its_token_expires() {
    let mut world = World::new(1);
    world.add(token(1, |p| (p.lifetime, p.timeout) = (Some(3), None)));
    world.server_is_cut_off = true;
    world.run(2999);
    assert_eq!(world.state(0), ClientState::SendingRequest);
    world.run(1);
    assert_eq!(world.state(0), ClientState::TokenExpired);
    assert_eq!(world.state(0).number(), -6);
}

#[test]
fn a_connection_outlives_its_token() {
    let (mut world, client) = World::connected();
    world.run(40_000);
    assert!(world.is_connected(client));
    assert_eq!(world.state(0), ClientState::Connected);
}

#[test]
fn a_token_for_another_protocol_is_refused_locally() {
    let error = Client::new(ClientConfig::new(PROTOCOL + 1), token(1, |_| ()), Instant::ZERO)
        .map(|_| ())
        .unwrap_err();
    let (ours, theirs) = (PROTOCOL + 1, PROTOCOL);
    let told =
        format!("the token must be for the client's protocol, whose id is {ours:#x}, not for {theirs:#x}");
    assert_eq!(error.to_string(), told);
}

#[test]
fn configurations_out_of_bounds_are_refused() {
    let refused = |change: &dyn Fn(&mut tickwire::netcode::ServerConfig)| {
        let mut config = config(4);
        change(&mut config);
        Server::new(config, &mut Rng::seeded(1), START).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(refused(&|c| c.max_clients = 0), "max_clients must be 1 to 65536, not 0");
    assert_eq!(refused(&|c| c.max_clients = 65_537), "max_clients must be 1 to 65536, not 65537");
    let without_addresses = refused(&|c| c.public_addresses.clear());
    assert_eq!(without_addresses, "number of public_addresses must be at least 1, not 0");
    assert!(refused(&|c| c.half_open_capacity = 0).starts_with("half_open_capacity must be"));
    assert!(refused(&|c| c.token_history_capacity = 0).starts_with("token_history_capacity must be"));
}

#[test]
fn the_same_seed_and_calls_give_the_same_bytes() {
    let run = || {
        let mut world = World::new(8);
        world.loss = 0.3;
        world.add_many(1..=8);
        world.run(2000);
        world.log.into_iter().map(|d| (d.at, d.to, d.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_busy_side_sends_no_keep_alives() {
    let (mut world, client) = World::connected();
    world.run(100);
    let before = world.log.len();
    // Longer than the timeout: payloads alone hold a connection.
    for _ in 0..400 {
        world.client_send(0, b"move");
        world.server_send(client, b"state");
        world.run(16);
    }
    let keep_alives = world.log[before..].iter().filter(|d| d.bytes[0] & 0x0F == 4).count();
    assert_eq!(keep_alives, 0);
    assert_eq!((world.state(0), world.clients().len()), (ClientState::Connected, 1));
}

/// Both servers of a token share its keys, so a sequence used with the first must not be used with the second.
#[test]
fn the_next_server_sees_the_next_sequences() {
    let servers = [address("10.0.0.1:1"), address("10.0.0.2:1")];
    let token = token_to(1, &servers);
    let (_, key) = keys(&token.to_bytes());
    let mut client = Client::new(ClientConfig::new(PROTOCOL), token, Instant::ZERO).unwrap();
    let mut sequences = Vec::new();
    for (server, now) in servers.into_iter().zip([Instant::ZERO, Instant::from_millis(100)]) {
        let mut out = Datagrams::new();
        client.update(now, &mut out);
        assert_eq!(client.server_address(), server);
        let mut challenge = Vec::new();
        packet::seal(&mut challenge, PROTOCOL, &key, 1 << 63, Kind::Challenge, &[0; 308]);
        out.clear();
        client.handle_datagram(now, server, &mut challenge, &mut out);
        let (_, response) = out.iter().next().unwrap();
        sequences.push(Header::read(response).unwrap().sequence);
        // It is full meanwhile.
        let mut denied = Vec::new();
        packet::seal(&mut denied, PROTOCOL, &key, (1 << 63) + 1, Kind::Denied, &[]);
        client.handle_datagram(now, server, &mut denied, &mut Datagrams::new());
    }
    assert_eq!(sequences, [0, 1]);
}

/// A client that was let in unheard is sent packets with the sequences that the next server would begin with.
#[test]
fn a_server_that_fell_silent_after_its_challenge_is_the_last_that_is_dialled() {
    let mut world = World::new(1);
    world.add(token_to(1, &[server_address(), address("10.9.9.9:1")]));
    world.accept_unheard();
    world.server_is_cut_off = true;
    world.run(6000);
    assert_eq!(world.state(0), ClientState::ResponseTimedOut);
    assert!(world.log.iter().all(|d| d.to != address("10.9.9.9:1")));
}

#[test]
fn no_sequence_is_used_twice_under_one_key() {
    let mut world = World::new(3);
    world.loss = 0.4;
    world.add_many(1..=4);
    for _ in 0..30 {
        world.run(100);
        for client in world.clients() {
            world.server_send(client, b"state");
        }
    }
    for client in world.clients() {
        world.server_disconnect(client, (client.slot == 0).then_some(b"farewell"));
    }
    world.run(200);
    let (mut sequences, mut challenges) = (HashSet::new(), HashSet::new());
    for sent in world.log.iter().filter(|d| d.bytes[0] != 0) {
        let header = Header::read(&sent.bytes).unwrap();
        assert!(sequences.insert((sent.from, sent.to, header.sequence)), "{header:?}");
        let global = matches!(header.kind, Kind::Challenge | Kind::Denied);
        assert_eq!(header.sequence >= 1 << 63, global, "{header:?}");
        if header.kind == Kind::Challenge {
            let client_id = u64::from(sent.to.port()) - 999;
            let key = keys(&token(client_id, |_| ()).to_bytes()).1;
            let Ok(Body::Challenge { sequence, .. }) = header.open(&mut sent.bytes.clone(), PROTOCOL, &key)
            else {
                panic!("a challenge opens with its client's key")
            };
            assert!(challenges.insert(sequence), "challenge {sequence}");
        }
    }
    assert!(challenges.len() >= 4 && sequences.len() > 300);
}

/// All servers of a token, and all starts of one, challenge under the same key.
#[test]
fn every_start_challenges_with_sequences_of_its_own() {
    let mut request = Vec::new();
    Request::write(&token(1, |_| ()), &mut request);
    let mut seen = HashSet::new();
    for seed in 0..100 {
        let mut server = Server::new(config(1), &mut Rng::seeded(seed), START).unwrap();
        for client in 0..2 {
            let (from, mut out) = (client_address(client), Datagrams::new());
            server.handle_datagram(Instant::ZERO, START, from, &mut request.clone(), &mut out);
            for (_, challenge) in out.iter() {
                let sequence = Header::read(challenge).unwrap().sequence;
                assert!((1 << 63..(1 << 63) + (1 << 62)).contains(&sequence));
                assert!(seen.insert(sequence));
            }
        }
    }
    assert_eq!(seen.len(), 100, "the token is pending from the first address");
    let highest = seen.iter().max().unwrap();
    assert!(*highest > (1 << 63) + (1 << 61), "the bits below 2^62 are used: {highest:x}");
}
