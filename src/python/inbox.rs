//! The inbox of a tick, and the tick's two halves.
//!
//! Promises: received messages are handed over once. If the game's own code raises on one message, that message is
//! dropped, and all others wait for the next receive. Calls run in order of arrival whatever the game does to the lists.

use crate::python::prelude::*;

use super::arrays::{Received, declared};
use super::calls::{Desk, Taken};
use crate::{endpoint, session};

columns_class! {
    Notifications of NotificationTable {
        slot: u32,
        channel: u8,
        tag: u32,
        delivered: bool,
    }
}

#[pyclass(frozen, generic, module = "tickwire")]
pub(crate) struct Inbox {
    pub(super) lists: Lists<List>,
    pub(super) notifications: Option<Arc<NotificationTable>>,
    pub(super) columns: Vec<Columns>,
    /// Whether it is a server's, whose messages have senders.
    pub(super) has_senders: bool,
    /// None if the protocol has none.
    pub(super) calls: Option<Calls>,
}

/// The calls that came with an inbox.
pub(super) struct Calls {
    /// The endpoint's waiting calls.
    desk: Weak<Desk>,
    /// The tick that they belong to.
    tick: u64,
    /// The order of arrival of the messages, by their addresses, because the game may edit the list. Empty if no calls
    /// wait. The messages are kept, so that no new object gets such an address.
    order: HashMap<usize, (usize, Py<PyAny>)>,
}

impl Calls {
    pub(super) fn new(py: Python<'_>, (desk, tick): (Weak<Desk>, u64), messages: &[Py<PyAny>]) -> Self {
        let mut order = HashMap::new();
        if desk.upgrade().is_some_and(|desk| desk.has_calls(tick)) {
            let arrived = messages.iter().enumerate().rev();
            order.extend(arrived.map(|(i, message)| (message.as_ptr() as usize, (i, message.clone_ref(py)))));
        }
        Calls { desk, tick, order }
    }

    /// Runs the calls that arrived before a message, or all of them; returns how many.
    fn run(&self, before: Option<&Object<'_>>, py: Python<'_>) -> PyResult<usize> {
        let before = match before.map(|message| self.order.get(&(message.as_ptr() as usize))) {
            None => None,
            Some(Some((arrived, _))) => Some(*arrived),
            // No calls wait, or the game added this message.
            Some(None) => return Ok(0),
        };
        self.desk.upgrade().map_or(Ok(0), |desk| desk.run(py, before, Some(self.tick)))
    }
}

/// The lists of an inbox, by number.
pub(super) type Lists<T> = [T; 8];

pub(super) const EVENTS: usize = 0;
pub(super) const MESSAGES: usize = 1;
pub(super) const LATEST: usize = 2;
pub(super) const PAYLOADS: usize = 3;
pub(super) const MISSED: usize = 4;
pub(super) const CHUNKS: usize = 5;
pub(super) const CHUNK_FAILURES: usize = 6;
pub(super) const GHOSTS: usize = 7;

/// A list of an inbox, made when it has something or the game looks at it: most ticks have only one kind of things.
pub(super) struct List(pub(super) OnceLock<Py<PyList>>);

impl List {
    /// Takes these objects.
    pub(super) fn of(py: Python<'_>, objects: &mut Vec<Py<PyAny>>) -> PyResult<Self> {
        if objects.is_empty() {
            return Ok(List(OnceLock::new()));
        }
        PyList::new(py, objects.drain(..)).map(|list| List(OnceLock::from(list.unbind())))
    }

    /// The list, always the same.
    fn get<'py>(&self, py: Python<'py>) -> &Bound<'py, PyList> {
        if self.0.get().is_none() {
            // Made before the lock is taken, because making it may run other code. Another thread may be first.
            let _ = self.0.set(PyList::empty(py).unbind());
        }
        self.0.wait().bind(py)
    }
}

/// The messages of a class that comes as columns.
pub(super) struct Columns {
    pub(super) class: Py<PyAny>,
    pub(super) schema: Py<Schema>,
    pub(super) rows: Arc<Received>,
}

