//! Tickwire's own connection packet: `STANDARD.md` beside this file is the norm.
//!
//! Reading promises: a packet is either read whole or refused; nothing is applied here. Every number is
//! checked against what the protocol allows before it is believed, and memory taken is in proportion to the packet.
//!
//! Bounds of one packet: [`MAX_PACKET_MESSAGES`] messages and their bodies, none above its channel's bound; ranges that walk
//! 32,768 numbers; one credit and one entry a channel. Windows and ids are for the channels to judge, and whether
//! fragments fit together.

mod packet;
mod read;
mod write;

pub use packet::{CloseReason, MAX_DETAIL_BYTES, VERSION};
pub(crate) use packet::{Control, Packet, PacketMessage};
pub(super) use read::read_alone;
pub(crate) use read::{MAX_PACKET_MEMORY, ReadContext, read, read_body};
pub use write::{alone_bits, begin_alone, write_alone};
pub(crate) use write::{control_bits, range_bits, write_control, write_end, write_entries};
#[cfg(test)]
pub(super) use write::{write_chunk_entry, write_entry};

#[cfg(doc)]
use super::refusal::MAX_PACKET_MESSAGES;
