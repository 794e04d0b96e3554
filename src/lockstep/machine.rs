//! [`Lockstep`]: turns that start when all players' data is there.

use std::collections::VecDeque;

use super::adapt::Adapter;
use super::checks::{
    COMMANDS_CLASS, Checks, DRAW_CLASS, Difference, MAX_OBJECTS, MAX_WORDS, TurnLog, Verdict,
};
use super::config::{
    LockstepConfig, LockstepConfigError, MAX_AHEAD, MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_ENTRY_BYTES,
    MAX_PENDING, MAX_PLAYERS, MAX_SPEED, NORMAL_SPEED, Pace, TurnNumber, members,
};
use super::departure::Departures;
use super::entry::{Control, Entry, MAX_BACK, MAX_CHECKS, TurnCheck};
use super::packet::{
    CopiedEntries, Fault, HEADER_BITS, LogQuery, LogReply, MAX_ENTRIES, MAX_FIELDS, MAX_ROWS, Payload, near,
};
use super::remote::{RemotePlayer, coded, decoded};
use super::schedule;
use crate::store::counters::counters;
use crate::time::{Duration, Instant};
use crate::wire::BitWriter;

/// Events that wait to be taken, at most.
const MAX_EVENTS: usize = 256;
/// Controls that wait for a turn, at most.
const MAX_CONTROLS: usize = 8;
/// Bits kept free for what comes behind the entries.
const MORE_BITS: usize = 64;

counters! {
    /// What happened, under names.
    pub struct LockstepCounters {
        turns,
        /// Turns that were due before their data was there.
        stalls,
        /// Microseconds by which they started later.
        stalled_us,
        payloads_sent,
        payloads_received,
        bytes_sent,
        /// Data that had come before.
        repeated,
        /// Payloads dropped because a player sent too many.
        flooded,
        /// Payloads of players that leave or are out.
        from_departed,
        /// Data with a gap in front of it.
        gaps,
        /// A pace from a player whose part it isn't.
        forged_pace,
        /// Copies for which there is no use.
        copies_unused,
        /// Decisions and answers that can't be right or weren't asked for.
        odd,
        /// Events dropped because nobody took them.
        events_dropped,
    }
}

/// A turn that may run now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartedTurn {
    pub turn: TurnNumber,
    /// Sub-turns to simulate; none while the game is paused.
    pub steps: u8,
    pub delay: u8,
    /// In steps of 10 %.
    pub speed: u8,
    pub paused: bool,
    /// Who takes part.
    pub players: u16,
    /// Who takes no part from this turn on.
    pub left: u16,
    /// By player, in the order given.
    pub commands: Vec<(u8, Box<[u8]>)>,
}

/// What is missing for the turn that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub turn: TurnNumber,
    /// Whose data isn't there.
    pub players: u16,
    pub since: Instant,
}

/// What the game should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockstepEvent {
    /// A player is out from this turn on.
    Dropped { player: u8, turn: TurnNumber },
    /// The others go on without this player: there will be no more turns.
    Excluded,
    /// From this turn on the pace is another.
    PaceChanged { turn: TurnNumber, pace: Pace },
    /// A player's check of this turn isn't ours.
    Mismatch { turn: TurnNumber, player: u8 },
    /// All checks of the first such turn, compared.
    Desync(Verdict),
    /// What differs between this player and another.
    Report { turn: TurnNumber, player: u8, differences: Vec<Difference> },
}

/// Why a command isn't taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// This many bytes are more than a command has.
    TooLarge(usize),
    /// As many commands as may wait do.
    Full,
}

/// What each player gave to a turn: how many commands, and the CRC over them.
fn given(turn: &StartedTurn) -> Vec<(u8, i64, i64)> {
    let of = |player: u8| {
        let (mut hasher, mut count) = (crc32fast::Hasher::new(), 0);
        for (_, command) in turn.commands.iter().filter(|it| it.0 == player) {
            hasher.update(&(command.len() as u16).to_le_bytes());
            hasher.update(command);
            count += 1;
        }
        (player, count, hasher.finalize().into())
    };
    members(if turn.turn < 0 { 0 } else { turn.players }).map(of).collect()
}

