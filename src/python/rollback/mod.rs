//! Rollback games, their spectators and the sync test for Python.
//!
//! The game's own code runs with no lock held, because it may call back in here: the classes of its inputs, and the
//! functions and destructors of its states (see `tickwire._states`).

mod frames;
mod inputs;
mod session;
mod states;
mod sync_test;
mod watching;

use crate::python::prelude::*;
use crate::rollback::{GameInput, MAX_DELAY, MAX_PLAYERS, MAX_WINDOW};
pub(super) use frames::Advance;
use frames::{Frames, NextRequest, Requests, filled};
use inputs::{CopiedInput, InputKind, copied};
pub(super) use session::Rollback;
use states::States;
pub(super) use states::{StateArrays, state_sum};
pub(super) use sync_test::SyncTest;
pub(super) use watching::Spectator;

/// A bit for each of `players`: their count, or their numbers.
pub(super) fn mask_of(players: &Object<'_>) -> PyResult<u16> {
    let most = MAX_PLAYERS as u8;
    if players.is_instance_of::<PyInt>() {
        return Ok(u16::MAX >> (most - bounded("players", players, 1, most)?));
    }
    let numbers: Vec<Object<'_>> = argument("players", players, "an int or numbers of players")?;
    let mut mask = 0u16;
    for number in &numbers {
        let number = bounded("players[]", number, 0, most - 1)?;
        if mask >> number & 1 == 1 {
            refuse!(PyValueError, "players must contain each number once, not {number} twice");
        }
        mask |= 1 << number;
    }
    if mask == 0 {
        refuse!(PyValueError, "players must contain 1 to {most} numbers, not 0");
    }
    Ok(mask)
}

/// The caller's time, or the clock's.
pub(super) fn moment(now: Option<Instant>) -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = || ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    now.unwrap_or_else(|| Instant::from_nanos(elapsed().as_nanos() as u64))
}

/// The players of a mask.
pub(super) fn members(mask: u16) -> impl Iterator<Item = usize> {
    (0..MAX_PLAYERS).filter(move |player| mask >> player & 1 == 1)
}

#[record(eq, module = "tickwire.rollback")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    #[within(0, MAX_DELAY)]
    pub(super) delay: u32,
    #[within(1, MAX_WINDOW)]
    pub(super) window: u32,
    #[within(1, 1_000)]
    pub(super) rate: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { delay: 2, window: 8, rate: 60 }
    }
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct PlayerOut {
    pub(super) player: u8,
    pub(super) frame: u32,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct Desync {
    pub(super) player: u8,
    pub(super) frame: u32,
    pub(super) last_equal: Option<u32>,
    pub(super) fields: Vec<String>,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct SpectatorLost {
    pub(super) index: u8,
}
