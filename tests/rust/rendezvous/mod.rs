//! Peers behind boxes of every kind find each other: the table, and what may go wrong on the way.

mod internet;

use tickwire::netsim::{Conditions, NatKind};
use tickwire::rendezvous::{GameInfo, LobbyRefusal, PathKind, RendezvousEvent};
use tickwire::time::Duration;

use internet::{Internet, address, game, ip};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn good() -> Conditions {
    Conditions::perfect().latency(Duration::from_millis(30), Duration::from_millis(5))
}

/// Two peers, each behind a box of its own or none.
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

/// What is expected of host and joiner: only two boxes that take a port for each destination need the relay.
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
