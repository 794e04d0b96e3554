//! The heads of records, coded.

use super::super::packet::{Audience, Base, MAX_AGE, MAX_OLDER};
use super::note::Note;
use super::track::{MAX_RUN, MAX_STEPS};
use super::{Coder, NUMBER, code_number};

/// The layout of the models. Whether more records of listed ghosts follow, at each [`STRIDE`]th place, and of others.
const MORE: usize = 0;
/// The place of the first record of listed ghosts.
const START: usize = MORE + 2;
/// Whether a listed ghost behind it has a record: by how many lists in a row it was in, and whether the ghost in front of it has
/// one.
const HAS: usize = START + NUMBER;
const HAS_CONTEXTS: usize = 4 * 2;
/// Of others, whether ids are apart, by whether the last two were; and the distance.
const APART: usize = HAS + HAS_CONTEXTS;
const GAPS: usize = APART + 2;
const UPDATE: usize = GAPS + NUMBER;
const CREATE: usize = UPDATE + 2;
const OWNER: usize = CREATE + 1;
/// Whether the base's tick is that of the one before, by whether the ghost is listed and whether that was so.
const SAME_BASE: usize = OWNER + 1;
const AGES: usize = SAME_BASE + 4;
/// Whether three states that follow each other are in front of the base, by whether the ghost is listed and whether that was so.
const STEPS: usize = AGES + NUMBER;
/// Whether as many states are in front of the base as expected, by whether the ghost is listed and the base is as before; and how
/// many, by the latter.
const RUN: usize = STEPS + 4;
const RUNS: usize = RUN + 4;
/// Whether these are as far apart as those before, and how far.
const STEADY: usize = RUNS + 2 * NUMBER;
const PASTS: usize = STEADY + 1;
const WHOLE: usize = PASTS + NUMBER;
/// By property: whether the mask has it, by whether the list's has it, and the one before it.
const MASK: usize = WHOLE + 1;
const MASK_CONTEXTS: usize = 3 * 3;
pub(super) const BODIES: usize = MASK + MASK_CONTEXTS * u64::BITS as usize;
/// How many models heads need.
pub(super) const HEADS: usize = BODIES + NUMBER;

/// The places of a list after which it is said whether more records follow.
pub(in crate::replication) const STRIDE: usize = 16;

/// The operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication) enum Op {
    /// A change against states that the client has; the words whole or against them.
    Update {
        base: Base,
        whole: bool,
        mask: u64,
    },
    Create(Audience),
    Destroy,
}

/// The position in a section, which the next record is coded against.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct Place<'l> {
    tick: u32,
    properties: u32,
    is_chosen: bool,
    notes: &'l [Note],
    is_listed: bool,
    next: u32,
    /// Whether the listed ghost in front had a record, or the last two ids were apart.
    was: bool,
    /// The last base, and whether it was of the same tick as the one before it.
    baseline: u32,
    past: u32,
    was_same: bool,
    /// Whether its states were of no certain ticks.
    was_steps: bool,
}

impl<'l> Place<'l> {
    /// The start of a section; records name ghosts by their place in a list of a tick that has these notes, then by id.
    pub(in crate::replication) fn new(
        tick: u32,
        properties: u32,
        is_chosen: bool,
        (baseline, notes): (u32, &'l [Note]),
    ) -> Self {
        let is_listed = !notes.is_empty();
        Place {
            tick,
            properties,
            is_chosen,
            notes,
            is_listed,
            next: 0,
            was: false,
            baseline,
            past: 1,
            was_same: true,
            was_steps: false,
        }
    }

    /// Whether records name ghosts by their place in a list.
    pub(in crate::replication) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// From here on records name ghosts by id.
    pub(in crate::replication) fn leave_list(&mut self) {
        (self.is_listed, self.next, self.was) = (false, 0, false);
    }

    /// Codes a record's place or id, and its op; None at the end of the list or section. A decoded id, mask or age may
    /// be out of bounds; an age from before all ticks gives no op.
    pub(in crate::replication) fn code(
        &mut self,
        coder: &mut impl Coder,
        record: Option<(u32, Op)>,
    ) -> Option<(u32, Option<Op>)> {
        let at = record.map(|(at, _)| at);
        let at = if self.is_listed { self.code_listed(coder, at) } else { self.code_id(coder, at) }?;
        let op = record.map_or(Op::Destroy, |(_, op)| op);
        Some((at, self.code_op(coder, self.note(at).copied(), op)))
    }

    /// What the list knows of the ghost of a record.
    pub(in crate::replication) fn note(&self, at: u32) -> Option<&'l Note> {
        if self.is_listed { self.notes.get(at as usize) } else { None }
    }

