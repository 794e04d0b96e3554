//! `send`: a message or a batch of rows for a peer, and its answer: whether a message was queued, and if not, what its player
//! did.
//!
//! Promises: a mistake that only the caller can have made is never an answer: it raises. Wrong rows are refused before
//! any of them is queued.

use crate::python::prelude::*;

use super::arrays::{Batch, Rows};
use super::checks;
use super::kind::Sent;
use crate::wire::Encoded;

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

/// Bytes as a payload's bits.
fn payload(data: &[u8]) -> Encoded {
    let mut writer = BitWriter::with_buffer(Vec::with_capacity(data.len() + 8));
    let words = data.chunks(8);
    words.for_each(|word| {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        writer.bits(u64::from_le_bytes(bytes), word.len() as u32 * 8);
    });
    writer.encoded()
}
