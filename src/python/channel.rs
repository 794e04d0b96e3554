//! Channels and the functions that make them: their guarantees, and their share of a connection.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::{int, optional_int, optional_number, truth};
use super::errors::value_error;
use super::fields::within;
use super::protocol::seconds;
use crate::transport::protocol::MAX_EARLY_COPIES;
use crate::transport::{ChannelConfig, ChannelKind, Resend, Share};

/// The settings of one channel, as made by :func:`reliable_ordered`, :func:`unreliable` and so on.
///
/// All kinds take these arguments:
///
/// Args:
///     name: shown in the statistics.
///     max_message_bytes: the largest message. A reliable channel cuts messages above 1,024 bytes into fragments
///         that are resent one by one. On other channels a message above about 1,180 bytes is lost if any of its
///         fragments is.
///     strict: served before all channels that are not strict, in the protocol's order. The others keep a tenth
///         of each packet, so that none of them starves.
///     weight: its share among the channels that are not strict, 1 to 1,000. A share that is not used passes to
///         the others.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, module = "tickwire.channels")]
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) config: ChannelConfig,
    /// Bytes of values that a server retains for newcomers. The other side doesn't know.
    pub(super) retain: Option<usize>,
}

impl From<ChannelConfig> for Channel {
    fn from(config: ChannelConfig) -> Self {
        Channel { config, retain: None }
    }
}

#[pymethods]
impl Channel {
    /// Its kind, such as ``reliable_ordered``.
    #[getter]
    fn kind(&self) -> &'static str {
        self.config.kind.name()
    }

    /// Its name; empty unless given.
    #[getter]
    fn name(&self) -> &str {
        &self.config.name
    }

    /// Whether it is served before the channels that are not strict.
    #[getter]
    fn strict(&self) -> bool {
        self.config.share.strict
    }

    /// Its share among the channels that are not strict.
    #[getter]
    fn weight(&self) -> u32 {
        self.config.share.weight
    }

    /// The bytes of the largest message.
    #[getter]
    fn max_message_bytes(&self) -> usize {
        self.config.max_message_bytes
    }

    /// How many keys a latest channel has; 0 of the other kinds.
    #[getter]
    fn keys(&self) -> usize {
        match self.config.kind {
            ChannelKind::Latest { keys } => keys,
            _ => 0,
        }
    }

    /// Whether newcomers get the values that were broadcast on it.
    #[getter]
    fn retain(&self) -> bool {
        self.retain.is_some()
    }

    /// How many bytes of values are kept for newcomers; 0 when none are.
    #[getter]
    fn retain_bytes(&self) -> usize {
        self.retain.unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        format!("{}({:?})", self.kind(), self.config.name)
    }
}

/// The maximum of bytes retained for newcomers: 1 GiB.
const MAX_RETAIN_BYTES: usize = 1 << 30;

/// The settings of every kind of channel.
struct Common<'a> {
    name: &'a str,
    send_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
}

impl Common<'_> {
    fn open(self, kind: ChannelKind) -> PyResult<Channel> {
        let config = ChannelConfig {
            name: self.name.to_owned(),
            kind,
            send_queue: count("send_queue", self.send_queue)?,
            max_message_bytes: count("max_message_bytes", self.max_message_bytes)?,
            share: Share { strict: self.strict, weight: within("weight", self.weight, 0, u32::MAX)? },
        };
        config.validate().map_err(value_error)?;
        Ok(config.into())
    }
}

/// An argument that is a count; the core knows its bounds.
pub(super) fn count(name: &str, value: i128) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| {
        PyValueError::new_err(format!("{name} must be at least 1 and fit in memory, not {value}"))
    })
}

fn resend(resend_time: Option<f64>, early_copies: i128) -> PyResult<Resend> {
    let early_copies = within("early_copies", early_copies, 1, MAX_EARLY_COPIES as u8)?;
    match resend_time {
        None => Ok(Resend::Adaptive { early_copies }),
        Some(time) if early_copies == 1 => Ok(Resend::After(seconds("resend_time", time, 60.0)?)),
        Some(time) => Err(PyValueError::new_err(format!(
            "early_copies must be 1 with a fixed resend_time ({time}), not {early_copies}; with resend_time=None \
             it may be up to {MAX_EARLY_COPIES}"
        ))),
    }
}

