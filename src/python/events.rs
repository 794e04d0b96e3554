//! The events of a tick, and the clients they are about.

use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use crate::python::prelude::*;

use crate::endpoint::{self, PeerStats};
use crate::netcode::USER_DATA_BYTES;

/// Defines an event: its fields are attributes and match arguments, and it shows like a dataclass. The garbage collector
/// visits the field behind `holding`.
macro_rules! event_class {
    ($Class:ident in $module:literal $(, holding $held:ident)? { $($field:ident: $Type:ty),* }) => {
        #[pyclass(frozen, get_all, module = $module)]
        pub(crate) struct $Class {
            $(pub(in crate::python) $field: $Type,)*
        }

        event_class!(@methods $Class [$(
            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                visit.call(&self.$held)
            }
        )?] $($field)*);
    };
    ($Class:ident in $module:literal, comparable { $($field:ident: $Type:ty),* }) => {
        #[pyclass(frozen, get_all, eq, module = $module)]
        #[derive(PartialEq)]
        pub(crate) struct $Class {
            $(pub(in crate::python) $field: $Type,)*
        }

        event_class!(@methods $Class [] $($field)*);
    };
    (@methods $Class:ident [$($traverse:tt)*] $($field:ident)*) => {
        #[pymethods]
        impl $Class {
            #[classattr]
            fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
                PyTuple::new(py, [$(stringify!($field)),*]).map(Bound::unbind)
            }

            $($traverse)*

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                crate::python::events::shown(slf.as_any(), &[$(stringify!($field)),*])
            }
        }
    };
}

pub(super) use event_class;

/// Shows an object by these attributes, like a dataclass.
pub(super) fn shown(object: &Bound<'_, PyAny>, attributes: &[&str]) -> PyResult<String> {
    let shown = |name: &&str| Ok(format!("{name}={}", object.getattr(*name)?.repr()?));
    let shown: Vec<String> = attributes.iter().map(shown).collect::<PyResult<_>>()?;
    Ok(format!("{}({})", object.get_type().name()?, shown.join(", ")))
}

#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct ClientHandle {
    /// Tells the servers of a process apart.
    pub(super) server: u64,
    pub(super) core: endpoint::PeerHandle,
    pub(super) id: u64,
    pub(super) address: Address,
    pub(super) user_data: Box<[u8; USER_DATA_BYTES]>,
    /// The statistics of its connection at the end.
    pub(super) end: OnceLock<PeerStats>,
    pub(super) data: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl ClientHandle {
    properties! {
        id: u64 = self.id;
        slot: u32 = self.core.slot;
        generation: u32 = self.core.generation;
        number: u64 = self.core.number();
        address: Address = self.address;
        user_data: Bound<'py, PyBytes> = PyBytes::new(py, &*self.user_data);
        data: Option<Py<PyAny>> = lock(&self.data).as_ref().map(|data| data.clone_ref(py));
        __repr__: String =
            format!("<ClientHandle id={} slot={} address={}>", self.id, self.core.slot, self.address.0);
    }

    #[setter]
    fn set_data(&self, data: Option<Py<PyAny>>) {
        // Dropping the old object may run code of the game, so it happens after the lock is released.
        let before = core::mem::replace(&mut *lock(&self.data), data);
        drop(before);
    }

    traverses!(self.data);

    fn __clear__(&self) {
        let before = lock(&self.data).take();
        drop(before);
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<ClientHandle>().is_ok_and(|other| self.is(other.get()))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.server, self.core).hash(&mut hasher);
        hasher.finish()
    }
}

impl ClientHandle {
    /// Whether both are the same connection.
    pub(super) fn is(&self, other: &ClientHandle) -> bool {
        other.server == self.server && other.core == self.core
    }

    /// Names it in log lines.
    pub(super) fn described(&self) -> String {
        format!("client {} ({})", self.id, self.address.0)
    }
}

event_class! { Connected in "tickwire", holding client { client: Option<Py<ClientHandle>> } }

#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Disconnected {
    #[pyo3(get)]
    pub(super) client: Option<Py<ClientHandle>>,
    pub(super) reason: endpoint::DisconnectReason,
    pub(super) detail: Option<Box<str>>,
}

#[pymethods]
impl Disconnected {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("client", "reason", "detail")
    }

    properties! {
        reason: PyResult<Bound<'py, PyAny>> = reason_to_python(py, self.reason);
        detail: Option<&str> = self.detail.as_deref();
    }

    traverses!(self.client);

    fn __repr__(&self) -> String {
        let (client, reason) = (shown_client(self.client.as_ref()), reason_name(self.reason));
        let detail = self.detail.as_ref().map(|detail| format!(", detail={detail:?}")).unwrap_or_default();
        format!("Disconnected(client={client}, reason={reason}{detail})")
    }
}

fn shown_client(client: Option<&Py<ClientHandle>>) -> String {
    client.map_or_else(|| "None".into(), |client| client.get().__repr__())
}

/// The name of a reason in `tickwire._connection.DisconnectReason`.
fn reason_name(reason: endpoint::DisconnectReason) -> &'static str {
    use endpoint::DisconnectReason as Reason;
    match reason {
        Reason::Closed => "CLOSED",
        Reason::Kicked => "KICKED",
        Reason::ServerClosed => "SERVER_CLOSED",
        Reason::PeerDisconnected => "PEER_DISCONNECTED",
        Reason::TimedOut => "TIMED_OUT",
        Reason::Replaced => "REPLACED",
        Reason::Stalled => "STALLED",
        Reason::ServerFull => "SERVER_FULL",
        Reason::RequestTimedOut => "REQUEST_TIMED_OUT",
        Reason::Refused => "REFUSED",
        Reason::Unreachable => "UNREACHABLE",
        Reason::UnknownCode => "UNKNOWN_CODE",
        Reason::NoPath => "NO_PATH",
        Reason::ResponseTimedOut => "RESPONSE_TIMED_OUT",
        Reason::TokenExpired => "TOKEN_EXPIRED",
        Reason::ProtocolMismatch => "PROTOCOL_MISMATCH",
        Reason::ProtocolViolation => "PROTOCOL_VIOLATION",
        Reason::ReadPacketFailed => "READ_PACKET_FAILED",
        Reason::FailedToSerialize => "FAILED_TO_SERIALIZE",
        Reason::Desync => "DESYNC",
    }
}

pub(super) fn reason_to_python(
    py: Python<'_>,
    reason: endpoint::DisconnectReason,
) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._connection", "DisconnectReason")?.getattr(reason_name(reason))
}

pub(super) fn state_to_python(py: Python<'_>, state: endpoint::ClientState) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._connection", "ClientState")?.call1((state.number(),))
}

/// The state of a client that waits for its next attempt.
pub(super) fn reconnecting_state(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._connection", "ClientState")?.getattr("RECONNECTING")
}
