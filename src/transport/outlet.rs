//! The destination of a connection's packets.

use crate::store::Packets;

/// The layer below, as a connection sees it: packets are written once, in the memory in which they are sealed.
pub trait Outlet {
    /// Sends a packet under this number. `write` appends it to the memory that it is given.
    fn push(&mut self, number: u64, write: &mut dyn FnMut(&mut Vec<u8>));
}

/// Packets that are kept unsealed.
impl Outlet for Packets {
    fn push(&mut self, number: u64, write: &mut dyn FnMut(&mut Vec<u8>)) {
        self.push_with(number, write);
    }
}
