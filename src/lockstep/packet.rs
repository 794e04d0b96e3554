//! The payloads: what one player sends another, repeated until it is acked.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::TurnNumber;
use super::entry::TurnEntry;
use super::fault::Fault;
use super::joining::JoinWord;
use crate::store::sequence::nearest_of;
use crate::wire::{BitReader, BitSink, BitWriter, ReadError};

/// The maximum of entries in a payload, and in a run of copies.
pub const MAX_ENTRIES: usize = 15;
/// Bits in front of the entries.
pub const HEADER_BITS: usize = 1 + 8 + 17 + 4 + 8;
/// The maximum of rows in an answer.
pub const MAX_ROWS: usize = 100;
/// The maximum of fields in an object.
pub const MAX_FIELDS: usize = 63;
/// The coded margin that means unknown.
pub const UNKNOWN: i8 = 127;
/// A margin's unit in milliseconds.
pub const MARGIN_MS: i64 = 8;

/// A peer's report on a departing player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepartureWord {
    pub player: u8,
    /// The newest turn for which the peer has its data.
    pub have: u8,
    /// The first turn without it, once decided.
    pub out: Option<u8>,
}

/// Entries of a departing player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedEntries {
    pub player: u8,
    pub first: u8,
    pub entries: Vec<TurnEntry>,
}

/// A question about a turn's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogQuery {
    /// Hashes of objects, from this index on.
    Objects { from: u16 },
    /// The fields of one object.
    Fields { class: u8, id: u32 },
}

/// The answer to a question about a turn's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogReply {
    /// (class, id, hash) of objects, from this index on, of `total`.
    Objects { from: u16, total: u16, rows: Vec<(u8, u32, u32)> },
    /// One object's fields, if it exists.
    Fields { class: u8, id: u32, words: Option<Vec<i64>> },
}

/// A parsed payload, or one to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    pub waiting: bool,
    pub ack: u8,
    /// The margins of the receiver's data and of all players', if sent.
    pub margins: Option<(i8, i8)>,
    pub first: u8,
    pub entries: Vec<TurnEntry>,
    pub against: u16,
    pub departures: Vec<DepartureWord>,
    pub copies: Vec<CopiedEntries>,
    pub question: Option<(u16, LogQuery)>,
    pub answer: Option<(u16, LogReply)>,
    pub joining: Option<JoinWord>,
}

impl Payload {
    fn has_more(&self) -> bool {
        self.against != 0
            || !self.departures.is_empty()
            || !self.copies.is_empty()
            || self.question.is_some()
            || self.answer.is_some()
            || self.joining.is_some()
    }

    pub(super) fn write(&self, writer: &mut BitWriter) {
        writer.bool(self.waiting);
        writer.bits(u64::from(self.ack), 8);
        writer.bool(self.margins.is_some());
        if let Some((margin, worst)) = self.margins {
            writer.bits(u64::from(margin as u8), 8);
            writer.bits(u64::from(worst as u8), 8);
        }
        writer.bits(self.entries.len() as u64, 4);
        if !self.entries.is_empty() {
            writer.bits(u64::from(self.first), 8);
        }
        self.entries.iter().for_each(|entry| entry.write(writer));
        writer.bool(self.has_more());
        if !self.has_more() {
            return;
        }
        writer.bool(self.against != 0);
        if self.against != 0 {
            writer.bits(u64::from(self.against), 16);
        }
        writer.bits(self.departures.len() as u64, 4);
        for word in &self.departures {
            writer.bits(u64::from(word.player), 4);
            writer.bits(u64::from(word.have), 8);
            writer.bool(word.out.is_some());
            if let Some(turn) = word.out {
                writer.bits(u64::from(turn), 8);
            }
        }
        writer.bits(self.copies.len() as u64, 4);
        for copied in &self.copies {
            writer.bits(u64::from(copied.player), 4);
            writer.bits(u64::from(copied.first), 8);
            writer.bits(copied.entries.len() as u64, 4);
            copied.entries.iter().for_each(|entry| entry.write(writer));
        }
        writer.bool(self.question.is_some());
        if let Some((turn, query)) = self.question {
            writer.bits(u64::from(turn), 16);
            match query {
                LogQuery::Objects { from } => {
                    writer.bool(false);
                    writer.bits(u64::from(from), 16);
                }
                LogQuery::Fields { class, id } => {
                    writer.bool(true);
                    writer.bits(u64::from(class), 8);
                    writer.bits(u64::from(id), 32);
                }
            }
        }
        writer.bool(self.answer.is_some());
        if let Some((turn, reply)) = &self.answer {
            writer.bits(u64::from(*turn), 16);
            Self::write_reply(reply, writer);
        }
        writer.bool(self.joining.is_some());
        if let Some(word) = &self.joining {
            word.write(writer);
        }
    }

