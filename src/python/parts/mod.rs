//! The building blocks on their own, for people who write their own protocols.
//!
//! Promises: no class here needs another; time is an argument, in seconds of a monotonic clock of the
//! caller's choice. A caller's mistake raises and names argument, value and bound; bad bytes from the network
//! are dropped and counted.
//!
//! Bytes that a caller passes in are as untrusted as a peer's: the core counts or refuses them, and only the
//! caller's own mistakes raise ValueError.

mod ack_endpoint;
mod bit_reader;
mod bit_writer;
mod chunk_receiver;
mod chunk_sender;
mod good_bad;
mod link;
mod socket;
mod virtual_connection;

pub(super) use ack_endpoint::{AckEndpoint, Fragments, PacketStats};
pub(super) use bit_reader::BitReader;
pub(super) use bit_writer::{BitMeasure, BitWriter};
pub(super) use chunk_receiver::ChunkReceiver;
pub(super) use chunk_sender::{ChunkProgress, ChunkSender};
pub(super) use good_bad::GoodBad;
pub(super) use link::Link;
pub(super) use socket::Socket;
pub(super) use virtual_connection::VirtualConnection;

use crate::python::prelude::*;

/// Seconds that [`Instant`] turns into this instant or the next nanosecond, never an earlier one.
fn to_seconds(at: Instant) -> f64 {
    let nearest = at.as_secs_f64();
    if Instant::ZERO + Duration::from_secs_f64(nearest) < at { nearest.next_up() } else { nearest }
}

/// Counters by name, as a dict.
pub(super) fn counts<'py>(
    py: Python<'py>,
    counters: impl Iterator<Item = (impl AsRef<str>, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let counted = PyDict::new(py);
    for (name, count) in counters {
        counted.set_item(name.as_ref(), count)?;
    }
    Ok(counted)
}
