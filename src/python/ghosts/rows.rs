//! The ghosts of one class in one world: columns of cells by row, values without words, and objects for the
//! rows that the game asked for.
//!
//! Promises: a row keeps its number as long as it lives, and has one object. What objects or views may have
//! changed since the last flush is known by property, so idle properties cost nothing. No lock is held while
//! Python runs.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use super::*;

use crate::python::slots::Slots;
use crate::replication::SavedClass;
use crate::store::zeroed::Zeroed;

/// The owner of rows that have none.
pub(super) const NOBODY: u64 = u64::MAX;

pub(in crate::python) struct GhostRows {
    /// The class's number in the protocol.
    pub(super) index: usize,
    pub(super) class: Py<PyType>,
    pub(super) properties: Py<Properties>,
    /// The slots of the class, or of the derived class that a client makes of it.
    pub(super) slots: Slots,
    pub(super) callbacks: Callbacks,
    /// By property; empty for properties without words.
    pub(super) columns: Box<[Arc<Cells>]>,
    /// A byte a row: 1 while it lives.
    pub(super) alive: Arc<Cells>,
    /// On a server, and in its past, the number of the owning client; on a client 1 if that client owns the row.
    pub(super) owners: Arc<Cells>,
    /// One more than the highest row ever used.
    count: AtomicUsize,
    living: AtomicUsize,
    /// Properties that objects have written since the last flush.
    pub(super) written: AtomicU64,
    /// Whether rows were added since the last flush.
    grown: AtomicBool,
    /// The server's endpoint; None on a client, whose world is only read.
    pub(super) server: Option<Weak<Shared<State>>>,
    /// Whether it shows the world at another time.
    pub(super) is_view: bool,
    pub(super) links: Arc<Links>,
    pub(super) held: Mutex<Held>,
    /// The cells that the core writes to, by property; empty on a server. Python has no views of these:
    /// [`GhostRows::publish`] copies them.
    received: Mutex<Vec<Zeroed>>,
    /// The last tick's changes, for a class that comes as columns.
    pub(super) news: Mutex<News>,
}

#[derive(Default)]
pub(super) struct Held {
    objects: HashMap<u32, Py<Ghost>>,
    /// Values of properties without words, by row and property.
    pub(super) bodies: HashMap<(u32, usize), Arc<[u8]>>,
}

/// The checked values of a future row: cells, and bodies of properties without words.
pub(super) struct Checked(pub(super) Vec<Vec<u8>>);

impl GhostRows {
    pub(super) fn new(
        index: usize,
        class: &Bound<'_, PyType>,
        properties: &Bound<'_, Properties>,
        server: Option<Weak<Shared<State>>>,
        made: Option<&Bound<'_, PyType>>,
        view_owners: Option<usize>,
        links: &Arc<Links>,
    ) -> PyResult<Arc<Self>> {
        let made = made.unwrap_or(class);
        let (core, capacity) = (&properties.get().class.properties, properties.get().capacity() as usize);
        let columns = core.each().iter().map(|property| {
            let size = if property.has_words() { property.field().node().size() } else { 0 };
            Arc::new(Cells::new(size, capacity))
        });
        let columns: Box<[_]> = columns.collect();
        let received = if server.is_some() { &[][..] } else { &*columns };
        let received = received.iter().map(|memory| Zeroed::new(memory.size(), capacity)).collect();
        let owner_size = view_owners.unwrap_or(if server.is_some() { size_of::<u64>() } else { 1 });
        Ok(Arc::new(GhostRows {
            index,
            class: class.clone().unbind(),
            slots: Slots::new(made, ::core::iter::empty())?,
            callbacks: if server.is_some() { Callbacks::default() } else { Callbacks::of(made)? },
            columns,
            alive: Arc::new(Cells::new(1, capacity)),
            owners: Arc::new(Cells::new(owner_size, capacity)),
            properties: properties.clone().unbind(),
            count: AtomicUsize::new(0),
            living: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            grown: AtomicBool::new(false),
            server,
            is_view: view_owners.is_some(),
            links: links.clone(),
            held: Mutex::default(),
            received: Mutex::new(received),
            news: Mutex::default(),
        }))
    }

    /// The class of its objects: its own, or the derived class that a client makes of it.
    pub(super) fn made(&self) -> &Py<PyType> {
        self.slots.class()
    }

    pub(super) fn name(&self) -> &str {
        self.properties.get().name()
    }

    /// Whether the game may write to it.
    pub(super) fn is_servers(&self) -> bool {
        self.server.is_some()
    }

    /// One more than the highest row ever used: the length of views.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many rows live.
    pub(super) fn living(&self) -> usize {
        self.living.load(Ordering::Relaxed)
    }

    pub(super) fn column(&self, property: usize) -> &Arc<Cells> {
        &self.columns[property]
    }

    pub(super) fn is_alive(&self, row: u32) -> bool {
        let mut alive = [0];
        if (row as usize) < self.count() {
            self.alive.read(row as usize, &mut alive);
        }
        alive == [1]
    }

