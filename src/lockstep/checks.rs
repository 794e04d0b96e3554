//! Checks of the world after each turn: CRCs compared by vote, and the log by which a difference is found down to the
//! field.

use std::collections::VecDeque;

use super::config::{MAX_PLAYERS, TurnNumber, mask_of, members};
use super::entry::TurnCheck;
use super::packet::{LogQuery, LogReply, MAX_FIELDS};
use crate::time::{Duration, Instant};

/// How many turns' checks of the others are kept: enough for all turns in flight.
const KEPT: usize = 128;
/// How many turns to wait for a check: after that, someone left it out.
const OVERDUE: TurnNumber = 48;
/// Turns for which a world may be healed before it counts as another one again.
const MAX_HEALING: TurnNumber = 600;
/// The maximum of values in a turn's log.
pub const MAX_WORDS: usize = 1 << 20;
/// The maximum of objects in a turn's log.
pub const MAX_OBJECTS: usize = 60_000;
/// The maximum of differences in a report.
pub const MAX_DIFFERENCES: usize = 16;
/// The maximum of objects whose fields are compared.
const MAX_COMPARED: usize = 4;
/// How long a player may take to answer.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);

/// The classes of rows that every log begins with: each player's commands, and the draw.
pub const COMMANDS_CLASS: u8 = 0;
pub const DRAW_CLASS: u8 = 1;
/// The first of the game's own classes.
pub const FIRST_CLASS: u8 = 2;

/// An object's place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow {
    pub class: u8,
    /// The network id: rows are sorted by class and id.
    pub id: u32,
    pub start: u32,
    pub count: u8,
}

/// The values of all objects after a turn.
#[derive(Clone, Debug, Default)]
pub struct TurnLog {
    pub turn: TurnNumber,
    pub check: TurnCheck,
    pub rows: Vec<LogRow>,
    pub words: Vec<i64>,
}

impl TurnLog {
    /// Appends an object's values.
    pub fn push(&mut self, class: u8, id: u32, words: &[i64]) {
        debug_assert!(words.len() <= MAX_FIELDS);
        self.rows.push(LogRow { class, id, start: self.words.len() as u32, count: words.len() as u8 });
        self.words.extend_from_slice(words);
    }

    fn words_of(&self, row: &LogRow) -> &[i64] {
        &self.words[row.start as usize..row.start as usize + usize::from(row.count)]
    }

    fn find(&self, class: u8, id: u32) -> Option<&[i64]> {
        let at = self.rows.binary_search_by_key(&(class, id), |row| (row.class, row.id)).ok()?;
        Some(self.words_of(&self.rows[at]))
    }

    fn hash(&self, row: &LogRow) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.feed(row, &mut hasher);
        hasher.finalize()
    }

    fn feed(&self, row: &LogRow, hasher: &mut crc32fast::Hasher) {
        let mut bytes = [0; 6 + 8 * MAX_FIELDS];
        bytes[0] = row.class;
        bytes[1..5].copy_from_slice(&row.id.to_le_bytes());
        bytes[5] = row.count;
        for (place, word) in bytes[6..].as_chunks_mut::<8>().0.iter_mut().zip(self.words_of(row)) {
            *place = word.to_le_bytes();
        }
        hasher.update(&bytes[..6 + 8 * usize::from(row.count)]);
    }

    /// The CRC-32 over all objects in order.
    pub fn crc(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.rows.iter().for_each(|row| self.feed(row, &mut hasher));
        hasher.finalize()
    }
}

/// The outcome of comparing all players' checks of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub turn: TurnNumber,
    /// The players of a majority that agrees; 0 if there is none.
    pub right: u16,
    /// The other players; all if there is no majority.
    pub odd: u16,
}

/// A single value that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    pub class: u8,
    pub id: u32,
    /// The index of the field; None: one side lacks the object.
    pub field: Option<u8>,
    pub mine: Option<i64>,
    pub theirs: Option<i64>,
}

