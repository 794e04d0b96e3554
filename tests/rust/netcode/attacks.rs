//! Altered, replayed, forged and random packets change nothing and are never answered.

use super::world::*;
use crate::netcode::total_dropped;
use tickwire::netcode::packet::{self, Kind};
use tickwire::netcode::{ClientEvent, ClientHandle, ClientState, ConnectToken, DropReason, Key, ServerEvent};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::Instant;

/// Everything of a server that a datagram could change, but for the counters.
fn server_state(world: &World) -> (usize, usize, usize, usize, Instant) {
    let server = &world.server;
    let seen = (world.events.len(), world.received.len());
    (world.clients().len(), server.half_open_count(), seen.0, seen.1, server.next_deadline())
}

fn assert_server_ignores(world: &mut World, from: core::net::SocketAddr, bytes: &[u8]) {
    let (before, dropped) = (server_state(world), total_dropped(world.server.counters()));
    assert!(world.inject(from, bytes).is_empty());
    assert_eq!(server_state(world), before);
    assert_eq!(total_dropped(world.server.counters()), dropped + 1);
}

fn assert_client_ignores(world: &mut World, from: core::net::SocketAddr, bytes: &[u8]) {
    let (now, client) = (world.now, &mut world.peers[0].client);
    let before = (client.state(), client.next_deadline(), total_dropped(client.counters()));
    let mut out = Datagrams::new();
    assert_eq!(client.handle_datagram(now, from, &mut bytes.to_vec(), &mut out), None);
    assert!(out.is_empty() && client.poll_event().is_none());
    assert_eq!((client.state(), client.next_deadline(), total_dropped(client.counters()) - 1), before);
}

/// One flipped bit in each byte, and every cut and extension by one byte.
fn alterations(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let flipped = (0..bytes.len()).map(|at| {
        let mut altered = bytes.to_vec();
        altered[at] ^= 1 << (at % 8);
        altered
    });
    flipped.chain([bytes[..bytes.len() - 1].to_vec(), [bytes, &[0]].concat()])
}

#[test]
fn altered_requests_are_ignored() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(10);
    let request = world.captured(client_address(0), 0);
    for (i, altered) in alterations(&request).enumerate() {
        // From many sources: one alone would meet its limit and prove nothing.
        let from = address(&format!("10.5.{}.{}:1", i / 250, i % 250));
        assert_server_ignores(&mut world, from, &altered);
    }
    assert_eq!(world.dropped(DropReason::SourceLimit), 0);
    assert_eq!(world.inject(client_address(0), &request).len(), 1, "unaltered, it is answered");
}

#[test]
fn altered_responses_are_ignored() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(120);
    let response = world.captured(client_address(0), 3);
    for altered in alterations(&response) {
        assert_server_ignores(&mut world, client_address(0), &altered);
    }
    world.inject(client_address(0), &response);
    assert_eq!(world.clients().len(), 1, "unaltered, it connects");
}

#[test]
fn altered_packets_of_a_connected_client_are_ignored() {
    let (mut world, client) = World::connected();
    let before = world.log.len();
    world.client_send(0, b"payload");
    let payload = world.log[before].bytes.clone();
    world.client_disconnect(0, None);
    let disconnect = world.log[before + 1].bytes.clone();
    for altered in alterations(&payload).chain(alterations(&disconnect)) {
        assert_server_ignores(&mut world, client_address(0), &altered);
    }
    world.inject(client_address(0), &payload);
    assert_eq!(world.received, [(client, b"payload".to_vec())]);
    world.inject(client_address(0), &disconnect);
    assert!(!world.is_connected(client));
}

#[test]
fn altered_packets_to_a_client_are_ignored_in_every_state() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    for (run, state, packet_type) in [
        (60, ClientState::SendingRequest, 2),
        (100, ClientState::SendingResponse, 4),
        (100, ClientState::Connected, 4),
    ] {
        world.run(run);
        assert_eq!(world.state(0), state);
        let genuine = world.captured(server_address(), packet_type);
        alterations(&genuine)
            .for_each(|altered| assert_client_ignores(&mut world, server_address(), &altered));
    }
    let client = world.client_of(1).unwrap();
    let before = world.log.len();
    world.server_send(client, b"payload");
    world.server_disconnect(client, None);
    let sent: Vec<_> = world.log[before..].to_vec();
    for sent in sent {
        alterations(&sent.bytes)
            .for_each(|altered| assert_client_ignores(&mut world, server_address(), &altered));
    }
    world.run(60);
    assert_eq!(world.peers[0].received, [b"payload"]);
    assert_eq!(world.state(0), ClientState::Disconnected, "unaltered, they count");
}

#[test]
fn altered_denials_are_ignored() {
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    world.run(400);
    world.peers.clear();
    world.add(token(2, |_| ()));
    // From another address than the client that holds the slot.
    world.peers[0].address = client_address(1);
    world.run(60);
    let denied = world.captured(server_address(), 1);
    alterations(&denied).for_each(|altered| assert_client_ignores(&mut world, server_address(), &altered));
    world.run(60);
    assert_eq!(world.state(0), ClientState::Denied);
}

