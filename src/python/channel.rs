//! Channels and the functions that make them: what is promised, and how much of a connection it may take.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::errors::value_error;
use super::fields::within;
use super::protocol::seconds;
use crate::transport::protocol::MAX_EARLY_COPIES;
use crate::transport::{ChannelConfig, ChannelKind, Resend, Share, YojimboChannel};

/// The settings of one channel. Made by :func:`reliable_ordered`, :func:`unreliable` and the like.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) config: ChannelConfig,
    /// Bytes of values that a server keeps of it for newcomers. The other side doesn't know.
    pub(super) retain: Option<usize>,
    /// Clients may ask for chunks: see [`Protocol`](super::protocol::Protocol).
    pub(super) pulls: bool,
}

impl From<ChannelConfig> for Channel {
    fn from(config: ChannelConfig) -> Self {
        Channel { config, retain: None, pulls: false }
    }
}

#[pymethods]
impl Channel {
    /// Which promise it makes, such as ``reliable_ordered``.
    #[getter]
    fn kind(&self) -> &'static str {
        self.config.kind.name()
    }

    /// Its name, for people; empty unless given.
    #[getter]
    fn name(&self) -> &str {
        &self.config.name
    }

    /// Whether it comes before the channels that are not strict.
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

    /// Whether what is broadcast on it is sent to newcomers, too.
    #[getter]
    fn retain(&self) -> bool {
        self.retain.is_some()
    }

    /// How many bytes of values are kept for newcomers; 0 when none are.
    #[getter]
    fn retain_bytes(&self) -> usize {
        self.retain.unwrap_or_default()
    }

    /// Whether clients may ask for chunks by name or hash.
    #[getter]
    fn pulls(&self) -> bool {
        self.pulls
    }

    fn __repr__(&self) -> String {
        format!("{}({:?})", self.kind(), self.config.name)
    }
}

/// The most bytes of values that may be kept for newcomers: 1 GiB.
const MAX_RETAIN_BYTES: usize = 1 << 30;

/// What every kind of channel is made with.
struct Common<'a> {
    name: &'a str,
    send_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
}

/// What channels of yojimbo's framing are made with besides.
#[derive(Default)]
struct Yojimbo {
    max_messages_per_packet: Option<i128>,
    max_block_size: Option<i128>,
    block_fragment_size: Option<i128>,
    disable_blocks: bool,
}

impl Yojimbo {
    /// None when nothing was said.
    fn settings(self) -> PyResult<Option<YojimboChannel>> {
        let Yojimbo { max_messages_per_packet, max_block_size, block_fragment_size, disable_blocks } = self;
        let said = max_messages_per_packet.or(max_block_size).or(block_fragment_size).is_some();
        if !said && !disable_blocks {
            return Ok(None);
        }
        let usual = YojimboChannel::default();
        let size = |name, given: Option<i128>, usual| given.map_or(Ok(usual), |given| count(name, given));
        Ok(Some(YojimboChannel {
            max_messages_per_packet: size(
                "max_messages_per_packet",
                max_messages_per_packet,
                usual.max_messages_per_packet,
            )?,
            max_block_bytes: size("max_block_size", max_block_size, usual.max_block_bytes)?,
            block_fragment_bytes: size(
                "block_fragment_size",
                block_fragment_size,
                usual.block_fragment_bytes,
            )?,
            blocks: !disable_blocks,
        }))
    }
}

impl Common<'_> {
    fn open(self, kind: ChannelKind) -> PyResult<Channel> {
        self.open_with(kind, Yojimbo::default())
    }

    fn open_with(self, kind: ChannelKind, yojimbo: Yojimbo) -> PyResult<Channel> {
        let config = ChannelConfig {
            name: self.name.to_owned(),
            kind,
            send_queue: count("send_queue", self.send_queue)?,
            max_message_bytes: count("max_message_bytes", self.max_message_bytes)?,
            share: Share { strict: self.strict, weight: within("weight", self.weight, 0, u32::MAX)? },
            yojimbo: yojimbo.settings()?,
        };
        config.validate().map_err(value_error)?;
        Ok(config.into())
    }
}

/// An argument that counts something; the core knows its bounds.
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
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_window = 1024, receive_bytes = 1_048_576,
                    max_message_bytes = 65_536, resend_time = None, early_copies = 1, strict = false,
                    weight = 1, max_messages_per_packet = None, max_block_size = None,
                    block_fragment_size = None, disable_blocks = false))]
