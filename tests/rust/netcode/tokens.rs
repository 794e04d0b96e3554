//! Which tokens a server takes.

use crate::netcode::total_dropped;
use core::net::SocketAddr;
use std::sync::LazyLock;

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};

use super::world::*;
use tickwire::netcode::packet::{self, Request};
use tickwire::netcode::{ClientState, ConnectToken, DropReason};
use tickwire::time::Duration;

fn request(token: &ConnectToken) -> Vec<u8> {
    let mut out = Vec::new();
    Request::write(token, &mut out);
    out
}

/// The request is dropped without an answer, under this name alone.
fn assert_dropped(world: &mut World, from: SocketAddr, token: &ConnectToken, reason: DropReason) {
    let (named, all) = (world.dropped(reason), total_dropped(world.server.counters()));
    assert_eq!(world.inject(from, &request(token)), Vec::<Vec<u8>>::new(), "{reason:?}");
    assert_eq!(world.dropped(reason), named + 1, "{reason:?}: {:?}", world.server.counters());
    assert_eq!(total_dropped(world.server.counters()), all + 1);
}

fn assert_challenged(world: &mut World, from: SocketAddr, token: &ConnectToken) {
    let answers = world.inject(from, &request(token));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].len(), 333);
}

#[test]
fn tokens_that_are_not_for_this_server_are_dropped_by_name() {
    let mut world = World::new(4);
    let from = client_address(0);
    let other_key = token(1, |p| p.private_key = &[1; 32]);
    assert_dropped(&mut world, from, &other_key, DropReason::TokenNotAuthentic);
    let other_protocol = token(1, |p| p.protocol_id = 1);
    assert_dropped(&mut world, from, &other_protocol, DropReason::WrongProtocol);
    let other_port = token_to(1, &[address("10.0.0.1:40001")]);
    assert_dropped(&mut world, from, &other_port, DropReason::TokenForOtherServer);
    assert_challenged(&mut world, from, &token(1, |_| ()));
}

#[test]
fn a_request_of_another_version_is_dropped() {
    let mut world = World::new(4);
    let mut old = request(&token(1, |_| ()));
    old[12] = b'1';
    assert_eq!(world.server.counters().wrong_version(), None);
    assert!(world.inject(client_address(0), &old).is_empty());
    assert_eq!(world.dropped(DropReason::WrongVersion), 1);
    assert_eq!(world.server.counters().wrong_version().unwrap(), "1.01");
    // As netcode 1.01 sends it, whose nonce is 16 bytes shorter, and as one to come might.
    for (request, version) in [(&old[..1062], "1.01"), (&[&old[..], &[0; 30]].concat(), "1.01")] {
        assert!(world.inject(client_address(0), request).is_empty());
        assert_eq!(world.server.counters().wrong_version().unwrap(), version);
    }
    assert_eq!(world.dropped(DropReason::WrongVersion), 3);
    // A name that is no name is not repeated.
    old[9..14].copy_from_slice(b"2\x1b[0m");
    world.inject(client_address(0), &old);
    assert_eq!(world.server.counters().wrong_version().unwrap(), "2");
    assert_eq!(total_dropped(world.server.counters()), 4);
}

/// Sealed with the private key, as only a faulty backend does.
#[test]
fn a_token_that_makes_no_sense_inside_is_dropped() {
    let mut world = World::new(4);
    for (id, addresses, of_type) in [(1, 0u32, 1u8), (2, 33, 1), (3, 1, 0), (4, 1, 3), (5, u32::MAX, 1)] {
        let mut request = request(&token(id, |_| ()));
        let (fields, sealed) = request.split_at_mut(54);
        let (text, tag) = sealed.split_at_mut(1008);
        text.fill(0);
        text[12..16].copy_from_slice(&addresses.to_le_bytes());
        text[16] = of_type;
        let nonce: [u8; 24] = fields[30..].try_into().unwrap();
        let sealed = XChaCha20Poly1305::new(&PRIVATE_KEY.into())
            .encrypt_inout_detached(&nonce.into(), &fields[1..30], text.into())
            .unwrap();
        tag.copy_from_slice(&sealed);
        assert!(world.inject(client_address(0), &request).is_empty());
        assert_eq!(world.dropped(DropReason::TokenMalformed), id);
    }
}

