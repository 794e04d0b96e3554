//! The ghosts of a class, each between two states, and the columns that show them at a time between ticks.
//!
//! Promises: between ticks only numbers are computed, a column at a time; each state is converted to numbers once.
//! Nothing is allocated unless there are more rows than ever before. A ghost at rest costs a comparison.

use std::sync::Arc;

use super::cells::{Numbers, between, each, linear, read_numbers, turn, write_numbers};
use super::class::GhostClass;
use super::rules::{self, Rule};
use crate::wire::{Column, Node, Property};

/// No next state is known.
const NONE: u32 = u32::MAX;

/// The states of a row before and after a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The tick of the newest state that is not of a later tick.
    pub from: u32,
    /// The tick of the next one.
    pub to: Option<u32>,
    /// From which tick on it moves there.
    pub begin: u32,
}

/// A property with words, and the data for showing it.
#[derive(Debug)]
struct Drawing {
    property: usize,
    rule: Rule,
    column: Option<Column>,
    /// None for properties that aren't interpolated.
    numbers: Option<Numbers>,
    /// For those, the words by row: the shown ones, and the next ones.
    now: Vec<u64>,
    next: Vec<u64>,
}

/// The ghosts of a class at a time.
#[derive(Debug)]
pub struct Frames {
    class: Arc<GhostClass>,
    shown: Box<[Drawing]>,
    /// By row, as all that follow: the ticks of its states, and from when it moves.
    from: Vec<u32>,
    to: Vec<u32>,
    begin: Vec<u32>,
    alive: Vec<u8>,
    weights: Vec<f64>,
    /// Lent: the cell of one value.
    cell: Box<[u8]>,
    /// Rows below are or were shown.
    rows: usize,
}

impl Frames {
    pub fn new(class: Arc<GhostClass>) -> Self {
        let is_velocity =
            |i| class.rules.iter().any(|rule| rule.velocity().is_some_and(|it| it.property == i));
        let with_words =
            class.properties.each().iter().enumerate().filter(|(_, property)| property.has_words());
        let shown = with_words.map(|(i, property)| {
            let rule = class.rules[i];
            let node = property.field().node();
            let column = if let Node::Leaf(leaf) = node { Some(leaf.column()) } else { None };
            let wants = rule != Rule::Step || is_velocity(i);
            let numbers = rules::numbers_of(node).filter(|_| wants);
            let numbers = numbers.map(|count| Numbers { count, from: Vec::new(), to: Vec::new() });
            Drawing { property: i, rule, column, numbers, now: Vec::new(), next: Vec::new() }
        });
        let sizes = class.properties.each().iter().map(|property| property.field().node().size());
        let largest = sizes.max().unwrap_or(0);
        Frames {
            shown: shown.collect(),
            from: Vec::new(),
            to: Vec::new(),
            begin: Vec::new(),
            alive: Vec::new(),
            weights: Vec::new(),
            cell: vec![0; largest].into(),
            rows: 0,
            class,
        }
    }

    pub fn class(&self) -> &Arc<GhostClass> {
        &self.class
    }

    /// One more than the highest row that was ever shown.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A byte a row: 1 for rows with a ghost.
    pub fn alive(&self) -> &[u8] {
        &self.alive
    }

    /// Makes room for rows below `rows`.
    pub fn reserve(&mut self, rows: usize) {
        if rows <= self.rows {
            return;
        }
        self.rows = rows;
        self.from.resize(rows, 0);
        self.to.resize(rows, 0);
        self.begin.resize(rows, 0);
        self.alive.resize(rows, 0);
        self.weights.resize(rows, 0.0);
        for shown in &mut self.shown {
            if let Some(numbers) = &mut shown.numbers {
                numbers.from.resize(rows * numbers.count, 0.0);
                numbers.to.resize(rows * numbers.count, 0.0);
            }
            if shown.rule == Rule::Step {
                let count = self.class.properties.each()[shown.property].words().len();
                shown.now.resize(rows * count, 0);
                shown.next.resize(rows * count, 0);
            }
        }
    }

    /// Shows no row any more.
    pub fn clear(&mut self) {
        self.alive.fill(0);
        self.from.fill(0);
        self.to.fill(0);
    }

