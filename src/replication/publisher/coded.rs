//! Writes the coded classes' part of a client's packet, after the other sections.
//!
//! The part follows from the tick, the named samples, the room, and the ready ghosts with what is known of them. Clients for
//! which these are equal take the bytes that were written for the first one.

use std::sync::Arc;

use super::super::class::Classes;
use super::super::coding::{
    Coder, Encoder, GhostList, Layout, Listing, MAX_DECISION_BITS, MAX_RECORDS, Mark, Models, Note, Off, Op,
    Place, STRIDE, Sample, number_bits,
};
use super::super::packet::Base;
use super::super::table::Table;
use super::cache::Cache;
use super::fill::{BATCH, TickData, Wrote};
use super::named::{NAMES, PeerModels, TickSamples};
use super::part::{Basis, Part, SectionCosts};
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

/// The coder of packets.
#[derive(Debug)]
pub(super) struct PacketCoder {
    encoder: Encoder,
    /// What was written in this tick, for other clients to take.
    pub(super) parts: Vec<Part>,
    pub(super) samples: TickSamples,
    /// Whether the part being written follows from what was known of the ready ghosts.
    follows: bool,
    // Scratch memory: the words of the last create and of this one, properties without words, and the words' costs by
    // property.
    created: Vec<u64>,
    words: Vec<u64>,
    present: Vec<u64>,
    bodies: BitWriter,
    took: Vec<(usize, u64)>,
    /// The ghosts that the section updated or created.
    listing: Listing,
    /// Of the client whose packet is written.
    basis: Basis,
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
            present: Vec::new(),
            bodies: BitWriter::new(),
            took: Vec::new(),
            listing: Listing::default(),
            basis: Basis::default(),
        };
        has_coded.then(|| Box::new(new()))
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
    /// The bits that the packet may have, and the tick of the newest one that the client is known to have.
    room: usize,
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
        let names = models.name(tick, &mut coder.basis.named);
        (coder.basis.room, coder.basis.acked) = (room, acked);
        let is_same = |part: &Part| part.basis.is_same(&coder.basis, self.tables, scopes);
        let found = match coder.parts.iter().position(is_same) {
            Some(part) => {
                let carried = &coder.parts[part].carried;
                for of_class in carried.chunk_by(|a, b| a.class == b.class) {
                    scopes[usize::from(of_class[0].class)].take_run(of_class, tick);
                }
                writing.extend_from_slice(carried);
                Some(part)
            }
            None => self.write_part(coder, models, scopes, writing).map(|part| {
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

    /// Writes the ready ghosts for the first client with these; None if there is nothing to write.
    fn write_part(
        &mut self,
        coder: &mut PacketCoder,
        models: &mut PeerModels,
        scopes: &mut [Scope],
        writing: &mut Vec<CarriedGhost>,
    ) -> Option<Part> {
        let mut basis = core::mem::take(&mut coder.basis);
        basis.find_ready(self.tables, scopes);
        let models = models
            .models
            .get_or_insert_with(|| Models::first(self.tables.iter().map(|table| table.class().as_ref())));
        models.name(&basis.named);
        coder.encoder.clear();
        let mut sample = Sample::new(self.tick, scopes.len());
        let (mut spent, before) = (Vec::new(), writing.len());
        for class in basis.classes() {
            let (mark, mut section) = self.begin_section(coder, class, models, &basis);
            let full = section.fill(&mut scopes[class], writing, before);
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
        Some(Part { basis, carried, words, bits, sample: Arc::new(sample), spent })
    }

    /// Begins a class's section; it is taken back to the mark if no record has room.
    fn begin_section<'s>(
        &'s mut self,
        coder: &'s mut PacketCoder,
        class: usize,
        models: &'s Models,
        basis: &Basis,
    ) -> (Mark, Section<'s>) {
        let table = &self.tables[class];
        let of = table.class();
        let (words, properties) = (of.properties.word_count(), of.properties.each().len());
        coder.listing.clear(words);
        coder.created.clear();
        coder.created.resize(words, 0);
        let mark = coder.encoder.mark();
        coder.encoder.raw(1, 1);
        coder.encoder.raw(class as u64, self.class_bits);
        coder.encoder.load(models.of(class));
        let listed = models.listed(class);
        let heads = [0; 3];
        let spent =
            SectionCosts { heads, properties: vec![0; properties].into(), updates: (0, 0), creates: (0, 0) };
        let section = Section {
            table,
            cache: &mut self.caches[class],
            coder,
            layout: Layout::new(of),
            place: Place::new(self.tick, properties as u32, of.is_chosen(), listed.notes()),
            listed,
            class,
            tick: self.tick,
            room: basis.room,
            acked: basis.acked,
            begun: false,
            spent,
        };
        (mark, section)
    }
}

impl Section<'_> {
    /// Writes the ready ghosts, listed ones first; returns whether the packet is full.
    fn fill(&mut self, scope: &mut Scope, carried: &mut Vec<CarriedGhost>, before: usize) -> bool {
        if self.place.is_listed() {
            if self.fill_some(scope, carried, before) {
                return true;
            }
            self.leave_list();
        }
        self.fill_some(scope, carried, before)
    }

    /// Ends the list's part.
    fn leave_list(&mut self) {
        self.place.code(&mut self.coder.encoder, None);
        self.place.leave_list();
    }

    /// Writes the ready ghosts that are listed, or those that aren't, by id; returns whether the packet is full.
    fn fill_some(&mut self, scope: &mut Scope, carried: &mut Vec<CarriedGhost>, before: usize) -> bool {
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
                match self.write(scope, (*id, at), carried.len() == before) {
                    Wrote::Record { op, base, .. } => {
                        carried.push(scope.track_sent(self.class, *id, self.tick, op, base));
                    }
                    Wrote::Nothing => {
                        self.coder.follows = false;
                        scope.clear_due(*id);
                    }
                    Wrote::Later => {
                        self.coder.follows = false;
                        scope.clear_ready(*id);
                    }
                    Wrote::NoRoom => return true,
                }
            }
        }
    }

    /// Writes what is due of a ghost, which is at a place of the list or has no place there and its id. Whole words of the packet's
    /// first may take less room.
    fn write(&mut self, scope: &mut Scope, (id, at): (u32, u32), is_first: bool) -> Wrote {
        let (op, base, spent) = match self.due(scope, id) {
            Due::Update { row, base, group, op } => {
                let entry = self.cache.update(self.table, row, base, group);
                let (mask, whole) = (self.cache.entry(entry).mask, self.cache.entry(entry).whole);
                if mask == 0 {
                    return Wrote::Nothing;
                }
                let mut spent = self.put(at, Op::Update { base, whole, mask }, Some((row, entry)));
                if spent.is_none() && is_first && !whole {
                    spent = self.put(at, Op::Update { base, whole: true, mask }, Some((row, entry)));
                }
                let updates = &mut self.spent.updates;
                *updates = (updates.0 + spent.unwrap_or(0), updates.1 + usize::from(spent.is_some()));
                (op, base, spent)
            }
            // It is due again when it has a state.
            Due::Create { row, .. } if !self.table.has_state(row) => return Wrote::Nothing,
            Due::Create { row, audience } => {
                // States that a client has are kept.
                self.cache.note_encoded(row, audience.group(self.table.class()));
                let spent = self.put(at, Op::Create(audience), Some((row, 0)));
                let creates = &mut self.spent.creates;
                *creates = (creates.0 + spent.unwrap_or(0), creates.1 + usize::from(spent.is_some()));
                (CarriedOp::Create, Base::default(), spent)
            }
            Due::Destroy => (CarriedOp::Destroy, Base::default(), self.put(at, Op::Destroy, None)),
            Due::Later => return Wrote::Later,
        };
        spent.map_or(Wrote::NoRoom, |spent| Wrote::Record { bits: (spent >> 16) as usize, op, base })
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
    fn put(&mut self, at: u32, op: Op, of: Option<(u32, usize)>) -> Option<u64> {
        let (place, mark, before) = (self.place, self.coder.encoder.mark(), self.coder.encoder.spent());
        self.place.code(&mut self.coder.encoder, Some((at, op)));
        let head = self.coder.encoder.spent() - before;
        self.coder.took.clear();
        if let Some((row, entry)) = of {
            let (id, trails) = match place.is_listed() {
                true => (self.listed.ids[at as usize], self.listed.trails(at as usize)),
                false => (at, &[][..]),
            };
            self.coder.listing.push(id, trails);
            let note = match op {
                Op::Update { base, whole, mask } => {
                    let noted = self.place.note(at).copied();
                    let mut deviated = 0;
                    if whole {
                        self.put_whole(row, mask);
                    } else {
                        deviated = self.put_residuals(entry, mask, base.depth(), noted);
                    }
                    self.put_others(row, mask);
                    Note::of_update(noted, (self.tick, base, mask), deviated)
                }
                Op::Create(audience) => {
                    let class = self.table.class();
                    let mask = class.created(audience.group(class).into());
                    self.put_created(row, mask);
                    self.put_others(row, mask);
                    Note::of_create(mask, self.tick)
                }
                Op::Destroy => Note::default(),
            };
            self.coder.listing.note(note);
        }
        let PacketCoder { encoder, took, listing, created, words, .. } = &mut *self.coder;
        if encoder.bits() > self.room {
            encoder.restore(mark);
            self.place = place;
            if of.is_some() {
                listing.pop();
            }
            return None;
        }
        let kind = match op {
            Op::Update { .. } => 0,
            Op::Create(_) => 1,
            Op::Destroy => 2,
        };
        if kind == 1 {
            core::mem::swap(created, words);
        }
        self.begun = true;
        self.spent.heads[kind] += head;
        took.iter().for_each(|(property, spent)| self.spent.properties[*property] += spent);
        Some(encoder.spent() - before)
    }

    /// Writes the words of an update against what was predicted. Gives which properties don't do what is likely.
    fn put_residuals(&mut self, entry: usize, mask: u64, run: u8, noted: Option<Note>) -> u64 {
        let PacketCoder { encoder, took, listing, .. } = &mut *self.coder;
        let (properties, trails) = (&self.table.class().properties, listing.trails());
        let mut residuals = self.cache.residuals(self.cache.entry(entry)).iter();
        let (mut off, mut deviated, mut before) = (Off::default(), 0, encoder.spent());
        for (i, _) in properties.of(mask & properties.with_words()) {
            let deviates = residuals.next() == Some(&1);
            self.layout.code_deviates(encoder, i, (run, noted.as_ref()), deviates);
            deviated |= u64::from(deviates) << i;
            off.begin(run, deviates);
            for (word, residual) in properties.word_range(i).zip(&mut residuals) {
                self.layout.code_residual(encoder, word, &mut off, &mut trails[word], *residual);
            }
            let spent = encoder.spent();
            took.push((i, spent - core::mem::replace(&mut before, spent)));
        }
        deviated
    }

    /// Writes the words of an update whole.
    fn put_whole(&mut self, row: u32, mask: u64) {
        let PacketCoder { encoder, took, present, .. } = &mut *self.coder;
        let (properties, newest) = (&self.table.class().properties, self.table.present_words(row, present));
        for (i, property) in properties.of(mask & properties.with_words()) {
            let before = encoder.spent();
            for (range, word) in property.words().iter().zip(&newest[properties.word_range(i)]) {
                encoder.raw(*word, range.bits());
            }
            took.push((i, encoder.spent() - before));
        }
    }

    /// Writes the words of a create, and leaves in `words` what the next one is written against.
    fn put_created(&mut self, row: u32, mask: u64) {
        let PacketCoder { encoder, took, created, words, present, .. } = &mut *self.coder;
        let (properties, newest) = (&self.table.class().properties, self.table.present_words(row, present));
        words.clone_from(created);
        for (i, property) in properties.of(mask & properties.with_words()) {
            let (range, before) = (properties.word_range(i), encoder.spent());
            let to = &mut words[range.clone()];
            to.copy_from_slice(&newest[range.clone()]);
            self.layout.code_created(encoder, property, range.start, &created[range], to);
            took.push((i, encoder.spent() - before));
        }
    }

    /// Writes the properties of a mask that have no words.
    fn put_others(&mut self, row: u32, mask: u64) {
        let PacketCoder { encoder, took, bodies, .. } = &mut *self.coder;
        let properties = &self.table.class().properties;
        let without = mask & properties.all() & !properties.with_words();
        if without == 0 {
            return;
        }
        bodies.clear();
        for property in ones(without) {
            let start = bodies.bit_len();
            if let Some(value) = self.table.value(row, property) {
                bodies.append(value);
            }
            took.push((property, ((bodies.bit_len() - start) as u64) << 16));
        }
        let (bits, before) = (bodies.bit_len(), encoder.spent());
        self.layout.code_length(encoder, bits);
        took.push((without.trailing_zeros() as usize, encoder.spent() - before));
        let mut reader = BitReader::with_range(bodies.as_bytes(), 0, bits);
        while let part @ 1.. = reader.remaining_bits().min(16) as u32 {
            encoder.raw(reader.bits(part).unwrap_or(0), part);
        }
    }

    fn end(&mut self) {
        if self.place.is_listed() {
            self.leave_list();
        }
        self.place.code(&mut self.coder.encoder, None);
    }
}
