//! The name of a peer's connection.

use crate::netcode::ClientHandle;

/// Names one connection of an endpoint. It is never reused for the next peer in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerHandle {
    /// The slot. For a server's client this is its client index on the wire.
    pub slot: u32,
    /// Which connection of that slot, counted from 0.
    pub generation: u32,
}

impl PeerHandle {
    /// Both as one number, the slot in the low half: for columns.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The handle with this [`PeerHandle::number`].
    pub fn from_number(number: u64) -> Self {
        // The halves of the number.
        PeerHandle { slot: number as u32, generation: (number >> 32) as u32 }
    }
}

impl From<ClientHandle> for PeerHandle {
    fn from(client: ClientHandle) -> Self {
        PeerHandle { slot: client.slot, generation: client.generation }
    }
}

impl From<PeerHandle> for ClientHandle {
    fn from(peer: PeerHandle) -> Self {
        ClientHandle { slot: peer.slot, generation: peer.generation }
    }
}