#[pymethods]
impl Inbox {
    properties! {
        events: &Bound<'py, PyList> = self.lists[EVENTS].get(py);
        messages: &Bound<'py, PyList> = self.lists[MESSAGES].get(py);
        latest: &Bound<'py, PyList> = self.lists[LATEST].get(py);
        payloads: &Bound<'py, PyList> = self.lists[PAYLOADS].get(py);
        missed: &Bound<'py, PyList> = self.lists[MISSED].get(py);
        chunks: &Bound<'py, PyList> = self.lists[CHUNKS].get(py);
        chunk_failures: &Bound<'py, PyList> = self.lists[CHUNK_FAILURES].get(py);
        ghosts: &Bound<'py, PyList> = self.lists[GHOSTS].get(py);
        notifications: Notifications = Notifications(self.notifications.clone().unwrap_or_default());
    }

    fn columns<'py>(&self, class_: &Object<'py>) -> PyResult<Object<'py>> {
        let found = self.columns.iter().find(|columns| columns.class.is(class_));
        match found {
            Some(Columns { schema, rows, .. }) => Received::array(rows, schema.bind(class_.py())),
            None => {
                let shown = repr_of(class_);
                let sentence =
                    format!("{shown} is delivered as objects: list it in columns=[...] of the endpoint");
                Err(PyValueError::new_err(sentence))
            }
        }
    }

    #[getter]
    fn has_calls(&self) -> bool {
        let desk = self.calls.as_ref().and_then(|calls| Some((calls.desk.upgrade()?, calls.tick)));
        desk.is_some_and(|(desk, tick)| desk.has_calls(tick))
    }

    fn run_calls(&self, py: Python<'_>, before: Option<usize>) -> PyResult<usize> {
        let Some(calls) = &self.calls else { return Ok(0) };
        // Beyond the last message: all calls.
        let message = before.and_then(|before| self.lists[MESSAGES].get(py).get_item(before).ok());
        calls.run(message.as_ref(), py)
    }

    fn __iter__(slf: Py<Self>) -> Everything {
        Everything { inbox: slf, place: Mutex::new((0, 0)) }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (events, messages) = (self.lists[EVENTS].get(py).len(), self.lists[MESSAGES].get(py).len());
        format!("<Inbox of {events} events and {messages} messages>")
    }

    traverses!(self.lists, self.calls, self.columns);
}

/// Iterates an inbox: its events, its messages, and its values of latest channels. A tick with an event about a client
/// has nothing else from that client, so the order is right for each.
#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct Everything {
    inbox: Py<Inbox>,
    /// The list, and the position in it.
    place: Mutex<(usize, usize)>,
}

#[pymethods]
impl Everything {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        let inbox = self.inbox.get();
        let (list, item) = loop {
            let place = *lock(&self.place);
            let Some(list) = inbox.lists[..=LATEST].get(place.0) else { return Ok(None) };
            // Nothing is locked meanwhile: without a GIL, looking into a list may wait for other threads.
            let item = list.get(py).get_item(place.1).ok();
            let next = if item.is_some() { (place.0, place.1 + 1) } else { (place.0 + 1, 0) };
            {
                let mut now = lock(&self.place);
                if *now != place {
                    // Another thread was first.
                    continue;
                }
                *now = next;
            }
            match item {
                Some(item) => break (place.0, item),
                // The calls after the last message.
                None if next.0 == 2 => {
                    inbox.run_calls(py, None)?;
                }
                None => {}
            }
        };
        if let (1, Some(calls)) = (list, &inbox.calls) {
            calls.run(Some(&item), py)?;
        }
        match (list, inbox.has_senders) {
            (0, true) => {
                let client = match (item.cast::<Connected>(), item.cast::<Disconnected>()) {
                    (Ok(connected), _) => &connected.get().client,
                    (_, Ok(disconnected)) => &disconnected.get().client,
                    // On a peer: from a player, or from nobody.
                    _ => {
                        let player = item.getattr_opt(intern!(py, "player"))?;
                        return Ok(Some((player, item).into_bound_py_any(py)?));
                    }
                };
                Ok(Some((client, item.clone()).into_bound_py_any(py)?))
            }
            // (client, key, message)
            (2, true) => Ok(Some((item.get_item(0)?, item.get_item(2)?).into_bound_py_any(py)?)),
            (2, false) => item.get_item(1).map(Some),
            _ => Ok(Some(item)),
        }
    }

    traverses!(self.inbox);
}

holds!(Calls: order);
holds!(Columns: class);
holds!(List: 0);

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
            let number = protocol.number_of_class(class).map_err(|_| {
                UnregisteredMessageError::new_err(format!(
                    "columns must be classes in messages or ghosts of the protocol, not {}: leave it out, or add it \
                     there, on both sides",
                    repr_of(class)
                ))
            })?;
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
                pending.columns[twice].0.bind(columns[0].py()).repr()?
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
