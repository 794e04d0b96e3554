//! A tick's encoded updates and creates, made once for all clients that share them.
//!
//! Two clients share an object's bits if they have the same baseline (and older state) and may see the same properties.
//! Each row has a short list of entries.
//!
//! Promises: no hashing, and no allocation once a tick of the same size was encoded. The cost of words is kept by
//! property, for every client that took them.

use super::super::class::{GhostClass, MAX_GROUPS};
use super::super::coding::{MAX_RUN, Motion, States};
use super::super::packet::Base;
use super::super::table::Table;
use super::runs::Runs;
use crate::store::ones;
use crate::wire::{BitSink, BitWriter, Property};

const NONE: u32 = u32::MAX;

/// Stands for bits written without a baseline.
const WHOLE: Base = Base::Named { baseline: 0, older: 0 };

/// The words of one object, encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedBits {
    /// The base it is written against; none for a create.
    base: Base,
    /// The mask of properties, with and without words. 0: there is nothing to send, or the baseline is gone.
    pub(super) mask: u64,
    /// The index of the first word of its bits in the arena, or of a coded class's residuals.
    start: u32,
    /// Bits of the properties with words.
    pub(super) bits: u32,
    next: u32,
    /// The index of the first property's cost.
    costs: u32,
    /// How many clients took it.
    pub(super) uses: u32,
    /// The group of clients that it is for.
    group: u8,
    /// For coded classes: the words take fewer bits whole.
    pub(super) whole: bool,
    /// The baseline's state is forgotten.
    pub(super) forgotten: bool,
}

/// The entries of one row.
#[derive(Clone, Copy, Debug)]
struct Head {
    tick: u32,
    first: u32,
    /// The tick in which an entry was last encoded, by the group of clients.
    encoded: [u32; MAX_GROUPS],
}

/// The encoded entries of a class in a tick.
#[derive(Debug)]
pub(super) struct Cache {
    with_words: u64,
    heads: Vec<Head>,
    pub(super) entries: Vec<CachedBits>,
    /// The bits of entries, each beginning at a new word.
    arena: Vec<u64>,
    costs: Vec<u16>,
    /// For coded classes: for each property with words its prediction, then its words' residuals.
    residuals: Vec<u64>,
    motion: Motion,
    /// Updates that several clients get in a row.
    pub(super) runs: Runs,
    tick: u32,
    // Scratch memory.
    /// Guesses of a coded class, or the residuals against what stays and what goes on.
    guesses: [Box<[u64]>; 2],
    base: Box<[u64]>,
    older: Box<[u64]>,
    linear: Box<[u64]>,
    present: Vec<u64>,
}

impl Cache {
    pub(super) fn new(class: &GhostClass) -> Self {
        let lent = || vec![0; class.state_words()].into_boxed_slice();
        Cache {
            with_words: class.properties.with_words(),
            heads: Vec::new(),
            entries: Vec::new(),
            arena: Vec::new(),
            costs: Vec::new(),
            residuals: Vec::new(),
            motion: Motion::new(class),
            runs: Runs::default(),
            tick: 0,
            guesses: [lent(), lent()],
            base: lent(),
            older: lent(),
            linear: lent(),
            present: Vec::new(),
        }
    }

    /// Starts a tick. Adds the costs of the last one's words to `costs`, by property.
    pub(super) fn begin_tick(&mut self, tick: u32, rows: usize, costs: &mut [u64]) {
        self.add_costs(costs);
        self.tick = tick;
        self.entries.clear();
        self.arena.clear();
        self.costs.clear();
        self.residuals.clear();
        self.runs.begin_tick(tick);
        if self.heads.len() < rows {
            self.heads.resize(rows, Head { tick: 0, first: NONE, encoded: [0; MAX_GROUPS] });
        }
    }

    /// Adds the costs of this tick's words so far.
    pub(super) fn add_costs(&self, costs: &mut [u64]) {
        let entries = self.entries.iter().map(|entry| (entry, entry.uses));
        let of_runs = self.runs.uses().map(|(entry, uses)| (&self.entries[entry], uses));
        for (entry, uses) in entries.chain(of_runs) {
            let each = ones(entry.mask & self.with_words);
            for (property, bits) in each.zip(&self.costs[entry.costs as usize..]) {
                costs[property] += u64::from(*bits) * u64::from(uses);
            }
        }
    }

