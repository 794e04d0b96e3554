//! Writes the coded classes' part of a client's packet, after the other sections.
//!
//! The part follows from the tick, the named samples, the room, and the ready ghosts with what is known of them. Clients for
//! which these are equal take the bytes that were written for the first one.

use std::sync::Arc;

use super::super::class::Classes;
use super::super::coding::{
    Coder, Encoder, GhostList, Layout, Listing, MAX_DECISION_BITS, MAX_RECORDS, Models, Note, Off, Op, Place,
    STRIDE, Sample, number_bits,
};
use super::super::packet::Base;
use super::super::table::Table;
use super::averages::Averages;
use super::cache::Cache;
use super::costs::ClassCosts;
use super::fill::{BATCH, TickData};
use super::named::{NAMES, PeerModels, TickSamples, are_same};
use super::peer::Peer;
use super::scope::{CarriedGhost, CarriedOp, Due, Scope};
use crate::store::ones;
use crate::wire::{BitReader, BitWriter};

/// Bits reserved for the ends of a section and of the packet, and for the listed ghosts until it is said that none follow.
const ENDS: usize = (3 + STRIDE) * MAX_DECISION_BITS + 16;

/// The room for coded bytes is a multiple of this many bits, so that small differences in front of it don't keep clients from sharing.
const GRAIN: usize = 64;

/// The maximum overhead of a packet's first coded record beyond its properties: the start and end of packet and
/// section, some thirty decisions, a gap, two ages, a mask, and the length of properties without words.
pub(super) const MAX_OVERHEAD: usize =
    40 * MAX_DECISION_BITS + 3 * number_bits(16) + number_bits(12) + 64 + 16 + ENDS + NAMES + GRAIN;

/// The costs of a section.
#[derive(Debug)]
struct SectionCosts {
    /// In units of 2^-16 bits: of the heads of updates, creates and destroys, and by property.
    heads: [u64; 3],
    properties: Box<[u64]>,
    /// The cost and count of updates and creates.
    updates: (u64, usize),
    creates: (u64, usize),
}

impl SectionCosts {
    /// Adds the costs of one client; returns the bits whose purpose is known.
    fn note(&self, costs: &mut ClassCosts, averages: &mut Averages) -> u64 {
        let [updates, creates, destroys] = self.heads.map(|spent| spent >> 16);
        costs.updates += updates;
        costs.creates += creates;
        costs.destroys += destroys;
        let mut known = updates + creates + destroys;
        for (cost, spent) in costs.properties.iter_mut().zip(&self.properties) {
            *cost += spent >> 16;
            known += spent >> 16;
        }
        if self.updates.1 > 0 {
            averages.note_updates((self.updates.0 >> 16) as usize, self.updates.1);
        }
        if self.creates.1 > 0 {
            averages.note_creates((self.creates.0 >> 16) as usize, self.creates.1);
        }
        known
    }
}

/// A written coded part, for other clients to take.
#[derive(Debug)]
struct Part {
    room: usize,
    /// The tick of the newest packet that the client is known to have.
    acked: u32,
    named: Vec<Arc<Sample>>,
    /// The classes with ready ghosts, and how many these are; then each ghost's id and what was known of it.
    classes: Vec<(usize, usize)>,
    ids: Vec<u32>,
    keys: Vec<u128>,
    carried: Vec<CarriedGhost>,
    words: Vec<u64>,
    bits: usize,
    sample: Arc<Sample>,
    spent: Vec<(usize, SectionCosts)>,
}

impl Part {
    /// Whether the part for a client with these ready ghosts is the same.
    fn is_for(
        &self,
        scopes: &[Scope],
        (named, ready): (&[Arc<Sample>], &Ready),
        (room, acked): (usize, u32),
    ) -> bool {
        let mut each = self.ids.iter().zip(&self.keys);
        (self.room, self.acked) == (room, acked)
            && are_same(&self.named, named)
            && self.classes == ready.classes
            && self.ids == ready.ids
            && self.classes.iter().all(|(class, count)| {
                each.by_ref().take(*count).all(|(id, key)| scopes[*class].key(*id) == *key)
            })
    }
}

/// A client's ready ghosts of coded classes: the classes with their number of ghosts, and the ghosts' ids.
#[derive(Debug, Default)]
struct Ready {
    classes: Vec<(usize, usize)>,
    ids: Vec<u32>,
}

