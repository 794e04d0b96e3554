//! A client's side: the ghosts that it has.
//!
//! Packets are read as they arrive ([`Mirror::handle_payload`]); the game takes the changes once a tick
//! ([`Mirror::take`]), into its own columns, which have a cell for each ghost id. In between, the columns stay as
//! they were taken.
//!
//! Promises: see [`super`]. A packet that is refused, wherever in it, leaves nothing but the visit that it announces. Memory follows what arrived, and is bounded by
//! the classes' capacities.

mod coded;
mod events;
mod ghosts;
mod names;
mod pages;
mod received;
mod staged;
mod states;
mod view;

use std::sync::Arc;

use self::coded::CodedReader;
pub use self::events::{GhostEvent, GhostEventKind};
use self::ghosts::{Against, Ghosts, Outcome};
pub use self::names::Named;
use self::received::ReceivedTicks;
pub use self::received::{PacketTime, TickArrival};
use self::staged::{Staged, StagedOp};
pub use self::view::{WorldFrames, WorldTime};
use super::class::Classes;
use super::packet::{EarlierVisit, Heads, Op, TICK_BITS, Violation, Visit};
use crate::store::sequence::nearest;
use crate::wire::BitReader;

/// The origin of ticks, so that earlier ones, which may arrive later, stay above 0.
const FIRST_TICK: u32 = 1 << TICK_BITS;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounters {
    pub packets: u64,
    /// Updates, creates and destroys.
    pub records: u64,
    /// Records about ghosts that don't exist, or that came too late.
    pub skipped: u64,
}

#[derive(Debug)]
pub struct Mirror {
    classes: Arc<Classes>,
    ghosts: Box<[Ghosts]>,
    /// Despawns that weren't taken yet, with their ticks.
    ended: Vec<(GhostEvent, u32)>,
    /// The newest tick, 0 before the first; and its value at the game's last take.
    tick: u32,
    taken: u32,
    /// The tick of the packet that was read last, and when which came.
    last: u32,
    received: ReceivedTicks,
    /// Another number after each visit.
    epoch: u32,
    /// The number of the visit; 0 before the first.
    visit: u64,
    /// The server's tick minus the tick of the mirror, a multiple of 2^16.
    tick_offset: i64,
    /// The next packet is another visit's.
    awaits_visit: bool,
    counters: MirrorCounters,
    /// Class, id and tick of the states that the game took last, of ghosts that it owns; if it wants to know.
    owned: Vec<(u16, u32, u32)>,
    notes_owned: bool,
    /// The tick of the packet that ended the ownership of a ghost last, 0 before the first; and its value at the game's last take.
    disowned_at: u32,
    taken_disowned_at: u32,
    /// Where a class is coded.
    coded: Option<Box<CodedReader>>,
    /// Lent to each packet.
    staged: Staged,
}

impl Mirror {
    /// A client that has no ghosts.
    pub fn new(classes: Arc<Classes>) -> Self {
        let ghosts = (0..).zip(classes.iter()).map(|(i, class)| Ghosts::new(class.clone(), i)).collect();
        let coded = CodedReader::of(&classes);
        Mirror {
            classes,
            ghosts,
            ended: Vec::new(),
            tick: 0,
            taken: 0,
            last: 0,
            received: ReceivedTicks::default(),
            epoch: 0,
            visit: 0,
            tick_offset: 0,
            awaits_visit: false,
            counters: MirrorCounters::default(),
            owned: Vec::new(),
            notes_owned: false,
            disowned_at: 0,
            taken_disowned_at: 0,
            coded,
            staged: Staged::default(),
        }
    }

    pub fn classes(&self) -> &Arc<Classes> {
        &self.classes
    }

    /// The next packet comes over another connection. Until then the ghosts stay as they are.
    pub fn await_visit(&mut self) {
        self.awaits_visit = true;
        self.received = ReceivedTicks::default();
    }

