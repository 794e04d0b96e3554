//! A match as bytes: the settings at its start, then for every turn what ran and the world's check after it; now and
//! then a snapshot, from which a replay can begin.
//!
//! A file is `TWREC` and a version byte, then records: kind (1 byte), length (4, little-endian), body, CRC-32 of all
//! that (4). The first record holds the match's settings. Reading takes at most as much memory as the file has bytes;
//! if the file is truncated or damaged, the records before that are whole and the error says where it is.
//!
//! | kind | body |
//! |---|---|
//! | 1 settings | seed (8), protocol hash (8), step in us (4), players (2), then for the names and the game's own bytes 4: length, and the bytes |
//! | 2 turn | turn (4), steps, delay, speed, flags (1 each; 1: paused, 2: checked, 4: somebody joined), players (2), left (2), joined (2) where somebody did, CRC (4) and draw (2) where checked, commands (2: how many), each player (1), length (2), bytes |
//! | 3 snapshot | turn (4), generator's state (32), bytes: the world after that turn |

use core::fmt;

use super::config::{MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_PLAYERS, TurnNumber};
use super::entry::TurnCheck;
use super::machine::StartedTurn;
use crate::wire::packet::{Below, Bytes, Counted, Part, packet, to_bytes};
use crate::wire::{BitReader, BitSink, BitWriter};

/// The bytes that every recording begins with; the last is the version.
pub const MAGIC: [u8; 6] = *b"TWREC\x01";
const PREFIX: usize = 1 + 4;
const SUFFIX: usize = 4;
/// The maximum size of a record, which a snapshot needs.
pub const MAX_RECORD: usize = 64 << 20;

const SETTINGS: u8 = 1;
const TURN: u8 = 2;
const SNAPSHOT: u8 = 3;

packet! {
    /// The settings of a match.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MatchSettings {
        pub seed: u64,
        /// The hash of the commands' classes.
        pub hash: u64,
        /// The real time of a sub-turn in microseconds.
        pub step_us: u32,
        pub players: u16,
        /// The players' names, and bytes of the game's own (a map, options).
        pub names: Bytes<32, MAX_RECORD>,
        pub about: Bytes<32, MAX_RECORD>,
    }
}

packet! {
    /// The part that every turn has, in front of parts that only some have.
    struct TurnHead {
        turn: i32,
        steps: u8,
        delay: u8,
        speed: u8,
        flags: u8,
        players: u16,
        left: u16,
    }
}

const MAX_TURN_COMMANDS: usize = MAX_COMMANDS * MAX_PLAYERS;

/// The commands of a turn, each with its player.
type TurnCommands = Counted<(Below<MAX_PLAYERS>, Bytes<16, MAX_COMMAND_BYTES>), 16, MAX_TURN_COMMANDS>;

/// One record of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchRecord {
    Settings(MatchSettings),
    Turn(StartedTurn, Option<TurnCheck>),
    /// The world after a turn, with the generator's state.
    Snapshot {
        turn: TurnNumber,
        random: [u8; 32],
        state: Vec<u8>,
    },
}

/// Why a recording can't be read, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingError {
    /// The first bytes aren't a recording's.
    NotARecording,
    /// The recording is of another version.
    Version(u8),
    /// The file ends inside a record.
    CutShort { at: usize },
    /// A record's bytes have changed since they were written.
    Damaged { at: usize },
    /// A record that no writer makes.
    Forged { at: usize, what: &'static str },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::NotARecording => write!(f, "not a recording of a match"),
            RecordingError::Version(version) => {
                write!(f, "a recording of version {version}, and this is version {}", MAGIC[5])
            }
            RecordingError::CutShort { at } => write!(f, "truncated: the record at byte {at} has no end"),
            RecordingError::Damaged { at } => write!(f, "damaged: the record at byte {at} has another CRC"),
            RecordingError::Forged { at, what } => write!(f, "forged: the record at byte {at} has {what}"),
        }
    }
}

impl core::error::Error for RecordingError {}

/// Why a record can't be written: it has this many bytes, and [`MAX_RECORD`] is the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTooLarge(pub usize);

impl fmt::Display for RecordTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record must be at most {MAX_RECORD} bytes, not {}", self.0)
    }
}

impl core::error::Error for RecordTooLarge {}

/// Appends a record to a file's bytes.
///
/// # Errors
/// It is larger than readers take; nothing is appended.
pub fn write(record: &MatchRecord, out: &mut Vec<u8>) -> Result<(), RecordTooLarge> {
    let start = out.len();
    let large = match record {
        MatchRecord::Settings(settings) => settings.names.len() + settings.about.len() + 64,
        MatchRecord::Snapshot { state, .. } => state.len() + 36,
        MatchRecord::Turn(..) => 0,
    };
    if large > MAX_RECORD {
        return Err(RecordTooLarge(large));
    }
    out.push(match record {
        MatchRecord::Settings(_) => SETTINGS,
        MatchRecord::Turn(..) => TURN,
        MatchRecord::Snapshot { .. } => SNAPSHOT,
    });
    out.extend_from_slice(&[0; 4]);
    match record {
        MatchRecord::Settings(settings) => out.extend(to_bytes::<MatchSettings>(settings)),
        MatchRecord::Turn(turn, check) => out.extend(turn_bytes(turn, *check)),
        MatchRecord::Snapshot { turn, random, state } => {
            out.extend_from_slice(&turn.to_le_bytes());
            out.extend_from_slice(random);
            out.extend_from_slice(state);
        }
    }
    let length = (out.len() - start - PREFIX) as u32;
    out[start + 1..start + PREFIX].copy_from_slice(&length.to_le_bytes());
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    Ok(())
}

