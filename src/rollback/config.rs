//! The settings that all players of a rollback game share, and their bounds.

use std::sync::Arc;

use crate::wire::{BitReader, Schema};

/// The maximum of players; spectators share the 16 indices.
pub const MAX_PLAYERS: usize = 16;
/// The maximum of frames that run ahead of confirmed inputs.
pub const MAX_WINDOW: u32 = 32;
/// The maximum delay of a player's own input, in frames.
pub const MAX_DELAY: u32 = 32;
/// The maximum of bits in an input.
pub const MAX_INPUT_BITS: usize = 1024;

/// How many frames' inputs are kept. A peer runs at most a window and a delay ahead of what it has, which is at most as
/// far ahead of what this side has confirmed; the rest of the ring is the past, for spectators and for peers that lack
/// inputs.
pub(super) const RING: u32 = 256;
/// An honest peer's inputs are never further ahead of the confirmed frame than this.
pub(super) const MAX_AHEAD: u32 = 2 * (MAX_WINDOW + MAX_DELAY) + 2;
/// How many confirmed frames are kept for peers that lack them.
pub(super) const MAX_BEHIND: u32 = RING - MAX_AHEAD - 2;

/// The number of bits in an input, and which are valid.
#[derive(Clone, Debug)]
pub struct InputShape {
    pub(super) min_bits: usize,
    pub(super) max_bits: usize,
    /// Bits of the input before a player's first one: all are zero.
    pub(super) neutral_bits: usize,
    schema: Option<Arc<Schema>>,
}

impl InputShape {
    /// Inputs of this many arbitrary bits, 1 to [`MAX_INPUT_BITS`].
    pub fn of_bits(bits: usize) -> Self {
        let bits = bits.clamp(1, MAX_INPUT_BITS);
        InputShape { min_bits: bits, max_bits: bits, neutral_bits: bits, schema: None }
    }

    /// Inputs of a declared class, with at most [`MAX_INPUT_BITS`]; None for one that has more, or of which zero bits
    /// are no input.
    pub fn of_schema(schema: Arc<Schema>) -> Option<Self> {
        let (min_bits, max_bits) = (schema.min_bits(), schema.max_bits());
        let zeros = [0; MAX_INPUT_BITS / 8];
        let mut reader = BitReader::with_range(&zeros, 0, max_bits.min(MAX_INPUT_BITS));
        let is_input = max_bits <= MAX_INPUT_BITS && schema.read(&mut reader, &mut Vec::new()).is_ok();
        let neutral_bits = max_bits.checked_sub(reader.remaining_bits())?;
        is_input.then_some(InputShape { min_bits, max_bits, neutral_bits, schema: Some(schema) })
    }

    /// The minimum and maximum of bits in an input.
    pub fn bounds(&self) -> (usize, usize) {
        (self.min_bits, self.max_bits)
    }

    /// The maximum of bits in an input.
    pub fn max_bits(&self) -> usize {
        self.max_bits
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bits.div_ceil(8)
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.min_bits == self.max_bits
    }

    /// Whether a peer's bits are a valid input, every value in its bounds. `row` is scratch memory.
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

/// The settings of a rollback game; the same for all sides except `me` and `delay`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The mask of the players, of 16 indices.
    pub players: u16,
    /// The index of this side.
    pub me: u8,
    pub input: InputShape,
    /// The delay of this side's own input, in frames.
    pub delay: u32,
    /// How many frames may run ahead of confirmed inputs, at least one.
    pub window: u32,
    /// Frames between compared states; 0 compares none.
    pub check_every: u32,
    /// Frames run in a second.
    pub rate: u32,
    /// A mark of the state's names and types, the same on all sides; 0 where there is none.
    pub state: u64,
}

impl Config {
    /// A game with usual settings: two frames of delay, a window of eight, 60 frames a second.
    pub fn new(players: u8, me: u8, input: InputShape) -> Self {
        let players = u16::MAX >> (MAX_PLAYERS - usize::from(players).clamp(1, MAX_PLAYERS));
        Config { players, me, input, delay: 2, window: 8, check_every: 16, rate: 60, state: 0 }
    }
}

/// The indices of a mask, in rising order.
pub(super) fn indices(mask: u16) -> impl Iterator<Item = usize> {
    (0..MAX_PLAYERS).filter(move |index| mask >> index & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn an_input_of_zero_bits_is_complete() {
        let shape = |kind| InputShape::of_schema(Arc::new(Schema::new([("field", kind)]).unwrap()));
        let words = vec![5];
        let common = |words| Kind::Common { item: Box::new(Kind::Bits { bits: 8 }), words };
        for (kind, bits) in [
            (Kind::Bits { bits: 3 }, 3),
            (Kind::Text { max_bytes: 5 }, 8),
            (Kind::Data { max_bytes: 100 }, 8),
            (common(words), 9),
        ] {
            let shape = shape(kind).unwrap();
            assert_eq!(shape.neutral_bits, bits);
            assert!(shape.accepts(&[0; 2], bits, &mut Vec::new()));
        }
        // Where 0 is the common value, it is written shorter.
        assert!(shape(common(vec![0])).is_none());
    }

    #[test]
    fn the_ring_has_room_for_the_past_and_the_future() {
        const { assert!(MAX_BEHIND > 2 * MAX_WINDOW && MAX_AHEAD + MAX_BEHIND < RING) };
    }
}
