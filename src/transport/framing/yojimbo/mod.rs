//! The connection packets of the C++ library yojimbo: `YOJIMBO.md` beside the framings is the norm.
//!
//! Reading promises: a packet is read whole or refused whole, and every number is checked before it is believed.
//! Memory is in proportion to a packet's bytes, and to
//! [`YojimboChannel::max_messages_per_packet`](crate::transport::protocol::YojimboChannel) for each entry. Windows,
//! ids and the order of fragments are for the channels to judge.

mod fault;
mod read;
#[cfg(test)]
mod vectors;
mod write;

pub use fault::{Fault, FaultKind};
pub use read::Extent;
pub(crate) use read::{Item, read, read_alone};
pub(crate) use write::{header_bits, write};
