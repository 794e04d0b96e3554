//! How an endpoint runs: its socket, its thread, its hooks.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::replaced;
use crate::python::address::{Address, AddressLike};
use crate::python::arguments::{argument, int, optional_int, optional_number, text, truth};
use crate::python::errors::value_error;
use crate::python::fields::within;
use crate::python::hooks;
use crate::python::setup::packets_within;
use crate::time::Duration;
use crate::transport::ack_endpoint::AckEndpointConfig;

/// Bounds of the seconds that a reliable channel may stay full: no game waits longer for one player.
const STALLED_TIMEOUT: core::ops::RangeInclusive<f64> = 0.1..=3600.0;

const FIELDS: [&str; 9] = [
    "driver",
    "bind",
    "timeout",
    "mtu",
    "stalled_timeout",
    "packet_notifications",
    "priority",
    "factory",
    "columns",
];

/// How an endpoint runs: its socket, its thread, its hooks. Servers, clients and peers take the same object.
///
/// Args:
///     driver (Literal['polled', 'thread'], default 'polled'): ``"polled"``: the socket is read and written when
///         the game ticks. ``"thread"``: a native thread also serves connections between ticks and while the game
///         is busy: it acks, resends and paces chunks. A tick's messages still go out together, at its flush.
///     bind (AddressLike | None, default None): the local address of a client or peer; None: any free port. A
///         server is at its address, and takes none.
///     timeout (int | None, default None): seconds of silence that end a connection, and a dial; None: 10, and 5
///         between peers. For :meth:`Client.connect`, and for peers, where it is at most 60. Connect tokens have a
///         timeout of their own. A server ends a connection after 300 seconds of silence at the latest.
///     mtu (int, default 1280): bytes of the largest IP packets to send, all headers included, 1,126 to 1,280.
///         For paths that silently lose larger ones. Each side sets its own.
///     stalled_timeout (float | None, default 5.0): seconds, 0.1 to 3,600. A server drops a player, with
///         :attr:`DisconnectReason.STALLED` on both sides, if a reliable channel to it is full and delivers
///         nothing for this long, or if the channel goes on refusing messages and delivering a full queue takes
///         more than twelve times as long. ``counters["connections.stalled"]`` counts them. None: never.
///     packet_notifications (bool, default False): whether :attr:`Inbox.packets` reports each packet as delivered
///         or lost; otherwise no such records are kept.
///     priority (PriorityHook | None, default None): called once per flush if unordered messages are queued, with
///         their :class:`Candidates`, for all receivers at once. Returns a buffer of float32 scores, one per
///         candidate: within a channel, higher scores go first. None keeps the order. If it raises, returns
///         anything else or a NaN, or sends or receives, the packets go out in their usual order, and
///         :meth:`Server.flush`, or the ``with`` of :meth:`Server.tick`, raises the exception.
///     factory (MessageFactory | None, default None): makes the message objects; None: calls the class.
///     columns (Sequence[type] | None, default None): message classes delivered as columns
///         (:meth:`Inbox.columns`) instead of objects.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Tuning {
    /// ``"polled"`` or ``"thread"``.
    driver: String,
    /// The local address, if one was given.
    pub(in crate::python) bind: Option<Address>,
    /// Seconds of silence that end a connection, if they were given.
    pub(in crate::python) timeout: Option<u32>,
    /// Bytes of the largest IP packets to send.
    mtu: u16,
    /// Seconds for which a reliable channel may be full; None: any time.
    stalled_timeout: Option<f64>,
    /// Whether :attr:`Inbox.packets` reports each packet.
    pub(in crate::python) packet_notifications: bool,
    /// The hook that orders unordered messages.
    pub(in crate::python) priority: Option<Py<PyAny>>,
    /// What makes the message objects.
    pub(in crate::python) factory: Option<Py<PyAny>>,
    /// The message classes that are delivered as columns.
    columns: Vec<Py<PyAny>>,
}

#[pymethods]
impl Tuning {
    #[new]
    #[pyo3(signature = (*, driver = "polled".into(), bind = None, timeout = None, mtu = 1280,
                        stalled_timeout = Some(5.0), packet_notifications = false, priority = None,
                        factory = None, columns = None))]
    #[pyo3(text_signature = "(*, driver='polled', bind=None, timeout=None, mtu=1280, stalled_timeout=5.0, \
                             packet_notifications=False, priority=None, factory=None, columns=None)")]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = text::driver)] driver: String,
        bind: Option<AddressLike>,
        #[pyo3(from_py_with = optional_int::timeout)] timeout: Option<i128>,
        #[pyo3(from_py_with = int::mtu)] mtu: i128,
        #[pyo3(from_py_with = optional_number::stalled_timeout)] stalled_timeout: Option<f64>,
        #[pyo3(from_py_with = truth::packet_notifications)] packet_notifications: bool,
        priority: Option<Py<PyAny>>,
        factory: Option<Py<PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if !matches!(&*driver, "polled" | "thread") {
            return Err(value_error(format!("driver must be 'polled' or 'thread', not '{driver}'")));
        }
        let timeout =
            timeout.map(|seconds| within("timeout", seconds, 1, i32::MAX.unsigned_abs())).transpose()?;
        packets_within(mtu)?;
        if let Some(seconds) = stalled_timeout.filter(|seconds| !STALLED_TIMEOUT.contains(seconds)) {
            let (low, high) = (STALLED_TIMEOUT.start(), STALLED_TIMEOUT.end());
            return Err(PyValueError::new_err(format!(
                "stalled_timeout must be {low} to {high} seconds, or None, not {seconds}"
            )));
        }
        hooks::check(py, "priority", priority.as_ref())?;
        if let Some(factory) = &factory
            && !factory.bind(py).hasattr(intern!(py, "create"))?
        {
            let class = factory.bind(py).get_type().name()?;
            let sentence =
                format!("factory must be a MessageFactory, with a method create, or None, not {class}");
            return Err(PyTypeError::new_err(sentence));
        }
        let columns = columns.map(|given| argument("columns", given, "a list of message classes or None"));
        Ok(Tuning {
            driver,
            bind: bind.map(|bind| Address(bind.0)),
            timeout,
            mtu: mtu as u16,
            stalled_timeout,
            packet_notifications,
            priority,
            factory,
            columns: columns.transpose()?.unwrap_or_default(),
        })
    }

    /// A copy with other values for the named arguments.
    #[pyo3(signature = (**changes))]
    fn replace<'py>(
        slf: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        replaced(slf, &FIELDS, changes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.priority)?;
        visit.call(&self.factory)?;
        self.columns.iter().try_for_each(|class| visit.call(class))
    }
}

impl Tuning {
    pub(in crate::python) fn is_threaded(&self) -> bool {
        self.driver == "thread"
    }

    pub(in crate::python) fn columns<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.columns.iter().map(|class| class.bind(py).clone()).collect()
    }

    pub(in crate::python) fn stalled_timeout(&self) -> Option<Duration> {
        self.stalled_timeout.map(Duration::from_secs_f64)
    }

    /// The packet sizes that fit the largest IP packets.
    pub(super) fn packets(&self) -> PyResult<AckEndpointConfig> {
        packets_within(self.mtu.into())
    }
}
