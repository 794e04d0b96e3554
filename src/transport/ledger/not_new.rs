//! Packets that are dropped because they are not new.

use core::fmt;

/// Why a received packet is not new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotNew {
    /// It is older than the window of received packets.
    Stale,
    /// It was received before.
    Duplicate,
    /// It is older than the newest received packet, and order was asked for.
    OutOfOrder,
}

impl fmt::Display for NotNew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotNew::Stale => "The packet is older than the window of received packets.",
            NotNew::Duplicate => "The packet was received before.",
            NotNew::OutOfOrder => {
                "The packet is older than the newest received one, and order was asked for."
            }
        })
    }
}

impl std::error::Error for NotNew {}
