//! What a list knows of a ghost from the record that it lists: what the next one is likely to be.

use super::super::packet::Base;

/// The maximum of lists in a row that are told apart.
const MANY: u8 = 3;

/// What the record of a listed ghost was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replication) struct Note {
    /// The properties that the record had, and the ones that last did what they were less likely to do.
    pub(super) mask: u64,
    pub(super) deviated: u64,
    /// The first tick from which on the client has each state, as far as the record shows.
    pub(super) first: u32,
    /// How many lists in a row it is in, at most [`MANY`].
    pub(super) times: u8,
}

impl Note {
    /// A ghost that was created by a packet of this tick.
    pub(in crate::replication) fn of_create(mask: u64, tick: u32) -> Self {
        Note { mask, first: tick, ..Note::default() }
    }

    /// A ghost that was updated by a packet of this tick, against this base, with this mask. `deviated` properties did what they
    /// were less likely to do. `before` is what was known of the ghost.
    pub(in crate::replication) fn of_update(
        before: Option<Note>,
        (tick, base, mask): (u32, Base, u64),
        deviated: u64,
    ) -> Self {
        let first = match base {
            Base::UpTo { tick, past, run: run @ 1.. } => tick.saturating_sub(u32::from(run) * past),
            _ => before.map_or(tick, |before| before.first),
        };
        let kept = before.map_or(0, |before| before.deviated & !mask);
        let times = before.map_or(0, |before| (before.times + 1).min(MANY));
        Note { mask, deviated: kept | deviated, first, times }
    }
}
