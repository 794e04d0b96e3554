//! A match as bytes: what was settled at its start, then turn by turn what ran and what the world was after it; now and then a
//! snapshot, from which a replay may begin.
//!
//! A file is `TWREC` and a version byte, then records: kind (1 byte), length (4, little-endian), body, CRC-32 of all that (4). The
//! first one is the match's settings. Whatever a file holds, reading it takes memory of its own size at most; where it is cut
//! short or changed, the records before that are whole and the error says where.
//!
//! | kind | body |
//! |---|---|
//! | 1 settings | seed (8), protocol hash (8), step in us (4), players (2), then for the names and the game's own bytes 4: length, and the bytes |
//! | 2 turn | turn (4), steps, delay, speed, flags (1 each; 1: paused, 2: checked), players (2), left (2), CRC (4) and draw (2) where checked, commands (2: how many), each player (1), length (2), bytes |
//! | 3 snapshot | turn (4), generator's state (32), bytes: the world after that turn |

use core::fmt;

use super::config::{MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_PLAYERS, TurnNumber};
use super::entry::TurnCheck;
use super::machine::StartedTurn;

/// What every recording begins with; the last byte is the version.
pub const MAGIC: [u8; 6] = *b"TWREC\x01";
const PREFIX: usize = 1 + 4;
const SUFFIX: usize = 4;
/// Bytes of a record, at most: a snapshot's.
pub const MAX_RECORD: usize = 64 << 20;

const SETTINGS: u8 = 1;
const TURN: u8 = 2;
const SNAPSHOT: u8 = 3;

/// What is settled before the first turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSettings {
    pub seed: u64,
    /// Of the commands' classes.
    pub hash: u64,
    /// Real time of a sub-turn, in microseconds.
    pub step_us: u32,
    pub players: u16,
    /// Names of players, and the game's own bytes (a map, options).
    pub names: Vec<u8>,
    pub about: Vec<u8>,
}

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
    /// It doesn't begin as recordings do.
    NotARecording,
    /// Of another version than this.
    Version(u8),
    /// It ends within a record.
    CutShort { at: usize },
    /// A record's bytes aren't those that were written.
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
            RecordingError::CutShort { at } => write!(f, "cut short: the record at byte {at} has no end"),
            RecordingError::Damaged { at } => write!(f, "damaged: the record at byte {at} has another CRC"),
            RecordingError::Forged { at, what } => write!(f, "forged: the record at byte {at} has {what}"),
        }
    }
}

impl core::error::Error for RecordingError {}

