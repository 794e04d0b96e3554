//! The virtual network as an internet: boxes that translate addresses, partitions, hosts that move.

use core::net::{IpAddr, SocketAddr};

use tickwire::netsim::topology::NatError;
use tickwire::netsim::{Conditions, NatKind, Network};
use tickwire::time::{Duration, Instant};

const LIFETIME: Duration = Duration::from_secs(30);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A network with a latency of 10 ms and hosts at these addresses.
fn network(hosts: &[&str]) -> Network {
    let conditions = Conditions::perfect().latency(Duration::from_millis(10), Duration::ZERO);
    let mut network = Network::new(conditions, 1).unwrap();
    hosts.iter().for_each(|host| assert!(network.add_host(address(host))));
    network
}

/// Sends, lets it arrive, and says from where it was seen to come.
fn arrives(network: &mut Network, from: &str, to: impl ToString, at: &str) -> Option<SocketAddr> {
    network.send(address(from), address(&to.to_string()), b"hello");
    network.advance(network.now() + Duration::from_millis(10));
    network.receive(address(at)).map(|(seen, _)| seen)
}

#[test]
fn those_behind_a_box_are_seen_as_its_ports_and_are_answered_there() {
    let (server, player) = ("198.51.100.1:40000", "10.0.0.2:5000");
    let mut network = network(&[server, player, "10.0.0.3:5000", "198.51.100.9:1"]);
    network
        .add_nat(ip("203.0.113.1"), &[ip("10.0.0.2"), ip("10.0.0.3")], NatKind::PortRestricted, LIFETIME)
        .unwrap();
    assert_eq!(arrives(&mut network, server, player, player), None, "there is no such address outside");
    assert_eq!(network.counters().undelivered.unknown_destination, 1);

    let seen = arrives(&mut network, player, server, server).unwrap();
    assert_eq!(seen.ip(), ip("203.0.113.1"));
    assert_eq!(arrives(&mut network, server, seen, player), Some(address(server)));
    assert_eq!(arrives(&mut network, "198.51.100.9:1", seen, player), None);
    assert_eq!(network.counters().undelivered.nat_filtered, 1);

    let inside = arrives(&mut network, player, "10.0.0.3:5000", "10.0.0.3:5000");
    assert_eq!(inside, Some(address(player)), "within, addresses are what they are");
    network.advance(network.now() + LIFETIME);
    assert_eq!(arrives(&mut network, server, seen, player), None);
    assert_eq!(network.counters().undelivered.nat_unmapped, 1);
    let counters = network.counters();
    assert_eq!((counters.links.sent, counters.links.delivered), (6, 3));
}

