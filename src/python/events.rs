//! The events of a tick, and the clients they are about.

use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use crate::python::prelude::*;

use crate::endpoint::{self, PeerStats};
use crate::mesh::LeaveReason;
use crate::netcode::USER_DATA_BYTES;

/// Shows an object by these attributes, like a dataclass; the first ones are shown without their names. A member of an
/// enumeration is shown by its name.
pub(super) fn shown(object: &Object<'_>, attributes: &[&str], positional: usize) -> PyResult<String> {
    static ENUM: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    let shown = |(place, name): (usize, &&str)| -> PyResult<String> {
        let value = object.getattr(*name)?;
        let is_member = value.is_instance(ENUM.import(py, "enum", "Enum")?)?;
        let value = if is_member { value.getattr("name")?.str()? } else { value.repr()? };
        Ok(if place < positional { value.to_string() } else { format!("{name}={value}") })
    };
    let shown: Vec<String> = attributes.iter().enumerate().map(shown).collect::<PyResult<_>>()?;
    Ok(format!("{}({})", object.get_type().name()?, shown.join(", ")))
}

/// A hash for Python.
pub(super) fn hash(identity: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

/// Makes the values of types the members of Python's enumerations that have their names.
macro_rules! members {
    ($($Type:ty => $module:literal $class:literal),*) => {
        $(impl<'py> IntoPyObject<'py> for $Type {
            type Target = PyAny;
            type Output = Object<'py>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Object<'py>> {
                static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                let class = CLASS.import(py, $module, $class)?;
                class.getattr($crate::python::events::constant_name(&format!("{self:?}")))
            }
        })*
    };
}

pub(super) use members;

members!(
    endpoint::DisconnectReason => "tickwire._connection" "DisconnectReason",
    LeaveReason => "tickwire._connection" "LeaveReason"
);

/// The name of a constant: `TIMED_OUT` for `TimedOut`.
pub(super) fn constant_name(name: &str) -> String {
    let mut constant = String::new();
    for (place, letter) in name.char_indices() {
        if place > 0 && letter.is_uppercase() {
            constant.push('_');
        }
        constant.extend(letter.to_uppercase());
    }
    constant
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
    pub(super) data: ObjectCell,
}

#[pymethods]
impl ClientHandle {
    properties! {
        id: u64 = self.id;
        slot, generation: u32 of self.core;
        number: u64 = self.core.number();
        address: Address = self.address;
        user_data: Bound<'py, PyBytes> = PyBytes::new(py, &*self.user_data);
        data: Option<Py<PyAny>> = self.data.get(py);
        __repr__: String =
            format!("<ClientHandle id={} slot={} address={}>", self.id, self.core.slot, self.address.0);
    }

    #[setter]
    fn set_data(&self, data: Option<Py<PyAny>>) {
        self.data.set(data);
    }

    traverses!(self.data);

    fn __clear__(&self) {
        self.data.set(None);
    }

    methods! {
        __eq__(other: &Object<'_>) -> bool =
            other.cast::<ClientHandle>().is_ok_and(|other| self.is(other.get()));
    }

    fn __hash__(&self) -> u64 {
        hash((self.server, self.core))
    }
}

impl ClientHandle {
    /// Whether both are the same connection.
    pub(super) fn is(&self, other: &ClientHandle) -> bool {
        other.server == self.server && other.core == self.core
    }

    /// The core's handle, if the client in an argument is a client of this server.
    pub(super) fn of_server(&self, name: &str, server: u64) -> PyResult<PeerHandle> {
        if self.server == server {
            return Ok(self.core);
        }
        refuse!(
            PyValueError,
            "{name} must belong to this server, and {} belongs to another server: drop handles together with their server",
            self.described()
        )
    }

    /// Names it in log lines.
    pub(super) fn described(&self) -> String {
        format!("client {} ({})", self.id, self.address.0)
    }
}

#[record(module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Connected {
    pub(super) client: Option<Py<ClientHandle>>,
}

#[record(module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Disconnected {
    pub(super) client: Option<Py<ClientHandle>>,
    pub(super) reason: DisconnectReason,
    pub(super) detail: Option<String>,
}

impl Disconnected {
    /// The event for the game.
    pub(super) fn event(
        py: Python<'_>,
        client: Option<Py<ClientHandle>>,
        reason: DisconnectReason,
        detail: Option<Box<str>>,
    ) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Disconnected { client, reason, detail: detail.map(String::from) })?.into_any())
    }
}

/// The state of a client; None: it waits for its next attempt.
pub(super) fn state_to_python(py: Python<'_>, state: Option<endpoint::ClientState>) -> PyResult<Object<'_>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "tickwire._connection", "ClientState")?;
    state.map_or_else(|| class.getattr("RECONNECTING"), |state| class.call1((state.number(),)))
}
