//! [`Lockstep`]: starts a turn once all players' data for it has arrived.

mod newcomer;
mod newcomers;
mod questions;
mod reading;
mod turns;
mod writing;

use std::collections::VecDeque;

use self::newcomer::{Healing, Newcomer};
use self::newcomers::Newcomers;
pub use self::turns::replayed_check;
use super::adapt::Adapter;
use super::checks::{Checks, Difference, Verdict};
use super::config::{
    LockstepConfig, LockstepConfigError, MAX_COMMAND_BYTES, MAX_PENDING, MAX_PLAYERS, MAX_SPEED,
    NORMAL_SPEED, Pace, TurnNumber, members,
};
use super::departure::Departures;
use super::entry::{Control, TurnCheck};
use super::joining::JoinRefusal;
use super::remote::RemotePlayer;
use super::schedule;
use crate::store::counters::counters;
use crate::time::{Duration, Instant};

/// The maximum of waiting events.
const MAX_EVENTS: usize = 256;
/// The maximum of controls waiting for a turn.
const MAX_CONTROLS: usize = 8;

counters! {
    /// Counters of a lockstep game.
    pub struct LockstepCounters {
        turns,
        /// Turns that were due before their data arrived.
        stalls,
        /// Microseconds lost to stalls.
        stalled_us,
        payloads_sent,
        payloads_received,
        bytes_sent,
        /// Data that had arrived before.
        repeated,
        /// Payloads dropped because a player sent too many.
        flooded,
        /// Payloads from players that are departing or out.
        from_departed,
        /// Data after a gap.
        gaps,
        /// A pace from a player that isn't the deciding one.
        forged_pace,
        /// Useless copies of others' data.
        copies_unused,
        /// Impossible decisions, and answers to no question.
        odd,
        /// Events dropped because the game took none.
        events_dropped,
    }
}

/// A turn to run now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartedTurn {
    pub turn: TurnNumber,
    /// Sub-turns to simulate; 0 while the game is paused.
    pub steps: u8,
    pub delay: u8,
    /// In steps of 10 %.
    pub speed: u8,
    pub paused: bool,
    /// The mask of the players in this turn.
    pub players: u16,
    /// The mask of players that take no part from this turn on.
    pub left: u16,
    /// Who takes part from this turn on.
    pub joined: u16,
    /// By player, in the order they were given.
    pub commands: Vec<(u8, Box<[u8]>)>,
}

/// Why the due turn can't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub turn: TurnNumber,
    /// The players whose data is missing.
    pub players: u16,
    pub since: Instant,
}

/// An event for the game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockstepEvent {
    /// A player is out from this turn on.
    Dropped { player: u8, turn: TurnNumber },
    /// A newcomer takes part from this turn on.
    Joined { player: u8, turn: TurnNumber },
    /// This player isn't let in, or gets no world that heals its own.
    Refused { reason: JoinRefusal },
    /// A player's world is that of the others again.
    Healed { player: u8, turn: TurnNumber },
    /// The others go on without this player: no more turns will come.
    Excluded,
    /// The pace changes with this turn.
    PaceChanged { turn: TurnNumber, pace: Pace },
    /// A player's check of this turn differs from ours.
    Mismatch { turn: TurnNumber, player: u8 },
    /// The first differing turn, with all players' checks compared.
    Desync(Verdict),
    /// The values that differ between this player and another.
    Report { turn: TurnNumber, player: u8, differences: Vec<Difference> },
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The command has this many bytes, which is too many.
    TooLarge(usize),
    /// Too many commands wait already.
    Full,
}

/// One player's side of the game.
#[derive(Clone, Debug)]
pub struct Lockstep {
    config: LockstepConfig,
    remotes: Vec<RemotePlayer>,
    departures: Departures,
    checks: Checks,
    adapter: Adapter,
    /// The player who decides on the pace.
    decider: u8,
    /// The pace that it asked for, and the turn from which it may ask again.
    settled_at: TurnNumber,
    turn: TurnNumber,
    /// The turn at whose end this player's entries were last closed.
    closed_after: TurnNumber,
    due: Instant,
    length: Duration,
    pace: Pace,
    speed: u8,
    paused: bool,
    pending: VecDeque<Box<[u8]>>,
    controls: VecDeque<Control>,
    unsent: VecDeque<(TurnNumber, TurnCheck)>,
    /// What each player gave to the current turn.
    given: Vec<(u8, i64, i64)>,
    waiting: Option<Waiting>,
    /// The turn last acked to each player.
    last_ack: [TurnNumber; MAX_PLAYERS],
    /// Per player, the departures to report to it.
    owed: [u16; MAX_PLAYERS],
    excluded: bool,
    newcomers: Newcomers,
    /// Until this player plays, where it came later.
    newcomer: Option<Box<Newcomer>>,
    healing: Option<Healing>,
    events: VecDeque<LockstepEvent>,
    counters: LockstepCounters,
}

