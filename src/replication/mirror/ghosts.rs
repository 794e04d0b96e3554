//! A client's ghosts of one class.
//!
//! Promises: what is shown of a ghost is of the newest tick that arrived, whole; states of earlier ticks are kept as baselines
//! and never shown. Records for ghosts that aren't there, or of a tick before a ghost's end, are passed over. Refuses an update
//! against a state that the client can't have lost.

use std::sync::Arc;

use super::super::class::GhostClass;
use super::super::packet::Violation;
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
    /// Nothing that the game hears of by itself.
    Quiet,
    Spawned,
    Despawned,
    /// It ended before the game had heard of it.
    Vanished,
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
    states: States,
    flags: Vec<u8>,
    /// The tick of each id's last destroy.
    destroyed: Vec<u32>,
    /// Properties that the game has not seen, by id, and those ids.
    dirty: Vec<u64>,
    listed: Vec<u32>,
    /// Properties with words, and those of them that only creates have.
    with_words: u64,
    initial: u64,
    /// Bodies of properties without words, by id and then by property.
    without_words: Box<[usize]>,
    bodies: Vec<Box<[u8]>>,
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
            states: States::new(width, !class.has_wide_words()),
            id_of_class,
            flags: Vec::new(),
            destroyed: Vec::new(),
            dirty: Vec::new(),
            listed: Vec::new(),
            with_words,
            initial: class.initial() & with_words,
            without_words: (0..count).filter(|i| with_words >> i & 1 == 0).collect(),
            bodies: Vec::new(),
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

    /// One more than the highest id that was ever used.
    pub(super) fn rows(&self) -> usize {
        self.flags.len()
    }

    /// Whether the game has not seen all of them as they are.
    pub(super) fn has_news(&self) -> bool {
        !self.listed.is_empty()
    }

    pub(super) fn is_alive(&self, id: usize) -> bool {
        self.flags.get(id).is_some_and(|flags| flags & ALIVE != 0)
    }

    pub(super) fn is_owned(&self, id: usize) -> bool {
        self.flags.get(id).is_some_and(|flags| flags & (ALIVE | OWNED) == ALIVE | OWNED)
    }

    pub(super) fn tick(&self, id: usize) -> u32 {
        if self.is_alive(id) { self.states.tick(id) } else { 0 }
    }

    pub(super) fn value(&self, id: usize, property: usize) -> Option<&[u8]> {
        let place = self.without_words.iter().position(|each| *each == property)?;
        let body = self.is_alive(id).then(|| &*self.bodies[id * self.without_words.len() + place])?;
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
        self.reserve(id);
        let mask = self.class.created(owner);
        self.states.newest(id, &mut self.newest);
        self.words.copy_from_slice(&self.newest);
        read_words(&self.class, mask & self.with_words, None, reader, &mut self.words)?;
        let newest = self.states.tick(id);
        if tick <= self.destroyed[id] {
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Skipped);
        }
        if tick <= newest {
            if tick < newest {
                self.states.insert(id, tick, &self.words, &mut self.newest);
            }
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Quiet);
        }
        let fresh = newest == 0;
        let changed =
            if fresh { self.class.properties.all() } else { self.differing(mask & self.with_words) };
        self.states.push(id, tick, &self.words, &self.newest);
        let changed = changed | self.read_bodies(id, mask, reader)?;
        let flags = &mut self.flags[id];
        *flags = *flags & !OWNED | if owner { OWNED } else { 0 };
        if fresh {
            // The game knows of no ghost that it was owned.
            *flags = *flags & !TOLD_OWNED | ALIVE | FRESH | if owner { TOLD_OWNED } else { 0 };
        }
        self.mark(id, changed);
        Ok(if fresh { Outcome::Spawned } else { Outcome::Quiet })
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
        let newest = if self.is_alive(id) { self.states.tick(id) } else { 0 };
        let known = newest > 0
            && tick > self.destroyed[id]
            && self.states.at(id, baseline, &mut self.base)
            && older.is_none_or(|older| self.states.at(id, older, &mut self.older));
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
        self.states.newest(id, &mut self.newest);
        if self.initial != 0 {
            // Those come with creates alone: the newest create's are these.
            copy_words(&self.class, self.initial, &self.newest, &mut self.words);
        }
        if tick <= newest {
            if tick < newest {
                self.states.insert(id, tick, &self.words, &mut self.newest);
            }
            self.skip_bodies(mask, reader)?;
            return Ok(Outcome::Quiet);
        }
        let changed = self.differing(with_words);
        self.states.push(id, tick, &self.words, &self.newest);
        let changed = changed | self.read_bodies(id, mask, reader)?;
        self.mark(id, changed);
        Ok(Outcome::Quiet)
    }

    pub(super) fn destroy(&mut self, id: usize, tick: u32) -> Outcome {
        self.reserve(id);
        let newest = self.states.tick(id);
        if tick <= self.destroyed[id] || newest >= tick {
            // Of a ghost that had the id before, or of one that isn't there.
            return Outcome::Skipped;
        }
        self.destroyed[id] = tick;
        let flags = self.flags[id];
        if flags & ALIVE == 0 {
            return Outcome::Skipped;
        }
        self.flags[id] = flags & LISTED;
        self.dirty[id] = 0;
        self.states.clear(id);
        let count = self.without_words.len();
        self.bodies[id * count..][..count].fill(Box::default());
        if flags & FRESH == 0 { Outcome::Despawned } else { Outcome::Vanished }
    }

    /// Makes room for this id, which is below the capacity.
    fn reserve(&mut self, id: usize) {
        if id < self.flags.len() {
            return;
        }
        let rows = id + 1;
        if rows > self.flags.capacity() {
            let reserved = rows.max(self.flags.capacity() * 2).min(self.class.capacity as usize);
            self.flags.reserve_exact(reserved - self.flags.len());
            self.destroyed.reserve_exact(reserved - self.destroyed.len());
            self.dirty.reserve_exact(reserved - self.dirty.len());
            self.states.reserve(self.flags.capacity());
        }
        self.flags.resize(rows, 0);
        self.destroyed.resize(rows, 0);
        self.dirty.resize(rows, 0);
        self.bodies.resize(rows * self.without_words.len(), Box::default());
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
        self.dirty[id] |= changed;
        if self.flags[id] & LISTED == 0 {
            self.flags[id] |= LISTED;
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
            let body = &mut self.bodies[id * count + place];
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
        listed.sort_unstable();
        let first_waiting = listed.partition_point(|id| (*id as usize) < rows);
        for id in &listed[..first_waiting] {
            self.restore(*id as usize, columns);
        }
        for id in &listed[..first_waiting] {
            let at = *id as usize;
            let flags = self.flags[at];
            self.flags[at] &= !(LISTED | FRESH);
            let mask = core::mem::take(&mut self.dirty[at]);
            if flags & ALIVE == 0 {
                continue;
            }
            let (owned, told_owned) = (flags & OWNED != 0, flags & TOLD_OWNED != 0);
            let owner = (owned != told_owned).then_some(owned);
            if owner.is_some() {
                self.flags[at] ^= TOLD_OWNED;
            }
            told(*id, mask, flags & FRESH != 0, owner);
        }
        listed.drain(..first_waiting);
        // The game was told that these are there; their values come when there are cells.
        listed.iter().for_each(|id| self.flags[*id as usize] &= !FRESH);
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
        let mask = self.dirty[id] & self.with_words;
        if mask == 0 || self.flags[id] & ALIVE == 0 {
            return;
        }
        self.states.newest(id, &mut self.newest);
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