fn whole_log(turn: TurnNumber, given: &[(u8, i64, i64)], draw: u16, rows: &TurnLog) -> TurnLog {
    let mut log = TurnLog { turn, ..TurnLog::default() };
    for (player, count, crc) in given {
        log.push(COMMANDS_CLASS, (*player).into(), &[*count, *crc]);
    }
    log.push(DRAW_CLASS, 0, &[draw.into()]);
    let shift = log.words.len() as u32;
    log.rows.extend(rows.rows.iter().map(|row| super::LogRow { start: row.start + shift, ..*row }));
    log.words.extend_from_slice(&rows.words);
    log.check = TurnCheck { crc: log.crc(), draw };
    log
}

/// The check of a turn as [`Lockstep::check`] gives it, for one that runs again.
pub fn replayed_check(turn: &StartedTurn, draw: u16, rows: &TurnLog) -> TurnCheck {
    whole_log(turn.turn, &given(turn), draw, rows).check
}

/// One player's part in the game.
#[derive(Clone, Debug)]
pub struct Lockstep {
    config: LockstepConfig,
    remotes: Vec<RemotePlayer>,
    departures: Departures,
    checks: Checks,
    adapter: Adapter,
    /// Whose part the pace is.
    decider: u8,
    /// The pace it asked for, and from which turn on it may ask for another.
    settled_at: TurnNumber,
    turn: TurnNumber,
    /// The turn at whose end this player's data was closed last.
    closed_after: TurnNumber,
    due: Instant,
    length: Duration,
    pace: Pace,
    speed: u8,
    paused: bool,
    pending: VecDeque<Box<[u8]>>,
    controls: VecDeque<Control>,
    unsent: VecDeque<(TurnNumber, TurnCheck)>,
    /// Of the turn that runs: what each player gave to it.
    given: Vec<(u8, i64, i64)>,
    waiting: Option<Waiting>,
    /// Acks that were said, who is answered on departures, and who is to learn that it is out.
    said: [TurnNumber; MAX_PLAYERS],
    answers: [u16; MAX_PLAYERS],
    excluded: bool,
    events: VecDeque<LockstepEvent>,
    counters: LockstepCounters,
}

impl Lockstep {
    /// A game whose first turn starts at `start`.
    ///
    /// # Errors
    /// Which setting is out of its bounds.
    pub fn new(config: LockstepConfig, start: Instant) -> Result<Self, LockstepConfigError> {
        config.check()?;
        let first = -TurnNumber::from(config.pace.delay);
        Ok(Lockstep {
            remotes: vec![RemotePlayer::new(); MAX_PLAYERS],
            departures: Departures::new(config.players, config.me, config.master),
            checks: Checks::new(config.log_turns),
            adapter: Adapter::new(),
            decider: config.master,
            settled_at: 0,
            turn: first - 1,
            closed_after: first - 1,
            due: start,
            length: schedule::length(config.step, config.pace, NORMAL_SPEED),
            pace: config.pace,
            speed: NORMAL_SPEED,
            paused: false,
            pending: VecDeque::new(),
            controls: VecDeque::new(),
            unsent: VecDeque::new(),
            given: Vec::new(),
            waiting: None,
            said: [-1; MAX_PLAYERS],
            answers: [0; MAX_PLAYERS],
            excluded: false,
            events: VecDeque::new(),
            counters: LockstepCounters::default(),
            config,
        })
    }

    /// Gives a command, for the next turn with room.
    ///
    /// # Errors
    /// It is too large, or too many wait.
    pub fn command(&mut self, command: &[u8]) -> Result<(), CommandError> {
        if command.len() > MAX_COMMAND_BYTES {
            return Err(CommandError::TooLarge(command.len()));
        }
        if self.pending.len() >= MAX_PENDING {
            return Err(CommandError::Full);
        }
        self.pending.push_back(command.into());
        Ok(())
    }

