//! Many requests at once: the honest get in, the rest cost a bounded amount.

use core::net::SocketAddr;

use super::world::*;
use crate::netcode::send_payload;
use tickwire::limits::MAX_DATAGRAM;
use tickwire::netcode::packet::{REQUEST_BYTES, Request};
use tickwire::netcode::{ClientState, DropReason};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

/// A request that passes every test that costs little, with a token sealed by nobody.
fn forged_request(rng: &mut Rng) -> Vec<u8> {
    let mut request = Vec::new();
    Request::write(&token(1, |p| p.lifetime = Some(3600)), &mut request);
    rng.fill(&mut request[REQUEST_BYTES - 1024..]);
    request
}

#[test]
fn a_thousand_honest_clients_of_one_address_connect_without_delay() {
    let mut world = World::new(1000);
    for i in 0..1000 {
        world.add_at(SocketAddr::from(([127, 0, 0, 1], 20_000 + i)), token(u64::from(i), |_| ()));
    }
    world.run(300);
    assert_eq!(world.clients().len(), 1000);
    assert_eq!(world.dropped(DropReason::SourceLimit), 0);
    assert!(world.peers.iter().all(|p| p.connected_at == Some(Instant::from_millis(200))));
}

#[test]
fn a_hundred_thousand_forged_requests_leave_nothing_behind() {
    let (mut world, client) = World::connected();
    let mut rng = Rng::seeded(3);
    let forged = forged_request(&mut rng);
    for _ in 0..100_000 {
        let from = SocketAddr::from(((rng.next_u64() as u32).to_be_bytes(), rng.next_u64() as u16));
        assert!(world.inject(from, &forged).is_empty());
    }
    assert_eq!(world.server.half_open_count(), 0);
    let tried = world.dropped(DropReason::TokenNotAuthentic);
    assert_eq!(tried + world.dropped(DropReason::SourceLimit), 100_000);
    assert!(world.is_connected(client));
    // Amid the flood, an honest client connects.
    world.add(token(2, |_| ()));
    world.run(400);
    assert_eq!(world.state(1), ClientState::Connected);
}

/// A minute of requests and garbage from everywhere, while clients play. Run by hand, for its figures:
/// `cargo test --release a_million -- --ignored --nocapture`.
#[test]
#[ignore = "measures; the machine decides how fast"]
fn a_million_datagrams_from_everywhere_leave_the_memory_flat() {
    const TICKS: usize = 3600;
    const PER_TICK: usize = 300;
    let mut world = World::new(256);
    world.add_many(1..=200);
    world.run(1000);
    assert_eq!(world.clients().len(), 200);
    let mut rng = Rng::seeded(5);
    let forged = forged_request(&mut rng);
    let mut tick = |world: &mut World, flood: usize| {
        world.now += Duration::from_nanos(1_000_000_000 / 60);
        let (now, unix, mut out) = (world.now, world.unix(), Datagrams::new());
        let attack: Vec<_> = (0..flood)
            .map(|i| {
                let mut bytes = if i % 2 == 0 { forged.clone() } else { vec![0; rng.below(1300) as usize] };
                let random_from = if i % 2 == 0 { bytes.len() - 1024 } else { 0 };
                rng.fill(&mut bytes[random_from..]);
                (SocketAddr::from(((rng.next_u64() as u32).to_be_bytes(), rng.next_u64() as u16)), bytes)
            })
            .collect();
        for peer in &mut world.peers {
            peer.client.send_payload(now, &[1; 100], &mut out).unwrap();
        }
        let mut moves: Vec<_> =
            world.peers.iter().zip(out.iter()).map(|(p, (_, bytes))| (p.address, bytes.to_vec())).collect();
        out.clear();
        let start = std::time::Instant::now();
        for (from, mut bytes) in attack {
            world.server.handle_datagram(now, unix, from, &mut bytes, &mut out);
        }
        let flooded = start.elapsed();
        for (from, bytes) in &mut moves {
            let received = world.server.handle_datagram(now, unix, *from, bytes, &mut out);
            assert!(received.is_some());
        }
        for client in world.clients() {
            send_payload(&mut world.server, now, client, &[2; 100], &mut out).unwrap();
        }
        world.server.update(now, &mut out);
        assert_eq!(out.len(), 200, "a state for each client and no answer to anybody else");
        (flooded, start.elapsed() - flooded)
    };
    let median_and_p99 = |mut times: Vec<Duration>| {
        times.sort_unstable();
        (times[times.len() / 2], times[times.len() * 99 / 100])
    };
    let quiet = median_and_p99((0..600).map(|_| tick(&mut world, 0).1).collect());
    tick(&mut world, PER_TICK);
    let memory = resident_kib();
    let (flood, clients): (Vec<_>, Vec<_>) = (0..TICKS).map(|_| tick(&mut world, PER_TICK)).unzip();
    let each = flood.iter().sum::<Duration>() / (TICKS * PER_TICK) as u32;
    println!("{} datagrams, {each:?} each; flood of a tick: {:?}", TICKS * PER_TICK, median_and_p99(flood));
    println!("200 clients' tick, median and p99: quiet {quiet:?}, flooded {:?}", median_and_p99(clients));
    println!("resident memory: {memory} KiB before, {} KiB after", resident_kib());
    println!("{:?}", world.server.counters().iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>());
    assert!(resident_kib() < memory + 2048);
    assert_eq!((world.clients().len(), world.server.half_open_count()), (200, 0));
}