    /// Notes the visit that a packet announces, of which `tick` is the whole tick. Over another connection than the packets
    /// before: keeps the ghosts that the server counts on, with their last values, and ends all others.
    fn note_visit(&mut self, visit: Option<(Visit, u32)>) {
        if core::mem::take(&mut self.awaits_visit) {
            let is_ours = |continued: &EarlierVisit| continued.number == self.visit;
            let continued = visit.and_then(|(visit, _)| visit.continues).filter(is_ours);
            self.begin_visit(
                continued.map(|continued| continued.until.wrapping_sub(self.tick_offset as u32)),
            );
            self.visit = 0;
        }
        if let Some((visit, tick)) = visit {
            if self.tick == 0 {
                self.tick_offset = i64::from(tick) - i64::from(FIRST_TICK + tick % (1 << TICK_BITS));
            }
            self.visit = visit.number;
        }
    }

    /// Starts anew with the ghosts that came up to this tick; with none if there is no such tick.
    fn begin_visit(&mut self, kept_until: Option<u32>) {
        (self.tick, self.taken) = (0, 0);
        (self.disowned_at, self.taken_disowned_at) = (0, 0);
        self.received = ReceivedTicks::default();
        self.epoch = self.epoch.wrapping_add(1);
        self.owned.clear();
        self.coded = CodedReader::of(&self.classes);
        for (ghosts, class) in self.ghosts.iter_mut().zip(0..) {
            let kind = GhostEventKind::Despawned;
            let report = |id| self.ended.push((GhostEvent { class, id, kind }, 0));
            match kept_until {
                Some(until) => ghosts.keep(until, report),
                None => ghosts.clear(report),
            }
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    ///
    /// How it breaks the protocol. Nothing of it was applied.
    pub fn handle_payload(&mut self, reader: BitReader<'_>) -> Result<(), Violation> {
        self.read_payload(reader).map(drop)
    }

    /// As [`Mirror::handle_payload`]; false of a packet that only announces a visit before there is anything to show.
    fn read_payload(&mut self, mut reader: BitReader<'_>) -> Result<bool, Violation> {
        let mut staged = core::mem::take(&mut self.staged);
        let result = self.read(&mut reader, &mut staged);
        let shows = self.tick > 0 || staged.count() > 0 || !matches!(result, Ok((_, true)));
        if let (Ok((tick, _)), true) = (result, shows) {
            self.apply(tick, &staged);
        }
        staged.clear();
        self.staged = staged;
        result.map(|_| shows)
    }

    /// Reads all of a packet, and gives its tick and whether it announces a visit.
    fn read(&mut self, reader: &mut BitReader<'_>, staged: &mut Staged) -> Result<(u32, bool), Violation> {
        let low = reader.bits(TICK_BITS)? as u32;
        let visit = if reader.bool()? { Some(Visit::read(reader, low)?) } else { None };
        if visit.is_some() || self.awaits_visit {
            self.note_visit(visit);
        }
        let tick = self.unwrap(low)?;
        let mut heads = Heads::new(tick);
        while reader.bool()? {
            let class = match self.classes.class_bits() {
                0 => 0,
                bits => reader.bits(bits)? as u32,
            };
            let Some(ghosts) = self.ghosts.get_mut(class as usize) else {
                return Err(Violation::Class { class });
            };
            if ghosts.class().coded {
                return Err(Violation::Class { class });
            }
            heads.begin_section(class, ghosts.class().is_chosen());
            let properties = ghosts.class().properties.each().len() as u32;
            let allowed = ghosts.class().updated_for_any();
            let capacity = ghosts.class().capacity;
            while let Some((id, op)) = heads.next(reader, properties, allowed, capacity)? {
                let at = id as usize;
                ghosts.pages.fetch(at);
                if let Op::Update { base, mask } = op
                    && ghosts.read_alike(id, Against { tick, base }, mask, (&mut heads, reader), staged)?
                {
                    continue;
                }
                match op {
                    Op::Update { base, mask } => {
                        ghosts.read_update(at, Against { tick, base }, mask, reader, staged)?;
                    }
                    Op::Create(audience) => {
                        let mask = ghosts.read_create(at, audience, staged, |class, mask, words| {
                            let mut each = class.properties.of(mask);
                            Ok(each.try_for_each(|(i, property)| {
                                property.read(reader, &mut words[class.properties.word_range(i)])
                            })?)
                        })?;
                        ghosts.read_bodies(mask, reader, staged)?;
                    }
                    Op::Destroy => staged.push(class, at, StagedOp::Destroy),
                }
            }
        }
        match reader.remaining_bits() {
            0 => {}
            _ if self.coded.is_some() => self.handle_coded(tick, reader, staged)?,
            bits => return Err(Violation::Trailing { bits }),
        }
        Ok((tick, visit.is_some()))
    }

    /// Applies what was read of a packet.
    fn apply(&mut self, tick: u32, staged: &Staged) {
        self.tick = self.tick.max(tick);
        self.last = tick;
        self.counters.packets += 1;
        self.counters.records += staged.count() as u64;
        self.counters.skipped += staged.skipped;
        for record in &staged.records {
            // There are at most 256 classes.
            let class = record.class as u16;
            let ghosts = &mut self.ghosts[usize::from(class)];
            let may_disown = matches!(record.op, StagedOp::Create(_) | StagedOp::Destroy);
            let was_owned = may_disown && ghosts.is_owned(record.id as usize);
            let outcome = ghosts.apply(tick, record, staged);
            if was_owned && !ghosts.is_owned(record.id as usize) {
                self.disowned_at = self.disowned_at.max(tick);
            }
            match outcome {
                Outcome::Quiet => {}
                Outcome::Skipped(count) => self.counters.skipped += count,
                Outcome::Despawned => {
                    let event = GhostEvent { class, id: record.id, kind: GhostEventKind::Despawned };
                    self.ended.push((event, tick));
                }
            }
        }
    }

    /// The tick with these low bits that is nearest to the newest one.
    fn unwrap(&self, low: u32) -> Result<u32, Violation> {
        if self.tick == 0 {
            return Ok(FIRST_TICK + low);
        }
        nearest(low as u16, self.tick).filter(|tick| *tick > 0).ok_or(Violation::Tick)
    }

    /// Puts the changes since the last call into the game's columns, and appends to `events`: despawns in their
    /// order, spawns by class and id, then changes by class and id. So if an id has both a despawn and a spawn here,
    /// the despawn is that of the earlier ghost.
    ///
    /// `columns` has for each class one column per property, of [`Mirror::rows`] cells or more; those of properties
    /// without words are ignored (see [`Mirror::value`]). Ghosts without a cell wait.
    pub fn take<'a, C: AsMut<[&'a mut [u8]]>>(&mut self, columns: &mut [C], events: &mut Vec<GhostEvent>) {
        events.extend(self.ended.drain(..).map(|(event, _)| event));
        self.taken = self.tick;
        for (ghosts, class) in self.ghosts.iter_mut().zip(0..).take(columns.len()) {
            ghosts.take_spawns(|id| events.push(GhostEvent { class, id, kind: GhostEventKind::Spawned }));
        }
        for ((ghosts, columns), class) in self.ghosts.iter_mut().zip(columns).zip(0..) {
            ghosts.take(columns.as_mut(), |id, mask, fresh, owner| {
                let mut tell = |kind| events.push(GhostEvent { class, id, kind });
                if let Some(owner) = owner {
                    tell(GhostEventKind::Owned { owner });
                }
                if mask != 0 && !fresh {
                    tell(GhostEventKind::Changed { mask });
                }
            });
        }
        if self.notes_owned {
            self.taken_disowned_at = self.disowned_at;
            self.owned.clear();
            for (ghosts, class) in self.ghosts.iter().zip(0..) {
                self.owned.extend(ghosts.owned().map(|(id, tick)| (class, id, tick)));
            }
        }
    }

    /// Records with each [`Mirror::take`] the ticks of the states that it took, for ghosts that the client owns.
    pub fn note_owned(&mut self) {
        self.notes_owned = true;
    }

    /// How many ticks before the newest one the state is that was taken of a ghost which the client owns, and that of the newest
    /// of all of them, or the last end of one.
    pub fn owned_ages(&self, class: usize, id: u32) -> Option<(u32, u32)> {
        let is_it = |owned: &&(u16, u32, u32)| usize::from(owned.0) == class && owned.1 == id;
        // What is kept of an earlier visit is of its ticks.
        let tick = self.owned.iter().find(|owned| !self.awaits_visit && is_it(owned))?.2;
        let newest = self.owned.iter().map(|owned| owned.2).fold(self.taken_disowned_at, u32::max);
        Some((self.tick.saturating_sub(tick), self.tick.saturating_sub(newest)))
    }

    /// The class and id of each ghost whose end [`Mirror::take`] will report. Its cells keep its last values until
    /// then; afterwards they may belong to another ghost with its id.
    pub fn ended(&self) -> impl Iterator<Item = (usize, u32)> {
        self.ended_at().map(|(place, _)| place)
    }

    /// [`Mirror::ended`] with the tick of each end; 0 if it ended with an earlier visit.
    pub fn ended_at(&self) -> impl Iterator<Item = ((usize, u32), u32)> {
        self.ended.iter().map(|(event, tick)| ((usize::from(event.class), event.id), *tick))
    }

    /// The ids of a class's ghosts whose cells [`Mirror::take`] will change, with the mask of properties: the cells
    /// still have the values that the game has seen.
    pub fn changing(&self, class: usize) -> impl Iterator<Item = (u32, u64)> {
        self.ghosts.get(class).into_iter().flat_map(Ghosts::changing)
    }

    /// Whether anything waits for [`Mirror::take`].
    pub fn has_news(&self) -> bool {
        !self.ended.is_empty() || self.ghosts.iter().any(Ghosts::has_news)
    }

    /// The newest tick of the server that arrived: its low 16 bits are those of the server's tick. 0 before the first.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// The server's tick is a tick of the mirror plus this, a multiple of 2^16.
    pub fn tick_offset(&self) -> i64 {
        self.tick_offset
    }

    /// How many cells a column of this class must have: one more than the highest id of any ghost so far.
    pub fn rows(&self, class: usize) -> usize {
        self.ghosts.get(class).map_or(0, Ghosts::rows)
    }

    /// Whether there is such a ghost.
    pub fn is_alive(&self, class: usize, id: u32) -> bool {
        self.ghosts.get(class).is_some_and(|ghosts| ghosts.is_alive(id as usize))
    }

    /// Whether there is such a ghost and the client owns it.
    pub fn owns(&self, class: usize, id: u32) -> bool {
        self.ghosts.get(class).is_some_and(|ghosts| ghosts.is_owned(id as usize))
    }

    /// The client's group for a ghost: which of its properties it is sent.
    pub fn group(&self, class: usize, id: u32) -> usize {
        self.ghosts.get(class).map_or(0, |ghosts| ghosts.group(id as usize))
    }

    /// The tick of a ghost's newest state, 0 if it has none.
    pub fn tick_of(&self, class: usize, id: u32) -> u32 {
        self.ghosts.get(class).map_or(0, |ghosts| ghosts.tick(id as usize))
    }

    /// The newest value of a property without words, as a body for [`crate::wire::Field::load`]. None if the ghost
    /// doesn't exist or never got it.
    pub fn value(&self, class: usize, id: u32, property: usize) -> Option<&[u8]> {
        self.ghosts.get(class)?.value(id as usize, property)
    }

    pub fn counters(&self) -> MirrorCounters {
        self.counters
    }
}

#[cfg(test)]
mod narrow_tests;
#[cfg(test)]
mod tests;