    /// The ticks of a row's current states; None if it isn't shown.
    #[inline]
    pub fn ticks(&self, row: usize) -> Option<(u32, Option<u32>)> {
        let to = self.to[row];
        (self.alive[row] == 1).then_some((self.from[row], (to != NONE).then_some(to)))
    }

    /// Shows a row no more.
    #[inline]
    pub fn hide(&mut self, row: usize) {
        (self.alive[row], self.from[row], self.to[row]) = (0, 0, 0);
    }

    /// Puts a row between these states. `words` returns the words of a tick; it is only called for unknown ones.
    pub fn set(
        &mut self,
        row: usize,
        segment: Segment,
        columns: &mut [&mut [u8]],
        words: &mut [u64],
        mut at: impl FnMut(u32, &mut [u64]) -> bool,
    ) {
        let was_alive = self.alive[row] == 1;
        let to = segment.to.unwrap_or(NONE);
        let (had_from, had_to) =
            (was_alive && self.from[row] == segment.from, was_alive && self.to[row] == to);
        let moved_on = was_alive && self.to[row] == segment.from;
        (self.from[row], self.to[row], self.begin[row]) = (segment.from, to, segment.begin);
        self.alive[row] = 1;
        if moved_on {
            self.take_next(row, columns);
        } else if !had_from && at(segment.from, words) {
            self.put(row, words, Some(columns));
        }
        if let Some(tick) = segment.to
            && !had_to
            && at(tick, words)
        {
            self.put(row, words, None);
        }
    }

    /// Takes the words of the next state, or of the earlier one with its columns: into these for properties that aren't interpolated,
    /// and as numbers for the others.
    fn put(&mut self, row: usize, words: &[u64], mut columns: Option<&mut [&mut [u8]]>) {
        let properties = &self.class.properties;
        for Drawing { property, rule, column, numbers, now, next } in &mut self.shown {
            let (each, words) = (&properties.each()[*property], &words[properties.word_range(*property)]);
            if *rule == Rule::Step {
                let kept = if columns.is_some() { now } else { next };
                kept[row * words.len()..][..words.len()].copy_from_slice(words);
                if let Some(columns) = &mut columns {
                    put_cell(each, words, row, columns.get_mut(*property));
                }
            }
            if let Some(Numbers { count, from, to }) = numbers {
                let kept = if columns.is_some() { from } else { to };
                let size = each.field().node().size();
                let cell = &mut self.cell[..size];
                each.restore_column(words, cell, size);
                read_numbers(*column, cell, &mut kept[row * *count..(row + 1) * *count]);
            }
        }
    }

    /// Makes the next state the earlier one.
    fn take_next(&mut self, row: usize, columns: &mut [&mut [u8]]) {
        let properties = &self.class.properties;
        for Drawing { property, rule, numbers, now, next, .. } in &mut self.shown {
            if *rule == Rule::Step {
                let each = &properties.each()[*property];
                let range = row * each.words().len()..(row + 1) * each.words().len();
                let (now, next) = (&mut now[range.clone()], &next[range]);
                if now != next {
                    now.copy_from_slice(next);
                    put_cell(each, next, row, columns.get_mut(*property));
                }
            }
            if let Some(Numbers { count, from, to }) = numbers {
                let range = row * *count..(row + 1) * *count;
                from[range.clone()].copy_from_slice(&to[range]);
            }
        }
    }

    /// Writes rows at a time into columns, one for each property. `ahead`: by how many ticks the time is beyond what
    /// is known, for properties with a velocity.
    pub fn show(&mut self, tick: f64, ahead: f64, columns: &mut [&mut [u8]]) {
        for (row, weight) in self.weights.iter_mut().enumerate() {
            let (begin, to) = (self.begin[row], self.to[row]);
            let way = (tick - f64::from(begin)) / f64::from(to.wrapping_sub(begin));
            *weight = if to == NONE || to == 0 { 0.0 } else { way.clamp(0.0, 1.0) };
        }
        for shown in &self.shown {
            let Some(numbers) = &shown.numbers else { continue };
            let Some(cells) = columns.get_mut(shown.property) else { continue };
            let column = shown.column;
            match shown.rule {
                Rule::Step => {}
                Rule::Linear => linear(numbers, &self.weights, column, cells),
                Rule::Angle { lo, turn } => {
                    each(numbers, &self.weights, column, cells, |from, to, weight, out| {
                        out[0] = if weight == 0.0 {
                            from[0]
                        } else {
                            rules::angular(from[0], to[0], weight, lo, turn)
                        };
                    });
                }
                Rule::Slerp => each(numbers, &self.weights, column, cells, turn),
                Rule::Direction => each(numbers, &self.weights, column, cells, |from, to, weight, out| {
                    between(from, to, weight, out);
                    if let Some(out) = out.first_chunk_mut::<3>() {
                        rules::normalize(out, [0.0, 0.0, 1.0]);
                    }
                }),
                Rule::Transform => each(numbers, &self.weights, column, cells, |from, to, weight, out| {
                    between(from, to, weight, out);
                    turn(&from[3..7], &to[3..7], weight, &mut out[3..7]);
                }),
                Rule::Hermite(_) | Rule::Reckoned { .. } => {
                    self.show_moving(shown, numbers, tick, ahead, cells);
                }
            }
        }
    }

