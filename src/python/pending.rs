//! What has arrived in a tick and isn't in an [`Inbox`] yet.

use crate::python::prelude::*;

use super::arrays::{Received, declared};
use super::calls::{Desk, Taken};
use super::inbox::{Calls, Columns, List, Lists, MESSAGES};
use crate::{endpoint, session};

/// Received data that wasn't handed over yet.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) lists: Lists<Vec<Py<PyAny>>>,
    /// The numbers of the ghost classes that come as columns.
    pub(super) ghost_columns: Vec<usize>,
    /// The core's tick.
    pub(super) tick: session::Tick,
    /// The first record without an object.
    pub(super) next: usize,
    /// The message classes that come as columns, in the order of the tables.
    columns: Vec<(Py<PyAny>, Py<Schema>)>,
    /// Whether it is a server's.
    pub(super) has_senders: bool,
    pub(super) calls: Taken,
}

impl Pending {
    /// Empty; messages of `columns` will come as columns.
    pub(super) fn new(protocol: &Protocol, columns: &[Object<'_>]) -> PyResult<Self> {
        let mut pending = Pending::default();
        let mut types = Vec::new();
        for class in columns {
            if let Some(place) = protocol.ghosts.iter().position(|(ghost, _)| ghost.is(class)) {
                pending.ghost_columns.push(place);
                continue;
            }
            pending.columns.push((class.clone().unbind(), declared(class)?.unbind()));
            let number = protocol.number_of_class(class)?;
            if protocol.class_of(number).has_block() {
                return Err(PyValueError::new_err(format!(
                    "columns must be classes without a block, and {} has one: leave it out",
                    class.repr()?
                )));
            }
            types.push(number);
        }
        if let Some(twice) = (1..types.len()).find(|place| types[..*place].contains(&types[*place])) {
            return Err(PyValueError::new_err(format!(
                "columns must be different classes, and {} appears twice",
                columns[twice].repr()?
            )));
        }
        pending.tick.inbox = endpoint::Inbox::with_tables(protocol.core.clone(), &types);
        Ok(pending)
    }

    /// Hands everything over.
    pub(super) fn take(&mut self, py: Python<'_>, calls: Option<(Weak<Desk>, u64)>) -> PyResult<Inbox> {
        let mut columns = Vec::new();
        if !self.columns.is_empty() {
            let (tables, arena) = self.tick.inbox.take_tables();
            let arena = Arc::new(arena);
            columns.extend(self.columns.iter().zip(tables).map(|((class, schema), table)| {
                let rows = Arc::new(Received::new(schema.get(), table, arena.clone()));
                Columns { class: class.clone_ref(py), schema: schema.clone_ref(py), rows }
            }));
        }
        let calls = calls.map(|calls| Calls::new(py, calls, &self.lists[MESSAGES]));
        let mut lists = [const { List(OnceLock::new()) }; 8];
        for (list, objects) in lists.iter_mut().zip(&mut self.lists) {
            *list = List::of(py, objects)?;
        }
        let notes = self.tick.notifications.drain(..);
        let notes = notes.map(|(peer, it)| (peer.slot, it.channel, it.tag, it.delivered));
        Ok(Inbox {
            lists,
            notifications: (notes.len() > 0).then(|| Arc::new(notes.collect())),
            columns,
            has_senders: self.has_senders,
            calls,
        })
    }

    /// Whether the last tick was handed over completely.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.iter().all(|objects| objects.is_empty()) && self.calls.is_empty() && self.tick.is_empty()
    }
}

holds!(Pending: lists, calls, columns);
