//! Words, coded against their predictions.

use super::super::class::GhostClass;
use super::heads::HEADS;
use super::note::Note;
use super::{Coder, code_number};
use crate::wire::Property;

/// Lengths of distances that have models.
const LENGTHS: usize = 14;

/// Contexts of a word: how it is predicted, or how far the words before it were off.
const FIRST: usize = 4;
const CONTEXTS: usize = FIRST + 6;

/// Models in a context: whether the word is as predicted, on which side, the length of its distance, and the second bit of
/// that.
const OTHER: usize = 0;
const SIDE: usize = 1;
const LENGTH: usize = 2;
const SECOND: usize = LENGTH + LENGTHS;
const CONTEXT: usize = SECOND + LENGTHS;

/// What is known of a word of a ghost that is listed: besides, how far it was off in its last two records. Then two decisions
/// have models of their own: whether it is as predicted, and on which side.
const TRAILS: usize = TRAIL * (TRAIL + 1);
const TRAIL_CONTEXTS: usize = 4;
const TRAIL_CONTEXT: usize = 2;

/// Of a word: all contexts, those with trails, and whether it is as in the create before.
const CREATED: usize = CONTEXTS * CONTEXT + TRAILS * TRAIL_CONTEXTS * TRAIL_CONTEXT;
const WORD: usize = CREATED + 1;

/// Models of whether a property does what it is less likely to, by what it did in the list.
const CHOICES: usize = 4;

/// How far a word may be off that a trail tells apart, in either direction; and how many of these there are.
const FAR: i64 = 2;
const TRAIL: usize = 2 * FAR as usize + 1;

/// How far a word was off in the last two records of its ghost that said it, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replication) struct Trail {
    /// Of the last and of the one before: 0, or 1 more than it was above the lowest.
    last: u8,
    before: u8,
}

impl Trail {
    /// The word was off by this.
    #[inline]
    fn note(&mut self, residual: u64) {
        // At most 2^63.
        let length = residual.div_ceil(2).min(FAR as u64) as i64;
        let off = if residual & 1 == 1 { length } else { -length };
        *self = Trail { last: (off + FAR + 1) as u8, before: self.last };
    }

    /// Which it is of all whose last is known.
    #[inline]
    fn number(self) -> Option<usize> {
        Some(usize::from(self.last.checked_sub(1)?) * (TRAIL + 1) + usize::from(self.before))
    }
}

/// The layout of a class's models: heads, predictions by property, words.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct Layout {
    properties: usize,
    words: usize,
}

/// How far the words before this one in a record were off.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replication) struct Off {
    context: usize,
    most: u32,
}

impl Off {
    /// Starts a property that does what is likely, or not, against a base with this many older states: all the context that its
    /// first word has.
    #[inline]
    pub(in crate::replication) fn begin(&mut self, run: u8, deviates: bool) {
        if self.context < FIRST {
            self.context = match run {
                _ if deviates => 3,
                0 => 0,
                1..4 => 1,
                _ => 2,
            };
        }
    }

    #[inline]
    fn note(&mut self, length: u32) {
        self.most = self.most.max(length);
        self.context = FIRST + (self.most as usize).div_ceil(2).min(5);
    }

    /// Where the models with a trail are of a word.
    #[inline]
    fn with_trail(self, trail: usize) -> usize {
        let context = (self.context + 1).saturating_sub(FIRST).min(TRAIL_CONTEXTS - 1);
        CONTEXTS * CONTEXT + (trail * TRAIL_CONTEXTS + context) * TRAIL_CONTEXT
    }
}

impl Layout {
    pub(in crate::replication) fn new(class: &GhostClass) -> Self {
        Layout { properties: class.properties.each().len(), words: class.properties.word_count() }
    }

    /// How many models the class has.
    pub(in crate::replication) fn count(self) -> usize {
        self.word(self.words)
    }

    fn word(self, word: usize) -> usize {
        HEADS + CHOICES * self.properties + WORD * word
    }

    /// Codes whether a property does what it is less likely to do, against a base with this many older states: with none there
    /// is no choice.
    #[inline]
    pub(in crate::replication) fn code_deviates(
        self,
        coder: &mut impl Coder,
        property: usize,
        (run, note): (u8, Option<&Note>),
        deviates: bool,
    ) -> bool {
        if run == 0 {
            return false;
        }
        let of_list = match note {
            Some(note) if note.mask >> property & 1 == 1 => 2 + (note.deviated >> property & 1) as usize,
            Some(_) => 1,
            None => 0,
        };
        coder.code(HEADS + CHOICES * property + of_list, deviates)
    }

    /// A residual of the word at this place of a row: 0, or which side of the prediction it lies on, and how far. What is read
    /// may be larger than any of the word's. It is noted in the word's trail.
    #[inline]
    pub(in crate::replication) fn code_residual(
        self,
        coder: &mut impl Coder,
        word: usize,
        off: &mut Off,
        trail: &mut Trail,
        residual: u64,
    ) -> u64 {
        let models = self.word(word) + CONTEXT * off.context;
        let likely = trail.number().map_or(models, |trail| self.word(word) + off.with_trail(trail));
        if !coder.code(likely + OTHER, residual != 0) {
            off.note(0);
            trail.note(0);
            return 0;
        }
        // 1 is one above, 2 one below, and so on.
        let from = residual.wrapping_sub(1);
        let below = coder.code(likely + SIDE, from & 1 == 1);
        let number = (from >> 1) + 1;
        let of = |length: u32| (length as usize).min(LENGTHS - 1);
        let (last, mut length) = (number.ilog2(), 0);
        while length < 63 && coder.code(models + LENGTH + of(length), length < last) {
            length += 1;
        }
        off.note(length + 1);
        let mut found = 1;
        if length > 0 {
            let second = coder.code(models + SECOND + of(length), number >> (length - 1) & 1 == 1);
            let rest = coder.raw(number & ((1 << (length - 1)) - 1), length - 1);
            found = (found << 1 | u64::from(second)) << (length - 1) | rest;
        }
        let residual = (found - 1).saturating_mul(2).saturating_add(1 + u64::from(below));
        trail.note(residual);
        residual
    }

    /// Codes a property's words in a create: each equal to the create before, or whole. A decoded one may exceed the
    /// word's bounds.
    pub(in crate::replication) fn code_created(
        self,
        coder: &mut impl Coder,
        property: &Property,
        start: usize,
        before: &[u64],
        words: &mut [u64],
    ) {
        for (i, (range, (word, before))) in
            property.words().iter().zip(words.iter_mut().zip(before)).enumerate()
        {
            let models = self.word(start + i) + CREATED;
            *word =
                if coder.code(models, *word == *before) { *before } else { coder.raw(*word, range.bits()) };
        }
    }

    /// Codes a property's words whole.
    pub(in crate::replication) fn code_whole(
        self,
        coder: &mut impl Coder,
        property: &Property,
        words: &mut [u64],
    ) {
        for (range, word) in property.words().iter().zip(words) {
            *word = coder.raw(*word, range.bits());
        }
    }

    /// Codes the number of bits of properties without words.
    pub(in crate::replication) fn code_length(self, coder: &mut impl Coder, bits: usize) -> u64 {
        code_number(coder, super::heads::BODIES, bits as u64 + 1) - 1
    }
}
