//! The connection packets of the C++ library yojimbo: `YOJIMBO.md` beside the framings is the norm.
//!
//! Reading promises: a packet is read whole or refused whole, and every number is checked before it is believed. What a
//! packet's memory is in proportion to is its bytes, and [`YojimboChannel::max_messages_per_packet`] for each entry. Windows,
//! ids and the order of fragments are for the channels to judge.

mod config;
mod fault;
mod read;
#[cfg(test)]
mod vectors;
mod write;

pub use config::{Framing, FramingError, YojimboChannel, YojimboConfig};
pub use fault::{BodyFault, Fault, FaultKind, PacketFault};
pub use read::Extent;
pub(crate) use read::{Item, read, read_alone};
pub(crate) use write::{Entry, header_bits, write};

use super::Cost;
use crate::transport::channel::BlockLimits;
use crate::transport::protocol::Protocol;
use crate::wire::bit_len;

/// What this framing spends around the messages of a channel.
pub(crate) fn cost(protocol: &Protocol, channel: usize) -> Cost<'_> {
    let settings = protocol.yojimbo_channel(channel);
    let bits = Bits::of(protocol, channel);
    let entry = protocol.channel_bits() as usize + 1;
    let fragment = 16 + (bits.fragment_count * 2 + bits.fragment_bytes) as usize;
    Cost {
        protocol,
        entry: entry + 1 + bits.messages as usize,
        message: protocol.type_bits() as usize,
        key: 0,
        payload: false,
        most: settings.max_messages_per_packet,
        block: bits.block_bytes as usize,
        fragment_bytes: settings.block_fragment_bytes,
        fragment_entry: entry + fragment,
        cuts: false,
    }
}

/// The widths of a channel's numbers.
struct Bits {
    messages: u32,
    block_bytes: u32,
    fragment_count: u32,
    fragment_bytes: u32,
}

impl Bits {
    fn of(protocol: &Protocol, channel: usize) -> Self {
        let settings = protocol.yojimbo_channel(channel);
        // Each is at least 1.
        let width = |most: usize| bit_len(most as u64 - 1);
        Bits {
            messages: width(settings.max_messages_per_packet),
            block_bytes: width(settings.max_block_bytes),
            fragment_count: width(settings.max_fragments()),
            fragment_bytes: width(settings.block_fragment_bytes),
        }
    }
}

/// The bounds of a channel's blocks.
pub(crate) fn block_limits(protocol: &Protocol, channel: usize) -> BlockLimits {
    let settings = protocol.yojimbo_channel(channel);
    BlockLimits { fragment_bytes: settings.block_fragment_bytes, max_bytes: settings.max_block_bytes }
}
