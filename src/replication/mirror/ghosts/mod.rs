//! A client's ghosts of one class.
//!
//! Promises: a ghost is shown in its newest state that arrived, complete; states of earlier ticks are kept as
//! baselines and never shown. Records about ghosts that don't exist, or from before a ghost's end, are skipped.
//! Refuses an update against a state that the client can't have lost.

mod taking;

use std::sync::Arc;

use super::super::class::GhostClass;
use super::super::coding::WINDOW;
use super::super::lives::Lives;
use super::super::packet::{Audience, Base, Violation};
use super::pages::{PAGE, Page, Pages};
use super::source::{Bases, RecordSource};
use super::states::Form;
use crate::wire::BitReader;

/// The ghost exists for the game.
const ALIVE: u8 = 1;
/// The client owns it; and that was reported to the game.
const OWNED: u8 = 2;
const REPORTED_OWNED: u8 = 4;
/// Its spawn was not reported yet.
const FRESH: u8 = 8;
/// It is in the list of unreported changes.
const LISTED: u8 = 16;
/// The game chose the client for it.
const CHOSEN: u8 = 32;

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing that isn't found out when the game asks.
    Quiet,
    /// A ghost that was reported to the game ended.
    Despawned,
    /// It was passed over.
    Skipped,
}

/// An update's frame of reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Against {
    pub(super) tick: u32,
    pub(super) base: Base,
}

#[derive(Debug)]
pub(super) struct Ghosts {
    class: Arc<GhostClass>,
    id_of_class: u32,
    pub(super) pages: Pages,
    /// Despawned ghosts, for views of an earlier tick.
    pub(super) departed: Lives,
    /// One more than the highest id of a ghost that was ever there.
    rows: usize,
    /// Ids with unreported changes.
    listed: Vec<u32>,
    /// Properties with words, and those of them that only creates have.
    with_words: u64,
    initial: u64,
    without_words: Box<[usize]>,
    /// Lent buffers: the newest words, the words being read, and those of the states they are predicted from, newest first.
    newest: Box<[u64]>,
    words: Box<[u64]>,
    bases: Box<[u64]>,
    body: Vec<u8>,
}

impl Ghosts {
    pub(super) fn new(class: Arc<GhostClass>, id_of_class: u32) -> Self {
        let (width, with_words) = (class.properties.word_count(), class.properties.with_words());
        let lent = || vec![0; width].into_boxed_slice();
        let count = class.properties.each().len();
        Ghosts {
            id_of_class,
            pages: Pages::new(Form::new(width, !class.has_wide_words())),
            departed: Lives::default(),
            rows: 0,
            listed: Vec::new(),
            with_words,
            initial: class.initial() & with_words,
            without_words: (0..count).filter(|i| with_words >> i & 1 == 0).collect(),
            newest: lent(),
            words: lent(),
            bases: vec![0; width * if class.coded { WINDOW } else { 2 }].into(),
            body: Vec::new(),
            class,
        }
    }

    pub(super) fn class(&self) -> &GhostClass {
        &self.class
    }

    /// One more than the highest id of a ghost that was ever there.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there are unreported changes.
    pub(super) fn has_news(&self) -> bool {
        !self.listed.is_empty()
    }

    pub(super) fn is_alive(&self, id: usize) -> bool {
        self.flags(id) & ALIVE != 0
    }

    /// The client's group in the class: which properties of the ghost it is sent.
    pub(super) fn group(&self, id: usize) -> usize {
        let flags = self.flags(id);
        self.class.group(flags & OWNED != 0, flags & CHOSEN != 0)
    }

    /// Whether it exists, and that was reported to the game.
    pub(super) fn is_reported(&self, id: usize) -> bool {
        self.flags(id) & (ALIVE | FRESH) == ALIVE
    }

    pub(super) fn is_owned(&self, id: usize) -> bool {
        self.flags(id) & (ALIVE | OWNED) == ALIVE | OWNED
    }

    /// The ids of ghosts that the client owns, with the ticks of their newest states.
    pub(super) fn owned(&self) -> impl Iterator<Item = (u32, u32)> {
        let owned = (0..self.rows()).filter(|id| self.is_owned(*id));
        // Ids are below the capacity.
        owned.map(|id| (id as u32, self.tick(id)))
    }

    fn flags(&self, id: usize) -> u8 {
        self.pages.get(id).map_or(0, |(page, at)| page.states.flags(at))
    }

    pub(super) fn tick(&self, id: usize) -> u32 {
        self.pages.get(id).map_or(0, |(page, at)| page.states.tick(at))
    }

    /// The tick of the last end of a ghost with this id, 0 if there was none.
    pub(super) fn destroyed_at(&self, id: usize) -> u32 {
        self.pages.get(id).map_or(0, |(page, at)| page.states.destroyed(at))
    }