    /// Makes a row live, with these values; `set` hands the core those without words.
    pub(super) fn begin(&self, row: u32, values: &Checked, mut set: impl FnMut(usize, &[u8])) {
        for (property, value) in values.0.iter().enumerate() {
            if self.properties.get().core(property).has_words() {
                self.columns[property].write(row as usize, value);
            } else {
                set(property, value);
                self.keep_body(row, property, value.clone());
            }
        }
        if let Some(column) = self.properties.get().number_column() {
            self.columns[column].write(row as usize, &self.links.known().draw().to_le_bytes());
            self.links.appear(self, row);
        }
        self.appear(row);
        self.grown.store(true, Ordering::Relaxed);
    }

    /// Makes the rows of a saved world live.
    pub(super) fn restore(&self, saved: &SavedClass) {
        let count = saved.rows.last().map_or(0, |last| last + 1);
        (0..count).for_each(|row| self.set_owner(row, NOBODY));
        for (place, row) in saved.rows.iter().enumerate() {
            for (memory, cells) in self.columns.iter().zip(&saved.cells) {
                let cell = cells.get(place * memory.size()..(place + 1) * memory.size());
                cell.into_iter().for_each(|cell| memory.write(*row as usize, cell));
            }
            for (property, bodies) in saved.bodies.iter().enumerate() {
                bodies.get(place).into_iter().for_each(|body| self.keep_body(*row, property, body.to_vec()));
            }
            self.links.appear(self, *row);
            self.appear(*row);
        }
        self.grown.store(true, Ordering::Relaxed);
    }

    /// Copies the cells of all rows, by property; changes stay to be found.
    pub(super) fn copy_cells(&self) -> Vec<Vec<u8>> {
        let copied = self.columns.iter().map(|memory| {
            let mut cells = Vec::new();
            memory.copy_to(&mut cells, self.count());
            cells
        });
        copied.collect()
    }

    /// Fills the properties that this client isn't sent with the class's defaults.
    pub(super) fn begin_unsent(&self, row: u32, group: usize) {
        let properties = self.properties.get();
        let sent = properties.class.created(group);
        for (property, value) in properties.defaults().iter().enumerate() {
            if sent >> property & 1 == 1 {
                continue;
            }
            if properties.core(property).has_words() {
                self.columns[property].write(row as usize, value);
            } else {
                self.keep_body(row, property, value.clone());
            }
        }
    }

    /// Copies the owners of the world's rows. The rows of `gone` belong to a ghost that the world no longer has: they
    /// keep their owner on a client, and have none on a server.
    pub(super) fn copy_owners(&self, world: &GhostRows, rows: usize, gone: impl Fn(usize) -> bool) {
        let size = self.owners.size();
        let (mut owners, mut before) = (Vec::new(), Vec::new());
        world.owners.copy_to(&mut owners, rows);
        self.owners.copy_to(&mut before, rows);
        for (row, (owner, before)) in owners.chunks_mut(size).zip(before.chunks(size)).enumerate() {
            match gone(row) {
                false => {}
                true if size == size_of::<u64>() => owner.copy_from_slice(&NOBODY.to_ne_bytes()),
                true => owner.copy_from_slice(before),
            }
        }
        self.owners.write(0, &owners);
    }

