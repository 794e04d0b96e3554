//! The predictions of words: where each goes on to from the states that the client has.
//!
//! A rotation goes on as a whole: its states become the vectors of how it turned from each to the newest, which are numbers like
//! others, and what these go on to is turned back.
//!
//! All is in integers, so that both sides find the same.

use core::ops::Range;

use super::super::class::GhostClass;
use super::rotation::{Quaternion, Reach, Turn};
use super::track::go_on;
use crate::wire::{Metric, Property, WordRange};

/// A step of a word, in the units of its motion. Rounding may put a word this far off a line.
const STEP: i64 = 16;

/// Nothing goes on for more ticks than these.
const MAX_AHEAD: u16 = 255;

/// The states to predict from, the newest first: rows of `width` words.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct States<'s> {
    pub(in crate::replication) rows: &'s [u64],
    pub(in crate::replication) width: usize,
    /// How many states there are before the newest.
    pub(in crate::replication) run: u8,
    /// Ticks from each to the next, and from the newest on.
    pub(in crate::replication) past: u16,
    pub(in crate::replication) ahead: u16,
}

impl<'s> States<'s> {
    fn of(self, back: usize, words: &Range<usize>) -> &'s [u64] {
        &self.rows[back * self.width..][words.clone()]
    }

    /// How many states before the newest count.
    fn back(self) -> usize {
        if self.ahead > MAX_AHEAD { 0 } else { self.run.into() }
    }

    /// Whether a property is more likely to go on than to stay, by its last two steps.
    pub(in crate::replication) fn is_moving(self, property: &Property, words: &Range<usize>) -> bool {
        if self.run < 2 {
            return self.run > 0;
        }
        let [newest, older, oldest] = [0, 1, 2].map(|back| self.of(back, words));
        let (mut stay, mut go) = (0u64, 0u64);
        for (i, range) in property.words().iter().enumerate() {
            let (step, before) = (distance(range, newest[i], older[i]), distance(range, older[i], oldest[i]));
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
        let newest = states.of(0, &words);
        guessed.copy_from_slice(newest);
        let rotation = self.rotations[i];
        let mut guess = Guess { rotation: None, largest: rotation.map_or(0, |(at, _)| newest[at]) };
        let back = states.back();
        if !goes || back == 0 {
            return guess;
        }
        let turned = rotation.map_or(0..0, |(at, _)| at..at + 4);
        for (at, (range, guessed)) in property.words().iter().zip(&mut *guessed).enumerate() {
            if turned.contains(&at) || !goes_on(range) {
                continue;
            }
            let was = |i: usize| STEP * range.behind(states.of(i, &words)[at], newest[at]);
            let moved = go_on(back, (states.past, states.ahead), STEP, was);
            *guessed = range.moved_by(newest[at], (moved + STEP / 2).div_euclid(STEP));
        }
        if let Some((at, reach)) = rotation {
            let of = |i: usize| reach.quaternion(&states.of(i, &words)[at..]);
            if let Some(turned) = Turn::new(of, back).go_on(reach, (states.past, states.ahead)) {
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
            let rotation = guess.rotation.unwrap_or_else(|| reach.quaternion(&levels));
            reach.levels(rotation, largest, &mut guessed[at + 1..]);
        }
    }
}
