//! Words, coded against their predictions.

use super::super::class::GhostClass;
use super::heads::HEADS;
use super::{Coder, code_number};
use crate::wire::Property;

/// Lengths of distances that have models.
const LENGTHS: usize = 14;

/// Contexts of a word: how it is predicted, or how far the words before it were off.
const FIRST: usize = 4;
const CONTEXTS: usize = FIRST + 6;

/// Models in a context: whether the word is as predicted, on which side, the length of its distance, and two bits of
/// that.
const OTHER: usize = 0;
const SIDE: usize = 1;
const LENGTH: usize = 2;
const SECOND: usize = LENGTH + LENGTHS;
const THIRD: usize = SECOND + LENGTHS;
const CONTEXT: usize = THIRD + 2 * LENGTHS;

/// Models of a word: all contexts, and whether it equals the create before.
const WORD: usize = CONTEXTS * CONTEXT + 1;

/// Models of the choice of prediction: one with one state before the newest, two with two.
const CHOICES: usize = 3;

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
    /// Starts a property with this prediction, which is all the context that its first word has.
    #[inline]
    pub(in crate::replication) fn begin(&mut self, depth: u8, guess: usize) {
        if self.context < FIRST {
            // 0 stays; 1 and 2 go on from two or three states; 3 bends.
            self.context = if guess == 1 { usize::from(depth.clamp(1, 2)) } else { guess.min(1) * 3 };
        }
    }

    #[inline]
    fn note(&mut self, length: u32) {
        self.most = self.most.max(length);
        self.context = FIRST + (self.most as usize).div_ceil(2).min(5);
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

    /// Codes the number of the prediction for a property, with this many states before the newest.
    #[inline]
    pub(in crate::replication) fn code_guess(
        self,
        coder: &mut impl Coder,
        property: usize,
        depth: u8,
        guess: usize,
    ) -> usize {
        let models = HEADS + CHOICES * property;
        match depth {
            0 => 0,
            1 => usize::from(coder.code(models, guess > 0)),
            _ if !coder.code(models + 1, guess > 0) => 0,
            _ => 1 + usize::from(coder.code(models + 2, guess > 1)),
        }
    }

    /// Codes the residual of the word at this index of a row: 0, or its side and distance. A decoded one may exceed the
    /// word's bounds.
    #[inline]
    pub(in crate::replication) fn code_residual(
        self,
        coder: &mut impl Coder,
        word: usize,
        off: &mut Off,
        residual: u64,
    ) -> u64 {
        let models = self.word(word) + CONTEXT * off.context;
        if !coder.code(models + OTHER, residual != 0) {
            off.note(0);
            return 0;
        }
        // 1 is one above, 2 one below, and so on.
        let from = residual.wrapping_sub(1);
        let below = coder.code(models + SIDE, from & 1 == 1);
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
            found = found << 1 | u64::from(second);
            if length > 1 {
                let at = models + THIRD + 2 * of(length) + usize::from(second);
                let third = coder.code(at, number >> (length - 2) & 1 == 1);
                found = found << 1 | u64::from(third);
                found = found << (length - 2) | coder.raw(number & ((1 << (length - 2)) - 1), length - 2);
            }
        }
        (found - 1).saturating_mul(2).saturating_add(1 + u64::from(below))
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
            let models = self.word(start + i) + WORD - 1;
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
