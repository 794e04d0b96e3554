//! Each kind of channel keeps its promise over a terrible network: 30 % loss, duplicates, reordering, and bursts in
//! which nothing arrives for a while.

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::time::Duration;
use tickwire::transport::{
    BudgetConfig, ChannelConfig, ChannelKind, ConnectionConfig, Notification, OpaqueBody, Resend, SendError,
    SendOptions, Share,
};
use tickwire::wire::{BitSink, BitWriter};

use crate::pair::{Pair, blob, check, number, protocol_with};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn terrible() -> Conditions {
    Conditions::perfect().latency(ms(60), ms(30)).loss(0.3).duplicate(0.1).reorder(0.1, ms(60))
}

fn pair(kind: ChannelKind, seed: u64) -> Pair {
    Pair::new(protocol_with(vec![ChannelConfig::new(kind)]), terrible(), seed)
}

/// A tick, in a network that falls silent for 200 ms now and then.
fn bursty_tick(pair: &mut Pair, tick: usize) {
    let silent = tick % 180 < 12;
    let conditions = if silent { terrible().loss(1.0) } else { terrible() };
    pair.links.iter_mut().for_each(|link| link.set_conditions(conditions).unwrap());
    pair.tick();
}

fn adaptive(ordered: bool, early_copies: u8) -> ChannelKind {
    ChannelKind::Reliable {
        ordered,
        receive_window: 1024,
        receive_bytes: 1 << 20,
        resend: Resend::Adaptive { early_copies },
    }
}

#[test]
fn reliable_channels_deliver_each_message_once() {
    for (ordered, early_copies, seed) in [(true, 1, 1), (true, 3, 2), (false, 1, 3), (false, 2, 4)] {
        let mut pair = pair(adaptive(ordered, early_copies), seed);
        let mut rng = Rng::seeded(seed);
        let (mut sent, mut received) = (0, Vec::new());
        for tick in 0..20_000 {
            while sent < 20_000 && rng.chance(0.8) {
                if pair.send(0, 0, blob(sent, rng.below(60) as usize))
                    == Err(SendError::Full { capacity: 1024 })
                {
                    break;
                }
                sent += 1;
            }
            bursty_tick(&mut pair, tick);
            received.extend(pair.take(1, 0));
            if received.len() == 20_000 && pair.ends[0].channel_stats(0).queued == 0 {
                break;
            }
        }
        if !ordered {
            assert!(!received.is_sorted(), "as they come");
            received.sort_unstable();
        }
        assert!(received.iter().copied().eq(0..20_000), "{} of {sent}", received.len());
        let stats = pair.ends[0].channel_stats(0);
        assert_eq!((stats.sent, stats.delivered, stats.lost), (20_000, 20_000, 0));
        assert!(stats.latency > ms(100) && stats.latency < ms(2_000), "{:?}", stats.latency);
    }
}

#[test]
fn unreliable_delivers_each_message_at_most_once_and_counts_their_fates() {
    let mut pair = pair(ChannelKind::Unreliable { receive_queue: 1024 }, 5);
    let mut received = Vec::new();
    for tick in 0..6_000 {
        pair.send(0, 0, number(tick)).unwrap();
        bursty_tick(&mut pair, tick as usize);
        received.extend(pair.take(1, 0));
    }
    pair.ticks(120);
    received.extend(pair.take(1, 0));
    let count = received.len();
    received.sort_unstable();
    received.dedup();
    assert_eq!(received.len(), count, "none twice");
    let stats = pair.ends[0].channel_stats(0);
    assert_eq!((stats.sent, stats.resent), (6_000, 0));
    assert_eq!(stats.delivered + stats.lost, 6_000);
    assert!(count as u64 >= stats.delivered, "what is told delivered was");
}

#[test]
fn redundant_messages_that_fill_several_packets_arrive() {
    for copies in [3, 0] {
        let kind = ChannelKind::Redundant { copies, receive_queue: 1024 };
        let protocol = protocol_with(vec![ChannelConfig::new(kind)]);
        let mut pair = Pair::new(protocol, Conditions::perfect().latency(ms(20), Duration::ZERO), 9);
        let mut received = Vec::new();
        for tick in 0..300 {
            if tick % 10 == 0 {
                (0..8).for_each(|n| pair.send(0, 0, blob(8 * (tick / 10) + n, 300)).unwrap());
            }
            pair.tick();
            received.extend(pair.take(1, 0));
        }
        assert_eq!(received, Vec::from_iter(0..240), "with {copies} copies");
        assert_eq!(pair.ends[1].channel_stats(0).missed, 0);
    }
}

