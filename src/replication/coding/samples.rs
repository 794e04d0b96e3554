//! Samples of ticks, and the models that follow from them.
//!
//! A sample holds the decisions and the ghosts of a tick's packets to a client. Later packets name ticks that the client has
//! acked completely. Their models are the frequencies of the decisions in the samples of these ticks, and the newest one
//! lists the ghosts that are likely to come next.

use std::sync::Arc;

use super::super::class::GhostClass;
use super::{LEAST, Layout, Note, SCALE, Trail};

/// Bits of the age of the newest tick that a packet names. Age 0 names no tick.
pub(in crate::replication) const AGE_BITS: u32 = 6;

/// The maximum of older ticks that a packet names. They directly precede the newest one.
pub(in crate::replication) const OLDER_TICKS: u32 = 15;

/// How long a writer keeps samples, in ticks.
pub(in crate::replication) const KEPT_TICKS: u32 = (1 << AGE_BITS) + OLDER_TICKS;

/// How long a reader keeps them. A writer takes a packet for lost if it was acked too late for all that it names to be kept.
pub(in crate::replication) const READ_TICKS: u32 = 2 * KEPT_TICKS;

/// A writer names a tick while the packets of it and of the later ticks have at most this many entries.
pub(in crate::replication) const MAX_ENTRIES: usize = 1 << 20;

/// A reader keeps at most this many.
pub(in crate::replication) const MAX_READ_ENTRIES: usize = 2 * MAX_ENTRIES;

/// A tick of more packets isn't named.
pub(in crate::replication) const MAX_PACKETS: usize = 64;

/// How many models are looked at together.
const FEW: usize = 16;

/// How often a model's decision was 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    model: u32,
    seen: [u16; 2],
}

/// The part of a class in a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClassSample {
    /// In rising order of models.
    counts: Vec<Count>,
    /// The ghosts that were updated or created, in rising order.
    listing: Listing,
}

/// The ghosts that a section updates or creates, what is known of each, and how far their words are off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::replication) struct Listing {
    ids: Vec<u32>,
    notes: Vec<Note>,
    trails: Vec<Trail>,
    /// How many words each has.
    words: usize,
}

impl Listing {
    /// Begins a section of ghosts with this many words.
    pub(in crate::replication) fn clear(&mut self, words: usize) {
        self.ids.clear();
        self.notes.clear();
        self.trails.clear();
        self.words = words;
    }

    /// Adds a ghost, with the trails that its words had; nothing of one that wasn't listed.
    pub(in crate::replication) fn push(&mut self, id: u32, trails: &[Trail]) {
        let start = self.trails.len();
        self.ids.push(id);
        self.notes.push(Note::default());
        self.trails.extend_from_slice(trails);
        self.trails.resize(start + self.words, Trail::default());
    }

    /// The trails of the last one's words.
    #[inline]
    pub(in crate::replication) fn trails(&mut self) -> &mut [Trail] {
        let start = self.trails.len() - self.words;
        &mut self.trails[start..]
    }

    /// Says what is known of the last one.
    pub(in crate::replication) fn note(&mut self, note: Note) {
        if let Some(last) = self.notes.last_mut() {
            *last = note;
        }
    }

    /// Takes the last one back.
    pub(in crate::replication) fn pop(&mut self) {
        self.ids.pop();
        self.notes.pop();
        self.trails.truncate(self.ids.len() * self.words);
    }

    /// Sorts the ghosts by id, and an id that is given twice by what is known of it.
    fn sort(&mut self) {
        if self.ids.is_sorted_by(|a, b| a < b) {
            return;
        }
        let Listing { ids, notes, trails, words } = self;
        let each = |at: &usize| (ids[*at], notes[*at], &trails[at * *words..][..*words]);
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_unstable_by(|a, b| each(a).cmp(&each(b)));
        let sorted = order.iter().flat_map(|at| each(at).2).copied().collect();
        let (sorted_ids, sorted_notes) = order.iter().map(|at| (each(at).0, each(at).1)).unzip();
        (*ids, *notes) = (sorted_ids, sorted_notes);
        *trails = sorted;
    }
}

impl ClassSample {
    /// The part in all of these packets.
    fn of_all<'s>(packets: impl Iterator<Item = &'s ClassSample> + Clone) -> Self {
        let mut counts: Vec<Count> = packets.clone().flat_map(|packet| &packet.counts).copied().collect();
        counts.sort_by_key(|count| count.model);
        counts.dedup_by(|count, sum| {
            let same = count.model == sum.model;
            if same {
                sum.seen = core::array::from_fn(|bit| sum.seen[bit].saturating_add(count.seen[bit]));
            }
            same
        });
        let mut listing = Listing::default();
        for Listing { ids, notes, trails, words } in packets.map(|packet| &packet.listing) {
            listing.words = listing.words.max(*words);
            listing.ids.extend(ids);
            listing.notes.extend(notes);
            listing.trails.extend(trails);
        }
        listing.sort();
        ClassSample { counts, listing }
    }
}

/// A class's list: ghosts by their place.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replication) struct GhostList<'s> {
    tick: u32,
    pub(in crate::replication) ids: &'s [u32],
    notes: &'s [Note],
    trails: &'s [Trail],
}

impl<'s> GhostList<'s> {
    /// The tick of its packets, and what is known of each ghost.
    pub(in crate::replication) fn notes(self) -> (u32, &'s [Note]) {
        (self.tick, self.notes)
    }

    /// The trails of the words of the ghost at a place.
    pub(in crate::replication) fn trails(self, place: usize) -> &'s [Trail] {
        let words = self.trails.len() / self.ids.len().max(1);
        &self.trails[place * words..][..words]
    }
}