/// Where the system doesn't tell, 0.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn one_source_makes_the_server_decrypt_only_so_much() {
    let mut world = World::new(4);
    let forged = forged_request(&mut Rng::seeded(4));
    for ms in 0..1000 {
        world.now = Instant::from_millis(ms);
        (0..10).for_each(|port| drop(world.inject(address(&format!("10.6.6.6:{}", port + 1)), &forged)));
    }
    assert_eq!(world.dropped(DropReason::TokenNotAuthentic), 64 + 31);
    world.add(token(1, |_| ()));
    world.run(400);
    assert_eq!(world.state(0), ClientState::Connected, "another source is not concerned");
}

#[test]
fn a_valid_request_repeated_by_an_eavesdropper_is_limited_too() {
    let mut world = World::new(4);
    let mut request = Vec::new();
    Request::write(&token(1, |_| ()), &mut request);
    let answers: usize = (0..10_000).map(|_| world.inject(client_address(0), &request).len()).sum();
    assert_eq!(answers, 65, "the burst, and the first one refunded");
    assert_eq!(world.server.half_open_count(), 1);
}

/// Each is new to its place, but the address is not.
#[test]
fn two_tokens_of_one_address_in_turn_are_limited_too() {
    let mut world = World::new(4);
    let requests = [1, 2].map(|id| {
        let mut request = Vec::new();
        Request::write(&token(id, |_| ()), &mut request);
        request
    });
    let mut answers = 0;
    for i in 0..10_000 {
        answers += world.inject(client_address(0), &requests[i % 2]).len();
    }
    assert_eq!(answers, 65, "the burst, and the first one refunded");
}

#[test]
fn valid_tokens_in_masses_fill_no_more_than_their_places() {
    let mut small = config(4);
    small.half_open_capacity = 64;
    let mut world = World::with(small);
    let mut request = Vec::new();
    for id in 0..1000u16 {
        request.clear();
        Request::write(&token(id.into(), |_| ()), &mut request);
        world.inject(client_address(id), &request);
    }
    assert_eq!(world.server.half_open_count(), 64);
    assert_eq!(world.dropped(DropReason::HalfOpenFull) + world.dropped(DropReason::SourceLimit), 936);
}

#[test]
fn a_full_server_denies_at_a_bounded_rate_and_with_less_than_it_was_sent() {
    let (mut world, _) = World::connected();
    for id in 2..=4 {
        world.add(token(id, |_| ()));
    }
    world.run(400);
    assert_eq!(world.clients().len(), 4);
    let mut request = Vec::new();
    Request::write(&token(9, |_| ()), &mut request);
    let from = address("10.7.7.7:1");
    let answers: Vec<_> = (0..1000).flat_map(|_| world.inject(from, &request)).collect();
    assert_eq!(answers.len(), 64);
    assert!(answers.iter().all(|a| a.len() == 25));
}

#[test]
fn no_answer_is_longer_than_its_question_before_the_address_is_proven() {
    let mut world = World::new(2);
    world.loss = 0.2;
    world.add_many(1..=4);
    world.latency = Duration::from_millis(1);
    let mut sent = 0;
    for _ in 0..1000 {
        world.run(1);
        for datagram in &world.log[sent..] {
            assert!(datagram.bytes.len() <= MAX_DATAGRAM);
            match datagram.bytes[0] & 0x0F {
                1 => assert!(datagram.bytes.len() <= 25),
                2 => assert!(datagram.bytes.len() <= 333),
                _ => (),
            }
        }
        sent = world.log.len();
    }
}
