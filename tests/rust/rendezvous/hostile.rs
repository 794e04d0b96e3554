//! What strangers may try: floods, guesses, forgeries, replays, cut packets. All of it is dropped under a name.

use core::net::SocketAddr;

use tickwire::netsim::{Conditions, NatKind};
use tickwire::rendezvous::relay::{RelayTerms, RelayToken};
use tickwire::rendezvous::{
    Handled, LobbyCode, MAGIC, RelayServer, RelayServerConfig, RendezvousClient, RendezvousEvent,
    RendezvousServer, RendezvousServerConfig, lobby_address,
};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};

use super::internet::{KEY, RELAY, SERVER, address, game};
use super::{good, seconds, two};

const UNIX: UnixSeconds = UnixSeconds(1_000_000);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn server() -> RendezvousServer {
    RendezvousServer::new(RendezvousServerConfig::default(), &mut Rng::seeded(1))
}

fn source(n: u32) -> SocketAddr {
    SocketAddr::from(([20, (n >> 16) as u8, (n >> 8) as u8, n as u8], 7))
}

/// Packets of a client to a server whose answers it doesn't get.
fn first_words(act: impl FnOnce(&mut RendezvousClient)) -> Vec<u8> {
    let mut client = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(9));
    act(&mut client);
    let mut out = Datagrams::new();
    client.transmit(at(0), &mut out);
    out.iter().next().unwrap().1.to_vec()
}

/// A client and a server in one room, for as long as they have something to say at this time.
fn talk(server: &mut RendezvousServer, client: &mut RendezvousClient, now: Instant, from: SocketAddr) {
    let mut out = Datagrams::new();
    client.transmit(now, &mut out);
    for _ in 0..4 {
        let mut back = Datagrams::new();
        for (_, bytes) in out.iter() {
            let before = back.total_bytes();
            server.handle_datagram(now, UNIX, from, bytes, &mut back);
            assert!(back.total_bytes() - before <= bytes.len(), "no answer is larger than its question");
        }
        out.clear();
        for (to, bytes) in back.iter().filter(|(to, _)| *to == from) {
            assert_eq!(to, from);
            client.handle_datagram(now, address(SERVER), bytes, &mut out);
        }
    }
}

#[test]
fn a_flood_from_forged_sources_leaves_nothing_behind_and_gets_less_than_it_brings() {
    let register = first_words(|client| client.register(at(0), game()));
    let join = first_words(|client| {
        client.join(at(0), "BCDFGH".parse().unwrap(), 5);
    });
    let list = first_words(|client| client.list(at(0), 0));
    let mut server = server();
    let mut out = Datagrams::new();
    for n in 0..100_000 {
        let question = [&register, &join, &list][n as usize % 3];
        out.clear();
        server.handle_datagram(at(u64::from(n) / 100), UNIX, source(n), question, &mut out);
        assert!(out.len() == 1 && out.total_bytes() <= 35, "a cookie of 35 bytes");
    }
    let counters = server.counters();
    assert_eq!((counters.games, counters.challenged, counters.registered), (0, 100_000, 0));
}

#[test]
fn a_cookie_that_was_guessed_or_is_of_another_address_proves_nothing() {
    let mut question = first_words(|client| client.register(at(0), game()));
    let (mut server, mut rng, mut out) = (server(), Rng::seeded(7), Datagrams::new());
    // Behind the kind and the number.
    let cookie = 6..14;
    for n in 0..10_000 {
        rng.fill(&mut question[cookie.clone()]);
        server.handle_datagram(at(0), UNIX, source(n), &question, &mut out);
    }
    let (_, challenge) = out.iter().next().unwrap();
    // Behind the number and what answer it is.
    question[cookie].copy_from_slice(&challenge[7..15]);
    server.handle_datagram(at(0), UNIX, source(1), &question, &mut out);
    let counters = server.counters();
    assert_eq!((counters.challenged, counters.registered), (10_001, 0));
    server.handle_datagram(at(0), UNIX, source(0), &question, &mut out);
    assert_eq!(server.counters().registered, 1, "who it was sent to");
}