    pub(super) fn value(&self, id: usize, property: usize) -> Option<&[u8]> {
        let place = self.without_words.iter().position(|each| *each == property)?;
        let (page, at) = self.pages.get(id).filter(|(page, at)| page.states.flags(*at) & ALIVE != 0)?;
        let body = &*page.bodies[at * self.without_words.len() + place];
        (!body.is_empty()).then_some(body)
    }

    // --- records -----------------------------------------------------------------------------------------

    pub(super) fn create(
        &mut self,
        id: usize,
        tick: u32,
        audience: Audience,
        source: &mut impl RecordSource,
    ) -> Result<Outcome, Violation> {
        let mask = self.class.created(audience.group(&self.class).into());
        let (mut newest, mut destroyed) = (0, 0);
        match self.pages.get(id) {
            Some((page, at)) => {
                (newest, destroyed) = (page.states.tick(at), page.states.destroyed(at));
                page.states.newest(at, &mut self.newest);
            }
            None => self.newest.fill(0),
        }
        self.words.copy_from_slice(&self.newest);
        source.created(&self.class, mask & self.with_words, &mut self.words)?;
        if tick <= destroyed {
            source.others(mask & !self.with_words, |reader| self.skip_bodies(mask, reader))?;
            return Ok(Outcome::Skipped);
        }
        if tick <= newest {
            if tick < newest {
                self.insert(id, tick);
            }
            source.others(mask & !self.with_words, |reader| self.skip_bodies(mask, reader))?;
            return Ok(Outcome::Quiet);
        }
        let fresh = newest == 0;
        // The game has defaults of what wasn't sent, whatever words these have.
        let begun = mask & !self.class.created(self.group(id));
        let differing = self.differing(id, mask & self.with_words) | begun & self.with_words;
        let changed = if fresh { self.class.properties.all() } else { differing };
        self.push(id, tick);
        self.rows = self.rows.max(id + 1);
        let changed =
            changed | source.others(mask & !self.with_words, |reader| self.read_bodies(id, mask, reader))?;
        let (page, at) = self.pages.make(id);
        let mut flags = page.states.flags(at) & !(OWNED | CHOSEN);
        flags |= if audience.owner { OWNED } else { 0 } | if audience.chosen { CHOSEN } else { 0 };
        if fresh {
            // The game knows of no ghost that it was owned.
            flags = flags & !REPORTED_OWNED | ALIVE | FRESH | if audience.owner { REPORTED_OWNED } else { 0 };
        }
        page.states.set_flags(at, flags);
        self.mark(id, changed);
        Ok(Outcome::Quiet)
    }

    #[inline]
    pub(super) fn update(
        &mut self,
        id: usize,
        against: Against,
        mask: u64,
        source: &mut impl RecordSource,
    ) -> Result<Outcome, Violation> {
        let Against { tick, base } = against;
        let page = self.pages.get(id);
        let newest = page.map_or(0, |(page, at)| page.states.tick(at));
        let width = self.words.len();
        let (states, deepest) = (&mut *self.bases, source.depth() - 1);
        let known = page.is_some_and(|(page, at)| {
            newest > 0
                && tick > page.states.destroyed(at)
                && match base {
                    Base::Newest { depth } => (0..=depth.min(deepest)).all(|back| {
                        page.states.before(at, tick, back, &mut states[usize::from(back) * width..][..width])
                    }),
                    Base::Named { baseline, older } => {
                        page.states.at(at, baseline, &mut states[..width])
                            && (older == 0 || page.states.at(at, older, &mut states[width..][..width]))
                    }
                }
        });
        let with_words = mask & self.with_words;
        if !known {
            if newest > 0 && tick > newest {
                // A baseline that the server names was acked, and is among the newest.
                return Err(Violation::Baseline { class: self.id_of_class, id: id as u32 });
            }
            source.pass_over(&self.class, with_words, base.depth())?;
            source.others(mask & !self.with_words, |reader| self.skip_bodies(mask, reader))?;
            return Ok(Outcome::Skipped);
        }
        self.words.copy_from_slice(&self.bases[..width]);
        let (past, ahead) = match base {
            Base::Newest { .. } => (1, 1),
            // Ages have 16 bits.
            Base::Named { baseline, older } => ((baseline - older) as u16, (tick - baseline) as u16),
        };
        let bases = Bases { states: &mut self.bases, past, ahead };
        source.updated(&self.class, with_words, base.depth(), bases, &mut self.words)?;
        if (self.initial != 0 || tick < newest)
            && let Some((page, at)) = self.pages.get(id)
        {
            page.states.newest(at, &mut self.newest);
        }
        if self.initial != 0 {
            // Those come with creates alone: the newest create's are these.
            copy_words(&self.class, self.initial, &self.newest, &mut self.words);
        }
        if tick <= newest {
            if tick < newest {
                self.insert(id, tick);
            }
            source.others(mask & !self.with_words, |reader| self.skip_bodies(mask, reader))?;
            return Ok(Outcome::Quiet);
        }
        let changed = self.differing(id, with_words);
        self.push(id, tick);
        let changed =
            changed | source.others(mask & !self.with_words, |reader| self.read_bodies(id, mask, reader))?;
        self.mark(id, changed);
        Ok(Outcome::Quiet)
    }