/// Every message exactly once, in order.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     send_queue (int, default 1024): messages that may wait unacked; above that ``send`` returns ``FULL``.
///     receive_window (int, default 1024): messages the receiver buffers before its game takes them.
///     receive_bytes (int, default 1048576): bytes the receiver buffers before its game takes them.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     resend_time (float | None, default None): seconds after which a message not yet acked is sent again. None:
///         once the packets that carry it are lost, or after a timeout derived from the RTT and its variance.
///     early_copies (int, default 1): with ``resend_time=None``, how many packets carry each message at first, a
///         tick apart, while the budget has room; 1 to 8.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_window = 1024, receive_bytes = 1_048_576,
                    max_message_bytes = 65_536, resend_time = None, early_copies = 1, strict = false,
                    weight = 1))]
#[pyo3(text_signature = "(name='', *, send_queue=1024, receive_window=1024, receive_bytes=1048576, \
                         max_message_bytes=65536, resend_time=None, early_copies=1, strict=False, weight=1)")]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn reliable_ordered(
    name: &str,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_window)] receive_window: i128,
    #[pyo3(from_py_with = int::receive_bytes)] receive_bytes: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = optional_number::resend_time)] resend_time: Option<f64>,
    #[pyo3(from_py_with = int::early_copies)] early_copies: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Reliable {
        ordered: true,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Every message exactly once, as soon as it arrives: a lost one does not hold up those after it.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     send_queue (int, default 1024): messages that may wait unacked; above that ``send`` returns ``FULL``.
///     receive_window (int, default 1024): messages the receiver buffers before its game takes them.
///     receive_bytes (int, default 1048576): bytes the receiver buffers before its game takes them.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     resend_time (float | None, default None): seconds after which a message not yet acked is sent again. None:
///         once it counts as lost.
///     early_copies (int, default 1): with ``resend_time=None``, how many packets carry each message at first, 1
///         to 8.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_window = 1024, receive_bytes = 1_048_576,
                    max_message_bytes = 65_536, resend_time = None, early_copies = 1, strict = false,
                    weight = 1))]
#[pyo3(text_signature = "(name='', *, send_queue=1024, receive_window=1024, receive_bytes=1048576, \
                         max_message_bytes=65536, resend_time=None, early_copies=1, strict=False, weight=1)")]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn reliable_unordered(
    name: &str,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_window)] receive_window: i128,
    #[pyo3(from_py_with = int::receive_bytes)] receive_bytes: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = optional_number::resend_time)] resend_time: Option<f64>,
    #[pyo3(from_py_with = int::early_copies)] early_copies: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Reliable {
        ordered: false,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Each message at most once, in any order, never resent. Messages that don't fit a tick's budget are dropped.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     send_queue (int, default 1024): messages per tick; above that ``send`` returns ``FULL``.
///     receive_queue (int, default 1024): messages the receiver keeps for its game; when it is full, the oldest
///         are dropped.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn unreliable(
    name: &str,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_queue)] receive_queue: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Unreliable { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Like :func:`unreliable`, but a message older than one already received is dropped on arrival.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     send_queue (int, default 1024): messages per tick; above that ``send`` returns ``FULL``.
///     receive_queue (int, default 1024): messages the receiver keeps for its game; when it is full, the oldest
///         are dropped.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn sequenced(
    name: &str,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_queue)] receive_queue: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Sequenced { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Each message in several packets, a tick apart, so that a lost packet costs no time. Messages are delivered
/// once, in order; ``inbox.missed`` counts those that never arrived.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     copies (int | None, default 3): packets that carry each message, 1 to 255; None: all until one is acked.
///     send_queue (int, default 1024): messages that may wait or be in flight; above that ``send`` returns
///         ``FULL``.
///     receive_queue (int, default 1024): messages the receiver keeps for its game; when it is full, the oldest
///         are dropped.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, copies = Some(3), send_queue = 1024, receive_queue = 1024,
                    max_message_bytes = 65_536, strict = false, weight = 1))]
