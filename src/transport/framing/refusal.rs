//! Why a packet's contents are refused.

use core::fmt;

use crate::wire::ReadError;

/// Messages of one packet. A datagram has fewer than 10,000 bits and a message takes at least one; a larger packet
/// carries one message. Without this limit, messages of one bit each would take a hundred times their packet's
/// memory.
pub(crate) const MAX_PACKET_MESSAGES: usize = 16_384;

/// Why a packet is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer speaks another version or has another protocol.
    Mismatch,
    /// The standard or the protocol forbids these bits.
    Bits(ReadError),
    /// The first packet has no hello.
    NoHello,
    /// Channels don't ascend, or credit is for a channel without credit.
    Channel,
    /// Ack ranges walk too far.
    Ranges,
    /// A number is in the last tier of a relative integer, or too large for what it counts.
    RelativeInteger,
    /// A layer's message on a kind of channel that doesn't carry such.
    Type,
    /// A body is longer than its type or its channel allows, or a close has a text of no bytes.
    Length,
    /// More messages than a packet may have.
    Messages,
    /// Its messages would take more memory than a packet's may. This breaks no rule: the packet is dropped.
    Memory,
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Refusal::Bits(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Mismatch => f.write_str("the peer's protocol differs"),
            Refusal::Bits(error) => error.fmt(f),
            Refusal::NoHello => f.write_str("the first packet has no hello"),
            Refusal::Channel => f.write_str("channels are out of order or of the wrong kind"),
            Refusal::Ranges => f.write_str("ack ranges walk too far"),
            Refusal::RelativeInteger => f.write_str("a difference is larger than what it counts can be"),
            Refusal::Type => f.write_str("a message of this type is not for channels of this kind"),
            Refusal::Length => f.write_str("a message is longer than its class or its channel allows"),
            Refusal::Messages => {
                write!(f, "the packet has more than {MAX_PACKET_MESSAGES} messages")
            }
            Refusal::Memory => f.write_str("the packet's messages would take too much memory"),
        }
    }
}
