//! Reliable messages that no datagram holds: they go in fragments, each sent again only when it is lost.

use std::sync::Arc;

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::time::Duration;
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, ConnectionConfig, Message, MessageType, Protocol, Resend,
    SendOptions, Share,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema, Value};

use crate::pair::{Pair, blob, check, number, protocol_with};

const ORDERED: usize = 0;
const UNORDERED: usize = 1;

const ADAPTIVE: Resend = Resend::Adaptive { early_copies: 1 };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A budget of 1 Mbit/s.
fn narrow() -> ConnectionConfig {
    ConnectionConfig { budget: BudgetConfig::new(125_000.0, 4_000.0), ..ConnectionConfig::default() }
}

fn reliable(ordered: bool, resend: Resend) -> ChannelConfig {
    let kind = ChannelKind::Reliable { ordered, receive_window: 1024, receive_bytes: 1 << 20, resend };
    ChannelConfig::new(kind)
}

fn both(resend: Resend) -> Arc<Protocol> {
    protocol_with(vec![reliable(true, resend), reliable(false, resend)])
}

/// The bytes on the wire for each byte of the messages until all are acked, and the ticks that takes.
fn cost(conditions: Conditions, resend: Resend, messages: u32, bytes: usize, seed: u64) -> (f64, usize) {
    let mut pair = Pair::new(both(resend), conditions, seed);
    pair.ticks(30);
    let before = pair.sent_bytes[0];
    (0..messages).for_each(|n| pair.send(0, ORDERED, blob(n, bytes)).unwrap());
    let mut taken = Vec::new();
    for tick in 1..7_200 {
        pair.tick();
        taken.extend(pair.take(1, ORDERED));
        if pair.ends[0].channel_stats(ORDERED).queued == 0 {
            assert_eq!(taken, Vec::from_iter(0..messages));
            let sent = (pair.sent_bytes[0] - before) as f64;
            return (sent / (messages as usize * bytes) as f64, tick);
        }
    }
    (f64::INFINITY, 7_200)
}

