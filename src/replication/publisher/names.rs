//! How messages name ghosts: by the id under which the client knows one, and a tick at which that held.
//!
//! Promises: a name means the same ghost forever. An id is reused only after the client knows of the former ghost's
//! end, in a later tick than all names of it; so the reader of a name knows whether the id is still that ghost's. A
//! name reveals nothing about objects that the client doesn't have.

use super::Publisher;
use crate::endpoint::PeerHandle;
use crate::replication::name::GhostName;
use crate::store::sequence::nearest;

impl Publisher {
    /// The name of an object that a client has or will get.
    pub fn name(&mut self, handle: PeerHandle, class: usize, row: u32) -> Option<GhostName> {
        let tick = self.tick;
        let scope = &mut self.peer_mut(handle)?.scopes[class];
        let id = scope.id_of(row)?;
        // An object given between two ticks exists from the next on.
        let as_of = tick.max(scope.entered_at(id));
        scope.note_named(id, as_of);
        Some(GhostName { id, as_of: as_of as u16 })
    }

    /// The object that a client names; None if it ended or left meanwhile, or never existed.
    pub fn named(&self, handle: PeerHandle, class: usize, name: GhostName) -> Option<u32> {
        let scope = self.peer(handle)?.scopes.get(class)?;
        let row = scope.row_of(name.id)?;
        let as_of = nearest(name.as_of, self.tick)?;
        // A client can't know of a future tick.
        (scope.entered_at(name.id) <= as_of && as_of <= self.tick).then_some(row)
    }

    /// [`Publisher::enter`] between two ticks: from the next one on.
    pub(in crate::replication) fn enter_ahead(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        self.tick += 1;
        let entered = self.enter(handle, class, row);
        self.tick -= 1;
        entered
    }
}