    /// Marks a row as living.
    pub(super) fn appear(&self, row: u32) {
        self.count.fetch_max(row as usize + 1, Ordering::Relaxed);
        if !self.is_alive(row) {
            self.alive.write(row as usize, &[1]);
            self.living.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Shows the rows of a mask (a byte each) and no others. Objects of rows that end keep their last values.
    pub(super) fn show(&self, py: Python<'_>, alive: &[u8]) {
        if alive.is_empty() {
            return;
        }
        let gone: Vec<u32> = {
            let is_gone = |row: &&u32| alive.get(**row as usize) != Some(&1);
            lock(&self.held).objects.keys().filter(is_gone).copied().collect()
        };
        gone.into_iter().for_each(|row| drop(self.end(row, self.last_values(py, row))));
        self.count.fetch_max(alive.len(), Ordering::Relaxed);
        self.publish(&self.received(), 0..alive.len(), u64::MAX);
        self.alive.write(0, alive);
        self.links.handle_shown();
        self.living.store(alive.iter().map(|alive| usize::from(*alive)).sum(), Ordering::Relaxed);
    }

    /// A row's values without words.
    pub(super) fn bodies_of(&self, row: u32) -> Vec<(usize, Arc<[u8]>)> {
        let (held, without) = (lock(&self.held), self.without_words());
        let each = (0..64).filter(|property| without >> property & 1 == 1);
        each.filter_map(|property| Some((property, held.bodies.get(&(row, property))?.clone()))).collect()
    }

    /// The object of a row, if it has one.
    pub(super) fn known_object(&self, py: Python<'_>, row: u32) -> Option<Py<Ghost>> {
        lock(&self.held).objects.get(&row).map(|object| object.clone_ref(py))
    }

    /// The values of a row that has an object, for that to keep. The game's own types run here.
    pub(super) fn last_values(&self, py: Python<'_>, row: u32) -> Option<Values> {
        self.known_object(py, row)?;
        let each = 0..self.properties.get().len();
        // The game's own types may refuse their value.
        Some(each.map(|property| self.value(py, row, property).ok().map(Bound::unbind)).collect())
    }

    /// Ends a row's life; its object keeps these values. Runs none of the game's code: returns what the row held, to be
    /// dropped where no lock is held.
    #[must_use]
    pub(super) fn end(&self, row: u32, last: Option<Values>) -> Option<Py<Ghost>> {
        if self.is_alive(row) {
            self.alive.write(row as usize, &[0]);
            self.living.fetch_sub(1, Ordering::Relaxed);
        }
        self.set_owner(row, NOBODY);
        self.links.known().forget((self.index, row));
        let mut held = lock(&self.held);
        let without = self.without_words();
        (0..64).filter(|property| without >> property & 1 == 1).for_each(|property| {
            held.bodies.remove(&(row, property));
        });
        let object = held.objects.remove(&row)?;
        object.get().leave(last.unwrap_or_default(), row);
        Some(object)
    }

    /// The row's owner: on a server a client's number, on a client 1 if it owns the row.
    pub(super) fn owner(&self, row: u32) -> u64 {
        let mut bytes = [0; 8];
        let cell = &mut bytes[..self.owners.size()];
        self.owners.read(row as usize, cell);
        // A flag, or a number in the byte order of the machine, as NumPy reads it.
        if let [flag] = cell { u64::from(*flag) } else { u64::from_ne_bytes(bytes) }
    }

    pub(super) fn set_owner(&self, row: u32, owner: u64) {
        if self.is_servers() {
            self.owners.write(row as usize, &owner.to_ne_bytes());
        } else {
            self.owners.write(row as usize, &[u8::from(owner == 1)]);
        }
    }

    /// The row's object, made if there is none.
    pub(super) fn object<'py>(self: &Arc<Self>, py: Python<'py>, row: u32) -> PyResult<Bound<'py, Ghost>> {
        if let Some(object) = lock(&self.held).objects.get(&row) {
            return Ok(object.bind(py).clone());
        }
        let object = self.slots.make(py)?.cast_into::<Ghost>()?;
        drop(object.get().enter(Live { rows: self.clone(), row }));
        Ok(self.adopt(row, &object))
    }

    /// Makes this object the row's, unless it has one; returns the row's object.
    pub(super) fn adopt<'py>(&self, row: u32, object: &Bound<'py, Ghost>) -> Bound<'py, Ghost> {
        let mut held = lock(&self.held);
        let kept = held.objects.entry(row).or_insert_with(|| object.clone().unbind());
        kept.bind(object.py()).clone()
    }

    /// The living rows, in rising order.
    pub(super) fn alive_rows(&self) -> Vec<u32> {
        let mut alive = Vec::new();
        self.alive.copy_to(&mut alive, self.count());
        (0..).zip(alive).filter(|(_, alive)| *alive == 1).map(|(row, _)| row).collect()
    }

    /// The mask of the properties without words.
    pub(super) fn without_words(&self) -> u64 {
        let properties = &self.properties.get().class.properties;
        properties.all() & !properties.with_words()
    }

    /// The cells for the core to write received values to, by property; unused for properties without words.
    pub(super) fn received(&self) -> MutexGuard<'_, Vec<Zeroed>> {
        lock(&self.received)
    }

    /// Copies received values of these rows into the columns, by a mask of properties.
    pub(super) fn publish(&self, received: &[Zeroed], rows: Range<usize>, mask: u64) {
        let columns = self.columns.iter().zip(received).enumerate();
        for (_, (memory, cells)) in columns.filter(|(property, _)| mask >> property & 1 == 1) {
            memory.write(rows.start, &cells[rows.start * memory.size()..rows.end * memory.size()]);
        }
    }

    // --- a flush -----------------------------------------------------------------------------------------

    /// Copies the columns that may have changed since the last flush; the other buffers keep their former
    /// copy. Returns the mask of the copied ones.
    pub(super) fn copy_changed(&self, cells: &mut Vec<Vec<u8>>) -> u64 {
        cells.resize_with(self.columns.len(), Vec::new);
        let grown = self.grown.swap(false, Ordering::Relaxed);
        let written = self.written.swap(0, Ordering::Relaxed);
        let mut mask = 0;
        for (property, (memory, cells)) in self.columns.iter().zip(cells).enumerate() {
            let changed = memory.take_exported() || written >> property & 1 == 1;
            mask |= u64::from(changed) << property;
            if changed || grown {
                memory.copy_to(cells, self.count());
            }
        }
        mask
    }

    // --- the garbage collector ---------------------------------------------------------------------------

    /// Drops all objects: they refer to this, and this to them.
    pub(super) fn forget_objects(&self) {
        let objects = ::core::mem::take(&mut lock(&self.held).objects);
        drop(objects);
    }
}

// Visited by the world that owns them.
holds!(GhostRows: class, slots, properties, held);
holds!(Held: objects);
