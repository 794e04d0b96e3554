//! The packets between peers and a relay.

use crate::rendezvous::bytes::MAGIC;
use crate::rendezvous::relay::token::RelayToken;
use crate::rendezvous::secrets::ShortTag;
use crate::wire::BitReader;
use crate::wire::packet::{Part, packet, to_bytes};

/// Bytes that the relay's header adds to a datagram.
pub const RELAY_HEADER_BYTES: usize = 1 + 1 + 8;

packet! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::rendezvous) enum RelayPacket as u8 {
        /// A peer claims its side of a channel, with the relay's cookie once it has one.
        0x31 => Bind { cookie: ShortTag, token: RelayToken },
        /// The cookie that proves the peer's address, and its channel.
        0x32 => Challenge { channel: u64, cookie: ShortTag },
        /// The side is bound to the peer for now.
        0x33 => Bound { channel: u64 },
        /// The datagram is behind the other parts.
        0x34 => Data { channel: u64 },
    }
}

impl RelayPacket {
    pub(in crate::rendezvous) fn write(&self, out: &mut Vec<u8>) {
        out.push(MAGIC);
        out.extend(to_bytes::<RelayPacket>(self));
    }

    /// Reads a packet, and the datagram that it carries: an empty one if it is none of data.
    pub(in crate::rendezvous) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = BitReader::new(bytes.strip_prefix(&[MAGIC])?);
        let packet = <RelayPacket as Part>::read(&mut reader).ok()?;
        let carried = &bytes[1 + reader.position() / 8..];
        (carried.is_empty() || matches!(packet, RelayPacket::Data { .. })).then_some((packet, carried))
    }
}