#[pyo3(text_signature = "(name='', *, send_queue=1024, receive_window=1024, receive_bytes=1048576, \
                         max_message_bytes=65536, resend_time=None, early_copies=1, strict=False, weight=1, \
                         max_messages_per_packet=None, max_block_size=None, block_fragment_size=None, \
                         disable_blocks=False)")]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn reliable_ordered(
    name: &str,
    send_queue: i128,
    receive_window: i128,
    receive_bytes: i128,
    max_message_bytes: i128,
    resend_time: Option<f64>,
    early_copies: i128,
    strict: bool,
    weight: i128,
    max_messages_per_packet: Option<i128>,
    max_block_size: Option<i128>,
    block_fragment_size: Option<i128>,
    disable_blocks: bool,
) -> PyResult<Channel> {
    let yojimbo = Yojimbo { max_messages_per_packet, max_block_size, block_fragment_size, disable_blocks };
    let kind = ChannelKind::Reliable {
        ordered: true,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open_with(kind, yojimbo)
}

/// Every message exactly once, as soon as it comes.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_window = 1024, receive_bytes = 1_048_576,
                    max_message_bytes = 65_536, resend_time = None, early_copies = 1, strict = false,
                    weight = 1))]
#[pyo3(text_signature = "(name='', *, send_queue=1024, receive_window=1024, receive_bytes=1048576, \
                         max_message_bytes=65536, resend_time=None, early_copies=1, strict=False, weight=1)")]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn reliable_unordered(
    name: &str,
    send_queue: i128,
    receive_window: i128,
    receive_bytes: i128,
    max_message_bytes: i128,
    resend_time: Option<f64>,
    early_copies: i128,
    strict: bool,
    weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Reliable {
        ordered: false,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Each message at most once, in any order, never sent again.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1, max_messages_per_packet = None, max_block_size = None,
                    disable_blocks = false))]
#[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
pub(crate) fn unreliable(
    name: &str,
    send_queue: i128,
    receive_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
    max_messages_per_packet: Option<i128>,
    max_block_size: Option<i128>,
    disable_blocks: bool,
) -> PyResult<Channel> {
    let yojimbo =
        Yojimbo { max_messages_per_packet, max_block_size, disable_blocks, block_fragment_size: None };
    let kind = ChannelKind::Unreliable { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open_with(kind, yojimbo)
}

/// Each message at most once, never an older one after a newer one, never sent again.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn sequenced(
    name: &str,
    send_queue: i128,
    receive_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Sequenced { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Each message in several packets: once, in order, gaps told.
#[pyfunction]
#[pyo3(signature = (name = "", *, copies = Some(3), send_queue = 1024, receive_queue = 1024,
                    max_message_bytes = 65_536, strict = false, weight = 1))]
#[pyo3(
    text_signature = "(name='', *, copies=3, send_queue=1024, receive_queue=1024, max_message_bytes=65536, \
                         strict=False, weight=1)"
)]
pub(crate) fn redundant(
    name: &str,
    copies: Option<i128>,
    send_queue: i128,
    receive_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Redundant {
        copies: copies.map_or(Ok(0), |copies| within("copies", copies, 1, u8::MAX))?,
        receive_queue: count("receive_queue", receive_queue)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Of each key the newest value, until the other side has it.
#[pyfunction]
#[pyo3(signature = (name = "", *, keys = 1024, retain = false, retain_bytes = 1_048_576, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn latest(
    name: &str,
    keys: i128,
    retain: bool,
    retain_bytes: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Latest { keys: count("keys", keys)? };
    // Values wait by key, not in a queue.
    let channel = Common { name, send_queue: 1, max_message_bytes, strict, weight }.open(kind)?;
    let bytes = within("retain_bytes", retain_bytes, 1, MAX_RETAIN_BYTES)?;
    Ok(Channel { retain: retain.then_some(bytes), ..channel })
}

/// Opaque bytes, at most once, whose fate is told exactly once, in the order of the packets.
#[pyfunction]
#[pyo3(signature = (name = "", *, send_queue = 1024, receive_queue = 1024, max_message_bytes = 65_536,
                    strict = false, weight = 1))]
pub(crate) fn payload(
    name: &str,
    send_queue: i128,
    receive_queue: i128,
    max_message_bytes: i128,
    strict: bool,
    weight: i128,
) -> PyResult<Channel> {
    let kind = ChannelKind::Payload { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

/// Large blocks of data beside the messages: at most one such channel a protocol.
#[pyfunction]
#[pyo3(signature = (name = "", *, pulls = false))]
pub(crate) fn chunks(name: &str, pulls: bool) -> PyResult<Channel> {
    let config = ChannelConfig { name: name.to_owned(), ..ChannelConfig::new(ChannelKind::Chunks) };
    config.validate().map_err(value_error)?;
    Ok(Channel { pulls, ..config.into() })
}
