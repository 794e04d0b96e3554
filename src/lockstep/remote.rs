//! The state kept about one player: its data by turn, its acks, and its timing.

use super::config::{MAX_PLAYERS, TurnNumber, WINDOW};
use super::entry::TurnEntry;
use super::packet::{DepartureWord, LogQuery, MARGIN_MS, UNKNOWN};
use crate::store::Bucket;
use crate::time::{Duration, Instant};

/// The share of a new margin in the mean.
const MARGIN_GAIN: f64 = 0.1;

#[derive(Clone, Debug)]
struct HeldEntry {
    turn: TurnNumber,
    arrived: Instant,
    entry: TurnEntry,
}

/// One player; the local one has one too.
#[derive(Clone, Debug)]
pub struct RemotePlayer {
    /// Its entries, by turn modulo the window.
    held: Vec<Option<HeldEntry>>,
    /// All of its data up to this turn has arrived.
    pub have: TurnNumber,
    /// It has all of our data up to this turn.
    pub acked: TurnNumber,
    /// How many milliseconds before its turn the player's data arrives, on average.
    margin: Option<f64>,
    /// The player's own report: the margin of our data there, and its second worst of all data.
    pub their_margin: i8,
    pub their_worst: i8,
    /// The player waits for us; and since when it hasn't been answered.
    pub waiting: bool,
    /// The first turn for whose data the last payload to it had no room; the next one begins there.
    pub rest: Option<TurnNumber>,
    /// When the next payload to it is due.
    pub next_send: Instant,
    /// The players it can't reach or votes out.
    pub against: u16,
    /// Its reports on departing players.
    pub departures: [Option<DepartureWord>; MAX_PLAYERS],
    /// Its question, answered with the next payload.
    pub question: Option<(u16, LogQuery)>,
    /// The payloads it may send now.
    payloads: Bucket,
}

/// A player may send 250 payloads a second, and as many at once.
const PAYLOAD_COST: Duration = Duration::from_millis(4);
const BURST: Duration = Duration::from_secs(1);

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
            rest: None,
            next_send: Instant::ZERO,
            against: 0,
            departures: [None; MAX_PLAYERS],
            question: None,
            payloads: Bucket::default(),
        }
    }

    /// Its entry for a turn.
    pub fn entry(&self, turn: TurnNumber) -> Option<&TurnEntry> {
        self.slot(turn).map(|held| &held.entry)
    }

    /// When its entry for a turn arrived.
    pub fn arrived(&self, turn: TurnNumber) -> Option<Instant> {
        self.slot(turn).map(|held| held.arrived)
    }

    fn slot(&self, turn: TurnNumber) -> Option<&HeldEntry> {
        let held = self.held[turn.rem_euclid(WINDOW as TurnNumber) as usize].as_ref();
        held.filter(|held| held.turn == turn)
    }

    /// Adds its entry for the turn after the newest.
    pub(super) fn push(&mut self, now: Instant, entry: TurnEntry) -> TurnNumber {
        self.have += 1;
        let place = self.have.rem_euclid(WINDOW as TurnNumber) as usize;
        self.held[place] = Some(HeldEntry { turn: self.have, arrived: now, entry });
        self.have
    }

    /// Notes a margin in milliseconds.
    pub(super) fn note_margin(&mut self, ms: f64) {
        let margin = self.margin.get_or_insert(ms);
        *margin += (ms - *margin) * MARGIN_GAIN;
    }

    /// The mean margin of its data.
    pub fn margin(&self) -> Option<f64> {
        self.margin
    }

    /// Starts to measure margins anew.
    pub(super) fn forget_margin(&mut self) {
        self.margin = None;
        (self.their_margin, self.their_worst) = (UNKNOWN, UNKNOWN);
    }

    /// Takes a token for a payload; false if there is none.
    pub(super) fn take_token(&mut self, now: Instant) -> bool {
        self.payloads.take(now, PAYLOAD_COST, BURST)
    }
}

/// A margin in the units of payloads.
pub(super) fn coded(margin: Option<f64>) -> i8 {
    margin.map_or(UNKNOWN, |ms| (ms / MARGIN_MS as f64).round().clamp(-127.0, 126.0) as i8)
}

/// The milliseconds of a payload's margin.
pub(super) fn decoded(margin: i8) -> Option<f64> {
    (margin != UNKNOWN).then(|| f64::from(margin) * MARGIN_MS as f64)
}
