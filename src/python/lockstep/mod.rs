//! Lockstep for Python: the machine, the shared random generator, recordings.
//!
//! Promises: a caller's mistake raises and names argument, value and bound; nothing that peers send raises.

mod arrays;
mod core;
mod random;
mod recording;

pub(super) use self::core::{LockstepCore, replayed_crc};
pub(super) use self::random::Random;
pub(super) use self::recording::{read_recording, recording_settings, recording_snapshot, recording_turn};