/// The questions to one player about a turn.
#[derive(Clone, Debug)]
struct Inquiry {
    with: u8,
    turn: TurnNumber,
    since: Instant,
    rows: Vec<(u8, u32, u32)>,
    total: Option<u16>,
    compared: Option<VecDeque<(u8, u32)>>,
    found: Vec<Difference>,
}

/// The checks of all players.
#[derive(Clone, Debug)]
pub struct Checks {
    logs: VecDeque<TurnLog>,
    log_turns: usize,
    theirs: Vec<(TurnNumber, [Option<u32>; MAX_PLAYERS])>,
    reviewed: TurnNumber,
    /// A difference was found: nothing is compared until the game is repaired.
    is_open: bool,
    noted: u16,
    /// Players whose worlds are being healed, since which turn, and who is done.
    excused: u16,
    excused_at: TurnNumber,
    healed: VecDeque<(u8, TurnNumber)>,
    inquiries: VecDeque<(u8, TurnNumber)>,
    inquiry: Option<Inquiry>,
}

impl Checks {
    pub(super) fn new(log_turns: usize) -> Self {
        Checks {
            logs: VecDeque::new(),
            log_turns,
            theirs: vec![(TurnNumber::MIN, [None; MAX_PLAYERS]); KEPT],
            reviewed: TurnNumber::MIN,
            is_open: false,
            noted: 0,
            excused: 0,
            excused_at: TurnNumber::MIN,
            healed: VecDeque::new(),
            inquiries: VecDeque::new(),
            inquiry: None,
        }
    }

    /// The newest log of this player.
    pub fn newest(&self) -> Option<&TurnLog> {
        self.logs.back()
    }

    /// The newest turn of which all checks were compared.
    pub(super) fn reviewed(&self) -> TurnNumber {
        self.reviewed
    }

    /// The log of a turn, while it is kept.
    pub fn log(&self, turn: TurnNumber) -> Option<&TurnLog> {
        self.logs.iter().rev().find(|log| log.turn == turn)
    }

    /// Adds the log of a turn that this player ran.
    pub(super) fn push(&mut self, log: TurnLog) {
        if self.reviewed == TurnNumber::MIN {
            self.reviewed = log.turn - 1;
        }
        while self.logs.len() >= self.log_turns {
            self.logs.pop_front();
        }
        self.logs.push_back(log);
    }

    /// Notes another player's check.
    pub(super) fn note(&mut self, player: u8, turn: TurnNumber, crc: u32) {
        let place = &mut self.theirs[turn.rem_euclid(KEPT as TurnNumber) as usize];
        if place.0 < turn {
            *place = (turn, [None; MAX_PLAYERS]);
        }
        if place.0 == turn {
            place.1[usize::from(player)] = Some(crc);
        }
    }

    fn crc_of(&self, player: u8, turn: TurnNumber) -> Option<u32> {
        let place = &self.theirs[turn.rem_euclid(KEPT as TurnNumber) as usize];
        if place.0 == turn { place.1[usize::from(player)] } else { None }
    }

    /// A player whose check differs from ours, reported once for each.
    pub(super) fn first_difference(&mut self, me: u8, players: u16) -> Option<(TurnNumber, u8)> {
        if self.is_open {
            return None;
        }
        for log in self.logs.iter().filter(|log| log.turn > self.reviewed) {
            for player in members(players & !self.noted & !self.excused & !(1 << me)) {
                if self.crc_of(player, log.turn).is_some_and(|crc| crc != log.check.crc) {
                    self.noted |= 1 << player;
                    return Some((log.turn, player));
                }
            }
        }
        None
    }

