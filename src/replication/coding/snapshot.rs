//! Snapshots of the models that both sides have, from which packets start, and the ghosts of their packet.

use std::sync::Arc;

use super::super::class::Classes;
use super::note::Note;
use super::{Layout, Model, Trail};

/// Bits of a snapshot's number (0 is the initial one), and how many others a client keeps.
pub(in crate::replication) const SLOT_BITS: u32 = 4;
pub(in crate::replication) const SLOTS: usize = (1 << SLOT_BITS) - 1;

/// The maximum of `seen` in a snapshot's models, so that they go on learning.
const SEEN: u8 = 40;

/// The kept state of a class.
#[derive(Clone, Debug, Default)]
struct Kept {
    models: Box<[Model]>,
    /// The ghosts that its section updated or created, in rising order: the next packets are likely to be about them.
    ids: Box<[u32]>,
    /// What is known of each of these, and of its words.
    notes: Box<[Note]>,
    trails: Box<[Trail]>,
    /// The packet's tick.
    tick: u32,
}

/// The ghosts that a section updates or creates, and how far their words are off.
#[derive(Debug, Default)]
pub(in crate::replication) struct Listing {
    ids: Vec<u32>,
    notes: Vec<Note>,
    trails: Vec<Trail>,
    words: usize,
    order: Vec<(u32, u32)>,
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
    pub(in crate::replication) fn push(&mut self, id: u32, trails: &[Trail]) -> &mut [Trail] {
        let start = self.trails.len();
        self.ids.push(id);
        self.notes.push(Note::default());
        self.trails.extend_from_slice(trails);
        self.trails.resize(start + self.words, Trail::default());
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

    /// All by rising ids.
    fn sorted(&mut self) -> (Box<[u32]>, Box<[Note]>, Box<[Trail]>) {
        self.order.clear();
        self.order.extend(self.ids.iter().copied().zip(0..));
        // Two runs that rise; an id that is given twice keeps its order.
        self.order.sort();
        let ids = self.order.iter().map(|(id, _)| *id).collect();
        let notes = self.order.iter().map(|(_, at)| self.notes[*at as usize]).collect();
        let mut trails = Vec::with_capacity(self.trails.len());
        for (_, at) in &self.order {
            trails.extend_from_slice(&self.trails[*at as usize * self.words..][..self.words]);
        }
        (ids, notes, trails.into())
    }
}

/// A class's list: ghosts by their place.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct Listed<'s> {
    pub(in crate::replication) ids: &'s [u32],
    pub(super) notes: &'s [Note],
    /// The tick of its packet.
    pub(super) tick: u32,
    trails: &'s [Trail],
}

impl<'s> Listed<'s> {
    /// Of a place's words.
    pub(in crate::replication) fn trails(self, place: usize) -> &'s [Trail] {
        let words = self.trails.len() / self.ids.len().max(1);
        &self.trails[place * words..][..words]
    }
}

/// The state of all classes, empty for classes that aren't coded.
#[derive(Clone, Debug)]
pub(in crate::replication) struct Snapshot(Box<[Arc<Kept>]>);

impl Snapshot {
    /// The state before any packet.
    pub(in crate::replication) fn first(classes: &Classes) -> Self {
        let of =
            |layout: Layout| Kept { models: vec![Model::EVEN; layout.count()].into(), ..Kept::default() };
        let each = classes
            .iter()
            .map(|class| Arc::new(if class.coded { of(Layout::new(class)) } else { Kept::default() }));
        Snapshot(each.collect())
    }

    pub(in crate::replication) fn models(&self, class: usize) -> &[Model] {
        &self.0[class].models
    }

    pub(in crate::replication) fn listed(&self, class: usize) -> Listed<'_> {
        let Kept { ids, notes, trails, tick, .. } = &*self.0[class];
        Listed { ids, notes, tick: *tick, trails }
    }

    /// Keeps the models of a class as they stand, and these ghosts of a packet of this tick.
    pub(in crate::replication) fn keep(
        &mut self,
        class: usize,
        tick: u32,
        models: &[Model],
        listing: &mut Listing,
    ) {
        let models = models.iter().map(|model| Model { seen: model.seen.min(SEEN), ..*model }).collect();
        let (ids, notes, trails) = listing.sorted();
        self.0[class] = Arc::new(Kept { models, ids, notes, trails, tick });
    }
}
