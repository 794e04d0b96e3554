//! What rows looked like up to some ticks ago, for whoever judges what a client saw.
//!
//! Promises: as many states of each row as there are ticks to look back, so that none of them is forgotten however often it
//! changes; what was despawned meanwhile is remembered as long. Memory: a state is its words, 4 bytes each (8 where one has more
//! than 32 bits), and 4 bytes for its tick, of each row and tick. Nothing unless it is asked for.

use super::super::frames::{Around, Frames};
use super::super::history::History;
use super::super::lives::Lives;
use super::super::rules::motion_begin;
use super::Table;

/// How many ticks can be remembered.
pub const MAX_PAST: u32 = 250;

#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) states: Option<History>,
    pub(super) lives: Lives,
}

impl Table {
    /// Remembers what rows look like from now on for this many ticks, at most [`MAX_PAST`]; 0 forgets.
    pub fn remember(&mut self, ticks: u32) {
        let ticks = ticks.min(MAX_PAST);
        self.past = Past::default();
        if ticks > 0 {
            // The state before the oldest tick, and the one that motion came from.
            let mut states = History::new(self.width, !self.class.has_wide_words(), ticks as u8 + 2);
            states.reserve(self.reserved);
            self.past.states = Some(states);
            self.past.lives.keep(ticks + 2);
        }
    }

    /// Bytes of memory that this takes, but for those that are gone.
    pub fn past_bytes(&self) -> usize {
        self.past.states.as_ref().map_or(0, History::bytes)
    }

    /// Keeps the states of a row that ends in the tick after this.
    pub(super) fn keep_life(&mut self, row: usize) {
        let Some(states) = &self.past.states else { return };
        let newest = self.newest_since[row];
        let mut ticks = states.ticks(row);
        ticks.push(newest);
        let newest_words = &self.newest[row * self.width..][..self.width];
        self.past.lives.push(row, self.tick + 1, self.width, ticks, |tick, words| {
            if tick == newest {
                words.copy_from_slice(newest_words);
            } else {
                states.words_at(row, tick, words);
            }
        });
    }

    /// Puts what rows looked like at a time into columns, by the rules of the class.
    pub fn show_past(&self, time: f64, frames: &mut Frames, columns: &mut [&mut [u8]]) {
        let (tick, mut words) = (time as u32, vec![0; self.width]);
        frames.clear();
        frames.reserve(self.rows);
        let Some(states) = &self.past.states else { return };
        for row in self.alive() {
            let row = row as usize;
            let newest = self.newest_since[row];
            let [before, from, to] = states.around(row, newest, tick);
            if from == 0 || self.spawned_at[row] > tick {
                continue;
            }
            frames.set(row, around(before, from, to), columns, &mut words, |tick, words| {
                self.words_for_past(states, row, tick, words)
            });
        }
        for life in self.past.lives.gone() {
            let [before, from, to] = life.around(tick);
            if tick < life.end && from > 0 && frames.ticks(life.id).is_none() {
                let around = around(before, from, to);
                frames.set(life.id, around, columns, &mut words, |tick, words| life.at(tick, words));
            }
        }
        frames.show(time, 0.0, columns);
    }

    fn words_for_past(&self, states: &History, row: usize, tick: u32, words: &mut [u64]) -> bool {
        if self.newest_since[row] <= tick {
            words.copy_from_slice(self.newest(row as u32));
            return true;
        }
        states.words_at(row, tick, words)
    }
}

/// On this side every rest is known.
fn around(before: u32, from: u32, to: u32) -> Around {
    if to == 0 {
        return Around { from, to: None, begin: from };
    }
    Around { from, to: Some(to), begin: motion_begin(before, from, to, Some(to - 1)) }
}
