//! Which tokens a server takes.

use core::net::SocketAddr;
use std::sync::LazyLock;

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};

use super::world::*;
use tickwire::netcode::packet::Request;
use tickwire::netcode::{ClientState, ConnectToken, DropReason};
use tickwire::time::Duration;

fn request(token: &ConnectToken) -> Vec<u8> {
    let mut out = Vec::new();
    Request::write(token, &mut out);
    out
}

/// The request is dropped without an answer, under this name alone.
fn assert_dropped(world: &mut World, from: SocketAddr, token: &ConnectToken, reason: DropReason) {
    let (named, all) = (world.dropped(reason), world.server.counters().total_dropped());
    assert_eq!(world.inject(from, &request(token)), Vec::<Vec<u8>>::new(), "{reason:?}");
    assert_eq!(world.dropped(reason), named + 1, "{reason:?}: {:?}", world.server.counters());
    assert_eq!(world.server.counters().total_dropped(), all + 1);
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
    assert!(world.inject(client_address(0), &old).is_empty());
    assert_eq!(world.dropped(DropReason::WrongVersion), 1);
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

/// As in development, where tokens live as long as they please and servers start many times a minute.
#[test]
fn without_a_maximum_lifetime_no_newcomer_waits_after_a_start() {
    let mut world = World::new(4);
    assert_challenged(&mut world, client_address(0), &token(1, |p| p.lifetime = Some(1)));
    assert_challenged(&mut world, client_address(1), &token(2, |p| p.lifetime = None));
    let from_before_the_start = token(3, |p| p.created.0 -= 29);
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
fn a_connected_client_id_connects_no_second_time() {
    let (mut world, _) = World::connected();
    let second = token(1, |p| p.created.0 += 1);
    assert_dropped(&mut world, client_address(1), &second, DropReason::ClientIdConnected);
}

#[test]
fn of_two_half_open_connections_of_one_client_id_one_connects() {
    let mut world = World::new(4);
    world.add(token(1, |_| ()));
    world.add(token(1, |p| p.user_data = &[9; 256]));
    world.run(400);
    assert_eq!(world.server.connected_count(), 1);
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
