//! The items about chunks in packets.

use core::fmt;

/// The largest chunk that may go out at once: the article has some 100 KiB, and warns of more.
pub(in crate::transport) const MAX_BURST_CHUNK_BYTES: u64 = 256 * 1024;

/// Bytes of a slice: as many as leave room in a datagram for its headers, an entry and some acks.
pub const SLICE_BYTES: usize = 1152;

/// Bits of a slice's length on the wire.
pub(crate) const SLICE_LENGTH_BITS: u32 = 11;

/// The maximum overhead of a packet with a slice.
pub(super) const SLICE_PACKET_OVERHEAD: usize = 39;

/// The largest chunk: 40 bits of size on the wire.
pub const MAX_CHUNK_BYTES: u64 = (1 << 40) - 1;

pub const MAX_LABEL_BYTES: usize = 64;

/// Chunks waiting to be sent, those under way included.
pub const MAX_QUEUED_CHUNKS: usize = 256;

/// Chunks under way in one direction: the standard's. One would cost a round trip between two of them.
pub(crate) const MAX_OPEN: u16 = 4;

/// Runs of slices in an answer; slices beyond them are sent again.
pub(crate) const MAX_RUNS: usize = 128;

/// Identifies a chunk's content: its SHA-256.
pub type ContentHash = [u8; 32];

/// A sender's description of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The chunk's number in its direction.
    pub id: u16,
    /// Bytes of the chunk.
    pub size: u64,
    /// Bytes of each slice but the last.
    pub slice_bytes: u16,
    /// The hash of the whole content.
    pub hash: ContentHash,
    /// The sender's name for it.
    pub label: Box<str>,
}

impl Offer {
    /// How many slices the chunk has; at least one, of no bytes for an empty chunk.
    pub(crate) fn slices(&self) -> u32 {
        // At most 2^40 bytes in slices of at least 512: below 2^32.
        self.size.div_ceil(u64::from(self.slice_bytes)).max(1) as u32
    }

    /// The place of a slice in the chunk.
    pub(crate) fn slice(&self, index: u32) -> core::ops::Range<u64> {
        let start = u64::from(index) * u64::from(self.slice_bytes);
        start..(start + u64::from(self.slice_bytes)).min(self.size)
    }
}

/// Why a chunk is refused, or given up. The numbers are the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The receiver has no room for a chunk of this size.
    TooLarge = 1,
    /// The receiving application doesn't want it.
    Cancelled = 2,
    /// The received content is not the offered one.
    Damaged = 3,
    /// The receiver could not store it.
    Storage = 4,
    /// There is no room for it now where the receiver stores chunks.
    NoRoom = 5,
}

impl Rejection {
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Rejection::TooLarge,
            3 => Rejection::Damaged,
            4 => Rejection::Storage,
            5 => Rejection::NoRoom,
            _ => Rejection::Cancelled,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::TooLarge => {
                "the receiver accepts no chunk of this size: give it more memory for chunks, or a \
                 directory; a server has neither by default"
            }
            Rejection::Cancelled => "the receiver cancelled it",
            Rejection::Damaged => "the chunk that arrived is not the offered chunk: its hash differs",
            Rejection::Storage => "the receiver could not store it",
            Rejection::NoRoom => "the receiver's directory for chunks is full",
        })
    }
}

/// A receiver's word on a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is accepted; these runs of slices are here: (first, count), ascending. While it is paused no more should be
    /// sent.
    Accepted {
        have: Vec<(u32, u32)>,
        paused: bool,
    },
    /// It is here, complete and verified.
    Complete,
    Rejected(Rejection),
}

/// An item in an entry of a chunk channel. The bytes of slices are in the packet's arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Offer(Offer),
    Slice { id: u16, index: u32, bytes: core::ops::Range<usize> },
    Answer { id: u16, verdict: Verdict },
    Withdraw { id: u16 },
}

/// The chunk items in a packet, for when its outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkContent {
    Offer { id: u16 },
    Slice { id: u16, index: u32 },
    Answer { id: u16, last: bool },
    Withdraw { id: u16 },
}

/// The chunk items selected for a packet, with the bytes of the slices.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) items: Vec<Item>,
    pub(crate) carried: Vec<ChunkContent>,
    pub(crate) arena: Vec<u8>,
}

impl Selection {
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.carried.clear();
        self.arena.clear();
    }
}