    /// Pauses the game or goes on, at the same turn everywhere.
    pub fn pause(&mut self, paused: bool) {
        self.control(Control::Pause(paused));
    }

    /// How fast turns follow each other, in steps of 10 %, at the same turn everywhere.
    pub fn set_speed(&mut self, speed: u8) {
        self.control(Control::Speed(speed.clamp(1, MAX_SPEED)));
    }

    fn control(&mut self, control: Control) {
        let same = |it: &Control| core::mem::discriminant(it) == core::mem::discriminant(&control);
        self.controls.retain(|it| !same(it));
        if self.controls.len() < MAX_CONTROLS {
            self.controls.push_back(control);
        }
    }

    /// Who is the master now, as the game's peers agreed.
    pub fn set_master(&mut self, player: u8) {
        if self.config.players >> player & 1 == 1 {
            self.departures.master = player;
        }
    }

    /// A player isn't reachable any more.
    pub fn note_left(&mut self, now: Instant, player: u8) {
        if usize::from(player) < MAX_PLAYERS && player != self.config.me {
            self.departures.gone |= 1 << player & self.config.players;
            self.evaluate(now);
        }
    }

    /// This player wants another out, or no longer wants it; it goes when more than half of the others want it.
    pub fn vote(&mut self, now: Instant, player: u8, out: bool) {
        if usize::from(player) >= MAX_PLAYERS || player == self.config.me {
            return;
        }
        let bit = 1 << player & self.config.players;
        self.departures.votes = if out { self.departures.votes | bit } else { self.departures.votes & !bit };
        self.evaluate(now);
    }