#[test]
fn replayed_packets_count_once() {
    let (mut world, client) = World::connected();
    let before = world.log.len();
    world.client_send(0, b"once");
    world.server_send(client, b"once");
    let (to_server, to_client) = (world.log[before].bytes.clone(), world.log[before + 1].bytes.clone());
    world.run(60);
    for _ in 0..3 {
        assert_server_ignores(&mut world, client_address(0), &to_server);
        assert_client_ignores(&mut world, server_address(), &to_client);
    }
    assert_eq!(world.dropped(DropReason::Replayed), 3);
    assert_eq!(world.peers[0].client.counters().dropped(DropReason::Replayed), 3);
    assert_eq!((world.received.len(), world.peers[0].received.len()), (1, 1));
}

#[test]
fn packets_of_an_earlier_connection_mean_nothing_to_the_next() {
    let (mut world, client) = World::connected();
    world.client_send(0, b"old");
    let old: Vec<_> = world.log.iter().filter(|d| d.from == client_address(0)).cloned().collect();
    world.run(60);
    world.server_disconnect(client, None);
    world.run(400);
    world.peers.clear();
    world.add(token(2, |_| ()));
    world.run(400);
    assert_eq!(world.state(0), ClientState::Connected);
    world.received.clear();
    for datagram in old {
        assert_server_ignores(&mut world, client_address(0), &datagram.bytes);
    }
}

#[test]
fn a_challenge_answered_from_another_address_connects_nobody() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.add(token(2, |_| ()));
    world.run(120);
    let response = world.captured(client_address(0), 3);
    assert_server_ignores(&mut world, client_address(9), &response);
    assert_eq!(world.dropped(DropReason::UnknownSource), 1);
    assert_server_ignores(&mut world, client_address(1), &response);
    assert_eq!(world.dropped(DropReason::NotAuthentic), 1);
}

#[test]
fn a_client_cannot_answer_with_the_challenge_of_another() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.add(token(2, |_| ()));
    world.run(120);
    // Client 1 has given its challenge away; client 2 seals it with its own key.
    let keys = |id| keys(&token(id, |_| ()).to_bytes());
    let mut challenge = world.captured(server_address(), 2);
    let header = packet::Header::read(&challenge).unwrap();
    let packet::Body::Challenge { sequence, token } =
        header.open(&mut challenge, PROTOCOL, &keys(1).1).unwrap()
    else {
        panic!("a challenge opens as a challenge")
    };
    let body = packet::challenge_body(sequence, token);
    let mut forged = Vec::new();
    packet::seal(&mut forged, PROTOCOL, &keys(2).0, 1000, Kind::Response, &body);
    assert_server_ignores(&mut world, client_address(1), &forged);
    assert_eq!(world.dropped(DropReason::ChallengeForOtherRequest), 1);

    let mut invented = Vec::new();
    packet::seal(&mut invented, PROTOCOL, &keys(2).0, 1001, Kind::Response, &[7; 308]);
    assert_server_ignores(&mut world, client_address(1), &invented);
    assert_eq!(world.dropped(DropReason::ChallengeNotAuthentic), 1);
}

/// The contents of a challenge for this token, as its client sees it: the response repeats them.
fn challenge_body(world: &mut World, token: &ConnectToken, from: core::net::SocketAddr) -> [u8; 308] {
    let mut request = Vec::new();
    packet::Request::write(token, &mut request);
    let mut answer = world.inject(from, &request).pop().expect("a challenge");
    let key = keys(&token.to_bytes()).1;
    match packet::Header::read(&answer).unwrap().open(&mut answer, PROTOCOL, &key) {
        Ok(packet::Body::Challenge { sequence, token }) => packet::challenge_body(sequence, token),
        other => panic!("{other:?}"),
    }
}

/// A response sealed with this token's key.
fn response(token: &ConnectToken, body: &[u8]) -> Vec<u8> {
    let mut response = Vec::new();
    packet::seal(&mut response, PROTOCOL, &keys(&token.to_bytes()).0, 1000, Kind::Response, body);
    response
}

/// Two live tokens of one account, with keys of their own.
fn two_tokens() -> [ConnectToken; 2] {
    [token(1, |p| p.user_data = &[8; 256]), reissued(1, |p| p.user_data = &[9; 256])]
}

/// A challenge carries the user data of its token. One of another token of the same client, older or newer, would bring
/// that token's user data into this one's connection: a rank it has lost since, a voucher that counts once.
#[test]
fn a_connection_has_the_user_data_of_its_own_token() {
    let mut world = World::new(4);
    let [old, new] = two_tokens();
    let of_old = challenge_body(&mut world, &old, client_address(0));
    let of_new = [0, 1].map(|_| challenge_body(&mut world, &new, client_address(1)));
    world.inject(client_address(1), &response(&new, &of_old));
    world.inject(client_address(0), &response(&old, &of_new[0]));
    assert_eq!(world.dropped(DropReason::ChallengeForOtherRequest), 2);
    assert!(world.events.is_empty());
    // The first of its own challenges is as good as the last.
    world.inject(client_address(1), &response(&new, &of_new[0]));
    assert!(matches!(&world.events[0], ServerEvent::Connected { user_data, .. } if **user_data == [9; 256]));
}

