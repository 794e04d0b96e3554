//! The predictions of words.

use core::ops::Range;

use crate::wire::Property;

/// The maximum of states that a prediction uses.
pub(in crate::replication) const WINDOW: usize = 3;

/// How a property's words are predicted from the states that the client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::replication) enum Guess {
    /// The words stay the same.
    #[default]
    Stay,
    /// Linear: each word continues the last three states if these lie roughly on a line, otherwise the last two.
    GoOn,
    /// Quadratic: the words continue the last three states on a parabola.
    Bend,
}

/// The predictions by number.
pub(in crate::replication) const GUESSES: [Guess; WINDOW] = [Guess::Stay, Guess::GoOn, Guess::Bend];

/// How many predictions are possible with this many states before the newest.
#[inline]
pub(in crate::replication) fn guesses(depth: u8) -> usize {
    usize::from(depth).min(WINDOW - 1) + 1
}

/// Three states count as a line if none is off by more than this step, which rounding makes of uniform motion. After a
/// bounce they don't.
const STRAIGHT: u64 = 2;

/// The states to predict from, the newest first: rows of `width` words.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct States<'s> {
    pub(in crate::replication) rows: &'s [u64],
    pub(in crate::replication) width: usize,
    /// How many states there are before the newest.
    pub(in crate::replication) depth: u8,
    /// Ticks between the first two, and from the newest on.
    pub(in crate::replication) past: u16,
    pub(in crate::replication) ahead: u16,
}

impl Guess {
    /// The prediction of a property's words, which are consecutive in a row.
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
