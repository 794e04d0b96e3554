//! Runs of updates that several clients get: a crowd that acked the same is written by copying.
//!
//! What an update says follows from the client's record of its ghost and from the tick, and its bits from these and from what the
//! packet had before. So where another client's records of the same ids are equal, and its packet is as far, the bits are
//! the same: they are copied, all at once, and with them what the client's records come to.
//!
//! Promises: a run is taken only by who would have written the same bits. Nothing is allocated once a tick of the same size
//! was. Where runs weren't taken they aren't kept for some ticks.

use super::super::packet::Reached;
use super::scope::{CarriedGhost, Scope};
use crate::wire::{BitReader, BitWriter};

const NONE: u32 = u32::MAX;

/// Runs of fewer updates cost as much to keep as to write.
const MIN_RUN: usize = 3;

/// Runs with the same first id that are looked at.
const MAX_TRIED: usize = 4;

/// Ticks for which none are kept where those of a tick weren't taken.
const PAUSE: u32 = 15;

/// Consecutive updates of a packet.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The run before with the same first id.
    next: u32,
    /// What its packet had before, and after it.
    before: Reached,
    after: Reached,
    /// Where its updates are, and their bits.
    start: u32,
    count: u32,
    words: u32,
    bits: u32,
    /// Its ids in blocks of 64.
    blocks: (u32, u32),
    /// Bits of its updates' heads.
    heads: u32,
    /// How many clients took it.
    uses: u32,
}

/// A run that is written.
#[derive(Clone, Copy, Debug)]
struct Draft {
    before: Reached,
    after: Reached,
    start: usize,
    /// From where to where in the packet, and the heads' bits before and after it.
    bits: (usize, usize),
    heads: (u64, u64),
}

/// How far a packet is: what a run begins and ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) at: Reached,
    pub(super) bits: usize,
    /// Bits of updates' heads so far.
    pub(super) heads: u64,
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) count: usize,
    pub(super) after: Reached,
    pub(super) bits: usize,
    pub(super) heads: u64,
}

/// A tick's runs of a class.
#[derive(Debug, Default)]
pub(super) struct Runs {
    tick: u32,
    /// By first id: the tick of its runs, and the last of these.
    heads: Vec<(u32, u32)>,
    runs: Vec<Run>,
    // Of the runs' updates, in order: ids, what the records were before, what packets carry, and entries.
    ids: Vec<u32>,
    keys: Vec<u128>,
    carried: Vec<CarriedGhost>,
    entries: Vec<u32>,
    words: Vec<u64>,
    /// The runs' ids as bits of blocks.
    blocks: Vec<(u32, u64)>,
    draft: Option<Draft>,
    taken: u32,
    /// No runs are kept before this tick.
    paused_until: u32,
}

impl Runs {
    /// Begins a tick, without runs.
    pub(super) fn begin_tick(&mut self, tick: u32) {
        if self.runs.len() > MAX_TRIED && (self.taken as usize) < self.runs.len() / 4 {
            self.paused_until = tick + PAUSE;
        }
        (self.tick, self.taken) = (tick, 0);
        self.runs.clear();
        self.ids.clear();
        self.keys.clear();
        self.carried.clear();
        self.entries.clear();
        self.words.clear();
        self.blocks.clear();
    }

    /// Each entry of a run that was taken, and how often.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, u32)> {
        let taken = self.runs.iter().filter(|run| run.uses > 0);
        taken.flat_map(|run| {
            let entries = &self.entries[run.start as usize..][..run.count as usize];
            entries.iter().map(|entry| (*entry as usize, run.uses))
        })
    }

    /// Writes the run that a client's next ids begin with, if there is one and it has room.
    pub(super) fn take(
        &mut self,
        scope: &mut Scope,
        ids: &[u32],
        (at, left): (Reached, usize),
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> Option<Taken> {
        let (tick, mut next) = *self.heads.get(*ids.first()? as usize)?;
        if tick != self.tick {
            return None;
        }
        for _ in 0..MAX_TRIED {
            let run = self.runs.get_mut(next as usize)?;
            let (start, count) = (run.start as usize, run.count as usize);
            let of = start..start + count;
            if run.before == at
                && run.bits as usize <= left
                && ids.get(..count) == Some(&self.ids[of.clone()])
                && let blocks = &self.blocks[run.blocks.0 as usize..run.blocks.1 as usize]
                && scope.take_run(&self.ids[of.clone()], &self.keys[of.clone()], blocks, tick)
            {
                run.uses += 1;
                self.taken += 1;
                carried.extend_from_slice(&self.carried[of]);
                out.run_of_words(&self.words[run.words as usize..], run.bits as usize);
                let (bits, heads) = (run.bits as usize, run.heads.into());
                return Some(Taken { count, after: run.after, bits, heads });
            }
            next = run.next;
        }
        None
    }

    /// Begins a run here, if runs are kept.
    #[inline]
    pub(super) fn begin(&mut self, from: Progress) {
        let Progress { at, bits, heads } = from;
        self.draft = (self.tick >= self.paused_until).then_some(Draft {
            before: at,
            after: at,
            start: self.ids.len(),
            bits: (bits, bits),
            heads: (heads, heads),
        });
    }

    /// An update of the run was written, of a ghost whose record was this.
    #[inline]
    pub(super) fn push(&mut self, key: u128, entry: usize, carried: CarriedGhost, now: Progress) {
        let Some(draft) = &mut self.draft else { return };
        (draft.after, draft.bits.1, draft.heads.1) = (now.at, now.bits, now.heads);
        self.ids.push(carried.id.into());
        self.keys.push(key);
        self.carried.push(carried);
        // A tick has fewer.
        self.entries.push(entry as u32);
    }

    /// Ends it, and keeps it for others.
    pub(super) fn end(&mut self, out: &mut BitWriter) {
        let Some(Draft { before, after, start, bits, heads }) = self.draft.take() else { return };
        let count = self.ids.len() - start;
        if count < MIN_RUN {
            self.ids.truncate(start);
            self.keys.truncate(start);
            self.carried.truncate(start);
            self.entries.truncate(start);
            return;
        }
        let (words, length) = (self.words.len() as u32, bits.1 - bits.0);
        let mut reader = BitReader::with_range(out.as_bytes(), bits.0, length);
        while let part @ 1.. = reader.remaining_bits().min(64) as u32 {
            self.words.push(reader.bits(part).unwrap_or(0));
        }
        let first_block = self.blocks.len();
        for id in &self.ids[start..] {
            let (block, bit) = (id / 64, 1 << (id % 64));
            match self.blocks[first_block..].last_mut() {
                Some((last, bits)) if *last == block => *bits |= bit,
                _ => self.blocks.push((block, bit)),
            }
        }
        let blocks = (first_block as u32, self.blocks.len() as u32);
        let first = self.ids[start] as usize;
        if self.heads.len() <= first {
            self.heads.resize(first + 1, (0, NONE));
        }
        let (tick, last) = self.heads[first];
        let next = if tick == self.tick { last } else { NONE };
        self.heads[first] = (self.tick, self.runs.len() as u32);
        // A packet's bits and records, and a tick's.
        let (start, count, bits) = (start as u32, count as u32, length as u32);
        let heads = (heads.1 - heads.0) as u32;
        self.runs.push(Run { next, before, after, start, count, words, bits, blocks, heads, uses: 0 });
    }
}
