//! Packet numbers with gaps and jumps, and message ids where 16 bits are few: outages, laps, late packets, numbers left out.

use tickwire::netsim::{Conditions, Link};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::{
    BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Resend, SendOptions, VERSION,
    numbered,
};
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz_targets::native::{Peer, datagram, deliver, fragment};
use crate::pair::{Pair, RELIABLE, UNRELIABLE, blob, check, number, protocol, protocol_with};

fn line(latency: u64, change: impl FnOnce(&mut Conditions)) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.latency = Duration::from_millis(latency);
    change(&mut conditions);
    conditions
}

/// Nothing passes for so long; then how long until the first message is heard, each way.
fn heard_after(outage: Duration, hz: u64) -> [Duration; 2] {
    let mut pair = Pair::new(protocol(), line(30, |_| ()), 3);
    pair.tick_time = Duration::from_nanos(1_000_000_000 / hz);
    pair.ticks(100);
    let set = |pair: &mut Pair, loss| {
        pair.links.iter_mut().for_each(|link| link.set_conditions(line(30, |it| it.loss = loss)).unwrap());
    };
    set(&mut pair, 1.0);
    let say = |pair: &mut Pair, n: u32| {
        for end in 0..2 {
            pair.send(end, UNRELIABLE, number(n)).unwrap();
        }
        pair.tick();
    };
    let (begun, mut n) = (pair.now, 0);
    while pair.now < begun + outage {
        n += 1;
        say(&mut pair, n);
    }
    set(&mut pair, 0.0);
    for end in 0..2 {
        pair.take(end, UNRELIABLE);
    }
    let (since, mut heard) = (pair.now, [None; 2]);
    while heard.contains(&None) && pair.now < since + Duration::from_secs(60) {
        n += 1;
        say(&mut pair, n);
        for (end, heard) in heard.iter_mut().enumerate() {
            if heard.is_none() && !pair.take(end, UNRELIABLE).is_empty() {
                *heard = Some(pair.now - since);
            }
        }
    }
    // And all is as before: each tick's message comes.
    (0..hz * 2).for_each(|_| say(&mut pair, 0));
    pair.take(0, UNRELIABLE);
    (0..hz).for_each(|_| say(&mut pair, 0));
    assert!(pair.take(0, UNRELIABLE).len() as u64 > hz * 9 / 10, "{outage:?} at {hz} Hz");
    heard.map(|heard| heard.expect("heard within a minute"))
}

/// Numbers of 16 bits that went on meanwhile were more than half a lap ahead, and were taken for old ones for minutes.
#[test]
fn after_any_outage_the_first_message_is_heard_within_a_second() {
    for (seconds, hz) in [(5, 60), (40, 1000), (600, 60), (1200, 30), (3000, 60)] {
        let heard = heard_after(Duration::from_secs(seconds), hz);
        assert!(
            heard.iter().all(|heard| *heard < Duration::from_secs(1)),
            "{seconds} s at {hz} Hz: {heard:?}"
        );
    }
}

/// Some 100,000 tiny messages a second, of which a few packets come late: their ids are more than half a lap old.
fn lap(ordered: bool, receive_window: usize, late: Duration, seed: u64) {
    let resend = Resend::Adaptive { early_copies: 1 };
    let kind = ChannelKind::Reliable { ordered, receive_window, receive_bytes: 1 << 22, resend };
    let reliable = ChannelConfig { send_queue: 16_384, ..ChannelConfig::new(kind) };
    let mut pair = {
        let conditions = line(2, |it| (it.reorder, it.reorder_delay) = (0.002, late));
        let mut config = ConnectionConfig { skip_seed: Some(seed), ..ConnectionConfig::default() };
        config.budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(100e6, 1e6) };
        Pair::with_config(&config, protocol_with(vec![reliable]), conditions, seed)
    };
    pair.tick_time = Duration::from_millis(4);
    let (mut sent, mut expected) = (0u32, 0u32);
    let mut seen = vec![false; 2_000_000];
    for _ in 0..1000 {
        for _ in 0..400 {
            if pair.send(0, RELIABLE, number(sent)).is_err() {
                break;
            }
            sent += 1;
        }
        pair.tick();
        for number in pair.take(1, RELIABLE) {
            assert!(!core::mem::replace(&mut seen[number as usize], true), "{number} came twice");
            assert!(!ordered || number == expected, "{number} instead of {expected}");
            expected += 1;
        }
    }
    assert!(expected > 200_000, "{expected} came");
    for _ in 0..1000 {
        pair.tick();
        expected += pair.take(1, RELIABLE).len() as u32;
    }
    assert_eq!(expected, sent);
}

#[test]
fn a_message_of_half_a_lap_ago_is_dropped_and_nobody_is_blamed() {
    for seed in 0..3 {
        lap(true, 4096, Duration::from_millis(300), seed);
        lap(false, 16_384, Duration::from_millis(300), seed);
        lap(true, 16_384, Duration::from_millis(600), seed);
    }
}

