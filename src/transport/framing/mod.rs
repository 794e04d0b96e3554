//! How a connection packet looks: which bits stand for acks, credit and messages. The channels don't know.

mod chunk_items;
pub(crate) mod native;
#[cfg(test)]
mod vectors;
pub(crate) mod yojimbo;

pub use native::{CloseReason, MAX_DETAIL_BYTES, Refusal, VERSION, alone_bits, begin_alone, write_alone};

pub use yojimbo::{BodyFault, Extent, Fault, FaultKind, PacketFault};

use super::protocol::{Framing, Protocol};
use crate::store::SmallBytes;

/// Reads what [`write_alone`] wrote: the message's type and its body. `extent` says where a body ends that only its own code
/// can read and that has no length.
///
/// # Errors
/// Whatever in a packet would be refused.
pub fn read_alone(
    protocol: &Protocol,
    bytes: &[u8],
    extent: Extent<'_>,
) -> Result<(u16, SmallBytes), Refusal> {
    match protocol.framing() {
        Framing::Native => native::read_alone(protocol, bytes),
        Framing::Yojimbo(_) => yojimbo::read_alone(protocol, bytes, extent),
    }
}