#[test]
fn sequenced_never_delivers_an_older_message_after_a_newer_one() {
    let mut pair = pair(ChannelKind::Sequenced { receive_queue: 1024 }, 6);
    let mut received = Vec::new();
    for tick in 0..6_000 {
        pair.send(0, 0, number(2 * tick)).unwrap();
        pair.send(0, 0, number(2 * tick + 1)).unwrap();
        bursty_tick(&mut pair, tick as usize);
        received.extend(pair.take(1, 0));
    }
    assert!(received.is_sorted_by(|a, b| a < b));
    assert!(received.len() > 4_000, "{}", received.len());
    assert!(pair.ends[1].channel_stats(0).duplicates > 100, "older ones came and were dropped");
}

#[test]
fn redundant_delivers_once_in_order_and_tells_gaps() {
    for copies in [3, 0] {
        let mut pair = pair(ChannelKind::Redundant { copies, receive_queue: 1024 }, 7);
        let (mut next, mut missed) = (0, 0);
        for tick in 0..6_000 {
            pair.send(0, 0, number(tick)).unwrap();
            bursty_tick(&mut pair, tick as usize);
            while let Some(received) = pair.ends[1].poll_received(0) {
                next += u32::from(received.missed);
                missed += u64::from(received.missed);
                assert_eq!(check(&pair.protocol, &received), next, "once, in order, and the gap told");
                next += 1;
            }
        }
        assert_eq!(pair.ends[1].channel_stats(0).missed, missed);
        // Silence of 200 ms is more than three packets, and no more than the acks can bridge.
        if copies == 0 {
            assert_eq!(missed, 0);
        } else {
            assert!(missed > 100 && missed < 1_000, "{missed}");
        }
        assert!(next > 5_900);
        // The rest is cleared once the last fates are known.
        pair.ticks(300);
        assert_eq!(pair.ends[0].channel_stats(0).queued, 0);
    }
}

#[test]
fn latest_brings_the_newest_value_of_each_key_and_never_a_stale_one() {
    let keys = 200;
    let mut pair = pair(ChannelKind::Latest { keys }, 8);
    let mut rng = Rng::seeded(8);
    let mut set = vec![0; keys];
    let mut seen = vec![0; keys];
    let take = |pair: &mut Pair, seen: &mut Vec<u32>| {
        while let Some(received) = pair.ends[1].poll_received(0) {
            let value = check(&pair.protocol, &received);
            let old = &mut seen[received.key as usize];
            assert!(value >= *old, "key {} went back from {old} to {value}", received.key);
            *old = value;
        }
    };
    for tick in 0..3_000 {
        for _ in 0..20 {
            let key = rng.below(keys as u64) as usize;
            set[key] += 1;
            let options = SendOptions { key: key as u32, ..Default::default() };
            pair.ends[0].send(pair.now, 0, number(set[key]), options).unwrap();
        }
        bursty_tick(&mut pair, tick);
        take(&mut pair, &mut seen);
    }
    for _ in 0..300 {
        pair.tick();
        take(&mut pair, &mut seen);
    }
    assert_eq!(seen, set, "in the end the peer has the newest value of every key");
    let stats = pair.ends[0].channel_stats(0);
    assert_eq!(stats.queued, 0);
    assert!(stats.resent < stats.sent, "{stats:?}");
    let options = SendOptions { key: 200, ..Default::default() };
    let error = pair.ends[0].send(pair.now, 0, number(1), options).unwrap_err();
    assert_eq!(error, SendError::NoKey { key: 200, keys: 200 });
}