    /// Takes a payload of a player.
    ///
    /// # Errors
    /// It breaks the protocol: its connection should end.
    pub fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), Fault> {
        let me = self.config.me;
        if usize::from(player) >= MAX_PLAYERS || player == me || self.config.players >> player & 1 == 0 {
            return Err(Fault::Stranger { player });
        }
        let at = usize::from(player);
        if !self.remotes[at].take_token(now) {
            self.counters.flooded += 1;
            return Ok(());
        }
        self.counters.payloads_received += 1;
        if self.departures.frozen >> player & 1 == 1 {
            self.counters.from_departed += 1;
            // It hears once for each payload that it is out.
            self.answers[at] |= 1 << player;
            return Ok(());
        }
        let payload = Payload::read(payload)?;
        self.check_words(&payload)?;
        let mine = self.remotes[usize::from(me)].have;
        let ack = near(payload.ack, self.turn);
        if ack > mine {
            return Err(Fault::Ack { turn: ack });
        }
        let remote = &mut self.remotes[at];
        remote.acked = remote.acked.max(ack);
        (remote.their_margin, remote.their_worst) = (payload.margin, payload.worst);
        remote.waiting = payload.waiting;
        remote.against = payload.against & self.config.players;
        if payload.waiting && remote.acked < mine {
            remote.next_send = now;
        }
        let first = near(payload.first, self.turn);
        self.take_entries(now, player, first, payload.entries, TurnNumber::MAX)?;
        for word in &payload.departures {
            self.remotes[at].departures[usize::from(word.player)] = Some(*word);
            self.answers[at] |= 1 << word.player;
        }
        self.evaluate(now);
        for copied in payload.copies {
            let before = self.departures.out(copied.player).unwrap_or(TurnNumber::MAX);
            let first = near(copied.first, self.turn);
            self.take_entries(now, copied.player, first, copied.entries, before)?;
        }
        if payload.question.is_some() {
            self.remotes[at].question = payload.question;
        }
        if let Some((turn, reply)) = payload.answer {
            let used = self.checks.answer(player, turn, &reply);
            self.counters.odd += u64::from(!used);
            self.remotes[at].next_send = if used { now } else { self.remotes[at].next_send };
        }
        self.review(now);
        Ok(())
    }

    fn check_words(&self, payload: &Payload) -> Result<(), Fault> {
        for word in &payload.departures {
            if self.config.players >> word.player & 1 == 0 {
                return Err(Fault::Stranger { player: word.player });
            }
            let have = near(word.have, self.turn);
            if have > self.turn + MAX_AHEAD {
                return Err(Fault::Ahead { turn: have });
            }
        }
        for copied in &payload.copies {
            if self.config.players >> copied.player & 1 == 0 {
                return Err(Fault::Stranger { player: copied.player });
            }
            if self.departures.frozen >> copied.player & 1 == 0 {
                return Err(Fault::Forged { player: copied.player });
            }
        }
        Ok(())
    }

    /// Takes what a player gives to turns, one behind the other from `first` on and before the turn `before`.
    fn take_entries(
        &mut self,
        now: Instant,
        player: u8,
        first: TurnNumber,
        entries: Vec<Entry>,
        before: TurnNumber,
    ) -> Result<(), Fault> {
        for (turn, entry) in (first..).zip(entries) {
            let remote = &mut self.remotes[usize::from(player)];
            if turn <= remote.have {
                if remote.entry(turn).is_some_and(|held| *held != entry) {
                    return Err(Fault::Rewritten { turn });
                }
                self.counters.repeated += 1;
                continue;
            }
            if turn > self.turn + MAX_AHEAD {
                return Err(Fault::Ahead { turn });
            }
            if turn > remote.have + 1 {
                self.counters.gaps += 1;
                return Ok(());
            }
            if turn >= before {
                self.counters.copies_unused += 1;
                return Ok(());
            }
            let oldest = turn - TurnNumber::from(entry.back) - entry.checks.len() as TurnNumber + 1;
            for (of, check) in (oldest..).zip(&entry.checks) {
                self.checks.note(player, of, *check);
            }
            remote.push(now, entry);
        }
        Ok(())
    }

    /// Who leaves, and from which turn on.
    fn evaluate(&mut self, now: Instant) {
        if self.excluded {
            return;
        }
        let news = self.departures.evaluate(self.turn, &self.remotes);
        if news.me {
            self.excluded = true;
            self.push_event(LockstepEvent::Excluded);
        }
        self.counters.odd += u64::from(news.odd);
        for player in members(news.decided) {
            if let Some(turn) = self.departures.out(player) {
                self.push_event(LockstepEvent::Dropped { player, turn });
            }
            self.remotes.iter_mut().for_each(|it| it.next_send = now);
        }
    }

    /// Compares checks.
    fn review(&mut self, now: Instant) {
        let departures = &self.departures;
        let live = departures.live();
        while let Some((turn, player)) = self.checks.first_difference(self.config.me, live) {
            self.push_event(LockstepEvent::Mismatch { turn, player });
        }
        let departures = &self.departures;
        if let Some(verdict) = self.checks.review(self.config.me, |turn| departures.needed(turn) & live) {
            self.push_event(LockstepEvent::Desync(verdict));
        }
        while let Some((player, turn, differences)) = self.checks.poll_report(now) {
            self.push_event(LockstepEvent::Report { turn, player, differences });
        }
    }

    fn push_event(&mut self, event: LockstepEvent) {
        if self.events.len() == MAX_EVENTS {
            self.counters.events_dropped += 1;
            return;
        }
        self.events.push_back(event);
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<LockstepEvent> {
        self.events.pop_front()
    }

    /// The next turn, if it is due and all its data is there.
    pub fn poll_turn(&mut self, now: Instant) -> Option<StartedTurn> {
        if self.excluded || now < self.due {
            return None;
        }
        self.review(now);
        let next = self.turn + 1;
        let first = -TurnNumber::from(self.config.pace.delay);
        if self.closed_after < self.turn && self.turn >= first {
            self.close(now);
        }
        let needed = self.departures.needed(next);
        let lacks = |player: &u8| self.remotes[usize::from(*player)].entry(next).is_none();
        let missing = members(needed).filter(lacks).fold(0, |all, it| all | 1 << it);
        if missing != 0 && next >= 0 {
            let since = self.waiting.map_or(now, |waiting| waiting.since);
            if self.waiting.is_none() {
                // Whoever is waited for hears of it at once.
                members(missing).for_each(|it| self.remotes[usize::from(it)].next_send = now);
            }
            self.waiting = Some(Waiting { turn: next, players: missing, since });
            return None;
        }
        Some(self.start(now, next, needed))
    }

    /// Closes what this player gives to the turns that may now get no more.
    fn close(&mut self, now: Instant) {
        self.closed_after = self.turn;
        let me = usize::from(self.config.me);
        while self.remotes[me].have < self.turn + TurnNumber::from(self.pace.delay) {
            let turn = self.remotes[me].have + 1;
            let mut entry = Entry { control: self.controls.pop_front(), ..Entry::default() };
            let mut bytes = 0;
            while let Some(command) = self.pending.front() {
                bytes += command.len();
                if entry.commands.len() == MAX_COMMANDS || bytes > MAX_ENTRY_BYTES {
                    break;
                }
                entry.commands.extend(self.pending.pop_front());
            }
            if let Some((newest, _)) = self.unsent.back()
                && let Ok(back) = u8::try_from(turn - newest)
                && (1..=MAX_BACK).contains(&back)
            {
                entry.back = back;
                entry.checks = self.unsent.drain(..).map(|(_, check)| check).collect();
            }
            self.remotes[me].push(now, entry);
            for (player, remote) in self.remotes.iter_mut().enumerate() {
                if player != me {
                    remote.next_send = now;
                }
            }
        }
    }

    fn start(&mut self, now: Instant, turn: TurnNumber, players: u16) -> StartedTurn {
        let stalled = self.waiting.take().is_some();
        let before = if self.turn < -TurnNumber::from(self.config.pace.delay) {
            players
        } else {
            self.departures.needed(self.turn)
        };
        let mut started = StartedTurn { turn, players, left: before & !players, ..StartedTurn::default() };
        if players >> self.decider & 1 == 0 {
            self.decider = players.trailing_zeros() as u8;
        }
        let mut worst: Option<f64> = None;
        let mut asked = None;
        for player in members(if turn < 0 { 0 } else { players }) {
            let remote = &self.remotes[usize::from(player)];
            let Some(entry) = remote.entry(turn) else { continue };
            started.commands.extend(entry.commands.iter().map(|command| (player, command.clone())));
            match entry.control {
                Some(Control::Pace(pace)) if player == self.decider => asked = Some(pace),
                Some(Control::Pace(_)) => self.counters.forged_pace += 1,
                Some(Control::Pause(paused)) => self.paused = paused,
                Some(Control::Speed(speed)) => self.speed = speed,
                None => {}
            }
            if player != self.config.me
                && let Some(arrived) = remote.arrived(turn)
            {
                let ms = (self.due - arrived).as_secs_f64() * 1e3 - (arrived - self.due).as_secs_f64() * 1e3;
                worst = Some(worst.map_or(ms, |worst| worst.min(ms)));
                self.remotes[usize::from(player)].note_margin(ms);
            }
        }
        self.given = given(&started);
        if let Some(worst) = worst {
            self.adapter.note(worst);
            if stalled {
                self.counters.stalls += 1;
                self.counters.stalled_us += (-worst * 1e3).max(0.0) as u64;
            }
        }
        self.turn = turn;
        self.counters.turns += 1;
        let lead = self.lead(players);
        if let Some(pace) = asked.filter(|pace| *pace != self.pace) {
            self.pace = pace;
            self.adapter.clear();
            self.remotes.iter_mut().for_each(RemotePlayer::forget_margin);
            self.push_event(LockstepEvent::PaceChanged { turn, pace });
        }
        self.length = schedule::length(self.config.step, self.pace, self.speed);
        self.due = schedule::next_due(self.due, now, stalled, self.length, lead);
        self.decide(now, turn);
        started.steps = if self.paused { 0 } else { self.pace.steps };
        (started.delay, started.speed, started.paused) = (self.pace.delay, self.speed, self.paused);
        started
    }

    /// Milliseconds by which this player runs ahead of the others, in the mean.
    fn lead(&self, players: u16) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for player in members(players & !(1 << self.config.me)) {
            let remote = &self.remotes[usize::from(player)];
            if let (Some(theirs), Some(mine)) = (decoded(remote.their_margin), remote.margin()) {
                sum += (theirs - mine) / 2.0;
                count += 1.0;
            }
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Asks for another pace, where that is this player's part.
    fn decide(&mut self, now: Instant, turn: TurnNumber) {
        if self.decider != self.config.me || !self.config.adapt || turn < self.settled_at || self.paused {
            return;
        }
        let mut worst = self.adapter.worst();
        for player in members(self.departures.needed(turn) & !(1 << self.config.me)) {
            let theirs = decoded(self.remotes[usize::from(player)].their_worst);
            // One who knows that it is too little is enough.
            worst = match (worst, theirs) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b).filter(|ms| *ms < 0.0),
            };
        }
        let turn_ms = self.length.as_secs_f64() * 1e3;
        let (min, max) = (self.config.pace, self.config.max_pace);
        if let Some(pace) = self.adapter.decide(now, worst, self.pace, turn_ms, min, max) {
            self.settled_at = turn + TurnNumber::from(self.pace.delay) + 24;
            self.control(Control::Pace(pace));
        }
    }

    /// Takes the world's values after the newest turn, objects in order of class and id, and a draw of the generator that all
    /// share. Gives the check, or nothing where it isn't of this turn, is out of order or too large.
    pub fn check(&mut self, now: Instant, turn: TurnNumber, draw: u16, rows: &TurnLog) -> Option<TurnCheck> {
        let is_sorted = rows.rows.is_sorted_by(|a, b| (a.class, a.id) < (b.class, b.id));
        let is_small = rows.rows.len() <= MAX_OBJECTS && rows.words.len() <= MAX_WORDS;
        let is_new = self.checks.newest().is_none_or(|log| log.turn < turn);
        if turn != self.turn || !is_sorted || !is_small || !is_new {
            return None;
        }
        let log = whole_log(turn, &self.given, draw, rows);
        let check = log.check;
        self.checks.push(log);
        if self.unsent.back().is_some_and(|(newest, _)| *newest != turn - 1) {
            self.unsent.clear();
        }
        if self.unsent.len() == MAX_CHECKS {
            self.unsent.pop_front();
        }
        self.unsent.push_back((turn, check));
        self.review(now);
        Some(check)
    }

    /// The worlds are one again from after this turn on: checks are compared again.
    pub fn resume(&mut self, turn: TurnNumber) {
        self.checks.resume(turn);
        self.unsent.clear();
    }

    /// Writes what a player lacks, in at most this many bits. False where there is nothing to say.
    pub fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        let at = usize::from(player);
        let me = self.config.me;
        if at >= MAX_PLAYERS || player == me || self.config.players >> player & 1 == 0 {
            return false;
        }
        let mut payload = self.header(player);
        if self.departures.frozen >> player & 1 == 1 {
            if core::mem::take(&mut self.answers[at]) == 0 || bits < HEADER_BITS + MORE_BITS * 4 {
                return false;
            }
            payload.departures = self.departures.words(player, &self.remotes, u16::MAX);
            return self.send(payload, at, writer);
        }
        let remote = &self.remotes[at];
        let is_due = now >= remote.next_send;
        if !is_due || bits < HEADER_BITS + MORE_BITS {
            return false;
        }
        let mut room = bits - HEADER_BITS - MORE_BITS;
        // Until all have long gone on without them.
        let is_new = |it: &u8| self.departures.out(*it).is_none_or(|out| out > self.turn - 100);
        payload.against = members(self.departures.against()).filter(is_new).fold(0, |all, it| all | 1 << it);
        payload.departures =
            self.departures.words(player, &self.remotes, core::mem::take(&mut self.answers[at]));
        room = room.saturating_sub(payload.departures.len() * 21);
        let lacking = self.remotes[usize::from(me)].have - remote.acked;
        (payload.first, payload.entries) = self.entries(me, remote.acked + 1, TurnNumber::MAX, &mut room);
        for word in &payload.departures {
            let Some(theirs) = remote.departures[usize::from(word.player)] else { continue };
            let from = near(theirs.have, self.turn) + 1;
            room = room.saturating_sub(16);
            let (first, entries) = self.entries(word.player, from, TurnNumber::MAX, &mut room);
            if !entries.is_empty() && payload.copies.len() < MAX_ENTRIES {
                payload.copies.push(CopiedEntries { player: word.player, first, entries });
            }
        }
        payload.question = self.checks.question(player).filter(|_| room > 60);
        room = room.saturating_sub(60);
        if let Some((turn, query)) = self.remotes[at].question.take_if(|_| room > 200) {
            payload.answer = Some((turn, self.reply(turn, query, room)));
        }
        let has_news = lacking > 0
            || self.said[at] != self.remotes[at].have
            || payload.waiting
            || payload.question.is_some()
            || payload.answer.is_some()
            || !payload.departures.is_empty()
            || payload.against != 0;
        let fast = payload.waiting || payload.question.is_some() || !payload.departures.is_empty();
        let again = if fast { self.config.step } else { self.config.resend.unwrap_or(self.length) };
        self.remotes[at].next_send = now + again;
        has_news && self.send(payload, at, writer)
    }

    fn reply(&self, turn: u16, query: LogQuery, room: usize) -> LogReply {
        let max_rows = ((room - 64) / 72).min(MAX_ROWS);
        self.checks.reply(turn, query, max_rows, ((room - 64) / 64).min(MAX_FIELDS))
    }

    fn header(&self, player: u8) -> Payload {
        let remote = &self.remotes[usize::from(player)];
        Payload {
            waiting: self.waiting.is_some_and(|waiting| waiting.players >> player & 1 == 1),
            ack: remote.have as u8,
            margin: coded(remote.margin()),
            worst: coded(self.adapter.worst()),
            ..Payload::default()
        }
    }

    /// Entries of a player from a turn on that fit.
    fn entries(&self, of: u8, from: TurnNumber, before: TurnNumber, room: &mut usize) -> (u8, Vec<Entry>) {
        let remote = &self.remotes[usize::from(of)];
        let mut entries = Vec::new();
        let mut turn = from;
        while entries.len() < MAX_ENTRIES && turn <= remote.have && turn < before {
            let Some(entry) = remote.entry(turn).filter(|entry| entry.bits() <= *room) else { break };
            *room -= entry.bits();
            entries.push(entry.clone());
            turn += 1;
        }
        (from as u8, entries)
    }

    fn send(&mut self, payload: Payload, at: usize, writer: &mut BitWriter) -> bool {
        let before = writer.bit_len();
        payload.write(writer);
        self.said[at] = self.remotes[at].have;
        self.counters.payloads_sent += 1;
        self.counters.bytes_sent += (writer.bit_len() - before).div_ceil(8) as u64;
        true
    }
}

