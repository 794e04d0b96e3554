//! Who is let in, where the application wants to be asked about each newcomer.
//!
//! Promises: of a client that the application has not decided about, nothing can be taken: no event, message, notification
//! or chunk; its chunks get no place either, in memory or in a store. The connection itself works: it is acked and kept
//! alive. A client that leaves before the decision stays to be decided about, with all that it sent; nothing of it is lost
//! when it is admitted, and nothing is left of it when it is refused.

use super::Host;
use crate::endpoint::event::Event;
use crate::endpoint::goodbye::Detail;
use crate::endpoint::handle::PeerHandle;
use crate::store::Datagrams;
use crate::time::Instant;

impl Host {
    /// From now on, newcomers wait for [`Host::admit`] or [`Host::refuse`]: clients that dial us, not servers that we dial.
    pub fn ask_admission(&mut self) {
        self.asks_admission = true;
    }

    /// From now on, there is a layer above that plays with others without a server: it has all events at once, decides about all
    /// newcomers, those that we dial too, and takes what the channels of peers carry.
    pub fn serve_peers(&mut self) {
        (self.asks_admission, self.serves_peers) = (true, true);
    }

    /// The [`Event::Accepted`] of those that must be decided about, in the order in which they came.
    pub fn newcomers(&self) -> impl Iterator<Item = &Event> {
        let events = self.events.iter().filter(|_| self.asks_admission);
        let accepted = events.filter(|event| matches!(event, Event::Accepted { .. }));
        accepted.filter(|event| self.is_undecided(event.peer()))
    }

    /// Lets a newcomer in: what it did and sent can be taken from now on.
    pub fn admit(&mut self, handle: PeerHandle) {
        if let Some(peer) = self.peers.change(handle) {
            peer.quota.is_held = false;
        } else if let Some(place) = self.left_undecided.iter().position(|peer| peer.handle == handle) {
            let mut peer = self.left_undecided.remove(place);
            peer.quota.is_held = false;
            self.keep_what_is_left(peer);
        }
    }

    /// Ends a newcomer's connection; the application hears nothing of it. Does nothing to those that were admitted.
    pub fn refuse(&mut self, now: Instant, handle: PeerHandle, detail: Option<&Detail>, out: &mut Datagrams) {
        if !self.is_undecided(handle) {
            return;
        }
        if self.peers.find(handle).is_some() {
            self.send_away(now, handle, detail, out);
        }
        self.purge(handle);
        self.events.retain(|event| event.peer() != handle);
        self.forget(handle);
    }

    /// Whether this is a newcomer that the application has not decided about.
    pub(super) fn is_undecided(&self, handle: PeerHandle) -> bool {
        // Also one that is about to end: its slot is asked whatever becomes of it.
        self.peers.find(handle).is_some_and(|peer| !peer.is_admitted())
            || self.left_undecided.iter().any(|peer| peer.handle == handle)
    }
}