    /// Compares turns for which all checks have arrived, up to the first that differs.
    pub(super) fn review(&mut self, me: u8, needed: impl Fn(TurnNumber) -> u16) -> Option<Verdict> {
        let newest = self.logs.back()?.turn;
        while !self.is_open && self.reviewed < newest {
            let turn = self.reviewed + 1;
            let players = needed(turn) & !self.review_excused(turn);
            let Some(mine) = self.log(turn).map(|log| log.check.crc) else {
                self.reviewed = turn;
                continue;
            };
            let check = |player| if player == me { Some(mine) } else { self.crc_of(player, turn) };
            if members(players).any(|player| check(player).is_none()) && turn > newest - OVERDUE {
                return None;
            }
            let given: Vec<(u8, u32)> =
                members(players).filter_map(|player| Some((player, check(player)?))).collect();
            self.reviewed = turn;
            if given.iter().all(|(_, check)| *check == mine) {
                continue;
            }
            self.is_open = true;
            let group = |of: u32| mask_of(given.iter().filter(|it| it.1 == of).map(|it| it.0));
            let all = mask_of(given.iter().map(|it| it.0));
            let half = given.len() as u32;
            let right =
                given.iter().map(|it| group(it.1)).find(|group| group.count_ones() * 2 > half).unwrap_or(0);
            let verdict = Verdict { turn, right, odd: all & !right };
            // A player in the right asks each of the others; one in the wrong asks one that is right.
            let asked = if right >> me & 1 == 1 || right == 0 {
                verdict.odd & !(1 << me)
            } else {
                1 << right.trailing_zeros()
            };
            let differs = given.iter().filter(|it| asked >> it.0 & 1 == 1 && it.1 != mine);
            self.inquiries = differs.map(|it| (it.0, turn)).collect();
            return Some(verdict);
        }
        None
    }

    /// These players' worlds are being healed: until they are, nothing is made of it that they differ.
    pub(super) fn excuse(&mut self, players: u16, turn: TurnNumber) {
        (self.excused, self.excused_at, self.is_open) = (self.excused | players, turn, false);
        self.noted &= !players;
    }

    /// Whether a player's world is being healed.
    pub(super) fn is_excused(&self, player: u8) -> bool {
        self.excused >> player & 1 == 1
    }

    /// Whose world was another one and is none any more, and from which turn on.
    pub(super) fn poll_healed(&mut self) -> Option<(u8, TurnNumber)> {
        self.healed.pop_front()
    }

    /// Whether a player's check of a turn is the one found here.
    pub(super) fn agrees_with(&self, player: u8, turn: TurnNumber) -> bool {
        self.log(turn).is_some_and(|log| self.crc_of(player, turn) == Some(log.check.crc))
    }

    /// Who isn't compared in a turn. A world that is one with ours again, or wasn't for too long, is compared from there on.
    fn review_excused(&mut self, turn: TurnNumber) -> u16 {
        if self.excused != 0 && turn > self.excused_at + MAX_HEALING {
            self.excused = 0;
        }
        for player in members(self.excused) {
            if turn > self.excused_at && self.agrees_with(player, turn) {
                self.excused &= !(1 << player);
                self.healed.push_back((player, turn));
            }
        }
        self.excused
    }

    /// Compares again, beginning after this turn.
    pub(super) fn resume(&mut self, turn: TurnNumber) {
        self.is_open = false;
        self.noted = 0;
        self.inquiries.clear();
        self.inquiry = None;
        self.reviewed = turn;
        self.logs.retain(|log| log.turn <= turn);
    }

    /// The next question to a player.
    pub(super) fn question(&self, player: u8) -> Option<(u16, LogQuery)> {
        let inquiry = self.inquiry.as_ref().filter(|it| it.with == player)?;
        let query = match &inquiry.compared {
            None => LogQuery::Objects { from: inquiry.rows.len() as u16 },
            Some(compared) => {
                compared.front().map(|(class, id)| LogQuery::Fields { class: *class, id: *id })?
            }
        };
        Some((inquiry.turn as u16, query))
    }

    /// The answer to a player's question about a turn.
    pub(super) fn reply(&self, low: u16, query: LogQuery, max_rows: usize, max_words: usize) -> LogReply {
        let log = self.logs.iter().find(|log| log.turn as u16 == low);
        match query {
            LogQuery::Objects { from } => {
                let rows = log.map_or(&[][..], |log| &log.rows);
                let page = rows.iter().skip(from.into()).take(max_rows);
                let page = page.map(|row| (row.class, row.id, log.map_or(0, |log| log.hash(row)))).collect();
                LogReply::Objects { from, total: rows.len() as u16, rows: page }
            }
            LogQuery::Fields { class, id } => {
                let words = log.and_then(|log| log.find(class, id));
                let words = words.map(|words| words[..words.len().min(max_words)].to_vec());
                LogReply::Fields { class, id, words }
            }
        }
    }