/// Over lines that lose, double and hold back packets, at high rates and many laps, both ends leave numbers out: nobody acks
/// one, and none counts as lost.
#[test]
fn numbers_left_out_are_never_acked_and_never_missed() {
    let bad = line(40, |it| {
        (it.jitter, it.loss, it.duplicate) = (Duration::from_millis(20), 0.1, 0.05);
        (it.reorder, it.reorder_delay) = (0.02, Duration::from_millis(700));
    });
    for (conditions, clean) in [(bad, false), (line(40, |_| ()), true)] {
        let mut pair = Pair::new(protocol(), conditions, 7);
        pair.tick_time = Duration::from_millis(1);
        for n in 0..150_000 {
            for end in 0..2 {
                let _full = pair.send(end, RELIABLE, number(n));
                pair.send(end, UNRELIABLE, number(n)).unwrap();
            }
            pair.tick();
            for end in 0..2 {
                pair.take(end, RELIABLE);
                pair.take(end, UNRELIABLE);
            }
            if clean && n > 1000 && n % 100 == 0 {
                for end in &pair.ends {
                    let stats = end.stats();
                    assert_eq!((stats.packet_loss, end.counters().lost), (0.0, 0));
                    assert!(stats.packet_loss_received < 1e-6, "{}", stats.packet_loss_received);
                }
            }
        }
        assert!(pair.ends[0].counters().received > 100_000);
    }
}

/// Some 6,000 packets a second over a line that loses many: each that comes is known to have come, a round trip later. But for
/// some of those of a line that loses a third both ways, for which one packet of acks in 33 ms is too little.
#[test]
fn packets_at_a_high_rate_are_all_acked() {
    let protocol = protocol_with(vec![ChannelConfig::new(ChannelKind::Unreliable { receive_queue: 8 })]);
    for (loss, tick, per_mille) in [(0.02, 16, 1), (0.1, 16, 1), (0.1, 1, 1), (0.3, 33, 40)] {
        let mut config = ConnectionConfig { skip_seed: Some(5), ..ConnectionConfig::default() };
        config.budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(10e6, 1e6) };
        let mut ends = [0; 2].map(|_| Connection::new(&config, protocol.clone()).unwrap());
        let conditions = line(50, |it| it.loss = loss);
        let mut links = [1, 2].map(|seed| Link::<(u64, Vec<u8>)>::new(conditions, seed).unwrap());
        let (mut now, mut out) = (Instant::ZERO, Packets::new());
        for millis in 0..5000u64 {
            now += Duration::from_millis(1);
            for _ in 0..if millis < 4000 { 6 } else { 0 } {
                ends[0].send(now, 0, blob(1, 1100), SendOptions::default()).unwrap();
            }
            for end in 0..2 {
                while let Some((number, datagram)) = links[1 - end].poll(now) {
                    ends[end].handle_datagram(now, number, &datagram).unwrap();
                }
                if end == 0 || millis % tick == 0 {
                    ends[end].transmit(now, &mut out);
                }
                for (number, datagram) in out.iter() {
                    links[end].send(now, (number, datagram.to_vec()), datagram.len());
                }
                out.clear();
            }
        }
        let (sender, receiver) = (ends[0].counters(), ends[1].counters());
        let unknown = receiver.received - sender.acked - sender.late_acks;
        println!(
            "{loss}, {tick} ms: {} received, {unknown} unknown, {} late",
            receiver.received, sender.late_acks
        );
        assert!(receiver.received > 15_000);
        assert!(
            unknown * 1000 <= receiver.received * per_mille,
            "{unknown} of {} not acked",
            receiver.received
        );
    }
}

/// A packet with hello and one unreliable number.
fn said(value: u32) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(VERSION.into(), 8);
    writer.bits(protocol().hash(), 64);
    // No other section; an entry of the second of two channels.
    writer.bits(0b11_0000, 6);
    writer.bits(0, 1);
    writer.bits(value.into(), 32);
    writer.bits(0, 2);
    writer.into_bytes()
}

/// The messages that a connection has received.
fn heard(ours: &mut Connection) -> Vec<u32> {
    std::iter::from_fn(|| ours.poll_received(UNRELIABLE)).map(|it| check(&protocol(), &it)).collect()
}

fn connection() -> Connection {
    Connection::new(&ConnectionConfig::default(), protocol()).unwrap()
}

#[test]
fn numbers_may_jump_by_less_than_half_of_all() {
    let (mut ours, mut peer) = (connection(), Peer::default());
    let mut out = Packets::new();
    for (n, jump) in [0, 1, 300, 65_536, 1 << 32, 1 << 40, i64::MAX as u64].into_iter().enumerate() {
        peer.next = peer.next.saturating_add(jump);
        let number = peer.next;
        // A keep-alive is due each time.
        let now = Instant::from_millis(200 * n as u64);
        deliver(&mut peer, &mut ours, now, &said(n as u32)).unwrap();
        assert_eq!(heard(&mut ours), [n as u32], "a jump of {jump}");
        ours.transmit(now, &mut out);
        let (own, packet) = out.iter().last().unwrap();
        let (header, _) = numbered::read(own, packet, number).unwrap();
        assert_eq!((header.ack, header.ack_bits & 1), (number, 1), "acked after a jump of {jump}");
        out.clear();
    }
}