#[test]
fn games_are_bounded_in_all_and_by_source() {
    let config = RendezvousServerConfig { max_games: 100, max_games_of_a_source: 10, ..Default::default() };
    let mut server = RendezvousServer::new(config, &mut Rng::seeded(1));
    for n in 0..1000u32 {
        let mut client = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(u64::from(n)));
        client.register(at(u64::from(n)), game());
        // 20 sources, from many ports.
        let from = SocketAddr::new(source(n % 20).ip(), 1000 + n as u16);
        talk(&mut server, &mut client, at(u64::from(n)), from);
    }
    let counters = server.counters();
    assert_eq!((counters.games, counters.registered), (100, 100));
    assert!(counters.source_full + counters.server_full > 0);
    talk(
        &mut server,
        &mut RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(1)),
        at(1),
        source(1),
    );
    server.handle_datagram(at(40_000), UNIX, source(1), b"", &mut Datagrams::new());
    assert_eq!((server.counters().games, server.counters().forgotten), (0, 100));
}

#[test]
fn who_guesses_codes_is_slowed_down() {
    let mut server = server();
    let mut rng = Rng::seeded(4);
    let mut client = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(2));
    for n in 0..2000 {
        let text: String =
            (0..6).map(|_| char::from(b"BCDFGHJKLMNPQRSTVWX"[rng.below(19) as usize])).collect();
        client.join(at(10 * n), text.parse::<LobbyCode>().unwrap(), 5);
        talk(&mut server, &mut client, at(10 * n), source(3));
    }
    let counters = server.counters();
    assert!(counters.unknown_code <= 10 + 10 + 1, "{} in 20 seconds", counters.unknown_code);
    assert!(counters.guessing > 100 && counters.over_rate > 100, "{counters:?}");
    // Others are served all the same.
    let mut other = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(3));
    other.register(at(20_000), game());
    talk(&mut server, &mut other, at(20_000), source(4));
    assert!(other.code().is_some());
}

#[test]
fn introductions_of_others_are_not_believed() {
    let mut net = two(good(), 1, [Some(NatKind::PortRestricted), None], true);
    let code = net.host(0);
    // Our own server's words to another host, and to one of the same name elsewhere.
    let mut foreign = server();
    let mut host = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(1000));
    let mut joiner = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(77));
    host.register(at(0), game());
    talk(&mut foreign, &mut host, at(0), source(1));
    joiner.join(at(0), host.code().unwrap(), 5);
    talk(&mut foreign, &mut joiner, at(0), source(2));
    let mut out = Datagrams::new();
    joiner.transmit(at(300), &mut out);
    let question = out.iter().next().map(|(_, bytes)| bytes.to_vec());
    let mut introductions = Datagrams::new();
    if let Some(question) = question {
        foreign.handle_datagram(at(300), UNIX, source(2), &question, &mut introductions);
    }
    let words: Vec<Vec<u8>> = introductions.iter().map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(words.len(), 2, "one for each of them");
    let now = net.now();
    let mut rng = Rng::seeded(5);
    for word in words {
        let mut out = Datagrams::new();
        // Another key: the host's secret was drawn of another seed than this one's, which forges bits.
        for _ in 0..200 {
            let mut forged = word.clone();
            let bit = rng.below(8 * forged.len() as u64) as usize;
            forged[bit / 8] ^= 1 << (bit % 8);
            net.peers[1].client.handle_datagram(now, address(SERVER), &forged, &mut out);
            net.peers[1].client.handle_datagram(now, address("6.6.6.6:6"), &word, &mut out);
        }
        assert!(out.is_empty(), "nothing is sent for it");
    }
    let counters = net.peers[1].counters();
    assert!(counters.introduced == 0 && counters.unexpected >= 400, "{counters:?}");
    net.join(1, code);
    net.run(seconds(2));
    assert!(net.peers[1].path().is_some());
}

