//! The plain virtual connection, in virtual time: its bytes, who may connect, when it ends, what an attacker gets.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use tickwire::articles::{
    VirtualConfig, VirtualConnection, VirtualDrop, VirtualEvent, VirtualSendError, VirtualState,
};
use tickwire::netsim::{Conditions, Link};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

const PROTOCOL: u32 = 0x5457_4952;
const TICK: Duration = Duration::from_micros(16_667);

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 168, 0, 1], port))
}

fn server() -> SocketAddr {
    address(1)
}

fn client() -> SocketAddr {
    address(2)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn listen() -> VirtualConnection {
    VirtualConnection::listen(VirtualConfig::new(PROTOCOL)).unwrap()
}

fn connect() -> VirtualConnection {
    VirtualConnection::connect(Instant::ZERO, VirtualConfig::new(PROTOCOL), server()).unwrap()
}

fn sent(connection: &mut VirtualConnection, now: Instant, payload: &[u8]) -> Vec<u8> {
    let mut out = Datagrams::new();
    connection.send(now, payload, &mut out).unwrap();
    assert_eq!(out.len(), 1);
    out.iter().next().unwrap().1.to_vec()
}

fn updated(connection: &mut VirtualConnection, now: Instant) -> Vec<Vec<u8>> {
    let mut out = Datagrams::new();
    connection.update(now, &mut out);
    out.iter().map(|(_, datagram)| datagram.to_vec()).collect()
}

fn events(connection: &mut VirtualConnection) -> Vec<VirtualEvent> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

fn acked(connection: &mut VirtualConnection) -> Vec<u16> {
    let mut acked = Vec::new();
    connection.poll_acked(&mut acked);
    acked
}

/// The datagram of a packet, its checksum made by other code than the connection's.
fn datagram(protocol_id: u32, packet: &[u8]) -> Vec<u8> {
    let crc = packet.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 })
    });
    [&protocol_id.to_le_bytes()[..], &(!crc).to_le_bytes(), packet].concat()
}

/// Two ends and the links between them.
struct Peers {
    now: Instant,
    ends: [VirtualConnection; 2],
    links: [Link<Vec<u8>>; 2],
    received: [Vec<Vec<u8>>; 2],
    longest_silence: [Duration; 2],
    last_sent: [Instant; 2],
}

impl Peers {
    /// The client, then the server; `conditions` in the same order, of what each sends.
    fn new(conditions: [Conditions; 2]) -> Self {
        let [up, down] = conditions;
        Peers {
            now: Instant::ZERO,
            ends: [connect(), listen()],
            links: [Link::new(up, 1).unwrap(), Link::new(down, 2).unwrap()],
            received: Default::default(),
            longest_silence: Default::default(),
            last_sent: Default::default(),
        }
    }

    /// Each end receives, sends the payload if it has one, and is updated.
    fn tick(&mut self, payloads: [Option<&[u8]>; 2]) -> [Option<u16>; 2] {
        self.now += TICK;
        let mut numbers = [None; 2];
        for (i, payload) in payloads.into_iter().enumerate() {
            let from = [server(), client()][i];
            while let Some(datagram) = self.links[1 - i].poll(self.now) {
                if let Ok(Some(payload)) = self.ends[i].handle_datagram(self.now, from, &datagram) {
                    self.received[i].push(payload.to_vec());
                }
            }
            let mut out = Datagrams::new();
            numbers[i] = payload.and_then(|payload| self.ends[i].send(self.now, payload, &mut out).ok());
            self.ends[i].update(self.now, &mut out);
            for (_, datagram) in out.iter() {
                assert!(datagram.len() <= 1200);
                self.links[i].send(self.now, datagram.to_vec(), datagram.len());
                self.longest_silence[i] = self.longest_silence[i].max(self.now - self.last_sent[i]);
                self.last_sent[i] = self.now;
            }
        }
        numbers
    }

    fn silent_ticks(&mut self, count: usize) {
        for _ in 0..count {
            self.tick([None, None]);
        }
    }
}