fn turn_bytes(started: &StartedTurn, check: Option<TurnCheck>) -> Vec<u8> {
    let StartedTurn { turn, steps, delay, speed, paused, players, left, joined, ref commands } = *started;
    let flags = u8::from(paused) | u8::from(check.is_some()) << 1 | u8::from(joined != 0) << 2;
    let mut writer = BitWriter::new();
    TurnHead::write(&TurnHead { turn, steps, delay, speed, flags, players, left }, &mut writer);
    if joined != 0 {
        u16::write(&joined, &mut writer);
    }
    if let Some(TurnCheck { crc, draw }) = check {
        <(u32, u16)>::write(&(crc, draw), &mut writer);
    }
    writer.bits(commands.len() as u64, 16);
    for (player, command) in commands {
        <(u8, u16)>::write(&(*player, command.len() as u16), &mut writer);
        writer.packed(command);
    }
    writer.into_bytes()
}

/// Reads a recording record by record.
#[derive(Clone, Debug)]
pub struct RecordingReader<'a> {
    bytes: &'a [u8],
    at: usize,
    newest: Option<TurnNumber>,
    has_settings: bool,
}

impl<'a> RecordingReader<'a> {
    /// A reader of a whole recording's bytes.
    ///
    /// # Errors
    /// It is no recording, or of another version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, RecordingError> {
        let magic = bytes.first_chunk::<6>().ok_or(RecordingError::NotARecording)?;
        if magic[..5] != MAGIC[..5] {
            return Err(RecordingError::NotARecording);
        }
        if magic[5] != MAGIC[5] {
            return Err(RecordingError::Version(magic[5]));
        }
        Ok(RecordingReader { bytes, at: MAGIC.len(), newest: None, has_settings: false })
    }

    /// The offset of the next record.
    pub fn position(&self) -> usize {
        self.at
    }

    fn read(&mut self) -> Result<Option<MatchRecord>, RecordingError> {
        let at = self.at;
        let rest = &self.bytes[at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let cut = RecordingError::CutShort { at };
        let length =
            rest.get(1..PREFIX).and_then(|it| it.try_into().ok()).map(u32::from_le_bytes).ok_or(cut)?
                as usize;
        if length > MAX_RECORD {
            return Err(RecordingError::Forged { at, what: "more bytes than a record has" });
        }
        let whole = rest.get(..PREFIX + length + SUFFIX).ok_or(cut)?;
        let (body, crc) = whole.split_at(PREFIX + length);
        if crc32fast::hash(body).to_le_bytes() != crc {
            return Err(RecordingError::Damaged { at });
        }
        let mut reader = BitReader::new(&body[PREFIX..]);
        let forged = |what| RecordingError::Forged { at, what };
        let record = match body[0] {
            SETTINGS => read_settings(&mut reader),
            TURN => read_turn(&mut reader),
            SNAPSHOT => read_snapshot(&mut reader),
            _ => return Err(forged("no known kind")),
        };
        let record = record.ok_or(forged("values out of their bounds"))?;
        if reader.remaining_bits() > 0 {
            return Err(forged("bytes after its end"));
        }
        match &record {
            MatchRecord::Settings(_) if self.has_settings => return Err(forged("settings again")),
            MatchRecord::Settings(_) => self.has_settings = true,
            _ if !self.has_settings => return Err(forged("no settings in front of it")),
            MatchRecord::Turn(turn, _) => {
                if self.newest.is_some_and(|newest| turn.turn != newest + 1) {
                    return Err(forged("a turn out of order"));
                }
                self.newest = Some(turn.turn);
            }
            MatchRecord::Snapshot { turn, .. } if self.newest.is_some_and(|newest| *turn != newest) => {
                return Err(forged("a snapshot of another turn"));
            }
            MatchRecord::Snapshot { .. } => {}
        }
        self.at += whole.len();
        Ok(Some(record))
    }
}

impl Iterator for RecordingReader<'_> {
    type Item = Result<MatchRecord, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read().transpose();
        if matches!(read, Some(Err(_))) {
            self.at = self.bytes.len();
        }
        read
    }
}

fn read_settings(reader: &mut BitReader<'_>) -> Option<MatchRecord> {
    let settings = MatchSettings::read(reader).ok()?;
    (settings.players != 0 && settings.step_us != 0).then_some(MatchRecord::Settings(settings))
}

