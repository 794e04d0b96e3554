//! The world as bytes, and back: see [`crate::replication::SavedWorld`].

use super::super::saved::{COUNT_BITS, LENGTH_BITS, SavedIdentity, SavedWorld, write_ids};
use super::super::table::{Column, Table};
use super::Publisher;
use super::peer::Memory;
use super::scope::Scope;
use crate::wire::{BitSink, BitWriter};

impl Publisher {
    /// The world with these columns, by class and property. A ghost with a value that can't be sent is saved with its last
    /// valid one; without one, it isn't saved.
    pub fn save<'a, C: AsRef<[Column<'a>]>>(&self, columns: &[C], identity: SavedIdentity) -> Vec<u8> {
        let mut bits = BitWriter::new();
        bits.bytes(&SavedWorld::begin(&self.classes));
        bits.bits(identity.key, 64);
        bits.bits(identity.drawn.into(), 32);
        bits.bits(self.tick.into(), 32);
        let each = self.tables.iter().enumerate();
        let rows: Vec<Vec<u32>> = each
            .map(|(class, table)| {
                let columns = columns.get(class).map_or(&[][..], |columns| columns.as_ref());
                self.save_class(&mut bits, class, table, columns)
            })
            .collect();
        let here = self.peers.iter().flatten();
        let here = here.filter_map(|peer| Some((peer.leaves_off(self.tick)?, &peer.scopes)));
        let gone = self.memories.iter().map(|memory| ((memory.client, memory.last), &memory.scopes));
        let clients: Vec<_> = gone.chain(here).collect();
        bits.bits(clients.len() as u64, 32);
        for ((client, last), scopes) in clients {
            bits.bits(client, 64);
            bits.bits(last.number, 64);
            bits.bits(last.until.into(), 32);
            for (scope, rows) in scopes.iter().zip(&rows) {
                let saved = |row: u32| rows.binary_search(&row).is_ok();
                let ids: Vec<_> = scope.ids().map(|(id, row)| (id, row.filter(|row| saved(*row)))).collect();
                write_ids(&mut bits, &ids, rows);
            }
        }
        bits.align();
        SavedWorld::seal(bits.into_bytes())
    }

    /// Writes the ghosts of a class; returns their rows.
    fn save_class(
        &self,
        bits: &mut BitWriter,
        class: usize,
        table: &Table,
        columns: &[Column<'_>],
    ) -> Vec<u32> {
        let properties = &table.class().properties;
        // Rows are below the capacity.
        let mut rows: Vec<u32> = (0..table.rows() as u32).filter(|row| table.is_alive(*row)).collect();
        let each = properties.each().iter().enumerate();
        let cells: Vec<_> = each.map(|(i, _)| valid_cells(table, i, columns.get(i), &mut rows)).collect();
        let count = rows.last().map_or(0, |last| last + 1);
        bits.bits(count.into(), COUNT_BITS);
        (0..count).for_each(|row| bits.bool(rows.binary_search(&row).is_ok()));
        for row in &rows {
            let client = |handle| self.peer(handle)?.visit.map(|(client, _)| client);
            let owner = self.owner(class, *row).and_then(client).or(self.waits_for(class, *row));
            bits.bool(owner.is_some());
            owner.into_iter().for_each(|owner| bits.bits(owner, 64));
        }
        for (place, (property, cells)) in properties.each().iter().zip(&cells).enumerate() {
            if property.has_words() {
                bits.align();
                let size = property.field().node().size();
                rows.iter().for_each(|row| bits.bytes(&cells[*row as usize * size..][..size]));
                continue;
            }
            for value in rows.iter().filter_map(|row| table.next_value(*row, place)) {
                bits.bits(value.bits() as u64, LENGTH_BITS);
                bits.bytes(value.bytes());
            }
        }
        rows
    }

    /// Whether nothing was done yet, so that it may continue a saved world.
    pub fn is_new(&self) -> bool {
        self.tick == 0 && self.peers.is_empty() && self.tables.iter().all(|table| table.rows() == 0)
    }

    /// Continues a saved world, before anything else was done. The game's columns must have the cells of its ghosts by the next
    /// tick.
    pub fn load(&mut self, saved: &SavedWorld) {
        self.tick = saved.tick;
        for (class, of) in saved.classes.iter().enumerate() {
            let count = of.rows.last().map_or(0, |last| last + 1);
            for _ in 0..count {
                // Rows were read as below the capacity.
                let _ = self.spawn(class, None);
            }
            let mut rows = of.rows.iter().copied().peekable();
            for row in 0..count {
                if rows.next_if_eq(&row).is_none() {
                    self.despawn(class, row);
                }
            }
            for (property, bodies) in of.bodies.iter().enumerate() {
                for (row, body) in of.rows.iter().zip(bodies) {
                    // It was read as what can be written.
                    let _ = self.set_cell(class, *row, property, body);
                }
            }
            let owned = of.rows.iter().zip(&of.owners);
            self.waiting.extend(owned.filter_map(|(row, owner)| Some(((class, *row), (*owner)?))));
        }
        self.most_remembered = saved.clients.len();
        for it in &saved.clients {
            let scopes = it.ids.iter().map(|ids| Scope::with_ids(ids, saved.tick)).collect();
            self.memories.push_back(Memory { client: it.client, last: it.last, scopes });
        }
    }
}

/// The cells of a property of all rows. Invalid ones are replaced by the last valid ones; rows that have none, or have no value
/// of a property without words, are taken out of `rows`.
fn valid_cells(table: &Table, place: usize, column: Option<&Column<'_>>, rows: &mut Vec<u32>) -> Vec<u8> {
    let properties = &table.class().properties;
    let property = &properties.each()[place];
    if !property.has_words() {
        rows.retain(|row| table.next_value(*row, place).is_some());
        return Vec::new();
    }
    let size = property.field().node().size();
    let mut cells = column.map_or(&[][..], |column| column.cells).to_vec();
    cells.resize(table.rows() * size, 0);
    let (mut words, mut present) = (vec![0; property.words().len()], Vec::new());
    rows.retain(|row| {
        let cell = &mut cells[*row as usize * size..][..size];
        if property.quantize_column(cell, size, &mut words).is_ok() {
            return true;
        }
        if table.has_state(*row) {
            let words = &table.present_words(*row, &mut present)[properties.word_range(place)];
            property.restore_column(words, cell, size);
        }
        table.has_state(*row)
    });
    cells
}
