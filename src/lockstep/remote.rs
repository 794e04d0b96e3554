//! What is known of one player: its data by turn, what it has of ours, and how it fares.

use super::config::{MAX_PLAYERS, TurnNumber, WINDOW};
use super::entry::TurnEntry;
use super::packet::{DepartureWord, LogQuery, LogReply, MARGIN_MS, UNKNOWN};
use crate::time::Instant;

/// How fast the mean margin follows.
const MARGIN_GAIN: f64 = 0.1;

#[derive(Clone, Debug)]
struct HeldEntry {
    turn: TurnNumber,
    arrived: Instant,
    entry: TurnEntry,
}

/// One player, also this one.
#[derive(Clone, Debug)]
pub struct RemotePlayer {
    /// By turn modulo the window.
    held: Vec<Option<HeldEntry>>,
    /// Up to here all of its data is there.
    pub have: TurnNumber,
    /// Up to here it has all of ours.
    pub acked: TurnNumber,
    /// Milliseconds before its turn that its data comes, in the mean.
    margin: Option<f64>,
    /// The same of ours there, and of all there in the worst turns, in its own words.
    pub their_margin: i8,
    pub their_worst: i8,
    /// It waits for us, and since when that was not answered.
    pub waiting: bool,
    /// When something must be said to it again.
    pub next_send: Instant,
    /// Whom it can't reach or wants out.
    pub against: u16,
    /// What it says of those that leave.
    pub departures: [Option<DepartureWord>; MAX_PLAYERS],
    /// What it asked and gets with the next payload.
    pub question: Option<(u16, LogQuery)>,
    /// What it answered, until it is used.
    pub answer: Option<(u16, LogReply)>,
    /// Payloads that it may send now: a bucket that fills with time.
    tokens: f64,
    filled: Instant,
}

/// Payloads a second of one player, and at once.
const PAYLOADS_A_SECOND: f64 = 250.0;
const PAYLOADS_AT_ONCE: f64 = 250.0;

impl RemotePlayer {
    pub(super) fn new() -> Self {
        RemotePlayer {
            held: vec![None; WINDOW],
            have: -1,
            acked: -1,
            margin: None,
            their_margin: UNKNOWN,
            their_worst: UNKNOWN,
            waiting: false,
            next_send: Instant::ZERO,
            against: 0,
            departures: [None; MAX_PLAYERS],
            question: None,
            answer: None,
            tokens: PAYLOADS_AT_ONCE,
            filled: Instant::ZERO,
        }
    }

    /// Its data of a turn.
    pub fn entry(&self, turn: TurnNumber) -> Option<&TurnEntry> {
        self.slot(turn).map(|held| &held.entry)
    }

    /// When its data of a turn came.
    pub fn arrived(&self, turn: TurnNumber) -> Option<Instant> {
        self.slot(turn).map(|held| held.arrived)
    }

    fn slot(&self, turn: TurnNumber) -> Option<&HeldEntry> {
        let held = self.held[turn.rem_euclid(WINDOW as TurnNumber) as usize].as_ref();
        held.filter(|held| held.turn == turn)
    }

    /// Takes the data of the turn after the newest.
    pub(super) fn push(&mut self, now: Instant, entry: TurnEntry) -> TurnNumber {
        self.have += 1;
        let place = self.have.rem_euclid(WINDOW as TurnNumber) as usize;
        self.held[place] = Some(HeldEntry { turn: self.have, arrived: now, entry });
        self.have
    }

    /// Notes how long before its turn data came, in milliseconds.
    pub(super) fn note_margin(&mut self, ms: f64) {
        let margin = self.margin.get_or_insert(ms);
        *margin += (ms - *margin) * MARGIN_GAIN;
    }

    /// The mean margin of its data.
    pub fn margin(&self) -> Option<f64> {
        self.margin
    }

    /// Begins to measure anew.
    pub(super) fn forget_margin(&mut self) {
        self.margin = None;
        (self.their_margin, self.their_worst) = (UNKNOWN, UNKNOWN);
    }

    /// Whether it may send one more payload now.
    pub(super) fn take_token(&mut self, now: Instant) -> bool {
        let more = (now - self.filled).as_secs_f64() * PAYLOADS_A_SECOND;
        self.tokens = (self.tokens + more).min(PAYLOADS_AT_ONCE);
        self.filled = self.filled.max(now);
        let may = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(may));
        may
    }
}

/// A margin as payloads carry it.
pub(super) fn coded(margin: Option<f64>) -> i8 {
    margin.map_or(UNKNOWN, |ms| (ms / MARGIN_MS as f64).round().clamp(-127.0, 126.0) as i8)
}

/// Milliseconds of a margin as payloads carry it.
pub(super) fn decoded(margin: i8) -> Option<f64> {
    (margin != UNKNOWN).then(|| f64::from(margin) * MARGIN_MS as f64)
}