/// Netcode's own packets take numbers too: the layer below says so, and nobody takes these for lost.
#[test]
fn gaps_are_no_losses() {
    let mut ends = [connection(), connection()];
    let (mut now, mut out) = (Instant::ZERO, Packets::new());
    let mut next = [5, 0];
    for tick in 0..2000u64 {
        now += Duration::from_millis(16);
        for end in 0..2 {
            next[end] += u64::from(tick % 3 == 0) + 40 * u64::from(tick % 100 == 0);
            ends[end].skip_to(next[end]);
            ends[end].send(now, UNRELIABLE, number(tick as u32), SendOptions::default()).unwrap();
            ends[end].transmit(now, &mut out);
            for (number, packet) in out.iter() {
                assert!(number >= next[end], "a number that was used");
                next[end] = number + 1;
                ends[1 - end].handle_datagram(now, number, packet).unwrap();
            }
            out.clear();
            heard(&mut ends[1 - end]);
        }
    }
    for end in &ends {
        let stats = end.stats();
        assert_eq!((end.counters().lost, stats.packet_loss), (0, 0.0));
        assert!(stats.packet_loss_received.abs() < 1e-6, "{}", stats.packet_loss_received);
    }
}

/// Netcode drops copies. Lying fragments can still make two packets of one number: the second is dropped.
#[test]
fn one_number_is_one_packet() {
    let (mut ours, peer) = (connection(), Peer::default());
    let now = Instant::ZERO;
    let header = |number| FullHeader { sequence: number, ..peer.header() };
    let whole = |number, value| datagram(&header(number), &said(value));
    ours.handle_datagram(now, 7, &whole(7, 1)).unwrap();
    ours.handle_datagram(now, 6, &whole(6, 2)).unwrap();
    assert_eq!(heard(&mut ours), [1, 2], "late ones are taken");
    // Fragments 0 and 1 of packet 6.
    let mut payload = said(3);
    payload.resize(1025, 0);
    ours.handle_datagram(now, 6, &fragment(&header(6), 0, 1, &payload[..1024])).unwrap();
    ours.handle_datagram(now, 8, &fragment(&header(8), 2, 2, &payload[1024..])).unwrap();
    assert_eq!((heard(&mut ours), ours.counters().duplicates), (vec![], 2));
    // Packets before 0, of which the second fragment says another count, and whose fragments have other packets' ids.
    ours.handle_datagram(now, 1, &fragment(&header(1), 2, 2, &[0])).unwrap();
    ours.handle_datagram(now, 9, &fragment(&header(9), 0, 1, &payload[..1024])).unwrap();
    ours.handle_datagram(now, 10, &fragment(&header(10), 1, 2, &payload[..1024])).unwrap();
    ours.handle_datagram(now, 11, &fragment(&header(11), 3, 3, &payload[1024..])).unwrap();
    assert_eq!((ours.counters().fragments_invalid, ours.counters().fragments_received), (2, 2));
    assert!(heard(&mut ours).is_empty());
}

/// Numbers of a large packet's later fragments name no packet: neither is a loss, and whoever acks one lies.
#[test]
fn only_the_first_fragments_number_is_acked() {
    let large = ChannelConfig { max_message_bytes: 20_000, ..ChannelConfig::unreliable() };
    let protocol = protocol_with(vec![ChannelConfig::reliable_ordered(), large]);
    let new = || Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
    for lies in [false, true] {
        let (mut ours, mut theirs) = (new(), new());
        let (mut now, mut out) = (Instant::ZERO, Packets::new());
        for n in 0..50 {
            now += Duration::from_millis(16);
            ours.send(now, UNRELIABLE, blob(n, 9000), SendOptions::default()).unwrap();
            for end in 0..2 {
                let (from, to) = if end == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
                from.transmit(now, &mut out);
                out.iter().for_each(|(number, packet)| to.handle_datagram(now, number, packet).unwrap());
                out.clear();
            }
            assert_eq!(theirs.poll_received(UNRELIABLE).map(|it| check(&protocol, &it)), Some(n));
        }
        let counters = ours.counters();
        assert_eq!((counters.acked, counters.lost, counters.fragments_sent), (50, 0, 450));
        assert!(theirs.stats().packet_loss_received.abs() < 1e-6);
        ours.send(now, UNRELIABLE, blob(99, 9000), SendOptions::default()).unwrap();
        ours.transmit(now, &mut out);
        let first = out.iter().next().unwrap().0;
        ours.send(now, RELIABLE, number(0), SendOptions::default()).unwrap();
        ours.transmit(now + Duration::from_millis(16), &mut out);
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(VERSION.into(), 8);
        writer.bits(protocol.hash(), 64);
        writer.bits(0, 5);
        let header = FullHeader { sequence: 1 << 20, ack: first + u64::from(lies), ack_bits: 1, skipped: 0 };
        let taken = ours.handle_datagram(now, 1 << 20, &datagram(&header, &writer.into_bytes()));
        assert_eq!(taken.is_err(), lies, "{taken:?}");
    }
}
