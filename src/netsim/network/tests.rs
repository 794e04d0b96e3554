use super::*;
use crate::time::Duration;

fn host(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn network(conditions: Conditions, hosts: u16) -> Network {
    let mut network = Network::new(conditions, 1).unwrap();
    (0..hosts).for_each(|port| assert!(network.add_host(host(port))));
    network
}

#[test]
fn each_direction_of_a_pair_has_its_own_conditions() {
    let mut network = network(Conditions::perfect().latency(ms(10), ms(0)), 2);
    network
        .set_conditions(Some(host(0)), Some(host(1)), Conditions::perfect().latency(ms(30), ms(0)))
        .unwrap();
    network.send(host(0), host(1), b"there");
    network.send(host(1), host(0), b"back");
    network.advance(Instant::from_millis(10));
    assert_eq!(network.receive(host(0)), Some((host(1), b"back".to_vec())));
    assert_eq!(network.receive(host(1)), None);
    assert_eq!(network.next_delivery(), Some(Instant::from_millis(30)));
    network.advance(Instant::from_millis(30));
    assert_eq!(network.receive(host(1)), Some((host(0), b"there".to_vec())));
}

#[test]
fn the_most_precise_conditions_hold() {
    let mut network = network(Conditions::perfect(), 4);
    let late = |millis| Conditions::perfect().latency(ms(millis), ms(0));
    let arrival = |network: &mut Network, from: u16, to: u16| {
        network.send(host(from), host(to), b"when");
        let at = network.next_delivery().unwrap();
        network.advance(at);
        at - Instant::ZERO
    };
    network.set_conditions(Some(host(0)), None, late(10)).unwrap();
    network.set_conditions(None, Some(host(1)), late(20)).unwrap();
    assert_eq!(arrival(&mut network, 0, 1), ms(10));
    network.set_conditions(Some(host(0)), Some(host(1)), late(30)).unwrap();
    assert_eq!(arrival(&mut network, 0, 1), ms(10 + 30));
    assert_eq!(arrival(&mut network, 0, 2), ms(40 + 10));
    assert_eq!(arrival(&mut network, 2, 1), ms(50 + 20));
    assert_eq!(arrival(&mut network, 2, 3), ms(70));
    network.set_conditions(None, None, late(5)).unwrap();
    assert_eq!(arrival(&mut network, 0, 1), ms(70 + 5));
}

#[test]
fn what_finds_no_host_or_a_full_mailbox_is_counted() {
    let mut network = network(Conditions::perfect(), 1);
    network.send(host(0), host(9), b"nobody");
    (0..MAILBOX_CAPACITY + 5).for_each(|_| network.send(host(0), host(0), b"self"));
    network.advance(Instant::ZERO);
    let counters = network.counters();
    assert_eq!((counters.undelivered.unknown_destination, counters.undelivered.mailbox_full), (1, 5));
    assert_eq!(counters.links.delivered, MAILBOX_CAPACITY as u64);
    network.remove_host(host(0));
    assert_eq!(network.receive(host(0)), None);
    assert!(network.add_host(host(0)) && !network.add_host(host(0)));
}

#[test]
fn the_clock_never_runs_back() {
    let mut network = network(Conditions::perfect(), 1);
    network.advance(Instant::from_millis(5));
    network.advance(Instant::from_millis(3));
    assert_eq!(network.now(), Instant::from_millis(5));
}

#[test]
fn what_waits_for_a_rate_arrives_at_it_and_only_on_its_own_link() {
    let mut network = network(Conditions::perfect().rate(100_000, 10_000), 3);
    (0..3).for_each(|_| network.send(host(0), host(1), &[0; 972]));
    network.send(host(2), host(1), &[0; 72]);
    assert_eq!(network.next_delivery(), Some(Instant::from_millis(1)));
    let mut arrivals = Vec::new();
    while let Some(at) = network.next_delivery() {
        network.advance(at);
        let (from, _) = network.receive(host(1)).unwrap();
        arrivals.push((at, from));
    }
    let expected = [(1, 2), (10, 0), (20, 0), (30, 0)];
    assert_eq!(arrivals, expected.map(|(millis, from)| (Instant::from_millis(millis), host(from))));
    assert_eq!(network.in_flight(), 0);
}

#[test]
fn scheduled_conditions_hold_from_their_time_for_the_links_that_are_meant() {
    let mut network = network(Conditions::perfect(), 2);
    let silence = Conditions::perfect().loss(1.0);
    network.schedule(Instant::from_millis(40), None, None, Conditions::perfect()).unwrap();
    network.schedule(Instant::from_millis(10), Some(host(0)), None, silence).unwrap();
    let mut arrived = [0, 0];
    for millis in 0..100 {
        network.advance(Instant::from_millis(millis));
        network.send(host(0), host(1), b"there");
        network.send(host(1), host(0), b"back");
        network.advance(Instant::from_millis(millis));
        arrived[0] += u64::from(network.receive(host(1)).is_some());
        arrived[1] += u64::from(network.receive(host(0)).is_some());
    }
    assert_eq!(arrived, [70, 100]);
}

#[test]
fn a_scheduled_rate_moves_what_waits_although_nobody_calls_in_between() {
    let mut network = network(Conditions::perfect().rate(10_000, 10_000), 2);
    (0..4).for_each(|_| network.send(host(0), host(1), &[0; 972]));
    let fast = Conditions::perfect().rate(100_000, 10_000);
    network.schedule(Instant::from_millis(150), None, None, fast).unwrap();
    // One leaves at 100, the next is half through at 150, then it takes 5 for it and 10 each for the others.
    let received = |network: &mut Network, millis| {
        network.advance(Instant::from_millis(millis));
        core::iter::from_fn(|| network.receive(host(1))).count()
    };
    assert_eq!(received(&mut network, 99), 0);
    assert_eq!(received(&mut network, 154), 1);
    assert_eq!(received(&mut network, 174), 2);
    assert_eq!(received(&mut network, 175), 1);
}

#[test]
fn links_are_forgotten_with_their_hosts_once_nothing_is_under_way() {
    let mut network = network(Conditions::perfect().latency(ms(10), ms(0)), 3);
    network.send(host(0), host(1), b"kept");
    network.send(host(0), host(2), b"goodbye");
    network.send(host(2), host(0), b"too late");
    assert_eq!(network.links(), 3);
    network.remove_host(host(0));
    assert_eq!(network.links(), 3);
    network.advance(Instant::from_millis(10));
    assert_eq!(network.receive(host(2)), Some((host(0), b"goodbye".to_vec())));
    assert_eq!(network.links(), 0);
    let counters = network.counters();
    assert_eq!(
        (counters.links.sent, counters.links.delivered, counters.undelivered.unknown_destination),
        (3, 2, 1)
    );

    // Senders that are no hosts, and addresses where none is, leave nothing behind.
    network.set_conditions(None, Some(host(9)), Conditions::perfect().loss(1.0)).unwrap();
    for port in 100..1100 {
        network.send(host(port), host(1), b"from nowhere");
        network.send(host(1), host(9), b"to nowhere");
    }
    assert_eq!(network.links(), 1000);
    network.advance(Instant::from_millis(20));
    assert_eq!((network.links(), network.event_queue.len(), network.in_flight()), (0, 0, 0));
}

#[test]
fn directions_have_luck_of_their_own() {
    const N: u64 = 100_000;
    let outcomes = |both: bool| {
        let mut network = network(Conditions::perfect().loss(0.3), 2);
        let mut arrived = [Vec::new(), Vec::new()];
        for millis in 0..N {
            network.advance(Instant::from_millis(millis));
            network.send(host(0), host(1), b"there");
            if both {
                network.send(host(1), host(0), b"back");
            }
            network.advance(Instant::from_millis(millis));
            arrived[0].push(network.receive(host(1)).is_some());
            arrived[1].push(network.receive(host(0)).is_some());
        }
        arrived
    };
    let [there, back] = outcomes(true);
    assert_eq!(there, outcomes(false)[0], "what goes back changes nothing");
    let (n, p) = (N as f64, 0.3 * 0.3);
    let neither = there.iter().zip(&back).filter(|fate| *fate == (&false, &false)).count();
    assert!((neither as f64 - n * p).abs() < 3.0 * (n * p * (1.0 - p)).sqrt(), "{neither}");
}

/// 200 hosts, each talking to its neighbour 60 times a second for 30 seconds.
fn play(seed: u64) -> (u64, NetworkCounters) {
    let conditions = Conditions::perfect().latency(ms(40), ms(15)).loss(0.02).duplicate(0.01);
    let mut network = Network::new(conditions, seed).unwrap();
    (0..200).for_each(|port| assert!(network.add_host(host(port))));
    let mut digest = 0u64;
    for tick in 0..1800u64 {
        network.advance(Instant::from_millis(tick * 1000 / 60));
        for port in 0..200 {
            while let Some((from, bytes)) = network.receive(host(port)) {
                let word = u64::from(from.port()) << 32 | u64::from(bytes[0]) | tick << 8;
                digest = (digest ^ word).wrapping_mul(0x0100_0000_01B3);
            }
            network.send(host(port), host((port + 1) % 200), &[tick as u8; 20]);
        }
    }
    (digest, network.counters())
}

#[test]
fn hundreds_of_hosts_play_the_same_game_twice() {
    let (digest, counters) = play(8);
    assert_eq!((digest, counters), play(8));
    assert_ne!(digest, play(9).0);
    assert_eq!(counters.links.sent, 200 * 1800);
    assert_eq!((counters.undelivered.mailbox_full, counters.undelivered.unknown_destination), (0, 0));
}