#[test]
fn latest_over_a_link_that_carries_a_tenth_bounds_every_keys_age() {
    let keys = 1_000;
    // A value of four bytes with its key and flags takes 44 bits: 330 kB/s for 1,000 of them at 60 Hz.
    let budget = BudgetConfig::new(33_000.0, 1_200.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let channel = ChannelConfig::new(ChannelKind::Latest { keys });
    let conditions = Conditions::perfect().latency(ms(50), ms(5)).loss(0.05);
    let mut pair = Pair::with_config(&config, protocol_with(vec![channel]), conditions, 9);
    let mut age = vec![0u32; keys];
    let mut oldest = 0;
    for tick in 0..1_200u32 {
        for key in 0..keys as u32 {
            pair.ends[0].send(pair.now, 0, number(tick), SendOptions { key, ..Default::default() }).unwrap();
        }
        pair.tick();
        while let Some(received) = pair.ends[1].poll_received(0) {
            let value = check(&pair.protocol, &received);
            let newest = &mut age[received.key as usize];
            assert!(value >= *newest);
            *newest = value;
        }
        if tick > 120 {
            oldest = oldest.max(tick - age.iter().min().unwrap());
        }
    }
    // All 1,000 keys take their turn in ten ticks and some; a loss costs one turn more.
    assert!(oldest <= 45, "{oldest} ticks");
}

#[test]
fn payloads_have_their_fate_told_once_in_packet_order() {
    let mut pair = pair(ChannelKind::Payload { receive_queue: 1024 }, 10);
    let mut told = Vec::<Notification>::new();
    let mut arrived = Vec::new();
    for tick in 0..5_200u32 {
        if tick < 5_000 {
            let mut writer = BitWriter::new();
            writer.bits(tick.into(), 32);
            writer.bits(0, 1 + tick % 13);
            pair.ends[0].send_payload(pair.now, 0, writer.encoded(), tick).unwrap();
        }
        bursty_tick(&mut pair, tick as usize);
        told.extend(std::iter::from_fn(|| pair.ends[0].poll_notification()));
        while let Some(received) = pair.ends[1].poll_received(0) {
            let body = OpaqueBody::read(&received.body);
            let mut reader = body.reader();
            let tag = reader.bits(32).unwrap() as u32;
            assert_eq!(body.bits as u32, 32 + 1 + tag % 13);
            arrived.push(tag);
        }
    }
    assert!(told.iter().map(|told| told.tag).eq(0..5_000), "each once, in order");
    let delivered: Vec<_> = told.iter().filter(|told| told.delivered).map(|told| told.tag).collect();
    arrived.sort_unstable();
    assert!(delivered.iter().all(|tag| arrived.binary_search(tag).is_ok()), "what is told delivered was");
    // Some messages notified as lost came late all the same; not many.
    assert!(arrived.len() - delivered.len() < arrived.len() / 10, "{} {}", arrived.len(), delivered.len());
    let message = pair.send(0, 0, number(1)).unwrap_err();
    assert_eq!(message, SendError::WrongKind);
}

#[test]
fn messages_of_any_kind_have_their_fate_told_when_wanted() {
    let kinds = [
        adaptive(true, 1),
        ChannelKind::Unreliable { receive_queue: 64 },
        ChannelKind::Redundant { copies: 2, receive_queue: 64 },
    ];
    for (seed, kind) in kinds.into_iter().enumerate() {
        let mut pair = pair(kind, seed as u64);
        let mut told = Vec::new();
        for tag in 0..500 {
            pair.ends[0].send(pair.now, 0, number(tag), SendOptions { key: 0, tag, notify: true }).unwrap();
            pair.tick();
            pair.take(1, 0);
            told.extend(std::iter::from_fn(|| pair.ends[0].poll_notification()));
        }
        pair.ticks(300);
        told.extend(std::iter::from_fn(|| pair.ends[0].poll_notification()));
        let mut tags: Vec<_> = told.iter().map(|told| told.tag).collect();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..500), "{kind:?}: each once");
        let lost = told.iter().filter(|told| !told.delivered).count();
        assert_eq!(lost > 0, !matches!(kind, ChannelKind::Reliable { .. }), "{kind:?}: {lost}");
    }
}

#[test]
fn a_value_that_a_newer_one_replaced_has_its_fate_told_once() {
    let mut pair = pair(ChannelKind::Latest { keys: 8 }, 3);
    let (mut told, mut arrived) = (Vec::<Notification>::new(), Vec::new());
    let mut tag = 0;
    for tick in 0..1_000usize {
        // Some keys change twice a tick, some once in several ticks.
        for key in (0..8).filter(|key| tick.is_multiple_of(1 + key * 3)) {
            for _ in 0..if key % 2 == 0 { 2 } else { 1 } {
                let options = SendOptions { key: key as u32, tag, notify: true };
                pair.ends[0].send(pair.now, 0, number(tag), options).unwrap();
                tag += 1;
            }
        }
        bursty_tick(&mut pair, tick);
        arrived.extend(pair.take(1, 0));
        told.extend(std::iter::from_fn(|| pair.ends[0].poll_notification()));
    }
    for _ in 0..300 {
        pair.tick();
        arrived.extend(pair.take(1, 0));
        told.extend(std::iter::from_fn(|| pair.ends[0].poll_notification()));
    }
    let mut tags: Vec<_> = told.iter().map(|told| told.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..tag), "each once");
    let delivered: Vec<_> = told.iter().filter(|told| told.delivered).map(|told| told.tag).collect();
    assert!(delivered.len() > 200 && told.len() - delivered.len() > 500, "{} of {tag}", delivered.len());
    assert!(arrived.iter().all(|number| *number < tag));
    // Delivered messages that weren't notified as such were notified as lost too early; not many.
    let unsaid = arrived.iter().filter(|number| !delivered.contains(number)).count();
    assert!(unsaid < arrived.len() / 10, "{unsaid} of {}", arrived.len());
}

