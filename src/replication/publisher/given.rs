//! Which objects a client is given, and which of them the game chose it for.

use super::super::packet::Audience;
use super::Publisher;
use crate::endpoint::PeerHandle;

impl Publisher {
    /// Gives a client an object; false if it has it, or the client or object doesn't exist, or no id is free: ask again
    /// in a later tick, when the client knows of ended ghosts.
    pub fn enter(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        let (tick, owner) = (self.tick, self.owner(class, row) == Some(handle));
        let audience = Audience { owner, chosen: false };
        let capacity = self.tables[class].class().capacity;
        let enters = self.tables[class].is_alive(row)
            && self.peer_mut(handle).is_some_and(|peer| {
                let scope = &mut peer.scopes[class];
                scope.has_room(capacity) && scope.enter(row, tick, audience)
            });
        if enters {
            self.shown.push(tick, handle, class, row, true);
        }
        enters
    }

    /// Takes an object from a client; false if it doesn't have it.
    pub fn leave(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        let leaves = self.peer_mut(handle).is_some_and(|peer| peer.scopes[class].leave(row));
        if leaves {
            self.shown.push(self.tick, handle, class, row, false);
        }
        leaves
    }

    /// Says of which objects of a class a client is sent the properties of [`Condition::Chosen`]: a byte a row, of those that it
    /// has; rows beyond aren't.
    ///
    /// [`Condition::Chosen`]: crate::replication::Condition
    pub fn set_chosen(&mut self, handle: PeerHandle, class: usize, rows: &[u8]) {
        let tick = self.tick;
        if self.classes.get(class).is_some_and(|class| class.is_chosen())
            && let Some(peer) = self.peer_mut(handle)
        {
            peer.scopes[class].set_chosen(tick, rows);
        }
    }

    /// Whether a client has an object, or will get it.
    pub fn has(&self, handle: PeerHandle, class: usize, row: u32) -> bool {
        self.ghost_id(handle, class, row).is_some()
    }

    /// The id by which a client knows an object.
    pub fn ghost_id(&self, handle: PeerHandle, class: usize, row: u32) -> Option<u32> {
        self.peer(handle)?.scopes[class].id_of(row)
    }
}
