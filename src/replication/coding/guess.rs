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
        let oldest = if states.depth > 1 { of(2) } else { older };
        for (i, (range, guessed)) in property.words().iter().zip(guessed).enumerate() {
            let three = [newest[i], older[i], oldest[i]];
            *guessed = match self {
                Guess::Bend => range.bend(three),
                _ if states.depth > 1 && range.turns(three) <= STRAIGHT => range.fit(three),
                _ => range.extrapolate(older[i], newest[i], states.past, states.ahead),
            };
        }
    }
}

/// Turns the states of a property so that its words are what they would be if the component at this place had been the largest
/// of its rotation: one that is to go on turns evenly, whatever is left out. That place itself stays as it was. Whether any
/// changed.
pub(in crate::replication) fn turn(
    property: &Property,
    words: Range<usize>,
    (rows, width, depth): (&mut [u64], usize, u8),
    largest: u64,
) -> bool {
    let Some(at) = property.largest_at() else { return false };
    // Levels are odd in number, and the one in the middle is 0.
    let reach = (property.words()[at + 1].last() / 2) as i64;
    let mut turned = false;
    for back in 0..=usize::from(depth) {
        let words = &mut rows[back * width + words.start + at..][..4];
        if words[0] != largest {
            turned = true;
            let (from, levels) = (words[0], [words[1], words[2], words[3]].map(|word| word as i64 - reach));
            for (word, level) in words[1..].iter_mut().zip(left_out(levels, from, largest, reach)) {
                *word = (level.clamp(-reach, reach) + reach) as u64;
            }
        }
    }
    turned
}

/// The levels of a rotation's other components with the one at `to` left out in place of the one at `from`. In integers, so
/// that both sides get the same: what is left out is what is missing to a length of 1, of which the square is twice that of the reach.
fn left_out(levels: [i64; 3], from: u64, to: u64, reach: i64) -> [i64; 3] {
    let missing = levels.iter().fold(2 * reach * reach, |left, level| left - level * level).max(0);
    let root = missing.isqrt();
    let (mut all, mut levels) = ([0; 4], levels.into_iter());
    for (i, component) in (0..).zip(&mut all) {
        let nearest = root + i64::from(missing - root * root > root);
        *component = if i == from { nearest } else { levels.next().unwrap_or(0) };
    }
    // At most 3.
    let to = to as usize;
    let sign = if all[to] < 0 { -1 } else { 1 };
    let mut others = all.into_iter().enumerate().filter(|(i, _)| *i != to).map(|(_, level)| sign * level);
    core::array::from_fn(|_| others.next().unwrap_or(0))
}
