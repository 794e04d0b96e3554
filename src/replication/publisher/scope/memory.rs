//! A client's ids, kept from one connection to the next and in saved worlds.

use super::super::super::packet::Audience;
use super::Scope;
use super::record::{GhostState, Hold, Record};
use crate::store::ones_of;

impl Scope {
    /// The rows that the client has ghosts of.
    pub(in super::super) fn shown_rows(&self) -> impl Iterator<Item = u32> {
        // Below the capacity.
        ones_of(&self.rows).map(|row| row as u32)
    }

    /// A new connection knows nothing of earlier packets: all that the client had is sent again under the same ids, and what
    /// ended meanwhile is ended.
    pub(in super::super) fn send_again(&mut self, tick: u32, owns: impl Fn(u32) -> bool) {
        self.ready_none();
        for id in ones_of(&self.used) {
            let record = &mut self.records[id];
            record.hold = Hold::new(Audience { owner: owns(record.row.into()), chosen: false });
            if record.state == GhostState::Destroying {
                record.destroy();
            } else if !record.is_unsent() {
                record.create_again(tick);
            }
        }
        self.due.copy_from_slice(&self.used);
        self.due_count = ones_of(&self.due).count();
    }

    /// The ids that the client may have ghosts of, in rising order, each with its row; none for those that ended.
    pub(in super::super) fn ids(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        ones_of(&self.used).filter_map(|id| {
            let record = &self.records[id];
            let row = (record.state != GhostState::Destroying).then(|| record.row.into());
            // Below the capacity.
            (record.sent > 0).then_some((id as u32, row))
        })
    }

    /// A scope with these ids, as of a tick.
    pub(in super::super) fn with_ids(ids: &[(u32, Option<u32>)], tick: u32) -> Self {
        let mut scope = Scope::default();
        for (id, row) in ids {
            let state = if row.is_some() { GhostState::Live } else { GhostState::Destroying };
            let record = Record::new(row.unwrap_or_default(), tick, state, Audience::default());
            // A client may have what was sent; nothing is at tick 0.
            scope.put(*id as usize, Record { sent: tick.max(1), ..record }, tick);
            row.iter().for_each(|row| scope.link(*id, *row));
        }
        scope
    }
}
