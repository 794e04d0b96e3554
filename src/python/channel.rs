//! Channels and the functions that make them: their guarantees, and their share of a connection.

use crate::python::prelude::*;

use crate::transport::protocol::MAX_EARLY_COPIES;
use crate::transport::{ChannelConfig, Resend, Share};

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

/// A function for each kind of channel: its own parameters and those of all channels.
macro_rules! channel {
    ($name:ident($($(#[$check:meta])* $own:ident: $Type:ty),*) => $kind:expr, $send_queue:expr, $retain:expr) => {
        #[pyfunction]
        pub(crate) fn $name(
            name: &str,
            $($(#[$check])* $own: $Type,)*
            #[count] max_message_bytes: usize,
            #[truth] strict: bool,
            #[within(0, u32::MAX)] weight: u32,
        ) -> PyResult<Channel> {
            let (name, kind, share) = (name.to_owned(), $kind, Share { strict, weight });
            let config = ChannelConfig { name, kind, send_queue: $send_queue, max_message_bytes, share };
            config.validate().map_err(value_error)?;
            Ok(Channel { config, retain: $retain })
        }
    };
}

macro_rules! reliable {
    ($name:ident, $ordered:expr) => {
        channel!($name(
            #[count] send_queue: usize,
            #[count] receive_window: usize,
            #[count] receive_bytes: usize,
            #[seconds(60.0)] resend_time: Option<Duration>,
            #[within(1, MAX_EARLY_COPIES as u8)] early_copies: u8
        ) => {
            let resend = resend(resend_time, early_copies)?;
            ChannelKind::Reliable { ordered: $ordered, receive_window, receive_bytes, resend }
        }, send_queue, None);
    };
}

reliable!(reliable_ordered, true);
reliable!(reliable_unordered, false);
channel!(unreliable(#[count] send_queue: usize, #[count] receive_queue: usize) =>
    ChannelKind::Unreliable { receive_queue }, send_queue, None);
channel!(sequenced(#[count] send_queue: usize, #[count] receive_queue: usize) =>
    ChannelKind::Sequenced { receive_queue }, send_queue, None);
channel!(redundant(#[within(1, u8::MAX)] copies: Option<u8>, #[count] send_queue: usize, #[count] receive_queue: usize) =>
    ChannelKind::Redundant { copies: copies.unwrap_or(0), receive_queue }, send_queue, None);
channel!(payload(#[count] send_queue: usize, #[count] receive_queue: usize) =>
    ChannelKind::Payload { receive_queue }, send_queue, None);
// Values of latest channels wait by key, not in a queue.
channel!(latest(#[count] keys: usize, #[truth] retain: bool, #[within(1, MAX_RETAIN_BYTES)] retain_bytes: usize) =>
    ChannelKind::Latest { keys }, 1, retain.then_some(retain_bytes));

#[pyfunction]
pub(crate) fn chunks(name: &str) -> PyResult<Channel> {
    let config = ChannelConfig { name: name.to_owned(), ..ChannelConfig::new(ChannelKind::Chunks) };
    config.validate().map_err(value_error)?;
    Ok(config.into())
}

/// The given channels, or a reliable and an unreliable one.
pub(super) fn channels_of(py: Python<'_>, given: Option<&Object<'_>>) -> PyResult<Vec<Py<Channel>>> {
    let usual = || [ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    match given {
        Some(channels) => argument("channels", channels, "a list of channels"),
        None => usual().into_iter().map(|config| Py::new(py, Channel::from(config))).collect(),
    }
}

/// Refuses a name that two channels have.
pub(super) fn check_names(channels: &[Py<Channel>]) -> PyResult<()> {
    let mut seen = HashSet::new();
    let mut given = channels.iter().map(|channel| channel.get().config.name.as_str());
    match given.find(|name| !name.is_empty() && !seen.insert(*name)) {
        Some(twice) => {
            refuse!(PyValueError, "channels must have different names, and '{twice}' appears twice")
        }
        None => Ok(()),
    }
}

/// The number of the channel with this name.
pub(super) fn named(channels: &[Py<Channel>], name: &str) -> Option<usize> {
    channels.iter().position(|channel| !name.is_empty() && channel.get().config.name == name)
}

/// The names of channels, for errors.
pub(super) fn names(channels: &[Py<Channel>]) -> String {
    let named = channels.iter().map(|channel| &channel.get().config.name).filter(|name| !name.is_empty());
    let named: Vec<String> = named.map(|name| format!("'{name}'")).collect();
    let numbers = format!("0 to {}", channels.len() - 1);
    if named.is_empty() {
        format!("{numbers} (none of them has a name)")
    } else {
        format!("{numbers}, or {}", named.join(", "))
    }
}