/// Appends a record to a file's bytes.
pub fn write(record: &MatchRecord, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(match record {
        MatchRecord::Settings(_) => SETTINGS,
        MatchRecord::Turn(..) => TURN,
        MatchRecord::Snapshot { .. } => SNAPSHOT,
    });
    out.extend_from_slice(&[0; 4]);
    match record {
        MatchRecord::Settings(settings) => {
            out.extend_from_slice(&settings.seed.to_le_bytes());
            out.extend_from_slice(&settings.hash.to_le_bytes());
            out.extend_from_slice(&settings.step_us.to_le_bytes());
            out.extend_from_slice(&settings.players.to_le_bytes());
            for bytes in [&settings.names, &settings.about] {
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        MatchRecord::Turn(turn, check) => {
            out.extend_from_slice(&turn.turn.to_le_bytes());
            let flags = u8::from(turn.paused) | u8::from(check.is_some()) << 1;
            out.extend_from_slice(&[turn.steps, turn.delay, turn.speed, flags]);
            out.extend_from_slice(&turn.players.to_le_bytes());
            out.extend_from_slice(&turn.left.to_le_bytes());
            if let Some(check) = check {
                out.extend_from_slice(&check.crc.to_le_bytes());
                out.extend_from_slice(&check.draw.to_le_bytes());
            }
            out.extend_from_slice(&(turn.commands.len() as u16).to_le_bytes());
            for (player, command) in &turn.commands {
                out.push(*player);
                out.extend_from_slice(&(command.len() as u16).to_le_bytes());
                out.extend_from_slice(command);
            }
        }
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
}

/// Reads a recording record by record.
#[derive(Clone, Debug)]
pub struct RecordingReader<'a> {
    bytes: &'a [u8],
    at: usize,
    newest: Option<TurnNumber>,
    has_settings: bool,
}

struct BodyFields<'a> {
    bytes: &'a [u8],
}

impl<'a> BodyFields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|it| it[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

impl<'a> RecordingReader<'a> {
    /// Of a whole recording's bytes.
    ///
    /// # Errors
    /// It is none, or of another version.
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

    /// Where the next record begins.
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
        let mut fields = BodyFields { bytes: &body[PREFIX..] };
        let forged = |what| RecordingError::Forged { at, what };
        let record = match body[0] {
            SETTINGS => read_settings(&mut fields),
            TURN => read_turn(&mut fields),
            SNAPSHOT => read_snapshot(&mut fields),
            _ => return Err(forged("no known kind")),
        };
        let record = record.ok_or(forged("values out of their bounds"))?;
        if !fields.bytes.is_empty() {
            return Err(forged("bytes behind its end"));
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

fn read_settings(fields: &mut BodyFields<'_>) -> Option<MatchRecord> {
    let seed = fields.array().map(u64::from_le_bytes)?;
    let hash = fields.array().map(u64::from_le_bytes)?;
    let (step_us, players) = (fields.u32()?, fields.u16()?);
    let count = fields.u32()? as usize;
    let names = fields.take(count)?.to_vec();
    let count = fields.u32()? as usize;
    let about = fields.take(count)?.to_vec();
    if players == 0 || step_us == 0 {
        return None;
    }
    Some(MatchRecord::Settings(MatchSettings { seed, hash, step_us, players, names, about }))
}

fn read_turn(fields: &mut BodyFields<'_>) -> Option<MatchRecord> {
    let turn = fields.array().map(TurnNumber::from_le_bytes)?;
    let [steps, delay, speed, flags] = fields.array()?;
    let (players, left) = (fields.u16()?, fields.u16()?);
    let check =
        if flags & 2 == 2 { Some(TurnCheck { crc: fields.u32()?, draw: fields.u16()? }) } else { None };
    let count = usize::from(fields.u16()?);
    if flags > 3 || count > MAX_COMMANDS * MAX_PLAYERS || speed == 0 || turn == TurnNumber::MAX {
        return None;
    }
    let mut commands = Vec::new();
    for _ in 0..count {
        let (player, length) = (fields.byte()?, usize::from(fields.u16()?));
        if length > MAX_COMMAND_BYTES || usize::from(player) >= MAX_PLAYERS || players >> player & 1 == 0 {
            return None;
        }
        commands.push((player, fields.take(length)?.into()));
    }
    let paused = flags & 1 == 1;
    Some(MatchRecord::Turn(StartedTurn { turn, steps, delay, speed, paused, players, left, commands }, check))
}

fn read_snapshot(fields: &mut BodyFields<'_>) -> Option<MatchRecord> {
    let turn = fields.array().map(TurnNumber::from_le_bytes)?;
    // No generator ever comes to zeros alone, and it would stay there.
    let random = fields.array().filter(|state| *state != [0; 32])?;
    Some(MatchRecord::Snapshot { turn, random, state: core::mem::take(&mut fields.bytes).to_vec() })
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
        let started =
            StartedTurn { turn, steps: 3, delay: 2, speed: 10, paused: false, players: 3, left: 0, commands };
        MatchRecord::Turn(started, Some(TurnCheck { crc: 9, draw: 10 }))
    }

    fn file(records: &[MatchRecord]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        records.iter().for_each(|record| write(record, &mut bytes));
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
