//! Closing, starting and checking turns.

use super::{Lockstep, LockstepEvent, StartedTurn, Waiting};
use crate::lockstep::LogRow;
use crate::lockstep::checks::{COMMANDS_CLASS, DRAW_CLASS, MAX_OBJECTS, MAX_WORDS, TurnLog};
use crate::lockstep::config::{MAX_COMMANDS, MAX_ENTRY_BYTES, Pace, TurnNumber, mask_of, members};
use crate::lockstep::entry::{Control, MAX_BACK, MAX_CHECKS, PastChecks, TurnCheck, TurnEntry};
use crate::lockstep::joining::RanTurn;
use crate::lockstep::remote::{RemotePlayer, decoded};
use crate::lockstep::schedule;
use crate::time::{Duration, Instant};

/// How long a newcomer's first turn waits for its data, which it may never be able to give. For players who have played,
/// the game decides.
const NEWCOMER_PATIENCE: Duration = Duration::from_secs(5);

/// Each player's commands of a turn, as their count and CRC.
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
    log.rows.extend(rows.rows.iter().map(|row| LogRow { start: row.start + shift, ..*row }));
    log.words.extend_from_slice(&rows.words);
    log.check = TurnCheck { crc: log.crc(), draw };
    log
}

/// The check of a turn that runs again in a replay, equal to [`Lockstep::check`]'s.
pub fn replayed_check(turn: &StartedTurn, draw: u16, rows: &TurnLog) -> TurnCheck {
    whole_log(turn.turn, &given(turn), draw, rows).check
}

impl Lockstep {
    /// The next turn, if it is due and all its data has arrived.
    pub fn poll_turn(&mut self, now: Instant) -> Option<StartedTurn> {
        if self.newcomer.is_some() {
            return self.poll_past(now);
        }
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
        let missing = mask_of(members(needed).filter(lacks));
        if missing != 0 && next >= 0 {
            // Of one who left all is there, unless somebody who claims to have more doesn't copy it.
            let withholders = |it| match self.departures.withholders(it, next, &self.remotes) {
                0 => 1 << it,
                withholders => withholders,
            };
            let players = members(missing).fold(0, |all, it| all | withholders(it));
            let known = self.waiting.filter(|waiting| players & !waiting.players == 0);
            let since = known.map_or(now, |waiting| waiting.since);
            if now - since > NEWCOMER_PATIENCE {
                let begins = |it: &u8| self.departures.joined(*it) == next;
                let late = mask_of(members(missing).filter(begins));
                self.departures.votes |= late & !(1 << self.config.me);
                self.evaluate(now);
            }
            if self.waiting.is_none() {
                // Players that are waited for hear so at once.
                members(missing).for_each(|it| self.remotes[usize::from(it)].next_send = now);
            }
            self.waiting = Some(Waiting { turn: next, players, since });
            return None;
        }
        Some(self.start(now, next, needed))
    }

