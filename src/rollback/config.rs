//! What all players of a rollback game agree on before it starts, and the bounds of it.

use std::sync::Arc;

use crate::wire::{BitReader, Schema};

/// Players of a game, at most; spectators have an index of the same 16.
pub const MAX_PLAYERS: usize = 16;
/// Frames that run ahead of confirmed inputs, at most.
pub const MAX_WINDOW: u32 = 32;
/// Frames by which a player's own input is delayed, at most.
pub const MAX_DELAY: u32 = 32;
/// Bits of an input, at most.
pub const MAX_INPUT_BITS: usize = 1024;

/// Frames whose inputs are kept. A peer runs at most a window and a delay ahead of what it has, which is at most as much ahead of
/// what this side confirmed; what is left of the ring is the past that spectators and peers that lack something are given.
pub(super) const RING: u32 = 256;
/// An input this many frames ahead of what is confirmed can't be of an honest peer.
pub(super) const MAX_AHEAD: u32 = 2 * (MAX_WINDOW + MAX_DELAY) + 2;
/// Of confirmed frames, this many are kept for who lacks them.
pub(super) const MAX_BEHIND: u32 = RING - MAX_AHEAD - 2;

/// The bits of an input, and what they must be.
#[derive(Clone, Debug)]
pub struct InputShape {
    pub(super) min_bits: usize,
    pub(super) max_bits: usize,
    schema: Option<Arc<Schema>>,
}

impl InputShape {
    /// Inputs that are any pattern of this many bits, 1 to [`MAX_INPUT_BITS`].
    pub fn of_bits(bits: usize) -> Self {
        let bits = bits.clamp(1, MAX_INPUT_BITS);
        InputShape { min_bits: bits, max_bits: bits, schema: None }
    }

    /// Inputs of a declared class, of at most [`MAX_INPUT_BITS`].
    pub fn of_schema(schema: Arc<Schema>) -> Option<Self> {
        let (min_bits, max_bits) = (schema.min_bits(), schema.max_bits());
        (max_bits <= MAX_INPUT_BITS).then_some(InputShape { min_bits, max_bits, schema: Some(schema) })
    }

    /// Bits that an input takes at least, and at most.
    pub fn bounds(&self) -> (usize, usize) {
        (self.min_bits, self.max_bits)
    }

    /// Bits that an input takes at most.
    pub fn max_bits(&self) -> usize {
        self.max_bits
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bits.div_ceil(8)
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.min_bits == self.max_bits
    }

    /// Whether bits of a peer are an input: all of them, and each value in its bounds. `row` is memory to read into.
    pub(super) fn accepts(&self, bytes: &[u8], bits: usize, row: &mut Vec<u8>) -> bool {
        if !(self.min_bits..=self.max_bits).contains(&bits) {
            return false;
        }
        let Some(schema) = &self.schema else { return true };
        let mut reader = BitReader::with_range(bytes, 0, bits);
        row.clear();
        schema.read(&mut reader, row).is_ok() && reader.remaining_bits() == 0
    }
}

/// How a rollback game is played. All but `me` and `delay` must be the same for all.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which of the 16 indices are players: bit by index.
    pub players: u16,
    /// This side's own index of these.
    pub me: u8,
    pub input: InputShape,
    /// Frames by which this side's own input is delayed.
    pub delay: u32,
    /// Frames that may run ahead of confirmed inputs, at least one.
    pub window: u32,
    /// Frames between two states that are compared; 0 compares none.
    pub check_every: u32,
    /// Frames that run in a second.
    pub rate: u32,
    /// A mark of the state's names and types, the same on all sides; 0 where there is none.
    pub state: u64,
}

impl Config {
    /// A game of this many players with usual numbers: two frames of delay, a window of eight, 60 frames a second.
    pub fn new(players: u8, me: u8, input: InputShape) -> Self {
        let players = u16::MAX >> (MAX_PLAYERS - usize::from(players).clamp(1, MAX_PLAYERS));
        Config { players, me, input, delay: 2, window: 8, check_every: 16, rate: 60, state: 0 }
    }
}

/// The indices of a mask, rising.
pub(super) fn indices(mask: u16) -> impl Iterator<Item = usize> {
    (0..MAX_PLAYERS).filter(move |index| mask >> index & 1 == 1)
}

/// The number next to `around` that has these low bits.
pub(super) fn near(low: u64, bits: u32, around: u32) -> i64 {
    let span = 1i64 << bits;
    let difference = (low.cast_signed() - i64::from(around)).rem_euclid(span);
    i64::from(around) + if difference >= span / 2 { difference - span } else { difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_give_the_nearest_number() {
        for around in [0u32, 1, 5, 4095, 4096, 70_000, u32::MAX - 3] {
            for offset in -2048i64..2048 {
                let number = i64::from(around) + offset;
                assert_eq!(near((number & 0xFFF).cast_unsigned(), 12, around), number);
            }
        }
    }

    #[test]
    fn the_ring_has_room_for_the_past_and_the_future() {
        const { assert!(MAX_BEHIND > 2 * MAX_WINDOW && MAX_AHEAD + MAX_BEHIND < RING) };
    }
}
