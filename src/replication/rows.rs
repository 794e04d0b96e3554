//! The rows of a ghost class on one side of the game: columns of cells by row, and values without words.
//!
//! Promises: a row keeps its number as long as it lives. What the game or views may have changed since the last flush is
//! known by property, so idle properties cost nothing.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::saved::SavedClass;
use crate::store::cells::Cells;
use crate::store::zeroed::Zeroed;
use crate::wire::Properties;

/// The owner of rows that have none.
pub const NOBODY: u64 = u64::MAX;

/// Bytes of an owner: a number of the owning client, or a flag for this client.
pub const OWNER_NUMBER: usize = size_of::<u64>();
pub const OWNER_FLAG: usize = 1;

/// Values of properties without words, by row and property.
type Bodies = HashMap<(u32, usize), Arc<[u8]>>;

#[derive(Debug)]
pub struct RowCells {
    /// By property; empty for properties without words.
    columns: Box<[Arc<Cells>]>,
    /// The mask of the properties without words.
    without_words: u64,
    /// A byte a row: 1 while it lives.
    alive: Arc<Cells>,
    /// On a server, and in its past, the number of the owning client; on a client 1 if that client owns the row.
    owners: Arc<Cells>,
    /// One more than the highest row ever used.
    count: AtomicUsize,
    living: AtomicUsize,
    /// Properties that the game has written since the last flush, views apart.
    written: AtomicU64,
    /// Whether rows were added since the last flush.
    grown: AtomicBool,
    bodies: Mutex<Bodies>,
    /// The cells that received values are written to, by property; empty on a server. Nothing has views of these:
    /// [`RowCells::publish`] copies them.
    received: Mutex<Vec<Zeroed>>,
}

impl RowCells {
    /// No rows yet. `receives` says whether values arrive from a peer.
    pub fn new(properties: &Properties, capacity: usize, owner_bytes: usize, receives: bool) -> Self {
        let columns = properties.each().iter().map(|property| {
            let size = if property.has_words() { property.field().node().size() } else { 0 };
            Arc::new(Cells::new(size, capacity))
        });
        let columns: Box<[_]> = columns.collect();
        let received = if receives { &*columns } else { &[][..] };
        let received = received.iter().map(|column| Zeroed::new(column.size(), capacity)).collect();
        RowCells {
            columns,
            without_words: properties.all() & !properties.with_words(),
            alive: Arc::new(Cells::new(1, capacity)),
            owners: Arc::new(Cells::new(owner_bytes, capacity)),
            count: AtomicUsize::new(0),
            living: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            grown: AtomicBool::new(false),
            bodies: Mutex::default(),
            received: Mutex::new(received),
        }
    }

