//! Writes a client's packet.

use super::super::packet::{Audience, Base, Drafted, Writer};
use super::super::table::Table;
use super::cache::Cache;
use super::coded::PacketCoder;
use super::costs::ClassCosts;
use super::peer::Peer;
use super::runs::Progress;
use super::scope::{CarriedGhost, CarriedOp, Due, Scope};
use crate::store::ones;
use crate::wire::BitWriter;

/// The maximum of bits that an align takes.
const MAX_ALIGN: usize = 7;

/// How many ghosts' records are loaded at a time.
pub(super) const BATCH: usize = 64;

/// The tick's data of the world, from which a client gets a part.
pub(super) struct TickData<'a> {
    pub(super) tick: u32,
    pub(super) class_bits: u32,
    pub(super) tables: &'a [Table],
    pub(super) caches: &'a mut [Cache],
    pub(super) costs: &'a mut [ClassCosts],
    /// Set if any class is coded.
    pub(super) coder: Option<&'a mut PacketCoder>,
}

/// The outcome of writing a record.
pub(super) enum Wrote {
    Record {
        bits: usize,
        op: CarriedOp,
        base: Base,
    },
    /// There is nothing to send.
    Nothing,
    /// Not in this tick.
    Later,
    NoRoom,
}

/// A class's records in a packet.
struct Section<'a> {
    table: &'a Table,
    cache: &'a mut Cache,
    costs: &'a mut ClassCosts,
    tick: u32,
    class: usize,
    properties: u32,
    without_words: u64,
    left: usize,
    updates: (usize, usize),
    creates: (usize, usize),
    begun: bool,
    /// The entry of the update that was written, where its bits are the same wherever they lie.
    shared: Option<usize>,
    /// Whether the section has an align, whose padding depends on the packet's position.
    aligned: bool,
}

impl TickData<'_> {
    /// Writes a client's ready ghosts in at most `bits` bits; false if there are none. Returns the cost of the packet's
    /// head and sections.
    pub(super) fn fill(&mut self, peer: &mut Peer, bits: usize, out: &mut BitWriter) -> Option<u64> {
        let mut writer = Writer::new(self.tick, self.class_bits);
        let visit = peer.visit_to_tell();
        let (mut overhead, mut full) = (Writer::frame_bits(visit), false);
        let mut left = bits.checked_sub(overhead)?;
        let reminds = peer.is_to_be_reminded(self.tick);
        writer.begin(out, visit);
        let Peer { scopes, averages, writing, .. } = peer;
        writing.clear();
        for (class, scope) in scopes.iter_mut().enumerate() {
            if full || left < writer.section_bits() {
                break;
            }
            if scope.due_count() == 0 || self.tables[class].class().coded {
                continue;
            }
            let table = &self.tables[class];
            let properties = &table.class().properties;
            let mut section = Section {
                table,
                cache: &mut self.caches[class],
                costs: &mut self.costs[class],
                tick: self.tick,
                class,
                properties: properties.each().len() as u32,
                without_words: properties.all() & !properties.with_words(),
                left: left - writer.section_bits(),
                updates: (0, 0),
                creates: (0, 0),
                begun: false,
                shared: None,
                aligned: false,
            };
            full = section.fill(scope, &mut writer, out, writing);
            if section.begun {
                overhead += writer.section_bits();
                writer.end_section(out);
                left = section.left;
            }
            if section.updates.1 > 0 {
                averages[class].note_updates(section.updates.0, section.updates.1);
            }
            if section.creates.1 > 0 {
                averages[class].note_creates(section.creates.0, section.creates.1);
            }
        }
        writer.end(out);
        if !full && self.coder.is_some() {
            overhead += self.fill_coded(peer, bits, out);
        }
        (!peer.writing.is_empty() || reminds).then_some(overhead as u64)
    }
}

