//! Channels and the functions that make them: their guarantees, and their share of a connection.

use crate::python::prelude::*;
use pyo3::exceptions::PyValueError;

use super::arguments::{int, optional_int, optional_number, truth};
use super::errors::value_error;
use super::fields::within;
use super::protocol::seconds;
use crate::transport::protocol::MAX_EARLY_COPIES;
use crate::transport::{ChannelConfig, ChannelKind, Resend, Share};

#[pyclass(frozen, module = "tickwire.channels")]
#[derive(Debug)]
pub(crate) struct Channel {
    pub(super) config: ChannelConfig,
    pub(super) retain: Option<usize>,
    pub(super) pulls: bool,
}

impl From<ChannelConfig> for Channel {
    fn from(config: ChannelConfig) -> Self {
        Channel { config, retain: None, pulls: false }
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
        pulls: bool = self.pulls;
    }

    #[getter]
    fn keys(&self) -> usize {
        match self.config.kind {
            ChannelKind::Latest { keys } => keys,
            _ => 0,
        }
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
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

#[pyfunction]
pub(crate) fn chunks(name: &str, #[pyo3(from_py_with = truth::pulls)] pulls: bool) -> PyResult<Channel> {
    let config = ChannelConfig { name: name.to_owned(), ..ChannelConfig::new(ChannelKind::Chunks) };
    config.validate().map_err(value_error)?;
    Ok(Channel { pulls, ..config.into() })
}
