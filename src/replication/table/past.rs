//! The past of rows, for judging what a client saw.
//!
//! Promises: one state per row for each remembered tick, so that none is forgotten however often it changes; rows
//! that were despawned since are remembered as long. Memory: a state is its words, 4 bytes each (8 if one has more
//! than 32 bits), and 4 bytes for its tick, per row and tick. None unless requested.

use super::super::frames::{Frames, Segment};
use super::super::history::History;
use super::super::lives::{Life, Lives};
use super::Table;

/// How many ticks can be remembered.
pub const MAX_PAST: u32 = 250;

#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) states: Option<History>,
    pub(super) lives: Lives,
}

impl Table {
    /// Remembers rows from now on for this many ticks, at most [`MAX_PAST`]; 0 forgets.
    pub fn remember(&mut self, ticks: u32) {
        let ticks = ticks.min(MAX_PAST);
        self.past = Past::default();
        if ticks > 0 {
            // Plus the state before the oldest tick, and the one that its motion came from.
            let mut states = History::new(self.width, !self.class.has_wide_words(), ticks as u8 + 2);
            states.reserve(self.reserved);
            self.past.states = Some(states);
            self.past.lives.keep(ticks + 2);
        }
    }

    /// Bytes of memory that this takes, without despawned rows.
    pub fn past_bytes(&self) -> usize {
        self.past.states.as_ref().map_or(0, History::bytes)
    }

    /// Keeps the states of a row that ends in the tick after this.
    pub(super) fn keep_life(&mut self, row: usize) {
        let Some(states) = &self.past.states else { return };
        let newest = self.newest_since_all(row);
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

    /// Writes rows at a time into columns, by the rules of the class.
    pub fn show_past(&self, time: f64, frames: &mut Frames, columns: &mut [&mut [u8]]) {
        let (tick, mut words) = (time as u32, vec![0; self.width]);
        frames.clear();
        frames.reserve(self.rows);
        let Some(states) = &self.past.states else { return };
        for row in self.alive() {
            let row = row as usize;
            let newest = self.newest_since_all(row);
            let [from, to] = states.bracket(row, newest, tick);
            if from == 0 || self.spawned_at[row] > tick {
                continue;
            }
            frames.set(row, segment(from, to), columns, &mut words, |tick, words| {
                self.words_for_past(states, row, tick, words)
            });
        }
        for life in self.past.lives.gone() {
            let [from, to] = life.bracket(tick);
            if tick < life.end && from > 0 && frames.ticks(life.id).is_none() {
                let segment = segment(from, to);
                frames.set(life.id, segment, columns, &mut words, |tick, words| {
                    let found = life.at(tick, words);
                    self.extrapolate(words, tick);
                    found
                });
            }
        }
        frames.show(time, 0.0, columns);
    }

    /// The rows whose ghost of a tick is gone by now, rising, with the tick of its end.
    pub fn gone_at(&self, tick: u32) -> Vec<(usize, u32)> {
        let was_there = |life: &&Life| tick < life.end && life.bracket(tick)[0] > 0;
        let mut gone: Vec<_> =
            self.past.lives.gone().filter(was_there).map(|life| (life.id, life.end)).collect();
        gone.sort_unstable();
        gone
    }

    fn words_for_past(&self, states: &History, row: usize, tick: u32, words: &mut [u64]) -> bool {
        if self.newest_since_all(row) <= tick {
            words.copy_from_slice(self.newest(row as u32));
        } else if !states.words_at(row, tick, words) {
            return false;
        }
        self.extrapolate(words, tick);
        true
    }

    /// The tick since which all of a row's newest words hold.
    fn newest_since_all(&self, row: usize) -> u32 {
        self.newest_since.last().map_or(0, |since| since[row])
    }
}

/// The server knows every state: a ghost rests until the tick before the next one.
fn segment(from: u32, to: u32) -> Segment {
    Segment { from, to: (to > 0).then_some(to), begin: to.saturating_sub(1).max(from) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::replication::class::{Condition, GhostClass};
    use crate::replication::table::Column;
    use crate::rng::Rng;
    use crate::wire::{Kind, Properties, Schema};

    #[test]
    fn every_tick_that_is_remembered_is_as_it_was() {
        let kinds = [("x", Kind::Double), ("health", Kind::Bits { bits: 8 })];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let class = GhostClass::new("Tank", properties, [Condition::Always; 2], 90).unwrap();
        let mut table = Table::new(Arc::new(class), 4);
        table.remember(20);
        let (mut x, mut health) = (vec![0.0f64; 90], vec![0u8; 90]);
        let mut frames = Frames::new(table.class().clone());
        let mut rng = Rng::seeded(5);
        // By tick: what lived, and how it was.
        let mut model: BTreeMap<u32, BTreeMap<usize, (f64, u8)>> = BTreeMap::new();
        let mut alive: Vec<u32> = Vec::new();
        for tick in 100..400u32 {
            if rng.chance(0.4) && alive.len() < 80 {
                let row = table.spawn().unwrap();
                x[row as usize] = rng.below(1000) as f64;
                alive.push(row);
            }
            if rng.chance(0.3) && !alive.is_empty() {
                let row = alive.swap_remove(rng.below(alive.len() as u64) as usize);
                table.despawn(row);
                table.release(row);
            }
            for row in &alive {
                if rng.chance(0.5) {
                    x[*row as usize] += rng.below(100) as f64;
                    health[*row as usize] = rng.below(200) as u8;
                }
            }
            let cells: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
            table
                .update(tick, &[Column { cells: &cells, scan: true }, Column { cells: &health, scan: true }])
                .unwrap();
            model.insert(
                tick,
                alive.iter().map(|row| (*row as usize, (x[*row as usize], health[*row as usize]))).collect(),
            );
            let ago = rng.below(20).min(u64::from(tick - 100)) as u32;
            let (then, part) = (tick - ago, rng.below(4) as f64 / 4.0);
            let (mut shown_x, mut shown_health) = (vec![0; 90 * 8], vec![0; 90]);
            table.show_past(f64::from(then) + part, &mut frames, &mut [&mut shown_x, &mut shown_health]);
            let next = model.get(&(then + 1)).unwrap_or(&model[&then]);
            for row in 0..frames.rows() {
                let (a, b) = (model[&then].get(&row), next.get(&row));
                assert_eq!(frames.ticks(row).is_some(), a.is_some(), "tick {then} row {row}");
                let Some((x, health)) = a else { continue };
                // A row that ended stays in place; its number may be another's by then.
                let b = b.filter(|_| table.is_alive(row as u32) && table.spawned_at(row as u32) <= then);
                let expected = b.map_or(*x, |(to, _)| x + (to - x) * part);
                let at = f64::from_le_bytes(shown_x[row * 8..][..8].try_into().unwrap());
                let ended = !table.is_alive(row as u32) || table.spawned_at(row as u32) > then;
                assert!(at == expected || ended, "tick {then}+{part} row {row}: {at} for {expected}");
                assert_eq!(shown_health[row], *health);
            }
        }
        assert!(table.past_bytes() > 0);
        table.remember(0);
        assert_eq!(table.past_bytes(), 0);
    }
}
