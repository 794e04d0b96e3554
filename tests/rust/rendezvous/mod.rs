//! Peers behind NATs of every kind connect: the table, and the failures on the path.

mod hostile;
mod internet;

use tickwire::netsim::{Conditions, NatKind};
use tickwire::rendezvous::{
    GameInfo, LobbyRefusal, MeetingFault, PathKind, RendezvousClient, RendezvousEvent, lobby_address,
};
use tickwire::rng::Rng;
use tickwire::time::Duration;

use crate::fuzz::rounds;
use internet::{Internet, address, game, ip};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn good() -> Conditions {
    Conditions::perfect().latency(Duration::from_millis(30), Duration::from_millis(5))
}

/// Two peers, each behind a NAT of its own or none.
fn two(conditions: Conditions, seed: u64, kinds: [Option<NatKind>; 2], second_port: bool) -> Internet {
    let mut net = Internet::new(conditions, seed, second_port);
    for (number, kind) in kinds.into_iter().enumerate() {
        let n = number + 1;
        match kind {
            Some(kind) => {
                net.add_peer(&format!("10.0.{n}.2:5000"));
                net.add_nat(&format!("203.0.113.{n}"), &[&format!("10.0.{n}.2")], kind);
            }
            None => {
                net.add_peer(&format!("192.0.2.{n}:5000"));
            }
        }
    }
    net
}

const KINDS: [Option<NatKind>; 5] = [
    None,
    Some(NatKind::FullCone),
    Some(NatKind::Restricted),
    Some(NatKind::PortRestricted),
    Some(NatKind::Symmetric),
];

/// The expected path of host and joiner: only two symmetric NATs need the relay.
fn expected(host: Option<NatKind>, joiner: Option<NatKind>) -> PathKind {
    match (host, joiner) {
        (None, _) | (_, None) => PathKind::Direct,
        (Some(NatKind::Symmetric), Some(NatKind::Symmetric)) => PathKind::Relayed,
        _ => PathKind::Punched,
    }
}

#[test]
fn each_pair_of_boxes_gets_its_path_in_time() {
    let mut slowest = Duration::ZERO;
    for host in KINDS {
        for joiner in KINDS {
            let mut net = two(good(), 1, [host, joiner], true);
            let (kind, took) = net.meet(0, 1);
            assert_eq!(kind, expected(host, joiner), "{host:?} and {joiner:?}");
            slowest = slowest.max(took);
        }
    }
    println!("slowest: {slowest:?}");
    assert!(slowest < seconds(1), "{slowest:?}");
}

#[test]
fn a_fifth_lost_and_far_away_the_table_is_the_same() {
    let far = Conditions::perfect().latency(Duration::from_millis(60), Duration::from_millis(20)).loss(0.2);
    let mut slowest = Duration::ZERO;
    for (seed, host) in KINDS.into_iter().enumerate() {
        for joiner in KINDS {
            let mut net = two(far, 10 + seed as u64, [host, joiner], true);
            let (kind, took) = net.meet(0, 1);
            // Where the datagram is lost that a port is guessed of, or the second port isn't heard, the relay is the way.
            let guessed = host != joiner && [host, joiner].contains(&Some(NatKind::Symmetric));
            let is_fine = kind == expected(host, joiner) || guessed && kind == PathKind::Relayed;
            assert!(is_fine, "{kind:?} of {host:?} and {joiner:?}");
            slowest = slowest.max(took);
        }
    }
    println!("slowest: {slowest:?}");
}

/// `TICKWIRE_FUZZ=100` runs that many seeds: a minute.
#[test]
fn other_seeds_lose_other_datagrams_and_find_a_path_in_time() {
    let far = Conditions::perfect().latency(Duration::from_millis(60), Duration::from_millis(20)).loss(0.2);
    let mut times = Vec::new();
    for seed in 0..rounds(1) {
        for host in KINDS {
            for joiner in KINDS {
                let mut net = two(far, 1_000 + seed, [host, joiner], true);
                let met = net.meet_within(0, 1, seconds(20));
                let (kind, took) = met.unwrap_or_else(|| panic!("{host:?} and {joiner:?} with {seed}"));
                times.push((took, seed, host, joiner, kind));
            }
        }
    }
    times.sort_by_key(|met| met.0);
    let late = times.iter().filter(|met| met.0 >= seconds(3)).count();
    let median = times[times.len() / 2].0;
    println!("{late} of {} too late, median {median:?}, worst {:?}", times.len(), times.last());
    assert!(late * 1_000 <= times.len(), "{late} of {}: {:?}", times.len(), times.last());
}

