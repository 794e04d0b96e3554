//! What words are predicted to be.

use core::ops::Range;

use crate::wire::Property;

/// The most states that words are predicted from.
pub(in crate::replication) const WINDOW: usize = 3;

/// How the words of a property are predicted from the states that the client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::replication) enum Guess {
    /// They are as they were.
    #[default]
    Stay,
    /// They go on: each as the last three states do, as nearly as these lie on a line, or, where they don't, as the last two.
    GoOn,
    /// They go on as the last three states do, on a parabola.
    Bend,
}

/// The guesses by number.
pub(in crate::replication) const GUESSES: [Guess; WINDOW] = [Guess::Stay, Guess::GoOn, Guess::Bend];

/// How many guesses there are with this many states before the newest.
#[inline]
pub(in crate::replication) fn guesses(depth: u8) -> usize {
    usize::from(depth).min(WINDOW - 1) + 1
}

/// Three states lie on a line where none is farther from it than a step: what rounding makes of motion that is even. Behind
/// a bounce they don't.
const STRAIGHT: u64 = 2;

/// The states that words are predicted from, the newest first: rows of `width` words.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct States<'s> {
    pub(in crate::replication) rows: &'s [u64],
    pub(in crate::replication) width: usize,
    /// States before the newest.
    pub(in crate::replication) depth: u8,
    /// Ticks between the first two, and from the newest on.
    pub(in crate::replication) past: u16,
    pub(in crate::replication) ahead: u16,
}

impl Guess {
    /// What a property's words, which lie there in a row, are predicted to be.
    #[inline]
    pub(in crate::replication) fn predict(
        self,
        property: &Property,
        words: Range<usize>,
        states: States<'_>,
        guessed: &mut [u64],
    ) {
        let of = |back: usize| &states.rows[back * states.width..][words.clone()];
        let newest = of(0);
        if self == Guess::Stay || states.depth == 0 {
            return guessed.copy_from_slice(newest);
        }
        let older = of(1);
        property.extrapolate(older, newest, states.past, states.ahead, guessed);
        if states.depth == 1 {
            return;
        }
        let oldest = of(2);
        let turned = |at: &usize| newest[*at] != older[*at] || older[*at] != oldest[*at];
        let still = property.largest_at().filter(turned).map(|at| at + 1..at + 4);
        for (i, (range, guessed)) in property.words().iter().zip(guessed).enumerate() {
            let three = [newest[i], older[i], oldest[i]];
            if still.as_ref().is_some_and(|still| still.contains(&i)) {
                continue;
            }
            if self == Guess::Bend {
                *guessed = range.bend(three);
            } else if range.turns(three) <= STRAIGHT {
                *guessed = range.fit(three);
            }
        }
    }
}
