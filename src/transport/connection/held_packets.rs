//! Packets of the peer whose messages only code above the transport can read: acked, and held until it takes them.

use crate::transport::framing::native::ReadContext;

/// Bytes of packets that are held unread; beyond them they are dropped, and not acked.
const MAX_HELD_BYTES: usize = 1 << 20;

/// The cost of a held packet besides its bytes.
const HELD_OVERHEAD_BYTES: usize = 64;

/// Packets that were acked, for the layer that can read them.
#[derive(Debug, Default)]
pub(super) struct HeldPackets {
    pub(super) packets: Vec<HeldPacket>,
    bytes: usize,
    /// Packets that were held are being read.
    pub(super) is_being_read: bool,
}

#[derive(Debug)]
pub(super) struct HeldPacket {
    pub(super) context: ReadContext,
    pub(super) payload: Box<[u8]>,
}

impl HeldPackets {
    /// Holds a packet; false if there is no memory for it.
    pub(super) fn push(&mut self, context: ReadContext, payload: &[u8]) -> bool {
        let bytes = payload.len() + HELD_OVERHEAD_BYTES;
        let has_room = self.bytes + bytes <= MAX_HELD_BYTES;
        if has_room {
            self.bytes += bytes;
            self.packets.push(HeldPacket { context, payload: payload.into() });
        }
        has_room
    }
}
