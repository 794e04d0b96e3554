//! Acks for packets that the reliable header's 32 bits no longer cover.
//!
//! Promises: a received packet is reported in each packet of ours until one of these is acked, as far as there is room: the
//! newest come first. No packet carries more than [`MAX_RANGE_BITS`] of ranges, and at most [`MAX_RUNS`] runs are
//! remembered, whatever the peer sends and acks. Gives up: a run that didn't change for [`MAX_REPORTS`] packets of ours, the
//! oldest run if there are more, and runs that the window has passed. A peer whose acks are given up takes its packet
//! for lost.
//!
//! Only packets that [`Acks`](super::acks::Acks) accepted get here. A peer that leaves gaps and acks nothing makes our next
//! packets longer by the room for ranges.

use std::collections::VecDeque;

use crate::store::sequence::ahead;

/// One run of acked packets: both ends included, `newest` at or after `oldest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckRange {
    pub(crate) newest: u64,
    pub(crate) oldest: u64,
}

/// The packets that the header of `ack` covers.
const HEADER_ACKS: u64 = 32;

/// Acks reach no further below the header's: the standard's bound.
const MAX_BELOW: u64 = 32_768;

/// Ranges of one packet: 100 bytes, some 50 to 100 ranges where every tenth or every second packet is lost.
pub(crate) const MAX_RANGE_BITS: usize = 800;

/// Runs remembered: the losses of a second or so of a fast link.
const MAX_RUNS: usize = 256;

/// Our packets with ranges that report a run before it is given up: those of some seconds of a game, and of some round
/// trips while a chunk arrives.
const MAX_REPORTS: u64 = 256;

/// Packets received one after the other that the peer may not know of. The newest run is open: it may grow.
#[derive(Clone, Copy, Debug)]
struct Run {
    newest: u64,
    oldest: u64,
    /// Our packet before which something came into it, other than at its newest end while it was open, or before which
    /// it was no longer open.
    changed_at: u64,
}

/// The argument of [`AckRanges::confirm`] when a packet is acked: by default that of a packet without ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    /// Which of our packets with ranges it was, the low bits. The first is 1.
    packet: u16,
    /// How far below the newest packet it reported all.
    reach: u16,
    /// The newest packet received then, the low bits.
    newest: u32,
}

/// The packets received that the peer may not know of.
#[derive(Debug)]
pub(crate) struct AckRanges {
    /// Oldest first, never adjacent.
    runs: VecDeque<Run>,
    /// The newest packet received.
    newest: u64,
    /// Which of our packets with ranges is the next one.
    packet: u64,
}

impl Default for AckRanges {
    fn default() -> Self {
        AckRanges { runs: VecDeque::new(), newest: u64::MAX, packet: 1 }
    }
}

impl AckRanges {
    /// How many packets lie between the oldest that the peer may not know of and the newest.
    pub(crate) fn len(&self) -> usize {
        self.runs.front().map_or(0, |run| self.age(run.oldest) as usize + 1)
    }

    /// How far below the newest packet this one is.
    fn age(&self, number: u64) -> u64 {
        self.newest.wrapping_sub(number)
    }

    /// Records a packet received for the first time; runs that are `window` older than the newest are forgotten.
    pub(crate) fn record(&mut self, sequence: u64, window: usize) {
        let window = window as u64;
        if ahead(sequence, self.newest) > 0 {
            self.append(sequence, window);
        } else if self.age(sequence) < window {
            self.insert(sequence);
        }
        let (packet, newest) = (self.packet, self.newest);
        let is_over = |run: &Run| packet - run.changed_at > MAX_REPORTS && run.newest != newest;
        while self.runs.len() > MAX_RUNS || self.runs.front().is_some_and(is_over) {
            self.runs.pop_front();
        }
    }

    fn append(&mut self, sequence: u64, window: u64) {
        let before = core::mem::replace(&mut self.newest, sequence);
        match self.runs.back_mut().filter(|run| run.newest == before) {
            Some(open) if sequence == before.wrapping_add(1) => open.newest = sequence,
            open => {
                open.into_iter().for_each(|open| open.changed_at = self.packet);
                self.runs.push_back(self.run(sequence));
            }
        }
        let age = |number: u64| sequence.wrapping_sub(number);
        while self.runs.front().is_some_and(|run| age(run.newest) >= window) {
            self.runs.pop_front();
        }
        if let Some(run) = self.runs.front_mut().filter(|run| age(run.oldest) >= window) {
            run.oldest = sequence.wrapping_sub(window - 1);
        }
    }

    /// Notes a packet that is not the newest.
    fn insert(&mut self, sequence: u64) {
        let at = self.runs.partition_point(|run| self.age(run.newest) > self.age(sequence));
        if self.runs.get(at).is_some_and(|run| self.age(run.oldest) >= self.age(sequence)) {
            return;
        }
        let newer =
            self.runs.get(at).filter(|run| run.oldest == sequence.wrapping_add(1)).map(|run| run.newest);
        let older = at.checked_sub(1).map(|at| self.runs[at]);
        let older = older.filter(|run| run.newest == sequence.wrapping_sub(1)).map(|run| run.oldest);
        let run = self.run(sequence);
        let run = Run { newest: newer.unwrap_or(sequence), oldest: older.unwrap_or(sequence), ..run };
        match (older, newer) {
            (Some(_), Some(_)) => {
                self.runs.remove(at);
                self.runs[at - 1] = run;
            }
            (Some(_), None) => self.runs[at - 1] = run,
            (None, Some(_)) => self.runs[at] = run,
            (None, None) => self.runs.insert(at, run),
        }
    }