#[test]
fn a_host_is_not_made_to_send_elsewhere_than_to_who_asked() {
    let mut server = server();
    let mut host = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(1));
    host.register(at(0), game());
    talk(&mut server, &mut host, at(0), source(1));
    // A joiner that says a victim's address is its own.
    let victim = address("8.8.8.8:53");
    let mut joiner = RendezvousClient::new(address(SERVER), vec![victim], &mut Rng::seeded(2));
    joiner.join(at(0), host.code().unwrap(), 5);
    let mut out = Datagrams::new();
    joiner.transmit(at(0), &mut out);
    let mut sent = 0;
    for _ in 0..3 {
        let mut back = Datagrams::new();
        out.iter().for_each(|(_, bytes)| server.handle_datagram(at(0), UNIX, source(2), bytes, &mut back));
        out.clear();
        for (to, bytes) in back.iter() {
            let mut says = Datagrams::new();
            if to == source(2) {
                joiner.handle_datagram(at(0), address(SERVER), bytes, &mut out);
            } else {
                host.handle_datagram(at(0), address(SERVER), bytes, &mut says);
                host.transmit(at(1), &mut says);
                assert!(says.iter().all(|(to, _)| to == source(2)));
                sent += says.len();
            }
        }
    }
    assert!(sent > 0, "the host asks the joiner");
}

#[test]
fn the_relay_carries_for_nobody_without_a_token_of_its_own() {
    let config = RelayServerConfig { key: KEY, max_channels: 50, max_bytes_per_second: 1_000_000 };
    let mut relay = RelayServer::new(config, &mut Rng::seeded(1));
    let terms = |channel, side| RelayTerms {
        channel,
        side,
        expires: UnixSeconds(UNIX.0 + 10),
        bytes_per_second: 20_000,
    };
    let bind = |cookie: [u8; 8], token: RelayToken| {
        let mut bytes = vec![MAGIC, 0x31];
        bytes.extend_from_slice(&cookie);
        bytes.extend_from_slice(&token.to_bytes());
        bytes
    };
    let say = |relay: &mut RelayServer, unix: UnixSeconds, now, from, bytes: &[u8]| {
        let mut out = Datagrams::new();
        relay.handle_datagram(now, unix, from, bytes, &mut out);
        assert!(out.total_bytes() <= bytes.len(), "no answer is larger than its question");
        out.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect::<Vec<_>>()
    };
    let cookie = |relay: &mut RelayServer, from| {
        let answer = say(relay, UNIX, at(0), from, &bind([0; 8], RelayToken::new(&KEY, terms(1, true))));
        <[u8; 8]>::try_from(&answer[0].1[10..]).unwrap()
    };
    let data = |channel: u64, length| {
        let mut bytes = vec![MAGIC, 0x34];
        bytes.extend_from_slice(&channel.to_le_bytes());
        bytes.resize(length, 5);
        bytes
    };
    // Forged sources get cookies and nothing is kept.
    for n in 0..10_000 {
        let token = RelayToken::new(&KEY, terms(u64::from(n), true));
        say(&mut relay, UNIX, at(0), source(n), &bind([0; 8], token));
        say(&mut relay, UNIX, at(0), source(n), &data(u64::from(n), 1200));
    }
    assert_eq!((relay.counters().channels, relay.counters().unbound), (0, 10_000));
    let cookies: Vec<_> = (0..3).map(|n| cookie(&mut relay, source(n))).collect();
    // Tokens of another key, too old, or with the cookie of somebody else.
    let forged = RelayToken::new(&[8; 32], terms(1, true));
    assert!(say(&mut relay, UNIX, at(0), source(0), &bind(cookies[0], forged)).is_empty());
    let good = RelayToken::new(&KEY, terms(1, true));
    let late = UnixSeconds(UNIX.0 + 11);
    assert!(say(&mut relay, late, at(0), source(0), &bind(cookies[0], good)).is_empty());
    let other = say(&mut relay, UNIX, at(0), source(2), &bind(cookies[0], good));
    assert_eq!(other[0].1[1], 0x32, "a cookie of its own");
    let counters = relay.counters();
    assert_eq!((counters.forged_token, counters.expired_token, counters.channels), (1, 1, 0));
    // Both sides, and a third peer with a channel of its own.
    for (n, channel, side) in [(0, 1, true), (1, 1, false), (2, 2, true)] {
        let token = RelayToken::new(&KEY, terms(channel, side));
        assert_eq!(say(&mut relay, UNIX, at(0), source(n), &bind(cookies[n as usize], token))[0].1[1], 0x33);
    }
    assert_eq!(say(&mut relay, UNIX, at(0), source(0), &data(1, 100)), [(source(1), data(1, 100))]);
    assert_eq!(say(&mut relay, UNIX, at(0), source(1), &data(1, 100)), [(source(0), data(1, 100))]);
    assert!(say(&mut relay, UNIX, at(0), source(2), &data(1, 100)).is_empty());
    assert!(say(&mut relay, UNIX, at(0), source(2), &data(2, 100)).is_empty());
    assert_eq!((relay.counters().unbound, relay.counters().other_side_missing), (10_001, 1));
    // The token's rate holds.
    let carried =
        (0..10_000).filter(|n| !say(&mut relay, UNIX, at(n / 5), source(0), &data(1, 1000)).is_empty());
    let carried = carried.count();
    assert!((40..=52).contains(&carried), "20 kB a second for 2 seconds, and 10 kB at once: {carried}");
    assert!(relay.counters().over_rate > 9000);
    // Channels have their bound.
    for n in 0..200 {
        let token = RelayToken::new(&KEY, terms(100 + n, true));
        say(&mut relay, UNIX, at(2000), source(0), &bind(cookies[0], token));
    }
    assert_eq!((relay.counters().channels, relay.counters().full), (50, 152));
    say(&mut relay, UNIX, at(40_000), source(0), b"");
    assert_eq!((relay.counters().channels, relay.counters().forgotten), (0, 50));
}

