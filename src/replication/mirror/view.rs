//! A client's world at a time between ticks.
//!
//! Promises: a ghost is shown between two of its states by the rules of its class; it appears in its first tick and
//! is gone in that of its end, even if its id is another ghost's by then. Visits each ghost once, and converts only
//! new states to numbers.

use super::super::class::Classes;
use super::super::frames::{Frames, Segment};
use super::super::lives::Lives;
use super::super::packet::Violation;
use super::Mirror;
use super::ghosts::Ghosts;
use super::received::{PacketTime, ReceivedTicks, TickArrival};
use super::states::PAGE;
use crate::store::sequence::nearest;
use crate::wire::BitReader;

/// For how many ticks a ghost that is gone may still be shown.
const KEPT_TICKS: u32 = 256;

/// A time of the server, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorldTime {
    /// At most 2^32 - 2.
    pub tick: f64,
    /// For how many ticks beyond the newest one that arrived properties with a velocity go on.
    pub ahead: f64,
    /// Silences of at most this many ticks are drawn as one motion, even if nothing changed in them.
    pub spread: u32,
    /// What has no state between these two ticks may have moved, because of a stall.
    pub stalled: (u32, u32),
}

/// A client's world at a time, by class.
#[derive(Debug)]
pub struct WorldFrames {
    classes: Box<[ClassFrames]>,
    epoch: u32,
    has_begun: bool,
}

#[derive(Debug)]
struct ClassFrames {
    frames: Frames,
    /// By page: 1 more than the version at which its ghosts were looked up.
    versions: Vec<u64>,
    words: Box<[u64]>,
    /// Rows that show one that is gone, rising, with the ticks of their ends.
    borrowed: Vec<(usize, u32)>,
}

impl WorldFrames {
    pub fn new(classes: &Classes) -> Self {
        let of = |class: &std::sync::Arc<super::super::class::GhostClass>| ClassFrames {
            frames: Frames::new(class.clone()),
            versions: Vec::new(),
            words: vec![0; class.properties.word_count()].into(),
            borrowed: Vec::new(),
        };
        WorldFrames { classes: classes.iter().map(of).collect(), epoch: 0, has_begun: false }
    }

    /// The frames of a class.
    pub fn class(&self, class: usize) -> &Frames {
        &self.classes[class].frames
    }

    /// The rows that show a ghost that is gone by now, rising, with the tick of its end.
    pub fn gone(&self, class: usize) -> &[(usize, u32)] {
        &self.classes[class].borrowed
    }
}

impl Mirror {
    /// Reads a packet of ghosts: as [`Mirror::handle_payload`], and notes when it arrived and after which.
    ///
    /// # Errors
    /// How it breaks the protocol.
    pub fn handle_packet(&mut self, time: PacketTime, reader: BitReader<'_>) -> Result<(), Violation> {
        if self.read_payload(reader)? {
            self.received.push(time, self.last, true);
        }
        Ok(())
    }

    /// Notes a packet for a tick with these low bits that may have no ghosts: if it has none, no ghost changed.
    pub fn note_tick(&mut self, time: PacketTime, low: u16) {
        // Before the first ghosts there is nothing to show.
        if self.tick == 0 || self.awaits_visit {
            return;
        }
        if self.received.may_server_wait(time) {
            return;
        }
        if let Some(tick) = nearest(low, self.tick) {
            self.tick = self.tick.max(tick);
            self.received.push(time, tick, false);
        }
    }

    /// Whether the server may wait for acks, so ghosts may have changed since the newest tick.
    pub fn may_server_wait(&mut self, time: PacketTime) -> bool {
        self.received.may_server_wait(time)
    }

    /// The sequence number of the newest packet that had a tick.
    pub fn newest_packet(&self) -> Option<u64> {
        self.received.newest()
    }

    /// A different number for each server whose world this is.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The ticks that arrived since the last call; the last 256 of them.
    pub fn take_received(&mut self) -> impl Iterator<Item = TickArrival> {
        self.received.take()
    }

