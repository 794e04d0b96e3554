//! The ghosts of one class in one world: its rows, and objects for the rows that the game asked for.
//!
//! Promises: a row has one object. No lock is held while Python runs.

use super::*;

use crate::python::slots::Slots;
use crate::replication::rows::{OWNER_FLAG, OWNER_NUMBER, RowCells};
use crate::replication::{self, References, SavedClass};

pub(in crate::python) struct GhostRows {
    /// The class's number in the protocol.
    pub(super) index: usize,
    pub(super) class: Py<PyType>,
    pub(super) properties: Py<Properties>,
    /// The slots of the class, or of the derived class that a client makes of it.
    pub(super) slots: Slots,
    pub(super) callbacks: Callbacks,
    pub(super) cells: RowCells,
    /// The server's endpoint; None on a client, whose world is only read.
    pub(super) server: Option<Weak<Shared<State>>>,
    /// Whether it shows the world at another time.
    pub(super) is_view: bool,
    pub(super) links: Arc<Links>,
    objects: Mutex<HashMap<u32, Py<Ghost>>>,
    /// The last tick's changes, for a class that comes as columns.
    pub(super) news: Mutex<News>,
}

#[pyclass(frozen, subclass, weakref, module = "tickwire.world")]
pub(crate) struct Ghost {
    pub(super) life: Mutex<Life>,
}

/// The values of an object, by property.
pub(super) type Values = Vec<Option<Py<PyAny>>>;

pub(super) enum Life {
    /// In no world.
    Plain(Values),
    /// A row of a world.
    Live(Live),
    /// A row that was despawned in a tick, with its last values.
    Over { values: Values, row: u32, end: u32 },
}

/// A row of a class in a world.
#[derive(Clone)]
pub(in crate::python) struct Live {
    pub(super) rows: Arc<GhostRows>,
    pub(super) row: u32,
}

/// The numbers of the ghosts in one world.
pub(super) struct Links {
    pub(super) references: Arc<References>,
    pub(super) classes: OnceLock<Box<[Weak<GhostRows>]>>,
    /// Of a view: the links of the world that it shows.
    pub(super) world: Option<Arc<Links>>,
    pub(super) known: Mutex<replication::Links>,
    /// Of a view: rows were shown since those that are known.
    pub(super) stale: AtomicBool,
}

/// The rows of a class to which something happened in the last tick.
#[derive(Clone, Default)]
pub(super) struct News {
    pub(super) spawned: Vec<u32>,
    pub(super) changed: Vec<u32>,
    pub(super) despawned: Vec<u32>,
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
        let owner_bytes = view_owners.unwrap_or(if server.is_some() { OWNER_NUMBER } else { OWNER_FLAG });
        Ok(Arc::new(GhostRows {
            index,
            class: class.clone().unbind(),
            slots: Slots::new(made, ::core::iter::empty())?,
            callbacks: if server.is_some() { Callbacks::default() } else { Callbacks::of(made)? },
            cells: RowCells::new(core, capacity, owner_bytes, server.is_none()),
            properties: properties.clone().unbind(),
            server,
            is_view: view_owners.is_some(),
            links: links.clone(),
            objects: Mutex::default(),
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

    /// Makes a row live, with these values.
    pub(super) fn begin(&self, row: u32, values: &Checked) {
        self.cells.write_values(row, &values.0, u64::MAX);
        if let Some(column) = self.properties.get().number_column() {
            self.cells.column(column).write(row as usize, &self.links.known().draw().to_le_bytes());
            self.links.appear(self, row);
        }
        self.cells.appear(row);
        self.cells.note_grown();
    }

    /// Makes the rows of a saved world live.
    pub(super) fn restore(&self, saved: &SavedClass) {
        self.cells.restore(saved);
        saved.rows.iter().for_each(|row| self.links.appear(self, *row));
    }

    /// Fills the properties that this client isn't sent with the class's defaults.
    pub(super) fn begin_unsent(&self, row: u32, group: usize) {
        let properties = self.properties.get();
        self.cells.write_values(row, properties.defaults(), !properties.class.created(group));
    }

    /// Shows the rows of a mask (a byte each) and no others. Objects of rows that end keep their last values.
    pub(super) fn show(&self, py: Python<'_>, alive: &[u8]) {
        if alive.is_empty() {
            return;
        }
        let gone: Vec<u32> = {
            let is_gone = |row: &&u32| alive.get(**row as usize) != Some(&1);
            lock(&self.objects).keys().filter(is_gone).copied().collect()
        };
        gone.into_iter().for_each(|row| drop(self.end(row, 0, self.last_values(py, row))));
        self.cells.show(alive);
        self.links.stale.store(true, Ordering::Relaxed);
    }

    /// The object of a row, if it has one.
    pub(super) fn known_object(&self, py: Python<'_>, row: u32) -> Option<Py<Ghost>> {
        lock(&self.objects).get(&row).map(|object| object.clone_ref(py))
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
    pub(super) fn end(&self, row: u32, tick: u32, last: Option<Values>) -> Option<Py<Ghost>> {
        self.cells.end(row);
        self.links.known().forget((self.index, row));
        let mut objects = lock(&self.objects);
        let object = objects.remove(&row)?;
        object.get().leave(last.unwrap_or_default(), row, tick);
        Some(object)
    }

    /// The row's object, made if there is none.
    pub(super) fn object<'py>(self: &Arc<Self>, py: Python<'py>, row: u32) -> PyResult<Bound<'py, Ghost>> {
        if let Some(object) = lock(&self.objects).get(&row) {
            return Ok(object.bind(py).clone());
        }
        let object = self.slots.make(py)?.cast_into::<Ghost>()?;
        drop(object.get().enter(Live { rows: self.clone(), row }));
        Ok(self.adopt(row, &object))
    }

    /// Makes this object the row's, unless it has one; returns the row's object.
    pub(super) fn adopt<'py>(&self, row: u32, object: &Bound<'py, Ghost>) -> Bound<'py, Ghost> {
        let mut objects = lock(&self.objects);
        let kept = objects.entry(row).or_insert_with(|| object.clone().unbind());
        kept.bind(object.py()).clone()
    }

    // --- the garbage collector ---------------------------------------------------------------------------

    /// Drops all objects: they refer to this, and this to them.
    pub(super) fn forget_objects(&self) {
        let objects = ::core::mem::take(&mut *lock(&self.objects));
        drop(objects);
    }
}

// Visited by the world that owns them.
holds!(GhostRows: class, slots, properties, objects);
