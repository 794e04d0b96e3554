//! Writes the coded classes' part of a client's packet, after the other sections.

use std::collections::VecDeque;

use super::super::coding::{Coder, Off};
use super::super::coding::{
    Encoder, Layout, Listed, Listing, MAX_DECISION_BITS, MAX_RECORDS, Note, Op, Place, SLOT_BITS, SLOTS,
    STRIDE, Snapshot, number_bits,
};
use super::super::packet::Base;
use super::super::table::Table;
use super::cache::Cache;
use super::costs::ClassCosts;
use super::fill::{BATCH, TickData};
use super::peer::Peer;
use super::scope::{CarriedGhost, CarriedOp, Due, Scope};
use crate::store::ones;
use crate::wire::{BitReader, BitSink, BitWriter};

/// Bits reserved for the ends of a section and of the packet, and for the listed ghosts until it is said that none follow.
const ENDS: usize = (3 + STRIDE) * MAX_DECISION_BITS + 16;

/// The maximum overhead of a packet's first coded record beyond its properties: the start and end of packet and
/// section, some thirty decisions, a gap, two ages, a mask, and the length of properties without words.
pub(super) const MAX_OVERHEAD: usize =
    40 * MAX_DECISION_BITS + 3 * number_bits(16) + number_bits(12) + 64 + 16 + ENDS;

/// The models that a client's packets start with.
#[derive(Debug)]
pub(super) struct PeerModels {
    /// The snapshots that the client is known to have of the newest tick of which it has any, and their numbers.
    tick: u32,
    acked: Vec<(u8, Snapshot)>,
    /// The snapshot that it is to keep of the packet being written, and those of packets in flight with these records.
    writing: Option<(u8, Snapshot)>,
    sent: VecDeque<(u32, u8, Snapshot)>,
    last_slot: u8,
}

impl PeerModels {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        PeerModels { tick: 0, acked: vec![(0, snapshot)], writing: None, sent: VecDeque::new(), last_slot: 0 }
    }

    /// The number under which the client is to keep the next snapshot; None while as many are in flight as there are.
    /// Never the number in use: a packet that counts as lost may have arrived, and replaced the models there.
    fn next_slot(&self) -> Option<u8> {
        // At most 15.
        let after = |slot: u8| slot % SLOTS as u8 + 1;
        let mut next = after(self.last_slot);
        while self.acked.iter().any(|(slot, _)| *slot == next) {
            next = after(next);
        }
        let free = self.sent.len() + self.acked.len() + 1 < SLOTS;
        free.then_some(next)
    }

    pub(super) fn track_sent(&mut self, record: u32) {
        if let Some((slot, snapshot)) = self.writing.take() {
            self.last_slot = slot;
            self.sent.push_back((record, slot, snapshot));
        }
    }

    pub(super) fn handle_notification(&mut self, record: u32, tick: u32, delivered: bool) {
        if self.sent.front().is_some_and(|sent| sent.0 == record)
            && let Some((_, slot, snapshot)) = self.sent.pop_front()
            && delivered
        {
            if self.tick != tick {
                self.acked.clear();
            }
            self.tick = tick;
            self.acked.push((slot, snapshot));
        }
    }
}

/// The coder of packets, and its scratch memory.
#[derive(Debug, Default)]
pub(super) struct PacketCoder {
    encoder: Encoder,
    /// Scratch: the words of the last create and of this one, properties without words, and the words' costs by
    /// property.
    created: Vec<u64>,
    words: Vec<u64>,
    bodies: BitWriter,
    took: Vec<(usize, u64)>,
    /// The ghosts that the section updated or created.
    listing: Listing,
}

/// A class's records in a packet.
struct Section<'a> {
    table: &'a Table,
    cache: &'a mut Cache,
    coder: &'a mut PacketCoder,
    layout: Layout,
    place: Place<'a>,
    /// The ghosts that are likely to be in it.
    listed: Listed<'a>,
    class: usize,
    tick: u32,
    /// The tick of the newest packet that the client is known to have.
    acked: u32,
    begun: bool,
    /// Costs in units of 2^-16 bits: of the heads of updates, creates and destroys, and by property.
    heads: [u64; 3],
    properties: Box<[u64]>,
    /// The cost and count of updates and creates.
    updates: (u64, usize),
    creates: (u64, usize),
}

