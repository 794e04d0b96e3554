//! Dead reckoning: a property that goes on as clients reckon isn't sent.
//!
//! A property with a threshold, and its velocity, are sent together, when it differs by more than the threshold from
//! a client's reckoning: the last value sent, moved on with the velocity sent with it. A row of which anything else
//! is sent carries both too, if they changed, and so does one that stops. Computed once for all clients, for rows
//! that move.

use super::super::cells::numbers_in;
use super::super::class::GhostClass;
use super::super::rules::{Rule, numbers_of};
use super::super::scan::BLOCK;
use super::Column;
use crate::store::ones;

/// The most numbers that a value has.
const NUMBERS: usize = 16;

/// A property that is reckoned.
#[derive(Debug)]
struct Pair {
    property: usize,
    velocity: usize,
    rate: f64,
    threshold: f64,
    count: usize,
}

#[derive(Debug)]
pub(super) struct Reckoned {
    pairs: Box<[Pair]>,
    /// All of these, and their velocities.
    pub(super) mask: u64,
    /// A bit a row: clients reckon that it moves, or its values differ from those sent.
    pending: Vec<u64>,
    cell: Vec<u8>,
}

/// The block of rows being checked.
pub(super) struct Block<'a, 'c> {
    pub(super) tick: u32,
    pub(super) first: usize,
    /// Words of a row.
    pub(super) width: usize,
    pub(super) newest: &'a [u64],
    pub(super) since: &'a [u32],
    pub(super) columns: &'a [Column<'c>],
}

impl Reckoned {
    /// From the class's rules; None if no property has a threshold.
    pub(super) fn new(class: &GhostClass) -> Option<Box<Self>> {
        let pairs = class.rules.iter().enumerate().filter_map(|(property, rule)| {
            let Rule::Reckoned { velocity, threshold } = *rule else { return None };
            let count = numbers_of(class.properties.each()[property].field().node())?;
            let (velocity, rate) = (velocity.property, velocity.rate);
            Some(Pair { property, velocity, rate, threshold, count: count.min(NUMBERS) })
        });
        let pairs: Box<[Pair]> = pairs.collect();
        let mask = pairs.iter().fold(0, |mask, pair| mask | 1 << pair.property | 1 << pair.velocity);
        let made = Reckoned { pairs, mask, pending: Vec::new(), cell: Vec::new() };
        (mask != 0).then(|| Box::new(made))
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.pending.resize(rows.div_ceil(BLOCK), 0);
    }

    /// The rows of a block that must be checked even if their cells are unchanged.
    pub(super) fn pending(&self, block: usize) -> u64 {
        self.pending[block]
    }

    /// Decides which of these rows, which have a state, are sent: sets their bits in the masks. Returns the rows of
    /// which nothing is sent.
    pub(super) fn hold(
        &mut self,
        class: &GhostClass,
        block: &Block<'_, '_>,
        rows: u64,
        masks: &mut [u64; BLOCK],
    ) -> u64 {
        let mut held = 0;
        for row in ones(rows) {
            let is_said = masks[row] & !self.mask != 0;
            let is_off = self.pairs.iter().any(|pair| is_off(pair, class, block, row, &mut self.cell));
            let bit = 1 << row;
            if !is_said && !is_off {
                held |= bit;
            } else if is_off {
                masks[row] |= self.mask;
            }
            let moves = held & bit != 0 && masks[row] & self.mask != 0
                || self.pairs.iter().any(|pair| {
                    let mut speed = [0.0; NUMBERS];
                    cell_numbers(class, block, pair.velocity, row, &mut speed[..pair.count]);
                    speed.iter().any(|speed| *speed != 0.0)
                });
            let pending = &mut self.pending[block.first / BLOCK];
            // Rows that clients reckon to move are checked until they were told otherwise.
            *pending =
                *pending & !bit | if moves || held & bit != 0 && *pending & bit != 0 { bit } else { 0 };
        }
        held
    }
}

/// Whether a row is elsewhere than clients reckon, or stands while they reckon that it moves.
fn is_off(pair: &Pair, class: &GhostClass, block: &Block<'_, '_>, row: usize, cell: &mut Vec<u8>) -> bool {
    let Pair { count, property, velocity, .. } = *pair;
    let (mut at, mut sent, mut speed) = ([0.0; NUMBERS], [0.0; NUMBERS], [0.0; NUMBERS]);
    cell_numbers(class, block, property, row, &mut at[..count]);
    sent_numbers(class, block, property, row, cell, &mut sent[..count]);
    sent_numbers(class, block, velocity, row, cell, &mut speed[..count]);
    let mut now = [0.0; NUMBERS];
    cell_numbers(class, block, velocity, row, &mut now[..count]);
    if now[..count].iter().all(|speed| *speed == 0.0) && speed[..count].iter().any(|speed| *speed != 0.0) {
        // It has stopped, and is to be seen exactly where.
        return true;
    }
    let seconds = f64::from(block.tick - block.since[row].min(block.tick)) / pair.rate;
    let square: f64 = (0..count).map(|i| at[i] - (sent[i] + speed[i] * seconds)).map(|off| off * off).sum();
    square > pair.threshold * pair.threshold
}

