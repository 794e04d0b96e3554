//! What kind of endpoint the game made, and the arguments and answers of its `send`.
//!
//! Promises: the five answers are made once, so that none costs an allocation.

use crate::python::prelude::*;

/// What kind of endpoint the game made.
#[derive(Debug)]
pub(super) struct EndpointKind {
    pub(super) is_server: bool,
    /// Whether ghosts, inputs and calls pass through it.
    pub(super) has_world: bool,
    /// Its kind, for sentences.
    pub(super) name: &'static str,
    /// The exception if a peer isn't connected.
    pub(super) missing: fn() -> PyErr,
    /// The answer in that case, unless it raises.
    pub(super) absent: Sent,
    /// The answer in words.
    pub(super) absent_text: &'static str,
}

/// The arguments of `send` and `broadcast`.
#[derive(Clone, Copy)]
pub(super) struct Sending<'a, 'py> {
    /// A message or a batch.
    pub(super) message: &'a Object<'py>,
    pub(super) channel: Option<&'a Object<'py>>,
    pub(super) key: Option<&'a Object<'py>>,
    pub(super) tag: Option<&'a Object<'py>>,
    pub(super) notify: bool,
}

/// A member of `tickwire._connection.SendResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Queued,
    Gone,
    Full,
    NotConnected,
    Hidden,
}

pub(super) static SERVER: EndpointKind = EndpointKind {
    is_server: true,
    has_world: true,
    name: "server",
    missing: stale_client,
    absent: Sent::Gone,
    absent_text: "the client is gone",
};

pub(super) static CLIENT: EndpointKind = EndpointKind {
    is_server: false,
    has_world: true,
    name: "client",
    missing: not_connected,
    absent: Sent::NotConnected,
    absent_text: "the connection is not up",
};

pub(super) static PEER: EndpointKind = EndpointKind {
    is_server: false,
    has_world: false,
    name: "peer",
    missing: stale_client,
    absent: Sent::Gone,
    absent_text: "the player is gone",
};

impl Sent {
    /// The answer to a refusal that is a player's doing; `absent` is the answer for a peer that isn't
    /// connected.
    pub(super) fn of_refusal(error: &SendError, absent: Sent) -> Option<Sent> {
        match error {
            SendError::NotConnected => Some(absent),
            SendError::Refused(_) => error.is_refusal().then_some(Sent::Full),
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