#[test]
fn a_value_that_no_packet_carries_is_told_as_lost_when_it_is_replaced() {
    let mut pair = pair(ChannelKind::Latest { keys: 8 }, 1);
    let send = |pair: &mut Pair, tag| {
        let options = SendOptions { key: 0, tag, notify: true };
        pair.ends[0].send(pair.now, 0, number(tag), options).unwrap();
        std::iter::from_fn(|| pair.ends[0].poll_notification()).collect::<Vec<_>>()
    };
    assert_eq!(send(&mut pair, 1), []);
    let lost = |tag| Notification { channel: 0, tag, delivered: false };
    assert_eq!(send(&mut pair, 2), [lost(1)]);
    pair.tick();
    assert_eq!(send(&mut pair, 3), [], "2 is in a packet");
    pair.ends[0].abandon_all();
    let told: Vec<_> = std::iter::from_fn(|| pair.ends[0].poll_notification()).collect();
    assert_eq!(told, [lost(2), lost(3)]);
}

#[test]
fn a_strict_channel_comes_first_and_starves_nobody() {
    let strict = ChannelConfig { share: Share { strict: true, weight: 1 }, ..ChannelConfig::unreliable() };
    let weighted = |weight| {
        let mut channel = ChannelConfig::reliable_ordered();
        channel.share.weight = weight;
        channel
    };
    let protocol = protocol_with(vec![strict, weighted(1), weighted(3)]);
    let budget = BudgetConfig::new(60_000.0, 1_200.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let mut pair = Pair::with_config(&config, protocol, Conditions::perfect().latency(ms(20), ms(0)), 1);
    let (mut low, mut high) = (0, 0);
    for n in 0..1_200 {
        // The strict channel alone would fill the link twice.
        (0..20).for_each(|_| pair.send(0, 0, blob(n, 100)).unwrap());
        while pair.send(0, 1, blob(n, 100)).is_ok() {}
        while pair.send(0, 2, blob(n, 100)).is_ok() {}
        pair.tick();
        pair.take(1, 0);
        low += pair.take(1, 1).len();
        high += pair.take(1, 2).len();
    }
    let strict = pair.ends[1].channel_stats(0).received as usize;
    // 60 kB/s for 20 s are some 10,000 messages of 115 bytes.
    assert!(strict > 7_500, "{strict}");
    assert!(low + high > 800, "a tenth is kept: {low} + {high}");
    assert!(low > 180, "and of that each has its share: {low}");
    assert!(high > 2 * low && high < 4 * low, "by weight: {low} to {high}");
}

#[test]
fn a_message_larger_than_the_reserved_tenth_gets_through_beside_a_strict_flood() {
    let strict = ChannelConfig { share: Share { strict: true, weight: 1 }, ..ChannelConfig::unreliable() };
    let protocol = protocol_with(vec![strict, ChannelConfig::reliable_ordered()]);
    let budget = BudgetConfig::new(60_000.0, 1_200.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let mut pair = Pair::with_config(&config, protocol, Conditions::perfect().latency(ms(20), ms(0)), 1);
    (0..20).for_each(|n| pair.send(0, 1, blob(n, if n % 2 == 0 { 1_000 } else { 3_000 })).unwrap());
    let mut received = Vec::new();
    for n in 0..1_200 {
        (0..20).for_each(|_| pair.send(0, 0, blob(n, 100)).unwrap());
        pair.tick();
        pair.take(1, 0);
        received.extend(pair.take(1, 1));
    }
    assert!(received.into_iter().eq(0..20));
}

#[test]
fn early_copies_give_way_to_what_must_be_sent() {
    let channel = ChannelConfig::new(adaptive(true, 3));
    // A packet a tick, and a message that nearly fills it: there is never room for a copy.
    let budget = BudgetConfig::new(72_000.0, 1_200.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let conditions = Conditions::perfect().latency(ms(40), ms(0));
    let mut pair = Pair::with_config(&config, protocol_with(vec![channel]), conditions, 1);
    for n in 0..300 {
        pair.send(0, 0, blob(n, 1_000)).unwrap();
        pair.tick();
    }
    let stats = pair.ends[0].channel_stats(0);
    assert!(stats.sent >= 295, "{stats:?}");
    pair.ticks(30);
    assert_eq!(pair.take(1, 0), (0..300).collect::<Vec<_>>());
}
