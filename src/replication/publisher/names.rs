//! How messages name ghosts: by the id that this client knows one by, and a tick as of which it does.
//!
//! Promises: a name is of one ghost for ever. An id is another ghost's only when the client knows of the end of the one before, and
//! that end is of a later tick than every name of it; so who reads a name knows whether the id is that ghost's still. It
//! says nothing of what the client doesn't have.

use super::Publisher;
use crate::endpoint::PeerHandle;
use crate::replication::name::GhostName;
use crate::store::sequence::nearest;

impl Publisher {
    /// The name of an object that a client has, or is about to get.
    pub fn name(&mut self, handle: PeerHandle, class: usize, row: u32) -> Option<GhostName> {
        let tick = self.tick;
        let scope = &mut self.peer_mut(handle)?.scopes[class];
        let id = scope.id_of(row)?;
        // One that is let in between two ticks is there from the next on.
        let as_of = tick.max(scope.entered_at(id));
        scope.note_named(id, as_of);
        Some(GhostName { id, as_of: as_of as u16 })
    }

    /// The object that a client names; none where it ended or left meanwhile, or there never was one.
    pub fn named(&self, handle: PeerHandle, class: usize, name: GhostName) -> Option<u32> {
        let scope = self.peer(handle)?.scopes.get(class)?;
        let row = scope.row_of(name.id)?;
        let as_of = nearest(name.as_of, self.tick)?;
        // A client knows of no tick that hasn't been.
        (scope.entered_at(name.id) <= as_of && as_of <= self.tick).then_some(row)
    }

    /// As [`Publisher::enter`], between two ticks: from the next one on.
    pub(in crate::replication) fn enter_ahead(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        self.tick += 1;
        let entered = self.enter(handle, class, row);
        self.tick -= 1;
        entered
    }
}
