//! Rows as messages to send.

use crate::python::prelude::*;

use super::{declared, taken, with_rows};
use crate::python::buffers::column;
use crate::{endpoint, wire};

/// A number for all rows, or one for each.
#[derive(Debug)]
enum PerRow {
    One(u32),
    Each(Vec<u32>),
}

impl PerRow {
    /// An argument: an int, or a buffer of uint32.
    fn new(name: &str, given: &Object<'_>, count: usize) -> PyResult<Self> {
        if given.is_instance_of::<PyInt>() {
            return Ok(PerRow::One(bounded(name, given, 0, u32::MAX)?));
        }
        let each: Vec<u32> = column(name, given, "an int or a buffer of uint32")?;
        if each.len() != count {
            refuse!(PyValueError, "{name} must have {count} numbers, one for each row, not {}", each.len());
        }
        Ok(PerRow::Each(each))
    }

    fn of(&self, row: usize) -> u32 {
        match self {
            PerRow::One(number) => *number,
            PerRow::Each(each) => each.get(row).copied().unwrap_or_default(),
        }
    }
}

#[pyclass(frozen, module = "tickwire.columns")]
#[derive(Debug)]
pub(crate) struct Batch {
    class: Py<PyAny>,
    rows: Py<PyAny>,
    arena: Option<Py<PyAny>>,
}

#[pymethods]
impl Batch {
    #[new]
    fn new(class_: Object<'_>, rows: Py<PyAny>, arena: Option<Py<PyAny>>) -> PyResult<Self> {
        with_rows(&class_)?;
        Ok(Batch { class: class_.unbind(), rows, arena })
    }

    properties! {
        __repr__: PyResult<String> = Ok(format!("<Batch of {}>", declared(self.class.bind(py))?.get().name()));
    }

    traverses!(self.class, self.rows, self.arena);
}

/// Rows that were checked completely: each is a message to queue.
pub(in crate::python) struct Rows {
    class: String,
    channel: usize,
    messages: Vec<(Message, SendOptions)>,
}

impl Rows {
    /// Encodes the rows of a batch.
    ///
    /// # Errors
    /// An argument is wrong, or a row: the first such row is named.
    pub(in crate::python) fn new(
        protocol: &Protocol,
        batch: &Bound<'_, Batch>,
        sending: Sending<'_, '_>,
    ) -> PyResult<Self> {
        let Sending { channel, key, tag, notify, .. } = sending;
        let Batch { class, rows, arena } = batch.get();
        let class = class.bind(batch.py());
        let schema = with_rows(class)?;
        let message_type = protocol.number_of_class(class)?;
        let channel = protocol.channel(channel, Some(message_type))?;
        let rows = taken::take(&schema, rows.bind(batch.py()), arena.as_ref().map(|it| it.bind(batch.py())))?;
        let count = rows.count();
        let per_row = |name, given: Option<&Object<'_>>| {
            given.map_or(Ok(PerRow::One(0)), |given| PerRow::new(name, given, count))
        };
        let (key, tag) = (per_row("key", key)?, per_row("tag", tag)?);
        // Messages of these channels are gone with their tick; others may stay, and must not keep the whole arena
        // alive.
        let kind = &protocol.core.channels()[channel].kind;
        let gone_together = matches!(kind, ChannelKind::Unreliable { .. } | ChannelKind::Sequenced { .. });
        let (mut writer, mut batch) = (BitWriter::new(), wire::Batch::default());
        let options_of = |row| SendOptions { key: key.of(row), tag: tag.of(row), notify };
        let mut messages = Vec::with_capacity(count);
        for row in 0..count {
            writer.clear();
            let written = schema.get().fields.core.write_one(&rows, row, &mut writer);
            written.map_err(|error| taken::raise(class.py(), schema.get(), &rows, &error))?;
            let check = |max_bits| {
                protocol.core.check_message(channel, max_bits, options_of(row).key).map_err(|error| {
                    let what = format!("row {row} of {}", schema.get().name());
                    channel_error(&what, channel, &error)
                })
            };
            if gone_together {
                check(batch.push(&mut writer))?;
            } else {
                let encoded = writer.encoded();
                check(encoded.max_bits())?;
                messages.push((Message::new(message_type, encoded), options_of(row)));
            }
        }
        let together = batch.finish().into_iter().zip(0..);
        messages
            .extend(together.map(|(encoded, row)| (Message::new(message_type, encoded), options_of(row))));
        Ok(Rows { class: schema.get().name().to_owned(), channel, messages })
    }

    /// How many rows there are.
    pub(in crate::python) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Queues each row by `send`, which gets its index too; returns the rows whose client is gone or whose channel is
    /// full.
    pub(in crate::python) fn queue(
        self,
        mut send: impl FnMut(usize, usize, Message, SendOptions) -> Result<(), SendError>,
    ) -> PyResult<Vec<usize>> {
        let mut unsent = Vec::new();
        for (row, (message, options)) in self.messages.into_iter().enumerate() {
            match send(row, self.channel, message, options) {
                Err(error) if error.is_refusal() => unsent.push(row),
                // Everything else was checked before.
                Err(SendError::Refused(error)) => {
                    return Err(channel_error(&self.class, self.channel, &error));
                }
                _ => {}
            }
        }
        Ok(unsent)
    }

    /// Each row, to be sent several times.
    pub(in crate::python) fn messages(&self) -> (usize, &[(Message, SendOptions)]) {
        (self.channel, &self.messages)
    }
}

/// Clients, one for each row.
pub(in crate::python) struct Recipients(pub(in crate::python) Vec<endpoint::PeerHandle>);

impl Recipients {
    /// A buffer of uint64, as the `client` column has them, or an iterable of handles; `own` gives the core's handle.
    pub(in crate::python) fn new(
        given: &Object<'_>,
        own: impl Fn(&ClientHandle) -> PyResult<endpoint::PeerHandle>,
    ) -> PyResult<Self> {
        if let Ok(raw) = Raw::get(given, ffi::PyBUF_FULL_RO)
            && let Some(numbers) = raw.numbers::<u64>(given.py())?
        {
            if raw.dimensions() != 1 {
                refuse!(PyValueError, "clients must have 1 dimension, not {}", raw.dimensions());
            }
            let handles = numbers.into_iter().map(endpoint::PeerHandle::from_number);
            return Ok(Recipients(handles.collect()));
        }
        let wrong = |what: &Object<'_>| {
            let class = class_name(what);
            PyTypeError::new_err(format!(
                "clients must be ClientHandles, or a buffer of uint64 like the client column of rows, not {class}"
            ))
        };
        let mut handles = Vec::new();
        for item in given.try_iter().map_err(|_| wrong(given))? {
            let item = item?;
            handles.push(own(item.cast::<ClientHandle>().map_err(|_| wrong(&item))?.get())?);
        }
        Ok(Recipients(handles))
    }

    /// Refuses any number other than one for each row.
    pub(in crate::python) fn check_count(&self, rows: &Rows) -> PyResult<()> {
        if self.0.len() == rows.len() {
            return Ok(());
        }
        let sentence = format!("clients must have one entry per row ({}), not {}", rows.len(), self.0.len());
        Err(PyValueError::new_err(sentence))
    }
}
