//! A client's ghosts of one class.
//!
//! Promises: what is shown of a ghost is of the newest tick that arrived, whole; states of earlier ticks are kept as baselines
//! and never shown. Records for ghosts that aren't there, or of a tick before a ghost's end, are passed over. Refuses an update
//! against a state that the client can't have lost.

use std::sync::Arc;

use super::super::class::GhostClass;
use super::super::packet::Violation;
use super::pages::{PAGE, Page, Pages};
use super::states::States;
use crate::wire::BitReader;

/// What the game sees of a ghost's existence.
const ALIVE: u8 = 1;
/// The client owns it; and the game was told so.
const OWNED: u8 = 2;
const TOLD_OWNED: u8 = 4;
/// The game was not told that it is there.
const FRESH: u8 = 8;
/// It is in the list of what the game has not seen.
const LISTED: u8 = 16;

/// What a record did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing that isn't found out when the game asks.
    Quiet,
    /// What the game was told of ended.
    Despawned,
    /// It was passed over.
    Skipped,
}

/// An update's frame of reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Against {
    pub(super) tick: u32,
    pub(super) baseline: u32,
    pub(super) older: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Ghosts {
    class: Arc<GhostClass>,
    id_of_class: u32,
    pages: Pages,
    /// One more than the highest id of a ghost that was ever there.
    rows: usize,
    /// Ids of which the game has not seen all.
    listed: Vec<u32>,
    /// Properties with words, and those of them that only creates have.
    with_words: u64,
    initial: u64,
    without_words: Box<[usize]>,
    /// Lent: the newest words, the words that are read, and those that they are predicted from.
    newest: Box<[u64]>,
    words: Box<[u64]>,
    base: Box<[u64]>,
    older: Box<[u64]>,
    body: Vec<u8>,
}

impl Ghosts {
    pub(super) fn new(class: Arc<GhostClass>, id_of_class: u32) -> Self {
        let (width, with_words) = (class.properties.word_count(), class.properties.with_words());
        let lent = || vec![0; width].into_boxed_slice();
        let count = class.properties.each().len();
        Ghosts {
            id_of_class,
            pages: Pages::default(),
            rows: 0,
            listed: Vec::new(),
            with_words,
            initial: class.initial() & with_words,
            without_words: (0..count).filter(|i| with_words >> i & 1 == 0).collect(),
            newest: lent(),
            words: lent(),
            base: lent(),
            older: lent(),
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

    /// Whether the game has not seen all of them as they are.
    pub(super) fn has_news(&self) -> bool {
        !self.listed.is_empty()
    }

    pub(super) fn is_alive(&self, id: usize) -> bool {
        self.flags(id) & ALIVE != 0
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
        self.pages.get(id).map_or(0, |(page, at)| page.flags[at])
    }

    pub(super) fn tick(&self, id: usize) -> u32 {
        self.pages.get(id).map_or(0, |(page, at)| page.tick(at))
    }

    pub(super) fn value(&self, id: usize, property: usize) -> Option<&[u8]> {
        let place = self.without_words.iter().position(|each| *each == property)?;
        let (page, at) = self.pages.get(id).filter(|(page, at)| page.flags[*at] & ALIVE != 0)?;
        let body = &*page.bodies[at * self.without_words.len() + place];
        (!body.is_empty()).then_some(body)
    }

    // --- records -----------------------------------------------------------------------------------------

    pub(super) fn create(
        &mut self,
        id: usize,
        tick: u32,
        owner: bool,
        reader: &mut BitReader<'_>,
    ) -> Result<Outcome, Violation> {
        let mask = self.class.created(owner);
        let (mut newest, mut destroyed) = (0, 0);
        match self.pages.get(id) {
            Some((page, at)) => {
                (newest, destroyed) = (page.tick(at), page.destroyed[at]);
                page.newest(at, &mut self.newest);
            }
            None => self.newest.fill(0),
        }
        self.words.copy_from_slice(&self.newest);
        read_words(&self.class, mask & self.with_words, None, reader, &mut self.words)?;
        if tick <= destroyed {
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Skipped);
        }
        if tick <= newest {
            if tick < newest {
                self.insert(id, tick);
            }
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Quiet);
        }
        let fresh = newest == 0;
        let changed =
            if fresh { self.class.properties.all() } else { self.differing(mask & self.with_words) };
        self.push(id, tick);
        self.rows = self.rows.max(id + 1);
        let changed = changed | self.read_bodies(id, mask, reader)?;
        let (page, at) = self.pages.make(id);
        let flags = &mut page.flags[at];
        *flags = *flags & !OWNED | if owner { OWNED } else { 0 };
        if fresh {
            // The game knows of no ghost that it was owned.
            *flags = *flags & !TOLD_OWNED | ALIVE | FRESH | if owner { TOLD_OWNED } else { 0 };
        }
        self.mark(id, changed);
        Ok(Outcome::Quiet)
    }

