//! The words that rows had before: what a peer that hasn't got the newest may have as its baseline.
//!
//! Promises: of each row the last states that were replaced, each with the tick from which it held; nothing is allocated
//! once each place was used. States lie by their place in the row's ring and then by row: where all rows change each tick,
//! they are written and read as one run of memory, and a place that no row has come to takes none.

/// Words of many rows.
#[derive(Clone, Debug)]
enum Words {
    /// Where no word of the class has more than 32 bits.
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Words {
    fn store(&mut self, at: usize, len: usize, words: &[u64]) {
        // Words of a narrow class have 32 bits.
        match self {
            Words::Narrow(all) => {
                grow(all, len);
                all[at..][..words.len()].iter_mut().zip(words).for_each(|(to, word)| *to = *word as u32);
            }
            Words::Wide(all) => {
                grow(all, len);
                all[at..][..words.len()].copy_from_slice(words);
            }
        }
    }

    fn load(&self, at: usize, words: &mut [u64]) {
        match self {
            Words::Narrow(all) => {
                words.iter_mut().zip(&all[at..]).for_each(|(to, word)| *to = u64::from(*word));
            }
            Words::Wide(all) => words.copy_from_slice(&all[at..][..words.len()]),
        }
    }
}

fn grow<T: Copy + Default>(all: &mut Vec<T>, len: usize) {
    if all.len() < len {
        all.resize(len, T::default());
    }
}

/// Which places of a row's ring have a state.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Where the next one goes.
    next: u8,
    len: u8,
}

/// The replaced states of all rows.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Words of a state.
    width: usize,
    places: Box<[Words]>,
    rings: Vec<Ring>,
    /// From which tick each held, by row and place.
    since: Vec<u32>,
}

impl History {
    /// Of states of so many words, `depth` of each row.
    pub(super) fn new(width: usize, narrow: bool, depth: u8) -> Self {
        let empty = || if narrow { Words::Narrow(Vec::new()) } else { Words::Wide(Vec::new()) };
        let places = (0..depth).map(|_| empty()).collect();
        History { width, places, rings: Vec::new(), since: Vec::new() }
    }

    /// Makes room for rows below `rows`.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.rings.resize(rows, Ring::default());
        self.since.resize(rows * self.places.len(), 0);
    }

    /// Forgets the states of a row.
    pub(super) fn clear(&mut self, row: usize) {
        self.rings[row] = Ring::default();
    }

    /// Remembers the state that the row had from `since` on.
    #[inline]
    pub(super) fn push(&mut self, row: usize, since: u32, words: &[u64]) {
        let (depth, rows) = (self.places.len(), self.rings.len());
        let ring = &mut self.rings[row];
        let place = usize::from(ring.next);
        let Some(states) = self.places.get_mut(place) else { return };
        states.store(row * self.width, rows * self.width, words);
        self.since[row * depth + place] = since;
        // At most 255.
        ring.next = if place + 1 == depth { 0 } else { place as u8 + 1 };
        ring.len = (ring.len + 1).min(depth as u8);
    }

    /// Gives the words that the row had at `tick`; false when these are forgotten, or it had none.
    #[inline]
    pub(super) fn words_at(&self, row: usize, tick: u32, words: &mut [u64]) -> bool {
        let (depth, ring) = (self.places.len(), self.rings[row]);
        let since = &self.since[row * depth..][..depth];
        let mut place = usize::from(ring.next);
        for _ in 0..ring.len {
            place = place.checked_sub(1).unwrap_or(depth - 1);
            if since[place] <= tick {
                self.places[place].load(row * self.width, words);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_states_are_kept_each_from_its_tick_on() {
        for narrow in [true, false] {
            let mut history = History::new(2, narrow, 3);
            history.reserve(2);
            let at = |history: &History, row, tick| {
                let mut words = [0; 2];
                history.words_at(row, tick, &mut words).then_some(words)
            };
            assert_eq!(at(&history, 0, 9), None);
            for tick in [10, 12, 15, 20] {
                history.push(0, tick, &[tick.into(), 7]);
            }
            assert_eq!(
                [11, 12, 14, 15, 19, 25].map(|tick| at(&history, 0, tick).map(|words| words[0])),
                [None, Some(12), Some(12), Some(15), Some(15), Some(20)]
            );
            assert_eq!(at(&history, 1, 25), None, "the other row had none");
            history.reserve(9);
            history.push(8, 21, &[1, u32::MAX.into()]);
            assert_eq!(
                (at(&history, 8, 21), at(&history, 0, 13)),
                (Some([1, u32::MAX.into()]), Some([12, 7]))
            );
            history.clear(0);
            assert_eq!(at(&history, 0, 25), None);
            history.push(0, 30, &[30, 30]);
            assert_eq!((at(&history, 0, 29), at(&history, 0, 30)), (None, Some([30, 30])));
        }
    }

    #[test]
    fn without_depth_nothing_is_kept() {
        let mut history = History::new(1, true, 0);
        history.reserve(1);
        history.push(0, 1, &[5]);
        assert!(!history.words_at(0, 1, &mut [0]));
    }
}
