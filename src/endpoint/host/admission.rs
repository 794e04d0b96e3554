//! Admission of newcomers, if the application wants to decide about each.
//!
//! Promises: nothing can be taken of a client that the application has not decided about: no event, message,
//! notification or chunk; its chunks get no place either, in memory or in a store. The connection itself works: it is
//! acked and kept alive. A client that leaves before the decision remains to be decided about, with everything it
//! sent; admitting it loses nothing, and refusing it leaves nothing.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::event::Event;
use crate::endpoint::goodbye::Detail;
use crate::store::Datagrams;
use crate::time::Instant;

impl Host {
    /// From now on, clients that dial us wait for [`Host::admit`] or [`Host::refuse`]; servers that we dial don't.
    pub fn ask_admission(&mut self) {
        self.asks_admission = true;
    }

    /// From now on, there is a layer above that plays with others without a server: it has all events at once, decides about all
    /// newcomers, those that we dial too, and takes what the channels of peers carry.
    pub fn serve_peers(&mut self) {
        (self.asks_admission, self.serves_peers) = (true, true);
    }

    /// The [`Event::Accepted`] of the clients to be decided about, in order of arrival.
    pub fn newcomers(&self) -> impl Iterator<Item = &Event> {
        let events = self.events.iter().filter(|_| self.asks_admission);
        let accepted = events.filter(|event| matches!(event, Event::Accepted { .. }));
        accepted.filter(|event| self.is_undecided(event.peer()))
    }

    /// Admits a newcomer: its event and messages can be taken from now on.
    pub fn admit(&mut self, handle: PeerHandle) {
        if let Some(peer) = self.peers.change(handle) {
            peer.quota.is_held = false;
        } else if let Some(place) = self.left_undecided.iter().position(|peer| peer.handle == handle) {
            let mut peer = self.left_undecided.remove(place);
            peer.quota.is_held = false;
            self.keep_what_is_left(peer);
        }
    }

    /// Ends a newcomer's connection; the application gets no event of it. Does nothing to admitted clients.
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
        // Includes clients that are about to end: a slot is decided about in any case.
        self.peers.find(handle).is_some_and(|peer| !peer.is_admitted())
            || self.left_undecided.iter().any(|peer| peer.handle == handle)
    }
}