    #[inline]
    pub(super) fn update(
        &mut self,
        id: usize,
        against: Against,
        mask: u64,
        reader: &mut BitReader<'_>,
    ) -> Result<Outcome, Violation> {
        let Against { tick, baseline, older } = against;
        let page = self.pages.get(id);
        let newest = page.map_or(0, |(page, at)| page.tick(at));
        let known = page.is_some_and(|(page, at)| {
            newest > 0
                && tick > page.destroyed[at]
                && page.at(at, baseline, &mut self.base)
                && older.is_none_or(|older| page.at(at, older, &mut self.older))
        });
        let linear = older.is_some() && reader.bool()?;
        if !known {
            if newest > 0 && tick > newest {
                // What the server names was acked, and is among the newest.
                return Err(Violation::Baseline { class: self.id_of_class, id: id as u32 });
            }
            self.class.properties.skip(reader, mask & self.with_words, true)?;
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Skipped);
        }
        self.words.copy_from_slice(&self.base);
        let with_words = mask & self.with_words;
        if linear && let Some(older) = older {
            // Ages have 16 bits.
            let (past, ahead) = ((baseline - older) as u16, (tick - baseline) as u16);
            self.extrapolate(with_words, past, ahead);
        }
        read_words(&self.class, with_words, Some(&self.base), reader, &mut self.words)?;
        if let Some((page, at)) = self.pages.get(id) {
            page.newest(at, &mut self.newest);
        }
        if self.initial != 0 {
            // Those come with creates alone: the newest create's are these.
            copy_words(&self.class, self.initial, &self.newest, &mut self.words);
        }
        if tick <= newest {
            if tick < newest {
                self.insert(id, tick);
            }
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Quiet);
        }
        let changed = self.differing(with_words);
        self.push(id, tick);
        let changed = changed | self.read_bodies(id, mask, reader)?;
        self.mark(id, changed);
        Ok(Outcome::Quiet)
    }

    pub(super) fn destroy(&mut self, id: usize, tick: u32) -> Outcome {
        // Its create may be on its way yet: the end is remembered.
        let (page, at) = self.pages.make(id);
        if tick <= page.destroyed[at] || page.tick(at) >= tick {
            // Of a ghost that had the id before, or of one that isn't there.
            return Outcome::Skipped;
        }
        page.destroyed[at] = tick;
        let flags = page.flags[at];
        if flags & ALIVE == 0 {
            return Outcome::Skipped;
        }
        page.flags[at] = flags & LISTED;
        page.dirty[at] = 0;
        if let Some(states) = &mut page.states {
            states.clear(at);
        }
        let count = self.without_words.len();
        page.bodies[at * count..][..count].fill(Box::default());
        // One that the game has not heard of was never there for it.
        if flags & FRESH == 0 { Outcome::Despawned } else { Outcome::Quiet }
    }

    /// Keeps the words as the newest of a ghost.
    #[inline]
    fn push(&mut self, id: usize, tick: u32) {
        let (page, at) = self.pages.make(id);
        let states = match &mut page.states {
            Some(states) => states,
            None => {
                page.bodies.resize(PAGE * self.without_words.len(), Box::default());
                let states = States::new(self.words.len(), !self.class.has_wide_words());
                page.states.insert(Box::new(states))
            }
        };
        states.push(at, tick, &self.words, &self.newest);
    }

    /// Keeps the words as those of an earlier tick. The newest ones are lent.
    fn insert(&mut self, id: usize, tick: u32) {
        if let Some((Page { states: Some(states), .. }, at)) = self.pages.get_mut(id) {
            states.insert(at, tick, &self.words, &mut self.newest);
        }
    }

    /// Makes what the properties of a mask are predicted to be their base.
    fn extrapolate(&mut self, mask: u64, past: u16, ahead: u16) {
        for (i, property) in each(&self.class, mask) {
            let range = self.class.properties.word_start(i);
            let range = range..range + property.words().len();
            let (older, newer) = (&self.older[range.clone()], &self.words[range.clone()]);
            property.extrapolate(older, newer, past, ahead, &mut self.base[range]);
        }
    }

    /// The properties of a mask whose words are others than the newest.
    #[inline]
    fn differing(&self, mask: u64) -> u64 {
        let mut changed = 0;
        for (i, property) in each(&self.class, mask) {
            let start = self.class.properties.word_start(i);
            let range = start..start + property.words().len();
            changed |= u64::from(self.words[range.clone()] != self.newest[range]) << i;
        }
        changed
    }

    #[inline]
    fn mark(&mut self, id: usize, changed: u64) {
        let (page, at) = self.pages.make(id);
        page.dirty[at] |= changed;
        if page.flags[at] & LISTED == 0 {
            page.flags[at] |= LISTED;
            // Below the capacity.
            self.listed.push(id as u32);
        }
    }

    /// Reads the properties of a mask that have no words; gives those that are others than before.
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

    // --- the game's tick ---------------------------------------------------------------------------------

    /// Forgets all of them. Calls `told` with each that the game was told of, by id.
    pub(super) fn clear(&mut self, mut told: impl FnMut(u32)) {
        for id in 0..self.rows {
            if self.flags(id) & (ALIVE | FRESH) == ALIVE {
                // Below the capacity.
                told(id as u32);
            }
        }
        self.pages = Pages::default();
        self.listed.clear();
    }

    /// Calls `told` with each ghost that is new to the game, by id: before [`Ghosts::take`].
    pub(super) fn take_spawns(&mut self, mut told: impl FnMut(u32)) {
        self.listed.sort_unstable();
        for id in &self.listed {
            if self.flags(*id as usize) & (ALIVE | FRESH) == ALIVE | FRESH {
                told(*id);
            }
        }
    }

    /// Puts what changed into the columns, a cell a ghost; ghosts that a column has no cell for wait. Calls `told` with each
    /// ghost, the mask of what changed, whether it is new to the game, and whose it is when that changed.
    pub(super) fn take(
        &mut self,
        columns: &mut [&mut [u8]],
        mut told: impl FnMut(u32, u64, bool, Option<bool>),
    ) {
        if self.listed.is_empty() {
            return;
        }
        let rows = self.rows_in(columns);
        let mut listed = core::mem::take(&mut self.listed);
        let first_waiting = listed.partition_point(|id| (*id as usize) < rows);
        for id in &listed[..first_waiting] {
            self.restore(*id as usize, columns);
        }
        for id in &listed[..first_waiting] {
            let Some((page, at)) = self.pages.get_mut(*id as usize) else { continue };
            let flags = page.flags[at];
            page.flags[at] &= !(LISTED | FRESH);
            let mask = core::mem::take(&mut page.dirty[at]);
            if flags & ALIVE == 0 {
                continue;
            }
            let (owned, told_owned) = (flags & OWNED != 0, flags & TOLD_OWNED != 0);
            let owner = (owned != told_owned).then_some(owned);
            if owner.is_some() {
                page.flags[at] ^= TOLD_OWNED;
            }
            told(*id, mask, flags & FRESH != 0, owner);
        }
        listed.drain(..first_waiting);
        // The game was told that these are there; their values come when there are cells.
        for id in &listed {
            if let Some((page, at)) = self.pages.get_mut(*id as usize) {
                page.flags[at] &= !FRESH;
            }
        }
        self.listed = listed;
    }

    /// Ghosts that all columns have cells for.
    fn rows_in(&self, columns: &[&mut [u8]]) -> usize {
        let sizes = each(&self.class, self.with_words).map(|(i, property)| {
            let bytes = columns.get(i).map_or(0, |column| column.len());
            bytes.checked_div(property.field().node().size()).unwrap_or(usize::MAX)
        });
        sizes.min().unwrap_or(usize::MAX)
    }

    #[inline]
    fn restore(&mut self, id: usize, columns: &mut [&mut [u8]]) {
        let Some((page, at)) = self.pages.get(id) else { return };
        let mask = page.dirty[at] & self.with_words;
        if mask == 0 || page.flags[at] & ALIVE == 0 {
            return;
        }
        page.newest(at, &mut self.newest);
        for (i, property) in each(&self.class, mask) {
            let (start, size) = (self.class.properties.word_start(i), property.field().node().size());
            let words = &self.newest[start..start + property.words().len()];
            property.restore_column(words, &mut columns[i][id * size..][..size], size);
        }
    }
}

/// The properties of a mask, with their indices.
#[inline]
fn each(class: &GhostClass, mut mask: u64) -> impl Iterator<Item = (usize, &crate::wire::Property)> {
    let properties = class.properties.each();
    core::iter::from_fn(move || {
        let i = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        properties.get(i).map(|property| (i, property))
    })
}

#[inline]
fn read_words(
    class: &GhostClass,
    mask: u64,
    base: Option<&[u64]>,
    reader: &mut BitReader<'_>,
    words: &mut [u64],
) -> Result<(), Violation> {
    for (i, property) in each(class, mask) {
        let start = class.properties.word_start(i);
        let range = start..start + property.words().len();
        match base {
            Some(base) => property.read_delta(&base[range.clone()], reader, &mut words[range])?,
            None => property.read(reader, &mut words[range])?,
        }
    }
    Ok(())
}

fn copy_words(class: &GhostClass, mask: u64, from: &[u64], to: &mut [u64]) {
    for (i, property) in each(class, mask) {
        let start = class.properties.word_start(i);
        let range = start..start + property.words().len();
        to[range.clone()].copy_from_slice(&from[range]);
    }
}
