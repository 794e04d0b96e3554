//! Rollback games, their spectators and the sync test for Python.
//!
//! The game's own code runs with no lock held, because it may call back in here: the classes of its inputs, and the
//! functions and destructors of its states (see `tickwire._states`).

mod arguments;
mod frames;
mod inputs;
mod queue;
mod session;
mod states;
mod sync_test;
mod watching;

use crate::python::prelude::*;
use crate::rollback::{GameInput, MAX_PLAYERS};
pub(super) use arguments::Timing;
use arguments::{exchanges, mask_of, members, moment};
pub(super) use frames::Advance;
use frames::{Frames, NextRequest, Requests, filled};
use inputs::{CopiedInput, InputKind, copied};
use queue::Queue;
pub(super) use session::{Desync, PlayerOut, Rollback, SpectatorLost};
use states::States;
pub(super) use states::{StateArrays, state_sum};
pub(super) use sync_test::SyncTest;
pub(super) use watching::Spectator;
