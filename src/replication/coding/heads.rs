//! The heads of records, coded.

use super::super::packet::{Audience, Base, MAX_AGE, MAX_DEPTH, MAX_OLDER};
use super::{Coder, NUMBER, code_number};

/// The layout of the models. These first ones exist twice, for listed ghosts and for others.
const MORE: usize = 0;
/// Whether places are apart, by whether the last two were; and the distance.
const APART: usize = MORE + 1;
const GAPS: usize = APART + 2;
const PLACES: usize = GAPS + NUMBER;
const UPDATE: usize = 2 * PLACES;
const CREATE: usize = UPDATE + 1;
const OWNER: usize = CREATE + 1;
const SAME_BASE: usize = OWNER + 1;
const NEWEST: usize = SAME_BASE + 1;
const DEPTH: usize = NEWEST + 1;
const AGES: usize = DEPTH + 2;
const OLDER: usize = AGES + NUMBER;
const OLDER_AGES: usize = OLDER + 1;
const WHOLE: usize = OLDER_AGES + NUMBER;
const SAME_MASK: usize = WHOLE + 1;
/// By property, and whether the previous mask had it.
const MASK: usize = SAME_MASK + 1;
pub(super) const BODIES: usize = MASK + 2 * u64::BITS as usize;
/// How many models heads need.
pub(super) const HEADS: usize = BODIES + NUMBER;

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
pub(in crate::replication) struct Place {
    tick: u32,
    properties: u32,
    is_chosen: bool,
    /// The index of the first model of places.
    places: usize,
    next: u32,
    was_apart: bool,
    base: Base,
    mask: u64,
}

impl Place {
    /// The start of a section; records name ghosts by their place in a list of ids, or by id.
    pub(in crate::replication) fn new(tick: u32, properties: u32, is_listed: bool) -> Self {
        let (base, places) = (Base::Newest { depth: 0 }, if is_listed { 0 } else { PLACES });
        Place { tick, properties, is_chosen: false, places, next: 0, was_apart: false, base, mask: 0 }
    }

    /// The same, of a class where the game chooses who is sent some properties, or not.
    pub(in crate::replication) fn with_choice(self, is_chosen: bool) -> Self {
        Place { is_chosen, ..self }
    }

    /// Whether records name ghosts by their place in a list.
    pub(in crate::replication) fn is_listed(&self) -> bool {
        self.places == 0
    }

    /// From here on records name ghosts by id.
    pub(in crate::replication) fn leave_list(&mut self) {
        (self.places, self.next, self.was_apart) = (PLACES, 0, false);
    }

    /// Codes a record's place or id, and its op; None at the end of the list or section. A decoded id, mask or age may
    /// be out of bounds; an age from before all ticks gives no op.
    pub(in crate::replication) fn code(
        &mut self,
        coder: &mut impl Coder,
        record: Option<(u32, Op)>,
    ) -> Option<(u32, Option<Op>)> {
        if !coder.code(self.places + MORE, record.is_some()) {
            return None;
        }
        let (id, op) = record.unwrap_or((self.next, Op::Destroy));
        let gap = u64::from(id.wrapping_sub(self.next));
        let apart = coder.code(self.places + APART + usize::from(self.was_apart), gap > 0);
        let gap = if apart { code_number(coder, self.places + GAPS, gap) } else { 0 };
        // A gap that is too far is beyond all capacities.
        let id = self.next.saturating_add(gap.min(1 << 20) as u32);
        (self.next, self.was_apart) = (id.saturating_add(1), apart);
        if coder.code(UPDATE, matches!(op, Op::Update { .. })) {
            let (base, whole, mask) = match op {
                Op::Update { base, whole, mask } => (base, whole, mask),
                _ => (self.base, false, self.mask),
            };
            let base = self.code_base(coder, base);
            let whole = coder.code(WHOLE, whole);
            let mask = if whole { coder.raw(mask, self.properties) } else { self.code_mask(coder, mask) };
            return Some((id, base.map(|base| Op::Update { base, whole, mask })));
        }
        if !coder.code(CREATE, matches!(op, Op::Create { .. })) {
            return Some((id, Some(Op::Destroy)));
        }
        let Audience { owner, chosen } =
            if let Op::Create(audience) = op { audience } else { Audience::default() };
        let owner = coder.code(OWNER, owner);
        // What clients are to ghosts is alike for either.
        let chosen = self.is_chosen && coder.code(OWNER, chosen);
        Some((id, Some(Op::Create(Audience { owner, chosen }))))
    }

    fn code_base(&mut self, coder: &mut impl Coder, base: Base) -> Option<Base> {
        if coder.code(SAME_BASE, base == self.base) {
            return Some(self.base);
        }
        let (depth, baseline, older) = match base {
            Base::Newest { depth } => (depth, self.tick, 0),
            Base::Named { baseline, older } => (0, baseline, older),
        };
        if coder.code(NEWEST, matches!(base, Base::Newest { .. })) {
            let some = coder.code(DEPTH, depth > 0);
            let more = some && coder.code(DEPTH + 1, depth > 1);
            self.base = Base::Newest { depth: u8::from(some) + u8::from(more) };
            return Some(self.base);
        }
        let age = code_number(coder, AGES, u64::from(self.tick.wrapping_sub(baseline)));
        let older = coder
            .code(OLDER, older != 0)
            .then(|| code_number(coder, OLDER_AGES, u64::from(baseline.wrapping_sub(older))));
        let before = |tick: u32, age: u64, most: u32| {
            let age = u32::try_from(age).ok().filter(|age| *age <= most)?;
            tick.checked_sub(age).filter(|tick| *tick > 0)
        };
        let baseline = before(self.tick, age, MAX_AGE)?;
        let older = older.map_or(Some(0), |age| before(baseline, age, MAX_OLDER))?;
        self.base = Base::Named { baseline, older };
        Some(self.base)
    }

    fn code_mask(&mut self, coder: &mut impl Coder, mask: u64) -> u64 {
        if !coder.code(SAME_MASK, mask == self.mask) {
            let before = self.mask;
            self.mask = (0..self.properties as usize).fold(0, |all, at| {
                let model = MASK + 2 * at + (before >> at & 1) as usize;
                all | u64::from(coder.code(model, mask >> at & 1 == 1)) << at
            });
        }
        self.mask
    }
}

const _: () = assert!(MAX_DEPTH == 2);
