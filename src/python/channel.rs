//! Channels and the functions that make them: their guarantees, and their share of a connection.

use crate::python::prelude::*;

use super::arguments::wrong;
use crate::transport::protocol::MAX_EARLY_COPIES;
use crate::transport::{ChannelConfig, ChannelKind, Resend, Share};

#[pyclass(frozen, module = "tickwire.channels")]
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) config: ChannelConfig,
    pub(super) retain: Option<usize>,
}

impl From<ChannelConfig> for Channel {
    fn from(config: ChannelConfig) -> Self {
        Channel { config, retain: None }
    }
}

#[pymethods]
impl Channel {
    properties! {
        kind: &'static str = self.config.kind.name();
        name: &str = &self.config.name;
        strict: bool = self.config.share.strict;
        weight: u32 = self.config.share.weight;
        max_message_bytes: usize = self.config.max_message_bytes;
        retain: bool = self.retain.is_some();
        retain_bytes: usize = self.retain.unwrap_or_default();
        __repr__: String = format!("{}({:?})", self.kind(), self.config.name);
    }

    #[getter]
    fn keys(&self) -> usize {
        match self.config.kind {
            ChannelKind::Latest { keys } => keys,
            _ => 0,
        }
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
    weight: u32,
}

impl Common<'_> {
    fn open(self, kind: ChannelKind) -> PyResult<Channel> {
        let config = ChannelConfig {
            name: self.name.to_owned(),
            kind,
            send_queue: count("send_queue", self.send_queue)?,
            max_message_bytes: count("max_message_bytes", self.max_message_bytes)?,
            share: Share { strict: self.strict, weight: self.weight },
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

/// A channel's name. A class in its place is a mistake that the sentence names.
fn channel_name<'a>(given: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    given.extract().map_err(|error: PyErr| wrong("name", given, "a str", error))
}

fn resend(resend_time: Option<Duration>, early_copies: u8) -> PyResult<Resend> {
    match resend_time {
        None => Ok(Resend::Adaptive { early_copies }),
        Some(time) if early_copies == 1 => Ok(Resend::After(time)),
        Some(time) => Err(PyValueError::new_err(format!(
            "early_copies must be 1 with a fixed resend_time ({}), not {early_copies}; with resend_time=None \
             it may be up to {MAX_EARLY_COPIES}",
            time.as_secs_f64()
        ))),
    }
}

#[pyfunction]
pub(crate) fn reliable_ordered(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] send_queue: i128,
    #[int] receive_window: i128,
    #[int] receive_bytes: i128,
    #[int] max_message_bytes: i128,
    #[seconds(60.0)] resend_time: Option<Duration>,
    #[within(1, MAX_EARLY_COPIES as u8)] early_copies: u8,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Reliable {
        ordered: true,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn reliable_unordered(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] send_queue: i128,
    #[int] receive_window: i128,
    #[int] receive_bytes: i128,
    #[int] max_message_bytes: i128,
    #[seconds(60.0)] resend_time: Option<Duration>,
    #[within(1, MAX_EARLY_COPIES as u8)] early_copies: u8,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Reliable {
        ordered: false,
        receive_window: count("receive_window", receive_window)?,
        receive_bytes: count("receive_bytes", receive_bytes)?,
        resend: resend(resend_time, early_copies)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn unreliable(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] send_queue: i128,
    #[int] receive_queue: i128,
    #[int] max_message_bytes: i128,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Unreliable { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn sequenced(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] send_queue: i128,
    #[int] receive_queue: i128,
    #[int] max_message_bytes: i128,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Sequenced { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn redundant(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[within(1, u8::MAX)] copies: Option<u8>,
    #[int] send_queue: i128,
    #[int] receive_queue: i128,
    #[int] max_message_bytes: i128,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Redundant {
        copies: copies.unwrap_or(0),
        receive_queue: count("receive_queue", receive_queue)?,
    };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn latest(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] keys: i128,
    #[truth] retain: bool,
    #[within(1, MAX_RETAIN_BYTES)] retain_bytes: usize,
    #[int] max_message_bytes: i128,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Latest { keys: count("keys", keys)? };
    // Values wait by key, not in a queue.
    let channel = Common { name, send_queue: 1, max_message_bytes, strict, weight }.open(kind)?;
    Ok(Channel { retain: retain.then_some(retain_bytes), ..channel })
}

#[pyfunction]
pub(crate) fn payload(
    #[pyo3(from_py_with = channel_name)] name: &str,
    #[int] send_queue: i128,
    #[int] receive_queue: i128,
    #[int] max_message_bytes: i128,
    #[truth] strict: bool,
    #[within(0, u32::MAX)] weight: u32,
) -> PyResult<Channel> {
    let kind = ChannelKind::Payload { receive_queue: count("receive_queue", receive_queue)? };
    Common { name, send_queue, max_message_bytes, strict, weight }.open(kind)
}

#[pyfunction]
pub(crate) fn chunks(name: &str) -> PyResult<Channel> {
    let config = ChannelConfig { name: name.to_owned(), ..ChannelConfig::new(ChannelKind::Chunks) };
    config.validate().map_err(value_error)?;
    Ok(config.into())
}