fn costs(what: &str, conditions: Conditions, resend: Resend, messages: u32, bytes: usize) -> Vec<f64> {
    let mut runs: Vec<_> = (1..=16).map(|seed| cost(conditions, resend, messages, bytes, seed)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ticks = runs.iter().map(|(_, ticks)| *ticks).max().unwrap();
    let (median, most) = (runs[8].0, runs[15].0);
    println!("{what}: median x{median:.2}, at most x{most:.2} bytes, at most {ticks} ticks");
    runs.into_iter().map(|(cost, _)| cost).collect()
}

#[test]
fn a_large_message_costs_its_bytes_and_those_that_were_lost() {
    let link = Conditions::perfect().latency(ms(50), ms(0));
    let lossy = link.loss(0.1);
    let line = link.rate(125_000, 65_536);
    let fixed = Resend::After(ms(200));
    let one = costs("one of 60,000 bytes, 10 % loss", lossy, ADAPTIVE, 1, 60_000);
    assert!(one.iter().all(|cost| *cost <= 1.5), "{one:?}");
    let fixed_time = costs("the same, after 0.2 s", lossy, fixed, 1, 60_000);
    assert!(fixed_time.iter().all(|cost| *cost <= 1.6), "{fixed_time:?}");
    let ten = costs("10 of 30,000 bytes, 10 % loss", lossy, ADAPTIVE, 10, 30_000);
    assert!(ten.iter().all(|cost| *cost <= 1.5), "{ten:?}");
    // Ten times as fast as the line, for as long as nothing slows messages down: what its queue drops must come again.
    let narrow = costs("10 of 30,000 bytes over 1 Mbit/s", line, ADAPTIVE, 10, 30_000);
    assert!(narrow.iter().all(|cost| *cost <= 10.0), "{narrow:?}");
}

/// How many bytes the nth message has: often at the edges of fragments.
fn some_size(rng: &mut Rng) -> usize {
    match rng.below(12) {
        0 => rng.below(65_000) as usize,
        1 => 1_024 * (1 + rng.below(4) as usize) - 12 + rng.below(24) as usize,
        2 => 1_024 - 12 + rng.below(24) as usize,
        3 => rng.below(6_000) as usize,
        _ => rng.below(60) as usize,
    }
}

/// Messages of all sizes on both channels and in both directions: each once, in order where that is promised, and its fate told
/// once, when it is true.
fn converse(conditions: Conditions, resend: Resend, seed: u64, count: u32) {
    let mut rng = Rng::seeded(seed);
    let mut pair = Pair::new(both(resend), conditions, seed);
    let mut sent = [[0u32; 2]; 2];
    let mut taken = [[vec![], vec![]], [vec![], vec![]]];
    let mut delivered = [[0u64; 2]; 2];
    for _ in 0..20_000 {
        for (end, sent) in sent.iter_mut().enumerate() {
            for (channel, next) in sent.iter_mut().enumerate() {
                if *next < count && rng.chance(0.2) {
                    let message = blob(*next, some_size(&mut rng));
                    let options = SendOptions { tag: *next, notify: true, key: 0 };
                    if pair.ends[end].send(pair.now, channel, message, options).is_ok() {
                        *next += 1;
                    }
                }
            }
        }
        pair.tick();
        for end in 0..2 {
            for channel in [ORDERED, UNORDERED] {
                taken[end][channel].extend(pair.take(end, channel));
            }
            while let Some(told) = pair.ends[end].poll_notification() {
                assert!(told.delivered);
                let channel = usize::from(told.channel);
                delivered[end][channel] += 1;
                let received = pair.ends[1 - end].channel_stats(channel).received;
                assert!(received >= delivered[end][channel], "told before it was true");
            }
        }
        if delivered == [[u64::from(count); 2]; 2] {
            break;
        }
    }
    let all = Vec::from_iter(0..count);
    for end in 0..2 {
        assert_eq!(taken[end][ORDERED], all, "seed {seed}");
        taken[end][UNORDERED].sort_unstable();
        assert_eq!(taken[end][UNORDERED], all, "seed {seed}");
        assert_eq!(delivered[end], [u64::from(count); 2], "seed {seed}");
        assert_eq!(pair.ends[end].counters().fragments_sent, 0, "no packet is larger than a datagram");
    }
}

#[test]
fn messages_of_all_sizes_arrive_once_over_bad_networks() {
    let bad = Conditions::perfect().latency(ms(80), ms(60)).loss(0.2).duplicate(0.2).reorder(0.2, ms(80));
    for seed in 1..=8 {
        let resend = [ADAPTIVE, Resend::After(ms(150)), Resend::Adaptive { early_copies: 3 }];
        converse(bad, resend[seed as usize % 3], seed, 60);
    }
}

#[test]
fn ids_of_messages_in_fragments_wrap() {
    let conditions =
        Conditions::perfect().latency(ms(20), ms(10)).loss(0.03).duplicate(0.1).reorder(0.1, ms(50));
    for channel in [ORDERED, UNORDERED] {
        let mut pair = Pair::new(both(ADAPTIVE), conditions, 11 + channel as u64);
        let (mut sent, mut taken) = (0u32, Vec::new());
        for _ in 0..20_000 {
            while sent < 140_000 {
                let message = if sent % 512 < 3 { blob(sent, 3_000) } else { number(sent) };
                if pair.send(0, channel, message).is_err() {
                    break;
                }
                sent += 1;
            }
            pair.tick();
            taken.extend(pair.take(1, channel));
            if taken.len() == 140_000 {
                break;
            }
        }
        taken.sort_unstable();
        assert_eq!(taken, Vec::from_iter(0..140_000));
    }
}

#[test]
fn small_messages_behind_a_large_one_ride_along() {
    // Half a second and more for each large one, and twenty of them.
    let config = narrow();
    let conditions = Conditions::perfect().latency(ms(20), ms(0));
    let mut pair = Pair::with_config(&config, both(ADAPTIVE), conditions, 1);
    (0..14).for_each(|n| pair.send(0, UNORDERED, blob(n, 65_000)).unwrap());
    let mut slowest = 0;
    for n in 100..160 {
        pair.send(0, UNORDERED, number(n)).unwrap();
        let mut ticks = 0;
        while !pair.take(1, UNORDERED).contains(&n) {
            pair.tick();
            ticks += 1;
            assert!(ticks < 60, "{n} waits for a large message");
        }
        slowest = slowest.max(ticks);
    }
    assert!(pair.ends[0].channel_stats(UNORDERED).queued > 5, "large ones are still under way");
    assert!(slowest <= 4, "{slowest} ticks");
}

#[test]
fn strict_large_messages_starve_nobody_and_weights_hold() {
    let share = |strict, weight| Share { strict, weight };
    let with = |share, ordered| ChannelConfig { share, ..reliable(ordered, ADAPTIVE) };
    let config = narrow();
    let run = |shares: [Share; 2], bytes: [usize; 2]| {
        let protocol = protocol_with(vec![with(shares[0], true), with(shares[1], false)]);
        let conditions = Conditions::perfect().latency(ms(20), ms(0));
        let mut pair = Pair::with_config(&config, protocol, conditions, 1);
        let mut sent = 0;
        for _ in 0..1_200 {
            for (channel, bytes) in bytes.into_iter().enumerate() {
                while pair.ends[0].channel_stats(channel).queued < if bytes < 1_000 { 600 } else { 30 } {
                    pair.send(0, channel, blob(sent, bytes)).unwrap();
                    sent += 1;
                }
            }
            pair.tick();
            (0..2).for_each(|channel| drop(pair.take(1, channel)));
        }
        [0, 1].map(|channel| pair.ends[0].channel_stats(channel).bytes_sent as f64)
    };
    // A flood of large strict messages leaves a tenth, and so does a flood of small ones for large ones.
    for bytes in [[20_000, 100], [100, 20_000], [20_000, 20_000]] {
        let [strict, other] = run([share(true, 1), share(false, 1)], bytes);
        let part = other / (strict + other);
        println!("{bytes:?}: {part:.3} of the bytes beside a strict channel");
        assert!((0.07..0.25).contains(&part), "{bytes:?}: {part}");
    }
    for bytes in [[20_000, 100], [20_000, 20_000]] {
        let [three, one] = run([share(false, 3), share(false, 1)], bytes);
        let part = one / (three + one);
        println!("{bytes:?}: {part:.3} of the bytes for a weight of one beside three");
        assert!((0.2..0.35).contains(&part), "{bytes:?}: {part}");
    }
}

/// A type of declared fields whose place in a packet matters: bits before an align and behind it.
fn declared() -> Arc<Protocol> {
    let fields = [
        ("odd", Kind::Bits { bits: 5 }),
        ("cells", Kind::Data { max_bytes: 40_000 }),
        ("number", Kind::Bits { bits: 32 }),
        ("name", Kind::Text { max_bytes: 30 }),
    ];
    let types = vec![
        MessageType { name: "Map".into(), body: Body::Declared(Schema::new(fields).unwrap()) },
        MessageType { name: "Other".into(), body: Body::Opaque { max_bytes: 10 } },
    ];
    Arc::new(Protocol::new(types, vec![reliable(true, ADAPTIVE)]).unwrap())
}

#[test]
fn declared_messages_in_fragments_read_as_they_were_written() {
    let protocol = declared();
    let conditions = Conditions::perfect().latency(ms(30), ms(20)).loss(0.15);
    let mut pair = Pair::new(protocol.clone(), conditions, 3);
    let sizes = [0, 1_013, 1_014, 1_015, 1_016, 1_017, 2_040, 39_999, 40_000];
    let cells = |size: usize| Vec::from_iter((0..size).map(|i| (i * 7 + size) as u8));
    for size in sizes {
        let mut writer = BitWriter::new();
        writer.bits(0b10101, 5);
        writer.data(&cells(size), 40_000);
        writer.bits(size as u64, 32);
        writer.string("Grüße", 30);
        pair.send(0, 0, Message::new(0, writer.encoded())).unwrap();
    }
    pair.ticks(300);
    let Body::Declared(schema) = &protocol.messages()[0].body else { panic!() };
    for size in sizes {
        let received = pair.ends[1].poll_received(0).unwrap();
        let value = |field: usize| schema.fields()[field].load(&received.body);
        assert!(matches!(value(0), Value::Uint(0b10101)));
        assert!(matches!(value(1), Value::Data(bytes) if bytes == cells(size)));
        assert!(matches!(value(2), Value::Uint(number) if number == size as u64));
        assert!(matches!(value(3), Value::Text("Grüße")));
    }
}

#[test]
fn the_largest_message_there_may_be_goes_in_fragments() {
    let bytes = 255 * 1024;
    let number = Body::Declared(Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap());
    let types = vec![
        MessageType { name: "Number".into(), body: number },
        MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: bytes as u32 } },
    ];
    let channel = ChannelConfig { max_message_bytes: bytes, ..reliable(true, ADAPTIVE) };
    let protocol = Arc::new(Protocol::new(types, vec![channel]).unwrap());
    let mut pair = Pair::new(protocol, Conditions::perfect().latency(ms(30), ms(0)).loss(0.1), 3);
    pair.send(0, 0, blob(1, bytes - 6)).unwrap();
    pair.ticks(120);
    assert_eq!(pair.take(1, 0), [1]);
    assert_eq!(pair.ends[0].channel_stats(0).queued, 0);
}