/// The coder of packets.
#[derive(Debug)]
pub(super) struct PacketCoder {
    encoder: Encoder,
    /// What was written in this tick, for other clients to take.
    parts: Vec<Part>,
    pub(super) samples: TickSamples,
    /// Whether the part being written follows from what was known of the ready ghosts.
    follows: bool,
    // Scratch memory: the words of the last create and of this one, properties without words, and the words' costs by
    // property.
    created: Vec<u64>,
    words: Vec<u64>,
    bodies: BitWriter,
    took: Vec<(usize, u64)>,
    /// The ghosts that the section updated or created.
    listing: Listing,
    named: Vec<Arc<Sample>>,
    ready: Ready,
}

impl PacketCoder {
    /// None if no class is coded.
    pub(super) fn of(classes: &Classes) -> Option<Box<Self>> {
        let has_coded = classes.iter().any(|class| class.coded);
        let new = || PacketCoder {
            encoder: Encoder::default(),
            parts: Vec::new(),
            samples: TickSamples::default(),
            follows: true,
            created: Vec::new(),
            words: Vec::new(),
            bodies: BitWriter::new(),
            took: Vec::new(),
            listing: Listing::default(),
            named: Vec::new(),
            ready: Ready::default(),
        };
        has_coded.then(|| Box::new(new()))
    }

    /// How many parts were written in this tick.
    #[cfg(test)]
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// All clients' ticks are over.
    pub(super) fn end_tick(&mut self) {
        self.parts.clear();
        self.samples = TickSamples::default();
    }
}

/// A class's records in a packet.
struct Section<'a> {
    table: &'a Table,
    cache: &'a mut Cache,
    coder: &'a mut PacketCoder,
    layout: Layout,
    place: Place<'a>,
    /// The ghosts that are likely to be in it.
    listed: GhostList<'a>,
    class: usize,
    tick: u32,
    /// The tick of the newest packet that the client is known to have.
    acked: u32,
    begun: bool,
    spent: SectionCosts,
}