#[test]
fn two_boxes_are_punched_unless_both_look_at_ports_and_one_changes_them() {
    let kinds = NatKind::NAMED.map(|(_, kind)| kind);
    let strict = |kind| matches!(kind, NatKind::PortRestricted | NatKind::Symmetric);
    for one in kinds {
        for other in kinds {
            let (a, b, meeting) = ("10.0.1.2:5", "10.0.2.2:5", "198.51.100.1:1");
            let mut network = network(&[a, b, meeting]);
            network.add_nat(ip("203.0.113.1"), &[ip("10.0.1.2")], one, LIFETIME).unwrap();
            network.add_nat(ip("203.0.113.2"), &[ip("10.0.2.2")], other, LIFETIME).unwrap();
            // Both learn at a meeting place how the other one is seen, then send there, and answer whom they hear.
            let a_seen = arrives(&mut network, a, meeting, meeting).unwrap();
            let b_seen = arrives(&mut network, b, meeting, meeting).unwrap();
            let mut heard = false;
            for _ in 0..3 {
                network.send(address(a), b_seen, b"punch");
                network.send(address(b), a_seen, b"punch");
                network.advance(network.now() + Duration::from_millis(10));
                for (host, other) in [(a, b), (b, a)] {
                    while let Some((from, _)) = network.receive(address(host)) {
                        heard |= arrives(&mut network, host, from, other).is_some();
                    }
                }
            }
            let blocked =
                strict(one) && strict(other) && (one == NatKind::Symmetric || other == NatKind::Symmetric);
            assert_eq!(heard, !blocked, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn conditions_of_a_host_behind_a_box_are_those_of_its_own_address() {
    let (server, player) = ("198.51.100.1:40000", "10.0.0.2:5000");
    let mut network = network(&[server, player]);
    network.add_nat(ip("203.0.113.1"), &[ip("10.0.0.2")], NatKind::Symmetric, LIFETIME).unwrap();
    let seen = arrives(&mut network, player, server, server).unwrap();
    let silent = Conditions::perfect().loss(1.0);
    network.set_conditions(None, Some(address(player)), silent).unwrap();
    assert_eq!(arrives(&mut network, server, seen, player), None);
    assert_eq!(network.counters().links.lost, 1);
    assert_eq!(arrives(&mut network, player, server, server), Some(seen));
}

#[test]
fn a_restarted_box_gives_other_ports() {
    let (server, player) = ("198.51.100.1:40000", "10.0.0.2:5000");
    let mut network = network(&[server, player]);
    network.add_nat(ip("203.0.113.1"), &[ip("10.0.0.2")], NatKind::FullCone, LIFETIME).unwrap();
    let seen = arrives(&mut network, player, server, server).unwrap();
    assert!(network.restart_nat(ip("203.0.113.1")) && !network.restart_nat(ip("203.0.113.2")));
    assert_eq!(arrives(&mut network, server, seen, player), None);
    assert_ne!(arrives(&mut network, player, server, server), Some(seen));
}

#[test]
fn parts_of_a_network_do_not_reach_each_other_until_it_heals() {
    let [a, b, c] = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"];
    let mut network = network(&[a, b, c]);
    network.send(address(a), address(b), b"under way");
    network.partition(&[vec![address(a)], vec![address(b)]]);
    network.advance(Instant::from_millis(10));
    assert_eq!(network.receive(address(b)), Some((address(a), b"under way".to_vec())));
    assert_eq!(arrives(&mut network, a, b, b), None);
    assert_eq!(arrives(&mut network, b, a, a), None);
    assert_eq!(arrives(&mut network, a, c, c), Some(address(a)));
    assert_eq!(arrives(&mut network, c, b, b), Some(address(c)));
    assert_eq!((network.counters().undelivered.partitioned, network.counters().links.sent), (2, 3));

    assert!(network.move_host(address(b), address("10.9.9.9:1")));
    assert_eq!(arrives(&mut network, a, "10.9.9.9:1", "10.9.9.9:1"), None, "moving doesn't help");
    network.partition(&[]);
    assert_eq!(arrives(&mut network, a, "10.9.9.9:1", "10.9.9.9:1"), Some(address(a)));
}

#[test]
fn a_host_that_moves_keeps_its_mail_and_nothing_more_comes_to_the_old_address() {
    let [a, b, elsewhere] = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"];
    let mut network = network(&[a, b]);
    network.send(address(a), address(b), b"here");
    network.advance(Instant::from_millis(10));
    network.send(address(a), address(b), b"late");
    assert!(!network.move_host(address(b), address(a)), "taken");
    assert!(!network.move_host(address(elsewhere), address("10.0.0.4:1")), "nobody");
    assert!(network.move_host(address(b), address(elsewhere)));
    network.advance(Instant::from_millis(20));
    assert_eq!(network.receive(address(elsewhere)), Some((address(a), b"here".to_vec())));
    assert_eq!(
        (network.receive(address(elsewhere)), network.counters().undelivered.unknown_destination),
        (None, 1)
    );
    assert_eq!(arrives(&mut network, elsewhere, a, a), Some(address(elsewhere)));
}

#[test]
fn boxes_that_cannot_be_are_refused() {
    let mut network = network(&["10.0.0.1:1"]);
    let [host, inside, public] = ["10.0.0.1", "10.0.0.2", "203.0.113.1"].map(ip);
    let mut add =
        |public, inside: &[IpAddr], lifetime| network.add_nat(public, inside, NatKind::FullCone, lifetime);
    assert_eq!(add(host, &[inside], LIFETIME), Err(NatError::AddressInUse(host)));
    assert_eq!(add(public, &[public], LIFETIME), Err(NatError::AddressInUse(public)));
    assert_eq!(add(public, &[inside], Duration::ZERO), Err(NatError::Lifetime(Duration::ZERO)));
    assert_eq!(add(public, &[inside], LIFETIME), Ok(()));
    assert_eq!(add(public, &[], LIFETIME), Err(NatError::AddressInUse(public)));
    assert_eq!(add(ip("203.0.113.2"), &[inside], LIFETIME), Err(NatError::AddressInUse(inside)));
    assert!(!network.add_host(SocketAddr::new(public, 5)), "its ports are its own");
}

#[test]
fn the_transcript_tells_runs_apart_by_bytes_times_and_addresses() {
    let run = |bytes: &[u8], millis, to: &str| {
        let mut network = network(&["10.0.0.1:1"]);
        network.advance(Instant::from_millis(millis));
        network.send(address("10.0.0.1:1"), address(to), bytes);
        network.transcript()
    };
    let first = run(b"hello", 5, "10.0.0.2:1");
    assert_eq!(first, run(b"hello", 5, "10.0.0.2:1"));
    for other in
        [run(b"hallo", 5, "10.0.0.2:1"), run(b"hello", 6, "10.0.0.2:1"), run(b"hello", 5, "10.0.0.2:2")]
    {
        assert_ne!(first, other);
    }
}