#[pyo3(
    text_signature = "(name='', *, copies=3, send_queue=1024, receive_queue=1024, max_message_bytes=65536, \
                         strict=False, weight=1)"
)]
pub(crate) fn redundant(
    name: &str,
    #[pyo3(from_py_with = optional_int::copies)] copies: Option<i128>,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_queue)] receive_queue: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Redundant {
        copies: copies.map_or(Ok(0), |copies| within("copies", copies, 1, u8::MAX))?,
        receive_queue: count("receive_queue", receive_queue)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// The newest value of each key, sent until the other side has it. A resend always carries the newest value.
/// Values arrive in ``inbox.latest``, never an older one of a key after a newer one.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     keys (int, default 1024): how many keys there are, 1 to 65,536; the ``key`` argument of ``send`` is 0 to
///         ``keys - 1``.
///     retain (bool, default False): after their :class:`Connected`, newcomers get the newest value of each key
///         that was broadcast to everybody. A client that is added to a :class:`Room` gets the room's values.
///         Values sent to one client, or broadcast to some (``clients=``), are not kept. :meth:`Server.forget`
///         drops a key. The setting may differ between the sides.
///     retain_bytes (int, default 1048576): bytes of such values that the server, and each room, keeps; 1 to
///         2**30. A broadcast that needs more raises :class:`MessageTooLargeError` and sends nothing.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, keys = 1024, retain = false, retain_bytes = 1_048_576, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn latest(
    name: &str,
    #[pyo3(from_py_with = int::keys)] keys: i128,
    #[pyo3(from_py_with = truth::retain)] retain: bool,
    #[pyo3(from_py_with = int::retain_bytes)] retain_bytes: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Latest { keys: count("keys", keys)? };
    // Values wait by key, not in a queue.
    let channel = Common { name, send_queue: 1, max_message_bytes, strict, weight }.open(kind)?;
    let bytes = within("retain_bytes", retain_bytes, 1, MAX_RETAIN_BYTES)?;
    Ok(Channel { retain: retain.then_some(bytes), ..channel })
}

/// Bytes of your own instead of messages, each payload at most once, never resent: see
/// :meth:`Server.send_payload`. ``inbox.notifications`` reports each as delivered or lost, in packet order.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
///     send_queue (int, default 1024): messages per tick; above that ``send`` returns ``FULL``.
///     receive_queue (int, default 1024): messages the receiver keeps for its game; when it is full, the oldest
///         are dropped.
///     max_message_bytes (int, default 65536): bytes of the largest message, 1 to 261,120.
///     strict (bool, default False): whether it is served before all channels that are not strict.
///     weight (int, default 1): its share among the channels that are not strict, 1 to 1,000.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn payload(
    name: &str,
    #[pyo3(from_py_with = int::send_queue)] send_queue: i128,
    #[pyo3(from_py_with = int::receive_queue)] receive_queue: i128,
    #[pyo3(from_py_with = int::max_message_bytes)] max_message_bytes: i128,
    #[pyo3(from_py_with = truth::strict)] strict: bool,
    #[pyo3(from_py_with = int::weight)] weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Payload { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Large blocks of data, beside the messages: see :meth:`Server.send_chunk`. A protocol has at most one such channel,
/// and messages don't go over it.
///
/// Args:
///     name (str, default ''): for statistics, and for ``send``; unique in a protocol.
#[pyfunction]
#[pyo3(signature = (name = ""))]
pub(crate) fn chunks(name: &str) -> PyResult<Channel> {
    let config = ChannelConfig { name: name.to_owned(), ..ChannelConfig::new(ChannelKind::Chunks) };
    config.validate().map_err(value_error)?;
    Ok(config.into())
}