#[test]
fn without_a_second_port_nobody_guesses_and_the_relay_is_there() {
    let mut net = two(good(), 1, [KINDS[3], KINDS[4]], false);
    let (kind, took) = net.meet(0, 1);
    assert_eq!(kind, PathKind::Relayed);
    assert!(took < seconds(2), "{took:?}");
    let mut net = two(good(), 1, [KINDS[2], KINDS[4]], false);
    assert_eq!(net.meet(0, 1).0, PathKind::Punched, "who looks at hosts only lets any port in");
}

#[test]
fn a_box_whose_ports_others_take_meanwhile_is_not_guessed() {
    let mut net = two(good(), 1, [KINDS[3], None], true);
    let busy = net.add_peer("10.0.9.2:5000");
    net.add_nat("203.0.113.9", &["10.0.9.2", "10.0.9.3"], NatKind::Symmetric);
    // Its own side tells the truth, and then a neighbour takes 40 ports.
    let code = net.host(0);
    net.join(busy, code);
    while net.counters().0.introduced == 0 {
        net.step();
    }
    for port in 1..=40 {
        net.network.send(address("10.0.9.3:1"), address(&format!("192.0.2.77:{port}")), b"elsewhere");
    }
    net.run(seconds(3));
    assert_eq!(net.peers[busy].path().map(|path| path.2), Some(PathKind::Relayed));
    net.check_carries(0, busy);
}

/// Two peers behind one NAT.
fn neighbours(kind: NatKind) -> Internet {
    let mut net = Internet::new(good(), 3, true);
    net.add_peer("10.0.1.2:5000");
    net.add_peer("10.0.1.3:5000");
    net.add_nat("203.0.113.1", &["10.0.1.2", "10.0.1.3"], kind);
    net
}

#[test]
fn neighbours_meet_inside_else_by_their_box_else_by_the_relay() {
    for (_, kind) in NatKind::NAMED {
        let mut net = neighbours(kind);
        let (path, _) = net.meet(0, 1);
        assert_eq!((path, net.peers[1].path().unwrap().1), (PathKind::Direct, address("10.0.1.2:5000")));
        // They don't know their own addresses.
        let blind = |net: &mut Internet| {
            for (seed, peer) in net.peers.iter_mut().enumerate() {
                let server = address(internet::SERVER);
                peer.client = RendezvousClient::new(server, vec![], &mut Rng::seeded(seed as u64));
            }
        };
        let mut net = neighbours(kind);
        blind(&mut net);
        let (path, _) = net.meet(0, 1);
        let by_hairpin = if kind == NatKind::Symmetric { PathKind::Relayed } else { PathKind::Punched };
        assert_eq!(path, by_hairpin, "{kind:?} {:?}", net.network.counters());
        let mut net = neighbours(kind);
        blind(&mut net);
        assert!(net.network.set_hairpin(ip("203.0.113.1"), false));
        assert_eq!(net.meet(0, 1).0, PathKind::Relayed, "{kind:?}");
    }
}

#[test]
fn a_box_that_loses_its_mappings_is_found_again() {
    let mut net = two(good(), 1, [KINDS[3], KINDS[3]], true);
    net.meet(0, 1);
    net.network.restart_nat(ip("203.0.113.1"));
    net.run(seconds(11));
    let news = net.peers[0].events.iter().rev().find_map(|(_, event)| match event {
        RendezvousEvent::Registered { outside, .. } => Some(*outside),
        _ => None,
    });
    assert_eq!(news, net.peers[0].client.outside());
    net.peers.iter_mut().for_each(|peer| peer.events.clear());
    let code = net.peers[0].client.code().unwrap();
    net.join(1, code);
    net.run(seconds(3));
    net.check_carries(0, 1);
}

