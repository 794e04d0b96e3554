//! Rollback games, their spectators and the sync test for Python.
//!
//! The game's own code runs with no lock held, because it may call back in here: the classes of its inputs, and the
//! functions and destructors of its states (see `tickwire._states`).

mod events;
mod frames;
mod inputs;
mod session;
mod states;
mod sync_test;
mod timing;
mod watching;

use crate::python::prelude::*;
use crate::rollback::{GameInput, MAX_PLAYERS};
pub(super) use events::{Desync, PlayerOut, SpectatorLost};
pub(super) use frames::Advance;
use frames::{Frames, RequestSource, Requests};
use inputs::{CopiedInput, InputKind, copied};
pub(super) use session::Rollback;
use session::mask_of;
use states::States;
pub(super) use states::{StateArrays, state_sum};
pub(super) use sync_test::SyncTest;
pub(super) use timing::Timing;
pub(super) use watching::Spectator;

/// The caller's time, or the clock's.
fn moment(now: Option<Instant>) -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = || ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    now.unwrap_or_else(|| Instant::from_nanos(elapsed().as_nanos() as u64))
}

/// The players of a mask.
fn members(mask: u16) -> impl Iterator<Item = usize> {
    (0..MAX_PLAYERS).filter(move |player| mask >> player & 1 == 1)
}
