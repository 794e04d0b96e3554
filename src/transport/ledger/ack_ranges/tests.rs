use super::*;
use crate::rng::Rng;

/// The report in the next packet, which counts as sent if `sent`.
fn said(ranges: &mut AckRanges, sent: bool) -> (Vec<(u64, u64)>, Reported) {
    let (mut out, ack) = (Vec::new(), ranges.newest);
    let reported = ranges.select(ack, &mut out);
    if sent {
        ranges.commit(reported);
    }
    let mut room = Room { at: ack.wrapping_sub(HEADER_ACKS), bits: 0 };
    assert!(out.iter().all(|range| room.take(*range, MAX_RANGE_BITS)), "{} bits", room.bits);
    (out.iter().map(|range| (range.newest, range.oldest)).collect(), reported)
}

fn record(ranges: &mut AckRanges, sequences: impl IntoIterator<Item = u64>) {
    sequences.into_iter().for_each(|sequence| ranges.record(sequence, 1024));
}

#[test]
fn says_nothing_while_the_header_covers_everything() {
    let mut ranges = AckRanges::default();
    assert_eq!(said(&mut ranges, true).0, []);
    record(&mut ranges, 0..32);
    assert_eq!(said(&mut ranges, true).0, []);
}

#[test]
fn reports_what_the_header_no_longer_covers_until_confirmed() {
    let mut ranges = AckRanges::default();
    record(&mut ranges, (0..100).filter(|s| s % 10 != 3));
    let expected = [(67, 64), (62, 54), (52, 44), (42, 34), (32, 24), (22, 14), (12, 4), (2, 0)];
    let (first, reported) = said(&mut ranges, true);
    assert_eq!(first, expected);
    assert_eq!(said(&mut ranges, true).0, expected, "again, as nothing is confirmed");
    record(&mut ranges, 100..140);
    ranges.confirm(reported);
    assert_eq!(said(&mut ranges, true).0, [(107, 100)], "what was confirmed is not said again");
}

#[test]
fn a_packet_that_comes_late_is_reported_until_a_packet_that_says_so_is_acked() {
    let mut ranges = AckRanges::default();
    record(&mut ranges, (0..100).filter(|s| *s != 20));
    let (_, before) = said(&mut ranges, true);
    ranges.record(20, 1024);
    ranges.confirm(before);
    assert_eq!(said(&mut ranges, true).0, [(67, 0)], "which had been said without 20");
    let (_, after) = said(&mut ranges, true);
    ranges.confirm(after);
    assert_eq!(said(&mut ranges, true).0, []);
    assert_eq!(ranges.len(), 0);
}

/// With many losses and no acks: a few reports in a row, then seldom, then none.
#[test]
fn a_run_is_reported_so_many_times_and_given_up() {
    let mut ranges = AckRanges::default();
    record(&mut ranges, [0, 1, 2].into_iter().chain(10..200));
    let said_in = (0..1000u64).filter(|n| {
        record(&mut ranges, [200 + n]);
        said(&mut ranges, true).0.contains(&(2, 0))
    });
    assert_eq!(said_in.collect::<Vec<_>>(), [0, 1, 2, 3, 5, 9, 17, 33, 65, 129, 257]);
    record(&mut ranges, [1200]);
    assert_eq!(ranges.runs.len(), 1, "the open one");
}

/// A packet that was composed and not sent reports nothing.
#[test]
fn what_was_not_sent_is_said_next_time() {
    let mut ranges = AckRanges::default();
    record(&mut ranges, [0, 1, 2].into_iter().chain(10..200));
    let (once, unsent) = said(&mut ranges, false);
    let (again, sent) = said(&mut ranges, true);
    assert_eq!((once, unsent), (again, sent));
}

#[test]
fn forgets_beyond_the_window() {
    let mut ranges = AckRanges::default();
    (0..70_000).for_each(|s| ranges.record(s, 64));
    let newest = 69_999;
    assert_eq!(said(&mut ranges, true).0, [(newest - 32, newest - 63)]);
    ranges.record(newest + (1 << 62), 64);
    assert_eq!(said(&mut ranges, true).0, []);
}

/// A fragment moves the header's ack before its packet is whole.
#[test]
fn acks_far_below_the_header_are_left_out() {
    for (ahead, said) in [(1_000, 1), (32_000, 1), (40_000, 0), (u64::from(u32::MAX), 0), (1 << 33, 0)] {
        let mut ranges = AckRanges::default();
        (0..10).for_each(|number| ranges.record(number, 64));
        let mut out = Vec::new();
        ranges.select(9 + ahead, &mut out);
        assert_eq!(out.len(), said, "{ahead}");
    }
}

/// Every other number, and no acks: reports and memory stay bounded.
#[test]
fn gaps_without_end_take_little_room() {
    let mut ranges = AckRanges::default();
    let mut most = 0;
    for sequence in (0..40_000u64).step_by(2) {
        ranges.record(sequence, 16_384);
        most = most.max(said(&mut ranges, sequence % 200 == 0).0.len());
    }
    assert!(ranges.runs.len() <= MAX_RUNS && most > 50, "{} runs, {most} said", ranges.runs.len());
    (0..=LAST_REPORT).for_each(|_| drop(said(&mut ranges, true)));
    assert_eq!(said(&mut ranges, true).0, [], "all is given up");
}

/// Both directions lose and reorder packets: only received packets are reported, and each received one is
/// reported in a packet that arrives, sooner or later.
#[test]
fn every_packet_is_acked_and_no_other() {
    for (loss, per_ack) in [(0.01, 1), (0.05, 40), (0.1, 160), (0.3, 40), (0.5, 8)] {
        let mut rng = Rng::seeded(per_ack);
        let mut ranges = AckRanges::default();
        let (mut received, mut known) = (vec![false; 200_000], vec![false; 200_000]);
        let mut in_flight = VecDeque::new();
        let (mut newest, mut late) = (0usize, Vec::new());
        for number in 0..100_000usize {
            let mut arrive = |number: usize| {
                newest = newest.max(number);
                received[number] = true;
                ranges.record(number as u64, 16_384);
            };
            match rng.unit() {
                x if x < loss => {}
                x if x < loss + 0.01 => late.push((number, number + rng.below(60) as usize)),
                _ => arrive(number),
            }
            late.retain(|&(other, due)| {
                if due <= number {
                    arrive(other);
                }
                due > number
            });
            if (number as u64).is_multiple_of(per_ack) {
                let (told, reported) = said(&mut ranges, true);
                if !rng.chance(loss) {
                    in_flight.push_back((number as u64 + 5 * per_ack, told, reported, newest));
                }
            }
            while in_flight.front().is_some_and(|(due, ..)| *due <= number as u64) {
                let Some((_, told, reported, ack)) = in_flight.pop_front() else { break };
                for bit in 0..32 {
                    let at = ack.saturating_sub(bit);
                    known[at] |= received[at];
                }
                for (high, low) in told {
                    for at in low as usize..=high as usize {
                        assert!(received[at], "{at} was never received");
                        known[at] = true;
                    }
                }
                ranges.confirm(reported);
            }
        }
        let of = |all: &[bool]| all[..95_000].iter().filter(|it| **it).count();
        let missing = of(&received) - of(&known);
        println!("loss {loss}, an ack for {per_ack}: {missing} of {} unknown", of(&received));
        assert!(missing * 10_000 <= of(&received), "{missing} of {} never acked", of(&received));
    }
}
