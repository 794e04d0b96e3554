//! Runs of updates that several clients get: a crowd that acked the same is written by copying.
//!
//! What an update says follows from the client's record of its ghost and from the tick, and its bits from these and from what the
//! packet had before. So where another client's records of the same ids are equal, and its packet is as far, the bits are
//! the same: they are copied, all at once, and with them what the client's records come to. That may begin and end anywhere in a
//! run: what a client lost differs for some ids, and its packets end elsewhere from then on.
//!
//! Promises: a run is taken only by who would have written the same bits. Nothing is allocated once a tick of the same size
//! was. Where runs weren't taken they aren't kept for some ticks.

use super::super::packet::Position;
use super::scope::{CarriedGhost, CarriedOp, Scope};
use crate::wire::{BitReader, BitWriter};

const NONE: u32 = u32::MAX;

/// Runs of fewer updates cost as much to keep as to write.
const MIN_RUN: usize = 3;

/// Updates of the same id that are compared at most.
const MAX_TRIED: usize = 4;

/// Fewer updates than these needn't be taken to be kept in the next tick.
const MIN_KEPT: usize = 64;

/// Bits are counted in 32 bits: no run begins beyond this many words of a tick.
const MAX_WORDS: usize = 1 << 25;

/// Ticks for which none are kept where those of a tick weren't taken.
const PAUSE: u32 = 15;

/// How far a packet was after an update of a run, or before the run.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Position,
    /// Where its bits end among the kept ones.
    end: u32,
    /// Bits of the run's heads so far.
    heads: u32,
    /// The update before of the same ghost.
    next: u32,
    /// How many more clients took it than the one before, or fewer.
    uses: i32,
}

/// A run that is written.
#[derive(Clone, Copy, Debug)]
struct Draft {
    start: usize,
    /// Where it starts in the packet, and the heads' bits before it.
    bits: usize,
    heads: u64,
}

/// How far a packet is: what a run begins and ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) at: Position,
    pub(super) bits: usize,
    /// Bits of updates' heads so far.
    pub(super) heads: u64,
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) count: usize,
    pub(super) after: Position,
    pub(super) bits: usize,
    pub(super) heads: u64,
}

/// A tick's runs of a class.
#[derive(Debug, Default)]
pub(super) struct Runs {
    tick: u32,
    /// By id: the tick of its updates, and the last of these.
    heads: Vec<(u32, u32)>,
    // Of the runs' updates, in order: ids, what the records were before, what packets carry, entries, and how far packets were.
    // Before each run there is one without an id.
    ids: Vec<u32>,
    keys: Vec<u128>,
    carried: Vec<CarriedGhost>,
    entries: Vec<u32>,
    marks: Vec<Mark>,
    /// Their bits; each run begins at a new word.
    words: Vec<u64>,
    draft: Option<Draft>,
    taken: usize,
    /// No runs are kept before this tick.
    paused_until: u32,
}

/// What stands before each run.
const NO_GHOST: CarriedGhost =
    CarriedGhost { id: 0, class: 0, op: CarriedOp::Update, count: 0, base_count: 0 };

impl Runs {
    /// Begins a tick, without runs.
    pub(super) fn begin_tick(&mut self, tick: u32) {
        if self.ids.len() > MIN_KEPT && self.taken < self.ids.len() / 4 {
            self.paused_until = tick + PAUSE;
        }
        (self.tick, self.taken) = (tick, 0);
        self.truncate(0);
        self.words.clear();
    }

    fn truncate(&mut self, count: usize) {
        self.ids.truncate(count);
        self.keys.truncate(count);
        self.carried.truncate(count);
        self.entries.truncate(count);
        self.marks.truncate(count);
    }