    /// Handles an answer; returns whether it was useful.
    pub(super) fn answer(&mut self, player: u8, low: u16, reply: &LogReply) -> bool {
        let Some(inquiry) = self.inquiry.as_mut() else { return false };
        if inquiry.with != player || inquiry.turn as u16 != low {
            return false;
        }
        let log = self.logs.iter().find(|log| log.turn == inquiry.turn);
        match (reply, &mut inquiry.compared) {
            (LogReply::Objects { from, total, rows }, None) => {
                if usize::from(*from) != inquiry.rows.len() || inquiry.total.is_some_and(|it| it != *total) {
                    return false;
                }
                inquiry.total = Some(*total);
                inquiry.rows.extend_from_slice(rows);
                if rows.is_empty() || inquiry.rows.len() >= usize::from(*total) {
                    inquiry.compare(log);
                }
                true
            }
            (LogReply::Fields { class, id, words }, Some(compared)) => {
                if compared.front() != Some(&(*class, *id)) {
                    return false;
                }
                compared.pop_front();
                let mine = log.and_then(|log| log.find(*class, *id)).unwrap_or_default();
                let theirs = words.as_deref().unwrap_or_default();
                for field in 0..mine.len().max(theirs.len()) {
                    let (mine, theirs) = (mine.get(field).copied(), theirs.get(field).copied());
                    if mine != theirs && inquiry.found.len() < MAX_DIFFERENCES {
                        let field = Some(field as u8);
                        inquiry.found.push(Difference { class: *class, id: *id, field, mine, theirs });
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// Moves on to the next player to ask, and returns the result of the last: player, turn and differences.
    pub(super) fn poll_report(&mut self, now: Instant) -> Option<(u8, TurnNumber, Vec<Difference>)> {
        if self.inquiry.is_none() {
            let (with, turn) = self.inquiries.pop_front()?;
            let (rows, found) = (Vec::new(), Vec::new());
            self.inquiry = Some(Inquiry { with, turn, since: now, rows, total: None, compared: None, found });
        }
        let done = |it: &mut Inquiry| {
            now - it.since > COMPARE_TIMEOUT || it.compared.as_ref().is_some_and(VecDeque::is_empty)
        };
        let inquiry = self.inquiry.take_if(done)?;
        Some((inquiry.with, inquiry.turn, inquiry.found))
    }
}

impl Inquiry {
    /// Finds the objects that differ.
    fn compare(&mut self, log: Option<&TurnLog>) {
        let mut compared = VecDeque::new();
        let mine: Vec<(u8, u32, u32)> = log.map_or(Vec::new(), |log| {
            log.rows.iter().map(|row| (row.class, row.id, log.hash(row))).collect()
        });
        self.rows.sort_unstable();
        let (mut i, mut j) = (0, 0);
        while i < mine.len() || j < self.rows.len() {
            let key =
                |row: Option<&(u8, u32, u32)>| row.map_or((u8::MAX, u64::MAX), |row| (row.0, row.1.into()));
            let (a, b) = (key(mine.get(i)), key(self.rows.get(j)));
            if a == b {
                if mine[i].2 != self.rows[j].2 && compared.len() < MAX_COMPARED {
                    compared.push_back((mine[i].0, mine[i].1));
                }
            } else if self.found.len() < MAX_DIFFERENCES {
                // Reported as the value 1 on the side that has the object.
                let (class, id) =
                    if a < b { (mine[i].0, mine[i].1) } else { (self.rows[j].0, self.rows[j].1) };
                let (ours, theirs) = ((a < b).then_some(1), (b < a).then_some(1));
                self.found.push(Difference { class, id, field: None, mine: ours, theirs });
            }
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        self.rows = Vec::new();
        self.compared = Some(compared);
    }
}