impl TickData<'_> {
    /// Writes the ready ghosts of coded classes, in `bits` bits with what is written already. Returns the bits of no
    /// class.
    pub(super) fn fill_coded(&mut self, peer: &mut Peer, bits: usize, out: &mut BitWriter) -> usize {
        let Some(coder) = self.coder.as_deref_mut() else { return 0 };
        let Some(room) = bits.checked_sub(out.bit_len() + ENDS) else { return 0 };
        let acked = peer.acked();
        let Peer { scopes, averages, writing, models, .. } = peer;
        coder.encoder.clear();
        let keeps = models.next_slot();
        let first = scopes.iter().zip(self.tables).enumerate().find_map(|(class, (scope, table))| {
            let mut ids = [0];
            (table.class().coded && scope.next_ready(&mut 0, &mut ids) > 0).then_some((class, ids[0]))
        });
        let covers = |snapshot: &Snapshot| {
            first.is_some_and(|(class, id)| {
                snapshot.listed(class).ids.first().is_some_and(|least| *least <= id)
            })
        };
        let best = models.acked.iter().rposition(|(_, snapshot)| covers(snapshot)).unwrap_or(0);
        let (slot, begin) = models.acked[best].clone();
        coder.encoder.raw(u64::from(slot), SLOT_BITS);
        coder.encoder.raw(u64::from(keeps.unwrap_or(0)), SLOT_BITS);
        let (mut known, before) = (0, writing.len());
        let mut kept = keeps.map(|slot| (slot, begin.clone()));
        for (class, scope) in scopes.iter_mut().enumerate() {
            let table = &self.tables[class];
            if !table.class().coded || scope.due_count() == 0 {
                continue;
            }
            let properties = &table.class().properties;
            coder.listing.clear(properties.word_count());
            coder.created.clear();
            coder.created.resize(properties.word_count(), 0);
            let mark = coder.encoder.mark();
            coder.encoder.raw(1, 1);
            coder.encoder.raw(class as u64, self.class_bits);
            coder.encoder.load(begin.models(class));
            let listed = begin.listed(class);
            let mut section = Section {
                table,
                cache: &mut self.caches[class],
                coder: &mut *coder,
                layout: Layout::new(table.class()),
                place: Place::new(
                    self.tick,
                    properties.each().len() as u32,
                    table.class().is_chosen(),
                    listed,
                ),
                listed,
                class,
                tick: self.tick,
                acked,
                begun: false,
                heads: [0; 3],
                properties: vec![0; properties.each().len()].into(),
                updates: (0, 0),
                creates: (0, 0),
            };
            let full = section.fill(scope, room, writing, before);
            if !section.begun {
                coder.encoder.restore(mark);
            } else {
                known += section.end(&mut self.costs[class]);
                let (updates, creates) = (section.updates, section.creates);
                if updates.1 > 0 {
                    averages[class].note_updates((updates.0 >> 16) as usize, updates.1);
                }
                if creates.1 > 0 {
                    averages[class].note_creates((creates.0 >> 16) as usize, creates.1);
                }
                if let Some((_, snapshot)) = &mut kept {
                    snapshot.keep(class, self.tick, coder.encoder.models(), &mut coder.listing);
                }
            }
            if full {
                break;
            }
        }
        if writing.len() == before {
            return 0;
        }
        models.writing = kept;
        coder.encoder.raw(0, 1);
        let start = out.bit_len();
        coder.encoder.finish().iter().for_each(|byte| out.bits(u64::from(*byte), 8));
        out.bit_len() - start - known as usize
    }
}