#[test]
fn replayed_words_change_nothing() {
    // All that a pair says until both have their path, said again by somebody else.
    let mut net = two(good(), 1, [Some(NatKind::PortRestricted), Some(NatKind::Restricted)], true);
    net.meet(0, 1);
    let path = net.peers[0].path().unwrap();
    let mut probe = vec![MAGIC, 0x43];
    probe.extend_from_slice(&[0; 20]);
    let mut out = Datagrams::new();
    let now = net.now();
    for peer in &mut net.peers {
        for _ in 0..1000 {
            assert_eq!(
                peer.client.handle_datagram(now, address("6.6.6.6:6"), &probe, &mut out),
                Handled::Taken
            );
        }
    }
    assert!(out.is_empty());
    net.run(seconds(1));
    assert_eq!(net.peers[0].path(), Some(path));
}

#[test]
fn random_and_cut_datagrams_are_dropped_and_never_panic() {
    let mut rng = Rng::seeded(6);
    let mut net = two(good(), 1, [Some(NatKind::FullCone), None], true);
    let code = net.host(0);
    net.join(1, code);
    let config = RelayServerConfig { key: KEY, max_channels: 50, max_bytes_per_second: 1_000_000 };
    let mut relay = RelayServer::new(config, &mut Rng::seeded(1));
    let seeds = [
        first_words(|client| client.register(at(0), game())),
        first_words(|client| {
            client.join(at(0), code, 5);
        }),
        first_words(|client| client.list(at(0), 0)),
    ];
    for n in 0..60_000u64 {
        if n % 50 == 0 {
            net.step();
        }
        let mut bytes = match rng.below(4) {
            0 => vec![0; rng.below(600) as usize],
            seed => seeds[seed as usize - 1].clone(),
        };
        if n % 4 == 0 {
            rng.fill(&mut bytes);
        }
        (0..rng.below(4)).for_each(|_| {
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = n as u8);
        });
        if let Some(kind) = bytes.get_mut(1) {
            *kind = [0x11, 0x21, 0x31, 0x32, 0x33, 0x34, 0x41, 0x43][rng.below(8) as usize];
        }
        if let Some(kind) = bytes.get_mut([6, 14][rng.below(2) as usize]) {
            *kind = rng.below(8) as u8;
        }
        bytes.truncate(rng.below(2 + bytes.len() as u64) as usize);
        bytes.first_mut().into_iter().for_each(|first| *first = MAGIC);
        let now = net.now();
        let mut out = Datagrams::new();
        net.server.handle_datagram(now, UNIX, source(n as u32), &bytes, &mut out);
        relay.handle_datagram(now, UNIX, source(n as u32), &bytes, &mut out);
        assert!(out.total_bytes() <= 2 * bytes.len());
        let mut out = Datagrams::new();
        let from = [SERVER, RELAY, "10.0.1.2:5000"].map(address)[rng.below(3) as usize];
        net.peers[1].client.handle_datagram(now, from, &bytes, &mut out);
        net.peers[0].client.handle_datagram(now, from, &bytes, &mut out);
    }
    assert_eq!(net.peers[0].counters().introduced, 1);
    assert!(net.peers[0].counters().unexpected > 50_000);
    assert!(net.peers[1].path().is_some());
}

