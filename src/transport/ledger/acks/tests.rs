use super::*;
use crate::rng::Rng;

fn acks(sent_window: usize, received_window: usize) -> Acks {
    Acks::<()>::new(&AcksConfig { sent_window, received_window, max_window: None, ..AcksConfig::default() })
        .unwrap()
}

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn send(acks: &mut Acks, packets: u32, now: Instant) {
    for _ in 0..packets {
        acks.record_sent(now, 1);
    }
}

fn lost(acks: &mut Acks, now: Instant) -> Vec<u64> {
    let mut out = Vec::new();
    acks.poll_lost(now, &mut out);
    out
}

fn process(acks: &mut Acks, now: Instant, ack: u64, ack_bits: u32) -> Vec<u64> {
    let mut out = Vec::new();
    acks.process(
        now,
        &FullHeader { sequence: 0, ack, ack_bits, skipped: 0 },
        RttSampling::EveryAck,
        &mut out,
    );
    out.iter().filter(|acked| !acked.late).map(|acked| acked.sequence).collect()
}

#[test]
fn each_packet_is_acked_once_newest_first() {
    let mut acks = acks(256, 256);
    send(&mut acks, 40, ms(0));
    assert_eq!(process(&mut acks, ms(1), 5, 0b101), [5, 3]);
    assert_eq!(process(&mut acks, ms(1), 6, 0b1111), [6, 4]);
    assert_eq!(
        process(&mut acks, ms(1), 60, u32::MAX),
        (29..40).rev().collect::<Vec<_>>(),
        "never sent: 40..=60"
    );
    assert_eq!(acks.ack_one(3), None);
    assert_eq!(acks.ack_one(0), Some(Acked { sequence: 0, sent_at: ms(0), bytes: 1, late: false }));
    assert_eq!(acks.counters.acked, 16);
}

/// Forged, or from a faulty peer: later true acks must count.
#[test]
fn an_ack_of_what_was_not_sent_yet_does_not_keep_the_true_one_from_counting() {
    let mut acks = acks(256, 256);
    send(&mut acks, 5, ms(0));
    assert!(process(&mut acks, ms(1), 7, 0b111).is_empty());
    send(&mut acks, 3, ms(2));
    assert_eq!(process(&mut acks, ms(3), 7, 0b111), [7, 6, 5]);
}

/// Otherwise loss and bandwidth would be of other packets than in another implementation.
#[test]
fn windows_of_the_standard_keep_their_size() {
    for size in [64, 128, 256] {
        let config = AcksConfig { sent_window: size, ..AcksConfig::standard() };
        let mut acks = Acks::<()>::new(&config).unwrap();
        send(&mut acks, 1000, ms(0));
        assert_eq!(acks.sent.capacity(), size);
    }
}

/// reliable 1.0 takes the first sample unchanged and 0.25 % of each further one, the newest packet first.
#[test]
fn the_newest_packet_of_a_header_is_sampled_first() {
    let mut acks = Acks::<()>::new(&AcksConfig::standard()).unwrap();
    acks.record_sent(ms(0), 1);
    acks.record_sent(ms(50), 1);
    process(&mut acks, ms(100), 1, 0b11);
    assert!((acks.stats().rtt - 50.125).abs() < 1e-9, "{}", acks.stats().rtt);
}

#[test]
fn numbers_that_no_packet_had_are_not_missing_however_many_ranges_there_are() {
    let mut acks = acks(64, 64);
    for (number, skipped) in [(0, 0), (1, 0), (5, 3), (6, 0), (9, 2), (11, 0)] {
        acks.record_skipped(number - skipped..number);
        acks.record_received(number);
    }
    let missing: Vec<_> = (0..11).filter(|number| acks.received.is_missing(*number)).collect();
    assert_eq!(missing, [10]);
}