    fn show_moving(&self, shown: &Drawing, numbers: &Numbers, tick: f64, ahead: f64, cells: &mut [u8]) {
        let Some(velocity) = shown.rule.velocity() else { return };
        let speeds = self.shown.iter().find(|it| it.property == velocity.property);
        let Some(speeds) = speeds.and_then(|it| it.numbers.as_ref()) else { return };
        let count = numbers.count;
        let mut out = [0.0; 16];
        let size = shown.column.map_or(0, Column::size);
        for (row, cell) in (0..self.rows).zip(cells.chunks_exact_mut(size.max(1))) {
            if self.alive[row] == 0 {
                continue;
            }
            let (from, to, begin) = (self.from[row], self.to[row], self.begin[row]);
            let weight = self.weights[row];
            for (i, out) in out[..count].iter_mut().enumerate() {
                let at = row * count + i;
                let (a, b, speed) = (numbers.from[at], numbers.to[at], speeds.from[at] / velocity.rate);
                *out = match shown.rule {
                    Rule::Reckoned { .. } => {
                        // As the server reckons it, until the tick of the next state.
                        let until = if to == NONE { tick } else { tick.min(f64::from(begin)) };
                        let reckoned = a + speed * (until - f64::from(from)).max(0.0);
                        if weight == 0.0 { reckoned } else { reckoned + (b - reckoned) * weight }
                    }
                    _ if to == NONE => a + speed * ahead,
                    _ => {
                        let span = f64::from(to - begin);
                        // A ghost at rest had no velocity.
                        let first = if begin == from { speed * span } else { b - a };
                        rules::hermite(a, first, b, speeds.to[at] / velocity.rate * span, weight)
                    }
                };
            }
            write_numbers(shown.column, &out[..count], cell);
        }
    }
}

fn put_cell(property: &Property, words: &[u64], row: usize, cells: Option<&mut &mut [u8]>) {
    let size = property.field().node().size();
    if let Some(cell) = cells.and_then(|cells| cells.get_mut(row * size..(row + 1) * size)) {
        property.restore_column(words, cell, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::class::Condition;
    use crate::replication::rules::Velocity;
    use crate::wire::{Kind, Properties, Schema};

    #[test]
    fn rows_that_are_hidden_are_left_as_they_are() {
        let kinds = [("x", Kind::Double), ("speed", Kind::Double)];
        let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
        let velocity = Velocity { property: 1, rate: 10.0 };
        let class = GhostClass::new("Ship", properties, [Condition::Always; 2], 4).unwrap();
        let class = class.with_rules([(0, Rule::Hermite(velocity))]).unwrap();
        let mut frames = Frames::new(Arc::new(class));
        frames.reserve(1);
        let (mut x, mut speed) = ([0; 8], [0; 8]);
        let segment = Segment { from: 100, to: Some(102), begin: 100 };
        let at = |tick: u32, words: &mut [u64]| {
            words.copy_from_slice(&[f64::from(tick).to_bits(), 10.0f64.to_bits()]);
            true
        };
        frames.set(0, segment, &mut [&mut x, &mut speed], &mut [0; 2], at);
        frames.show(101.0, 0.0, &mut [&mut x, &mut speed]);
        assert_eq!(f64::from_le_bytes(x), 101.0);
        frames.hide(0);
        frames.show(101.5, 0.0, &mut [&mut x, &mut speed]);
        assert_eq!(f64::from_le_bytes(x), 101.0);
    }
}
