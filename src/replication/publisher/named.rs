//! The ticks that a client's coded packets name: those of which it has acked all coded packets.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::coding::{
    AGE_BITS, KEPT_TICKS, MAX_ENTRIES, MAX_PACKETS, MAX_READ_ENTRIES, Models, OLDER_TICKS, READ_TICKS, Sample,
};
use crate::wire::{BitSink, BitWriter};

/// The maximum of bits that name ticks.
pub(super) const NAMES: usize = (AGE_BITS + 1 + OLDER_TICKS) as usize;

/// A tick in which a client was sent coded packets.
#[derive(Debug)]
struct SentTick {
    tick: u32,
    /// The packets' samples, until the tick is over; then the tick's sample.
    packets: Vec<Arc<Sample>>,
    sample: Option<Arc<Sample>>,
    /// How many entries these have, and how many all before them had.
    entries: usize,
    before: u64,
    /// How many packets it has, and how many of them aren't acked.
    count: usize,
    unacked: u32,
}

/// The ticks that a client's packets may name.
#[derive(Debug, Default)]
pub(super) struct PeerModels {
    ticks: VecDeque<SentTick>,
    /// From this tick on all ticks with coded packets are kept; 0 before the first one.
    first: u32,
    /// How many entries all packets had.
    entries: u64,
    /// What the packet being written names, and its sample.
    pub(super) writing: Option<(Names, Arc<Sample>)>,
    /// The models of the last packet that was written for this client first.
    pub(super) models: Option<Models>,
}

/// The ticks that a packet names: the age of the newest one, and a bit for each older one. None stands for all in which the client
/// was sent anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names {
    age: u32,
    older: Option<u32>,
    /// How many entries all packets before these ticks had.
    before: u64,
}

impl PeerModels {
    /// Notes that the packet was sent in this tick; returns what its coded part names, if it has one.
    pub(super) fn track_sent(&mut self, tick: u32) -> Option<Names> {
        let (names, sample) = self.writing.take()?;
        if self.ticks.back().is_none_or(|sent| sent.tick != tick) {
            self.ticks.push_back(SentTick {
                tick,
                packets: Vec::new(),
                sample: None,
                entries: 0,
                before: self.entries,
                count: 0,
                unacked: 0,
            });
            self.first = if self.first == 0 { tick } else { self.first };
        }
        if let Some(sent) = self.ticks.back_mut() {
            sent.count += 1;
            sent.unacked += 1;
            sent.entries += sample.entries();
            self.entries += sample.entries() as u64;
            // A reader can't tell these from a packet that arrived twice.
            if !sent.packets.contains(&sample) {
                sent.packets.push(sample);
            }
        }
        Some(names)
    }

    /// Whether a client has read the coded part of a packet of tick `sent` that names these, and was acked by `tick`: it skips
    /// one that names what it doesn't keep any more, as later ones overtook it.
    pub(super) fn is_read(&self, names: Names, sent: u32, tick: u32) -> bool {
        names.age == 0
            || tick - (sent - names.age) + OLDER_TICKS < READ_TICKS
                && self.entries - names.before <= MAX_READ_ENTRIES as u64
    }

    /// A packet of this tick with a coded part was delivered, or is lost.
    pub(super) fn handle_notification(&mut self, tick: u32, delivered: bool) {
        let at = self.ticks.partition_point(|sent| sent.tick < tick);
        if let Some(sent) = self.ticks.get_mut(at).filter(|sent| sent.tick == tick && delivered) {
            sent.unacked -= 1;
        }
    }

    /// The tick is over.
    pub(super) fn end_tick(&mut self, tick: u32, samples: &mut TickSamples) {
        if let Some(sent) = self.ticks.back_mut().filter(|sent| sent.tick == tick) {
            sent.sample = Some(samples.of(core::mem::take(&mut sent.packets)));
        }
        let mut entries = 0;
        let kept = self.ticks.iter().rev().take_while(|sent| {
            entries += sent.entries;
            tick - sent.tick < KEPT_TICKS && entries <= MAX_ENTRIES
        });
        let dropped = self.ticks.len() - kept.count();
        if let Some(last) = self.ticks.drain(..dropped).next_back() {
            self.first = last.tick + 1;
        }
    }

