//! The packets between peers and a relay.

use crate::rendezvous::bytes::{Fields, MAGIC};
use crate::rendezvous::relay::token::{RelayToken, TOKEN_BYTES};
use crate::rendezvous::secrets::{ShortTag, TAG_BYTES};

/// Bytes that the relay's header adds to a datagram.
pub const RELAY_HEADER_BYTES: usize = 1 + 1 + 8;

const BIND_BYTES: usize = 2 + TAG_BYTES + TOKEN_BYTES;

mod kind {
    pub(super) const BIND: u8 = 0x31;
    pub(super) const CHALLENGE: u8 = 0x32;
    pub(super) const BOUND: u8 = 0x33;
    pub(super) const DATA: u8 = 0x34;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rendezvous) enum RelayPacket<'a> {
    /// A peer claims its side of a channel, with the relay's cookie once it has one.
    Bind {
        cookie: ShortTag,
        token: RelayToken,
    },
    /// The cookie that proves the peer's address, and its channel.
    Challenge {
        channel: u64,
        cookie: ShortTag,
    },
    /// The side is bound to the peer for now.
    Bound {
        channel: u64,
    },
    Data {
        channel: u64,
        payload: &'a [u8],
    },
}

impl<'a> RelayPacket<'a> {
    pub(in crate::rendezvous) fn write(&self, out: &mut Vec<u8>) {
        match self {
            RelayPacket::Bind { cookie, token } => {
                out.extend_from_slice(&[MAGIC, kind::BIND]);
                out.extend_from_slice(cookie);
                out.extend_from_slice(token.bytes());
            }
            RelayPacket::Challenge { channel, cookie } => {
                out.extend_from_slice(&[MAGIC, kind::CHALLENGE]);
                out.extend_from_slice(&channel.to_le_bytes());
                out.extend_from_slice(cookie);
            }
            RelayPacket::Bound { channel } => {
                out.extend_from_slice(&[MAGIC, kind::BOUND]);
                out.extend_from_slice(&channel.to_le_bytes());
            }
            RelayPacket::Data { channel, payload } => {
                out.extend_from_slice(&[MAGIC, kind::DATA]);
                out.extend_from_slice(&channel.to_le_bytes());
                out.extend_from_slice(payload);
            }
        }
    }

    pub(in crate::rendezvous) fn read(datagram: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(datagram);
        let [magic, kind] = fields.array()?;
        if magic != MAGIC {
            return None;
        }
        let packet = match kind {
            kind::BIND if datagram.len() == BIND_BYTES => {
                RelayPacket::Bind { cookie: fields.array()?, token: RelayToken::from_bytes(fields.array()?) }
            }
            kind::CHALLENGE => RelayPacket::Challenge { channel: fields.u64()?, cookie: fields.array()? },
            kind::BOUND => RelayPacket::Bound { channel: fields.u64()? },
            kind::DATA => return Some(RelayPacket::Data { channel: fields.u64()?, payload: fields.0 }),
            _ => return None,
        };
        fields.0.is_empty().then_some(packet)
    }
}
