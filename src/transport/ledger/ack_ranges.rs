//! Acks for packets that the reliable header's 32 bits no longer cover.
//!
//! Promises: a received packet is reported in several packets of ours, the first four in a row and then ever further
//! apart, until one of them is acked; no packet carries more than [`MAX_RANGE_BITS`] of ranges, and at most
//! [`MAX_RUNS`] runs are remembered, whatever the peer sends and acks. A packet without losses before it costs
//! nothing to record. Gives up: a run that was reported 11 times, the oldest run if there are more, and runs that the
//! window has passed. A peer whose acks are given up takes its packet for lost.
//!
//! Only packets that [`Acks`](super::acks::Acks) accepted get here. A peer that leaves gaps and acks nothing makes us
//! send some ten bytes for each of its packets, once, and look through all runs for each packet sent.

use std::collections::VecDeque;

use crate::store::sequence::ahead;
use crate::wire::Measure;

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

/// A run is reported in our packets 0, 1, 2, 3, 5, 9, 17, ... 257 after it ended, if nothing confirms it, and then given up:
/// neither a few losses nor an outage of some seconds keeps the peer from knowing.
const LAST_REPORT: u64 = 257;

/// Packets received one after the other that the peer may not know of. The newest run is open: it may grow, and is reported in
/// every packet.
#[derive(Clone, Copy, Debug)]
struct Run {
    newest: u64,
    oldest: u64,
    /// Bit n: the packet of the n-th report had room for this run.
    reported: u16,
    /// Our packet before which something came into it, other than at its newest end while it was open.
    filled_at: u64,
    /// Our packet before which it was no longer open.
    closed_at: u64,
}

/// The argument of [`AckRanges::confirm`] when a packet is acked: by default that of a packet without ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    /// Which of our packets with ranges it was, the low bits. The first is 1.
    packet: u32,
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
    /// Not all that was due had room in the last packet.
    crowded: bool,
}

impl Default for AckRanges {
    fn default() -> Self {
        AckRanges { runs: VecDeque::new(), newest: u64::MAX, packet: 1, crowded: false }
    }
}

impl AckRanges {
    /// How many packets lie between the oldest that the peer may not know of and the newest.
    pub(crate) fn len(&self) -> usize {
        self.runs.front().map_or(0, |run| self.newest.wrapping_sub(run.oldest) as usize + 1)
    }

    /// Records a packet received for the first time; runs that are `window` older than the newest are forgotten.
    pub(crate) fn record(&mut self, sequence: u64, window: usize) {
        if ahead(sequence, self.newest) > 0 {
            self.append(sequence, window);
        } else {
            self.insert(sequence, window);
        }
        let (packet, newest) = (self.packet, self.newest);
        let expired = |run: &Run| packet - run.closed_at > LAST_REPORT && run.newest != newest;
        while self.runs.len() > MAX_RUNS || self.runs.front().is_some_and(expired) {
            self.runs.pop_front();
        }
    }

    fn append(&mut self, sequence: u64, window: usize) {
        let (before, packet) = (self.newest, self.packet);
        self.newest = sequence;
        match self.runs.back_mut().filter(|run| run.newest == before) {
            Some(open) if sequence == before.wrapping_add(1) => open.newest = sequence,
            open => {
                if let Some(open) = open {
                    open.closed_at = packet;
                }
                self.runs.push_back(self.run(sequence));
            }
        }
        let age = |number: u64| sequence.wrapping_sub(number);
        let window = window as u64;
        while self.runs.front().is_some_and(|run| age(run.newest) >= window) {
            self.runs.pop_front();
        }
        if let Some(run) = self.runs.front_mut().filter(|run| age(run.oldest) >= window) {
            run.oldest = sequence.wrapping_sub(window - 1);
        }
    }

    /// Notes a packet that is not the newest.
    fn insert(&mut self, sequence: u64, window: usize) {
        let age = |number: u64| self.newest.wrapping_sub(number);
        if age(sequence) >= window as u64 {
            return;
        }
        let at = self.runs.partition_point(|run| age(run.newest) > age(sequence));
        let joins_newer = self.runs.get(at).is_some_and(|run| run.oldest == sequence.wrapping_add(1));
        let joins_older = at > 0 && self.runs[at - 1].newest == sequence.wrapping_sub(1);
        if self.runs.get(at).is_some_and(|run| age(run.oldest) >= age(sequence)) {
            return;
        }
        let mut run = self.run(sequence);
        if joins_newer {
            run.newest = self.runs[at].newest;
        }
        if joins_older {
            run.oldest = self.runs[at - 1].oldest;
        }
        let at = match (joins_older, joins_newer) {
            (true, true) => {
                self.runs.remove(at);
                at - 1
            }
            (true, false) => at - 1,
            (false, true) => at,
            (false, false) => {
                self.runs.insert(at, run);
                at
            }
        };
        self.runs[at] = run;
    }

    /// One packet that nothing has reported.
    fn run(&self, sequence: u64) -> Run {
        let packet = self.packet;
        Run { newest: sequence, oldest: sequence, reported: 0, filled_at: packet, closed_at: packet }
    }