    /// Writes the world at a time into columns, by class: one for each property, with [`Mirror::rows`] cells or more.
    /// From the first call on despawned ghosts are remembered, for as long as they may still be shown.
    pub fn show<'a, C: AsMut<[&'a mut [u8]]>>(
        &mut self,
        time: WorldTime,
        world: &mut WorldFrames,
        columns: &mut [C],
    ) {
        let begins = !core::mem::replace(&mut world.has_begun, true);
        let is_new = core::mem::replace(&mut world.epoch, self.epoch) != self.epoch;
        let newest = self.tick;
        let each = self.ghosts.iter_mut().zip(&mut world.classes).zip(columns);
        for ((ghosts, shown), columns) in each {
            if begins {
                ghosts.departed.keep(KEPT_TICKS);
            }
            if is_new {
                shown.frames.clear();
                shown.versions.clear();
            }
            shown.look(ghosts, &self.received, time, columns.as_mut());
            let ahead = time.ahead.min((time.tick - f64::from(newest)).max(0.0));
            shown.frames.show(time.tick, ahead, columns.as_mut());
        }
    }
}

impl ClassFrames {
    /// Finds the states around a time.
    fn look(
        &mut self,
        ghosts: &Ghosts,
        received: &ReceivedTicks,
        time: WorldTime,
        columns: &mut [&mut [u8]],
    ) {
        let tick = time.tick as u32;
        let rows = ghosts.rows();
        self.frames.reserve(rows);
        self.versions.resize(rows.div_ceil(PAGE), 0);
        for (row, _) in self.borrowed.drain(..) {
            self.frames.hide(row);
        }
        let mut rest = Rest { received, time, known: [(0, 0); 4] };
        let ClassFrames { frames, versions, words, .. } = self;
        for (page_at, version) in versions.iter_mut().enumerate() {
            let first = page_at * PAGE;
            let Some((page, _)) = ghosts.pages.get(first) else { continue };
            let is_same =
                core::mem::replace(version, u64::from(page.version) + 1) == u64::from(page.version) + 1;
            let states = &page.states;
            for at in 0..PAGE.min(rows - first) {
                let (row, newest) = (first + at, states.heads[at].tick);
                if let Some((from, to)) = frames.ticks(row).filter(|_| is_same) {
                    let holds = to.map_or(newest == from, |to| tick < to);
                    if holds && from <= tick {
                        continue;
                    }
                }
                if newest == 0 {
                    frames.hide(row);
                    continue;
                }
                let ([from, to], is_full, place) = states.bracket(at, tick);
                // The state before the oldest of many is forgotten: use the oldest.
                let (from, to) = if from == 0 && is_full { (to, 0) } else { (from, to) };
                if from == 0 {
                    frames.hide(row);
                    continue;
                }
                let segment = rest.segment(from, to);
                frames.set(row, segment, columns, words, |tick, words| {
                    if tick != to {
                        return states.words_at(at, tick, words);
                    }
                    states.load(at, place, words);
                    true
                });
            }
        }
        self.look_back(&ghosts.departed, &mut rest, tick, columns);
    }

    /// Finds ghosts that are gone now but existed at that tick.
    fn look_back(&mut self, departed: &Lives, rest: &mut Rest<'_>, tick: u32, columns: &mut [&mut [u8]]) {
        for life in departed.gone() {
            let [from, to] = life.bracket(tick);
            if tick >= life.end || from == 0 || life.id >= self.frames.rows() {
                continue;
            }
            self.frames.hide(life.id);
            let segment = rest.segment(from, to);
            self.frames.set(life.id, segment, columns, &mut self.words, |tick, words| life.at(tick, words));
            self.borrowed.push((life.id, life.end));
        }
        self.borrowed.sort_unstable();
    }
}

/// Known rests, cached because most ghosts ask for the same ticks.
struct Rest<'a> {
    received: &'a ReceivedTicks,
    time: WorldTime,
    /// By the low bits of a tick: that tick, and up to which one a ghost rested whose next state is of that tick.
    known: [(u32, u32); 4],
}

impl Rest<'_> {
    /// Rest isn't drawn as slow motion. But if states may be missing, the ghost moves all the time.
    fn segment(&mut self, from: u32, to: u32) -> Segment {
        if to == 0 {
            return Segment { from, to: None, begin: from };
        }
        let (before, after) = self.time.stalled;
        let moves = to - from <= self.time.spread.max(1) || before <= from && to <= after;
        let begin = if moves { from } else { self.rested_until(to).max(from) };
        Segment { from, to: Some(to), begin }
    }

    fn rested_until(&mut self, tick: u32) -> u32 {
        let known = &mut self.known[tick as usize % 4];
        if known.0 != tick {
            *known = (tick, self.received.rested_until(tick));
        }
        known.1
    }
}
