//! A server of development mode says why it refuses; any other says nothing, and no answer is worth having for an attacker.

use core::net::SocketAddr;

use super::world::*;
use tickwire::netcode::{
    Client, ClientConfig, ClientDisconnect, ClientEvent, ClientState, ConnectToken, DropReason,
    MAX_NOTE_BYTES, Refusal, ServerConfig, UpperProtocol, hash_address,
};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

const OTHER_ID: u64 = PROTOCOL + 1;

fn explaining() -> ServerConfig {
    ServerConfig { explains: true, ..config(1) }
}

/// Why a token of each kind is refused.
fn refused() -> [(ConnectToken, Refusal, DropReason); 3] {
    let elsewhere = address("10.9.9.9:1");
    [
        (token(1, |it| it.protocol_id = OTHER_ID), Refusal::ProtocolId(PROTOCOL), DropReason::WrongProtocol),
        (token(2, |it| it.private_key = &[1; 32]), Refusal::PrivateKey, DropReason::TokenNotAuthentic),
        (token_behind_nat(3, elsewhere), Refusal::OtherServer, DropReason::TokenForOtherServer),
    ]
}

fn request(token: ConnectToken) -> (Client, Vec<u8>) {
    let id = token.protocol_id;
    let config = ClientConfig { development: true, ..ClientConfig::new(id) };
    let mut client = Client::new(config, token, Instant::ZERO).unwrap();
    let mut out = Datagrams::new();
    client.update(Instant::ZERO, &mut out);
    let bytes = out.iter().next().unwrap().1.to_vec();
    (client, bytes)
}

fn heard(client: &mut Client, from: SocketAddr, bytes: &[u8]) -> Option<ClientEvent> {
    let mut out = Datagrams::new();
    assert_eq!(client.handle_datagram(Instant::ZERO, from, &mut bytes.to_vec(), &mut out), None);
    assert!(out.is_empty());
    client.poll_event()
}

#[test]
fn development_says_at_once_what_differs_in_less_than_it_was_sent() {
    for (token, refusal, reason) in refused() {
        let mut world = World::with(explaining());
        let (mut client, request) = request(token);
        let answers = world.inject(client_address(0), &request);
        assert_eq!(world.dropped(reason), 1);
        assert_eq!(answers.len(), 1, "{refusal:?}");
        assert!(answers[0].len() * 10 < request.len());
        let told = heard(&mut client, server_address(), &answers[0]);
        assert_eq!(told, Some(ClientEvent::Disconnected { reason: ClientDisconnect::Refused(refusal) }));
        assert_eq!(client.state(), ClientState::Denied);
    }
}

/// A token as a development client makes it that speaks what has this hash.
fn speaking(hash: u64) -> ConnectToken {
    let names = [server_address(), hash_address(hash)];
    token_known_as(4, &names)
}

fn upper_protocol() -> Option<UpperProtocol> {
    Some(UpperProtocol { hash: 7, note: vec![9; 2000] })
}

#[test]
fn development_tells_who_speaks_something_else_in_less_than_half_of_what_was_sent() {
    let other_id = token(1, |it| it.protocol_id = OTHER_ID);
    let refused = [
        (speaking(8), Refusal::Protocol, DropReason::ProtocolDiffers),
        (other_id, Refusal::ProtocolId(PROTOCOL), DropReason::WrongProtocol),
    ];
    for (token, refusal, reason) in refused {
        let mut world = World::with(ServerConfig { upper_protocol: upper_protocol(), ..explaining() });
        let (mut client, request) = request(token);
        let answers = world.inject(client_address(0), &request);
        assert_eq!(world.dropped(reason), 1);
        assert_eq!(answers.len(), 1, "{refusal:?}");
        assert!(answers[0].len() * 2 < request.len());
        let told = heard(&mut client, server_address(), &answers[0]);
        assert_eq!(told, Some(ClientEvent::Disconnected { reason: ClientDisconnect::Refused(refusal) }));
        assert_eq!(client.note(), [9; MAX_NOTE_BYTES]);
    }
}

#[test]
fn who_speaks_the_same_or_does_not_say_is_let_in_and_production_does_not_look() {
    let development = ServerConfig { upper_protocol: upper_protocol(), ..explaining() };
    let production = ServerConfig { upper_protocol: upper_protocol(), ..config(1) };
    let plain = token(4, |_| ());
    for (config, token) in
        [(development.clone(), speaking(7)), (development, plain), (production, speaking(8))]
    {
        let mut world = World::with(config);
        let (_, request) = request(token);
        assert_eq!(world.inject(client_address(0), &request).len(), 1, "a challenge");
        assert_eq!(world.dropped(DropReason::ProtocolDiffers), 0);
    }
}