fn cell_numbers(class: &GhostClass, block: &Block<'_, '_>, property: usize, row: usize, out: &mut [f64]) {
    let node = class.properties.each()[property].field().node();
    let size = node.size();
    let cells = block.columns.get(property).map_or(&[][..], |column| column.cells);
    if let Some(cell) = cells.get((block.first + row) * size..(block.first + row + 1) * size) {
        numbers_in(node, cell, out);
    }
}

fn sent_numbers(
    class: &GhostClass,
    block: &Block<'_, '_>,
    property: usize,
    row: usize,
    cell: &mut Vec<u8>,
    out: &mut [f64],
) {
    let each = &class.properties.each()[property];
    let (node, start) = (each.field().node(), class.properties.word_start(property));
    let words = &block.newest[row * block.width + start..][..each.words().len()];
    cell.clear();
    cell.resize(node.size(), 0);
    each.restore_column(words, cell, node.size());
    numbers_in(node, cell, out);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replication::class::{Condition, GhostClass};
    use crate::replication::rules::Velocity;
    use crate::replication::table::Table;
    use crate::rng::Rng;
    use crate::wire::{Kind, Properties, Schema};

    #[test]
    fn what_clients_reckon_is_never_further_off_than_the_threshold() {
        let kinds = [("x", Kind::Double), ("speed", Kind::Double), ("health", Kind::Bits { bits: 8 })];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let velocity = Velocity { property: 1, rate: 10.0 };
        let class = GhostClass::new("Ship", properties, [Condition::Always; 3], 70).unwrap();
        let class = class.with_rules([(0, Rule::Reckoned { velocity, threshold: 1.0 })]).unwrap();
        let mut table = Table::new(Arc::new(class), 4);
        let (mut x, mut speed, mut health) = ([0.0f64; 70], [0.0f64; 70], [0u8; 70]);
        let (mut rng, mut sent) = (Rng::seeded(3), 0);
        for row in 0..70 {
            assert_eq!(table.spawn(), Ok(row));
        }
        // The clients' reckoning: since when, where, and how fast.
        let mut known = [(0u32, 0.0f64, 0.0f64); 70];
        for tick in 1..600u32 {
            for row in 0..70 {
                if rng.chance(0.02) {
                    // Some stop against a wall: they claim to move, and don't.
                    speed[row] = [0.0, 3.0, -2.0, 5.0][rng.below(4) as usize];
                }
                let is_blocked = row % 7 == 0 && tick % 100 > 50;
                x[row] += if is_blocked { 0.0 } else { speed[row] / 10.0 };
                if rng.chance(0.01) {
                    health[row] = rng.below(100) as u8;
                }
            }
            let bytes = |all: &[f64]| all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
            let (cells, speeds) = (bytes(&x), bytes(&speed));
            let column = |cells| Column { cells, scan: true };
            table.update(tick, &[column(&cells), column(&speeds), column(&health)]).unwrap();
            for row in table.changed() {
                let words = table.newest(*row);
                known[*row as usize] = (tick, f64::from_bits(words[0]), f64::from_bits(words[1]));
                sent += 1;
            }
            for row in 0..70 {
                let (since, at, speed) = known[row];
                let reckoned = at + speed * f64::from(tick - since) / 10.0;
                assert!(
                    (reckoned - x[row]).abs() <= 1.0 + 1e-9,
                    "tick {tick} row {row}: {reckoned} for {}",
                    x[row]
                );
                assert_eq!(
                    table.newest(row as u32)[2],
                    u64::from(health[row]),
                    "what has no threshold is sent at once"
                );
            }
        }
        assert!(sent < 600 * 70 / 10, "{sent} of {} states", 600 * 70);
        // A row at rest costs nothing.
        speed.fill(0.0);
        let bytes = |all: &[f64]| all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
        let (cells, speeds) = (bytes(&x), bytes(&speed));
        for tick in 600..700 {
            let column = |cells| Column { cells, scan: true };
            table.update(tick, &[column(&cells), column(&speeds), column(&health)]).unwrap();
            assert!(tick == 600 || table.changed().is_empty());
        }
    }
}