#[test]
fn a_number_left_out_is_neither_lost_nor_late_and_whoever_acks_it_is_found_out() {
    let mut acks = acks(64, 64);
    for number in 0..300u64 {
        if number % 3 == 0 {
            acks.skip_number();
        } else {
            assert_eq!(acks.record_sent(ms(0), 1), number);
        }
        if number % 3 == 2 {
            process(&mut acks, ms(1), number, 0b11);
        }
    }
    assert!(lost(&mut acks, ms(5000)).is_empty());
    acks.update(ms(5000));
    assert_eq!((acks.counters.sent, acks.counters.lost, acks.stats().packet_loss), (200, 0, 0.0));
    assert!(!acks.acked_skipped && !acks.was_sent(297));
    assert!(process(&mut acks, ms(1), 299, 0b111).is_empty());
    assert!(acks.acked_skipped);
}

#[test]
fn a_range_acks_the_window_from_end_to_end_and_no_more() {
    let mut acks = acks(64, 64);
    send(&mut acks, 100, ms(0));
    let mut out = Vec::new();
    acks.ack_range(30_000, 0, &mut out);
    let acked: Vec<_> = out.drain(..).map(|acked| acked.sequence).collect();
    assert_eq!(acked, (100 - 64..100).rev().collect::<Vec<_>>());
    send(&mut acks, 20, ms(1));
    acks.ack_range(56, 40, &mut out);
    assert!(out.is_empty(), "acked before");
    acks.ack_range(101, 100, &mut out);
    assert_eq!(out.len(), 2);
    acks.ack_range(20_000, 19_000, &mut out);
    assert_eq!(out.len(), 2, "never sent");
}

#[test]
fn a_packet_not_acked_in_time_is_lost_once_and_a_late_ack_is_marked() {
    let mut acks = acks(256, 256);
    for sequence in 0..4 {
        assert_eq!(acks.record_sent(ms(sequence * 100), 100), sequence);
    }
    assert_eq!(process(&mut acks, ms(400), 1, 1), [1]);
    assert!(lost(&mut acks, ms(999)).is_empty());
    assert_eq!(lost(&mut acks, ms(1200)), [0, 2]);
    assert!(lost(&mut acks, ms(1200)).is_empty());
    assert_eq!(process(&mut acks, ms(1250), 3, 0xF), [3], "0 and 2 come too late");
    assert_eq!(acks.ack_one(0), None);
    let counters = acks.counters;
    assert_eq!((counters.acked, counters.lost, counters.late_acks), (2, 2, 2));
}

#[test]
fn a_packet_pushed_out_of_the_window_is_lost_not_forgotten() {
    let mut acks = acks(16, 16);
    send(&mut acks, 16, ms(0));
    process(&mut acks, ms(1), 1, 1);
    send(&mut acks, 4, ms(2));
    assert_eq!(lost(&mut acks, ms(3)), [0, 2, 3]);
    assert_eq!(acks.ack_one(2), None);
    assert_eq!(lost(&mut acks, ms(1000)), (4..16).collect::<Vec<_>>());
}

#[test]
fn lost_packets_nobody_polls_take_bounded_memory() {
    let mut acks = acks(16, 16);
    send(&mut acks, 200_000, ms(0));
    assert_eq!(acks.overwritten.len(), MAX_UNREPORTED);
    assert_eq!(acks.counters.lost, 200_000 - 16);
}

#[test]
fn a_multiple_of_the_rtt_bounds_the_wait() {
    let loss_bound = LossBound::Rtt { multiple: 2.0, at_least: Duration::from_millis(50) };
    let mut acks = Acks::<()>::new(&AcksConfig { loss_bound, ..AcksConfig::default() }).unwrap();
    assert_eq!(acks.time_to_loss(), LossBound::DEFAULT_TIME);
    acks.record_sent(ms(0), 1);
    process(&mut acks, ms(100), 0, 1);
    assert_eq!(acks.time_to_loss(), Duration::from_millis(200));
    let sequence = acks.record_sent(ms(100), 1);
    assert!(lost(&mut acks, ms(299)).is_empty());
    assert_eq!(lost(&mut acks, ms(300)), [sequence]);
}

