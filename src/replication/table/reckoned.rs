//! Dead reckoning: a property that goes on as clients reckon isn't sent.
//!
//! A property with a threshold, and its velocity, are committed together, when the property differs by more than the
//! threshold from the clients' reckoning: the last committed value, moved on with the velocity committed with it. A row of
//! which all clients are sent something else commits both too, if they changed, and so does one that stops. Computed
//! once for all clients, for rows that move.
//!
//! A record may be sent long after its row's values were committed: to a newcomer, after a loss, within a small budget. Clients
//! reckon from the record's tick. So the words of a state of a tick are those that clients reckon for that tick, and the
//! last words of a row are the ticks in which its reckoned values were committed, one for each.

use super::super::cells::{numbers_in, write_numbers};
use super::super::class::GhostClass;
use super::super::rules::{Rule, numbers_of};
use super::super::scan::BLOCK;
use super::Column;
use crate::store::ones;
use crate::wire::Node;

/// The most numbers that a value has.
const NUMBERS: usize = 16;

/// The numbers of a value.
type Value = [f64; NUMBERS];

/// A property that is reckoned.
#[derive(Debug)]
struct Pair {
    property: usize,
    velocity: usize,
    rate: f64,
    threshold: f64,
    count: usize,
    /// The word with the tick of its commit.
    since: usize,
    /// A bit for each row of the block checked last: it is committed.
    committed: u64,
}

impl Pair {
    fn mask(&self) -> u64 {
        1 << self.property | 1 << self.velocity
    }
}

#[derive(Debug)]
pub(super) struct Reckoned {
    pairs: Box<[Pair]>,
    /// All of these, and their velocities.
    pub(super) mask: u64,
    /// The other properties of which every client is sent each change.
    shared: u64,
    /// A bit a row: clients reckon that it moves, or its values differ from those committed.
    pending: Vec<u64>,
}

/// The block of rows being checked.
pub(super) struct Block<'a, 'c> {
    pub(super) tick: u32,
    pub(super) first: usize,
    /// Words of a row.
    pub(super) width: usize,
    pub(super) newest: &'a [u64],
    /// A bit for each row that has a state.
    pub(super) has_state: u64,
    pub(super) columns: &'a [Column<'c>],
}

impl Reckoned {
    /// From the class's rules; None if no property has a threshold.
    pub(super) fn new(class: &GhostClass) -> Option<Box<Self>> {
        let is_reckoned = |(_, rule): &(usize, &Rule)| matches!(rule, Rule::Reckoned { .. });
        let each = class.rules.iter().enumerate().filter(is_reckoned);
        let pairs = each.zip(class.properties.word_count()..).filter_map(|((property, rule), since)| {
            let Rule::Reckoned { velocity, threshold } = *rule else { return None };
            let count = numbers_of(class.properties.each()[property].field().node())?.min(NUMBERS);
            let (velocity, rate) = (velocity.property, velocity.rate);
            Some(Pair { property, velocity, rate, threshold, count, since, committed: 0 })
        });
        let pairs: Box<[Pair]> = pairs.collect();
        let mask = pairs.iter().fold(0, |mask, pair| mask | pair.mask());
        let shared = (0..class.groups()).fold(!mask, |shared, group| shared & class.updated(group));
        let made = Reckoned { pairs, mask, shared, pending: Vec::new() };
        (mask != 0).then(|| Box::new(made))
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.pending.resize(rows.div_ceil(BLOCK), 0);
    }

    /// The rows of a block that must be checked even if their cells are unchanged.
    pub(super) fn pending(&self, block: usize) -> u64 {
        self.pending[block]
    }

    /// Whether clients may reckon that a row moves.
    pub(super) fn is_any_pending(&self) -> bool {
        self.pending.iter().any(|block| *block != 0)
    }

    /// Decides which reckoned values of these rows are committed: sets or clears their bits in the masks.
    pub(super) fn hold(
        &mut self,
        class: &GhostClass,
        block: &Block<'_, '_>,
        rows: u64,
        masks: &mut [u64; BLOCK],
    ) {
        self.pairs.iter_mut().for_each(|pair| pair.committed = 0);
        for row in ones(rows) {
            let (bit, mask) = (1 << row, &mut masks[row]);
            let words = &block.newest[row * block.width..][..block.width];
            let is_new = block.has_state & bit == 0;
            // Values that only some clients are sent must not show to others.
            let (differs, is_shared) = (*mask & self.mask, *mask & self.shared != 0);
            let mut committed = 0;
            for pair in &self.pairs {
                if is_new || is_off(pair, class, block, (row, words)) {
                    *mask |= pair.mask();
                    committed |= pair.mask();
                } else if is_shared && differs & pair.mask() != 0 {
                    committed |= pair.mask();
                }
            }
            let mut is_moving = false;
            for pair in &mut self.pairs {
                // Properties with one velocity are committed together.
                let speed = if committed >> pair.velocity & 1 == 1 {
                    committed |= pair.mask();
                    pair.committed |= bit;
                    block.numbers(class, pair.velocity, row)
                } else {
                    numbers_of_words(class, pair.velocity, words)
                };
                is_moving |= speed != [0.0; NUMBERS];
            }
            *mask &= committed | !self.mask;
            let pending = &mut self.pending[block.first / BLOCK];
            *pending = *pending & !bit | if is_moving || differs & !committed != 0 { bit } else { 0 };
        }
    }

