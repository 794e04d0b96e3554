//! The encoding of a connection packet: the bits of acks, credit and messages. The channels don't know it.

mod chunk_items;
pub(crate) mod native;
mod refusal;
#[cfg(test)]
mod vectors;
pub(crate) mod yojimbo;

pub use native::{CloseReason, MAX_DETAIL_BYTES, VERSION, alone_bits, begin_alone, write_alone};
pub use refusal::Refusal;
pub use yojimbo::{Extent, Fault, FaultKind};

use super::protocol::{Framing, Protocol};
use crate::store::SmallBytes;

/// Reads the output of [`write_alone`]: the message's type and its body. `extent` finds the end of a body that only
/// its own code can read and that has no length.
///
/// # Errors
///
/// Whatever a packet would be refused for.
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