#[test]
fn the_bytes_are_protocol_id_checksum_header_and_payload() {
    let (mut client_end, mut server_end) = (connect(), listen());
    // id "RIWT" | crc-32 | prefix: five flags | sequence 0 | ack 1 behind it: 65,535 | no ack bits | "hi"
    let hello = sent(&mut client_end, Instant::ZERO, b"hi");
    assert_eq!(hex::encode(&hello), "524957541ae98daa3e000001000000006869");
    assert_eq!(server_end.handle_datagram(Instant::ZERO, client(), &hello), Ok(Some(&b"hi"[..])));
    // The same fields: ack 0, of which bit 0 is set; and nothing behind them.
    let answer = updated(&mut server_end, Instant::ZERO).remove(0);
    assert_eq!(hex::encode(&answer), "5249575443f9d94d3e00000001000000");
    assert_eq!(client_end.handle_datagram(Instant::ZERO, server(), &answer), Ok(None));
    assert_eq!(acked(&mut client_end), [0]);
    assert_eq!(hello, datagram(PROTOCOL, &hello[8..]));
}

#[test]
fn two_peers_talk() {
    let mut peers = Peers::new([Conditions::perfect(); 2]);
    peers.silent_ticks(3);
    assert_eq!(events(&mut peers.ends[0]), [VirtualEvent::Connected { peer: server() }]);
    assert_eq!(events(&mut peers.ends[1]), [VirtualEvent::Connected { peer: client() }]);
    let numbers = peers.tick([Some(b"ping"), Some(b"pong")]);
    peers.silent_ticks(10);
    assert_eq!(peers.received, [[b"pong".to_vec()], [b"ping".to_vec()]]);
    for (end, number) in peers.ends.iter_mut().zip(numbers) {
        assert!(acked(end).contains(&number.unwrap()));
    }
}

#[test]
fn only_a_good_datagram_connects_and_only_the_peers_count_then() {
    let mut end = listen();
    let hello = sent(&mut connect(), Instant::ZERO, b"hello");
    let mut bad_checksum = hello.clone();
    bad_checksum[12] ^= 1;
    let mut bad_id = hello.clone();
    bad_id[0] ^= 1;
    let no_packet = datagram(PROTOCOL, &[0x3E, 0, 0]);
    let cases = [
        (&hello[..7], "too_short"),
        (&bad_id, "wrong_protocol_id"),
        (&bad_checksum, "wrong_checksum"),
        (&no_packet, "packets_dropped"),
    ];
    for (datagram, counter) in cases {
        assert!(end.handle_datagram(Instant::ZERO, client(), datagram).is_err());
        assert!(end.counters().iter().any(|(name, count)| name == counter && count == 1), "{counter}");
        assert_eq!((end.state(), end.peer()), (VirtualState::Listening, None));
        assert_eq!(updated(&mut end, Instant::ZERO), [[0u8; 0]; 0], "nobody is answered");
    }
    assert_eq!(end.handle_datagram(Instant::ZERO, client(), &hello), Ok(Some(&b"hello"[..])));
    assert_eq!(end.state(), VirtualState::Connected);
    let stranger = sent(&mut connect(), Instant::ZERO, b"me too");
    assert_eq!(end.handle_datagram(Instant::ZERO, address(3), &stranger), Err(VirtualDrop::Stranger));
    assert!(end.handle_datagram(Instant::ZERO, client(), &hello).is_err(), "each packet counts once");
    assert_eq!((end.peer(), end.counters().strangers), (Some(client()), 1));
}

