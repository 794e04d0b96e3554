//! Despawned ghosts with their states, for views of an earlier tick in which they still existed.
//!
//! Promises: nothing is kept unless requested, and then only for as long as a view may go back; bounded by
//! [`MAX_LIVES`].

use std::collections::VecDeque;

/// How many of a class are kept; the oldest make room.
const MAX_LIVES: usize = 4096;

/// One that is gone.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) id: usize,
    /// The tick of its end.
    pub(super) end: u32,
    /// The ticks of its states, ascending, and their words one after the other.
    ticks: Vec<u32>,
    words: Vec<u64>,
}

impl Life {
    /// The ticks of the states around `tick`: the current one, and the next one; 0 if there is none.
    pub(super) fn bracket(&self, tick: u32) -> [u32; 2] {
        let after = self.ticks.partition_point(|at| *at <= tick);
        let at = |index: Option<usize>| index.and_then(|index| self.ticks.get(index)).copied().unwrap_or(0);
        [at(after.checked_sub(1)), at(Some(after))]
    }

    /// Gives the words that it had at exactly this tick.
    pub(super) fn at(&self, tick: u32, words: &mut [u64]) -> bool {
        let found = self.ticks.binary_search(&tick);
        let found =
            found.ok().and_then(|index| self.words.get(index * words.len()..(index + 1) * words.len()));
        found.is_some_and(|found| {
            words.copy_from_slice(found);
            true
        })
    }
}

/// The despawned ghosts of a class.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// For how many ticks they are kept; 0 for none.
    kept: u32,
    /// About in the order of their ends.
    gone: VecDeque<Life>,
}

impl Lives {
    /// Keeps ghosts that despawn from now on, for this many ticks.
    pub(super) fn keep(&mut self, ticks: u32) {
        self.kept = ticks;
    }

    pub(super) fn is_kept(&self) -> bool {
        self.kept > 0
    }

    pub(super) fn gone(&self) -> impl Iterator<Item = &Life> {
        self.gone.iter()
    }

    pub(super) fn clear(&mut self) {
        self.gone.clear();
    }

    /// Keeps the states of a ghost that ends with a tick: `state` returns the words of these ticks, ascending.
    pub(super) fn push(
        &mut self,
        id: usize,
        end: u32,
        width: usize,
        ticks: Vec<u32>,
        mut state: impl FnMut(u32, &mut [u64]),
    ) {
        let kept = self.kept;
        let is_over = |life: &Life| life.end.saturating_add(kept) <= end;
        while self.gone.len() >= MAX_LIVES || self.gone.front().is_some_and(is_over) {
            self.gone.pop_front();
        }
        let mut words = vec![0; ticks.len() * width];
        for (tick, words) in ticks.iter().zip(words.chunks_exact_mut(width.max(1))) {
            state(*tick, words);
        }
        self.gone.push_back(Life { id, end, ticks, words });
    }
}