impl TickData<'_> {
    /// Writes the ready ghosts of coded classes, in `bits` bits with what is written already. Returns the bits of no
    /// class.
    pub(super) fn fill_coded(&mut self, peer: &mut Peer, bits: usize, out: &mut BitWriter) -> usize {
        let (start, tick) = (out.bit_len(), self.tick);
        let Some(room) = bits.checked_sub(start + NAMES + ENDS).map(|room| room / GRAIN * GRAIN) else {
            return 0;
        };
        let Some(coder) = self.coder.take() else { return 0 };
        let acked = peer.acked();
        let Peer { scopes, averages, writing, models, .. } = peer;
        let names = models.name(tick, &mut coder.named);
        self.find_ready(scopes, &mut coder.ready);
        let is_for = |part: &Part| part.is_for(scopes, (&coder.named, &coder.ready), (room, acked));
        let found = match coder.parts.iter().position(is_for) {
            Some(part) => {
                let carried = &coder.parts[part].carried;
                for of_class in carried.chunk_by(|a, b| a.class == b.class) {
                    scopes[usize::from(of_class[0].class)].take_run(of_class, tick);
                }
                writing.extend_from_slice(carried);
                Some(part)
            }
            None => self.write_part(coder, models, scopes, writing, (room, acked)).map(|part| {
                coder.parts.push(part);
                coder.parts.len() - 1
            }),
        };
        let mut overhead = 0;
        if let Some(found) = found {
            let part = &coder.parts[found];
            names.write(out);
            out.run_of_words(&part.words, 0, part.bits);
            models.writing = Some((names, part.sample.clone()));
            let noted = part
                .spent
                .iter()
                .map(|(class, spent)| spent.note(&mut self.costs[*class], &mut averages[*class]));
            // Costs are rounded, each decision by itself.
            overhead = (out.bit_len() - start).saturating_sub(noted.sum::<u64>() as usize);
            if !coder.follows {
                coder.parts.pop();
                coder.follows = true;
            }
        }
        self.coder = Some(coder);
        overhead
    }

    fn find_ready(&self, scopes: &[Scope], ready: &mut Ready) {
        let Ready { classes, ids } = ready;
        classes.clear();
        ids.clear();
        for (class, scope) in scopes.iter().enumerate() {
            if self.tables[class].class().coded && scope.due_count() > 0 {
                let before = ids.len();
                ids.extend(scope.each_ready());
                classes.push((class, ids.len() - before));
            }
        }
    }

    /// Writes the ready ghosts for the first client with these; None if there is nothing to write.
    fn write_part(
        &mut self,
        coder: &mut PacketCoder,
        models: &mut PeerModels,
        scopes: &mut [Scope],
        writing: &mut Vec<CarriedGhost>,
        (room, acked): (usize, u32),
    ) -> Option<Part> {
        let Ready { classes, ids } = core::mem::take(&mut coder.ready);
        let mut each = ids.iter();
        let mut keys = Vec::with_capacity(ids.len());
        for (class, count) in &classes {
            keys.extend(each.by_ref().take(*count).map(|id| scopes[*class].key(*id)));
        }
        let models = models
            .models
            .get_or_insert_with(|| Models::first(self.tables.iter().map(|table| table.class().as_ref())));
        models.name(&coder.named);
        coder.encoder.clear();
        let mut sample = Sample::new(self.tick, scopes.len());
        let named = coder.named.clone();
        let (mut spent, before) = (Vec::new(), writing.len());
        for (class, _) in &classes {
            let (class, table) = (*class, &self.tables[*class]);
            let words = table.class().properties.word_count();
            let properties = table.class().properties.each().len();
            coder.listing.clear(words);
            coder.created.clear();
            coder.created.resize(words, 0);
            let mark = coder.encoder.mark();
            coder.encoder.raw(1, 1);
            coder.encoder.raw(class as u64, self.class_bits);
            coder.encoder.load(models.of(class));
            let listed = models.listed(class);
            let mut section = Section {
                table,
                cache: &mut self.caches[class],
                coder: &mut *coder,
                layout: Layout::new(table.class()),
                place: Place::new(self.tick, properties as u32, table.class().is_chosen(), listed.notes()),
                listed,
                class,
                tick: self.tick,
                acked,
                begun: false,
                spent: SectionCosts {
                    heads: [0; 3],
                    properties: vec![0; properties].into(),
                    updates: (0, 0),
                    creates: (0, 0),
                },
            };
            let full = section.fill(&mut scopes[class], room, writing, before);
            if !section.begun {
                coder.encoder.restore(mark);
            } else {
                section.end();
                spent.push((class, section.spent));
                sample.keep(class, coder.encoder.seen(), &mut coder.listing);
            }
            if full {
                break;
            }
        }
        if writing.len() == before {
            coder.follows = true;
            return None;
        }
        coder.encoder.raw(0, 1);
        let bytes = coder.encoder.finish();
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (words, bits) = (bytes.chunks(8).map(word).collect(), 8 * bytes.len());
        let carried = writing[before..].to_vec();
        Some(Part {
            room,
            acked,
            named,
            classes,
            ids,
            keys,
            carried,
            words,
            bits,
            sample: Arc::new(sample),
            spent,
        })
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
                            self.coder.follows = false;
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
                            let updates = &mut self.spent.updates;
                            *updates = (updates.0 + bits, updates.1 + 1);
                        }
                        (carried, base, written)
                    }
                    Due::Create { row, .. } if !self.table.has_state(row) => {
                        // It is due again when it has a state.
                        self.coder.follows = false;
                        scope.clear_due(*id);
                        continue;
                    }
                    Due::Create { row, audience } => {
                        // States that a client has are kept.
                        self.cache.note_encoded(row, audience.group(self.table.class()));
                        let written = self.put(at, Op::Create(audience), Some((row, 0)), room);
                        if let Some(bits) = written {
                            let creates = &mut self.spent.creates;
                            *creates = (creates.0 + bits, creates.1 + 1);
                        }
                        (CarriedOp::Create, Base::default(), written)
                    }
                    Due::Destroy => {
                        (CarriedOp::Destroy, Base::default(), self.put(at, Op::Destroy, None, room))
                    }
                    Due::Later => {
                        self.coder.follows = false;
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
                self.coder.follows = false;
                return scope.create_again(id, self.tick);
            }
        }
        due
    }

    /// Writes a record with its row's properties, if there is room; returns its cost in units of 2^-16 bits.
    fn put(&mut self, at: u32, op: Op, of: Option<(u32, usize)>, room: usize) -> Option<u64> {
        let (class, layout, place) = (self.table.class(), self.layout, self.place);
        let properties = &class.properties;
        let PacketCoder { encoder, created, words, bodies, took, listing, .. } = &mut *self.coder;
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
        self.spent.heads[kind] += head;
        took.iter().for_each(|(property, spent)| self.spent.properties[*property] += spent);
        Some(encoder.spent() - before)
    }

    fn end(&mut self) {
        if self.place.is_listed() {
            self.leave_list();
        }
        self.place.code(&mut self.coder.encoder, None);
    }
}
