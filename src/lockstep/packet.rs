//! The payloads: what one player sends another, repeated until it is acked.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::TurnNumber;
use super::entry::TurnEntry;
use super::fault::Fault;
use super::joining::JoinWord;
use crate::store::sequence::nearest_of;
use crate::wire::BitReader;
use crate::wire::packet::{AtLeastOne, Counted, Low, OrDefault, Part, packet};

/// The maximum of entries in a payload, and in a run of copies.
pub const MAX_ENTRIES: usize = 15;
/// Bits in front of the entries.
pub const HEADER_BITS: usize = 1 + 8 + 17 + 1 + 8 + 4;
/// The maximum of rows in an answer.
pub const MAX_ROWS: usize = 100;
/// The maximum of fields in an object.
pub const MAX_FIELDS: usize = 63;
/// The coded margin that means unknown.
pub const UNKNOWN: i8 = 127;
/// A margin's unit in milliseconds.
pub const MARGIN_MS: i64 = 8;

packet! {
    /// A peer's report on a departing player.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DepartureWord {
        pub player: Low<u8, 4>,
        /// The newest turn for which the peer has its data.
        pub have: u8,
        /// The first turn without it, once decided.
        pub out: Option<u8>,
    }
}

packet! {
    /// Entries of consecutive turns.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Run {
        /// The low bits of the first one's turn.
        pub first: u8,
        pub entries: AtLeastOne<TurnEntry, 4, MAX_ENTRIES>,
    }
}

packet! {
    /// Entries of a departing player.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CopiedRun {
        pub player: Low<u8, 4>,
        pub run: Run,
    }
}

packet! {
    /// A question about a turn's log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LogQuery as Low<u8, 1> {
        /// Hashes of objects, from this index on.
        0 => Objects { from: u16 },
        /// The fields of one object.
        1 => Fields { class: u8, id: u32 },
    }
}

packet! {
    /// The answer to a question about a turn's log.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum LogReply as Low<u8, 1> {
        /// (class, id, hash) of objects, from this index on, of `total`.
        0 => Objects { from: u16, total: u16, rows: Counted<(u8, u32, u32), 7, MAX_ROWS> },
        /// One object's fields, if it exists.
        1 => Fields { class: u8, id: u32, words: Option<Counted<i64, 6, MAX_FIELDS>> },
    }
}

packet! {
    /// What most payloads don't have.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct More {
        /// The mask of the players that this one can't reach or wants out.
        pub against: OrDefault<u16>,
        pub departures: Counted<DepartureWord, 4, MAX_ENTRIES>,
        pub copies: Counted<CopiedRun, 4, MAX_ENTRIES>,
        pub question: Option<(u16, LogQuery)>,
        pub answer: Option<(u16, LogReply)>,
        pub joining: Option<JoinWord>,
    }
}

packet! {
    /// A parsed payload, or one to write.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Payload {
        pub waiting: bool,
        pub ack: u8,
        /// The margins of the receiver's data and of all players', if sent.
        pub margins: Option<(i8, i8)>,
        pub own: OrDefault<Run>,
        pub more: OrDefault<More>,
    }
}

impl Payload {
    /// A payload without entries.
    pub fn of(more: More) -> Self {
        Payload { more, ..Payload::default() }
    }

    /// The payload of these bytes.
    ///
    /// # Errors
    /// Says how it breaks the protocol.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = BitReader::new(bytes);
        let payload = <Payload as Part>::read(&mut reader)?;
        reader.finish()?;
        match &payload.more.joining {
            Some(JoinWord::Serve(served)) if !served.is_fillable() => Err(Fault::Unfillable),
            _ => Ok(payload),
        }
    }
}

/// The turn with these low bits that is nearest to `turn`.
pub(super) fn near(low: u8, turn: TurnNumber) -> TurnNumber {
    nearest_of(low.into(), 8, turn.into()) as TurnNumber
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockstep::entry::Commands;
    use crate::wire::packet::{from_bytes, to_bytes};
    use crate::wire::{BitSink, BitWriter, ReadError};

    #[test]
    fn what_is_not_there_takes_a_bit_and_has_no_other_form() {
        let empty = Payload::of(More::default());
        assert_eq!(<Payload as Part>::bits(&empty), 1 + 8 + 1 + 1 + 1);
        let mut long = empty.clone();
        long.own.first = 9;
        assert_eq!(from_bytes::<Payload>(&to_bytes::<Payload>(&long)), Err(ReadError::NotShortest));
        let mut entry = TurnEntry::default();
        entry.checks.back = 3;
        long.own.entries.push(entry);
        assert_eq!(from_bytes::<Payload>(&to_bytes::<Payload>(&long)), Err(ReadError::NotShortest));
    }

    #[test]
    fn a_short_command_has_no_long_form() {
        let read = |length: u64| {
            let mut writer = BitWriter::new();
            writer.bits(1, 6);
            writer.bool(true);
            writer.bits(length, 10);
            writer.packed(&[7; 16][..length as usize]);
            let bytes = writer.into_bytes();
            Commands::read(&mut BitReader::new(&bytes)).map(|commands| commands.len())
        };
        assert_eq!(read(16), Ok(1));
        assert_eq!(read(15), Err(ReadError::NotShortest));
    }
}