impl Section<'_> {
    /// Writes the ready ghosts, listed ones first; returns whether the packet is full.
    fn fill(
        &mut self,
        scope: &mut Scope,
        room: usize,
        carried: &mut Vec<CarriedGhost>,
        before: usize,
    ) -> bool {
        if self.place.is_listed() {
            if self.fill_some(scope, room, carried, before) {
                return true;
            }
            self.leave_list();
        }
        self.fill_some(scope, room, carried, before)
    }

    /// Ends the list's part.
    fn leave_list(&mut self) {
        self.place.code(&mut self.coder.encoder, None);
        self.place.leave_list();
    }

    /// Writes the ready ghosts that are listed, or those that aren't, by id; returns whether the packet is full.
    fn fill_some(
        &mut self,
        scope: &mut Scope,
        room: usize,
        carried: &mut Vec<CarriedGhost>,
        before: usize,
    ) -> bool {
        let (mut from, mut ids, mut place) = (0, [0; BATCH], 0);
        loop {
            let count = scope.next_ready(&mut from, &mut ids);
            if count == 0 {
                return false;
            }
            for id in &ids[..count] {
                // Both rise.
                while self.listed.ids.get(place).is_some_and(|listed| listed < id) {
                    place += 1;
                }
                let listed = (self.listed.ids.get(place) == Some(id)).then_some(place);
                if listed.is_some() != self.place.is_listed() {
                    continue;
                }
                if carried.len() - before == MAX_RECORDS {
                    return true;
                }
                // The list is no longer than there are ids.
                let at = listed.map_or(*id, |place| place as u32);
                let (due, is_first) = (self.due(scope, *id), carried.len() == before);
                let (op, base, written) = match due {
                    Due::Update { row, base, group, op: carried } => {
                        let entry = self.cache.update(self.table, row, base, group);
                        let (mask, whole) = (self.cache.entry(entry).mask, self.cache.entry(entry).whole);
                        if mask == 0 {
                            scope.clear_due(*id);
                            continue;
                        }
                        let mut written =
                            self.put(at, Op::Update { base, whole, mask }, Some((row, entry)), room);
                        if written.is_none() && is_first && !whole {
                            // Whole words may take less room.
                            let said = Op::Update { base, whole: true, mask };
                            written = self.put(at, said, Some((row, entry)), room);
                        }
                        if let Some(bits) = written {
                            self.updates = (self.updates.0 + bits, self.updates.1 + 1);
                        }
                        (carried, base, written)
                    }
                    Due::Create { row, .. } if !self.table.has_state(row) => {
                        // It is due again when it has a state.
                        scope.clear_due(*id);
                        continue;
                    }
                    Due::Create { row, audience } => {
                        // States that a client has are kept.
                        self.cache.note_encoded(row, audience.group(self.table.class()));
                        let written = self.put(at, Op::Create(audience), Some((row, 0)), room);
                        if let Some(bits) = written {
                            self.creates = (self.creates.0 + bits, self.creates.1 + 1);
                        }
                        (CarriedOp::Create, Base::default(), written)
                    }
                    Due::Destroy => {
                        (CarriedOp::Destroy, Base::default(), self.put(at, Op::Destroy, None, room))
                    }
                    Due::Later => {
                        scope.clear_ready(*id);
                        continue;
                    }
                };
                if written.is_none() {
                    return true;
                }
                carried.push(scope.track_sent(self.class, *id, self.tick, op, base));
            }
        }
    }

    /// The operation for a ghost: a create if its baseline is forgotten.
    fn due(&mut self, scope: &mut Scope, id: u32) -> Due {
        let due = scope.due(id, (self.tick, self.acked), self.table);
        if let Due::Update { row, base, group, .. } = due {
            let entry = self.cache.update(self.table, row, base, group);
            if self.cache.entry(entry).forgotten {
                return scope.create_again(id, self.tick);
            }
        }
        due
    }

    /// Writes a record with its row's properties, if there is room; returns its cost in units of 2^-16 bits.
    fn put(&mut self, at: u32, op: Op, of: Option<(u32, usize)>, room: usize) -> Option<u64> {
        let (class, layout, place) = (self.table.class(), self.layout, self.place);
        let properties = &class.properties;
        let PacketCoder { encoder, created, words, bodies, took, listing } = &mut *self.coder;
        let (mark, before) = (encoder.mark(), encoder.spent());
        self.place.code(encoder, Some((at, op)));
        let head = encoder.spent() - before;
        took.clear();
        let (mask, creates) = match op {
            Op::Update { mask, .. } => (mask, false),
            Op::Create(audience) => (class.created(audience.group(class).into()), true),
            Op::Destroy => (0, false),
        };
        if let Some((row, entry)) = of {
            let listed = place.is_listed().then(|| self.listed.trails(at as usize));
            let id = if place.is_listed() { self.listed.ids[at as usize] } else { at };
            let trails = listing.push(id, listed.unwrap_or_default());
            let noted = self.place.note(at).copied();
            words.clear();
            words.extend_from_slice(self.table.newest(row));
            let depth =
                if let Op::Update { base, whole: false, .. } = op { Some(base.depth()) } else { None };
            let residuals = depth.map_or(&[][..], |_| self.cache.residuals(self.cache.entry(entry)));
            let mut residuals = residuals.iter();
            let (mut off, mut deviated) = (Off::default(), 0);
            for (i, property) in properties.of(mask & properties.with_words()) {
                let (range, before) = (properties.word_range(i), encoder.spent());
                if let Some(depth) = depth {
                    let deviates = residuals.next() == Some(&1);
                    layout.code_deviates(encoder, i, (depth, noted.as_ref()), deviates);
                    deviated |= u64::from(deviates) << i;
                    off.begin(depth, deviates);
                    for (word, residual) in range.zip(&mut residuals) {
                        layout.code_residual(encoder, word, &mut off, &mut trails[word], *residual);
                    }
                } else if creates {
                    let start = range.start;
                    let (before, words) = (&created[range.clone()], &mut words[range]);
                    layout.code_created(encoder, property, start, before, words);
                } else {
                    layout.code_whole(encoder, property, &mut words[range]);
                }
                took.push((i, encoder.spent() - before));
            }
            listing.note(match op {
                Op::Update { base, mask, .. } => {
                    Note::of_update(noted, (self.tick, base, mask), (deviated, off.most()))
                }
                _ => Note::of_create(mask, self.tick),
            });
            let without = mask & properties.all() & !properties.with_words();
            if without != 0 {
                bodies.clear();
                let mut lengths = Vec::new();
                for property in ones(without) {
                    let start = bodies.bit_len();
                    if let Some(value) = self.table.value(row, property) {
                        bodies.append(value);
                    }
                    lengths.push((property, ((bodies.bit_len() - start) as u64) << 16));
                }
                let (bits, before) = (bodies.bit_len(), encoder.spent());
                layout.code_length(encoder, bits);
                took.push((lengths[0].0, encoder.spent() - before));
                took.extend(lengths);
                let mut reader = BitReader::with_range(bodies.as_bytes(), 0, bits);
                while let part @ 1.. = reader.remaining_bits().min(16) as u32 {
                    encoder.raw(reader.bits(part).unwrap_or(0), part);
                }
            }
        }
        if encoder.bits() > room {
            encoder.restore(mark);
            self.place = place;
            if of.is_some() {
                listing.pop();
            }
            return None;
        }
        if creates {
            for (i, _) in properties.of(mask & properties.with_words()) {
                let range = properties.word_range(i);
                created[range.clone()].copy_from_slice(&words[range]);
            }
        }
        self.begun = true;
        let kind = match op {
            Op::Update { .. } => 0,
            Op::Create(_) => 1,
            Op::Destroy => 2,
        };
        self.heads[kind] += head;
        took.iter().for_each(|(property, spent)| self.properties[*property] += spent);
        Some(encoder.spent() - before)
    }

    /// Ends the section; returns the bits whose purpose is known.
    fn end(&mut self, costs: &mut ClassCosts) -> u64 {
        if self.place.is_listed() {
            self.leave_list();
        }
        self.place.code(&mut self.coder.encoder, None);
        let [updates, creates, destroys] = self.heads.map(|spent| spent >> 16);
        costs.updates += updates;
        costs.creates += creates;
        costs.destroys += destroys;
        let mut known = updates + creates + destroys;
        for (cost, spent) in costs.properties.iter_mut().zip(&self.properties) {
            *cost += spent >> 16;
            known += spent >> 16;
        }
        known
    }
}