impl Lockstep {
    /// A game whose first turn starts at `start`.
    ///
    /// # Errors
    /// Names the setting that is out of its bounds.
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
            last_ack: [-1; MAX_PLAYERS],
            owed: [0; MAX_PLAYERS],
            excluded: false,
            newcomers: Newcomers::default(),
            newcomer: config.joins.then(|| Box::new(Newcomer::new(start))),
            healing: None,
            events: VecDeque::new(),
            counters: LockstepCounters::default(),
            config,
        })
    }

    /// Adds a command to the next turn with room.
    ///
    /// # Errors
    /// The command is too large, or too many wait.
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

    /// Pauses or resumes the game, at the same turn everywhere.
    pub fn pause(&mut self, paused: bool) {
        self.control(Control::Pause(paused));
    }

    /// Sets the speed in steps of 10 %, at the same turn everywhere.
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

    /// Sets the master that the peers have agreed on.
    pub fn set_master(&mut self, player: u8) {
        if self.config.players >> player & 1 == 1 {
            self.departures.master = player;
        }
    }

    /// A player can't be reached any more.
    pub fn note_left(&mut self, now: Instant, player: u8) {
        if usize::from(player) < MAX_PLAYERS && player != self.config.me {
            self.departures.gone |= 1 << player & self.config.players;
            self.departures.absent |= 1 << player;
            self.newcomers.fresh &= !(1 << player);
            self.newcomers.forget(player);
            self.lose_helper(now, player);
            self.evaluate(now);
        }
    }

    /// Votes a player out, or takes the vote back. It is out once more than half of the others vote so.
    pub fn vote(&mut self, now: Instant, player: u8, out: bool) {
        if usize::from(player) >= MAX_PLAYERS || player == self.config.me {
            return;
        }
        let bit = 1 << player & self.config.players;
        self.departures.votes = if out { self.departures.votes | bit } else { self.departures.votes & !bit };
        self.evaluate(now);
    }

    /// Evaluates who departs, and from which turn on.
    fn evaluate(&mut self, now: Instant) {
        if self.excluded || self.newcomer.is_some() {
            return;
        }
        let news = self.departures.evaluate(self.turn, &mut self.remotes);
        if news.me {
            self.excluded = true;
            self.push_event(LockstepEvent::Excluded);
        }
        self.counters.odd += u64::from(news.odd);
        for player in members(news.decided) {
            self.note_dropped(player);
            if let Some(turn) = self.departures.out(player) {
                self.push_event(LockstepEvent::Dropped { player, turn });
            }
            self.remotes.iter_mut().for_each(|it| it.next_send = now);
        }
    }

    /// Compares checks, and continues the questions to others.
    fn review(&mut self, now: Instant) {
        let departures = &self.departures;
        let live = departures.live();
        while let Some((turn, player)) = self.checks.first_difference(self.config.me, live) {
            self.push_event(LockstepEvent::Mismatch { turn, player });
        }
        let departures = &self.departures;
        if let Some(verdict) = self.checks.review(self.config.me, |turn| departures.needed(turn) & live) {
            if self.newcomer.is_some() {
                let helper = members(verdict.right).next();
                if helper.is_some_and(|player| !self.checks.agrees_with(player, verdict.turn)) {
                    self.give_up(JoinRefusal::OtherWorld);
                } else if self.config.heals && verdict.right != 0 {
                    self.checks.excuse(verdict.odd, verdict.turn);
                }
            } else if verdict.odd >> self.config.me & 1 == 1 && verdict.right != 0 {
                self.begin_healing(now, verdict.right);
            } else if self.config.heals && verdict.right != 0 {
                self.checks.excuse(verdict.odd, verdict.turn);
            }
            self.push_event(LockstepEvent::Desync(verdict));
        }
        let reviewed = self.checks.reviewed();
        if let Some(newcomer) = &mut self.newcomer
            && let Some(helper) = newcomer.helper
        {
            newcomer.agreed |= self.checks.agrees_with(helper, reviewed);
        }
        while let Some((player, turn)) = self.checks.poll_healed() {
            self.push_event(LockstepEvent::Healed { player, turn });
        }
        while let Some((player, turn, differences)) = self.checks.poll_report(now) {
            self.push_event(LockstepEvent::Report { turn, player, differences });
        }
    }

    /// Adds an event. If too many wait, the oldest one is dropped that only informs.
    fn push_event(&mut self, event: LockstepEvent) {
        if self.events.len() == MAX_EVENTS {
            let only_informs = |it: &LockstepEvent| {
                matches!(it, LockstepEvent::PaceChanged { .. } | LockstepEvent::Mismatch { .. })
            };
            let place = self.events.iter().position(only_informs).unwrap_or(0);
            self.events.remove(place);
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// The oldest event not yet taken.
    pub fn poll_event(&mut self) -> Option<LockstepEvent> {
        self.events.pop_front()
    }
}