    fn write_reply(reply: &LogReply, writer: &mut BitWriter) {
        match reply {
            LogReply::Objects { from, total, rows } => {
                writer.bool(false);
                writer.bits(u64::from(*from), 16);
                writer.bits(u64::from(*total), 16);
                writer.bits(rows.len() as u64, 7);
                for (class, id, hash) in rows {
                    writer.bits(u64::from(*class), 8);
                    writer.bits(u64::from(*id), 32);
                    writer.bits(u64::from(*hash), 32);
                }
            }
            LogReply::Fields { class, id, words } => {
                writer.bool(true);
                writer.bits(u64::from(*class), 8);
                writer.bits(u64::from(*id), 32);
                writer.bool(words.is_some());
                if let Some(words) = words {
                    writer.bits(words.len() as u64, 6);
                    words.iter().for_each(|word| writer.bits(*word as u64, 64));
                }
            }
        }
    }

    /// Reads a whole payload.
    ///
    /// # Errors
    /// Says how the payload breaks the protocol.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = BitReader::new(bytes);
        let r = &mut reader;
        let mut payload = Payload { waiting: r.bool()?, ack: r.bits(8)? as u8, ..Payload::default() };
        if r.bool()? {
            payload.margins = Some((r.bits(8)? as i8, r.bits(8)? as i8));
        }
        let count = r.bits(4)?;
        if count > 0 {
            payload.first = r.bits(8)? as u8;
        }
        for _ in 0..count {
            payload.entries.push(TurnEntry::read(r)?);
        }
        if r.bool()? {
            payload.read_more(r)?;
        }
        reader.finish()?;
        Ok(payload)
    }

    fn read_more(&mut self, r: &mut BitReader<'_>) -> Result<(), Fault> {
        if r.bool()? {
            self.against = r.bits(16)? as u16;
        }
        for _ in 0..r.bits(4)? {
            let (player, have) = (r.bits(4)? as u8, r.bits(8)? as u8);
            let out = if r.bool()? { Some(r.bits(8)? as u8) } else { None };
            self.departures.push(DepartureWord { player, have, out });
        }
        for _ in 0..r.bits(4)? {
            let (player, first) = (r.bits(4)? as u8, r.bits(8)? as u8);
            let entries: Result<Vec<TurnEntry>, Fault> =
                (0..r.bits(4)?).map(|_| TurnEntry::read(r)).collect();
            self.copies.push(CopiedEntries { player, first, entries: entries? });
        }
        if r.bool()? {
            let turn = r.bits(16)? as u16;
            let query = if r.bool()? {
                LogQuery::Fields { class: r.bits(8)? as u8, id: r.bits(32)? as u32 }
            } else {
                LogQuery::Objects { from: r.bits(16)? as u16 }
            };
            self.question = Some((turn, query));
        }
        if r.bool()? {
            let turn = r.bits(16)? as u16;
            self.answer = Some((turn, Self::read_reply(r)?));
        }
        if r.bool()? {
            self.joining = Some(JoinWord::read(r)?);
        }
        Ok(())
    }

    fn read_reply(r: &mut BitReader<'_>) -> Result<LogReply, Fault> {
        if r.bool()? {
            let (class, id) = (r.bits(8)? as u8, r.bits(32)? as u32);
            let mut words = None;
            if r.bool()? {
                let count = r.bits(6)?;
                let read: Result<Vec<i64>, ReadError> =
                    (0..count).map(|_| r.bits(64).map(|word| word as i64)).collect();
                words = Some(read?);
            }
            return Ok(LogReply::Fields { class, id, words });
        }
        let (from, total) = (r.bits(16)? as u16, r.bits(16)? as u16);
        let mut rows = Vec::new();
        for _ in 0..r.bits(7)? {
            rows.push((r.bits(8)? as u8, r.bits(32)? as u32, r.bits(32)? as u32));
        }
        Ok(LogReply::Objects { from, total, rows })
    }
}

/// The turn with these low bits that is nearest to `turn`.
pub(super) fn near(low: u8, turn: TurnNumber) -> TurnNumber {
    nearest_of(low.into(), 8, turn.into()) as TurnNumber
}