    /// The names of the ticks for a packet of this tick, and their samples.
    pub(super) fn name(&self, tick: u32, named: &mut Vec<Arc<Sample>>) -> Names {
        named.clear();
        let known =
            |sent: &SentTick| sent.sample.clone().filter(|_| sent.unacked == 0 && sent.count <= MAX_PACKETS);
        let mut newest_first = self.ticks.iter().rev().skip_while(|sent| known(sent).is_none());
        let Some(newest) = newest_first.next().filter(|newest| (tick - newest.tick) >> AGE_BITS == 0) else {
            return Names::default();
        };
        named.extend(known(newest));
        // The client may know older ticks, from an earlier connection or as it keeps more.
        let (mut older, mut all) = (0, newest.tick - self.first >= OLDER_TICKS);
        let mut before = newest.before;
        for sent in newest_first.take_while(|sent| newest.tick - sent.tick <= OLDER_TICKS) {
            let sample = known(sent);
            all &= sample.is_some();
            older |= u32::from(sample.is_some()) << (newest.tick - sent.tick - 1);
            named.extend(sample);
            before = sent.before;
        }
        Names { age: tick - newest.tick, older: (!all).then_some(older), before }
    }
}

impl Names {
    pub(super) fn write(self, out: &mut BitWriter) {
        out.bits(self.age.into(), AGE_BITS);
        if self.age > 0 {
            out.bool(self.older.is_none());
            if let Some(older) = self.older {
                out.bits(older.into(), OLDER_TICKS);
            }
        }
    }
}

/// Whether these are the same samples, each in its place.
pub(super) fn are_same(some: &[Arc<Sample>], others: &[Arc<Sample>]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// A tick's samples, each with those of the packets that it was made of.
#[derive(Debug, Default)]
pub(super) struct TickSamples(Vec<(Vec<Arc<Sample>>, Arc<Sample>)>);

impl TickSamples {
    /// The sample of a tick with these packets: one for all clients where it is the same.
    fn of(&mut self, packets: Vec<Arc<Sample>>) -> Arc<Sample> {
        if let Some((_, sample)) = self.0.iter().find(|(of, _)| are_same(of, &packets)) {
            return sample.clone();
        }
        let mut sample = Sample::of_tick(&packets);
        if let Some((_, other)) = self.0.iter().find(|(_, other)| *other == sample) {
            sample = other.clone();
        }
        self.0.push((packets, sample.clone()));
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::coding::Listing;

    /// A client that acks after 40 ticks, each with this many entries: how the next packet names ticks.
    fn names(entries: usize) -> Names {
        let (mut models, mut samples) = (PeerModels::default(), TickSamples::default());
        for tick in 1..=100 {
            let mut sample = Sample::new(tick, 1);
            sample.keep(0, &vec![[1, 0]; entries], &mut Listing::default());
            models.writing = Some((Names::default(), Arc::new(sample)));
            models.track_sent(tick);
            models.end_tick(tick, &mut samples);
            models.handle_notification(tick.saturating_sub(40), true);
        }
        models.name(101, &mut Vec::new())
    }

    #[test]
    fn all_older_ticks_are_named_at_once_only_if_none_was_forgotten() {
        let few = names(100);
        assert_eq!((few.age, few.older), (41, None));
        // Of the last ticks 45 are kept: 5 that were acked, the newest one among them.
        let many = names(MAX_ENTRIES / 45 - 1);
        assert_eq!((many.age, many.older), (41, Some(0b1111)));
        let most = names(MAX_ENTRIES / 20);
        assert_eq!((most.age, most.older), (0, None));
    }
}