    /// Closes this player's entries for the turns that accept no more commands.
    fn close(&mut self, now: Instant) {
        self.closed_after = self.turn;
        let me = usize::from(self.config.me);
        while self.remotes[me].have < self.turn + TurnNumber::from(self.pace.delay) {
            let turn = self.remotes[me].have + 1;
            let mut entry = TurnEntry { control: self.controls.pop_front(), ..TurnEntry::default() };
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
                let crcs = self.unsent.drain(..).map(|(_, check)| check.crc).collect();
                entry.checks = PastChecks { back, crcs };
            }
            self.remotes[me].push(now, entry);
            for (player, remote) in self.remotes.iter_mut().enumerate() {
                if player != me {
                    remote.next_send = now;
                }
            }
        }
    }

    pub(super) fn start(&mut self, now: Instant, turn: TurnNumber, players: u16) -> StartedTurn {
        let stalled = self.waiting.take().is_some();
        let before = if self.turn < -TurnNumber::from(self.config.pace.delay) {
            players
        } else {
            self.departures.needed(self.turn)
        };
        let mut started = StartedTurn { turn, players, left: before & !players, ..StartedTurn::default() };
        started.joined = self.came(turn, players);
        let plays = self.newcomer.is_none();
        if players >> self.decider & 1 == 0 {
            self.decider = players.trailing_zeros() as u8;
        }
        let givers = if turn < 0 { 0 } else { players };
        let (asked, newcomer) = self.take_given(turn, givers, &mut started);
        if plays {
            self.note_margins(turn, givers, stalled);
        }
        let entry = |player| self.remotes[usize::from(player)].entry(turn).cloned().unwrap_or_default();
        self.newcomers.record(turn, RanTurn { players, entries: members(players).map(entry).collect() });
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
        // A newcomer whom nobody waits for yet comes in step with the others, whatever it waits for itself.
        let is_early = turn < self.departures.joined(self.config.me);
        self.due = match is_early {
            true => self.due + self.length,
            false => schedule::next_due(self.due, now, stalled, self.length, lead),
        };
        if let Some(player) = newcomer {
            self.admit(now, turn, player);
        }
        if plays {
            self.decide(now, turn);
            self.propose_newcomers(turn);
        }
        started.steps = if self.paused { 0 } else { self.pace.steps };
        (started.delay, started.speed, started.paused) = (self.pace.delay, self.speed, self.paused);
        started
    }

    /// Takes the commands and controls of a turn that starts; returns the pace that the deciding player asks for, and the
    /// newcomer that it lets in.
    fn take_given(
        &mut self,
        turn: TurnNumber,
        players: u16,
        started: &mut StartedTurn,
    ) -> (Option<Pace>, Option<u8>) {
        let (mut asked, mut newcomer) = (None, None);
        for player in members(players) {
            let Some(entry) = self.remotes[usize::from(player)].entry(turn) else { continue };
            started.commands.extend(entry.commands.iter().map(|command| (player, command.clone())));
            match entry.control {
                Some(Control::Pace(pace)) if player == self.decider => asked = Some(pace),
                Some(Control::Join(joins)) if player == self.decider => newcomer = Some(joins),
                Some(Control::Pace(_) | Control::Join(_)) => self.counters.forged_pace += 1,
                Some(Control::Pause(paused)) => self.paused = paused,
                Some(Control::Speed(speed)) => self.speed = speed,
                None => {}
            }
        }
        self.given = given(started);
        (asked, newcomer)
    }

    /// Notes how early the others' data for a turn was here.
    fn note_margins(&mut self, turn: TurnNumber, players: u16, stalled: bool) {
        let mut worst: Option<f64> = None;
        for player in members(players & !(1 << self.config.me)) {
            let remote = &mut self.remotes[usize::from(player)];
            let Some(arrived) = remote.arrived(turn) else { continue };
            let ms = (self.due - arrived).as_secs_f64() * 1e3 - (arrived - self.due).as_secs_f64() * 1e3;
            worst = Some(worst.map_or(ms, |worst| worst.min(ms)));
            remote.note_margin(ms);
        }
        let Some(worst) = worst else { return };
        self.adapter.note(worst);
        if stalled {
            self.counters.stalls += 1;
            self.counters.stalled_us += (-worst * 1e3).max(0.0) as u64;
        }
    }

    /// Milliseconds by which this player runs ahead of the others, on average.
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

    /// Asks for another pace, if this player decides on it.
    fn decide(&mut self, now: Instant, turn: TurnNumber) {
        if self.decider != self.config.me || !self.config.adapt || turn < self.settled_at || self.paused {
            return;
        }
        let mut worst = self.adapter.worst();
        for player in members(self.departures.needed(turn) & !(1 << self.config.me)) {
            let theirs = decoded(self.remotes[usize::from(player)].their_worst);
            // One player that knows its margin to be too small is enough.
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

    /// Takes the world's values after the newest turn, objects sorted by class and id, and a draw of the shared
    /// generator. Returns the check; None if the log is of another turn, unsorted or too large.
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

    /// The worlds are equal again after this turn: comparing resumes.
    pub fn resume(&mut self, turn: TurnNumber) {
        self.checks.resume(turn);
        self.unsent.clear();
    }
}