    /// The tick in which a row was last encoded for a group of clients.
    #[inline]
    pub(super) fn encoded_at(&self, row: usize, group: usize) -> u32 {
        self.heads.get(row).map_or(0, |head| head.encoded[group])
    }

    /// The update of a row against these states, for a group of clients.
    #[inline]
    pub(super) fn update(&mut self, table: &Table, row: u32, base: Base, group: u8) -> usize {
        self.find(row, base, group).unwrap_or_else(|| self.encode_update(table, row, base, group))
    }

    /// The create of a row, for a group of clients.
    #[inline]
    pub(super) fn create(&mut self, table: &Table, row: u32, group: u8) -> usize {
        self.find(row, WHOLE, group).unwrap_or_else(|| self.encode_create(table, row, group))
    }

    #[inline]
    pub(super) fn entry(&self, entry: usize) -> &CachedBits {
        &self.entries[entry]
    }

    /// Notes that a client gets a row's state without using an entry.
    pub(super) fn note_encoded(&mut self, row: u32, group: u8) {
        self.heads[row as usize].encoded[usize::from(group)] = self.tick;
    }

    /// A coded class's entry: its predictions and residuals.
    #[inline]
    pub(super) fn residuals(&self, entry: &CachedBits) -> &[u64] {
        &self.residuals[entry.start as usize..]
    }

    /// Writes a head together with an entry's bits if both fit a word; otherwise nothing.
    #[inline]
    pub(super) fn copy_behind(
        &mut self,
        entry: usize,
        head: u64,
        head_bits: u32,
        writer: &mut BitWriter,
    ) -> bool {
        let entry = &mut self.entries[entry];
        let fits = entry.bits > 0 && head_bits + entry.bits <= u64::BITS;
        if fits {
            entry.uses += 1;
            writer.bits(head | self.arena[entry.start as usize] << head_bits, head_bits + entry.bits);
        }
        fits
    }

    /// Writes the bits of an entry.
    #[inline]
    pub(super) fn copy(&mut self, entry: usize, writer: &mut BitWriter) {
        let entry = &mut self.entries[entry];
        entry.uses += 1;
        let mut left = entry.bits;
        for word in &self.arena[entry.start as usize..] {
            if left <= 64 {
                if left > 0 {
                    writer.bits(*word, left);
                }
                return;
            }
            writer.bits(*word, 64);
            left -= 64;
        }
    }