/// Questions.
impl Lockstep {
    /// What the due turn waits for, if it does.
    pub fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// The newest turn that started.
    pub fn turn(&self) -> TurnNumber {
        self.turn
    }

    /// When the next turn is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// The real time of the turn that runs.
    pub fn length(&self) -> Duration {
        self.length
    }

    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Who takes part in the turn that runs.
    pub fn players(&self) -> u16 {
        self.departures.needed(self.turn)
    }

    /// Who decides on the pace.
    pub fn decider(&self) -> u8 {
        self.decider
    }

    /// Whether the others go on without this player.
    pub fn is_excluded(&self) -> bool {
        self.excluded
    }

    /// Commands that wait for a turn.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    pub fn counters(&self) -> LockstepCounters {
        self.counters
    }

    /// The log of a turn, as long as it is kept.
    pub fn log(&self, turn: TurnNumber) -> Option<&TurnLog> {
        self.checks.log(turn)
    }

    /// When something is to be done next: a turn is due, or something is to be said.
    pub fn next_event(&self) -> Instant {
        let others = members(self.departures.live() & !(1 << self.config.me));
        let next_send = others.map(|it| self.remotes[usize::from(it)].next_send).min();
        next_send.unwrap_or(Instant::NEVER).min(self.due)
    }
}
