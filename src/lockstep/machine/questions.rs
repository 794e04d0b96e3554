//! Read access to the machine's state.

use super::{Lockstep, LockstepCounters, Waiting};
use crate::lockstep::checks::TurnLog;
use crate::lockstep::config::{LockstepConfig, Pace, TurnNumber, members};
use crate::time::{Duration, Instant};

impl Lockstep {
    /// The settings it was made with.
    pub fn config(&self) -> &LockstepConfig {
        &self.config
    }

    /// What the due turn waits for, if it waits.
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

    /// The real time of the current turn.
    pub fn length(&self) -> Duration {
        self.length
    }

    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The mask of the players in the current turn.
    pub fn players(&self) -> u16 {
        self.departures.needed(self.turn)
    }

    /// The player who decides on the pace.
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

    /// The log of a turn, while it is kept.
    pub fn log(&self, turn: TurnNumber) -> Option<&TurnLog> {
        self.checks.log(turn)
    }

    /// The time at which a turn or a payload is due next.
    pub fn next_event(&self) -> Instant {
        let others = members(self.departures.live() & !(1 << self.config.me));
        let next_send = others.map(|it| self.remotes[usize::from(it)].next_send).min();
        next_send.unwrap_or(Instant::NEVER).min(self.due)
    }
}
