//! Fixed-capacity containers that know nothing of networks: sequence arithmetic, the sequence buffer and set, bit sets,
//! maps by id, maps with a secret hash, many short lists, short slices and byte strings, token buckets, timers of slots,
//! prefetching, columns of cells that others view, and the batch of datagrams that every sender writes to.

pub mod bit_set;
mod bucket;
pub mod cells;
pub(crate) mod counters;
pub mod datagrams;
mod id_map;
mod inline_slice;
pub(crate) mod keyed_hash;
pub mod lists;
mod prefetch;
pub mod sequence;
pub mod sequence_buffer;
pub mod sequence_set;
pub mod small_bytes;
pub(crate) mod source_limit;
mod timers;
mod window;
pub mod zeroed;

pub use bit_set::{BitSet, ones, ones_of};
pub use bucket::Bucket;
pub use datagrams::{Datagrams, Packets};
pub(crate) use id_map::IdMap;
pub(crate) use inline_slice::InlineSlice;
pub use lists::{List, Lists};
pub(crate) use prefetch::{prefetch, prefetch_across};
pub use sequence_buffer::SequenceBuffer;
pub use sequence_set::SequenceSet;
pub use small_bytes::{SmallBytes, Spares};
pub(crate) use timers::Timers;