#[test]
fn a_way_by_the_relay_outlives_the_boxes_mappings() {
    let mut net = two(good(), 1, [KINDS[4], KINDS[4]], true);
    assert_eq!(net.meet(0, 1).0, PathKind::Relayed);
    net.network.restart_nat(ip("203.0.113.1"));
    net.network.restart_nat(ip("203.0.113.2"));
    net.run(seconds(9));
    net.check_carries(0, 1);
    let way = net.peers[0].path().unwrap().1;
    // A dropped path sends nothing any more, and the relay forgets it.
    net.peers.iter_mut().for_each(|peer| peer.client.forget(way));
    net.run(seconds(40));
    assert_eq!(net.counters().1.channels, 0);
    let carried = net.counters().1.forwarded;
    net.send(0, way, b"nowhere");
    net.run(seconds(1));
    assert_eq!(net.counters().1.forwarded, carried);
}

#[test]
fn many_joiners_meet_one_host() {
    let mut net = two(good(), 1, [KINDS[3], None], true);
    for n in 3..15 {
        net.add_peer(&format!("10.0.{n}.2:5000"));
        let (_, kind) = NatKind::NAMED[n % 3];
        net.add_nat(&format!("203.0.113.{n}"), &[&format!("10.0.{n}.2")], kind);
    }
    let code = net.host(0);
    let joiners = net.peers.len();
    for joiner in 1..joiners {
        net.join(joiner, code);
    }
    net.run(seconds(3));
    assert!((1..joiners).all(|joiner| net.peers[joiner].path().is_some()));
    assert_eq!(net.peers[0].counters().introduced, joiners as u64 - 1);
}

#[test]
fn what_the_server_refuses_has_a_reason_and_silence_is_noticed() {
    let mut net = two(good(), 1, [KINDS[1], KINDS[2]], true);
    let code = net.host(0);
    let now = net.now();
    net.peers[1].client.join(now, "XXXXXX".parse().unwrap(), 5).unwrap();
    net.peers[1].client.join(now, code, 6).unwrap();
    net.run(seconds(1));
    let full = GameInfo { players: 4, ..game() };
    let now = net.now();
    net.peers[0].client.register(now, full);
    net.run(seconds(1));
    let last = net.join(1, code);
    net.run(seconds(1));
    let refusals: Vec<_> = net.peers[1]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            RendezvousEvent::Refused { refusal, join } => Some((*refusal, *join == last)),
            _ => None,
        })
        .collect();
    let expected =
        [(LobbyRefusal::UnknownCode, false), (LobbyRefusal::Protocol, false), (LobbyRefusal::GameFull, true)];
    assert_eq!(refusals, expected);
    // The server is gone.
    net.peers[1].events.clear();
    net.network.remove_host(address(internet::SERVER));
    let join = net.join(1, code);
    net.run(seconds(4));
    let expected = RendezvousEvent::NoPath { join: Some(join), server_answered: false };
    assert_eq!(net.peers[1].events.iter().map(|it| &it.1).collect::<Vec<_>>(), [&expected]);
    assert_eq!(net.peers[0].client.fault(), None);
    net.run(seconds(12));
    assert!(net.peers[0].events.iter().any(|it| it.1 == RendezvousEvent::ServerSilent));
    assert_eq!(net.peers[0].client.fault(), Some(MeetingFault::Silent));
}