#[test]
fn the_internal_list_decides_which_server_is_meant() {
    static OURS: LazyLock<[SocketAddr; 1]> = LazyLock::new(|| [server_address()]);
    static THEIRS: LazyLock<[SocketAddr; 1]> = LazyLock::new(|| [address("203.0.113.9:1")]);
    let (ours, theirs): (&'static [SocketAddr], &'static [SocketAddr]) = (&*OURS, &*THEIRS);
    let mut world = World::new(4);
    let behind_nat = token(1, |p| (p.public_addresses, p.internal_addresses) = (theirs, Some(ours)));
    assert_challenged(&mut world, client_address(0), &behind_nat);
    let elsewhere = token(2, |p| (p.public_addresses, p.internal_addresses) = (ours, Some(theirs)));
    assert_dropped(&mut world, client_address(1), &elsewhere, DropReason::TokenForOtherServer);
}

#[test]
fn expired_tokens_are_dropped() {
    let mut world = World::new(4);
    world.run(29_999);
    assert_challenged(&mut world, client_address(0), &token(1, |_| ()));
    world.run(1);
    assert_dropped(&mut world, client_address(1), &token(2, |_| ()), DropReason::TokenJustExpired);
}

#[test]
fn a_token_that_just_expired_hints_at_clocks_that_differ() {
    let mut with_skew = config(4);
    with_skew.clock_skew = Duration::from_secs(2);
    let mut world = World::with(with_skew);
    world.run((32 + 299) * 1000);
    assert_dropped(&mut world, client_address(0), &token(1, |_| ()), DropReason::TokenJustExpired);
    world.run(1000);
    assert_dropped(&mut world, client_address(0), &token(1, |_| ()), DropReason::TokenExpired);
}

#[test]
fn clock_skew_extends_the_expiry() {
    let mut with_skew = config(4);
    with_skew.clock_skew = Duration::from_secs(2);
    let mut world = World::with(with_skew);
    world.run(31_000);
    assert_challenged(&mut world, client_address(0), &token(1, |_| ()));
    world.run(1000);
    assert_dropped(&mut world, client_address(0), &token(2, |_| ()), DropReason::TokenJustExpired);
}

#[test]
fn tokens_from_before_the_start_and_tokens_that_live_too_long_are_dropped() {
    let mut with_maximum = config(4);
    with_maximum.max_token_lifetime = Some(Duration::from_secs(30));
    let mut world = World::with(with_maximum);
    let issued_before = token(1, |p| p.created.0 -= 1);
    assert_dropped(&mut world, client_address(0), &issued_before, DropReason::TokenBeforeStart);
    // A short life doesn't make a token from after the start look like one from before.
    assert_challenged(&mut world, client_address(1), &token(5, |p| p.lifetime = Some(1)));
    let too_long = token(2, |p| p.lifetime = Some(31));
    assert_dropped(&mut world, client_address(0), &too_long, DropReason::TokenLifetime);
    let forever = token(3, |p| p.lifetime = None);
    assert_dropped(&mut world, client_address(0), &forever, DropReason::TokenLifetime);
    assert_challenged(&mut world, client_address(0), &token(4, |_| ()));
}

#[test]
fn a_pending_token_admits_its_first_address_only() {
    let mut world = World::new(4);
    let token = token(1, |_| ());
    assert_challenged(&mut world, client_address(0), &token);
    assert_dropped(&mut world, client_address(1), &token, DropReason::TokenElsewhere);
    assert_challenged(&mut world, client_address(0), &token);
}

