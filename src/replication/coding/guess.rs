//! The predictions of words: where each goes on to from the states that the client has.
//!
//! A number goes on by the longest line that these lie on, or the longest parabola if that holds for longer: as far back as
//! rounding explains what is missing. Where neither holds, by the last steps. A rotation goes on as a whole: its states become
//! the vectors of how it turned from each to the newest, which are numbers like others, and what these go on to is turned back.
//!
//! All is in integers, so that both sides find the same.

use core::ops::Range;

use super::super::class::GhostClass;
use super::rotation::{Quaternion, Reach, Turn};
use crate::wire::{Metric, Property, WordRange};

/// The maximum of states before the newest that words are predicted from.
pub(in crate::replication) const MAX_RUN: u8 = 12;

/// States and the newest.
pub(in crate::replication) const WINDOW: usize = MAX_RUN as usize + 1;

/// A number that each count of states divides.
const PARTS: i64 = 27_720;

/// What a step of a word is in the units of its motion, and how far off a line it may be for rounding: 0.8 of a step.
const STEP: i64 = 16;
const TOLERANCE: i64 = 16;

/// Nothing goes on for more ticks than these.
const MAX_AHEAD: u16 = 255;

/// A parabola is looked for in no fewer states before the newest.
const LEAST_BENT: usize = 6;

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
    pub(in crate::replication) fn move_on(self, property: &Property, words: &Range<usize>) -> bool {
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

/// A quotient, rounded to the nearest.
fn divide(product: i128, by: i128) -> i64 {
    // Where a number goes on to is near its states.
    (product + by / 2).div_euclid(by) as i64
}

/// A number's states, from the newest of which it is to go on: how far it was from there as many states before.
struct Track<F> {
    back: F,
    were: [i64; WINDOW],
    known: usize,
}

impl<F: FnMut(usize) -> i64> Track<F> {
    #[inline]
    fn at(&mut self, i: usize) -> i64 {
        while self.known < i {
            self.known += 1;
            self.were[self.known] = (self.back)(self.known);
        }
        self.were[i]
    }

    /// The longest line through the newest state on which those before it lie, as nearly: how many do, and the slopes from
    /// one to the next, in 1 / [`PARTS`], that it may have.
    fn line(&mut self, states: usize, tolerance: i64) -> (usize, [i64; 2]) {
        let mut slopes = [i64::MIN, i64::MAX];
        for i in 1..=states {
            let (went, part) = (-self.at(i), PARTS / i as i64);
            let [least, most] = slopes;
            slopes = [least.max((went - tolerance) * part), most.min((went + tolerance) * part)];
            if slopes[0] > slopes[1] {
                return (i - 1, [least, most]);
            }
        }
        (states, slopes)
    }

    /// The longest parabola on which the newest state and those before it lie: how many do.
    fn parabola(&mut self, states: usize, tolerance: i64) -> usize {
        let mut bent = 0;
        for half in LEAST_BENT / 2..=states / 2 {
            let (middle, last, n) = (self.at(half), self.at(2 * half), half as i64);
            // Of that through the first, the middle and the last.
            let (slope, bend) = (n * (last - 4 * middle), last - 2 * middle);
            let off = |i: i64| 2 * n * n * self.were[i as usize] + i * slope - i * i * bend;
            if !(1..2 * n).all(|i| off(i).abs() <= 2 * n * n * tolerance) {
                break;
            }
            bent = 2 * half;
        }
        bent
    }

    /// Where it goes on to by the line or the parabola that is nearest to the last states by least squares, in the orthogonal
    /// polynomials of Gram (1883) over evenly spaced points.
    fn fit(&self, last: usize, (past, ahead): (i64, i64), bends: bool) -> i64 {
        let (last, past) = (last as i128, i128::from(past));
        let (count, to) = (last + 1, last * past + 2 * i128::from(ahead));
        let (one, four) = (count * count - 1, count * count - 4);
        let mut sums = [0; 3];
        for (i, was) in (0..=last).zip(self.were) {
            let (at, was) = (last - 2 * i, i128::from(was));
            sums = [sums[0] + was, sums[1] + at * was, sums[2] + (3 * at * at - one) * was];
        }
        let bend = if bends { 5 * (3 * to * to - one * past * past) * sums[2] } else { 0 };
        let product = 4 * one * four * past * past * sums[0] + 12 * four * past * to * sums[1] + bend;
        divide(product, 4 * count * one * four * past * past)
    }
}

/// Where a number goes on to from the newest of as many states and one, `ahead` being in the units of `past`, the time between
/// two: `back` says how far from there it was as many states before.
#[inline]
pub(super) fn go_on(
    states: usize,
    (past, ahead): (u16, u16),
    tolerance: i64,
    back: impl FnMut(usize) -> i64,
) -> i64 {
    let (past, ahead) = (i64::from(past.max(1)), i64::from(ahead));
    let mut track = Track { back, were: [0; WINDOW], known: 0 };
    let (line, [least, most]) = track.line(states, tolerance);
    if line == usize::from(MAX_RUN) {
        return track.fit(line, (past, ahead), false);
    }
    if line < states {
        let bent = track.parabola(states, tolerance);
        if bent > line + 2 {
            return track.fit(bent, (past, ahead), true);
        }
        // Nothing holds for long: the last steps, more than one where more lies ahead.
        let steps = (ahead / past).clamp(1, 2);
        if steps > line as i64 && steps <= states as i64 {
            let went = -track.at(steps as usize);
            return divide(i128::from(went * ahead), i128::from(steps * past));
        }
    }
    if line == 0 { 0 } else { divide(i128::from((least + most) * ahead), i128::from(2 * PARTS * past)) }
}

/// What a property is predicted to be.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replication) struct Guess {
    /// The rotation that it goes on to, and the largest component's place in its words and among components.
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
            let moved = go_on(back, (states.past, states.ahead), TOLERANCE, was);
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