fn read_turn(reader: &mut BitReader<'_>) -> Option<MatchRecord> {
    let TurnHead { turn, steps, delay, speed, flags, players, left } = TurnHead::read(reader).ok()?;
    let joined = if flags & 4 == 4 { u16::read(reader).ok()? } else { 0 };
    let check = if flags & 2 == 2 { Some(<(u32, u16)>::read(reader).ok()?) } else { None };
    let commands = TurnCommands::read(reader).ok()?;
    let is_fine = flags <= 7
        && joined & !players == 0
        && speed != 0
        && turn != TurnNumber::MAX
        && commands.iter().all(|(player, _)| players >> player & 1 == 1);
    let commands = commands.into_iter().map(|(player, command)| (player, command.into())).collect();
    let paused = flags & 1 == 1;
    let started = StartedTurn { turn, steps, delay, speed, paused, players, left, joined, commands };
    let check = check.map(|(crc, draw)| TurnCheck { crc, draw });
    is_fine.then_some(MatchRecord::Turn(started, check))
}

fn read_snapshot(reader: &mut BitReader<'_>) -> Option<MatchRecord> {
    let turn = TurnNumber::read(reader).ok()?;
    // A generator's state is never all zeros, which it would never leave.
    let random = <[u8; 32]>::read(reader).ok().filter(|state| *state != [0; 32])?;
    let (_, state) = reader.cut(reader.remaining_bits()).ok()?;
    Some(MatchRecord::Snapshot { turn, random, state: state.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> MatchRecord {
        MatchRecord::Settings(MatchSettings {
            seed: 7,
            hash: 8,
            step_us: 33_000,
            players: 3,
            names: b"a\0b".into(),
            about: b"map".into(),
        })
    }

    fn turn(turn: TurnNumber) -> MatchRecord {
        let commands = vec![(0, b"go"[..].into()), (1, b""[..].into())];
        let started = StartedTurn {
            turn,
            steps: 3,
            delay: 2,
            speed: 10,
            paused: false,
            players: 3,
            left: 0,
            joined: turn as u16 & 1,
            commands,
        };
        MatchRecord::Turn(started, Some(TurnCheck { crc: 9, draw: 10 }))
    }

    fn file(records: &[MatchRecord]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        records.iter().for_each(|record| write(record, &mut bytes).unwrap());
        bytes
    }

    #[test]
    fn a_match_comes_back() {
        let snapshot = MatchRecord::Snapshot { turn: -1, random: [3; 32], state: vec![1, 2, 3] };
        let records = [settings(), turn(-2), turn(-1), snapshot, turn(0)];
        let bytes = file(&records);
        let read: Vec<MatchRecord> = RecordingReader::new(&bytes).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, records);
    }

    /// A recording made on one machine is read on any other.
    #[test]
    fn the_bytes_are_those_of_the_layout_as_it_is_described() {
        let snapshot = MatchRecord::Snapshot { turn: -2, random: [3; 32], state: vec![1, 2, 3] };
        let layout = "545752454301\
                      012400000007000000000000000800000000000000e8800000030003000000610062030000006d6170ae17c2d2\
                      021c000000feffffff03020a0203000000090000000a000200000200676f01000095f62162\
                      0327000000feffffff03030303030303030303030303030303030303030303030303030303030303030102039bdd0067";
        assert_eq!(hex::encode(file(&[settings(), turn(-2), snapshot])), layout);
    }

    #[test]
    fn what_no_reader_takes_is_not_written() {
        let snapshot = |bytes| MatchRecord::Snapshot { turn: 0, random: [3; 32], state: vec![0; bytes] };
        let mut out = Vec::new();
        let error = write(&snapshot(MAX_RECORD - 35), &mut out).unwrap_err();
        assert_eq!(error.to_string(), "a record must be at most 67108864 bytes, not 67108865");
        assert!(out.is_empty());
        write(&snapshot(MAX_RECORD - 36), &mut out).unwrap();
        let mut bytes = file(&[settings()]);
        bytes.append(&mut out);
        assert_eq!(RecordingReader::new(&bytes).unwrap().filter_map(Result::ok).count(), 2);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_named() {
        let bytes = file(&[settings(), turn(-2), turn(-1)]);
        let whole = |bytes: &[u8]| RecordingReader::new(bytes).map(|reader| reader.collect::<Vec<_>>());
        let ends: Vec<usize> = (0..bytes.len())
            .filter(|end| whole(&bytes[..*end]).is_ok_and(|read| read.iter().all(Result::is_ok)))
            .collect();
        assert_eq!(ends.len(), 3, "only where a record ends: {ends:?}");
        for i in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[i] ^= 0x10;
            let read = whole(&changed);
            assert!(
                read.is_err() || read.is_ok_and(|read| read.last().is_some_and(Result::is_err)),
                "byte {i}"
            );
        }
        let error = |records: &[MatchRecord]| {
            whole(&file(records)).unwrap().into_iter().find_map(Result::err).unwrap().to_string()
        };
        assert_eq!(
            error(&[settings(), turn(0), turn(2)]),
            "forged: the record at byte 88 has a turn out of order"
        );
        assert!(error(&[turn(0)]).contains("no settings"));
        assert_eq!(whole(b"RIFF12").unwrap_err(), RecordingError::NotARecording);
        assert_eq!(whole(b"TWREC\x09").unwrap_err(), RecordingError::Version(9));
    }
}