    #[inline]
    fn find(&self, row: u32, base: Base, group: u8) -> Option<usize> {
        let head = self.heads[row as usize];
        let mut at = if head.tick == self.tick { head.first } else { NONE };
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.base == base && entry.group == group {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }

    fn encode_update(&mut self, table: &Table, row: u32, base: Base, group: u8) -> usize {
        let (class, of) = (table.class(), usize::from(group));
        let since = match base {
            Base::Newest { .. } => table.turn(of, row).before,
            Base::Named { baseline, .. } => baseline,
            Base::UpTo { tick, past, run } => return self.encode_coded(table, row, (tick, past, run), group),
        };
        let known = table.words_for(of, row, since, &mut self.base);
        let mask = self.changed(table, row, since, of);
        let older = match base {
            Base::Named { older: older @ 1.., .. } => table.words_for(of, row, older, &mut self.older),
            Base::Newest { depth: 1.. } => table.state_back(row, 2).is_some_and(|state| {
                table.form().load(state, &mut self.older);
                true
            }),
            _ => false,
        };
        let mut present = core::mem::take(&mut self.present);
        let words = table.present_words(row, &mut present);
        let (linear, in_parts) = if mask != 0 && known && older {
            self.guess(class, words, mask, base.ages(self.tick))
        } else {
            (false, 0)
        };
        let mut into = ArenaSink::new(&mut self.arena, &mut self.costs);
        if mask != 0 && known {
            if base.has_older() {
                into.bool(linear);
            }
            let from = if linear { &self.linear } else { &self.base };
            let residuals = &self.guesses[usize::from(linear)];
            for (i, property) in class.properties.of(mask & self.with_words) {
                let (range, before) = (class.properties.word_range(i), into.bits);
                if older && in_parts >> i & 1 == 0 {
                    property.write_residuals(&residuals[range], &mut into);
                } else {
                    property.write_delta(&words[range.clone()], &from[range], &mut into);
                }
                into.cost(before);
            }
        }
        let (start, bits, costs) = into.finish();
        self.present = present;
        let mask = if known { mask } else { 0 };
        self.push(row, CachedBits { mask, start, bits, costs, ..blank(base, group, !known) })
    }

    /// The properties that an update of a row against the base of a tick has, for a group of clients: those that changed since, and
    /// with these what moved as clients reckon, which may have newer states than the base.
    #[inline]
    fn changed(&self, table: &Table, row: u32, since: u32, group: usize) -> u64 {
        let updated = table.class().updated(group);
        let mask = table.changed_since(row, since) & updated;
        if mask == 0 { 0 } else { mask | table.moved_since(&self.base, mask) & updated }
    }

    /// Finds what words are off by if they stay, and if they go on from the older state. Returns whether they take fewer bits if they
    /// go on, and the properties of which both were not found.
    fn guess(
        &mut self,
        class: &GhostClass,
        words: &[u64],
        mask: u64,
        (past, ahead): (u16, u16),
    ) -> (bool, u64) {
        let properties = &class.properties;
        let (mut still, mut moved, mut in_parts) = (0, 0, 0u64);
        let [stays, goes] = &mut self.guesses;
        for (i, property) in properties.of(mask & self.with_words) {
            let range = properties.word_range(i);
            let (older, base) = (&self.older[range.clone()], &self.base[range.clone()]);
            let into = [&mut stays[range.clone()], &mut goes[range.clone()]];
            let words = &words[range.clone()];
            if let Some([stay, go]) = property.residuals(words, [base, older], (past, ahead), into) {
                (still, moved) = (still + stay, moved + go);
                continue;
            }
            in_parts |= 1 << i;
            let linear = &mut self.linear[range];
            property.extrapolate(older, base, past, ahead, linear);
            still += property.delta_bits(words, base);
            moved += property.delta_bits(words, linear);
        }
        (moved < still, in_parts)
    }

    /// Encodes an update of a coded class against the state of a tick and `run` older ones, `past` ticks apart.
    fn encode_coded(
        &mut self,
        table: &Table,
        row: u32,
        (tick, past, run): (u32, u32, u8),
        group: u8,
    ) -> usize {
        let (base, of) = (Base::UpTo { tick, past, run }, usize::from(group));
        let (mut older, (past, ahead)) = ([&[][..]; MAX_RUN as usize], base.ages(self.tick));
        let older = &mut older[..usize::from(run)];
        let known = table.words_for(of, row, tick, &mut self.base)
            && older.iter_mut().zip(1..=run).all(|(state, back)| {
                let found = match base {
                    Base::UpTo { past: 0, .. } => table.state_back(row, back + 1),
                    _ => table.earlier_state(of, row, tick - u32::from(back) * u32::from(past)),
                };
                *state = found.unwrap_or_default();
                found.is_some()
            });
        let mask = if known { self.changed(table, row, tick, of) } else { 0 };
        let (start, newest) = (self.residuals.len() as u32, core::mem::take(&mut self.base));
        let states = States { newest: &newest, older, form: table.form(), past, ahead };
        let whole = self.encode_residuals(table, row, mask, states);
        self.base = newest;
        self.push(row, CachedBits { mask, start, whole, ..blank(base, group, !known) })
    }

    /// Appends what the properties do and their residuals, by the nearer prediction. Returns whether their words
    /// would take fewer bits whole.
    fn encode_residuals(&mut self, table: &Table, row: u32, mask: u64, states: States<'_>) -> bool {
        let (properties, words) = (&table.class().properties, table.present_words(row, &mut self.present));
        let (mut delta, mut whole) = (0, 0);
        for (i, property) in properties.of(mask & self.with_words) {
            let range = properties.word_range(i);
            let words = &words[range.clone()];
            let likely = states.is_moving(property, &range);
            let (mut best, mut least) = (false, u32::MAX);
            let [guessed, from] = &mut self.guesses;
            let (guessed, from) = (&mut guessed[range.clone()], &mut from[range.clone()]);
            for deviates in [false, true] {
                // What is nearly exact can't be bettered.
                let least_other = DEVIATING + ABOUT_EXACT * words.len() as u32;
                if deviates && (states.older.is_empty() || least <= least_other) {
                    break;
                }
                let goes = likely != deviates;
                let guess = self.motion.predict((i, property), range.clone(), states, goes, guessed);
                if let Some(at) = self.motion.largest_at(i) {
                    let turned = core::mem::replace(&mut guessed[at], words[at]);
                    self.motion.turn(i, guess, guessed);
                    guessed[at] = turned;
                }
                let bits = about(property, words, guessed) + if deviates { DEVIATING } else { 0 };
                if bits < least {
                    (best, least) = (deviates, bits);
                    from.copy_from_slice(guessed);
                }
            }
            self.residuals.push(u64::from(best));
            let each = property.words().iter().zip(words.iter().zip(from));
            self.residuals.extend(each.map(|(range, (word, from))| range.residual(*word, *from)));
            delta += least;
            whole += property.words().iter().map(|range| range.bits()).sum::<u32>();
        }
        // Approximate, in quarters of bits.
        delta > 4 * whole
    }

    fn encode_create(&mut self, table: &Table, row: u32, group: u8) -> usize {
        let class = table.class();
        let (mask, words) = (class.created(group.into()), table.present_words(row, &mut self.present));
        let mut into = ArenaSink::new(&mut self.arena, &mut self.costs);
        for (i, property) in class.properties.of(mask & self.with_words) {
            let before = into.bits;
            property.write(&words[class.properties.word_range(i)], &mut into);
            into.cost(before);
        }
        let (start, bits, costs) = into.finish();
        self.push(row, CachedBits { mask, start, bits, costs, ..blank(WHOLE, group, false) })
    }

    fn push(&mut self, row: u32, entry: CachedBits) -> usize {
        let (at, head) = (self.entries.len(), &mut self.heads[row as usize]);
        let next = if head.tick == self.tick { head.first } else { NONE };
        self.entries.push(CachedBits { next, ..entry });
        // A tick has fewer entries: one for each row and age.
        (head.tick, head.first) = (self.tick, at as u32);
        head.encoded[usize::from(entry.group)] = self.tick;
        at
    }
}

fn blank(base: Base, group: u8, forgotten: bool) -> CachedBits {
    CachedBits {
        base,
        group,
        forgotten,
        whole: false,
        mask: 0,
        start: 0,
        bits: 0,
        next: NONE,
        costs: 0,
        uses: 0,
    }
}

/// The approximate cost of words against others when coded, in quarters of bits.
fn about(property: &Property, words: &[u64], from: &[u64]) -> u32 {
    let each = property.words().iter().zip(words.iter().zip(from));
    let length = |residual: u64| u64::BITS - residual.div_ceil(2).leading_zeros();
    let bits = |residual: u64| if residual == 0 { ABOUT_EXACT } else { 4 + 6 * length(residual) };
    each.map(|(range, (word, from))| bits(range.residual(*word, *from))).sum()
}

/// About what a word takes that is as predicted.
const ABOUT_EXACT: u32 = 2;

/// How many quarters of bits it must save to do what is less likely, which takes some to say.
const DEVIATING: u32 = 16;

/// Writes to the arena, beginning at a new word.
struct ArenaSink<'a> {
    arena: &'a mut Vec<u64>,
    costs: &'a mut Vec<u16>,
    start: u32,
    first_cost: u32,
    bits: u32,
    /// The bits since the last whole word.
    scratch: u64,
}

