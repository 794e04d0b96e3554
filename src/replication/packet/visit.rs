//! The visit: a client's stay in a server's world, as the client's first packets announce it.
//!
//! Promises: a visit's number is unique among all visits to all worlds. A client that finds the number of its last visit under
//! `continues` knows that the server still uses the ids of that visit, and keeps its ghosts.

use super::Violation;
use crate::wire::{BitReader, BitSink, BitWriter};

/// A client's stay in a server's world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication) struct Visit {
    pub(in crate::replication) number: u64,
    pub(in crate::replication) continues: Option<EarlierVisit>,
}

/// An earlier visit whose ids the server still uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication) struct EarlierVisit {
    pub(in crate::replication) number: u64,
    /// The last tick of which the server knows what the client was sent.
    pub(in crate::replication) until: u32,
}

impl Visit {
    /// The bits of the visit in a packet, without its flag.
    pub(in crate::replication) fn bits(self) -> usize {
        64 + 16 + 1 + if self.continues.is_some() { 64 + 32 } else { 0 }
    }

    /// Writes the visit into a packet of this tick.
    pub(in crate::replication) fn write(self, tick: u32, bits: &mut BitWriter) {
        bits.bits(self.number, 64);
        bits.bits(u64::from(tick >> 16), 16);
        bits.bool(self.continues.is_some());
        if let Some(EarlierVisit { number, until }) = self.continues {
            bits.bits(number, 64);
            bits.bits(until.into(), 32);
        }
    }

    /// Reads a visit and the whole tick of its packet, of which `low` are the low bits.
    pub(in crate::replication) fn read(
        reader: &mut BitReader<'_>,
        low: u32,
    ) -> Result<(Self, u32), Violation> {
        let number = reader.bits(64)?;
        // Both have 16 bits.
        let tick = (reader.bits(16)? as u32) << 16 | low;
        let continues = match reader.bool()? {
            true => Some(EarlierVisit { number: reader.bits(64)?, until: reader.bits(32)? as u32 }),
            false => None,
        };
        Ok((Visit { number, continues }, tick))
    }
}
