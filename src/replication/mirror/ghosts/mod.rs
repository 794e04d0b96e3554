//! A client's ghosts of one class.
//!
//! Promises: a ghost is shown in its newest state that arrived, complete; states of earlier ticks are kept as
//! baselines and never shown. Records about ghosts that don't exist, or from before a ghost's end, are skipped.
//! Refuses an update against a state that the client can't have lost.

mod alike;
mod applying;
mod taking;

use std::sync::Arc;

use super::super::class::GhostClass;
use super::super::coding::{MAX_RUN, States};
use super::super::form::Form;
use super::super::lives::Lives;
use super::super::packet::{Audience, Base, Violation};
use super::pages::Pages;
use super::staged::{Staged, StagedOp};
use crate::wire::{BitReader, MaskWords, Narrow};

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

/// The tick of states that are kept from an earlier visit: before all others.
const KEPT: u32 = 1;

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing that isn't found out when the game asks.
    Quiet,
    /// A ghost that was reported to the game ended.
    Despawned,
    /// As many were passed over.
    Skipped(u64),
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
    /// Whether there may be spawns among them.
    has_spawns: bool,
    /// Properties with words, and those of them that only creates have.
    with_words: u64,
    initial: u64,
    without_words: Box<[usize]>,
    /// Lent buffers: the newest words, the words being read, and those of an older state.
    newest: Box<[u64]>,
    words: Box<[u64]>,
    older: Box<[u64]>,
    /// How updates are read, where all words are narrow and come with each.
    pub(super) narrow: Option<Narrow>,
    /// Of the last update's mask.
    mask_words: MaskWords,
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
            has_spawns: false,
            with_words,
            initial: class.initial() & with_words,
            without_words: (0..count).filter(|i| with_words >> i & 1 == 0).collect(),
            newest: lent(),
            words: lent(),
            older: lent(),
            narrow: Narrow::of(&class.properties).filter(|_| class.initial() == 0),
            mask_words: MaskWords::default(),
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
        let owned = (0..self.rows()).filter(|id| self.is_owned(*id) && self.tick(*id) != KEPT);
        // Ids are below the capacity.
        owned.map(|id| (id as u32, self.tick(id)))
    }

    fn flags(&self, id: usize) -> u8 {
        self.pages.head(id).flags
    }

    pub(super) fn tick(&self, id: usize) -> u32 {
        self.pages.head(id).tick
    }

    pub(super) fn value(&self, id: usize, property: usize) -> Option<&[u8]> {
        let place = self.without_words.iter().position(|each| *each == property)?;
        let (page, at) = self.pages.get(id).filter(|(page, at)| page.states.heads[*at].flags & ALIVE != 0)?;
        let body = &*page.bodies[at * self.without_words.len() + place];
        (!body.is_empty()).then_some(body)
    }

    // --- records -----------------------------------------------------------------------------------------

    /// Stages a create, whose words `read` reads into those that the client has, by a mask of properties. Returns the mask of all
    /// properties; those without words come next.
    pub(super) fn read_create(
        &mut self,
        id: usize,
        audience: Audience,
        staged: &mut Staged,
        read: impl FnOnce(&GhostClass, u64, &mut [u64]) -> Result<(), Violation>,
    ) -> Result<u64, Violation> {
        let mask = self.class.created(audience.group(&self.class).into());
        match self.pages.get(id) {
            Some((page, at)) => page.states.load_newest(at, &mut self.words),
            None => self.words.fill(0),
        }
        read(&self.class, mask & self.with_words, &mut self.words)?;
        staged.push_words(self.id_of_class, id, StagedOp::Create(audience), &self.words, self.pages.form());
        Ok(mask)
    }

    /// Reads an update of a class that isn't coded.
    pub(super) fn read_update(
        &mut self,
        id: usize,
        Against { tick, base }: Against,
        mask: u64,
        reader: &mut BitReader<'_>,
        staged: &mut Staged,
    ) -> Result<(), Violation> {
        let (last, form) = (self.tick(id), self.pages.form());
        let (newest, older) = (&mut *self.newest, &mut *self.older);
        let known = self.pages.states_of(id, tick, base);
        if let Some((state, before)) = known {
            form.load(state, newest);
            before.into_iter().for_each(|before| form.load(before, older));
        }
        let known = known.is_some();
        if !known {
            // Below the capacity.
            check_skip((self.id_of_class, id as u32), (tick, last))?;
            staged.push(self.id_of_class, id, StagedOp::Skip);
        }
        let (goes_on, properties) = (base.has_older() && reader.bool()?, &self.class.properties);
        let with_words = mask & self.with_words;
        if !known {
            properties.skip(reader, with_words, true)?;
            return self.read_bodies(mask, reader, staged);
        }
        self.words.copy_from_slice(newest);
        for (i, property) in properties.of(with_words) {
            let range = properties.word_range(i);
            let (words, newest) = (&mut self.words[range.clone()], &mut newest[range.clone()]);
            if goes_on {
                property.read_ahead(&older[range], base.ages(tick), reader, words, newest)?;
            } else {
                property.read_delta(newest, reader, words)?;
            }
        }
        self.stage_update(id, mask, staged);
        self.read_bodies(mask, reader, staged)
    }

    /// Stages an update of a coded class, whose words `read` reads by a mask of properties; without states it skips them. The
    /// properties without words come next.
    pub(super) fn read_coded_update(
        &mut self,
        id: usize,
        Against { tick, base }: Against,
        mask: u64,
        staged: &mut Staged,
        read: impl FnOnce(&GhostClass, u64, Option<(States<'_>, &mut [u64])>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let Base::UpTo { tick: newest, past, run } = base else { return Err(Violation::Form) };
        let mut older = [&[][..]; MAX_RUN as usize];
        let older = &mut older[..usize::from(run)];
        let last = self.tick(id);
        let (words, with_words) = (&mut *self.words, mask & self.with_words);
        let known = self.pages.get(id).filter(|(page, at)| page.states.may_change(*at, tick));
        let known = known.is_some_and(|(page, at)| page.states.up_to(at, (newest, past), words, older));
        if !known {
            // Below the capacity.
            check_skip((self.id_of_class, id as u32), (tick, last))?;
            staged.push(self.id_of_class, id, StagedOp::Skip);
            return read(&self.class, with_words, None);
        }
        let ((past, ahead), newest) = (base.ages(tick), &mut *self.newest);
        newest.copy_from_slice(words);
        let states = States { newest, older, form: self.pages.form(), past, ahead };
        read(&self.class, with_words, Some((states, words)))?;
        self.stage_update(id, mask, staged);
        Ok(())
    }

    /// Stages an update whose words were read.
    fn stage_update(&mut self, id: usize, mask: u64, staged: &mut Staged) {
        if let (true, Some((page, at))) = (self.initial != 0, self.pages.get(id)) {
            // Those come with creates alone: the newest create's are these.
            page.states.load_newest(at, &mut self.newest);
            copy_words(&self.class, self.initial, &self.newest, &mut self.words);
        }
        let op = StagedOp::Update { mask };
        staged.push_words(self.id_of_class, id, op, &self.words, self.pages.form());
    }

    /// Reads the properties of a mask that have no words, for the last staged record.
    #[inline]
    pub(super) fn read_bodies(
        &self,
        mask: u64,
        reader: &mut BitReader<'_>,
        staged: &mut Staged,
    ) -> Result<(), Violation> {
        staged.read_bodies(&self.class.properties, &self.without_words, mask, reader)
    }
}

/// Checks that an update of a tick may be passed over, as it comes after the ghost's end or too late for its `last` state.
///
/// # Errors
/// A newer one can't lack its base: one that the server names was acked, and is among the newest.
fn check_skip((class, id): (u32, u32), (tick, last): (u32, u32)) -> Result<(), Violation> {
    if last > 0 && tick > last { Err(Violation::Baseline { class, id }) } else { Ok(()) }
}

fn copy_words(class: &GhostClass, mask: u64, from: &[u64], to: &mut [u64]) {
    for (i, _) in class.properties.of(mask) {
        let range = class.properties.word_range(i);
        to[range.clone()].copy_from_slice(&from[range]);
    }
}