    pub(super) fn destroy(&mut self, id: usize, tick: u32) -> Outcome {
        // Its create may still be in flight: the end is remembered.
        let (page, at) = self.pages.make(id);
        let states = &mut page.states;
        if tick <= states.destroyed(at) || states.tick(at) >= tick {
            // About an earlier ghost with this id, or one that doesn't exist.
            return Outcome::Skipped;
        }
        states.set_destroyed(at, tick);
        page.version = page.version.wrapping_add(1);
        let flags = states.flags(at);
        if flags & ALIVE == 0 {
            return Outcome::Skipped;
        }
        states.set_flags(at, flags & LISTED);
        states.set_dirty(at, 0);
        if self.departed.is_kept() && states.tick(at) > 0 {
            let ticks = states.all_ticks(at).collect();
            self.departed.push(id, tick, self.words.len(), ticks, |tick, words| {
                states.at(at, tick, words);
            });
        }
        states.clear(at);
        let count = self.without_words.len();
        page.bodies[at * count..][..count].fill(Box::default());
        // One that the game has not heard of was never there for it.
        if flags & FRESH == 0 { Outcome::Despawned } else { Outcome::Quiet }
    }

    /// Keeps the words as the newest of a ghost.
    #[inline]
    fn push(&mut self, id: usize, tick: u32) {
        let (page, at) = self.pages.make(id);
        if page.bodies.is_empty() && !self.without_words.is_empty() {
            page.bodies.resize(PAGE * self.without_words.len(), Box::default());
        }
        page.states.push(at, tick, &self.words);
    }

    /// Stores the words under an earlier tick. The newest ones are lent.
    fn insert(&mut self, id: usize, tick: u32) {
        if let Some((Page { states, version, .. }, at)) = self.pages.get_mut(id) {
            *version = version.wrapping_add(1);
            states.insert(at, tick, &self.words, &mut self.newest);
        }
    }

    /// The properties of a mask whose words differ from the newest.
    #[inline]
    fn differing(&self, id: usize, mask: u64) -> u64 {
        self.pages
            .get(id)
            .map_or(mask, |(page, at)| page.states.differing(at, &self.class, mask, &self.words))
    }

    #[inline]
    fn mark(&mut self, id: usize, changed: u64) {
        let (page, at) = self.pages.make(id);
        let flags = page.states.flags(at);
        page.states.set_dirty(at, page.states.dirty(at) | changed);
        if flags & LISTED == 0 {
            page.states.set_flags(at, flags | LISTED);
            // Below the capacity.
            self.listed.push(id as u32);
        }
    }

    /// Reads the properties of a mask that have no words; returns those that changed.
    #[inline]
    fn read_bodies(&mut self, id: usize, mask: u64, reader: &mut BitReader<'_>) -> Result<u64, Violation> {
        let mut changed = 0;
        let count = self.without_words.len();
        for (place, property) in self.without_words.iter().enumerate() {
            if mask >> property & 1 == 0 {
                continue;
            }
            self.body.clear();
            self.class.properties.read_fields(reader, 1 << property, &mut self.body)?;
            let (page, at) = self.pages.make(id);
            let body = &mut page.bodies[at * count + place];
            if **body != *self.body {
                *body = self.body.as_slice().into();
                changed |= 1 << property;
            }
        }
        Ok(changed)
    }

    /// Passes over the properties of a mask that have no words.
    #[inline]
    fn skip_bodies(&mut self, mask: u64, reader: &mut BitReader<'_>) -> Result<(), Violation> {
        for property in &self.without_words {
            if mask >> property & 1 == 1 {
                self.body.clear();
                self.class.properties.read_fields(reader, 1 << property, &mut self.body)?;
            }
        }
        Ok(())
    }
}

fn copy_words(class: &GhostClass, mask: u64, from: &[u64], to: &mut [u64]) {
    for (i, _) in class.properties.of(mask) {
        let range = class.properties.word_range(i);
        to[range.clone()].copy_from_slice(&from[range]);
    }
}
