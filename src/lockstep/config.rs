//! Settings of a lockstep game, and the bounds of everything that a peer may send.

use core::fmt;

use crate::time::Duration;
use crate::wire::packet::{FromOne, packet};

/// A turn's number; it starts below zero, so that turn 0 is the first with commands.
pub type TurnNumber = i32;

/// The maximum of players, which are bits of a mask.
pub const MAX_PLAYERS: usize = 16;
/// The maximum of sub-turns in a turn.
pub const MAX_STEPS: u8 = 16;
/// The maximum of turns between giving a command and running it.
pub const MAX_DELAY: u8 = 16;
/// How many turns' data is kept: what may come early, and as much that others may still lack.
pub const WINDOW: usize = 128;
/// The maximum of turns between the one in which all hear of a newcomer and the one from which on it counts.
pub const MAX_NOTICE: TurnNumber = 32;
/// How far ahead of the local turn a peer's data may be: it can't run further ahead than the data it has from here, or
/// than the turn from which on it waits for this newcomer.
pub const MAX_AHEAD: TurnNumber = MAX_NOTICE + MAX_DELAY as TurnNumber + 4;
/// The maximum of commands that a player gives to one turn.
pub const MAX_COMMANDS: usize = 63;
/// The maximum of bytes in a command.
pub const MAX_COMMAND_BYTES: usize = 480;
/// The maximum of bytes of a player's commands in a turn: they fit one payload.
pub const MAX_ENTRY_BYTES: usize = 512;
/// The maximum of commands that wait for a turn with room.
pub const MAX_PENDING: usize = 4096;
/// The maximum speed, in steps of 10 %: 640 %.
pub const MAX_SPEED: u8 = 64;
/// Normal speed, in steps of 10 %.
pub const NORMAL_SPEED: u8 = 10;

packet! {
    /// The length of turns, and the delay of commands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Pace {
        /// Sub-turns in a turn: up to [`MAX_STEPS`].
        pub steps: FromOne<4>,
        /// Commands given in turn x run in turn x + delay: up to [`MAX_DELAY`].
        pub delay: FromOne<4>,
    }
}

/// Settings; the same for all players except `me`.
#[derive(Clone, Debug, PartialEq)]
pub struct LockstepConfig {
    /// The number of this player.
    pub me: u8,
    /// The mask of all players.
    pub players: u16,
    /// The master at the start: it decides on the pace, and on dropping players.
    pub master: u8,
    /// The real time of a sub-turn.
    pub step: Duration,
    pub pace: Pace,
    /// Whether length and delay adapt to the network.
    pub adapt: bool,
    /// The bounds of length and delay.
    pub max_pace: Pace,
    /// Resends an entry without ack after this time, besides whenever a new one is sent; None: a turn.
    pub resend: Option<Duration>,
    /// How many turns' values are kept to find differences.
    pub log_turns: usize,
    /// This player isn't one of `players`: it comes while the game runs.
    pub joins: bool,
    /// Whether newcomers are let in while the game runs.
    pub admits: bool,
    /// Whether a player whose world differs from that of more than half of all is given theirs.
    pub heals: bool,
}

impl LockstepConfig {
    /// The article's settings: turns of 3 sub-turns of 33 ms, run 2 turns later.
    pub fn new(me: u8, players: u16, master: u8) -> Self {
        LockstepConfig {
            me,
            players,
            master,
            step: Duration::from_millis(33),
            pace: Pace { steps: 3, delay: 2 },
            adapt: true,
            max_pace: Pace { steps: 6, delay: 6 },
            resend: None,
            log_turns: 32,
            joins: false,
            admits: false,
            heals: false,
        }
    }

    /// Refuses settings out of their bounds.
    ///
    /// # Errors
    /// Names the setting that is out of its bounds.
    pub fn check(&self) -> Result<(), LockstepConfigError> {
        let is_in = |name, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(LockstepConfigError { name, value: value as u64, low: low as u64, high: high as u64 })
        };
        is_in("players", self.players.count_ones() as usize, 1, MAX_PLAYERS)?;
        for (name, player) in [("me", self.me), ("master", self.master)] {
            is_in(name, player.into(), 0, MAX_PLAYERS - 1)?;
            if self.players >> player & 1 == 0 && !(self.joins && name == "me") {
                let high = 15 - u64::from(self.players.leading_zeros());
                return Err(LockstepConfigError { name, value: player.into(), low: 0, high });
            }
        }
        is_in("step in ms", self.step.as_millis() as usize, 1, 1000)?;
        is_in("steps", self.pace.steps.into(), 1, MAX_STEPS.into())?;
        is_in("delay", self.pace.delay.into(), 1, MAX_DELAY.into())?;
        is_in("max_steps", self.max_pace.steps.into(), self.pace.steps.into(), MAX_STEPS.into())?;
        is_in("max_delay", self.max_pace.delay.into(), self.pace.delay.into(), MAX_DELAY.into())?;
        is_in("log_turns", self.log_turns, 8, 256)
    }
}

/// A setting that is out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockstepConfigError {
    name: &'static str,
    value: u64,
    low: u64,
    high: u64,
}

impl fmt::Display for LockstepConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LockstepConfigError { name, value, low, high } = self;
        match *name {
            "me" | "master" => write!(f, "{name} must be one of the players, not {value}"),
            _ => write!(f, "{name} must be {low} to {high}, not {value}"),
        }
    }
}

impl core::error::Error for LockstepConfigError {}

/// The players of a mask, the lowest first.
pub fn members(mask: u16) -> impl Iterator<Item = u8> + Clone {
    (0..MAX_PLAYERS as u8).filter(move |player| mask >> player & 1 == 1)
}

/// The mask of these players.
pub fn mask_of(players: impl IntoIterator<Item = u8>) -> u16 {
    players.into_iter().fold(0, |mask, player| mask | 1 << player)
}