    /// The rows of the block checked last whose value of a property may be committed.
    pub(super) fn committed(&self, property: usize) -> u64 {
        let of = |pair: &&Pair| pair.mask() >> property & 1 == 1;
        let each = self.pairs.iter().filter(of).map(|pair| pair.committed);
        each.reduce(|all, rows| all | rows).unwrap_or(u64::MAX)
    }

    /// Notes in the words of a block's rows since when their committed values are reckoned.
    pub(super) fn note_tick(&self, newest: &mut [u64], width: usize, rows: u64, tick: u32) {
        for pair in &self.pairs {
            ones(pair.committed & rows).for_each(|row| newest[row * width + pair.since] = tick.into());
        }
    }

    /// Moves the reckoned words of a state on to a tick.
    pub(super) fn extrapolate(&self, class: &GhostClass, words: &mut [u64], tick: u32) {
        for pair in &self.pairs {
            if let Some(moved) = moved(pair, class, words, tick) {
                let range = class.properties.word_range(pair.property);
                words[range.clone()].copy_from_slice(&moved[..range.len()]);
            }
        }
    }

    /// The words of a property in a tick, if it is reckoned and has moved on.
    pub(super) fn moved(
        &self,
        class: &GhostClass,
        property: usize,
        words: &[u64],
        tick: u32,
    ) -> Option<[u64; NUMBERS]> {
        let pair = self.pairs.iter().find(|pair| pair.property == property)?;
        moved(pair, class, words, tick)
    }

    /// The reckoned properties that may have had other words since a state: those that it moved, or whose velocity is among the
    /// properties that changed.
    pub(super) fn moved_since(&self, class: &GhostClass, words: &[u64], changed: u64) -> u64 {
        let has_moved = |pair: &&Pair| {
            changed & pair.mask() != 0 || numbers_of_words(class, pair.velocity, words) != [0.0; NUMBERS]
        };
        self.pairs.iter().filter(has_moved).fold(0, |mask, pair| mask | 1 << pair.property)
    }
}

impl Block<'_, '_> {
    /// The numbers of a row's cell.
    fn numbers(&self, class: &GhostClass, property: usize, row: usize) -> Value {
        let (node, mut out) = (class.properties.each()[property].field().node(), [0.0; NUMBERS]);
        let size = node.size();
        let cells = self.columns.get(property).map_or(&[][..], |column| column.cells);
        if let Some(cell) = cells.get((self.first + row) * size..(self.first + row + 1) * size) {
            numbers_in(node, cell, &mut out);
        }
        out
    }
}

/// Whether a row is elsewhere than clients reckon, or stands while they reckon that it moves.
fn is_off(pair: &Pair, class: &GhostClass, block: &Block<'_, '_>, (row, words): (usize, &[u64])) -> bool {
    let (at, now) = (block.numbers(class, pair.property, row), block.numbers(class, pair.velocity, row));
    let (sent, speed, seconds) = line(pair, class, words, block.tick);
    if now == [0.0; NUMBERS] && speed != now {
        // It has stopped, and is to be seen exactly where.
        return true;
    }
    let each = (0..pair.count).map(|i| at[i] - (sent[i] + speed[i] * seconds));
    let square: f64 = each.map(|off| off * off).sum();
    // No number is within the threshold of NaN.
    square.is_nan() || square > pair.threshold * pair.threshold
        // Clients reckon that it left the range of values.
        || speed != [0.0; NUMBERS] && seconds > 0.0 && words_at(pair, class, (sent, speed, seconds)).is_none()
}

/// The committed value and velocity of a state, and for how many seconds it has moved by a tick.
fn line(pair: &Pair, class: &GhostClass, words: &[u64], tick: u32) -> (Value, Value, f64) {
    let of = |property| numbers_of_words(class, property, words);
    // Ticks have 32 bits.
    let ticks = tick.saturating_sub(words[pair.since] as u32);
    (of(pair.property), of(pair.velocity), f64::from(ticks) / pair.rate)
}