/// Two tokens of one account: the request of one is forged in a victim's name, and its challenge, which only the victim
/// sees, is answered in that name with the challenge of the other.
#[test]
fn the_challenge_of_another_token_proves_no_address() {
    let mut world = World::new(4);
    let [forged, own] = two_tokens();
    let (victim, attacker) = (client_address(0), client_address(1));
    let unseen = challenge_body(&mut world, &forged, victim);
    let seen = challenge_body(&mut world, &own, attacker);
    assert!(world.inject(victim, &response(&forged, &seen)).is_empty());
    assert_eq!(world.dropped(DropReason::ChallengeForOtherRequest), 1);
    assert_eq!(world.clients().len(), 0);
    world.inject(victim, &response(&forged, &unseen));
    assert_eq!(world.clients().len(), 1, "whoever receives there may answer");
}

#[test]
fn a_keep_alive_with_an_impossible_client_index_is_refused() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.run(120);
    let key = keys(&token(1, |_| ()).to_bytes()).1;
    for (sequence, index, max) in [(500, 4, 4), (501, 0, 0), (502, u32::MAX, 4)] {
        let mut forged = Vec::new();
        let body = packet::keep_alive_body(index, max);
        packet::seal(&mut forged, PROTOCOL, &key, sequence, Kind::KeepAlive, &body);
        assert_client_ignores(&mut world, server_address(), &forged);
    }
    assert_eq!(world.peers[0].client.counters().dropped(DropReason::ClientIndex), 3);
    let mut last = Vec::new();
    packet::seal(&mut last, PROTOCOL, &key, 503, Kind::KeepAlive, &packet::keep_alive_body(3, 4));
    let (now, mut out) = (world.now, Datagrams::new());
    world.peers[0].client.handle_datagram(now, server_address(), &mut last, &mut out);
    let connected = ClientEvent::Connected { client_index: 3, max_clients: 4 };
    assert_eq!(world.peers[0].client.poll_event(), Some(connected));
}

#[test]
fn a_client_hears_only_its_server() {
    let (mut world, client) = World::connected();
    let before = world.log.len();
    world.server_send(client, b"hello");
    let hello = world.log[before].bytes.clone();
    assert_client_ignores(&mut world, address("10.0.0.1:40001"), &hello);
    assert_client_ignores(&mut world, address("10.0.0.2:40000"), &hello);
    assert_eq!(world.peers[0].client.counters().dropped(DropReason::WrongAddress), 2);
    world.run(60);
    assert_eq!(world.peers[0].received, [b"hello"]);
}

#[test]
fn packets_of_the_wrong_direction_are_ignored() {
    let (mut world, _) = World::connected();
    let (to_server, to_client) = keys(&token(1, |_| ()).to_bytes());
    let forge = |key: &Key, kind, body: &[u8]| {
        let mut out = Vec::new();
        packet::seal(&mut out, PROTOCOL, key, 9999, kind, body);
        out
    };
    for (kind, body) in
        [(Kind::Denied, vec![]), (Kind::Challenge, vec![0; 308]), (Kind::Response, vec![0; 308])]
    {
        assert_server_ignores(&mut world, client_address(0), &forge(&to_server, kind, &body));
        assert_client_ignores(&mut world, server_address(), &forge(&to_client, kind, &body));
    }
    assert_eq!(world.dropped(DropReason::UnexpectedType), 2);
    assert_eq!(world.dropped(DropReason::AddressConnected), 1, "the response");
    assert_eq!(world.peers[0].client.counters().dropped(DropReason::UnexpectedType), 3);
}

#[test]
fn random_datagrams_of_all_lengths_are_ignored() {
    let mut rng = Rng::seeded(21);
    let mut random = move |len: usize, first: Option<u8>| {
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        if let (Some(first), Some(byte)) = (first, bytes.first_mut()) {
            *byte = first;
        }
        bytes
    };
    let (mut connected, _) = World::connected();
    let mut fresh = World::new(1);
    fresh.add(token(1, |_| ()));
    for len in 0..1400 {
        for first in [None, Some(0x00), Some(0x10), Some(0x13), Some(0x84), Some(0x25), Some(0x16)] {
            let bytes = random(len, first);
            for world in [&mut fresh, &mut connected] {
                assert_server_ignores(world, client_address(0), &bytes);
                assert_server_ignores(world, client_address(77), &bytes);
                assert_client_ignores(world, server_address(), &bytes);
            }
        }
    }
}

#[test]
fn a_finished_client_hears_nothing() {
    let (mut world, client): (World, ClientHandle) = World::connected();
    let before = world.log.len();
    world.server_send(client, b"late");
    let late = world.log[before].bytes.clone();
    world.client_disconnect(0, None);
    assert_client_ignores(&mut world, server_address(), &late);
    assert_eq!(world.peers[0].client.counters().dropped(DropReason::NotConnected), 1);
}