    /// Codes which is the next listed ghost with a record. The first may be anywhere, as a tick's packets share a list.
    fn code_listed(&mut self, coder: &mut impl Coder, at: Option<u32>) -> Option<u32> {
        if self.next == 0 {
            if !coder.code(MORE, at.is_some()) {
                return None;
            }
            let place = code_number(coder, START, u64::from(at.unwrap_or(0)) + 1) - 1;
            // One that is too far is beyond all lists.
            self.next = place.min(1 << 20) as u32 + 1;
            self.was = true;
            return Some(self.next - 1);
        }
        while let Some(note) = self.notes.get(self.next as usize) {
            if (self.next as usize).is_multiple_of(STRIDE) && !coder.code(MORE, at.is_some()) {
                return None;
            }
            let context = 2 * usize::from(note.times) + usize::from(self.was);
            self.was = coder.code(HAS + context, at == Some(self.next));
            self.next += 1;
            if self.was {
                return Some(self.next - 1);
            }
        }
        None
    }

    fn code_id(&mut self, coder: &mut impl Coder, id: Option<u32>) -> Option<u32> {
        if !coder.code(MORE + 1, id.is_some()) {
            return None;
        }
        let gap = u64::from(id.unwrap_or(0).wrapping_sub(self.next));
        let apart = coder.code(APART + usize::from(self.was), gap > 0);
        let gap = if apart { code_number(coder, GAPS, gap) } else { 0 };
        // A gap that is too far is beyond all capacities.
        let id = self.next.saturating_add(gap.min(1 << 20) as u32);
        (self.next, self.was) = (id.saturating_add(1), apart);
        Some(id)
    }

    fn code_op(&mut self, coder: &mut impl Coder, note: Option<Note>, op: Op) -> Option<Op> {
        if coder.code(UPDATE + usize::from(note.is_some()), matches!(op, Op::Update { .. })) {
            let (base, whole, mask) = match op {
                Op::Update { base, whole, mask } => (base, whole, mask),
                _ => (Base::default(), false, 0),
            };
            let base = self.code_base(coder, note, base);
            let whole = coder.code(WHOLE, whole);
            let mask =
                if whole { coder.raw(mask, self.properties) } else { self.code_mask(coder, note, mask) };
            return base.map(|base| Op::Update { base, whole, mask });
        }
        if !coder.code(CREATE, matches!(op, Op::Create { .. })) {
            return Some(Op::Destroy);
        }
        let Audience { owner, chosen } =
            if let Op::Create(audience) = op { audience } else { Audience::default() };
        let owner = coder.code(OWNER, owner);
        // What clients are to ghosts is alike for either.
        let chosen = self.is_chosen && coder.code(OWNER, chosen);
        Some(Op::Create(Audience { owner, chosen }))
    }

    fn code_base(&mut self, coder: &mut impl Coder, note: Option<Note>, base: Base) -> Option<Base> {
        let (baseline, past, run) = match base {
            Base::UpTo { tick, past, run } => (tick, past, run),
            _ => (0, 0, 0),
        };
        let context = 2 * usize::from(note.is_some()) + usize::from(self.was_same);
        self.was_same = coder.code(SAME_BASE + context, baseline == self.baseline);
        let before = |tick: u32, age: u64, most: u32| {
            let age = u32::try_from(age).ok().filter(|age| *age <= most)?;
            tick.checked_sub(age).filter(|tick| *tick > 0)
        };
        if !self.was_same {
            let age = code_number(coder, AGES, u64::from(self.tick.wrapping_sub(baseline)));
            self.baseline = before(self.tick, age, MAX_AGE)?;
        }
        // As many states more as the base is later.
        let since =
            |note: Note| (self.baseline.saturating_sub(note.first) / self.past).min(MAX_RUN.into()) as u8;
        let context = 2 * usize::from(note.is_some()) + usize::from(self.was_steps);
        self.was_steps = coder.code(STEPS + context, (past, run) == (0, MAX_STEPS));
        if self.was_steps {
            return Some(Base::UpTo { tick: self.baseline, past: 0, run: MAX_STEPS });
        }
        let expected = note.filter(|_| self.was_same).map_or(0, since);
        let context = 2 * usize::from(note.is_some()) + usize::from(self.was_same);
        let as_expected = coder.code(RUN + context, run == expected);
        // At most 12, and 255 is beyond all.
        let runs = RUNS + NUMBER * usize::from(self.was_same);
        let run = match as_expected {
            true => expected,
            false => (code_number(coder, runs, u64::from(run) + 1) - 1).min(255) as u8,
        };
        if run > MAX_RUN {
            return None;
        }
        if run > 0 {
            if !coder.code(STEADY, past == self.past) {
                let past = code_number(coder, PASTS, past.into());
                self.past = u32::try_from(past).ok().filter(|past| *past <= MAX_OLDER)?;
            }
            before(self.baseline, u64::from(self.past) * u64::from(run), u32::MAX)?;
        }
        Some(Base::UpTo { tick: self.baseline, past: if run > 0 { self.past } else { 1 }, run })
    }

    fn code_mask(&self, coder: &mut impl Coder, note: Option<Note>, mask: u64) -> u64 {
        let (mut found, mut before) = (0, 0);
        for at in 0..self.properties as usize {
            let of_list = note.map_or(0, |note| 1 + (note.mask >> at & 1) as usize);
            let context = of_list * 3 + before;
            let has = coder.code(MASK + MASK_CONTEXTS * at + context, mask >> at & 1 == 1);
            found |= u64::from(has) << at;
            before = 1 + usize::from(has);
        }
        found
    }
}