#[test]
fn a_silent_peer_times_out_and_the_server_listens_again() {
    let mut peers = Peers::new([Conditions::perfect(); 2]);
    peers.silent_ticks(60);
    peers.ends.iter_mut().for_each(|end| drop(events(end)));
    peers.links[0].set_conditions(Conditions::perfect().loss(1.0)).unwrap();
    peers.links[1].set_conditions(Conditions::perfect().loss(1.0)).unwrap();
    peers.silent_ticks(590);
    assert!(peers.ends.iter().all(|end| end.state() == VirtualState::Connected), "10 s are not over");
    peers.silent_ticks(20);
    let [old, server_end] = &mut peers.ends;
    assert_eq!(events(old), [VirtualEvent::TimedOut { peer: server() }]);
    assert_eq!(events(server_end), [VirtualEvent::TimedOut { peer: client() }]);
    assert_eq!((old.state(), server_end.state()), (VirtualState::Ended, VirtualState::Listening));
    let mut out = Datagrams::new();
    assert_eq!(old.send(peers.now, b"late", &mut out), Err(VirtualSendError::NoPeer));

    let mut next = VirtualConnection::connect(peers.now, VirtualConfig::new(PROTOCOL), server()).unwrap();
    let hello = sent(&mut next, peers.now, b"next");
    assert_eq!(server_end.handle_datagram(peers.now, address(9), &hello), Ok(Some(&b"next"[..])));
    assert_eq!(server_end.peer(), Some(address(9)));
    assert_eq!(old.handle_datagram(peers.now, server(), &hello), Err(VirtualDrop::Ended));
    assert!(server_end.packet_counters().received > 10, "those of both clients");
}

#[test]
fn a_server_that_never_answers_is_told_from_one_that_falls_silent() {
    let mut end = connect();
    let sent: usize = (0..=600).map(|tick| updated(&mut end, Instant::ZERO + TICK * tick).len()).sum();
    assert_eq!(events(&mut end), [VirtualEvent::NoAnswer { peer: server() }]);
    assert_eq!((end.state(), end.counters().timed_out), (VirtualState::Ended, 1));
    assert!((100..130).contains(&sent), "{sent} packets in 10 seconds");
}

#[test]
fn a_packet_goes_out_at_least_each_100_milliseconds() {
    let mut peers = Peers::new([Conditions::perfect().latency(ms(30), ms(0)); 2]);
    peers.silent_ticks(20);
    peers.longest_silence = Default::default();
    peers.silent_ticks(600);
    for silence in peers.longest_silence {
        assert!((ms(80)..=ms(100)).contains(&silence), "{silence:?}");
    }
}

#[test]
fn over_a_bad_link_payloads_arrive_intact_at_most_once_and_each_packet_is_acked_or_lost() {
    let bad = Conditions::perfect().latency(ms(80), ms(60)).loss(0.2).duplicate(0.1).reorder(0.1, ms(50));
    let mut peers = Peers::new([bad; 2]);
    let mut rng = Rng::seeded(3);
    let (mut carried, mut acks, mut losses) = (HashMap::new(), Vec::new(), Vec::new());
    for tick in 0..3000u32 {
        let bytes = if rng.chance(0.05) { rng.below(20_000) } else { rng.below(300) } as usize;
        let payload = [&tick.to_le_bytes()[..], &vec![tick as u8; bytes]].concat();
        let [number, _] = peers.tick([Some(&payload), None]);
        carried.insert(number.unwrap(), tick);
        peers.ends[0].poll_acked(&mut acks);
        peers.ends[0].poll_lost(&mut losses);
    }
    for _ in 0..120 {
        peers.silent_ticks(1);
        peers.ends[0].poll_acked(&mut acks);
        peers.ends[0].poll_lost(&mut losses);
    }
    let mut arrived = vec![0; 3000];
    for payload in &peers.received[1] {
        let tick = u32::from_le_bytes(payload[..4].try_into().unwrap());
        assert!(payload[4..].iter().all(|byte| *byte == tick as u8));
        arrived[tick as usize] += 1;
    }
    assert!(arrived.iter().all(|times| *times <= 1));
    let mut fate: HashMap<u16, u32> = HashMap::new();
    acks.iter().chain(&losses).for_each(|number| *fate.entry(*number).or_default() += 1);
    assert!(carried.keys().all(|number| fate[number] == 1), "acked or lost, and one of them once");
    let acked = acks.iter().filter_map(|number| carried.get(number));
    assert!(acked.clone().all(|tick| arrived[*tick as usize] == 1), "what is acked did arrive");
    assert!(acked.count() > 2000 && losses.len() > 400, "{} lost", losses.len());
}

