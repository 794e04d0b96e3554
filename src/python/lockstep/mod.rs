//! Lockstep for Python: the machine, the generator that all share, recordings.
//!
//! Promises: a caller's mistake raises and names argument, value and bound; what peers send never does.

mod arrays;
mod core;
mod random;
mod recording;

pub(super) use self::core::{LockstepCore, replayed_crc};
pub(super) use self::random::Random;
pub(super) use self::recording::{read_recording, recording_settings, recording_snapshot, recording_turn};
