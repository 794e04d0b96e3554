//! The ends of chunks, and refused calls.

use core::fmt;

use super::items::{
    MAX_BURST_CHUNK_BYTES, MAX_CHUNK_BYTES, MAX_LABEL_BYTES, MAX_QUEUED_CHUNKS, Offer, Rejection,
};
use super::storage::{StorageError, Stored};

/// Why a chunk failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkFailure {
    /// The receiver refused it.
    Rejected(Rejection),
    /// This side's application cancelled it.
    Cancelled,
    /// The sender cancelled it, or couldn't read it any more.
    Withdrawn,
    /// This side could not store it, or could not read it any more.
    Storage(StorageError),
    /// The connection ended first.
    Disconnected,
}

impl fmt::Display for ChunkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkFailure::Rejected(rejection) => rejection.fmt(f),
            ChunkFailure::Cancelled => f.write_str("it was cancelled"),
            ChunkFailure::Withdrawn => f.write_str("the sender withdrew it"),
            ChunkFailure::Storage(error) => error.fmt(f),
            ChunkFailure::Disconnected => f.write_str("the connection ended before the chunk was complete"),
        }
    }
}

/// Something happened to a chunk.
#[derive(Debug)]
pub enum ChunkEvent {
    /// The peer offers a chunk: to be answered by [`Chunks::accept`](super::Chunks::accept) or
    /// [`Chunks::reject`](super::Chunks::reject), sooner or later. It is offered again if it was
    /// accepted as complete and the content turned out to be different.
    Offered(Offer),
    /// One of ours is at the peer, verified.
    Sent { number: u64 },
    /// One of ours is not going to be.
    NotSent { number: u64, failure: ChunkFailure },
    /// A chunk of the peer's is here, verified.
    Received { offer: Offer, stored: Stored },
    /// One of the peer's is not going to be.
    NotReceived {
        /// The offer of the failed chunk.
        offer: Offer,
        failure: ChunkFailure,
    },
}

impl ChunkEvent {
    /// Whether it is the end of one of the peer's chunks whose label begins like this.
    pub fn has_label(&self, prefix: &str) -> bool {
        match self {
            ChunkEvent::Received { offer, .. } | ChunkEvent::NotReceived { offer, .. } => {
                offer.label.starts_with(prefix)
            }
            _ => false,
        }
    }
}

/// Why a chunk can't be queued. Nothing was queued then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// The queue of chunks is full.
    Full,
    /// The chunk is too large.
    TooLarge { bytes: u64 },
    /// The chunk is too large to go out at once.
    Burst { bytes: u64 },
    /// The label is too long.
    Label {
        /// Its bytes in UTF-8.
        bytes: usize,
    },
    /// The protocol has no channel for chunks.
    NoChannel,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkError::Full => {
                write!(
                    f,
                    "{MAX_QUEUED_CHUNKS} chunks wait to be sent, which is the maximum: send more when some are over"
                )
            }
            ChunkError::TooLarge { bytes } => {
                write!(f, "the chunk must be at most {MAX_CHUNK_BYTES} bytes, not {bytes}")
            }
            ChunkError::Burst { bytes } => {
                write!(
                    f,
                    "a chunk with burst must be at most {MAX_BURST_CHUNK_BYTES} bytes, not {bytes}: more \
                     would fill the path's queues and delay all other traffic"
                )
            }
            ChunkError::Label { bytes } => {
                write!(f, "label must be at most {MAX_LABEL_BYTES} bytes in UTF-8, not {bytes}")
            }
            ChunkError::NoChannel => {
                f.write_str("the protocol has no channel for chunks: add tickwire.chunks() to its channels")
            }
        }
    }
}

impl core::error::Error for ChunkError {}