    /// One more than the highest row ever used: the length of views.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many rows live.
    pub fn living(&self) -> usize {
        self.living.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn column(&self, property: usize) -> &Arc<Cells> {
        &self.columns[property]
    }

    /// All columns, by property.
    pub fn columns(&self) -> &[Arc<Cells>] {
        &self.columns
    }

    /// A byte a row: 1 while it lives.
    pub fn alive(&self) -> &Arc<Cells> {
        &self.alive
    }

    pub fn owners(&self) -> &Arc<Cells> {
        &self.owners
    }

    #[inline]
    pub fn is_alive(&self, row: u32) -> bool {
        let mut alive = [0];
        if (row as usize) < self.count() {
            self.alive.read(row as usize, &mut alive);
        }
        alive == [1]
    }

    /// The living rows, in rising order.
    pub fn alive_rows(&self) -> Vec<u32> {
        let mut alive = Vec::new();
        self.alive.copy_to(&mut alive, self.count());
        (0..).zip(alive).filter(|(_, alive)| *alive == 1).map(|(row, _)| row).collect()
    }

    /// Marks a row as living.
    pub fn appear(&self, row: u32) {
        self.count.fetch_max(row as usize + 1, Ordering::Relaxed);
        if !self.is_alive(row) {
            self.alive.write(row as usize, &[1]);
            self.living.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends a row's life.
    pub fn end(&self, row: u32) {
        if self.is_alive(row) {
            self.alive.write(row as usize, &[0]);
            self.living.fetch_sub(1, Ordering::Relaxed);
        }
        self.set_owner(row, NOBODY);
        let mut bodies = self.bodies();
        self.each_without_words().for_each(|property| {
            bodies.remove(&(row, property));
        });
    }

    /// Shows the rows of a mask (a byte each) and no others.
    pub fn show(&self, alive: &[u8]) {
        self.count.fetch_max(alive.len(), Ordering::Relaxed);
        self.publish(&self.received(), 0..alive.len(), u64::MAX);
        self.alive.write(0, alive);
        self.living.store(alive.iter().map(|alive| usize::from(*alive)).sum(), Ordering::Relaxed);
    }

    // --- owners ------------------------------------------------------------------------------------------

    /// The row's owner: a client's number, or 1 if this client owns it.
    pub fn owner(&self, row: u32) -> u64 {
        let mut bytes = [0; OWNER_NUMBER];
        let cell = &mut bytes[..self.owners.size()];
        self.owners.read(row as usize, cell);
        // A flag, or a number in the byte order of the machine, as NumPy reads it.
        if let [flag] = cell { u64::from(*flag) } else { u64::from_ne_bytes(bytes) }
    }

    pub fn set_owner(&self, row: u32, owner: u64) {
        if self.owners.size() == OWNER_NUMBER {
            self.owners.write(row as usize, &owner.to_ne_bytes());
        } else {
            self.owners.write(row as usize, &[u8::from(owner == 1)]);
        }
    }

    /// Copies the owners of the world's rows. The rows of `gone` belong to a ghost that the world no longer has: they
    /// keep their owner on a client, and have none on a server.
    pub fn copy_owners(&self, world: &RowCells, rows: usize, gone: impl Fn(usize) -> bool) {
        let size = self.owners.size();
        let (mut owners, mut before) = (Vec::new(), Vec::new());
        world.owners.copy_to(&mut owners, rows);
        self.owners.copy_to(&mut before, rows);
        for (row, (owner, before)) in owners.chunks_mut(size).zip(before.chunks(size)).enumerate() {
            match gone(row) {
                false => {}
                true if size == OWNER_NUMBER => owner.copy_from_slice(&NOBODY.to_ne_bytes()),
                true => owner.copy_from_slice(before),
            }
        }
        self.owners.write(0, &owners);
    }

    // --- values ------------------------------------------------------------------------------------------

    /// Writes the cell of a row, which the next flush sends.
    #[inline]
    pub fn assign(&self, row: u32, property: usize, cell: &[u8]) {
        self.columns[property].write(row as usize, cell);
        self.written.fetch_or(1 << property, Ordering::Relaxed);
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mask of the properties without words.
    #[inline]
    pub fn without_words(&self) -> u64 {
        self.without_words
    }

    fn each_without_words(&self) -> impl Iterator<Item = usize> {
        let mask = self.without_words;
        (0..64).filter(move |property| mask >> property & 1 == 1)
    }

    /// The value of a property without words.
    pub fn body(&self, row: u32, property: usize) -> Option<Arc<[u8]>> {
        self.bodies().get(&(row, property)).cloned()
    }

    /// Stores the value of a property without words.
    pub fn keep_body(&self, row: u32, property: usize, body: impl Into<Arc<[u8]>>) {
        self.bodies().insert((row, property), body.into());
    }

    /// Gives a row the values of the properties in a mask: cells, and bodies of properties without words.
    pub fn write_values(&self, row: u32, values: &[Vec<u8>], mask: u64) {
        for (property, value) in values.iter().enumerate().filter(|(property, _)| mask >> property & 1 == 1) {
            if self.without_words >> property & 1 == 1 {
                self.keep_body(row, property, value.clone());
            } else {
                self.columns[property].write(row as usize, value);
            }
        }
    }

    /// Makes the rows of a saved world live, without owners.
    pub fn restore(&self, saved: &SavedClass) {
        let count = saved.rows.last().map_or(0, |last| last + 1);
        (0..count).for_each(|row| self.set_owner(row, NOBODY));
        for (place, row) in saved.rows.iter().enumerate() {
            for (memory, cells) in self.columns.iter().zip(&saved.cells) {
                let cell = cells.get(place * memory.size()..(place + 1) * memory.size());
                cell.into_iter().for_each(|cell| memory.write(*row as usize, cell));
            }
            for (property, bodies) in saved.bodies.iter().enumerate() {
                bodies.get(place).into_iter().for_each(|body| self.keep_body(*row, property, &**body));
            }
            self.appear(*row);
        }
        self.note_grown();
    }

    /// A row's values without words.
    pub fn bodies_of(&self, row: u32) -> Vec<(usize, Arc<[u8]>)> {
        let bodies = self.bodies();
        let each = self.each_without_words();
        each.filter_map(|property| Some((property, bodies.get(&(row, property))?.clone()))).collect()
    }

    // --- what arrives, and what is sent ------------------------------------------------------------------

    /// The cells to write received values to, by property; unused for properties without words.
    pub fn received(&self) -> MutexGuard<'_, Vec<Zeroed>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies received values of these rows into the columns, by a mask of properties.
    pub fn publish(&self, received: &[Zeroed], rows: Range<usize>, mask: u64) {
        let columns = self.columns.iter().zip(received).enumerate();
        for (_, (column, cells)) in columns.filter(|(property, _)| mask >> property & 1 == 1) {
            column.write(rows.start, &cells[rows.start * column.size()..rows.end * column.size()]);
        }
    }

    /// Notes that rows were added.
    pub fn note_grown(&self) {
        self.grown.store(true, Ordering::Relaxed);
    }

    /// Copies the cells of all rows, by property; changes stay to be found.
    pub fn copy_cells(&self) -> Vec<Vec<u8>> {
        let copied = self.columns.iter().map(|column| {
            let mut cells = Vec::new();
            column.copy_to(&mut cells, self.count());
            cells
        });
        copied.collect()
    }

    /// Copies the columns that may have changed since the last flush; the other buffers keep their former
    /// copy. Returns the mask of the copied ones.
    pub fn copy_changed(&self, cells: &mut Vec<Vec<u8>>) -> u64 {
        cells.resize_with(self.columns.len(), Vec::new);
        let grown = self.grown.swap(false, Ordering::Relaxed);
        let written = self.written.swap(0, Ordering::Relaxed);
        let mut mask = 0;
        for (property, (column, cells)) in self.columns.iter().zip(cells).enumerate() {
            let changed = column.take_exported() || written >> property & 1 == 1;
            mask |= u64::from(changed) << property;
            if changed || grown {
                column.copy_to(cells, self.count());
            }
        }
        mask
    }
}