    /// Each entry of an update that was taken, and how often.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, u32)> {
        let each = self.entries.iter().zip(&self.marks).scan(0, |uses, (entry, mark)| {
            *uses += mark.uses;
            // As often as it began, it ended.
            Some((*entry as usize, *uses as u32))
        });
        each.filter(|(_, uses)| *uses > 0)
    }

    /// The place of an update that a ghost with this key was sent by a packet that was as far as this.
    #[inline]
    fn place(&self, id: u32, key: u128, at: Position) -> Option<usize> {
        let (tick, mut next) = *self.heads.get(id as usize)?;
        if tick != self.tick {
            return None;
        }
        for _ in 0..MAX_TRIED {
            let place = next as usize;
            let mark = self.marks.get(place)?;
            if self.keys.get(place) == Some(&key) && self.marks[place - 1].at == at {
                return Some(place);
            }
            next = mark.next;
        }
        None
    }

    /// Whether a client's next update can be taken.
    #[inline]
    pub(super) fn has(&self, scope: &Scope, id: u32, at: Position) -> bool {
        self.place(id, scope.key(id), at).is_some()
    }

    /// Writes what another client was sent of the next ids, as far as it is the same and has room.
    pub(super) fn take(
        &mut self,
        scope: &mut Scope,
        ids: &[u32],
        (at, left): (Position, usize),
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> Option<Taken> {
        let first = *ids.first()?;
        let place = self.place(first, scope.key(first), at)?;
        let Mark { end: start, heads, .. } = self.marks[place - 1];
        let each = ids.iter().zip(&self.ids[place..]).zip(&self.keys[place..]);
        let same = |((id, other), key): &((&u32, &u32), &u128)| id == other && scope.key(**id) == **key;
        let mut count = each.take_while(same).count();
        while (self.marks[place + count - 1].end - start) as usize > left {
            count -= 1;
            if count == 0 {
                return None;
            }
        }
        let of = place..place + count;
        scope.take_run(&self.carried[of.clone()], self.tick);
        self.taken += count;
        self.marks[place].uses += 1;
        // There is one more at the end.
        self.marks[place + count].uses -= 1;
        carried.extend_from_slice(&self.carried[of]);
        let last = self.marks[place + count - 1];
        let bits = (last.end - start) as usize;
        out.run_of_words(&self.words, start as usize, bits);
        Some(Taken { count, after: last.at, bits, heads: (last.heads - heads).into() })
    }

    /// Begins a run here, if runs are kept.
    #[inline]
    pub(super) fn begin(&mut self, from: Progress) {
        let Progress { at, bits, heads } = from;
        self.draft = None;
        if self.tick >= self.paused_until && self.words.len() < MAX_WORDS {
            self.draft = Some(Draft { start: self.ids.len(), bits, heads });
            let end = self.kept_bits();
            self.add(NONE, 0, 0, NO_GHOST, Mark { at, end, heads: 0, next: NONE, uses: 0 });
        }
    }

    /// Bits of the kept runs, with what is empty of their last words.
    #[inline]
    fn kept_bits(&self) -> u32 {
        // Few more than the maximum.
        self.words.len() as u32 * u64::BITS
    }

    #[inline]
    fn add(&mut self, id: u32, key: u128, entry: u32, carried: CarriedGhost, mark: Mark) {
        self.ids.push(id);
        self.keys.push(key);
        self.entries.push(entry);
        self.carried.push(carried);
        self.marks.push(mark);
    }

    /// An update of the run was written, of a ghost whose record was this.
    #[inline]
    pub(super) fn push(&mut self, key: u128, entry: usize, carried: CarriedGhost, now: Progress) {
        let Some(draft) = &self.draft else { return };
        let start = self.kept_bits();
        // A packet's bits.
        let (end, heads) = (start + (now.bits - draft.bits) as u32, (now.heads - draft.heads) as u32);
        let mark = Mark { at: now.at, end, heads, next: NONE, uses: 0 };
        // A tick has fewer entries.
        self.add(carried.id.into(), key, entry as u32, carried, mark);
    }

    /// Ends it, and keeps it for others.
    pub(super) fn end(&mut self, out: &mut BitWriter) {
        let Some(Draft { start, bits, .. }) = self.draft.take() else { return };
        if self.ids.len() - start - 1 < MIN_RUN {
            return self.truncate(start);
        }
        let first = self.kept_bits();
        let length = self.marks.last().map_or(0, |last| last.end - first) as usize;
        let mut reader = BitReader::with_range(out.as_bytes(), bits, length);
        while let part @ 1.. = reader.remaining_bits().min(64) as u32 {
            self.words.push(reader.bits(part).unwrap_or(0));
        }
        for place in start + 1..self.ids.len() {
            let id = self.ids[place] as usize;
            if self.heads.len() <= id {
                self.heads.resize(id + 1, (0, NONE));
            }
            let (tick, last) = self.heads[id];
            self.marks[place].next = if tick == self.tick { last } else { NONE };
            self.heads[id] = (self.tick, place as u32);
        }
        let end = self.kept_bits();
        let mark = Mark { at: self.marks[start].at, end, heads: 0, next: NONE, uses: 0 };
        self.add(NONE, 0, 0, NO_GHOST, mark);
    }
}