/// A client that gave up the first of a server's addresses dials the second, which is of the other family.
#[test]
fn a_pending_token_admits_an_address_of_each_family_and_makes_one_connection() {
    let mut world = World::new(4);
    let both = token(1, |_| ());
    let [v4, v6] = [client_address(0), address("[2001:db8::1]:1000")];
    let respond = |world: &mut World, from| {
        let (to_server, to_client) = keys(&both.to_bytes());
        let mut challenge = world.inject(from, &request(&both)).pop().unwrap();
        let opened = packet::Header::read(&challenge).unwrap().open(&mut challenge, PROTOCOL, &to_client);
        let Ok(packet::Body::Challenge { sequence, token }) = opened else { panic!("{opened:?}") };
        let body = packet::challenge_body(sequence, token);
        let mut response = Vec::new();
        packet::seal(&mut response, PROTOCOL, &to_server, 0, packet::Kind::Response, &body);
        response
    };
    let responses = [v4, v6].map(|from| respond(&mut world, from));
    assert_dropped(&mut world, client_address(1), &both, DropReason::TokenElsewhere);
    assert_dropped(&mut world, address("[2001:db8::2]:1000"), &both, DropReason::TokenElsewhere);
    assert_dropped(&mut world, address("[::ffff:10.0.1.1]:1001"), &both, DropReason::TokenElsewhere);
    world.inject(v6, &responses[1]);
    assert_eq!(world.clients().len(), 1);
    world.inject(v4, &responses[0]);
    assert_eq!(world.dropped(DropReason::TokenConsumed), 1);
    // Nor when the connection is over, and the token's place in the history could go.
    let client = world.client_of(1).unwrap();
    world.server_disconnect(client, None);
    world.inject(v4, &responses[0]);
    assert_eq!((world.dropped(DropReason::TokenConsumed), world.clients().len()), (2, 0));
}

/// A token that made a connection before a restart, with the server's memory of it gone.
#[test]
fn after_a_restart_a_used_token_stays_refused_and_a_fresh_one_is_taken_at_once() {
    let mut with_maximum = config(4);
    with_maximum.max_token_lifetime = Some(Duration::from_secs(30));
    let mut world = World::with(with_maximum.clone());
    world.add(token(1, |_| ()));
    world.run(400);
    assert_eq!(world.state(0), ClientState::Connected);
    world.run(600);
    let used = token(1, |_| ());
    world.restart(with_maximum);
    assert_dropped(&mut world, client_address(0), &used, DropReason::TokenBeforeStart);
    assert_challenged(&mut world, client_address(1), &token(2, |p| p.created.0 += 1));
}

/// Of tokens that other backends make, a server knows no more than when they expire.
#[test]
fn an_undated_token_that_may_be_from_before_the_start_is_dropped() {
    let undated = |id, created: u64, lifetime| {
        token(id, |p| (p.dated, p.created.0, p.lifetime) = (false, START.0 + created, Some(lifetime)))
    };
    let mut with_maximum = config(4);
    with_maximum.max_token_lifetime = Some(Duration::from_secs(30));
    let mut world = World::with(with_maximum);
    assert_dropped(&mut world, client_address(0), &undated(1, 0, 29), DropReason::TokenBeforeStart);
    assert_challenged(&mut world, client_address(0), &undated(2, 0, 30));
    assert_challenged(&mut world, client_address(1), &undated(3, 1, 29));
    world.run(20_000);
    assert_challenged(&mut world, client_address(2), &undated(4, 20, 10));
}

#[test]
fn a_token_from_before_the_start_is_dropped_unless_clocks_differ_so_much() {
    let before = |seconds| move |p: &mut tickwire::netcode::TokenParams<'_>| p.created.0 -= seconds;
    let mut world = World::new(4);
    assert_dropped(&mut world, client_address(0), &token(1, before(1)), DropReason::TokenBeforeStart);
    let mut with_skew = config(4);
    with_skew.clock_skew = Duration::from_secs(2);
    world.restart(with_skew);
    assert_challenged(&mut world, client_address(0), &token(1, before(2)));
    assert_dropped(&mut world, client_address(1), &token(2, before(3)), DropReason::TokenBeforeStart);
}