/// The decisions and ghosts of a tick's packets, by class. Classes that aren't coded have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replication) struct Sample {
    tick: u32,
    classes: Box<[ClassSample]>,
}

impl Sample {
    /// The sample of no packet of a tick.
    pub(in crate::replication) fn new(tick: u32, classes: usize) -> Self {
        Sample { tick, classes: vec![ClassSample::default(); classes].into() }
    }

    fn listed(&self, class: usize) -> GhostList<'_> {
        let Listing { ids, notes, trails, .. } = &self.classes[class].listing;
        GhostList { tick: self.tick, ids, notes, trails }
    }

    /// How many entries it has: listed ghosts with their words, models with decisions, and classes.
    pub(in crate::replication) fn entries(&self) -> usize {
        let of = |ClassSample { counts, listing }: &ClassSample| {
            1 + counts.len() + listing.ids.len() + listing.trails.len()
        };
        self.classes.iter().map(of).sum()
    }

    /// Keeps the ghosts of a class's section, and how often each model's decision was 0 and 1.
    pub(in crate::replication) fn keep(&mut self, class: usize, seen: &[[u16; 2]], listing: &mut Listing) {
        listing.sort();
        let mut counts = Vec::new();
        for (seen, first) in seen.chunks(FEW).zip((0..).step_by(FEW)) {
            // Most models decided nothing.
            if seen.iter().fold(0, |any, [zeros, ones]| any | zeros | ones) > 0 {
                let decided = seen.iter().zip(first..).filter(|(seen, _)| **seen != [0; 2]);
                counts.extend(decided.map(|(seen, model)| Count { model, seen: *seen }));
            }
        }
        self.classes[class] = ClassSample { counts, listing: listing.clone() };
    }

    /// The sample of a tick with these packets, at least one, in any order.
    pub(in crate::replication) fn of_tick(packets: &[Arc<Sample>]) -> Arc<Self> {
        if let [packet] = packets {
            return packet.clone();
        }
        let first = &packets[0];
        let classes = (0..first.classes.len())
            .map(|class| ClassSample::of_all(packets.iter().map(move |packet| &packet.classes[class])));
        Arc::new(Sample { tick: first.tick, classes: classes.collect() })
    }
}

/// The frequencies of a class's decisions in the named ticks.
#[derive(Debug, Default)]
struct Frequencies {
    seen: Vec<[u32; 2]>,
    /// By model, the probability of a 1 in units of 2^-[`SCALE`].
    ones: Vec<u16>,
}

impl Frequencies {
    fn new(layout: Layout) -> Self {
        Frequencies { seen: vec![[0; 2]; layout.count()], ones: vec![1 << (SCALE - 1); layout.count()] }
    }

    /// Adds a sample, or takes it back. Its models are unknown until they are found again.
    fn count(&mut self, counts: &[Count], adds: bool) {
        for Count { model, seen } in counts {
            let sums = &mut self.seen[*model as usize];
            for (sum, seen) in sums.iter_mut().zip(seen) {
                // At most 16 samples are named.
                *sum = if adds { *sum + u32::from(*seen) } else { *sum - u32::from(*seen) };
            }
            self.ones[*model as usize] = UNKNOWN;
        }
    }

    /// Finds the models of a sample that are unknown.
    fn find(&mut self, counts: &[Count]) {
        for model in counts.iter().map(|count| count.model as usize) {
            if self.ones[model] == UNKNOWN {
                let [zeros, ones] = self.seen[model];
                // Sixteen samples have fewer than 2^20 of either.
                let one = ((ones + 1) << SCALE) / (zeros + ones + 2);
                // Fits 16 bits.
                self.ones[model] = one.clamp(LEAST, (1 << SCALE) - LEAST) as u16;
            }
        }
    }
}

/// Stands for a probability that isn't known: none is so low.
const UNKNOWN: u16 = 0;

/// The models of packets that name the same ticks.
#[derive(Debug)]
pub(in crate::replication) struct Models {
    /// The samples of the named ticks, the newest one first.
    named: Vec<Arc<Sample>>,
    classes: Box<[Frequencies]>,
}

impl Models {
    /// The models of packets that name no tick.
    pub(in crate::replication) fn first<'c>(classes: impl Iterator<Item = &'c GhostClass>) -> Self {
        let of = |class: &GhostClass| match class.coded {
            true => Frequencies::new(Layout::new(class)),
            false => Frequencies::default(),
        };
        Models { named: Vec::new(), classes: classes.map(of).collect() }
    }

    /// Changes to the models of packets that name these.
    pub(in crate::replication) fn name(&mut self, named: &[Arc<Sample>]) {
        let is_in = |all: &[Arc<Sample>], sample| all.iter().any(|other| Arc::ptr_eq(other, sample));
        let before = core::mem::take(&mut self.named);
        let left = before.iter().filter(|sample| !is_in(named, sample)).map(|sample| (sample, false));
        let entered = named.iter().filter(|sample| !is_in(&before, sample)).map(|sample| (sample, true));
        let changes: Vec<_> = left.chain(entered).collect();
        for (class, i) in self.classes.iter_mut().zip(0..) {
            changes.iter().for_each(|(sample, adds)| class.count(&sample.classes[i].counts, *adds));
            changes.iter().for_each(|(sample, _)| class.find(&sample.classes[i].counts));
        }
        self.named = named.to_vec();
    }

    /// By model, the probability of a 1.
    pub(in crate::replication) fn of(&self, class: usize) -> &[u16] {
        &self.classes[class].ones
    }

    /// The list of a class.
    pub(in crate::replication) fn listed(&self, class: usize) -> GhostList<'_> {
        self.named.first().map_or_else(GhostList::default, |sample| sample.listed(class))
    }
}
