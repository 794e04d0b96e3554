//! The predictions of words: where each goes on to from the states that the client has.
//!
//! A rotation goes on as a whole: its states become the vectors of how it turned from each to the newest, which are numbers like
//! others, and what these go on to is turned back.
//!
//! IEEE 754 defines all operations here to the last bit, so both sides find the same.

use core::ops::Range;

use super::super::class::GhostClass;
use super::super::form::Form;
use super::rotation::{Quaternion, Reach, turn_on};
use super::track::{LANES, go_on, nearest};
use crate::wire::{Metric, Property, WordRange};

/// Rounding may put a word this far off a line.
const TOLERANCE: f32 = 1.0;

/// Nothing goes on for more ticks than these.
const MAX_AHEAD: u16 = 255;

/// The states to predict from.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct States<'s> {
    pub(in crate::replication) newest: &'s [u64],
    /// Those before it, the next one first, as the form stores them.
    pub(in crate::replication) older: &'s [&'s [u32]],
    pub(in crate::replication) form: Form,
    /// Ticks from each to the next, and from the newest on.
    pub(in crate::replication) past: u16,
    pub(in crate::replication) ahead: u16,
}

impl States<'_> {
    /// Whether a property is more likely to go on than to stay, by its last two steps.
    pub(in crate::replication) fn is_moving(self, property: &Property, words: &Range<usize>) -> bool {
        let &[first, second, ..] = self.older else { return !self.older.is_empty() };
        let (mut stay, mut go) = (0u64, 0u64);
        for (range, at) in property.words().iter().zip(words.clone()) {
            let [older, oldest] = [first, second].map(|state| self.form.word(state, at));
            let (step, before) = (distance(range, self.newest[at], older), distance(range, older, oldest));
            stay = stay.saturating_add(step.unsigned_abs());
            go = go.saturating_add(step.wrapping_sub(before).unsigned_abs());
        }
        go / 2 < stay
    }
}

/// How far a word is from another one that may go on; 0 for others.
#[inline]
fn distance(range: &WordRange, word: u64, from: u64) -> i64 {
    if goes_on(range) { range.behind(word, from) } else { 0 }
}

/// Whether a word has distances to go on by.
#[inline]
fn goes_on(range: &WordRange) -> bool {
    range.last() <= u32::MAX.into() && matches!(range.metric(), Metric::Line | Metric::Circle)
}

/// What a property is predicted to be.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replication) struct Guess {
    /// The rotation that it goes on to, and the place of the largest component.
    rotation: Option<Quaternion>,
    largest: u64,
}

/// How the properties of a class are predicted.
#[derive(Clone, Debug)]
pub(in crate::replication) struct Motion {
    /// By property: where its rotation is, if it has one.
    rotations: Box<[Option<(usize, Reach)>]>,
}

impl Motion {
    pub(in crate::replication) fn new(class: &GhostClass) -> Self {
        let of = |property: &Property| {
            let at = property.largest_at()?;
            Some((at, Reach::new(property.words()[at + 1].last() / 2)))
        };
        Motion { rotations: class.properties.each().iter().map(of).collect() }
    }

    /// Where the place of a property's largest component is among its words.
    #[inline]
    pub(in crate::replication) fn largest_at(&self, property: usize) -> Option<usize> {
        self.rotations[property].map(|(at, _)| at)
    }

    /// Predicts a property's words, which are consecutive in a row: that they stay, or go on.
    #[inline]
    pub(in crate::replication) fn predict(
        &self,
        (i, property): (usize, &Property),
        words: Range<usize>,
        states: States<'_>,
        goes: bool,
        guessed: &mut [u64],
    ) -> Guess {
        guessed.copy_from_slice(&states.newest[words.clone()]);
        let rotation = self.rotations[i];
        let mut guess = Guess { rotation: None, largest: rotation.map_or(0, |(at, _)| guessed[at]) };
        if !goes || states.older.is_empty() || states.ahead > MAX_AHEAD {
            return guess;
        }
        let (older, form) = (states.older, states.form);
        let (count, ahead) = (1 + older.len(), f32::from(states.ahead) / f32::from(states.past.max(1)));
        let turned = rotation.map_or(0..0, |(at, _)| at..at + 4);
        for (at, (range, guessed)) in property.words().iter().zip(&mut *guessed).enumerate() {
            if turned.contains(&at) || !goes_on(range) {
                continue;
            }
            let (newest, mut were) = (*guessed, [0.0; LANES]);
            for (was, state) in were[1..].iter_mut().zip(older) {
                *was = range.behind(form.word(state, words.start + at), newest) as f32;
            }
            *guessed = range.moved_by(newest, nearest(go_on(ahead, TOLERANCE, &were, count, true)));
        }
        if let Some((at, reach)) = rotation {
            let mut all = [[0; LANES]; 4];
            for (part, guessed) in all.iter_mut().zip(&guessed[at..]) {
                // Levels have few bits.
                part[0] = *guessed as u32;
            }
            for (i, state) in (1..LANES).zip(older) {
                let words: [u64; 4] = form.words(state, words.start + at).unwrap_or_default();
                all.iter_mut().zip(words).for_each(|(part, word)| part[i] = word as u32);
            }
            if let Some(turned) = turn_on(reach, ahead, &all, count) {
                guess = Guess { rotation: Some(turned), largest: turned.largest() };
                guessed[at] = guess.largest;
                reach.levels(turned, guess.largest, &mut guessed[at + 1..]);
            }
        }
        guess
    }

    /// A rotation's largest component is known, and with it what the words behind its place are of: predicts these again, if that
    /// is another than was predicted.
    #[inline]
    pub(in crate::replication) fn turn(&self, property: usize, guess: Guess, guessed: &mut [u64]) {
        let Some((at, reach)) = self.rotations[property] else { return };
        let largest = guessed[at];
        if largest != guess.largest {
            let levels = [guess.largest, guessed[at + 1], guessed[at + 2], guessed[at + 3]];
            let rotation =
                guess.rotation.unwrap_or_else(|| reach.quaternion(levels.map(|level| level as u32)));
            reach.levels(rotation, largest, &mut guessed[at + 1..]);
        }
    }
}
