//! The faults that a peer may commit in yojimbo's framing, with yojimbo's classification.

use core::fmt;

use crate::transport::parts::ChannelFault;
use crate::wire::ReadError;

/// Yojimbo's classification of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A packet outside of its messages.
    ReadPacketFailed,
    /// A channel's messages in a packet.
    FailedToSerialize,
    /// A message or fragment that can't belong where it says.
    Desync,
}

/// The fault of a packet, or of its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    text: String,
}

impl Fault {
    pub(super) fn packet(text: impl Into<String>) -> Self {
        Fault { kind: FaultKind::ReadPacketFailed, text: text.into() }
    }

    pub(super) fn messages(text: String) -> Self {
        Fault { kind: FaultKind::FailedToSerialize, text }
    }

    /// The fault of a message that the channel refuses.
    pub(crate) fn desync(channel: u8, fault: ChannelFault) -> Self {
        let text = match fault {
            ChannelFault::Window => format!("a message of channel {channel} is beyond the receive window"),
            ChannelFault::Fragments => format!("the fragments of a block on channel {channel} disagree"),
            ChannelFault::FragmentSize => {
                format!("a fragment of a block on channel {channel} is too short or reaches too far")
            }
        };
        Fault { kind: FaultKind::Desync, text }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Fault::packet(format!("a packet: {error}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