#[test]
fn what_a_receiver_does_not_read_holds_up_large_messages_too() {
    let mut pair = Pair::new(both(ADAPTIVE), Conditions::perfect().latency(ms(20), ms(0)), 1);
    (0..40).for_each(|n| pair.send(0, ORDERED, blob(n, 60_000)).unwrap());
    pair.ticks(600);
    let received = pair.ends[1].channel_stats(ORDERED).received;
    assert_eq!(received, (1 << 20) / (60_000 + 64 + 6), "as many as its window of bytes holds");
    let mut taken = Vec::new();
    for _ in 0..600 {
        taken.extend(pair.take(1, ORDERED));
        pair.tick();
    }
    assert_eq!(taken, Vec::from_iter(0..40));
}

#[test]
fn a_partial_message_is_told_as_lost_at_the_end_once() {
    let mut pair = Pair::new(both(ADAPTIVE), Conditions::perfect().latency(ms(20), ms(0)).loss(0.5), 1);
    let options = SendOptions { tag: 5, notify: true, key: 0 };
    pair.ends[0].send(pair.now, UNORDERED, blob(1, 30_000), options).unwrap();
    pair.ticks(4);
    assert!(pair.ends[0].channel_stats(UNORDERED).bytes_sent > 0);
    pair.ends[0].abandon_all();
    let told = std::iter::from_fn(|| pair.ends[0].poll_notification());
    assert_eq!(told.map(|told| (told.tag, told.delivered)).collect::<Vec<_>>(), [(5, false)]);
}

#[test]
fn each_message_and_each_fragment_sent_again_is_counted() {
    let mut pair = Pair::new(both(ADAPTIVE), Conditions::perfect().latency(ms(20), ms(0)).loss(0.2), 4);
    (0..5).for_each(|n| pair.send(0, UNORDERED, blob(n, 10_000)).unwrap());
    pair.ticks(120);
    let (sender, receiver) = (pair.ends[0].channel_stats(UNORDERED), pair.ends[1].channel_stats(UNORDERED));
    assert_eq!((sender.sent, sender.delivered, receiver.received), (5, 5, 5));
    assert!((5..50).contains(&sender.resent), "{}", sender.resent);
    let received: Vec<u32> = std::iter::from_fn(|| pair.ends[1].poll_received(UNORDERED))
        .map(|it| check(&pair.protocol, &it))
        .collect();
    assert_eq!(received.len(), 5);
}