#[test]
fn whoever_forges_an_address_gets_one_datagram_for_each_and_none_larger() {
    let mut end = listen();
    let mut forger = connect();
    let (mut into, mut out) = (Vec::new(), Vec::new());
    let mut batch = Datagrams::new();
    for tick in 0..300u32 {
        let now = Instant::ZERO + TICK * tick;
        if tick % 10 == 0 {
            let datagram = sent(&mut forger, now, &[7; 30]);
            end.handle_datagram(now, client(), &datagram).unwrap();
            into.push(datagram.len());
        }
        // The application sends all it can.
        while end.send(now, b"state of the world", &mut batch).is_ok() {}
        end.update(now, &mut batch);
        assert!(batch.len() <= into.len());
    }
    out.extend(batch.iter().map(|(_, datagram)| datagram.len()));
    assert_eq!(out.len(), into.len(), "one for each");
    assert!(out.iter().zip(&into).all(|(out, into)| out <= into), "{out:?} for {into:?}");
    let error = end.send(Instant::ZERO, &[0; 9], &mut batch).unwrap_err();
    assert_eq!(error, VirtualSendError::Unproven { bytes: 9, bound: None });
    let last = sent(&mut forger, Instant::ZERO, b"abc");
    end.handle_datagram(Instant::ZERO, client(), &last).unwrap();
    let error = end.send(Instant::ZERO, &[0; 9], &mut batch).unwrap_err();
    assert_eq!(error, VirtualSendError::Unproven { bytes: 9, bound: Some(3) }, "of 19 bytes, 8 + 8 are ours");
}

#[test]
fn a_client_connects_however_many_of_its_first_packets_are_lost() {
    for lost in [0u32, 1, 5, 40, 300] {
        let mut peers = Peers::new([Conditions::perfect().loss(1.0), Conditions::perfect()]);
        for _ in 0..lost {
            peers.tick([Some(b"move"), None]);
        }
        peers.links[0].set_conditions(Conditions::perfect()).unwrap();
        peers.silent_ticks(20);
        assert_eq!(peers.ends[0].state(), VirtualState::Connected, "after {lost} lost");
        peers.tick([None, Some(&[5; 5000])]);
        peers.silent_ticks(2);
        assert_eq!(peers.received[0], [[5; 5000]], "the server may send what it likes after {lost} lost");
    }
}

#[test]
fn an_answer_that_its_acks_would_make_too_large_goes_without_them() {
    let (mut client_end, mut server_end) = (connect(), listen());
    sent(&mut client_end, Instant::ZERO, b"lost");
    let second = sent(&mut client_end, Instant::ZERO, b"");
    assert_eq!(server_end.handle_datagram(Instant::ZERO, client(), &second), Ok(None));
    // An ack of packet 1 takes two bytes in packet 0, and would make it 17 bytes for 16.
    let answer = updated(&mut server_end, Instant::ZERO).remove(0);
    assert_eq!(hex::encode(&answer), "5249575496b705c83e00000100000000");
    assert_eq!(client_end.handle_datagram(Instant::ZERO, server(), &answer), Ok(None));
    assert_eq!(acked(&mut client_end), [0u16; 0]);
    let third = sent(&mut client_end, Instant::ZERO, b"");
    assert_eq!(server_end.handle_datagram(Instant::ZERO, client(), &third), Ok(None));
    assert_eq!(acked(&mut server_end), [0], "and so the client is proven");
    sent(&mut server_end, Instant::ZERO, &[0; 1000]);
}