impl<'a> ArenaSink<'a> {
    fn new(arena: &'a mut Vec<u64>, costs: &'a mut Vec<u16>) -> Self {
        // A tick's arena has far fewer words.
        let (start, first_cost) = (arena.len() as u32, costs.len() as u32);
        ArenaSink { arena, costs, start, first_cost, bits: 0, scratch: 0 }
    }

    /// Notes the cost of the property that was written since there were `before` bits.
    fn cost(&mut self, before: u32) {
        // A record has fewer than 2^12.
        self.costs.push((self.bits - before) as u16);
    }

    fn finish(self) -> (u32, u32, u32) {
        if !self.bits.is_multiple_of(64) {
            self.arena.push(self.scratch);
        }
        (self.start, self.bits, self.first_cost)
    }
}

impl BitSink for ArenaSink<'_> {
    #[inline]
    fn bits(&mut self, value: u64, n: u32) {
        let used = self.bits % 64;
        self.scratch |= value << used;
        if used + n >= 64 {
            self.arena.push(self.scratch);
            self.scratch = value.unbounded_shr(64 - used);
        }
        self.bits += n;
    }

    fn align(&mut self) {
        debug_assert!(false, "what has words has no align");
    }

    fn bytes(&mut self, _: &[u8]) {
        debug_assert!(false, "what has words has no bytes");
    }
}