#[test]
fn nobody_is_introduced_without_being_there_to_hear_it() {
    let mut net = two(good(), 1, [Some(NatKind::Restricted), Some(NatKind::Restricted)], true);
    let code = net.host(0);
    // The joiner's way to the server is cut after its first question.
    net.join(1, code);
    net.step();
    let silence = Conditions::perfect().loss(1.0);
    net.network.set_conditions(None, Some(address("10.0.2.2:5000")), silence).unwrap();
    net.run(seconds(5));
    assert_eq!((net.counters().0.introduced, net.peers[0].counters().introduced), (0, 0));
    assert!(matches!(net.peers[1].events[..], [(_, RendezvousEvent::NoPath { .. })]));
    assert!(net.asked >= net.answered);
}

#[test]
fn one_source_has_a_few_attempts_of_a_host_and_leaves_room_for_others() {
    let mut server = server();
    let at_host = address("30.0.0.1:7");
    let mut host = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(3));
    host.register(at(0), game());
    talk(&mut server, &mut host, at(0), at_host);
    let code = host.code().unwrap();
    let mut knock = |host: &mut RendezvousClient, n: u64, from: SocketAddr| {
        let mut joiner = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(100 + n));
        joiner.join(at(n), code, game().protocol_id);
        let mut out = Datagrams::new();
        joiner.transmit(at(n), &mut out);
        for _ in 0..2 {
            let mut back = Datagrams::new();
            out.iter().for_each(|(_, bytes)| server.handle_datagram(at(n), UNIX, from, bytes, &mut back));
            out.clear();
            for (to, bytes) in back.iter() {
                let mut said = Datagrams::new();
                let (client, said) =
                    if to == from { (&mut joiner, &mut out) } else { (&mut *host, &mut said) };
                client.handle_datagram(at(n), address(SERVER), bytes, said);
            }
        }
    };
    (0..30).for_each(|n| knock(&mut host, n, address("6.6.6.6:6")));
    let counters = host.counters();
    assert_eq!((counters.introduced, counters.too_many > 10), (8, true), "{counters:?}");
    knock(&mut host, 40, address("7.7.7.7:7"));
    assert_eq!(host.counters().introduced, 9);
}

#[test]
fn no_datagram_comes_from_an_address_that_stands_for_a_peer() {
    let mut client = RendezvousClient::new(address(SERVER), vec![], &mut Rng::seeded(3));
    let mut out = Datagrams::new();
    let from = lobby_address("BCDFGX".parse().unwrap());
    assert_eq!(client.handle_datagram(at(0), from, &[1; 40], &mut out), Handled::Taken);
    assert_eq!((client.counters().unexpected, out.len()), (1, 0));
}