    /// The ranges that a packet with this `ack` in its header should carry, newest first. If not all that are due
    /// have room, these are the newest of those that were never reported, and the oldest of the others.
    pub(crate) fn select(&mut self, ack: u64, out: &mut Vec<AckRange>) -> Reported {
        out.clear();
        let (newest, packet, crowded) = (self.newest, self.packet, self.crowded);
        let mut room = Room { at: ack.wrapping_sub(HEADER_ACKS), bits: 0 };
        let mut untouched = self.runs.len();
        // Left to older runs, and whether some of these come before one that was taken.
        let (mut left, mut missed) = (false, false);
        self.crowded = false;
        for (index, run) in self.runs.iter_mut().enumerate().rev() {
            let report = if run.newest == newest { Some(0) } else { run.report(packet) };
            let Some(report) = report else { continue };
            let range = run.beyond_header(ack);
            if crowded && run.reported & !report != 0 && range.is_some() {
                run.mark(report, false);
                (self.crowded, left) = (true, true);
                continue;
            }
            let fits = range.is_none_or(|range| room.take(range, MAX_RANGE_BITS / 2));
            run.mark(report, fits);
            if !fits {
                self.crowded = true;
                break;
            }
            out.extend(range);
            (untouched, missed) = (index, missed || left);
        }
        if self.crowded {
            self.crowded = !self.select_oldest(ack, untouched, room, out) || missed;
        }
        Reported { packet: packet as u32, newest: newest as u32 }
    }

    /// Fills the rest of the room from the oldest run on, with those before `end`: whether there was room for all.
    fn select_oldest(&mut self, ack: u64, end: usize, mut room: Room, out: &mut Vec<AckRange>) -> bool {
        let (first, mut all) = (out.len(), true);
        for run in self.runs.range_mut(..end) {
            let Some(report) = run.report(self.packet) else { continue };
            let Some(range) = run.beyond_header(ack) else { continue };
            let older = out.get(first..).and_then(<[AckRange]>::last);
            let fits = room.take_older(range, older);
            run.mark(report, fits);
            out.extend(fits.then_some(range));
            all &= fits;
        }
        out[first..].reverse();
        all
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
        let newest = self.newest;
        let known = newest.wrapping_sub((newest as u32).wrapping_sub(reported.newest).into());
        let packet = self.packet - u64::from((self.packet as u32).wrapping_sub(reported.packet));
        let age = |number: u64| newest.wrapping_sub(number);
        self.runs.retain_mut(|run| {
            if packet < run.filled_at {
                return true;
            }
            let open = run.newest == newest || packet < run.closed_at;
            let told = open || run.report(packet).is_some_and(|report| run.reported & report != 0);
            if !told || age(run.oldest) < age(known) {
                return true;
            }
            run.oldest = known.wrapping_add(1);
            age(run.newest) < age(known)
        });
    }
}

impl Run {
    /// The mark of the report that this packet of ours is to make of it, if any; for runs that are not open.
    fn report(&self, packet: u64) -> Option<u16> {
        match packet.wrapping_sub(self.closed_at) {
            since @ 0..=3 => Some(1 << since),
            since @ 5..=LAST_REPORT if (since - 1).is_power_of_two() => Some(4 << (since - 1).ilog2()),
            _ => None,
        }
    }

    /// Notes whether a report was made.
    fn mark(&mut self, report: u16, made: bool) {
        self.reported = if made { self.reported | report } else { self.reported & !report };
    }

    /// The part that the header of `ack` doesn't cover.
    fn beyond_header(&self, ack: u64) -> Option<AckRange> {
        let covered = |number: u64| ack.wrapping_sub(number) < HEADER_ACKS;
        let newest = if covered(self.newest) { ack.wrapping_sub(HEADER_ACKS) } else { self.newest };
        // The first fragment of a large packet may be acked long before a whole packet is.
        let reached = ack.wrapping_sub(self.oldest) < MAX_BELOW;
        (!covered(self.oldest) && reached).then_some(AckRange { newest, oldest: self.oldest })
    }
}

/// The room that ranges have taken in a packet.
struct Room {
    /// The newest number that the ranges from the newest on don't speak of.
    at: u64,
    bits: usize,
}

impl Room {
    /// Takes the range after those before, if they all fit into these bits.
    fn take(&mut self, range: AckRange, max_bits: usize) -> bool {
        let bits = self.bits + gap_bits(self.at, range) + run_bits(range);
        if bits > max_bits {
            return false;
        }
        *self = Room { at: range.oldest.wrapping_sub(1), bits };
        true
    }

    /// Takes the range in front of `older`, which was taken in this way before, or as the oldest of all.
    fn take_older(&mut self, range: AckRange, older: Option<&AckRange>) -> bool {
        // The newest of these will be no farther from the others than the oldest is, whose gap is counted.
        let gap = older
            .map_or_else(|| gap_bits(self.at, range), |older| gap_bits(range.oldest.wrapping_sub(1), *older));
        let bits = self.bits + gap + run_bits(range);
        let fits = bits <= MAX_RANGE_BITS;
        if fits {
            self.bits = bits;
        }
        fits
    }
}

/// Bits of the gap in front of a range, where the walk has come down to `at`.
fn gap_bits(at: u64, range: AckRange) -> usize {
    Measure::relative(at.wrapping_sub(range.newest) as u32 + 1)
}

/// Bits of the rest of a range.
fn run_bits(range: AckRange) -> usize {
    Measure::relative(range.newest.wrapping_sub(range.oldest) as u32 + 1) + 1
}

#[cfg(test)]
mod tests;