impl Section<'_> {
    /// Writes the ready ghosts by id; returns whether the packet is full.
    fn fill(
        &mut self,
        scope: &mut Scope,
        writer: &mut Writer,
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> bool {
        let (mut from, mut ids) = (0, [0; BATCH]);
        loop {
            let count = scope.next_ready(&mut from, &mut ids);
            if count == 0 {
                return false;
            }
            let mut ids = &ids[..count];
            while !ids.is_empty() {
                let count = match self.take_run(scope, ids, writer, out, carried) {
                    Some(count) => count,
                    None => match self.write_run(scope, ids, writer, out, carried) {
                        Some(count) => count,
                        None => return true,
                    },
                };
                ids = &ids[count..];
            }
        }
    }

    /// Writes what another client got of the next ids, if it is the same; gives of how many.
    fn take_run(
        &mut self,
        scope: &mut Scope,
        ids: &[u32],
        writer: &mut Writer,
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> Option<usize> {
        if !self.begun {
            return None;
        }
        let taken = self.cache.runs.take(scope, ids, (writer.at(), self.left), out, carried)?;
        writer.skip_behind(taken.after);
        self.left -= taken.bits;
        self.costs.updates += taken.heads;
        self.updates = (self.updates.0 + taken.bits, self.updates.1 + taken.count);
        Some(taken.count)
    }

    /// Writes what is ready of the next ids, up to where a run ends that others may take; gives of how many, none if the packet
    /// is full.
    fn write_run(
        &mut self,
        scope: &mut Scope,
        ids: &[u32],
        writer: &mut Writer,
        out: &mut BitWriter,
        carried: &mut Vec<CarriedGhost>,
    ) -> Option<usize> {
        let begun = self.begun;
        if begun {
            self.cache.runs.begin(self.progress(writer, out));
        }
        let (mut count, mut full) = (0, false);
        for id in ids {
            if count > 0 && self.cache.runs.has(scope, *id, writer.at()) {
                // The rest is taken again.
                break;
            }
            let key = scope.key(*id);
            self.shared = None;
            match self.write(scope, *id, writer, out) {
                Wrote::Record { bits, op, base } => {
                    self.left -= bits;
                    let sent = scope.track_sent(self.class, *id, self.tick, op, base);
                    carried.push(sent);
                    if let (Some(entry), true) = (self.shared, begun) {
                        count += 1;
                        self.cache.runs.push(key, entry, sent, self.progress(writer, out));
                        continue;
                    }
                }
                Wrote::Nothing => scope.clear_due(*id),
                Wrote::Later => scope.clear_ready(*id),
                Wrote::NoRoom => full = true,
            }
            count += 1;
            break;
        }
        if begun {
            self.cache.runs.end(out);
        }
        (!full).then_some(count)
    }

    #[inline]
    fn progress(&self, writer: &Writer, out: &BitWriter) -> Progress {
        Progress { at: writer.at(), bits: out.bit_len(), heads: self.costs.updates }
    }

    #[inline]
    fn write(&mut self, scope: &mut Scope, id: u32, writer: &mut Writer, out: &mut BitWriter) -> Wrote {
        match scope.due(id, (self.tick, 0), self.table) {
            Due::Update { row, base, group, op } => {
                let at = self.cache.update(self.table, row, base, group);
                let entry = self.cache.entry(at);
                // Most records repeat the previous head and are short.
                if self.begun
                    && entry.mask & self.without_words == 0
                    && let Some((head, head_bits)) = writer.alike(id, base, entry.mask)
                {
                    let bits = (head_bits + entry.bits) as usize;
                    if bits <= self.left && self.cache.copy_behind(at, head, head_bits, out) {
                        writer.skip_to(id);
                        self.shared = Some(at);
                        return self.wrote_update(bits, head_bits as usize, op, base);
                    }
                }
                self.write_update(scope, id, (row, at), op, base, writer, out)
            }
            Due::Create { row, audience } => self.write_create(id, row, audience, writer, out),
            Due::Destroy => {
                let drafted = self.next(writer).destroy(id);
                if drafted.bits() > self.left {
                    return Wrote::NoRoom;
                }
                self.begin(writer, out);
                writer.write(out, &drafted);
                self.costs.destroys += drafted.bits() as u64;
                Wrote::Record { bits: drafted.bits(), op: CarriedOp::Destroy, base: Base::default() }
            }
            Due::Later => Wrote::Later,
        }
    }

    #[inline]
    fn wrote_update(&mut self, bits: usize, head_bits: usize, op: CarriedOp, base: Base) -> Wrote {
        self.costs.updates += (head_bits + usize::from(base.has_older())) as u64;
        self.updates = (self.updates.0 + bits, self.updates.1 + 1);
        Wrote::Record { bits, op, base }
    }

    /// Writes any update, from a row and its entry.
    #[expect(clippy::too_many_arguments, reason = "keeps the fast path for repeated heads small")]
    #[inline(never)]
    fn write_update(
        &mut self,
        scope: &mut Scope,
        id: u32,
        (row, at): (u32, usize),
        op: CarriedOp,
        base: Base,
        writer: &mut Writer,
        out: &mut BitWriter,
    ) -> Wrote {
        let entry = self.cache.entry(at);
        if entry.forgotten {
            return match scope.create_again(id, self.tick) {
                Due::Create { row, audience } => self.write_create(id, row, audience, writer, out),
                _ => Wrote::Later,
            };
        }
        if entry.mask == 0 {
            return Wrote::Nothing;
        }
        let (drafted, others) = (
            self.next(writer).update(id, base, entry.mask, self.properties),
            entry.mask & self.without_words,
        );
        match self.put(&drafted, at, row, writer, out) {
            Some(bits) => {
                self.shared = (others == 0).then_some(at);
                self.wrote_update(bits, drafted.bits(), op, base)
            }
            None => Wrote::NoRoom,
        }
    }

    #[inline(never)]
    fn write_create(
        &mut self,
        id: u32,
        row: u32,
        audience: Audience,
        writer: &mut Writer,
        out: &mut BitWriter,
    ) -> Wrote {
        if !self.table.has_state(row) {
            // It is due again when it has a state.
            return Wrote::Nothing;
        }
        let at = self.cache.create(self.table, row, audience.group(self.table.class()));
        let drafted = self.next(writer).create(id, audience, self.table.class().is_chosen());
        let Some(bits) = self.put(&drafted, at, row, writer, out) else { return Wrote::NoRoom };
        self.costs.creates += drafted.bits() as u64;
        self.creates = (self.creates.0 + bits, self.creates.1 + 1);
        Wrote::Record { bits, op: CarriedOp::Create, base: Base::default() }
    }

    /// The state of the writer once the section has begun.
    #[inline]
    fn next<'w>(&self, writer: &'w mut Writer) -> &'w Writer {
        if !self.begun {
            writer.reset_section();
        }
        writer
    }

    #[inline]
    fn begin(&mut self, writer: &mut Writer, out: &mut BitWriter) {
        if !self.begun {
            self.begun = true;
            writer.begin_section(out, self.class);
        }
    }

    /// Writes a record with an entry's properties, if there is room; returns its bits.
    #[inline]
    fn put(
        &mut self,
        drafted: &Drafted,
        entry: usize,
        row: u32,
        writer: &mut Writer,
        out: &mut BitWriter,
    ) -> Option<usize> {
        let (mask, words) = (self.cache.entry(entry).mask, self.cache.entry(entry).bits as usize);
        let bits = drafted.bits() + words;
        let others = mask & self.without_words;
        if others != 0 {
            if bits + self.most_of(row, others) > self.left {
                return None;
            }
        } else if bits > self.left {
            return None;
        }
        self.begin(writer, out);
        writer.write(out, drafted);
        self.cache.copy(entry, out);
        if others == 0 {
            return Some(bits);
        }
        let bits = bits + self.write_others(row, others, out);
        if !self.aligned {
            // At another position the first align may take more; all later ones then keep their alignment.
            self.aligned = true;
            self.left = self.left.saturating_sub(MAX_ALIGN).max(bits);
        }
        Some(bits)
    }

    /// The maximum size of properties without words at any position, at most the class's bound.
    fn most_of(&self, row: u32, mask: u64) -> usize {
        let each = ones(mask).filter_map(|property| self.table.value(row, property));
        each.map(|value| value.max_bits()).sum()
    }

    fn write_others(&mut self, row: u32, mask: u64, out: &mut BitWriter) -> usize {
        let start = out.bit_len();
        for property in ones(mask) {
            let before = out.bit_len();
            if let Some(value) = self.table.value(row, property) {
                out.append(value);
            }
            self.costs.properties[property] += (out.bit_len() - before) as u64;
        }
        out.bit_len() - start
    }
}
