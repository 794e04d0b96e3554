//! Writes a client's packet.

use super::super::packet::{Audience, Base, HeadDraft, Writer};
use super::super::table::Table;
use super::cache::Cache;
use super::coded::PacketCoder;
use super::costs::ClassCosts;
use super::peer::Peer;
use super::runs::Progress;
use super::scope::{CarriedGhost, CarriedOp, Due, GhostState, Scope};
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
    scope: &'a mut Scope,
    writer: &'a mut Writer,
    out: &'a mut BitWriter,
    carried: &'a mut Vec<CarriedGhost>,
    tick: u32,
    class: usize,
    without_words: u64,
    left: usize,
    /// Bits and number of the updates and creates.
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
            let table = &self.tables[class];
            if scope.due_count() == 0 || table.class().coded {
                continue;
            }
            writer.reset_section();
            let properties = &table.class().properties;
            let mut section = Section {
                table,
                cache: &mut self.caches[class],
                costs: &mut self.costs[class],
                scope,
                left: left - writer.section_bits(),
                writer: &mut writer,
                out,
                carried: writing,
                tick: self.tick,
                class,
                without_words: properties.all() & !properties.with_words(),
                updates: (0, 0),
                creates: (0, 0),
                begun: false,
                shared: None,
                aligned: false,
            };
            full = section.fill();
            averages[class].note(GhostState::Live, section.updates);
            averages[class].note(GhostState::Creating, section.creates);
            if section.begun {
                left = section.left;
                overhead += writer.section_bits();
                writer.end_section(out);
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
    fn fill(&mut self) -> bool {
        let (mut from, mut ids) = (0, [0; BATCH]);
        loop {
            let count = self.scope.next_ready(&mut from, &mut ids);
            if count == 0 {
                return false;
            }
            let mut ids = &ids[..count];
            while !ids.is_empty() {
                let Some(count) = self.take_run(ids).or_else(|| self.write_run(ids)) else { return true };
                ids = &ids[count..];
            }
        }
    }

    /// Writes what another client got of the next ids, if it is the same; gives of how many.
    fn take_run(&mut self, ids: &[u32]) -> Option<usize> {
        if !self.begun {
            return None;
        }
        let from = (self.writer.at, self.left);
        let run = self.cache.runs.take(self.scope, ids, from, self.out, self.carried)?;
        self.writer.at = run.after;
        self.left -= run.bits;
        self.costs.updates += run.heads;
        self.updates = (self.updates.0 + run.bits, self.updates.1 + run.count());
        Some(run.count())
    }

    /// Writes what is ready of the next ids, up to where a run ends that others may take; gives of how many, none if the packet
    /// is full.
    fn write_run(&mut self, ids: &[u32]) -> Option<usize> {
        let begun = self.begun;
        let is_kept = begun && self.cache.runs.begin(self.progress());
        let (mut count, mut end, mut full) = (0, self.progress(), false);
        for id in ids {
            let key = self.scope.key(*id);
            self.shared = None;
            match self.write(*id) {
                Wrote::Record { bits, op, base } => {
                    self.left -= bits;
                    let sent = self.scope.track_sent(self.class, *id, self.tick, op, base);
                    self.carried.push(sent);
                    if let (Some(entry), true) = (self.shared, begun) {
                        count += 1;
                        if is_kept {
                            end = self.progress();
                            self.cache.runs.push(key, entry, sent);
                        }
                        continue;
                    }
                }
                Wrote::Nothing => self.scope.clear_due(*id),
                Wrote::Later => self.scope.clear_ready(*id),
                Wrote::NoRoom => full = true,
            }
            count += 1;
            break;
        }
        if is_kept {
            self.cache.runs.end(end, self.out);
        }
        (!full).then_some(count)
    }

    #[inline]
    fn progress(&self) -> Progress {
        Progress { at: self.writer.at, bits: self.out.bit_len(), heads: self.costs.updates }
    }

    #[inline]
    fn write(&mut self, id: u32) -> Wrote {
        match self.scope.due(id, (self.tick, 0), self.table) {
            Due::Update { row, base, group, op } => {
                let at = self.cache.update(self.table, row, base, group);
                let entry = self.cache.entry(at);
                // Most records repeat the previous head and are short.
                if self.begun
                    && entry.mask & self.without_words == 0
                    && let Some((head, head_bits)) = self.writer.alike(id, base, entry.mask)
                {
                    let bits = (head_bits + entry.bits) as usize;
                    if bits <= self.left && self.cache.copy_behind(at, head, head_bits, self.out) {
                        self.writer.at.next = id + 1;
                        self.shared = Some(at);
                        return self.wrote_update(bits, head_bits as usize, op, base);
                    }
                }
                self.write_update(id, (row, at), op, base)
            }
            Due::Create { row, audience } => self.write_create(id, row, audience),
            Due::Destroy => {
                let drafted = self.writer.destroy(id);
                if drafted.bits() > self.left {
                    return Wrote::NoRoom;
                }
                self.begin();
                self.writer.write(self.out, &drafted);
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

    /// Writes any update, from a row and its entry. Apart from [`Section::write`], so that the inlined path for repeated heads stays small.
    #[inline(never)]
    fn write_update(&mut self, id: u32, (row, at): (u32, usize), op: CarriedOp, base: Base) -> Wrote {
        let entry = self.cache.entry(at);
        if entry.forgotten {
            return match self.scope.create_again(id, self.tick) {
                Due::Create { row, audience } => self.write_create(id, row, audience),
                _ => Wrote::Later,
            };
        }
        if entry.mask == 0 {
            return Wrote::Nothing;
        }
        let properties = self.table.class().properties.each().len() as u32;
        let drafted = self.writer.update(id, base, entry.mask, properties);
        self.shared = (entry.mask & self.without_words == 0).then_some(at);
        match self.put(&drafted, at, row) {
            Some(bits) => self.wrote_update(bits, drafted.bits(), op, base),
            None => Wrote::NoRoom,
        }
    }

    #[inline(never)]
    fn write_create(&mut self, id: u32, row: u32, audience: Audience) -> Wrote {
        if !self.table.has_state(row) {
            // It is due again when it has a state.
            return Wrote::Nothing;
        }
        let class = self.table.class();
        let at = self.cache.create(self.table, row, audience.group(class));
        let drafted = self.writer.create(id, audience, class.is_chosen());
        let Some(bits) = self.put(&drafted, at, row) else { return Wrote::NoRoom };
        self.costs.creates += drafted.bits() as u64;
        self.creates = (self.creates.0 + bits, self.creates.1 + 1);
        Wrote::Record { bits, op: CarriedOp::Create, base: Base::default() }
    }

    #[inline]
    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.writer.begin_section(self.out, self.class);
        }
    }

    /// Writes a record with an entry's properties, if there is room; returns its bits.
    #[inline]
    fn put(&mut self, drafted: &HeadDraft, at: usize, row: u32) -> Option<usize> {
        let entry = self.cache.entry(at);
        let bits = drafted.bits() + entry.bits as usize;
        let others = entry.mask & self.without_words;
        if bits + self.most_of(row, others) > self.left {
            return None;
        }
        self.begin();
        self.writer.write(self.out, drafted);
        self.cache.copy(at, self.out);
        if others == 0 {
            return Some(bits);
        }
        let bits = bits + self.write_others(row, others);
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

    fn write_others(&mut self, row: u32, mask: u64) -> usize {
        let start = self.out.bit_len();
        for property in ones(mask) {
            let before = self.out.bit_len();
            if let Some(value) = self.table.value(row, property) {
                self.out.append(value);
            }
            self.costs.properties[property] += (self.out.bit_len() - before) as u64;
        }
        self.out.bit_len() - start
    }
}
