//! A ghost's name in a message. Its promises are documented where names are given.

/// A ghost as one client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostName {
    /// Among the client's ghosts of the class.
    pub id: u32,
    /// The low bits of a tick at which the id was this ghost's.
    pub as_of: u16,
}

impl GhostName {
    /// Bits of a name.
    pub const BITS: u32 = 32;

    /// As one number, with the most variable part in the low bits.
    pub fn number(self) -> u32 {
        // Ids are below 2^16.
        self.id | u32::from(self.as_of) << 16
    }

    pub fn from_number(number: u32) -> Self {
        GhostName { id: number & 0xFFFF, as_of: (number >> 16) as u16 }
    }
}
