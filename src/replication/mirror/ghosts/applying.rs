//! The records of a packet that was read to its end: applies them.

use core::ops::Range;

use super::super::super::packet::Audience;
use super::super::pages::Page;
use super::super::staged::{Staged, StagedOp, StagedRecord};
use super::super::states::{Advance, Head, PAGE};
use super::{ALIVE, CHOSEN, FRESH, Ghosts, LISTED, OWNED, Outcome, REPORTED_OWNED};

impl Ghosts {
    /// Applies a record of a packet of this tick.
    #[inline]
    pub(in super::super) fn apply(&mut self, tick: u32, record: &StagedRecord, staged: &Staged) -> Outcome {
        let id = record.id as usize;
        match record.op {
            StagedOp::Update { mask } => self.update(tick, mask, record, staged),
            StagedOp::Create(audience) => self.create(id, tick, audience, record, staged),
            StagedOp::Destroy => self.destroy(id, tick),
            StagedOp::Alike { mask, from, to } => self.update_alike(tick, mask, from..to, record, staged),
            StagedOp::Skip => Outcome::Skipped(1),
        }
    }

    fn create(
        &mut self,
        id: usize,
        tick: u32,
        audience: Audience,
        record: &StagedRecord,
        staged: &Staged,
    ) -> Outcome {
        let mask = self.class.created(audience.group(&self.class).into());
        let state = staged.state(record, self.pages.form().size());
        let Head { tick: newest, destroyed, .. } = self.pages.head(id);
        if tick <= destroyed {
            return Outcome::Skipped(1);
        }
        if tick <= newest {
            self.advance(record.id, tick, 0, state);
            return Outcome::Quiet;
        }
        let fresh = newest == 0;
        // The game has defaults of what wasn't sent, whatever words these have.
        let begun = mask & !self.class.created(self.group(id));
        let changed = match self.pages.get(id).filter(|_| !fresh) {
            None => self.class.properties.all(),
            Some((page, at)) => {
                let differing = page.states.differing(at, &self.class, mask & self.with_words, state);
                differing | begun & self.with_words
            }
        };
        self.push(id, tick, state);
        self.rows = self.rows.max(id + 1);
        let changed = changed | self.put_bodies(id, record, staged);
        let (page, at) = self.pages.make(id);
        let mut flags = page.states.heads[at].flags & !(OWNED | CHOSEN);
        flags |= if audience.owner { OWNED } else { 0 } | if audience.chosen { CHOSEN } else { 0 };
        if fresh {
            self.has_spawns = true;
            // The game knows of no ghost that it was owned.
            page.came.resize(PAGE, 0);
            page.came[at] = tick;
            flags = flags & !REPORTED_OWNED | ALIVE | FRESH | if audience.owner { REPORTED_OWNED } else { 0 };
        }
        page.states.heads[at].flags = flags;
        self.mark(id, changed);
        Outcome::Quiet
    }

    /// Applies updates in a row of a class whose words are narrow.
    fn update_alike(
        &mut self,
        tick: u32,
        mask: u64,
        range: Range<usize>,
        record: &StagedRecord,
        staged: &Staged,
    ) -> Outcome {
        let (size, mut skipped) = (self.pages.form().size(), 0);
        for (alike, state) in staged.alike(record, range, size) {
            let is_skipped =
                alike.is_skipped || self.advance(alike.id, tick, mask, state) == Advance::Missing;
            skipped += u64::from(is_skipped);
        }
        Outcome::Skipped(skipped)
    }

    fn update(&mut self, tick: u32, mask: u64, record: &StagedRecord, staged: &Staged) -> Outcome {
        let state = staged.state(record, self.pages.form().size());
        match self.advance(record.id, tick, mask & self.with_words, state) {
            Advance::Missing => return Outcome::Skipped(1),
            Advance::Newest if !self.without_words.is_empty() => {
                let changed = self.put_bodies(record.id as usize, record, staged);
                self.mark(record.id as usize, changed);
            }
            _ => {}
        }
        Outcome::Quiet
    }

    /// Keeps the state of an update. A record before it in the packet may have ended the ghost.
    #[inline]
    fn advance(&mut self, id: u32, tick: u32, mask: u64, state: &[u32]) -> Advance {
        let Ghosts { pages, class, narrow, listed, .. } = self;
        let form = pages.form();
        let Some((Page { states, version, .. }, at)) = pages.get_mut(id as usize) else {
            return Advance::Missing;
        };
        let differing = |newest: &[u32]| match narrow {
            Some(narrow) => narrow.differing(mask, state, newest),
            None => form.differing(class, mask, state, newest),
        };
        let was_listed = states.heads[at].flags & LISTED != 0;
        let advance = states.advance(at, tick, state, LISTED, differing);
        match advance {
            Advance::Newest if !was_listed => listed.push(id),
            Advance::Late => {
                *version = version.wrapping_add(1);
                states.insert(at, tick, state);
            }
            _ => {}
        }
        advance
    }

    fn destroy(&mut self, id: usize, tick: u32) -> Outcome {
        // Its create may still be in flight: the end is remembered.
        let (page, at) = self.pages.make(id);
        let states = &mut page.states;
        let head = &mut states.heads[at];
        if tick <= head.destroyed || head.tick >= tick {
            // About an earlier ghost with this id, or one that doesn't exist.
            return Outcome::Skipped(1);
        }
        head.destroyed = tick;
        page.version = page.version.wrapping_add(1);
        let flags = head.flags;
        if flags & ALIVE == 0 {
            return Outcome::Skipped(1);
        }
        (head.flags, head.dirty) = (flags & LISTED, 0);
        if self.departed.is_kept() && head.tick > 0 {
            let ticks = states.ticks(at).collect();
            self.departed.push(id, tick, self.words.len(), ticks, |tick, words| {
                states.words_at(at, tick, words);
            });
        }
        states.clear(at);
        let count = self.without_words.len();
        page.bodies[at * count..][..count].fill(Box::default());
        // One that the game has not heard of was never there for it.
        if flags & FRESH == 0 { Outcome::Despawned } else { Outcome::Quiet }
    }

    /// Keeps a state as the newest of a ghost.
    #[inline]
    pub(super) fn push(&mut self, id: usize, tick: u32, state: &[u32]) {
        let (page, at) = self.pages.make(id);
        if page.bodies.is_empty() && !self.without_words.is_empty() {
            page.bodies.resize(PAGE * self.without_words.len(), Box::default());
        }
        page.states.push(at, tick, state);
    }

    #[inline]
    fn mark(&mut self, id: usize, changed: u64) {
        let (page, at) = self.pages.make(id);
        let head = &mut page.states.heads[at];
        head.dirty |= changed;
        if head.flags & LISTED == 0 {
            head.flags |= LISTED;
            // Below the capacity.
            self.listed.push(id as u32);
        }
    }

    /// Keeps a record's properties without words; returns those that changed.
    #[inline]
    fn put_bodies(&mut self, id: usize, record: &StagedRecord, staged: &Staged) -> u64 {
        let mut changed = 0;
        for (place, read) in staged.bodies(record) {
            let (page, at) = self.pages.make(id);
            let body = &mut page.bodies[at * self.without_words.len() + place];
            if **body != *read {
                *body = read.into();
                changed |= 1 << self.without_words[place];
            }
        }
        changed
    }
}