#[test]
fn the_address_of_a_code_says_why_its_host_was_not_reached() {
    let mut net = two(good(), 1, [KINDS[4], KINDS[4]], false);
    let code = net.host(0);
    net.network.remove_host(address(internet::RELAY));
    let unknown = "XXXXXX".parse().unwrap();
    // Without a game of its own, a peer asks at once.
    net.peers[1].client.dial_codes(5);
    let mut faults = Vec::new();
    for _ in 0..80 {
        for code in [unknown, code] {
            net.send(1, lobby_address(code), b"\x00request");
            faults.push(net.peers[1].client.fault_of(lobby_address(code)));
        }
        net.run(Duration::from_millis(100));
    }
    faults.dedup();
    let refused = MeetingFault::Refused(LobbyRefusal::UnknownCode);
    let (last, others) = faults.split_last_chunk::<2>().map(|(others, last)| (last, others)).unwrap();
    assert_eq!(last, &[Some(refused), Some(MeetingFault::NoPath)]);
    assert!(others.starts_with(&[None, Some(refused), None, Some(refused)]));
    assert_eq!(net.peers[1].client.fault_of("192.0.2.1:5".parse().unwrap()), None);
}

#[test]
fn the_list_has_all_listed_games_of_a_protocol() {
    let mut net = Internet::new(good(), 1, true);
    for n in 0..40 {
        net.add_peer(&format!("192.0.2.{}:5", n + 1));
        let now = net.now();
        let title = format!("Game {n} ✓");
        let listed = n % 8 != 0;
        net.peers[n].client.register(now, GameInfo { title, listed, ..game() });
    }
    net.run(seconds(2));
    let asker = net.add_peer("192.0.2.99:5");
    let now = net.now();
    net.peers[asker].client.list(now, 5);
    net.run(seconds(1));
    let Some((_, RendezvousEvent::Games(games))) = net.peers[asker].events.pop() else { panic!() };
    assert_eq!(games.len(), 35);
    assert!(games.iter().all(|game| game.info.listed && game.info.title.ends_with('✓')));
    let now = net.now();
    net.peers[asker].client.list(now, 6);
    net.run(seconds(1));
    assert_eq!(net.peers[asker].events.pop().unwrap().1, RendezvousEvent::Games(Vec::new()));
    // Who says so is gone at once, and who falls silent a while later.
    let mut out = tickwire::store::Datagrams::new();
    net.peers[1].client.unregister(&mut out);
    net.carry(address("192.0.2.2:5"), &out);
    let gone = RendezvousClient::new(address(internet::SERVER), vec![], &mut Rng::seeded(1));
    net.peers[2].client = gone;
    net.run(seconds(1));
    assert_eq!((net.counters().0.games, net.counters().0.unregistered), (39, 1));
    net.run(seconds(35));
    assert_eq!((net.counters().0.games, net.counters().0.forgotten), (38, 1));
}

#[test]
fn who_sends_to_a_codes_address_reaches_its_host() {
    for kinds in [[KINDS[3], KINDS[2]], [KINDS[4], KINDS[4]]] {
        let mut net = two(good(), 1, kinds, true);
        let code = net.host(0);
        let now = net.now();
        net.peers[1].client.dial_codes(5);
        net.peers[1].client.register(now, game());
        let place = lobby_address(code);
        for _ in 0..30 {
            net.send(1, place, b"\x00request");
            net.run(Duration::from_millis(100));
        }
        let (from, bytes) = net.peers[0].got.last().cloned().unwrap();
        assert_eq!(bytes, b"\x00request");
        net.send(0, from, b"\x01answer");
        net.run(Duration::from_millis(100));
        let seen = net.peers[1].got.last().cloned().unwrap();
        let expected = match net.peers[1].path().unwrap().2 {
            PathKind::Relayed => place,
            _ => from_of(&net, place),
        };
        assert_eq!(seen.1, b"\x01answer");
        assert_eq!(net.peers[1].client.known_as(seen.0), expected);
        // The box forgets all: whoever dials anew is led anew.
        net.network.restart_nat(ip("203.0.113.1"));
        net.run(seconds(15));
        net.peers[0].got.clear();
        for _ in 0..30 {
            net.send(1, place, b"\x00request");
            net.run(Duration::from_millis(100));
        }
        assert!(!net.peers[0].got.is_empty());
    }
}

/// As what the driver gives what came from the host.
fn from_of(net: &Internet, place: std::net::SocketAddr) -> std::net::SocketAddr {
    assert_eq!(net.peers[1].client.known_as(net.peers[1].path().unwrap().1), place);
    place
}
