//! One player's data for one turn: its commands, perhaps a control of pace or speed, and checks of turns it has run.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::{MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_ENTRY_BYTES, Pace};
use crate::wire::packet::{AtLeastOne, FromOne, Low, OrDefault, Part, at_most, packet};
use crate::wire::{BitReader, BitSink, ReadError};

/// The maximum of checks in an entry.
pub const MAX_CHECKS: usize = 3;
/// The maximum distance in turns from a check to its entry.
pub const MAX_BACK: u8 = 64;

packet! {
    /// A control of how turns run, valid from the turn that it is part of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Control as Low<u8, 2> {
        /// Length and delay; only the deciding player may set them.
        0 => Pace(pace: Pace),
        1 => Pause(paused: bool),
        /// In steps of 10 %, 1 to 64.
        2 => Speed(speed: FromOne<6>),
        /// A newcomer is let in; only the player whose part it is may say it.
        3 => Join(player: Low<u8, 4>),
    }
}

/// A check of the world after a turn. Only the CRC is sent; it covers the draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnCheck {
    /// Covers the world's values and the draw.
    pub crc: u32,
    /// A draw of the shared generator.
    pub draw: u16,
}

packet! {
    /// Checks of consecutive turns.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PastChecks {
        /// How many turns the newest is older than the entry: up to [`MAX_BACK`].
        pub back: FromOne<6>,
        /// Their CRCs, the oldest first.
        pub crcs: AtLeastOne<u32, 2, MAX_CHECKS>,
    }
}

packet! {
    /// One player's data for one turn.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TurnEntry {
        pub commands: OrDefault<Commands>,
        pub control: Option<Control>,
        pub checks: OrDefault<PastChecks>,
    }
}

/// The commands of a turn: those shorter than [`LONG`] have their length in fewer bits.
pub struct Commands;

const LONG: u64 = 16;

impl Part for Commands {
    type Value = Vec<Box<[u8]>>;

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        sink.bits(value.len() as u64, 6);
        for command in value {
            let length = command.len() as u64;
            sink.bool(length >= LONG);
            sink.bits(length, if length < LONG { 4 } else { 10 });
            sink.packed(command);
        }
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        let count = at_most(reader.bits(6)?, MAX_COMMANDS as u64)?;
        let mut left = MAX_ENTRY_BYTES as u64;
        let mut commands = Vec::new();
        for _ in 0..count {
            let is_long = reader.bool()?;
            let length = reader.bits(if is_long { 10 } else { 4 })?;
            if is_long && length < LONG {
                return Err(ReadError::NotShortest);
            }
            left -= at_most(length, left.min(MAX_COMMAND_BYTES as u64))?;
            let bytes: Result<Vec<u8>, ReadError> = (0..length).map(|_| u8::read(reader)).collect();
            commands.push(bytes?.into());
        }
        Ok(commands)
    }
}

impl TurnEntry {
    /// Its size in bits.
    pub fn bits(&self) -> usize {
        <Self as Part>::bits(self)
    }
}
