//! What clients were shown some ticks ago.
//!
//! Promises: nothing unless it is asked for; then the world's states of as many ticks, and what entered and left each
//! client's view in them, at most [`MAX_SHOWN`] of these: what is older than them counts as shown if it is now.

use std::collections::VecDeque;

use super::super::frames::Frames;
use super::super::table::MAX_PAST;
use super::Publisher;
use crate::endpoint::PeerHandle;

/// How many comings and goings are remembered.
const MAX_SHOWN: usize = 1 << 18;

/// A coming or a going.
#[derive(Clone, Copy, Debug)]
struct ShownChange {
    tick: u32,
    peer: PeerHandle,
    class: usize,
    row: u32,
    entered: bool,
}

#[derive(Debug, Default)]
pub(super) struct ShownLog {
    ticks: u32,
    changes: VecDeque<ShownChange>,
}

impl ShownLog {
    /// Notes that from a tick on a client has a row, or hasn't.
    pub(super) fn push(&mut self, tick: u32, peer: PeerHandle, class: usize, row: u32, entered: bool) {
        if self.ticks == 0 {
            return;
        }
        let kept = self.ticks;
        let is_old = |change: &ShownChange| change.tick + kept < tick;
        while self.changes.len() >= MAX_SHOWN || self.changes.front().is_some_and(is_old) {
            self.changes.pop_front();
        }
        self.changes.push_back(ShownChange { tick, peer, class, row, entered });
    }
}

impl Publisher {
    /// Remembers the world from now on for this many ticks, at most [`MAX_PAST`]; 0 forgets.
    pub fn remember(&mut self, ticks: u32) {
        let ticks = ticks.min(MAX_PAST);
        self.tables.iter_mut().for_each(|table| table.remember(ticks));
        self.shown = ShownLog { ticks, changes: VecDeque::new() };
        self.remembered_since = self.tick + 1;
    }

    /// The oldest tick that is remembered; None when none is.
    pub fn oldest_past(&self) -> Option<u32> {
        let oldest = self.remembered_since.max(self.tick.saturating_sub(self.shown.ticks));
        (self.shown.ticks > 0 && oldest <= self.tick).then_some(oldest)
    }

    /// Bytes of memory of it.
    pub fn past_bytes(&self) -> usize {
        let shown = self.shown.changes.capacity() * size_of::<ShownChange>();
        self.tables.iter().map(|table| table.past_bytes()).sum::<usize>() + shown
    }

    /// Puts what the world looked like at a time into columns, by class.
    pub fn show_past<'a, C: AsMut<[&'a mut [u8]]>>(
        &self,
        time: f64,
        frames: &mut [Frames],
        columns: &mut [C],
    ) {
        for ((table, frames), columns) in self.tables.iter().zip(frames).zip(columns) {
            table.show_past(time, frames, columns.as_mut());
        }
    }

    /// Whether what lives in a row now lived there at a tick.
    pub fn lived_at(&self, class: usize, row: u32, tick: u32) -> bool {
        self.tables[class].lived_at(row, tick)
    }

    /// Which rows of a class a client had at a tick: a byte a row.
    pub fn shown_at(&self, handle: PeerHandle, class: usize, tick: u32, shown: &mut Vec<u8>) {
        shown.clear();
        let rows = self.tables[class].rows() as u32;
        shown.extend((0..rows).map(|row| u8::from(self.has(handle, class, row))));
        let of = |change: &&ShownChange| change.peer == handle && change.class == class;
        for change in self.shown.changes.iter().rev().take_while(|change| change.tick + 1 > tick).filter(of) {
            if change.tick > tick
                && let Some(shown) = shown.get_mut(change.row as usize)
            {
                *shown = u8::from(!change.entered);
            }
        }
    }
}
