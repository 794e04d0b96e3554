//! What clients were shown some ticks ago.
//!
//! Promises: costs nothing unless asked for; then remembers that many ticks of the world, and what entered and left
//! each client's view, at most [`MAX_SHOWN`] of these: beyond them, an object counts as shown if it is now.

use std::collections::VecDeque;

use super::super::frames::Frames;
use super::super::table::MAX_PAST;
use super::Publisher;
use crate::endpoint::PeerHandle;

/// How many entries and exits are remembered.
const MAX_SHOWN: usize = 1 << 18;

/// An object entering or leaving a client's view.
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
    /// Notes that a client has a row, or hasn't, from a tick on.
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
    /// Remembers this many ticks of the world from now on, at most [`MAX_PAST`]; 0 forgets all.
    pub fn remember(&mut self, ticks: u32) {
        let ticks = ticks.min(MAX_PAST);
        self.tables.iter_mut().for_each(|table| table.remember(ticks));
        self.shown = ShownLog { ticks, changes: VecDeque::new() };
        self.remembered_since = self.tick + 1;
    }

    /// The oldest remembered tick, if any.
    pub fn oldest_past(&self) -> Option<u32> {
        let oldest = self.remembered_since.max(self.tick.saturating_sub(self.shown.ticks));
        (self.shown.ticks > 0 && oldest <= self.tick).then_some(oldest)
    }

    /// Bytes of memory for the past.
    pub fn past_bytes(&self) -> usize {
        let shown = self.shown.changes.capacity() * size_of::<ShownChange>();
        self.tables.iter().map(|table| table.past_bytes()).sum::<usize>() + shown
    }

    /// Writes the world's state at a time to columns, by class.
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

    /// The rows of a class whose ghost of a tick is gone by now, rising, with the tick of its end.
    pub fn gone_at(&self, class: usize, tick: u32) -> Vec<(usize, u32)> {
        self.tables[class].gone_at(tick)
    }

    /// The rows of a class that a client had at a tick: a byte for each row.
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