    /// One packet that nothing has reported.
    fn run(&self, sequence: u64) -> Run {
        Run { newest: sequence, oldest: sequence, changed_at: self.packet }
    }

    /// The ranges that a packet with this `ack` in its header should carry, newest first, as far as there is room.
    pub(crate) fn select(&self, ack: u64, out: &mut Vec<AckRange>) -> Reported {
        out.clear();
        let mut room = Room { at: ack.wrapping_sub(HEADER_ACKS), bits: 0 };
        let mut reach = 0;
        for run in self.runs.iter().rev() {
            // The first fragment of a large packet may be acked long before a whole packet is.
            let is_reached = ack.wrapping_sub(run.oldest) < MAX_BELOW;
            let range = run.beyond_header(ack);
            if !is_reached || !range.is_none_or(|range| room.take(range)) {
                break;
            }
            out.extend(range);
            reach = self.age(run.oldest);
        }
        // Below the standard's bound.
        Reported { packet: self.packet as u16, reach: reach as u16, newest: self.newest as u32 }
    }

    /// The packet that was selected for last is sent.
    pub(crate) fn commit(&mut self, reported: Reported) {
        self.packet += u64::from(reported != Reported::default());
    }

    /// The peer has the packet that reported this.
    pub(crate) fn confirm(&mut self, reported: Reported) {
        if reported == Reported::default() {
            return;
        }
        // Packets are remembered for less than all low bits.
        let since = (self.newest as u32).wrapping_sub(reported.newest);
        let packet = self.packet - u64::from((self.packet as u16).wrapping_sub(reported.packet));
        let (newest, known) = (self.newest, self.newest.wrapping_sub(since.into()));
        let oldest = known.wrapping_sub(reported.reach.into());
        let age = |number: u64| newest.wrapping_sub(number);
        self.runs.retain_mut(|run| {
            let is_known = packet >= run.changed_at && (age(known)..=age(oldest)).contains(&age(run.oldest));
            if is_known {
                run.oldest = known.wrapping_add(1);
            }
            !is_known || age(run.newest) < age(known)
        });
    }
}

impl Run {
    /// The part that the header of `ack` doesn't cover.
    fn beyond_header(&self, ack: u64) -> Option<AckRange> {
        let covered = |number: u64| ack.wrapping_sub(number) < HEADER_ACKS;
        let newest = if covered(self.newest) { ack.wrapping_sub(HEADER_ACKS) } else { self.newest };
        (!covered(self.oldest)).then_some(AckRange { newest, oldest: self.oldest })
    }
}

/// The room that ranges have taken in a packet.
struct Room {
    /// The newest number that the ranges so far don't speak of.
    at: u64,
    bits: usize,
}

impl Room {
    /// Takes the range after those before, if they all fit.
    fn take(&mut self, range: AckRange) -> bool {
        let gap = self.at.wrapping_sub(range.newest);
        let bits =
            self.bits + relative_bits(gap) + relative_bits(range.newest.wrapping_sub(range.oldest)) + 1;
        let fits = bits <= MAX_RANGE_BITS;
        if fits {
            *self = Room { at: range.oldest.wrapping_sub(1), bits };
        }
        fits
    }
}

/// [`Measure::relative`](crate::wire::Measure::relative) for the number after this one, by a table: it is computed
/// for each range of each packet.
fn relative_bits(before: u64) -> usize {
    match before {
        0 => 1,
        1..=5 => 5,
        6..=22 => 8,
        23..=279 => 13,
        280..=4376 => 18,
        _ => 23,
    }
}

#[cfg(test)]
mod tests {
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
        assert!(out.iter().all(|range| room.take(*range)), "{} bits", room.bits);
        (out.iter().map(|range| (range.newest, range.oldest)).collect(), reported)
    }

    fn record(ranges: &mut AckRanges, sequences: impl IntoIterator<Item = u64>) {
        sequences.into_iter().for_each(|sequence| ranges.record(sequence, 1024));
    }

    #[test]
    fn the_table_says_what_relative_integers_take() {
        for before in 0..=u64::from(u16::MAX) {
            assert_eq!(relative_bits(before), crate::wire::Measure::relative(before as u32 + 1), "{before}");
        }
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

    /// To a peer that acks nothing.
    #[test]
    fn a_run_is_reported_so_many_times_and_given_up() {
        let mut ranges = AckRanges::default();
        record(&mut ranges, [0, 1, 2].into_iter().chain(10..200));
        let said_in = (0..1000u64).filter(|n| {
            record(&mut ranges, [200 + n]);
            said(&mut ranges, true).0.contains(&(2, 0))
        });
        assert_eq!(said_in.collect::<Vec<_>>(), (0..=MAX_REPORTS).collect::<Vec<_>>());
        assert_eq!(ranges.runs.len(), 1, "the open one");
    }

    /// The newest runs are reported while there are too many, and the others once those are confirmed.
    #[test]
    fn what_had_no_room_is_not_taken_for_known() {
        let mut ranges = AckRanges::default();
        record(&mut ranges, (0..1_000).filter(|s| s % 5 != 0));
        let (first, reported) = said(&mut ranges, true);
        assert!((40..150).contains(&first.len()), "{}", first.len());
        ranges.confirm(reported);
        let (second, _) = said(&mut ranges, true);
        assert_eq!(second[0].0 + 2, first.last().unwrap().1, "those after the first");
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
        for sequence in 40_000..=40_000 + MAX_REPORTS {
            ranges.record(sequence, 16_384);
            said(&mut ranges, true);
        }
        ranges.record(50_000, 16_384);
        assert_eq!(ranges.runs.len(), 2, "all but the newest are given up");
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
}
