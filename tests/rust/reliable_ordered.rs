//! The reliable-ordered channel over bad networks, in virtual time.

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::time::Duration;
use tickwire::transport::{BudgetConfig, ChannelConfig, ChannelKind, ConnectionConfig, Resend, SendError};

use crate::pair::{Pair, RELIABLE, UNRELIABLE, blob, number, protocol, protocol_with};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 250 ± 100 ms, and everything else that can go wrong.
fn terrible(loss: f64) -> Conditions {
    Conditions::perfect().latency(ms(250), ms(100)).loss(loss).duplicate(0.1).reorder(0.1, ms(80))
}

/// Sends `count` messages each way, as fast as the channel takes them; `sized` makes the nth.
fn exchange(pair: &mut Pair, count: u32, rng: &mut Rng, most_ticks: usize) {
    let mut sent = [0; 2];
    let mut received = [0; 2];
    for _ in 0..most_ticks {
        for (end, sent) in sent.iter_mut().enumerate() {
            for _ in 0..rng.below(60) {
                if *sent == count {
                    break;
                }
                let message = match rng.below(20) {
                    0..10 => number(*sent),
                    10..19 => blob(*sent, rng.below(100) as usize),
                    _ => blob(*sent, 300),
                };
                match pair.send(end, RELIABLE, message) {
                    Ok(()) => *sent += 1,
                    Err(SendError::Full { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        pair.tick();
        for (end, received) in received.iter_mut().enumerate() {
            for number in pair.take(end, RELIABLE) {
                assert_eq!(number, *received, "each once, in order");
                *received += 1;
            }
        }
        let drained = (0..2).all(|end| pair.ends[end].channel_stats(RELIABLE).queued == 0);
        if received == [count; 2] && drained {
            return;
        }
    }
    panic!("sent {sent:?}, received {received:?} of {count} each way in {most_ticks} ticks");
}

#[test]
fn fifty_thousand_messages_each_way_over_a_terrible_network() {
    for seed in 1..=3 {
        let mut pair = Pair::new(protocol(), terrible(0.3), seed);
        exchange(&mut pair, 50_000, &mut Rng::seeded(seed), 60_000);
        for end in &pair.ends {
            assert_eq!(end.channel_stats(RELIABLE).sent, 50_000);
            assert_eq!(end.channel_stats(RELIABLE).received, 50_000);
        }
    }
}

#[test]
fn message_ids_wrap_several_times() {
    let conditions = Conditions::perfect().latency(ms(30), ms(10)).loss(0.05).duplicate(0.05);
    let mut pair = Pair::new(protocol(), conditions, 7);
    exchange(&mut pair, 200_000, &mut Rng::seeded(7), 60_000);
}

#[test]
fn a_message_larger_than_a_packet_among_small_ones() {
    let conditions = Conditions::perfect().latency(ms(50), ms(20)).loss(0.1).duplicate(0.05);
    let mut pair = Pair::new(protocol(), conditions, 3);
    let mut expected = 0;
    for n in 0..400 {
        let message = match n % 40 {
            7 => blob(n, 5_000),
            23 => blob(n, 1_190),
            31 => blob(n, 20_000),
            _ => blob(n, 20),
        };
        pair.send(0, RELIABLE, message).unwrap();
    }
    for _ in 0..6_000 {
        pair.tick();
        for number in pair.take(1, RELIABLE) {
            assert_eq!(number, expected);
            expected += 1;
        }
        if expected == 400 {
            assert_eq!(pair.ends[0].counters().fragments_sent, 0, "each in packets of one datagram");
            return;
        }
    }
    panic!("{expected} of 400 arrived");
}

#[test]
fn the_largest_message_arrives() {
    let mut largest = ChannelConfig::reliable_ordered();
    largest.max_message_bytes = 65_536;
    let mut pair = Pair::new(protocol_with(vec![largest]), Conditions::perfect().latency(ms(20), ms(0)), 1);
    pair.send(0, 0, blob(1, 65_000)).unwrap();
    let error = pair.send(0, 0, blob(2, 65_536)).unwrap_err();
    assert_eq!(error, SendError::TooLarge { bytes: 65_542, max_bytes: 65_536 });
    pair.ticks(60);
    assert_eq!(pair.take(1, 0), [1]);
}

#[test]
fn ninety_nine_percent_loss_across_a_wrap_of_packets_without_a_false_ack() {
    // Packets go out each tick; their 16-bit sequence wraps after 65,536 of them. A false ack would make the
    // sender forget a message that never arrived, and the channel would stand still for good.
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(10), ms(5)).loss(0.99), 11);
    let mut sent = 0;
    let mut received = 0;
    for _ in 0..140_000 {
        pair.send(0, UNRELIABLE, number(0)).unwrap();
        pair.send(1, UNRELIABLE, number(0)).unwrap();
        if sent < 200 && pair.ends[0].channel_stats(RELIABLE).queued < 4 {
            pair.send(0, RELIABLE, number(sent)).unwrap();
            sent += 1;
        }
        pair.tick();
        pair.take(0, UNRELIABLE);
        pair.take(1, UNRELIABLE);
        for number in pair.take(1, RELIABLE) {
            assert_eq!(number, received);
            received += 1;
        }
        let acked = sent - pair.ends[0].channel_stats(RELIABLE).queued as u32;
        assert!(acked <= received, "{acked} acked, {received} received");
    }
    assert!(pair.ends[0].counters().sent > 2 * 65_536);
    assert!(received >= 50, "{received} of {sent} arrived");
}

#[test]
fn forty_thousand_packets_of_silence_then_traffic() {
    let conditions = Conditions::perfect().latency(ms(20), ms(5)).loss(0.05);
    let mut pair = Pair::new(protocol(), conditions, 5);
    exchange(&mut pair, 100, &mut Rng::seeded(1), 1_000);
    let before = pair.ends[0].counters().sent;
    while pair.ends[0].counters().sent < before + 40_000 {
        pair.send(0, UNRELIABLE, number(0)).unwrap();
        pair.send(1, UNRELIABLE, number(0)).unwrap();
        pair.tick();
        pair.take(0, UNRELIABLE);
        pair.take(1, UNRELIABLE);
    }
    for n in 0..300 {
        pair.send(0, RELIABLE, number(n)).unwrap();
    }
    pair.ticks(200);
    assert_eq!(pair.take(1, RELIABLE), (0..300).collect::<Vec<_>>());
}

#[test]
fn a_receiver_that_stops_reading_for_thirty_seconds_fills_the_sender_and_loses_nothing() {
    let conditions = Conditions::perfect().latency(ms(40), ms(10)).loss(0.05).duplicate(0.05);
    let mut pair = Pair::new(protocol(), conditions, 9);
    let mut sent = 0;
    let mut full = false;
    let mut send_all = |pair: &mut Pair, full: &mut bool| {
        for _ in 0..20 {
            match pair.send(0, RELIABLE, blob(sent, 50)) {
                Ok(()) => sent += 1,
                Err(error) => {
                    assert_eq!(error, SendError::Full { capacity: 1024 });
                    *full = true;
                    break;
                }
            }
        }
    };
    for _ in 0..30 * 60 {
        send_all(&mut pair, &mut full);
        pair.tick();
    }
    assert!(full, "credit ran out and the sender saw a full channel");
    let mut received = 0;
    for _ in 0..20 * 60 {
        send_all(&mut pair, &mut full);
        pair.tick();
        for number in pair.take(1, RELIABLE) {
            assert_eq!(number, received);
            received += 1;
        }
    }
    assert!(received > 5_000, "the flow goes on: {received}");
    let stats = pair.ends[0].channel_stats(RELIABLE);
    assert!(received >= sent - stats.queued as u32);
}

#[test]
fn large_messages_stop_at_the_receivers_bytes_not_only_at_its_count() {
    let mut channel = ChannelConfig::reliable_ordered();
    channel.max_message_bytes = 10_000;
    channel.kind = ChannelKind::Reliable {
        ordered: true,
        receive_window: 1024,
        receive_bytes: 50_000,
        resend: Resend::default(),
    };
    let conditions = Conditions::perfect().latency(ms(20), ms(0)).loss(0.02);
    let mut pair = Pair::new(protocol_with(vec![channel]), conditions, 2);
    (0..40).for_each(|n| pair.send(0, 0, blob(n, 9_000)).unwrap());
    pair.ticks(300);
    assert_eq!(pair.ends[1].channel_stats(0).received, 5, "5 x 9,000 bytes fit 50,000");
    let mut received = Vec::new();
    for _ in 0..2_000 {
        received.extend(pair.take(1, 0));
        pair.tick();
    }
    assert_eq!(received, (0..40).collect::<Vec<_>>());
}

#[test]
fn acks_reach_every_packet_at_rates_that_the_header_cannot_cover() {
    // A fast sender against a peer that answers at 60 Hz: about 100 packets come between two answers.
    let budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(1e9, 1e6) };
    let config = ConnectionConfig { budget, ..Default::default() };
    let mut pair = Pair::with_config(&config, protocol(), Conditions::perfect().latency(ms(20), ms(0)), 4);
    pair.ticks(20);
    for n in 0..60 {
        (0..100).for_each(|_| pair.send(0, UNRELIABLE, blob(n, 1_100)).unwrap());
        pair.tick();
        pair.take(1, UNRELIABLE);
    }
    pair.ticks(30);
    let counters = pair.ends[0].counters();
    assert!(counters.sent > 6_000);
    assert_eq!((counters.lost, counters.late_acks), (0, 0));
    assert!(counters.sent - counters.acked < 10, "{counters:?}");
}

#[test]
fn rtt_does_not_contain_the_peers_waiting() {
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(50), ms(0)), 4);
    for n in 0..600 {
        pair.send(0, UNRELIABLE, number(n)).unwrap();
        pair.tick();
    }
    // Each way is 50 ms and waits for the receiver's tick.
    let rtt = pair.ends[0].stats().rtt;
    assert!((100.0..=134.0).contains(&rtt), "{rtt}");
}

/// With a margin of milliseconds it would go a tick later.
#[test]
fn a_lost_message_goes_again_at_the_tick_that_should_have_its_ack() {
    let line = Conditions::perfect().latency(ms(50), Duration::ZERO);
    let mut pair = Pair::new(protocol(), line, 1);
    for n in 0..60 {
        pair.send(0, RELIABLE, number(n)).unwrap();
        pair.tick();
    }
    pair.ticks(10);
    assert_eq!(pair.take(1, RELIABLE).len(), 60);
    pair.links[0].set_conditions(line.loss(1.0)).unwrap();
    pair.send(0, RELIABLE, number(60)).unwrap();
    pair.tick();
    pair.links[0].set_conditions(line).unwrap();
    // Six ticks until the ack would have come, and three for the way.
    pair.ticks(8);
    assert!(pair.take(1, RELIABLE).is_empty());
    pair.tick();
    assert_eq!(pair.take(1, RELIABLE), [60]);
}
