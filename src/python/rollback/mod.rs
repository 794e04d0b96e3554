//! Rollback games, their spectators and the sync test for Python.

mod acts;
mod events;
mod inputs;
mod requests;
mod session;
mod states;
mod sync_test;
mod timing;
mod watching;

use crate::python::prelude::*;
use crate::rollback::{GameInput, MAX_PLAYERS};
use acts::{Acts, state_of};
pub(super) use events::{Desync, PlayerOut, SpectatorLost};
use inputs::{InputKind, InputObjects, InputRow};
pub(super) use requests::{Advance, Load, Save};
use requests::{RequestSource, Requests, Sums};
pub(super) use session::Rollback;
use session::players_of;
use states::{StateKind, differing};
pub(super) use sync_test::SyncTest;
pub(super) use timing::Timing;
pub(super) use watching::Spectator;

use std::sync::OnceLock;

use crate::time::Instant;

/// The caller's time in seconds, or the clock's.
fn moment(now: Option<f64>) -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let nanos = match now {
        Some(seconds) => (seconds.clamp(0.0, 1e9) * 1e9) as u64,
        None => ORIGIN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64,
    };
    Instant::from_nanos(nanos)
}
