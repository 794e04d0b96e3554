//! The building blocks by themselves, for people who write their own protocols.
//!
//! Promises: none of the classes here needs another; where time matters it is an argument, in seconds of a clock
//! that the caller chose and that doesn't go back. A caller's mistake raises, naming argument, value and bound;
//! what the network brings is dropped and counted.
//!
//! Bytes that a caller passes in are doubted as a peer's are: the core's readers count or refuse them, and only what the
//! caller itself got wrong raises ValueError.

mod ack_endpoint;
mod bit_reader;
mod bit_writer;
mod chunk_receiver;
mod chunk_sender;
mod good_bad;
mod link;
mod sequence;
mod sequence_buffer;
mod socket;
mod virtual_connection;

pub(super) use ack_endpoint::{AckEndpoint, PacketStats};
pub(super) use bit_reader::BitReader;
pub(super) use bit_writer::{BitMeasure, BitWriter};
pub(super) use chunk_receiver::ChunkReceiver;
pub(super) use chunk_sender::{ChunkProgress, ChunkSender};
pub(super) use good_bad::{GoodBad, good_bad_config};
pub(super) use link::Link;
pub(super) use sequence::{sequence_distance, sequence_greater, sequence_less};
pub(super) use sequence_buffer::SequenceBuffer;
pub(super) use socket::Socket;
pub(super) use virtual_connection::VirtualConnection;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::protocol::seconds;
use crate::time::Instant;

/// Two hundred years: later times are mistakes (milliseconds, nanoseconds).
const LATEST: f64 = 200.0 * 366.0 * 86_400.0;

/// An argument `now`.
fn instant(now: f64) -> PyResult<Instant> {
    seconds("now", now, LATEST).map(|since| Instant::ZERO + since)
}

/// An instant as the float that [`instant`] takes for it, or for the next nanosecond: never for one before.
fn to_seconds(at: Instant) -> f64 {
    let nearest = at.as_secs_f64();
    if instant(nearest).is_ok_and(|taken| taken < at) { nearest.next_up() } else { nearest }
}

/// Counts by name.
pub(super) fn counts<'py>(
    py: Python<'py>,
    counters: impl Iterator<Item = (&'static str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let counted = PyDict::new(py);
    for (name, count) in counters {
        counted.set_item(name, count)?;
    }
    Ok(counted)
}