#[test]
fn production_says_nothing_whatever_comes() {
    let mut world = World::new(1);
    for (n, (token, ..)) in refused().into_iter().enumerate() {
        let (_, request) = request(token);
        assert!(world.inject(client_address(n as u16), &request).is_empty());
    }
    let (_, valid) = request(token(9, |_| ()));
    for at in 0..valid.len() {
        let mut altered = valid.clone();
        altered[at] ^= 0x10;
        let from = address(&format!("10.5.{}.{}:1", at / 250, at % 250));
        assert!(world.inject(from, &altered).is_empty(), "byte {at}");
    }
}

#[test]
fn what_is_no_request_is_never_explained() {
    let mut world = World::with(explaining());
    let (_, valid) = request(token(1, |it| it.protocol_id = OTHER_ID));
    for len in (0..valid.len()).chain([valid.len() + 1]) {
        let mut cut = valid.clone();
        cut.resize(len, 0);
        assert!(world.inject(client_address(0), &cut).is_empty(), "{len} bytes");
    }
    let mut other = valid.clone();
    other[10] ^= 1;
    assert!(world.inject(client_address(0), &other).is_empty(), "another version");
}

#[test]
fn a_flood_in_somebodys_name_is_answered_at_the_source_limit() {
    for (token, ..) in refused() {
        let mut world = World::with(explaining());
        let (_, request) = request(token);
        let answers: usize = (0..10_000).map(|_| world.inject(client_address(0), &request).len()).sum();
        assert!((1..=64).contains(&answers), "{answers}");
    }
}

#[test]
fn nobody_who_did_not_see_the_request_can_end_an_attempt() {
    for (token, refusal, _) in refused() {
        let (mut client, bytes) = request(token);
        let mut world = World::with(explaining());
        let genuine = world.inject(client_address(0), &bytes).remove(0);
        // Another nonce, and another sender.
        for at in 17..41 {
            let mut forged = genuine.clone();
            forged[at] ^= 1;
            assert_eq!(heard(&mut client, server_address(), &forged), None, "{refusal:?} {at}");
        }
        assert_eq!(heard(&mut client, address("10.0.0.66:40000"), &genuine), None);
        assert!(heard(&mut client, server_address(), &genuine).is_some());
    }
}

#[test]
fn only_who_is_in_development_mode_believes_it_and_no_longer_than_nobody_answered() {
    let (dev, bytes) = request(token(1, |_| ()));
    drop(dev);
    // The answer to a request of ours whose server then answers as it should.
    let mut elsewhere = World::with(ServerConfig { protocol_id: OTHER_ID, ..explaining() });
    let answer = elsewhere.inject(client_address(0), &bytes).remove(0);
    let mut cautious = Client::new(ClientConfig::new(PROTOCOL), token(1, |_| ()), Instant::ZERO).unwrap();
    assert_eq!(heard(&mut cautious, server_address(), &answer), None);
    assert_eq!(cautious.state(), ClientState::SendingRequest);
    let mut world = World::new(1);
    world.add(token(1, |_| ()));
    let config = ClientConfig { development: true, ..ClientConfig::new(PROTOCOL) };
    world.peers[0].client = Client::new(config, token(1, |_| ()), world.now).unwrap();
    world.run(400);
    assert_eq!(world.state(0), ClientState::Connected);
    assert_eq!(heard(&mut world.peers[0].client, server_address(), &answer), None);
    assert_eq!(world.state(0), ClientState::Connected);
}

#[test]
fn a_closed_port_ends_an_attempt_when_the_system_goes_on_saying_so_and_nothing_else() {
    let seconds = |millis| Instant::ZERO + Duration::from_millis(millis);
    let (mut client, _) = request(token(1, |_| ()));
    client.note_unreachable(seconds(0), address("10.0.0.66:40000"));
    client.note_unreachable(seconds(2000), server_address());
    client.note_unreachable(seconds(2700), server_address());
    assert_eq!(client.poll_event(), None);
    client.note_unreachable(seconds(2800), server_address());
    let reason = ClientDisconnect::Unreachable;
    assert_eq!(client.poll_event(), Some(ClientEvent::Disconnected { reason }));

    let (mut world, _) = World::connected();
    let (now, client) = (world.now, &mut world.peers[0].client);
    for millis in [0, 1000, 2000, 3000] {
        client.note_unreachable(now + Duration::from_millis(millis), server_address());
    }
    assert_eq!(client.state(), ClientState::Connected, "anybody can make the system say so");
}
