//! `send`: a message or a batch of rows for a peer, and its answer: whether a message was queued, and if not, what its player
//! did.
//!
//! Promises: the five answers are made once, so that none costs an allocation. A mistake that only the caller
//! can have made is never an answer: it raises. Wrong rows are refused before any of them is queued.

use crate::python::prelude::*;

use super::arrays::{Batch, Rows};
use super::checks;
use super::pending::payload;

/// A member of `tickwire._connection.SendResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Queued,
    Gone,
    Full,
    NotConnected,
    Hidden,
}

impl Sent {
    /// The answer to a refusal that is a player's doing; `absent` is the answer for a peer that isn't
    /// connected.
    pub(super) fn of_refusal(error: &SendError, absent: Sent) -> Option<Sent> {
        match error {
            SendError::NotConnected => Some(absent),
            SendError::Channel(_) => error.is_refusal().then_some(Sent::Full),
        }
    }

    /// The member of the Python enum.
    pub(super) fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        static MEMBERS: PyOnceLock<[Py<PyAny>; 5]> = PyOnceLock::new();
        let members = MEMBERS.get_or_try_init(py, || {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            let class = CLASS.import(py, "tickwire._connection", "SendResult")?;
            let member = |name| class.getattr(name).map(Bound::unbind);
            Ok::<_, PyErr>([
                member("SENT")?,
                member("GONE")?,
                member("FULL")?,
                member("NOT_CONNECTED")?,
                member("HIDDEN")?,
            ])
        })?;
        Ok(members[self as usize].clone_ref(py))
    }
}

/// The arguments of `send` and `broadcast`.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a, 'py> {
    /// A message or a [`Batch`].
    pub(super) message: &'a Object<'py>,
    pub(super) channel: Option<&'a Object<'py>>,
    pub(super) key: Option<&'a Object<'py>>,
    pub(super) tag: Option<&'a Object<'py>>,
    pub(super) notify: bool,
}

/// What is sent, encoded and checked.
pub(super) enum EncodedMessages {
    Message { channel: usize, message: [(Message, SendOptions); 1] },
    Rows(Rows),
}

impl EncodedMessages {
    /// The channel, and the messages in their order.
    pub(super) fn messages(&self) -> (usize, &[(Message, SendOptions)]) {
        match self {
            EncodedMessages::Message { channel, message } => (*channel, message),
            EncodedMessages::Rows(rows) => rows.messages(),
        }
    }
}

impl Endpoint {
    /// Encodes a message or a batch.
    #[inline]
    pub(super) fn encode(&self, sending: Sending<'_, '_>) -> PyResult<EncodedMessages> {
        let Sending { message, channel, key, tag, notify } = sending;
        let protocol = self.protocol.get();
        if let Ok(batch) = message.cast_exact::<Batch>() {
            return Rows::new(protocol, batch, sending).map(EncodedMessages::Rows);
        }
        let number = |name, given: Option<&Object<'_>>| {
            given.map_or(Ok(0), |given| checks::within(name, given, "", 0, u32::MAX))
        };
        let options = SendOptions { key: number("key", key)?, tag: number("tag", tag)?, notify };
        let encoded = protocol.encode_message(message)?;
        let channel = protocol.channel(channel, Some(encoded.message_type))?;
        Ok(EncodedMessages::Message { channel, message: [(encoded, options)] })
    }

    /// Queues a message for a peer, and returns the answer; or the rows of a batch, and returns the indices of those that were
    /// left out.
    pub(super) fn send(&self, peer: PeerHandle, sending: Sending<'_, '_>) -> PyResult<Py<PyAny>> {
        let py = sending.message.py();
        let rows = match self.encode(sending)? {
            EncodedMessages::Message { channel, message: [(message, options)] } => {
                let sent =
                    self.with(|core, driver| core.send(driver.now(), peer, channel, message, options))?;
                return self.answer(py, sent, channel, || class_name(sending.message));
            }
            EncodedMessages::Rows(rows) => rows,
        };
        let left_out = self.with(|core, driver| {
            if self.strict && !core.is_connected(peer) {
                return Err((self.kind.missing)());
            }
            let now = driver.now();
            rows.queue(|_, channel, message, options| core.send(now, peer, channel, message, options))
        })??;
        Ok(left_out.into_pyobject(py)?.unbind())
    }

    /// Queues bytes on a payload channel, and returns the answer.
    pub(super) fn send_payload(
        &self,
        py: Python<'_>,
        peer: PeerHandle,
        data: &[u8],
        channel: &Object<'_>,
        tag: u32,
    ) -> PyResult<Py<PyAny>> {
        let channel = self.protocol.get().channel(Some(channel), None)?;
        let sent =
            self.with(|core, driver| core.send_payload(driver.now(), peer, channel, payload(data), tag))?;
        self.answer(py, sent, channel, || "the payload".into())
    }

    /// The answer to a `send` of `what`, from a channel's result.
    ///
    /// # Errors
    /// It was the caller's mistake, or the endpoint is strict.
    pub(super) fn answer(
        &self,
        py: Python<'_>,
        sent: Result<(), SendError>,
        channel: usize,
        what: impl FnOnce() -> String,
    ) -> PyResult<Py<PyAny>> {
        let Err(error) = sent else { return Sent::Queued.to_python(py) };
        match Sent::of_refusal(&error, self.kind.absent).filter(|_| !self.strict) {
            Some(refusal) => refusal.to_python(py),
            None => Err(self.send_error(&what(), channel, error)),
        }
    }
}