#[test]
fn a_late_ack_still_teaches_the_rtt() {
    let loss_bound = LossBound::Rtt { multiple: 1.5, at_least: Duration::ZERO };
    let mut acks = Acks::<()>::new(&AcksConfig { loss_bound, ..AcksConfig::default() }).unwrap();
    acks.record_sent(ms(0), 1);
    assert_eq!(lost(&mut acks, ms(1000)), [0]);
    process(&mut acks, ms(2000), 0, 1);
    assert_eq!(acks.time_to_loss(), Duration::from_secs(3));
}

#[test]
fn the_ack_delay_comes_off_the_newest_packets_round_trip_and_no_other_is_sampled() {
    let mut acks = acks(256, 256);
    (0..3).for_each(|i| send(&mut acks, 1, ms(i * 10)));
    let sampling = RttSampling::NewestAck { delay: Duration::from_millis(15) };
    let mut out = Vec::new();
    acks.process(
        ms(100),
        &FullHeader { sequence: 0, ack: 2, ack_bits: 0b110, skipped: 0 },
        sampling,
        &mut out,
    );
    assert_eq!((out.len(), acks.rtt.smoothed()), (2, None));
    acks.process(
        ms(100),
        &FullHeader { sequence: 1, ack: 2, ack_bits: 0b111, skipped: 0 },
        sampling,
        &mut out,
    );
    assert_eq!(acks.rtt.smoothed(), Some(Duration::from_millis(65)));
}

#[test]
fn tells_new_packets_from_duplicates_and_stale_ones() {
    let mut acks = acks(256, 64);
    acks.record_received(1000);
    acks.record_received(990);
    assert_eq!(acks.is_new(1000), Err(NotNew::Duplicate));
    assert_eq!(acks.is_new(1000 - 64), Err(NotNew::Stale));
    assert_eq!(acks.is_new(1000 - 63), Ok(()));
    assert_eq!((acks.received.newest, !acks.received.is_missing(990)), (Some(1000), true));
    acks.received.advance(1003);
    assert_eq!(acks.header(), FullHeader { sequence: 0, ack: 1003, ack_bits: 1 << 3 | 1 << 13, skipped: 0 });
    assert_eq!(acks.received.newest, Some(1000), "1003 is here in part only");
}

#[test]
fn in_order_refuses_what_a_newer_packet_overtook() {
    let mut acks = Acks::<()>::new(&AcksConfig { in_order_only: true, ..AcksConfig::default() }).unwrap();
    acks.record_received(9);
    acks.record_received(11);
    assert_eq!(acks.is_new(10), Err(NotNew::OutOfOrder));
    acks.record_received(10);
    assert!(acks.received.is_missing(10), "so it is never acked");
    assert_eq!(acks.is_new(12), Ok(()));
}

/// 99 % loss both ways: each ack is of a packet that arrived, and each packet sent is resolved exactly once.
#[test]
fn no_false_ack_at_99_percent_loss() {
    const SENT: u64 = 5 * 65_536;
    let mut rng = Rng::seeded(99);
    let (mut a, mut b) = (acks(1024, 1024), acks(256, 256));
    let mut arrived = vec![false; SENT as usize];
    let mut resolved = vec![0u8; SENT as usize];
    let (mut acked, mut lost) = (Vec::new(), Vec::new());
    for i in 0..SENT {
        let now = ms(i);
        let sequence = a.record_sent(now, 1);
        assert_eq!(sequence, i);
        if rng.chance(0.01) {
            b.record_received(sequence);
            arrived[i as usize] = true;
        }
        if rng.chance(0.01) {
            a.process(now, &b.header(), RttSampling::EveryAck, &mut acked);
        }
        a.poll_lost(now, &mut lost);
        for acked in acked.drain(..) {
            assert!(arrived[acked.sequence as usize], "false ack of {} at {i}", acked.sequence);
            assert_eq!(acked.sent_at, ms(acked.sequence));
            resolved[acked.sequence as usize] += 1;
        }
        lost.drain(..).for_each(|sequence| resolved[sequence as usize] += 1);
    }
    assert!(resolved[..SENT as usize - 1024].iter().all(|&times| times == 1));
    let counters = a.counters;
    assert!(counters.acked > 500, "{counters:?}");
}