#[test]
fn the_statistics_count_protocol_id_checksum_and_udp() {
    let mut peers = Peers::new([Conditions::perfect().latency(ms(40), ms(0)); 2]);
    for _ in 0..1200 {
        peers.tick([Some(&[1; 100]), None]);
    }
    let stats = peers.ends[0].stats();
    // 60 packets a second of 100 + 8 bytes, 4 or 5 of header, and 28 of IP and UDP.
    assert!((stats.sent_kbps - 60.0 * 140.5 * 8.0 / 1000.0).abs() < 1.0, "{stats:?}");
    assert!((stats.acked_kbps - stats.sent_kbps).abs() < 1.0 && stats.packet_loss == 0.0, "{stats:?}");
    assert!((80.0..200.0).contains(&stats.rtt), "and up to 100 ms of the server's silence: {stats:?}");
}

#[test]
fn noise_with_a_good_checksum_neither_panics_nor_ends_the_connection() {
    let mut rng = Rng::seeded(8);
    let mut peers = Peers::new([Conditions::perfect(); 2]);
    // Long enough for the server to know its peer.
    peers.silent_ticks(30);
    assert!(peers.ends[1].is_ready());
    for _ in 0..20_000 {
        let mut packet = vec![0; rng.below(60) as usize];
        rng.fill(&mut packet);
        // A sequence near ours, or the window of received packets would jump away from the honest peer.
        if packet.len() > 2 {
            packet[2] = 0;
        }
        let _ = peers.ends[1].handle_datagram(peers.now, client(), &datagram(PROTOCOL, &packet));
    }
    let counters = peers.ends[1].counters();
    assert!(counters.packets_dropped > 1000 && counters.accepted > 100, "{counters:?}");
    for _ in 0..400 {
        peers.tick([Some(b"still here"), None]);
    }
    assert_eq!(peers.received[1].last().unwrap(), b"still here");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let mut config = VirtualConfig::new(PROTOCOL);
    config.packets.acks.sent_window = 100;
    assert_eq!(VirtualConnection::listen(config).unwrap_err().field, "sent_window");
}

#[test]
fn a_listener_with_a_secret_begins_where_nobody_guesses_and_connects_all_the_same() {
    let conditions = Conditions::perfect().latency(ms(30), ms(10)).loss(0.2);
    let mut beginnings = HashSet::new();
    for seed in 0..50 {
        let mut peers = Peers::new([conditions, conditions]);
        let config = VirtualConfig { secret: Some(seed), ..VirtualConfig::new(PROTOCOL) };
        peers.ends[1] = VirtualConnection::listen(config).unwrap();
        let mut first = None;
        for _ in 0..120 {
            let [_, number] = peers.tick([Some(b"up"), Some(b"down")]);
            first = first.or(number);
        }
        beginnings.insert(first.unwrap());
        assert!(peers.ends[1].is_ready(), "seed {seed}");
        assert!(peers.received.iter().all(|received| received.len() > 50), "seed {seed}");
    }
    assert!(beginnings.len() > 45 && beginnings.iter().all(|first| *first < 16_384 + 120));
}

#[test]
fn a_guessed_ack_proves_nothing() {
    let config = VirtualConfig { secret: Some(7), ..VirtualConfig::new(PROTOCOL) };
    let mut listener = VirtualConnection::listen(config).unwrap();
    // Packet 0 of someone who writes another's address on it, then packets that claim to have heard us.
    let hello = datagram(PROTOCOL, &[0x1E, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0]);
    listener.handle_datagram(Instant::ZERO, client(), &hello).unwrap();
    assert_eq!(updated(&mut listener, Instant::ZERO).len(), 1, "one answer for one packet");
    let mut answers = 0;
    for guess in 0..500u16 {
        let [low, high] = guess.to_le_bytes();
        let [sequence, sequence_high] = (guess + 1).to_le_bytes();
        // Acks 32 packets at a time: one of them may be right, but not all.
        let packet = [0x00, sequence, sequence_high, low, high];
        let drop = listener.handle_datagram(Instant::ZERO, client(), &datagram(PROTOCOL, &packet));
        assert_eq!(drop, Err(VirtualDrop::ForgedAck));
        answers += updated(&mut listener, Instant::ZERO).len();
    }
    assert_eq!((answers, listener.is_ready(), listener.counters().forged_acks), (0, false, 500));
}
