//! The answers of `send`: whether a message was queued, and if not, what its player did.
//!
//! Promises: the five answers are made once, so that none costs an allocation. A mistake that only the caller
//! can have made is never an answer: it raises.

use crate::python::prelude::*;
use pyo3::sync::PyOnceLock;

use super::endpoint::Endpoint;
use crate::endpoint::SendError;
use crate::transport;

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
            SendError::Channel(transport::SendError::Full { .. } | transport::SendError::TickFull { .. }) => {
                Some(Sent::Full)
            }
            SendError::Channel(_) => None,
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

impl Endpoint {
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
