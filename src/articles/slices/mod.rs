//! Large blocks of data, quickly and reliably: the chunks and slices of the article "Sending Large Blocks of Data".
//!
//! A [`ChunkSender`] cuts a chunk into slices of 1,024 bytes and sends them over and over, at a set rate, until all are
//! acked. A [`ChunkReceiver`] puts them together and acks. One chunk is in flight at a time; chunks arrive in order. For
//! both directions at once take a pair for each. Both ends start together and need the same `max_slices`.
//!
//! Promises: a chunk arrives whole and as it was, or not at all; a transfer never hangs while packets of both directions
//! now and then get through and chunks are read; what goes out keeps to its rate; acks never amount to more bytes than
//! the slices they answer, and never to one for each slice. What arrives and makes no sense is dropped and counted.
//!
//! Refuses: to be quick for many small blocks (each chunk waits for the one before), and to tell friend from
//! stranger. Anyone who can send to an end can put bytes into a chunk or ack slices that never arrived: use a layer
//! below that keeps strangers out. What a stranger can't do is make an end send more than it got, or hold more than
//! one chunk.
//!
//! The bytes are laid out in [`packet`]; what becomes of a chunk that is cancelled, in [`sender`].

mod assembly;
mod config;
mod drops;
mod in_flight;
pub mod packet;
mod progress;
pub mod receiver;
pub mod sender;

pub use config::{ChunkReceiverConfig, ChunkSenderConfig};
pub use drops::{AckDrop, ReceiverCounters, SenderCounters, SliceDrop};
pub use progress::ChunkProgress;
pub use receiver::ChunkReceiver;
pub use sender::{ChunkSendError, ChunkSender};

/// Bytes of every slice but the last: a packet with one fits 1,200 bytes.
pub const SLICE_BYTES: usize = 1024;

/// Slices of a chunk unless set otherwise: chunks up to 256 KiB.
pub const DEFAULT_MAX_SLICES: usize = 256;

/// The most slices that a chunk may be set to have. Every ack names them all, and with more it would be longer than a
/// slice: it would not fit the MTU, and one slice couldn't pay for it.
pub const MAX_SLICES: usize = 8192;
