//! Clients that left: which ghosts each had, under which ids, and which objects it owned.
//!
//! Promises: a client that comes back gets the same ghosts under the same ids, and owns its objects again. Ghosts that ended
//! meanwhile are ended for it explicitly. At most as many clients are remembered as there are slots in use, or were in a saved world; the longest gone is
//! forgotten first, and starts from nothing when it comes back.

use super::super::drawn::drawn_id;
use super::super::packet::Visit;
use super::Publisher;
use super::peer::{Memory, Peer};
use crate::endpoint::PeerHandle;

impl Publisher {
    /// Adds a client by the id of its connect token: it continues where it left, if it is remembered.
    pub fn welcome(&mut self, handle: PeerHandle, client: u64) {
        self.add_peer(handle);
        let number = drawn_id(self.visits, self.config.seed);
        self.visits += 1;
        let place = self.memories.iter().position(|memory| memory.client == client);
        let memory = place.and_then(|place| self.memories.remove(place));
        let continues = memory.as_ref().map(|memory| memory.last);
        let Some(peer) = self.peer_mut(handle) else { return };
        peer.visit = Some((client, Visit { number, continues }));
        if let Some(memory) = memory {
            peer.scopes = memory.scopes;
        }
        let waiting = self.waiting.iter().filter(|(_, waits)| **waits == client);
        for (class, row) in waiting.map(|(place, _)| *place).collect::<Vec<_>>() {
            self.replace_owner(class, row, Some(handle));
        }
        let tick = self.tick;
        let Some(Peer { scopes, owned, .. }) = self.peer_mut(handle) else { return };
        for (scope, owned) in scopes.iter_mut().zip(owned) {
            scope.send_again(tick, |row| owned.contains(&row));
        }
    }

    /// Remembers a client that leaves. Its objects wait for it.
    pub(super) fn remember_client(&mut self, peer: Peer) {
        let Some((client, last)) = peer.leaves_off(self.tick) else { return };
        for (class, rows) in peer.owned.iter().enumerate() {
            self.waiting.extend(rows.iter().map(|row| ((class, *row), client)));
        }
        self.memories.push_back(Memory { client, last, scopes: peer.scopes });
        if self.memories.len() > self.peers.len().max(self.most_remembered) {
            self.memories.pop_front();
        }
    }

    /// The client id for which an object waits: its last owner, which left.
    pub fn waits_for(&self, class: usize, row: u32) -> Option<u64> {
        self.waiting.get(&(class, row)).copied()
    }

    /// The rows of a class that a client has ghosts of.
    pub(in crate::replication) fn shown_rows(&self, handle: PeerHandle, class: usize) -> Vec<u32> {
        self.peer(handle).map_or_else(Vec::new, |peer| peer.scopes[class].shown_rows().collect())
    }
}
