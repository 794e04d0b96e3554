//! Runs of updates that several clients get: a crowd that acked the same is written by copying.
//!
//! What an update says follows from the client's record of its ghost and from the tick, and its bits from these and from what the
//! packet had before. So where another client's records of a run's ids are equal, and its packet is as far, the bits are
//! the same: the whole run is copied, and the client's records are updated to match. Runs end where a client's batch of ghosts
//! ends, and at creates, destroys and states that are forgotten. So clients that lost different packets share the other runs.
//!
//! Promises: a run is taken only by a client for which the same bits would have been written. Nothing is allocated once a tick of
//! the same size was. Where runs weren't taken they aren't kept for some ticks.

use core::ops::Range;

use super::super::packet::Position;
use super::scope::{CarriedGhost, Scope};
use crate::wire::{BitReader, BitWriter};

const NONE: u32 = u32::MAX;

/// Runs of fewer updates cost as much to keep as to write.
const MIN_RUN: usize = 3;

/// The maximum number of runs with the same first id that are compared.
const MAX_TRIED: usize = 4;

/// Fewer updates than these needn't be taken to be kept in the next tick.
const MIN_KEPT: usize = 64;

/// Ticks for which none are kept where those of a tick weren't taken.
const PAUSE: u32 = 15;

/// How far a packet is: what a run begins and ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) at: Position,
    pub(super) bits: usize,
    /// Bits of updates' heads so far.
    pub(super) heads: u64,
}

/// A run as one client was sent it.
#[derive(Clone, Debug)]
pub(super) struct SharedRun {
    /// Its updates among all that are kept.
    updates: Range<usize>,
    before: Position,
    pub(super) after: Position,
    /// Where its bits begin among the kept words, and how many there are; and how many of these are heads.
    word: usize,
    pub(super) bits: usize,
    pub(super) heads: u64,
    /// The run before that begins with the same id.
    next: u32,
    /// How many clients took it.
    uses: u32,
}

impl SharedRun {
    /// How many updates it has.
    pub(super) fn count(&self) -> usize {
        self.updates.len()
    }
}

/// A tick's runs of a class.
#[derive(Debug, Default)]
pub(super) struct Runs {
    tick: u32,
    runs: Vec<SharedRun>,
    /// By first id: the tick of its runs, and the last of these.
    last: Vec<(u32, u32)>,
    // Of the runs' updates: ids, what the records were before, entries, and what packets carry.
    ids: Vec<u32>,
    keys: Vec<u128>,
    entries: Vec<u32>,
    carried: Vec<CarriedGhost>,
    /// Their bits; each run begins at a new word.
    words: Vec<u64>,
    /// Where the run that is written began, and its first update.
    draft: Option<(Progress, usize)>,
    taken: usize,
    /// No runs are kept before this tick.
    paused_until: u32,
}

impl Runs {
    /// Begins a tick, without runs.
    pub(super) fn begin_tick(&mut self, tick: u32) {
        if self.ids.len() > MIN_KEPT && self.taken < self.ids.len() / 4 {
            self.paused_until = tick + PAUSE;
        }
        (self.tick, self.taken) = (tick, 0);
        self.truncate(0);
        self.runs.clear();
        self.words.clear();
    }

    fn truncate(&mut self, count: usize) {
        self.ids.truncate(count);
        self.keys.truncate(count);
        self.entries.truncate(count);
        self.carried.truncate(count);
    }

    /// Each entry of an update that was taken, and how often.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, u32)> {
        let runs = self.runs.iter().filter(|run| run.uses > 0);
        runs.flat_map(|run| self.entries[run.updates.clone()].iter().map(|entry| (*entry as usize, run.uses)))
    }

    /// Writes the run that another client was sent of the next ids, if it is the same and has room.
    pub(super) fn take(
        &mut self,
        scope: &mut Scope,
        ids: &[u32],
        (at, left): (Position, usize),
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> Option<&SharedRun> {
        let place = self.find(scope, ids, at).filter(|place| self.runs[*place].bits <= left)?;
        let run = &mut self.runs[place];
        run.uses += 1;
        self.taken += run.count();
        let of_run = &self.carried[run.updates.clone()];
        scope.take_run(of_run, self.tick);
        carried.extend_from_slice(of_run);
        out.run_of_words(&self.words[run.word..], 0, run.bits);
        Some(run)
    }

    /// The run of the next ids for a client whose packet is as far as this.
    fn find(&self, scope: &Scope, ids: &[u32], at: Position) -> Option<usize> {
        let (tick, mut next) = *self.last.get(*ids.first()? as usize)?;
        if tick != self.tick {
            return None;
        }
        for _ in 0..MAX_TRIED {
            let run = self.runs.get(next as usize)?;
            let (of, keys) = (&self.ids[run.updates.clone()], &self.keys[run.updates.clone()]);
            let is_same = |(id, key): (&u32, &u128)| scope.key(*id) == *key;
            if run.before == at && ids.starts_with(of) && of.iter().zip(keys).all(is_same) {
                return Some(next as usize);
            }
            next = run.next;
        }
        None
    }

    /// Begins a run here; false if none are kept.
    #[inline]
    pub(super) fn begin(&mut self, from: Progress) -> bool {
        self.draft = (self.tick >= self.paused_until).then_some((from, self.ids.len()));
        self.draft.is_some()
    }

    /// An update of the run was written, of a ghost whose record was this.
    #[inline]
    pub(super) fn push(&mut self, key: u128, entry: usize, carried: CarriedGhost) {
        self.ids.push(carried.id.into());
        self.keys.push(key);
        // A tick has fewer entries.
        self.entries.push(entry as u32);
        self.carried.push(carried);
    }

    /// Ends the run before a packet's place, and keeps it for others.
    pub(super) fn end(&mut self, to: Progress, out: &mut BitWriter) {
        let Some((from, start)) = self.draft.take() else { return };
        let updates = start..self.ids.len();
        if updates.len() < MIN_RUN {
            return self.truncate(start);
        }
        let (word, bits) = (self.words.len(), to.bits - from.bits);
        let mut reader = BitReader::with_range(out.as_bytes(), from.bits, bits);
        while let part @ 1.. = reader.remaining_bits().min(64) as u32 {
            self.words.push(reader.bits(part).unwrap_or(0));
        }
        let first = self.ids[start] as usize;
        if self.last.len() <= first {
            self.last.resize(first + 1, (0, NONE));
        }
        let (tick, last) = self.last[first];
        let next = if tick == self.tick { last } else { NONE };
        self.last[first] = (self.tick, self.runs.len() as u32);
        let (before, after, heads) = (from.at, to.at, to.heads - from.heads);
        self.runs.push(SharedRun { updates, before, after, word, bits, heads, next, uses: 0 });
    }
}