/// As in development, where tokens live as long as they please and servers start many times a minute.
#[test]
fn without_a_maximum_lifetime_no_newcomer_waits_after_a_start() {
    let mut world = World::new(4);
    assert_challenged(&mut world, client_address(0), &token(1, |p| p.lifetime = Some(1)));
    assert_challenged(&mut world, client_address(1), &token(2, |p| p.lifetime = None));
    let from_before_the_start = token(3, |p| (p.dated, p.created.0) = (false, p.created.0 - 29));
    assert_challenged(&mut world, client_address(2), &from_before_the_start);
}

/// None of them need be the address its socket is bound to, or the one its clients dial.
#[test]
fn a_server_answers_to_each_of_its_public_addresses() {
    let public = ["203.0.113.9:1", "203.0.113.9:2", "[2001:db8::9]:1"].map(address);
    let mut behind_nat = config(4);
    behind_nat.public_addresses = public.to_vec();
    let mut world = World::with(behind_nat);
    for (id, ours) in (1..).zip(public) {
        world.add(token_behind_nat(id, ours));
    }
    world.run(400);
    assert!((0..3).all(|peer| world.state(peer) == ClientState::Connected));
    assert_dropped(&mut world, client_address(9), &token(9, |_| ()), DropReason::TokenForOtherServer);
}

#[test]
fn a_consumed_token_admits_nobody() {
    let (mut world, client) = World::connected();
    assert_dropped(&mut world, client_address(0), &token(1, |_| ()), DropReason::AddressConnected);
    assert_dropped(&mut world, client_address(1), &token(1, |_| ()), DropReason::TokenConsumed);
    world.server_disconnect(client, None);
    assert_dropped(&mut world, client_address(0), &token(1, |_| ()), DropReason::TokenConsumed);
    let again = world.add_at(client_address(5), token(1, |_| ()));
    world.run(5500);
    assert_eq!(world.state(again), ClientState::RequestTimedOut);
}

#[test]
fn without_replacing_a_connected_client_id_connects_no_second_time() {
    let mut patient = config(4);
    patient.replace_duplicates = false;
    let mut world = World::with(patient);
    world.add(token(1, |_| ()));
    world.run(400);
    let second = reissued(1, |_| ());
    assert_dropped(&mut world, client_address(1), &second, DropReason::ClientIdConnected);
}

#[test]
fn of_two_half_open_connections_of_one_client_id_one_connects() {
    let mut patient = config(4);
    patient.replace_duplicates = false;
    let mut world = World::with(patient);
    world.add(token(1, |_| ()));
    world.add(reissued(1, |_| ()));
    world.run(400);
    assert_eq!(world.clients().len(), 1);
    assert!(world.dropped(DropReason::ClientIdConnected) >= 1);
}

#[test]
fn a_full_history_refuses_new_tokens_and_keeps_the_old() {
    let mut small = config(4);
    small.token_history_capacity = 2;
    let mut world = World::with(small);
    assert_challenged(&mut world, client_address(1), &token(1, |_| ()));
    assert_challenged(&mut world, client_address(2), &token(2, |_| ()));
    assert_dropped(&mut world, client_address(3), &token(3, |_| ()), DropReason::TokenHistoryFull);
    assert_dropped(&mut world, client_address(3), &token(1, |_| ()), DropReason::TokenElsewhere);
    world.run(30_000);
    let later = token(4, |p| p.lifetime = Some(60));
    assert_dropped(&mut world, client_address(3), &later, DropReason::TokenHistoryFull);
    // Half-open connections with them are gone by then, too.
    world.run(10_000);
    assert_challenged(&mut world, client_address(3), &later);
}

#[test]
fn full_half_open_places_refuse_newcomers_and_lose_nobody() {
    let mut small = config(4);
    small.half_open_capacity = 2;
    let mut world = World::with(small);
    assert_challenged(&mut world, client_address(1), &token(1, |_| ()));
    assert_challenged(&mut world, client_address(2), &token(2, |_| ()));
    assert_dropped(&mut world, client_address(3), &token(3, |_| ()), DropReason::HalfOpenFull);
    assert_challenged(&mut world, client_address(1), &token(1, |_| ()));
    world.run(5000);
    assert_challenged(&mut world, client_address(3), &token(3, |_| ()));
}