/// The words of a state's value that has moved on to a tick; None if it hasn't moved, or can't have the value.
fn moved(pair: &Pair, class: &GhostClass, words: &[u64], tick: u32) -> Option<[u64; NUMBERS]> {
    words_at(pair, class, line(pair, class, words, tick))
}

/// The same for a value, a velocity and the seconds since.
fn words_at(
    pair: &Pair,
    class: &GhostClass,
    (mut at, speed, seconds): (Value, Value, f64),
) -> Option<[u64; NUMBERS]> {
    if seconds == 0.0 || speed == [0.0; NUMBERS] {
        return None;
    }
    at.iter_mut().zip(speed).for_each(|(at, speed)| *at += speed * seconds);
    let property = &class.properties.each()[pair.property];
    let Node::Leaf(leaf) = property.field().node() else { return None };
    let (size, mut cell, mut moved) = (leaf.column().size(), [0; 8 * NUMBERS], [0; NUMBERS]);
    let cell = cell.get_mut(..size)?;
    write_numbers(Some(leaf.column()), &at[..pair.count], cell);
    let found = property.quantize_column(cell, size, moved.get_mut(..property.words().len())?);
    found.is_ok().then_some(moved)
}

fn numbers_of_words(class: &GhostClass, property: usize, words: &[u64]) -> Value {
    let (words, property) =
        (&words[class.properties.word_range(property)], &class.properties.each()[property]);
    let (node, mut cell, mut out) = (property.field().node(), [0; 8 * NUMBERS], [0.0; NUMBERS]);
    if let Some(cell) = cell.get_mut(..node.size()) {
        property.restore_column(words, cell, node.size());
        numbers_in(node, cell, &mut out);
    }
    out
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

    #[test]
    fn a_state_of_a_tick_has_what_clients_reckon_by_then() {
        let kinds = [
            ("x", Kind::Ranged { lo: -1000, hi: 1000 }),
            ("speed", Kind::Ranged { lo: -90, hi: 90 }),
            ("ammo", Kind::Bits { bits: 8 }),
        ];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let velocity = Velocity { property: 1, rate: 10.0 };
        let conditions = [Condition::Always, Condition::Always, Condition::OwnerOnly];
        let class = GhostClass::new("Ship", properties, conditions, 1).unwrap();
        let class = class.with_rules([(0, Rule::Reckoned { velocity, threshold: 5.0 })]).unwrap();
        let mut table = Table::new(Arc::new(class), 4);
        table.spawn().unwrap();
        let mut update = |tick: u32, x: i16, speed: i8, ammo: u8| {
            let (x, speed, ammo) = (x.to_le_bytes(), speed.to_le_bytes(), [ammo]);
            let column = |cells| Column { cells, scan: true };
            table.update(tick, &[column(&x), column(&speed), column(&ammo)]).unwrap();
            let words = |group, tick| {
                let mut words = [0; 4];
                table.words_for(group, 0, tick, &mut words).then(|| words[0] as i64 - 1000)
            };
            let present = table.present_words(0, &mut Vec::new())[0] as i64 - 1000;
            let turns = [0, 1].map(|group| table.turn(group, 0).last);
            assert_eq!(table.position_words(0, 0)[0] as i64 - 1000, present);
            (present, [words(0, 100), words(0, tick - 1), words(1, tick - 1)], turns)
        };
        // What was committed moves on by 3 a tick, whatever the owner alone is sent.
        assert_eq!(update(100, 10, 30, 0), (10, [Some(10), None, None], [100; 2]));
        assert_eq!(update(101, 14, 30, 0), (13, [Some(10); 3], [100; 2]));
        assert_eq!(update(104, 26, 30, 7), (22, [Some(10), Some(19), Some(19)], [100, 104]));
        assert_eq!(update(105, 25, 30, 8), (25, [Some(10), Some(22), Some(22)], [100, 105]));
        // It is too far off, and then stops.
        assert_eq!(update(107, 20, 30, 8), (20, [Some(10), Some(28), Some(28)], [107; 2]));
        assert_eq!(update(109, 26, 0, 8), (26, [Some(10), Some(23), Some(23)], [109; 2]));
        assert_eq!(update(120, 26, 0, 8), (26, [Some(10), Some(26), Some(26)], [109; 2]));
        // Clients would reckon that it leaves the range.
        assert_eq!(update(121, 999, 90, 8), (999, [Some(10), Some(26), Some(26)], [121; 2]));
        assert_eq!(update(122, 1000, 90, 8), (1000, [Some(10), Some(999), Some(999)], [122; 2]));
    }
}
